"""A batch of rows in a comparison: joined with columns of earlier runs, ranked and measured."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.comparison.agreement import (
    LIST_SWAPS,
    SIZE_CORRELATION,
    agreements,
    by_size,
    measure_agreements,
    measure_areas,
    measure_gaps,
    measure_removal,
    set_against,
)
from leafledger.kernels.comparison.player_ranks import PlayerRanks, place_ranks, place_scores
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prediction_gap.rankings import EXACT
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers
from leafledger.kernels.slices.labels import Labels
from leafledger.kernels.slices.row_outputs import take_outputs
from leafledger.kernels.trees.binning import bin_rows
from leafledger.kernels.trees.margin import add_margins

from ..dataset.columns.values import fill_values
from ..dataset.files.row_groups import read_batches
from ..errors import InvalidRun
from ..methods.unseen_categories import count_unseen
from ..methods.worker_memory import SLICE_ROWS
from ..stores import storage
from ..stores.table_arrays import open_tables
from .comparison import Comparison, Ranking
from .differing import Apart, Seen


class Columns:
    """Columns of an earlier run's part, read in step with the data.

    Parameters
    ----------
    ranking : Ranking
        Of the run.
    uri : str
        Of the part.
    """

    def __init__(self, ranking: Ranking, uri: str):
        self._names, self._uri = ranking.columns, uri
        self._batches = self._read([name for names in ranking.columns for name in names])
        self._left: list[pa.RecordBatch] = []

    def _read(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        with storage.opened(self._uri) as file:
            parquet = pq.ParquetFile(file, page_checksum_verification=True)
            yield from read_batches(parquet, range(parquet.num_row_groups), names, SLICE_ROWS)

    def take(self, n: int) -> np.ndarray:
        """Read the next rows.

        Returns
        -------
        (outputs, players, n) float64
        """
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


@dataclass(frozen=True, slots=True)
class Slice:
    """Measures of a batch: of all rows, sampled rows and labelled rows, and values of features, ``(outputs, values, rows)`` each."""

    measured: tuple[np.ndarray, ...]
    seen: list[Seen]
    apart: Apart


def _keep_outputs(every: Slice, output: np.ndarray, chosen: np.ndarray) -> Slice:
    """Select the measures of each row's output, ``output (n,)``; labelled rows have one anyway."""
    of_all, gaps, removal, listed = every.measured
    measured = (take_outputs(of_all, output), take_outputs(gaps, output[chosen]), removal[:1], take_outputs(listed, output))
    seen = [Seen(*(None if found is None else take_outputs(found, output) for found in (each.ranks, each.values))) for each in every.seen]
    return Slice(measured, seen, Apart(*(take_outputs(each, output) for each in every.apart)))


