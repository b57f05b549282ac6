"""One work item of a comparison of rankings: what a Dask task does. Names and a small record come in, a reduction's state goes out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.batch import attribute_batch
from kernels.buffers import Buffers, Prepared, make_buffers
from kernels.comparison import AREAS, Value, agreements, list_values, measure_agreements, measure_areas, measure_gaps, set_against
from kernels.method import BackgroundStatistics
from kernels.methods import METHODS
from kernels.prediction_gap.noise import NOISES
from kernels.prediction_gap.rankings import EXACT
from kernels.ranking.ranks import scores_of
from kernels.reductions import MEANS
from kernels.trees.binning import bin_rows, padded

from ..dataset.listing import WorkItem
from ..dataset.rows import carried_types, miscounted, read_slices
from ..errors import InvalidRun
from ..models.model import Feature
from ..runs import background
from ..runs.item import fill_values
from ..runs.part import part_uri
from ..runs.states import pack_state
from ..stores import storage
from ..stores.arrays import open_tables


@dataclass(frozen=True, slots=True)
class Ranking:
    """Where scores come from: a method with its tables, or the columns of an earlier run, ``(outputs, players)``."""

    name: str  # as it was asked for
    method: str
    tables: str  # their URI, empty of a run
    run: str | None
    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is compared, and how."""

    rankings: tuple[Ranking, ...]
    bins: str  # URI of tables that rank rows
    areas: str  # URI of tables that curves are made by
    gaps: tuple[str, ...]  # of tables that the prediction gap is measured by, for every scale
    noise: str
    seed: int  # of the points that it is estimated by, or EXACT
    start: tuple[int, ...]  # of every item, how many rows come before it
    sample: tuple[int, int]  # gaps are measured on so many rows, of so many in all
    top: tuple[int, ...]
    features: tuple[Feature, ...]  # those that splits ask for
    slice_rows: int


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured in a first pass: URI of what is asked of every row, and the features that splits ask for."""

    query: str
    features: tuple[Feature, ...]


def measure_item(asked: Measuring, item: WorkItem) -> BackgroundStatistics:
    """Moments of an item's features, and the values that units are drawn from."""
    return background.count_rows(asked.features, open_tables(asked.query), item)


def warm_measuring(asked: Measuring) -> None:
    """Compile, or read from the cache, every kernel that items call."""
    background.warm(asked.query)


