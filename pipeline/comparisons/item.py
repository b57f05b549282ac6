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
from ..dataset.rows import miscounted, read_slices
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
class Sample:
    """Rows of the data, spread evenly over all."""

    size: int
    n_rows: int  # that there are in all
    start: tuple[int, ...]  # of every item, how many rows come before it

    def choose(self, part: int, done: int, n: int) -> np.ndarray:
        """Find the rows of a slice that belong to the sample.

        Parameters
        ----------
        part : int
            Number of the item.
        done : int
            Rows of the item that come before the slice.
        n : int
            Rows of the slice.

        Returns
        -------
        (chosen,) int64
            Ascending, from 0 to n - 1.
        """
        first = self.start[part] + done
        before = np.array([row * self.size // self.n_rows for row in range(first, first + n + 1)])
        return np.flatnonzero(before[1:] > before[:-1])


@dataclass(frozen=True, slots=True)
class Gaps:
    """How prediction gaps are measured, and on which rows: they cost thousands of times what attributions do."""

    tables: tuple[str, ...]  # their URIs, one for every scale
    noise: str
    seed: int  # of the points that gaps are estimated by, or EXACT
    sample: Sample


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared, and how."""

    rankings: tuple[Ranking, ...]
    bins: str  # URI of the tables that turn values into bins
    areas: str  # URI of the tables that curves are made by
    gaps: Gaps
    top: tuple[int, ...]
    features: tuple[Feature, ...]  # those that splits ask for
    slice_rows: int


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is measured in a first pass: URI of what is asked of every row, and the features that splits ask for."""

    query: str
    features: tuple[Feature, ...]


def measure_item(asked: Measuring, item: WorkItem) -> BackgroundStatistics:
    """Measure what perturbations are made of on the rows of an item: moments of its features, and the values that units are drawn from.

    Parameters
    ----------
    asked : Measuring
    item : WorkItem

    Returns
    -------
    BackgroundStatistics
        A Measured, which can be merged with those of other items.

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    StorageError
        The store does not answer.
    """
    return background.count_rows(asked.features, open_tables(asked.query), item)


def warm_measuring(asked: Measuring) -> None:
    """Compile, or read from the cache, every kernel that measuring items calls.

    Parameters
    ----------
    asked : Measuring
    """
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


class _SliceTables:
    """Buffers and tables for slices of the same number of rows."""

    def __init__(self, comparison: Comparison, n_rows: int):
        self._comparison, self.n_rows = comparison, n_rows
        self.prepared: Prepared = open_tables(comparison.bins)
        self._features = dict(zip(self.prepared.bins.column.tolist(), comparison.features, strict=True))
        self._buffers = make_buffers(self.prepared, n_rows)
        self._methods: list[tuple[Prepared, Buffers] | None] = []
        for ranking in comparison.rankings:
            if ranking.run is not None:
                self._methods.append(None)
                continue
            prepared = open_tables(ranking.tables)
            mine = make_buffers(prepared, n_rows)._replace(values=self._buffers.values, bins=self._buffers.bins)
            self._methods.append((prepared, mine))
        self._areas, self._gaps = open_tables(comparison.areas), [open_tables(uri) for uri in comparison.gaps.tables]
        self._noise = next(noise for noise in NOISES if noise.name == comparison.gaps.noise)
        self._agreements = agreements(comparison.top)

    def measure(self, batch: pa.RecordBatch | None, columns: dict[int, _Columns], n: int, chosen: np.ndarray) -> list[np.ndarray]:
        """``(outputs, values, n)`` of a slice, and of the rows of it that are ``chosen``; without one, of rows of zeros."""
        if batch is not None:
            fill_values(self._features, self.prepared, batch, self._buffers)
        values, bins = self._buffers.values, self._buffers.bins
        bin_rows(values, self.prepared.bins, bins)
        scores, n_used = [], len(self._comparison.features)
        for r, (ranking, own) in enumerate(zip(self._comparison.rankings, self._methods, strict=True)):
            if own is None:
                found = columns[r].take(n) if batch is not None else np.zeros((*self._buffers.phi.shape[:2], n))
            else:
                attribute_batch(METHODS[ranking.method], *own)
                found = own[1].phi[:, :n_used, :n]
            scores.append(scores_of(found) if METHODS[ranking.method].phi.whole else found)
        areas = set_against(measure_areas(bins, self._areas, scores))
        some = [np.ascontiguousarray(each[..., chosen]) for each in scores]
        sampled = np.ascontiguousarray(values[:, chosen]), np.ascontiguousarray(bins[:, chosen])
        gaps, errors = measure_gaps(*sampled, self._gaps, self._noise, some, self._comparison.gaps.seed)
        of_gaps = [set_against(gaps)]
        if self._comparison.gaps.seed != EXACT:
            of_gaps.append(errors.reshape(errors.shape[0], errors.shape[1] * errors.shape[2], errors.shape[3]))
        return [np.concatenate((areas, measure_agreements(scores, self._agreements)), axis=1), np.concatenate(of_gaps, axis=1)]


def name_values(n_rankings: int, top: Sequence[int], scales: Sequence[str], exact: bool) -> list[tuple[Value, ...]]:
    """Name what is measured of every row, and of the rows of the sample.

    Parameters
    ----------
    n_rankings : int
    top : sequence of int
        Sizes of sets of the largest features, whose agreement is measured.
    scales : sequence of str
        A name for every scale that PGI² is measured at.
    exact : bool
        Gaps are exact. Where they are not, they have standard errors too.

    Returns
    -------
    list of two tuples of Value
        Areas and agreements of every row; gaps, and their standard errors, of the sample.
    """
    errors = () if exact else tuple(Value(f"{scale} error", r) for scale in scales for r in range(n_rankings))
    return [list_values(AREAS, n_rankings, agreements(top)), (*list_values(scales, n_rankings), *errors)]


def compare_item(comparison: Comparison, item: WorkItem) -> list[str]:
    """Measure the rows of an item.

    Parameters
    ----------
    comparison : Comparison
    item : WorkItem

    Returns
    -------
    list of two str
        Packed states of the means over all rows, and over those of the sample.

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    InvalidRun
        A part of an earlier run has fewer rows than the data.
    StorageError
        The store does not answer.
    """
    columns = {r: _Columns(ranking, item.part) for r, ranking in enumerate(comparison.rankings) if ranking.run is not None}
    tables = _SliceTables(comparison, min(comparison.slice_rows, item.n_rows))
    named = name_values(len(comparison.rankings), comparison.top, comparison.gaps.tables, comparison.gaps.seed == EXACT)
    states, done = [MEANS.init(tables.prepared.base.size, len(values)) for values in named], 0
    names = [feature.name for feature in comparison.features]
    for batch in read_slices(item, names, comparison.slice_rows):
        n = batch.num_rows
        if padded(n) != padded(tables.n_rows):  # as in parts of a run
            tables = _SliceTables(comparison, n)
        measured = tables.measure(batch, columns, n, comparison.gaps.sample.choose(item.part, done, n))
        states = [MEANS.update(state, values, values.shape[2]) for state, values in zip(states, measured, strict=True)]
        done += n
    if done != item.n_rows:
        raise miscounted(item, done)
    return [pack_state(state) for state in states]


def warm(comparison: Comparison) -> None:
    """Compile, or read from the cache, every kernel that comparing items calls.

    Parameters
    ----------
    comparison : Comparison
    """
    for values in _SliceTables(comparison, 1).measure(None, {}, 1, np.arange(1)):
        MEANS.update(MEANS.init(*values.shape[:2]), values, 1)
