"""One work item of a comparison: a Dask task that returns reduction states and a few rows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from leafledger.kernels.method.method import BackgroundStatistics
from leafledger.kernels.reductions.reduction import MEANS
from leafledger.kernels.slices.labels import Labels
from leafledger.kernels.trees.binning import padded

from ..dataset.columns.labels import lay_out, read_labels
from ..dataset.columns.row_places import RowPlaces
from ..dataset.files.listing import WorkItem
from ..dataset.files.rows import located, read_rows
from ..methods.reduction_states import pack_state
from ..models.model import Feature
from ..runs.execute import count_background as count_background_
from ..stores.table_arrays import open_tables
from .comparison import ComparedItem, Comparison, name_values
from .differing import DifferingRows
from .slices import Columns, SliceTables


@dataclass(frozen=True, slots=True)
class Compared:
    """Result of an item."""

    states: tuple[str, ...]  # packed: means over all rows, sampled rows and labelled rows; moments of values
    rows: str  # packed, with the largest differences of rankings
    seen: np.ndarray  # (read, 2) int64, see `count_unseen`


@dataclass(frozen=True, slots=True)
class Measuring:
    """Arguments of the first pass: URI of the query, and features in splits."""

    query: str
    features: tuple[Feature, ...]


def measure_item(asked: Measuring, item: WorkItem) -> BackgroundStatistics:
    """Measure the statistics of perturbations on an item's rows."""
    return count_background_.count_rows(asked.features, open_tables(asked.query), item).statistics


def warm_measuring(asked: Measuring) -> None:
    """Compile or load every kernel of the first pass."""
    count_background_.warm(asked.query)


def _read_labels(comparison: Comparison, piece: WorkItem, batch: pa.RecordBatch, first_row: int) -> Labels | None:
    if comparison.removal is None:
        return None
    with located(piece):
        return read_labels(comparison.removal.labels, batch, RowPlaces.one(piece.uri, first_row))


def compare_item(comparison: Comparison, compared: ComparedItem) -> Compared:
    """Measure the rows of an item."""
    item, tables = compared.item, None
    runs = ((r, ranking) for r, ranking in enumerate(comparison.rankings) if ranking.run is not None)
    columns = {r: Columns(ranking, uri) for (r, ranking), uri in zip(runs, compared.parts, strict=True)}
    sizes = [len(values) for values in name_values(comparison, comparison.gaps.tables)]
    sizes.append((len(comparison.valued) + len(comparison.valued_pairs)) * len(comparison.features))
    states, done = [MEANS.init(len(comparison.outputs), size) for size in sizes], 0
    labels = () if comparison.removal is None else comparison.removal.labels.numbers
    wanted = list(dict.fromkeys((*(feature.name for feature in comparison.features), *comparison.ids, *labels)))
    seen, differing = np.zeros((len(comparison.features), 2), np.int64), DifferingRows(comparison.named)
    for piece, first_row, batch in read_rows(item, wanted, comparison.slice_rows):
        n = batch.num_rows
        if tables is None or padded(n) != padded(tables.n_rows):  # smaller buffers for the last batch, as in parts
            tables = SliceTables(comparison, n)
        with located(piece):
            tables.fill(batch)
        seen += tables.count_unseen(n)
        sample = comparison.gaps.sample.choose(item.part, done, n)
        found = tables.measure(columns, n, first_row, sample, _read_labels(comparison, piece, batch, first_row))
        states = [MEANS.update(state, values, values.shape[2]) for state, values in zip(states, found.measured, strict=True)]
        differing.see(batch, piece.uri, first_row, found.seen, comparison.pairs, found.apart)
        done += n
    return Compared(tuple(pack_state(state) for state in states), differing.pack(), seen)


def warm(comparison: Comparison) -> None:
    """Compile or load every kernel of comparisons."""
    labels = None if comparison.removal is None else lay_out(np.zeros(1), np.ones(1))
    for values in SliceTables(comparison, 1).measure({}, 1, 0, np.arange(1), labels).measured:
        MEANS.update(MEANS.init(*values.shape[:2]), values, values.shape[2])
