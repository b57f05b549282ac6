"""Values that features may take: of each bin the smallest and the largest that a column can hold and a person may choose."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

EXACT_INVERSE = 1e-9  # relative: a step is taken for one over a whole number, as 0.05, whose multiples are then rounded once


class Supported(NamedTuple):
    """Values that features may take."""

    start: np.ndarray  # (features + 1,) int64, feature f's entries are low[start[f]:start[f + 1]]
    low: np.ndarray  # float64: the smallest number that is supported in each bin, NaN where there is none; or codes of categories, the best first
    high: np.ndarray  # float64: the largest number in each bin, NaN where there is none; or the codes again
    up: np.ndarray  # (features,) bool, numbers may rise
    down: np.ndarray  # (features,) bool, numbers may fall


class Grid(NamedTuple):
    """Numbers that are told apart: multiples of a step, or what a type of floats holds."""

    step: float  # 0 for all numbers of the type
    dtype: type[np.floating]  # in which the library, or a column, holds numbers

    def seen(self, values: np.ndarray) -> np.ndarray:
        """Round numbers as the library or the column does.

        Parameters
        ----------
        values : (n,) float64

        Returns
        -------
        (n,) float64
        """
        with np.errstate(over="ignore"):
            return values.astype(self.dtype).astype(np.float64)

    def _times(self, multiples: np.ndarray) -> np.ndarray:
        inverse = np.rint(1.0 / self.step)
        exact = inverse > 0 and abs(inverse * self.step - 1.0) < EXACT_INVERSE
        return multiples / inverse if exact else multiples * self.step

    def _beyond(self, values: np.ndarray, side: float) -> np.ndarray:
        """Return the next number of the type on a side, strictly."""
        with np.errstate(over="ignore"):
            return np.nextafter(values.astype(self.dtype), self.dtype(side)).astype(np.float64)

    def _first(self, passes: Callable[[np.ndarray], np.ndarray], values: np.ndarray, towards: int) -> np.ndarray:
        """Return the first multiple near ``values`` that passes, going in a direction; NaN where none does."""
        with np.errstate(invalid="ignore"):
            tried = self._times(np.floor(values / self.step) + np.array([-2, -1, 0, 1, 2, 3])[::towards, None])
            passed = passes(tried)
        first = np.take_along_axis(tried, np.argmax(passed, axis=0)[None], axis=0)[0]
        return np.where(passed.any(axis=0), first, np.nan)

    def first_beyond(self, values: np.ndarray) -> np.ndarray:
        """Find the smallest number that is seen above each of ``values (n,)``; NaN or inf where there is none."""
        if not self.step:
            held = self.seen(values)
            return np.where(held > values, held, self._beyond(values, np.inf))
        near = self._first(lambda tried: self.seen(tried) > values, values, 1)
        return np.where(np.isnan(near), self._times(np.ceil(self._beyond(values, np.inf) / self.step)), near)

    def last_up_to(self, values: np.ndarray) -> np.ndarray:
        """Find the largest number that is seen no higher than each of ``values (n,)``; NaN or -inf where there is none."""
        if not self.step:
            held = self.seen(values)
            return np.where(held <= values, held, self._beyond(values, -np.inf))
        near = self._first(lambda tried: self.seen(tried) <= values, values, -1)
        return np.where(np.isnan(near), self._times(np.floor(values / self.step)), near)


def support_numbers(
    thresholds: np.ndarray, grid: Grid, least: float, most: float, missing: Sequence[tuple[float, float]]
) -> tuple[np.ndarray, np.ndarray]:
    """Find the ends of each bin: the nearest numbers that are in it, for who comes from below and from above.

    Parameters
    ----------
    thresholds : (m,) float64, sorted and finite
        bin b holds what is above threshold b - 1 and no higher than threshold b
    grid : Grid
        numbers that can be told apart
    least, most : float
        smallest and largest number that is allowed, perhaps infinite
    missing : sequence of (float, float)
        intervals, ends included, of numbers that stand for a missing value, as they are seen

    Returns
    -------
    low, high : (m + 1,) float64
        NaN where the bin has no such number; of the first and of the last bin infinite where nothing bounds them
    """
    low = np.concatenate(([-np.inf], grid.first_beyond(thresholds)))
    high = np.concatenate((grid.last_up_to(thresholds), [np.inf]))
    if np.isfinite(least):
        low = np.maximum(low, grid.first_beyond(np.nextafter(grid.seen(np.array([least])), -np.inf)))
    if np.isfinite(most):
        high = np.minimum(high, grid.last_up_to(grid.seen(np.array([most]))))
    for first, last in missing:
        after, before = grid.first_beyond(np.array([last])), grid.last_up_to(np.nextafter([first], -np.inf))
        low, high = np.where(_within(grid.seen(low), first, last), after, low), np.where(_within(grid.seen(high), first, last), before, high)
    there = (low <= high) & (low < np.inf) & (high > -np.inf)
    for ends in (low, high):
        there[1:] &= grid.seen(ends[1:]) > thresholds
        there[:-1] &= grid.seen(ends[:-1]) <= thresholds
    return np.where(there, low, np.nan), np.where(there, high, np.nan)


def _within(values: np.ndarray, first: float, last: float) -> np.ndarray:
    return (values >= first) & (values <= last)
