"""One work item of effects, on a worker: its rows counted, or passed over; what was found is kept until all is published."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.effects.sums import CountedRows, EffectSums, sum_rows
from leafledger.kernels.slices.links import Link
from leafledger.kernels.trees.binning import BinTables, bin_dtype, bin_rows, padded

from ..dataset.columns.values import fill_values
from ..dataset.files.listing import WorkItem
from ..dataset.files.rows import located, miscounted, read_slices
from ..methods.warmup import call_counting
from ..methods.worker_memory import max_slice_rows
from ..models.model import Feature
from ..stores import storage
from ..stores.table_arrays import open_tables, store_tables
from .counted import count_values
from .passed import find_carry, slice_rows


@dataclass(frozen=True, slots=True)
class NumberedItem:
    """A work item, and the number of its first row in the background."""

    item: WorkItem
    first_row: int

    def __str__(self) -> str:
        return str(self.item)


def name_item(item: WorkItem) -> str:
    """Name what is kept of an item."""
    return f"item-{item.part:05}"


@dataclass(frozen=True, slots=True)
class Pass:
    """What a pass over the background needs on a worker.

    Attributes
    ----------
    tables : str
        URI of what was broadcast: the query and the axes, or ``RowTables``.
    names : tuple of str
        Of the axes.
    features : tuple of Feature
        Those that are read, in the order of the binning's columns.
    link : Link or None
        From margins to what curves are of.
    folder : str
        URI of where items' results are kept.
    """

    tables: str
    names: tuple[str, ...]
    features: tuple[Feature, ...]
    link: Link | None
    folder: str

    def place(self, item: WorkItem) -> str:
        """Name where an item's result is kept."""
        return storage.join(self.folder, name_item(item))


def _read_values(asked: Pass, bins: BinTables, item: WorkItem, size: int) -> Iterator[np.ndarray]:
    """Read an item's rows, ``(used, n) float64`` a slice."""
    done = 0
    for batch in read_slices(item, [feature.name for feature in asked.features], size):
        with located(item):
            values = np.zeros((bins.column.size, batch.num_rows))
            fill_values(asked.features, bins, [batch.column(feature.name) for feature in asked.features], values)
        yield values
        done += batch.num_rows
    if done != item.n_rows or not done:
        raise miscounted(item, done)


def _merge(found: Iterator[Any]) -> Any:
    total = next(found)
    for each in found:
        total = total.merge([each])
    return total


def _count(asked: Pass, numbered: NumberedItem, measured: bool) -> CountedRows:
    query, axes = open_tables(asked.tables)
    named = list(zip(asked.names, axes, strict=True))

    def slices() -> Iterator[CountedRows]:
        first = numbered.first_row
        for values in _read_values(asked, query.bins, numbered.item, max_slice_rows(2 * query.bins.column.size)):
            yield count_values(query, named, values, first, measured)
            first += values.shape[1]

    return store_tables(_merge(slices()), asked.place(numbered.item))


def count_item(asked: Pass, numbered: NumberedItem) -> CountedRows:
    """Count an item's rows: a task."""
    return _count(asked, numbered, True)


def count_states(asked: Pass, numbered: NumberedItem) -> CountedRows:
    """Count an item's rows by the states of axes alone, where an earlier run has counted the rest: a task."""
    return _count(asked, numbered, False)


def sum_item(asked: Pass, numbered: NumberedItem) -> EffectSums:
    """Sum what an item's rows say: a task."""
    tables = open_tables(asked.tables)

    def slices() -> Iterator[EffectSums]:
        for values in _read_values(asked, tables.bins, numbered.item, slice_rows(tables)):
            n = values.shape[1]
            wide = np.concatenate((values, np.zeros((len(values), padded(n) - n))), axis=1)
            bins = np.zeros(wide.shape, bin_dtype(tables.bins))
            bin_rows(wide, tables.bins, bins)
            yield sum_rows(tables, bins, n, find_carry(asked.link))

    return store_tables(_merge(slices()), asked.place(numbered.item))


def warm_counting(asked: Pass) -> None:
    """Compile or load every kernel of the first pass."""
    call_counting(open_tables(asked.tables)[0])


def warm_sums(asked: Pass) -> None:
    """Compile or load every kernel of the second pass."""
    tables = open_tables(asked.tables)
    sum_rows(tables, np.zeros((tables.bins.column.size, padded(1)), bin_dtype(tables.bins)), 0, find_carry(asked.link))


def first_rows(items: Sequence[WorkItem]) -> list[NumberedItem]:
    """Number all items by their first rows."""
    starts = np.cumsum([0, *(item.n_rows for item in items)])[:-1].tolist()
    return [NumberedItem(item, first) for item, first in zip(items, starts, strict=True)]
