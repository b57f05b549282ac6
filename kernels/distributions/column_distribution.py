"""Column statistics that merge: histograms (exactly, in any order) and moments (in row order)."""

from typing import Any, NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..reductions.reduction import Reduction
from .histogram import HistogramBuilder, count_cells


class Spreads(NamedTuple):
    """Counts and moments of columns over finite values; spreads are about the mean, so that merging does not cancel digits."""

    rows: np.ndarray  # (columns,) int64, all rows
    missing: np.ndarray  # (columns,) int64, NaN
    infinite: np.ndarray  # (columns,) int64
    mean: np.ndarray  # (columns,) float64, as all below
    spread: np.ndarray  # sum of squared deviations from the mean
    mean_abs: np.ndarray
    spread_abs: np.ndarray  # the same of magnitudes
    low: np.ndarray
    high: np.ndarray


@jit
def _measure(values: np.ndarray, found: np.ndarray) -> None:
    """Accumulate the moments of ``values (n,) float64``, overwriting ``found``."""
    missing, infinite, n, total, total_abs, low, high = 0, 0, 0, 0.0, 0.0, np.inf, -np.inf
    for i in range(values.size):
        x = values[i]
        if np.isnan(x):
            missing += 1
        elif np.isinf(x):
            infinite += 1
        else:
            n += 1
            total += x
            total_abs += abs(x)
            low, high = min(low, x), max(high, x)
    found[0], found[1], found[2], found[3] = missing, infinite, low, high
    if n == 0:
        found[4:] = 0.0
        return
    mean, mean_abs, spread, spread_abs = total / n, total_abs / n, 0.0, 0.0
    for i in range(values.size):
        x = values[i]
        if np.isfinite(x):
            spread += (x - mean) ** 2
            spread_abs += (abs(x) - mean_abs) ** 2
    found[4], found[5], found[6], found[7] = mean, spread, mean_abs, spread_abs


def _count_finite(state: Spreads) -> np.ndarray:
    return state.rows - state.missing - state.infinite


def _init(outputs: int, values: int) -> Spreads:
    none, zero = np.zeros(outputs * values, np.int64), np.zeros(outputs * values)
    return Spreads(none, none, none, zero, zero, zero, zero, np.full_like(zero, np.inf), np.full_like(zero, -np.inf))


def _merge(a: Spreads, b: Spreads) -> Spreads:
    n_a, n_b = _count_finite(a), _count_finite(b)
    share = n_b / np.maximum(n_a + n_b, 1)
    apart, apart_abs = b.mean - a.mean, b.mean_abs - a.mean_abs
    return Spreads(
        rows=a.rows + b.rows,
        missing=a.missing + b.missing,
        infinite=a.infinite + b.infinite,
        mean=a.mean + apart * share,
        spread=a.spread + b.spread + apart**2 * (n_a * share),
        mean_abs=a.mean_abs + apart_abs * share,
        spread_abs=a.spread_abs + b.spread_abs + apart_abs**2 * (n_a * share),
        low=np.minimum(a.low, b.low),
        high=np.maximum(a.high, b.high),
    )


def _update(state: Spreads, values: Spreads, n: int = 0, labels: Any = None) -> Spreads:  # noqa: ARG001 - the shape of an update
    return _merge(state, values)


SPREADS = Reduction("distributions", _init, _update, _merge, lambda state, place, n_places: state)


def count_column(values: np.ndarray, tally: HistogramBuilder) -> Spreads:
    """Measure the values of one column.

    Parameters
    ----------
    values : (n,) float64
        NaN where missing
    tally : HistogramBuilder
        those that are not missing are added to

    Returns
    -------
    Spreads
        of one column
    """
    found = np.empty(8)
    with np.errstate(over="ignore", under="ignore"):
        _measure(values, found)
    count_cells(values, tally)
    missing, infinite, low, high, *moments = found
    return Spreads(
        np.array([values.size]), *(np.array([int(count)]) for count in (missing, infinite)), *(np.array([each]) for each in (*moments, low, high))
    )
