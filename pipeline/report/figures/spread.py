"""Attributions of the rows that have some values: how many there are, their mean, and their quantiles out of what was counted."""

from dataclasses import dataclass

import numpy as np

from ..counts.counts import CountedColumn, Counts

EVERY = slice(None)  # value bins


@dataclass(frozen=True, slots=True)
class Spread:
    """Attributions of some rows.

    Attributes
    ----------
    cells : (cells,) int64
        Rows in each.
    edges : (cells + 1,) float64
        Ascending, none beyond the smallest or largest attribution of these rows.
    mean : float
        NaN where there are no rows.
    """

    cells: np.ndarray
    edges: np.ndarray
    mean: float

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.cells.sum())

    def quantile(self, q: float) -> float:
        """Find a quantile, as if rows were spread evenly over their cell.

        Parameters
        ----------
        q : float
            From 0 to 1.

        Returns
        -------
        float
            NaN where there are no rows.
        """
        if not self.n:
            return float("nan")
        return float(np.interp(q * self.n, np.concatenate([[0], np.cumsum(self.cells)]), self.edges))


def find_spread(asked: CountedColumn, counts: Counts, bins: slice = EVERY) -> Spread:
    """Put together the attributions of the rows of some value bins."""
    cells, edges = counts.own[bins].sum(axis=0), np.array(asked.own)
    n = int(cells.sum())
    if not n:
        return Spread(cells, edges, float("nan"))
    return Spread(cells, np.clip(edges, counts.lows[bins].min(), counts.highs[bins].max()), float(sum(counts.sums[bins]) / n))
