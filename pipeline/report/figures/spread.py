"""Distribution of attributions of rows with certain values: count, mean, and quantiles from counts."""

from dataclasses import dataclass

import numpy as np

from ..counts.counts import CountedColumn, Counts

EVERY = slice(None)  # all value bins


@dataclass(frozen=True, slots=True)
class Spread:
    """Attributions of some rows."""

    cells: np.ndarray  # (cells,) int64, rows in each
    edges: np.ndarray  # (cells + 1,) float64, ascending, within the smallest and largest attribution of these rows
    mean: float  # NaN without rows

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.cells.sum())

    def quantile(self, q: float) -> float:
        """Return a quantile, assuming uniform distribution within bins.

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
    """Merge the attributions of the rows in some value bins."""
    cells, edges = counts.own[bins].sum(axis=0), np.array(asked.own)
    n = int(cells.sum())
    if not n:
        return Spread(cells, edges, float("nan"))
    return Spread(cells, np.clip(edges, counts.lows[bins].min(), counts.highs[bins].max()), float(sum(counts.sums[bins]) / n))
