"""Distributions of numeric and categorical columns, sufficient for comparisons without rows."""

import math
from dataclasses import dataclass

import numpy as np

from leafledger.kernels.distributions.histogram import Histogram, cell_edges


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Histogram of a numeric column (single values if few), with exact moments of finite values."""

    rows: int  # all rows
    missing: int
    infinite: int
    mean: float  # of finite values, as all below; NaN if there are none
    spread: float  # sum of squared deviations from the mean
    mean_abs: float
    spread_abs: float  # the same of magnitudes
    low: float
    high: float
    found: Histogram  # including infinities
    bits: int = 64  # width of the narrowest float type in the parts

    @property
    def n(self) -> int:
        """Number of finite values."""
        return self.rows - self.missing - self.infinite

    @property
    def there(self) -> int:
        """Number of nonmissing values."""
        return self.rows - self.missing

    @property
    def std(self) -> float:
        """Population standard deviation; NaN without values."""
        return math.sqrt(self.spread / self.n) if self.n else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the mean; NaN for fewer than two values."""
        return _standard_error(self.spread, self.n)

    @property
    def standard_error_abs(self) -> float:
        """Standard error of the mean magnitude; NaN for fewer than two values."""
        return _standard_error(self.spread_abs, self.n)

    @property
    def counts(self) -> np.ndarray:
        """Counts of every bin, ``(places,) int64``, ascending."""
        return self.found.counts

    @property
    def points(self) -> np.ndarray | None:
        """Values ``(places,) float64`` if bins are single values, else None."""
        return None if self.found.level else cell_edges(self.found.cells, 0)[0]

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of every count's bin.

        Returns
        -------
        lower, upper : (places,) float64 each
            The same where values are counted one by one. Otherwise the edges of cells; but no lower edge is below the smallest value, no upper one
            above the largest. Infinite for infinities.
        """
        return find_edges(self.found.cells, self.found.level, self.low, self.high)

    def quantile(self, share: float) -> float:
        """Return a quantile of nonmissing values.

        Parameters
        ----------
        share : float
            From 0 to 1.

        Returns
        -------
        float
            Exact where values are counted one by one, else in the cell of the exact one. NaN where there is none.
        """
        if not self.there:
            return math.nan
        lower, upper = self.edges()
        behind = np.cumsum(self.counts)
        at = min(int(np.searchsorted(behind, share * self.there)), self.counts.size - 1)
        if lower[at] == upper[at] or not math.isfinite(upper[at] - lower[at]):
            return float(lower[at] if math.isfinite(lower[at]) or math.isinf(upper[at]) else upper[at])
        within = (share * self.there - (behind[at] - self.counts[at])) / self.counts[at]
        return float(lower[at] + (upper[at] - lower[at]) * min(max(within, 0.0), 1.0))

    def cdf(self, values: np.ndarray) -> np.ndarray:
        """Return the share of nonmissing values below others, assuming uniform distribution within bins."""
        values = np.asarray(values, np.float64)
        if not self.there:
            return np.full(values.shape, np.nan)
        lower, upper = self.edges()
        before = np.concatenate(([0], np.cumsum(self.counts)))
        at = np.searchsorted(lower, values, side="right") - 1  # the last bin that starts at or before the value
        inside = np.clip(at, 0, None)
        with np.errstate(invalid="ignore", divide="ignore"):
            within = (values - lower[inside]) / (upper[inside] - lower[inside])
        point = upper[inside] <= lower[inside]  # single-valued bin
        within = np.where(point, values > lower[inside], np.clip(np.nan_to_num(within), 0.0, 1.0))
        return np.where(at < 0, 0.0, before[inside] + within * self.counts[inside]) / self.there


@dataclass(frozen=True, slots=True)
class Categories:
    """Counts of texts or codes."""

    rows: int  # all rows
    missing: int
    unseen: int | None  # not among the model's categories; None if it lists none
    counts: tuple[tuple[str, int], ...] | None  # by value, positive, sorted by value; None if too many to count

    @property
    def there(self) -> int:
        """Number of nonmissing values."""
        return self.rows - self.missing


def find_edges(cells: np.ndarray, level: int, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of bins.

    Parameters
    ----------
    cells : (places,) int64
    low, high : float
        The smallest and the largest finite value.

    Returns
    -------
    lower, upper : (places,) float64 each
        As of `cell_edges`, but between these two for finite values.
    """
    lower, upper = cell_edges(cells, level)
    finite = np.isfinite(lower) | np.isfinite(upper)
    return np.where(finite, np.maximum(lower, low), lower), np.where(finite, np.minimum(upper, high), upper)


def _standard_error(spread: float, n: int) -> float:
    return math.sqrt(spread / (n - 1) / n) if n > 1 else math.nan
