"""One work item of a pass over data that measures what it is perturbed by: what a Dask task does. Names and a small record come in."""

from dataclasses import dataclass

import numpy as np

from kernels.batch import Prepared, make_buffers
from kernels.noise import Measured, measure, merge
from kernels.ranks import padded, rank_rows

from .listing import WorkItem
from .models.model import Feature
from .part import fill_values
from .rows import carried_types, located, miscounted, read_slices
from .tables import open_tables


@dataclass(frozen=True, slots=True)
class Measuring:
    """Of which features moments are taken, and of which values are kept to be drawn."""

    ranks: str  # URI of tables that rank rows
    features: tuple[Feature, ...]  # those that splits ask for
    drawn: tuple[bool, ...]
    slice_rows: int


def _measure(asked: Measuring, prepared: Prepared, batch) -> Measured:
    n = batch.num_rows
    buffers = make_buffers(prepared, n)
    fill_values(dict(zip(prepared.ranks.column.tolist(), asked.features, strict=True)), prepared, batch, buffers)
    rank_rows(buffers.values, prepared.ranks, buffers.ranks)
    return measure(buffers.values[:, :n], buffers.ranks[:, :n], np.arange(len(asked.features)), asked.drawn)


def measure_item(asked: Measuring, item: WorkItem) -> Measured:
    """Moments of an item's features, and the values of those that are drawn."""
    prepared, parts, done = open_tables(asked.ranks), [], 0
    for batch in read_slices(item, [feature.name for feature in asked.features], carried_types((item,)), asked.slice_rows):
        with located(item):
            parts.append(_measure(asked, prepared, batch))
        parts, done = [merge(parts)], done + batch.num_rows
    if not parts or done != item.n_rows:
        raise miscounted(item, done)
    return parts[0]


def warm(asked: Measuring) -> None:
    """Compile, or read from the cache, every kernel that items call."""
    prepared = open_tables(asked.ranks)
    buffers = make_buffers(prepared, padded(1))
    rank_rows(buffers.values, prepared.ranks, buffers.ranks)
