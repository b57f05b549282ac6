"""Reductions over rows, updated batch by batch, whose states merge in a fixed order to the same bits."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from ..arrays.ordering import ranks_by_score
from ..jit.decorator import jit
from .merge_tree import MergeTree


class Moments(NamedTuple):
    """Moments of values over rows, with the spread about the mean, so that merging does not cancel (Chan, Golub and LeVeque 1983)."""

    rows: np.ndarray  # (1,) float64, number of rows
    mean_abs: np.ndarray  # (outputs, values) float64, as all below
    mean: np.ndarray
    spread: np.ndarray  # sum of squared deviations from the mean
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, slots=True)
class Reduction:
    """A mergeable reduction of an array ``(outputs, values, rows)``."""

    name: str  # for messages
    init: Callable[[int, int], Any]  # ``(outputs, values) -> state`` before any row, a NamedTuple of arrays
    update: Callable[..., Any]  # ``(state, array, n, labels) -> state`` with the first n rows of the array, and labels if any
    merge: Callable[[Any, Any], Any]  # ``(a, b) -> state`` of the rows of a, then b
    # ``(state, place, n_places)``: the result, as a dict of ``(outputs, n_places)`` for moments; ``place (values,)`` are positions of the state's
    # values among ``n_places``, the others are 0 on every row
    finalize: Callable[[Any, np.ndarray, int], Any]

    def merge_several(self, states: Sequence[Any]) -> Any:
        """Merge states one after the other.

        Parameters
        ----------
        states : sequence of states
            at least one, in the order of their rows
        """
        return reduce(self.merge, states)


def _init_moments(outputs: int, values: int) -> Moments:
    zero = np.zeros((outputs, values))
    return Moments(np.zeros(1), zero, zero, zero, np.full_like(zero, np.inf), np.full_like(zero, -np.inf))


@jit
def _measure(values: np.ndarray, n: int, state: Moments) -> None:
    for k in range(values.shape[0]):
        for j in range(values.shape[1]):
            total, total_abs, low, high = 0.0, 0.0, np.inf, -np.inf
            for i in range(n):
                x = values[k, j, i]
                total += x
                total_abs += abs(x)
                low, high = min(low, x), max(high, x)
            mean, spread = total / n, 0.0
            for i in range(n):
                spread += (values[k, j, i] - mean) ** 2
            state.mean_abs[k, j], state.mean[k, j], state.spread[k, j] = total_abs / n, mean, spread
            state.low[k, j], state.high[k, j] = low, high


def _update_moments(state: Moments, values: np.ndarray, n: int, labels: Any = None) -> Moments:  # noqa: ARG001 - the shape of an update
    if n == 0:
        return state
    here = Moments(np.array([float(n)]), *(np.empty(values.shape[:2]) for _ in range(5)))
    _measure(values, n, here)
    return merge_moments(state, here)


def merge_moments(a: Moments, b: Moments) -> Moments:
    """Merge the moments of disjoint rows."""
    rows = a.rows + b.rows
    if not rows.any():
        return a
    share, distance = b.rows / rows, b.mean - a.mean
    return Moments(
        rows=rows,
        mean_abs=a.mean_abs + (b.mean_abs - a.mean_abs) * share,
        mean=a.mean + distance * share,
        spread=a.spread + b.spread + distance**2 * (a.rows * share),
        low=np.minimum(a.low, b.low),
        high=np.maximum(a.high, b.high),
    )


def _finalize_moments(state: Moments, place: np.ndarray, n_places: int) -> dict[str, np.ndarray]:
    def everywhere(found: np.ndarray) -> np.ndarray:
        out = np.zeros((found.shape[0], n_places))
        if state.rows[0] > 0:
            out[:, place] = found
        return out

    mean_abs = everywhere(state.mean_abs)
    return {
        "mean_abs": mean_abs,
        "mean": everywhere(state.mean),
        "std": np.sqrt(everywhere(state.spread) / max(state.rows[0], 1.0)),
        "min": everywhere(state.low),
        "max": everywhere(state.high),
        "rank": ranks_by_score(mean_abs, axis=1),
    }


def _finalize_means(state: Moments, place: np.ndarray, n_places: int) -> dict[str, np.ndarray]:  # noqa: ARG001 - the shape of a reduction
    """Return means and their standard errors, NaN for a single row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"mean": state.mean, "standard_error": np.sqrt(state.spread / (state.rows - 1) / state.rows)}


# Two reductions: means, extremes and ranks of all values; and means alone, for comparisons of rankings.
MOMENTS = Reduction("moments", _init_moments, _update_moments, merge_moments, _finalize_moments)
MEANS = Reduction("means", _init_moments, _update_moments, merge_moments, _finalize_means)


def merge_all(reduction: Reduction, states: Iterable[Any], outputs: int, values: int) -> Any:
    """Merge states in the given order by a `MergeTree`: the same bits in any order of computation.

    Parameters
    ----------
    states : iterable of its states
        of slices or parts, in the order of their rows
    outputs, values : int
        shape of the state of no rows, which is returned where there are no states

    Returns
    -------
    state : of the reduction
        of all rows; of one state that state itself
    """
    tree = MergeTree(reduction.merge_several)
    for place, state in enumerate(states):
        tree.add(place, state)
    total = tree.total()
    return reduction.init(outputs, values) if total is None else total
