"""Statistics of a background for weighted games: beside the rows with each code, the sums of their weights, which are whole numbers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..marginal.background import Background, count_background, first_codes, pattern_rows
from ..marginal.subtrees import Partitioning, Subtrees
from ..quotients.nodes import Nodes
from ..trees.lookup import LOOKUP_ROWS, make_codes

ONE = 1  # the column of the number of rows comes first


class MarginRange(NamedTuple):
    """The smallest and largest margin of a background's rows."""

    low: np.ndarray  # (outputs,) float64, margin units
    high: np.ndarray  # (outputs,) float64, margin units

    def merge(self, others: Sequence["MarginRange"]) -> "MarginRange":
        """Find the range of all parts.

        Parameters
        ----------
        others : sequence of MarginRange
        """
        return MarginRange(np.min([self.low, *(each.low for each in others)], axis=0), np.max([self.high, *(each.high for each in others)], axis=0))


class Shares(NamedTuple):
    """One weighted background, as ``Background`` is one without weights; weights are divided by the number of rows."""

    counts: np.ndarray  # (codes,) float64
    start: np.ndarray  # (deep subtrees + 1,) int64
    patterns: np.ndarray  # (patterns, words) int64
    times: np.ndarray  # (patterns,) float64

    def total(self, counts: np.ndarray) -> float:  # noqa: ARG002 - the shape of a background
        """Return what shares are divided by.

        Parameters
        ----------
        counts : (codes,) or (patterns,) float64
            not needed
        """
        return 1.0


class WeightedCounts(NamedTuple):
    """Numbers of background rows with each code or pattern, and the sums of their weights."""

    counted: Background  # counts (codes, 1 + columns) int64: rows, then weights of every column of leaf values and margin; times are alike
    rises: np.ndarray  # (outputs, terms) int64, sums over all rows, see nodes.weigh_rows
    n_rows: np.ndarray  # (1,) int64
    nodes: Nodes

    def merge(self, others: Sequence["WeightedCounts"]) -> "WeightedCounts":
        """Add the sums of other parts: integers, so the same in any order and grouping.

        Parameters
        ----------
        others : sequence of WeightedCounts
            of the same query
        """
        parts = (self, *others)
        rises, n_rows = np.sum([part.rises for part in parts], axis=0), np.sum([part.n_rows for part in parts], axis=0)
        return WeightedCounts(self.counted.merge([part.counted for part in others]), rises, n_rows, self.nodes)

    @property
    def rows(self) -> Background:
        """Numbers of rows, without weights."""
        return self.counted._replace(counts=self.counted.counts[:, 0], times=self.counted.times[:, 0])

    @property
    def mean_rises(self) -> np.ndarray:
        """Mean rises of the terms' curves, ``(outputs, terms) float64``."""
        return np.ldexp(self.rises.astype(np.float64), -self.nodes.rise_exponent) / self.n_rows[0]

    def share(self, column: int) -> Shares:
        """Return a weighted background.

        Parameters
        ----------
        column : int
            from 0, of all columns of leaf values and margins
        """
        counts, times = (
            np.ldexp(values[:, ONE + column].astype(np.float64), -int(self.nodes.exponent[0])) / self.n_rows[0]
            for values in (self.counted.counts, self.counted.times)
        )
        return Shares(counts, self.counted.start, self.counted.patterns, times)


@jit
def _count_weights(
    bins: np.ndarray, subtrees: Subtrees, first: np.ndarray, n_rows: int, output: np.ndarray, weights: np.ndarray, width: int, counts: np.ndarray
) -> None:
    """Add the rows and their ``weights (outputs, n, K)`` to ``counts (codes, 1 + width * K)``, which start at ``first`` for each coded subtree."""
    n, n_weights = bins.shape[1], weights.shape[2]
    flat = bins.reshape(-1)
    codes, members = np.empty(LOOKUP_ROWS, np.uint16), np.empty(LOOKUP_ROWS, bins.dtype)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for u in range(subtrees.bits.size):
            make_codes(flat, n, row, size, subtrees, u, codes, members)
            for i in range(min(size, n_rows - row)):
                entry = first[u] + codes[i]
                counts[entry, 0] += 1
                for column in range(width):
                    for k in range(n_weights):
                        counts[entry, 1 + column * n_weights + k] += weights[output[u] + column, row + i, k]


def count_weighted(
    bins: np.ndarray, partitioning: Partitioning, n_rows: int, outputs: tuple[np.ndarray, np.ndarray], width: int, weights: np.ndarray
) -> Background:
    """Count the codes of background rows and add up their weights at every subtree.

    ``outputs`` are the first output that each coded and each deep subtree adds to; ``weights`` are ``(outputs, K, rows) int64``.
    """
    first, coded, deep = first_codes(partitioning.coded), partitioning.coded, partitioning.deep
    counts = np.zeros((first[-1], ONE + width * weights.shape[1]), np.int64)
    by_row = np.ascontiguousarray(np.moveaxis(weights, 1, 2))
    _count_weights(bins, coded, first, n_rows, outputs[0], by_row, width, counts)
    counted = count_background(bins, partitioning._replace(coded=_none(coded)), n_rows)
    times = np.zeros((counted.times.size, counts.shape[1]), np.int64)
    times[:, 0] = counted.times
    rows = np.empty((bins.shape[1], counted.patterns.shape[1]), np.int64)
    for u in range(deep.size if n_rows else 0):
        pattern_rows(bins, deep, u, counted.patterns.shape[1], rows)
        order = np.lexsort(rows[:n_rows].T)
        held = rows[order]
        starts = np.flatnonzero(np.append(True, (held[1:] != held[:-1]).any(axis=1)))
        for column in range(width):
            some = slice(ONE + column * weights.shape[1], ONE + (column + 1) * weights.shape[1])
            times[counted.start[u] : counted.start[u + 1], some] = np.add.reduceat(by_row[outputs[1][u] + column][order], starts, axis=0)
    return counted._replace(counts=counts, times=times)


def _none(subtrees: Subtrees) -> Subtrees:
    """Leave out all subtrees."""
    return subtrees._replace(bits=subtrees.bits[:0])