class _Columns:
    """Columns of an earlier run's part, as many rows at a time as are asked for."""

    def __init__(self, ranking: Ranking, part: int):
        self._names = ranking.columns
        self._uri = part_uri(str(ranking.run), part)
        self._batches = self._read([name for names in ranking.columns for name in names])
        self._left: list[pa.RecordBatch] = []

    def _read(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        with storage.opened(self._uri) as file:
            yield from pq.ParquetFile(file, page_checksum_verification=True).iter_batches(columns=names, use_threads=False)

    def take(self, n: int) -> np.ndarray:
        """The next n rows, ``(outputs, players, n) float64``."""
        while sum(batch.num_rows for batch in self._left) < n:
            batch = next(self._batches, None)
            if batch is None:
                raise InvalidRun(f"{self._uri}: has fewer rows than the data")
            self._left.append(batch)
        table = pa.Table.from_batches(self._left)
        self._left = table.slice(n).to_batches()
        found = np.zeros((len(self._names), len(self._names[0]), n))
        for k, names in enumerate(self._names):
            for j, name in enumerate(names):
                found[k, j] = table.column(name).slice(0, n).to_numpy()
        return found


class _Measurer:
    """Buffers and tables for slices of the same number of rows."""

    def __init__(self, question: Question, n_rows: int):
        self._question, self.n_rows = question, n_rows
        self.prepared: Prepared = open_tables(question.bins)
        self._features = dict(zip(self.prepared.bins.column.tolist(), question.features, strict=True))
        self._buffers = make_buffers(self.prepared, n_rows)
        self._methods: list[tuple[Prepared, Buffers] | None] = []
        for ranking in question.rankings:
            if ranking.run is not None:
                self._methods.append(None)
                continue
            prepared = open_tables(ranking.tables)
            mine = make_buffers(prepared, n_rows)._replace(values=self._buffers.values, bins=self._buffers.bins)
            self._methods.append((prepared, mine))
        self._areas, self._gaps = open_tables(question.areas), [open_tables(uri) for uri in question.gaps]
        self._noise = next(noise for noise in NOISES if noise.name == question.noise)
        self._agreements = agreements(question.top)

    def measure(self, batch: pa.RecordBatch | None, columns: dict[int, _Columns], n: int, chosen: np.ndarray) -> list[np.ndarray]:
        """``(outputs, values, n)`` of a slice, and of the rows of it that are ``chosen``; without one, of rows of zeros."""
        if batch is not None:
            fill_values(self._features, self.prepared, batch, self._buffers)
        values, bins = self._buffers.values, self._buffers.bins
        bin_rows(values, self.prepared.bins, bins)
        scores, n_used = [], len(self._question.features)
        for r, (ranking, own) in enumerate(zip(self._question.rankings, self._methods, strict=True)):
            if own is None:
                found = columns[r].take(n) if batch is not None else np.zeros((*self._buffers.phi.shape[:2], n))
            else:
                attribute_batch(METHODS[ranking.method], *own)
                found = own[1].phi[:, :n_used, :n]
            scores.append(scores_of(found) if METHODS[ranking.method].phi.whole else found)
        areas = set_against(measure_areas(bins, self._areas, scores))
        some = [np.ascontiguousarray(each[..., chosen]) for each in scores]
        sampled = np.ascontiguousarray(values[:, chosen]), np.ascontiguousarray(bins[:, chosen])
        gaps, errors = measure_gaps(*sampled, self._gaps, self._noise, some, self._question.seed)
        of_gaps = [set_against(gaps)]
        if self._question.seed != EXACT:
            of_gaps.append(errors.reshape(errors.shape[0], errors.shape[1] * errors.shape[2], errors.shape[3]))
        return [np.concatenate((areas, measure_agreements(scores, self._agreements)), axis=1), np.concatenate(of_gaps, axis=1)]


def name_values(n_rankings: int, top: Sequence[int], scales: Sequence[str], exact: bool) -> list[tuple[Value, ...]]:
    """What is measured of every row, and of the sample: where its gaps are not exact, also their standard errors."""
    errors = () if exact else tuple(Value(f"{scale} error", r) for scale in scales for r in range(n_rankings))
    return [list_values(AREAS, n_rankings, agreements(top)), (*list_values(scales, n_rankings), *errors)]


def _choose(question: Question, first: int, n: int) -> np.ndarray:
    """Which of n rows, before which come so many others, are of the sample: it is spread evenly over all of them."""
    taken, n_rows = question.sample
    before = np.array([row * taken // n_rows for row in range(first, first + n + 1)])
    return np.flatnonzero(before[1:] > before[:-1])


def compare_item(question: Question, item: WorkItem) -> list[str]:
    """Measure the rows of an item; states of the means of all, and of the sample, as text."""
    columns = {r: _Columns(ranking, item.part) for r, ranking in enumerate(question.rankings) if ranking.run is not None}
    measurer = _Measurer(question, min(question.slice_rows, item.n_rows))
    named = name_values(len(question.rankings), question.top, question.gaps, question.seed == EXACT)
    states, done = [MEANS.init(measurer.prepared.base.size, len(values)) for values in named], 0
    names = [feature.name for feature in question.features]
    for batch in read_slices(item, names, carried_types((item,)), question.slice_rows):
        n = batch.num_rows
        if padded(n) != padded(measurer.n_rows):  # as in parts of a run
            measurer = _Measurer(question, n)
        measured = measurer.measure(batch, columns, n, _choose(question, question.start[item.part] + done, n))
        states = [MEANS.update(state, values, values.shape[2]) for state, values in zip(states, measured, strict=True)]
        done += n
    if done != item.n_rows:
        raise miscounted(item, done)
    return [pack_state(state) for state in states]


def warm(question: Question) -> None:
    """Compile, or read from the cache, every kernel that items call."""
    for values in _Measurer(question, 1).measure(None, {}, 1, np.arange(1)):
        MEANS.update(MEANS.init(*values.shape[:2]), values, 1)
