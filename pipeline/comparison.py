"""One work item of a comparison of rankings: what a Dask task does. Names and a small record come in, a reduction's state goes out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.batch import Buffers, Prepared, attribute_batch, make_buffers
from kernels.comparison import list_values, measure_values
from kernels.methods import METHODS
from kernels.ranks import padded, rank_rows
from kernels.reductions import MEANS

from . import storage
from .errors import InvalidRun
from .listing import WorkItem
from .models.model import Feature
from .part import fill_values, pack_state, part_uri
from .rows import carried_types, miscounted, read_slices
from .tables import open_tables


@dataclass(frozen=True, slots=True)
class Ranking:
    """Where scores come from: a method with its tables, or the columns of an earlier run, ``(outputs, players)``."""

    name: str  # as it was asked for
    method: str  # and its tables' URI, both empty of a run
    tables: str
    run: str | None
    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What is compared, and how."""

    rankings: tuple[Ranking, ...]
    ranks: str  # URI of tables that rank rows
    metrics: tuple[tuple[str, str], ...]  # name, and URI of its tables
    top: tuple[int, ...]
    features: tuple[Feature, ...]  # those that splits ask for
    slice_rows: int


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
        self.prepared: Prepared = open_tables(question.ranks)
        self._features = dict(zip(self.prepared.ranks.column.tolist(), question.features, strict=True))
        self._buffers = make_buffers(self.prepared, n_rows)
        self._methods: list[tuple[Prepared, Buffers] | None] = []
        for ranking in question.rankings:
            if ranking.run is not None:
                self._methods.append(None)
                continue
            prepared = open_tables(ranking.tables)
            mine = make_buffers(prepared, n_rows)._replace(values=self._buffers.values, ranks=self._buffers.ranks)
            self._methods.append((prepared, mine))
        self._metrics = {name: open_tables(uri) for name, uri in question.metrics}

    def measure(self, batch: pa.RecordBatch | None, columns: dict[int, _Columns], n: int) -> np.ndarray:
        """``(outputs, values, n)`` of a slice; without one, of rows of zeros."""
        if batch is not None:
            fill_values(self._features, self.prepared, batch, self._buffers)
        rank_rows(self._buffers.values, self.prepared.ranks, self._buffers.ranks)
        scores = []
        for r, (ranking, own) in enumerate(zip(self._question.rankings, self._methods, strict=True)):
            if own is None:
                scores.append(columns[r].take(n) if batch is not None else np.zeros((*self._buffers.phi.shape[:2], n)))
            else:
                attribute_batch(METHODS[ranking.method], *own)
                scores.append(own[1].phi[:, :, :n])
        return measure_values(self._buffers, self._metrics, scores, self._question.top)


def compare_item(question: Question, item: WorkItem) -> str:
    """Measure every row of an item; the state of their means, as text."""
    columns = {r: _Columns(ranking, item.part) for r, ranking in enumerate(question.rankings) if ranking.run is not None}
    measurer = _Measurer(question, min(question.slice_rows, item.n_rows))
    n_values = len(list_values(len(question.rankings), [name for name, _ in question.metrics], question.top))
    state, done = MEANS.init(measurer.prepared.base.size, n_values), 0
    names = [feature.name for feature in question.features]
    for batch in read_slices(item, names, carried_types((item,)), question.slice_rows):
        n = batch.num_rows
        if padded(n) != padded(measurer.n_rows):  # as in parts of a run
            measurer = _Measurer(question, n)
        state = MEANS.update(state, measurer.measure(batch, columns, n), n)
        done += n
    if done != item.n_rows:
        raise miscounted(item, done)
    return pack_state(state)


def warm(question: Question) -> None:
    """Compile, or read from the cache, every kernel that items call."""
    measurer = _Measurer(question, 1)
    values = measurer.measure(None, {}, 1)
    MEANS.update(MEANS.init(*values.shape[:2]), values, 1)
