"""Comparison of two distributions of a column: alignment of their histograms, and all distance measures."""

import math
from dataclasses import dataclass, replace

import numpy as np

from leafledger.kernels.distributions.distances import (
    decile_bins,
    expect_psi,
    measure_categories,
    measure_ks,
    measure_psi,
    measure_shares,
    measure_wasserstein,
)
from leafledger.kernels.distributions.histogram import coarsen, round_histogram

from ..measure.distribution import Categories, Distribution, find_edges

MOST = 0.5  # share of values in one bin from which movement within the bin may hide,
SURE = 0.01  # unless the visible distance is significant at this level


@dataclass(frozen=True, slots=True)
class Apart:
    """Distances of two distributions of a column; unknown ones are NaN."""

    psi: float = math.nan
    psi_expected: float = math.nan  # expected without drift
    wasserstein: float = math.nan  # in the column's units; none for categories
    distance: float = math.nan  # Kolmogorov–Smirnov; for categories total variation, for shares their difference
    p: float = math.nan  # also NaN if all values of both runs are equal: no test, and none to correct for
    unsure: bool = False  # most values of both runs are in one bin, whose inner movement is unknown: distances are lower bounds


def _spread(places: np.ndarray, mine: np.ndarray, counts: np.ndarray) -> np.ndarray:
    found = np.zeros(places.size, np.int64)
    found[np.searchsorted(places, mine)] = counts
    return found


def _round(found: Distribution, bits: int) -> Distribution:
    kind = np.dtype(f"f{bits // 8}")
    with np.errstate(over="ignore"):
        low, high = np.array([found.low, found.high]).astype(kind).tolist()
    return replace(found, low=low, high=high, found=round_histogram(found.found, kind), bits=bits)


def align(reference: Distribution, current: Distribution) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Align two runs' histograms: single values if known for both, otherwise the wider of both bins.

    If one run stores fewer bits, both are rounded to these, so that storage causes no shift.
    """
    bits = min(reference.bits, current.bits)
    if bits < 64:
        reference, current = _round(reference, bits), _round(current, bits)
    level = max(reference.found.level, current.found.level)
    before, now = coarsen(reference.found, level), coarsen(current.found, level)
    cells = np.union1d(before.cells, now.cells)
    lower, upper = find_edges(cells, level, np.fmin(reference.low, current.low), np.fmax(reference.high, current.high))
    return lower, upper, _spread(cells, before.cells, before.counts), _spread(cells, now.cells, now.counts)


def _hides(lower: np.ndarray, upper: np.ndarray, a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether a bin of several values, other than 0, holds most values of both runs."""
    several = (lower < upper) & (np.maximum(np.abs(lower), np.abs(upper)) > np.finfo(np.float64).tiny)
    return bool((several & (a > MOST * a.sum()) & (b > MOST * b.sum())).any())


def compare_numbers(reference: Distribution, current: Distribution) -> Apart:
    """Compare two distributions of numbers; missing values are left out, infinities are extreme values."""
    if not reference.there or not current.there:
        return Apart()
    lower, upper, a, b = align(reference, current)
    bins = decile_bins(a)
    binned = [np.bincount(bins, counts).astype(np.int64) for counts in (a, b)]
    distance, p = measure_ks(a, b) if a.size > 1 else (0.0, math.nan)
    finite = np.isfinite(lower) & np.isfinite(upper)
    moved = measure_wasserstein(lower[finite], upper[finite], a[finite], b[finite]) if a[finite].any() and b[finite].any() else math.nan
    moved = max(moved, abs(current.mean - reference.mean))
    unsure = _hides(lower, upper, a, b)
    if unsure and not p <= SURE:
        return Apart(unsure=True)
    return Apart(measure_psi(*binned), expect_psi(reference.there, current.there, int(bins.max()) + 1), moved, distance, p, unsure)


def compare_categories(reference: Categories, current: Categories) -> Apart:
    """Compare counts of categories; missing values are left out, unknown ones are one category."""
    if not reference.there or not current.there or reference.counts is None or current.counts is None:
        return Apart()
    nights = [{**{(name,): n for name, n in each.counts or ()}, (): each.unseen or 0} for each in (reference, current)]
    names = sorted({name for night in nights for name, n in night.items() if n})
    a, b = (np.array([night.get(name, 0) for name in names], np.int64) for night in nights)
    distance, p = measure_categories(a, b) if a.size > 1 else (0.0, math.nan)
    return Apart(measure_psi(a, b), expect_psi(reference.there, current.there, len(names)), math.nan, distance, p)


def compare_shares(reference: int, n_reference: int, current: int, n_current: int) -> Apart:
    """Compare two shares of rows."""
    if not n_reference or not n_current:
        return Apart()
    distance, p = measure_shares(reference, n_reference, current, n_current)
    return Apart(distance=distance, p=p if 0 < reference + current < n_reference + n_current else math.nan)