class SliceTables:
    """Buffers and tables for batches of equal size.

    Parameters
    ----------
    comparison : Comparison
    n_rows : int
        Of a slice.
    """

    def __init__(self, comparison: Comparison, n_rows: int):
        self._comparison, self.n_rows = comparison, n_rows
        self.prepared: Prepared = open_tables(comparison.bins)
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
        self._removal: Any = None if comparison.removal is None else open_tables(comparison.removal.tables)
        self._noise = next(noise for noise in NOISES if noise.name == comparison.gaps.noise)
        self._agreements = agreements(comparison.top)

    def fill(self, batch: pa.RecordBatch) -> None:
        """Fill the buffers with a batch's values.

        Parameters
        ----------
        batch : pa.RecordBatch
            At most as many rows as the buffers have, with the columns of all features that splits ask for.

        Raises
        ------
        InvalidColumn
            Values of a column are not what its type says.
        """
        features = self._comparison.features
        fill_values(features, self.prepared.bins, [batch.column(feature.name) for feature in features], self._buffers.values)

    def count_unseen(self, n: int) -> np.ndarray:
        """Count known categories of the first rows in the buffers, before measuring."""
        return count_unseen(self.prepared.bins, self._buffers.values[:, :n])

    def _rank(self, r: int, columns: dict[int, Columns], n: int) -> tuple[PlayerRanks, np.ndarray | None]:
        """Return a ranking's ranks of players in splits, and their values if it has some."""
        ranking, own, n_all = self._comparison.rankings[r], self._methods[r], int(self._areas.asked.n_all[0])
        order, players, numbers = METHODS[ranking.method].phi.ranks, self.prepared.players, np.array(ranking.numbers, np.int64)
        n_found = n_all if order else numbers.size
        if own is not None:
            attribute_batch(METHODS[ranking.method], *own)
            found = own[1].phi[:, :n_found, :n]
        else:
            taken = columns[r].take(n) if columns else np.zeros((1, n_found, n))
            found = np.broadcast_to(taken, (self.prepared.base.size, n_found, n))  # with an output per row, its ranking counts for all
        if order:
            return place_ranks(found, players, order), None
        there = np.searchsorted(numbers, players)  # some methods value features in no split too, which take places among all
        return place_scores(found, numbers, n_all).of_players(there), found.take(there, axis=1)

    def measure(self, columns: dict[int, Columns], n: int, first_row: int, chosen: np.ndarray, labels: Labels | None) -> Slice:
        """Measure the rows in the buffers.

        Parameters
        ----------
        columns : dict of int to Columns
            Of the rankings that are earlier runs; none where no rows were read, whose values are 0.
        n : int
            Rows that count, the first.
        first_row : int
            Number of the first in its file.
        chosen : (chosen,) int64
            Those whose prediction gaps are measured.
        labels : Labels or None
            Of these rows, where removal is measured.
        """
        values, bins = self._buffers.values, self._buffers.bins
        bin_rows(values, self.prepared.bins, bins)
        found = [self._rank(r, columns, n) for r in range(len(self._comparison.rankings))]
        places, scores = [each for each, _ in found], [each for _, each in found]
        agreement = measure_agreements(places, self._agreements)
        of_all = np.concatenate((set_against(measure_areas(bins, self._areas, places)), agreement), axis=1)
        listed = self._list_values(scores, n)
        measured = (of_all, self._measure_gaps(places, chosen), self._measure_removal(places, n, labels), listed)
        every = Slice(measured, [Seen(by_size(each), score) for each, score in found], self._set_apart(agreement, listed))
        row_output = self._comparison.row_output
        if row_output is None:
            return every
        margin = self._measure_margin()
        return _keep_outputs(every, row_output.choose(margin, np.arange(first_row, first_row + margin.shape[1]))[:n], chosen)

    def _measure_margin(self) -> np.ndarray:
        """Measure all rows, ``(outputs, n)``."""
        margin = self._buffers.margin
        margin[:] = 0.0
        add_margins(self._buffers.bins, self.prepared.margin, margin)
        return margin

    def _measure_gaps(self, places: Sequence[PlayerRanks], chosen: np.ndarray) -> np.ndarray:
        gaps = self._comparison.gaps
        some = [ranking.take(chosen) for ranking in places]
        values, bins = (np.ascontiguousarray(each[:, chosen]) for each in (self._buffers.values, self._buffers.bins))
        found, errors = measure_gaps(values, bins, self._gaps, self._noise, some, gaps.seed)
        means = [set_against(found)]
        if gaps.seed != EXACT:
            means.append(errors.reshape(errors.shape[0], errors.shape[1] * errors.shape[2], errors.shape[3]))
        return np.concatenate(means, axis=1)

    def _measure_removal(self, places: Sequence[PlayerRanks], n: int, labels: Labels | None) -> np.ndarray:
        """Measure the labelled rows."""
        removal = self._comparison.removal
        if removal is None or labels is None:
            return np.zeros((self.prepared.base.size, 0, 0))
        margin = self._measure_margin()
        there = np.flatnonzero(~labels.missing[:n])
        some = [ranking.take(there) for ranking in places]
        values, bins = (np.ascontiguousarray(each[:, there]) for each in (self._buffers.values, self._buffers.bins))
        return set_against(measure_removal(values, bins, self._removal, some, removal.sizes, labels.label[there] - margin[:, there]))

    def _list_values(self, scores: Sequence[np.ndarray | None], n: int) -> np.ndarray:
        """Return values of every ranking with some, then differences of every pair of these; features vary fastest."""
        kept = [each for each in scores if each is not None]
        nothing = np.zeros((self.prepared.base.size, 0, n))
        return np.concatenate([nothing, *kept, *(a - b for a, b in itertools.combinations(kept, 2))], axis=1)

    def _set_apart(self, agreement: np.ndarray, listed: np.ndarray) -> Apart:
        """Return the sort keys of rows, from agreement and value differences."""
        compared, names = self._comparison, [each.name for each in self._agreements]
        n_pairs, n_used = len(compared.pairs), len(compared.features)
        swaps, correlation = (names.index(name) * n_pairs for name in (f"{LIST_SWAPS} {max(compared.top)}", SIZE_CORRELATION))
        difference = np.full((agreement.shape[0], n_pairs, agreement.shape[2]), np.nan)
        for q, pair in enumerate(compared.valued_pairs):
            first, total = (len(compared.valued) + q) * n_used, np.zeros((agreement.shape[0], agreement.shape[2]))
            for j in range(first, first + n_used):  # sequentially, so that the number of rows does not change the rounding
                total += np.abs(listed[:, j])
            difference[:, compared.pairs.index(pair)] = total
        return Apart(agreement[:, swaps : swaps + n_pairs], agreement[:, correlation : correlation + n_pairs], difference)
