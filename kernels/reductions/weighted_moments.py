"""Moments of values of rows that count by their weights, by group of rows; rows of weight 0 do not count."""

from typing import Any, NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..slices.labels import Labels
from .group_moments import no_moments, spread_groups
from .reduction import MEANS, Moments, Reduction, merge_moments


class WeightedMoments(NamedTuple):
    """Moments by group, also with the squares of weights, for standard errors; ``rows`` of both are sums of weights."""

    names: np.ndarray  # (groups,) str, distinct and ascending
    moments: Moments  # rows (groups,), all others (outputs, values, groups)
    squared: Moments
    counts: np.ndarray  # (2, groups) float64, rows that count, and rows without a label


@jit
def _measure(values: np.ndarray, weight: np.ndarray, group: np.ndarray, n: int, state: Moments) -> None:
    """Compute the moments of the first n rows, into an empty state."""
    for i in range(n):
        state.rows[group[i]] += weight[i]
    for k in range(values.shape[0]):
        for j in range(values.shape[1]):
            for i in range(n):
                if weight[i] > 0.0:
                    g, x = group[i], values[k, j, i]
                    state.mean[k, j, g] += weight[i] * x
                    state.mean_abs[k, j, g] += weight[i] * abs(x)
                    state.low[k, j, g], state.high[k, j, g] = min(state.low[k, j, g], x), max(state.high[k, j, g], x)
            for g in range(state.rows.size):
                if state.rows[g] > 0.0:
                    state.mean[k, j, g] /= state.rows[g]
                    state.mean_abs[k, j, g] /= state.rows[g]
            for i in range(n):
                if weight[i] > 0.0:
                    state.spread[k, j, group[i]] += weight[i] * (values[k, j, i] - state.mean[k, j, group[i]]) ** 2


def _merge_groups(a: Moments, b: Moments) -> Moments:
    """Merge moments; where neither has rows they are those of no rows."""
    with np.errstate(invalid="ignore", divide="ignore"):
        merged = merge_moments(a, b)
    return Moments(*(np.where(merged.rows > 0, found, first) for found, first in zip(merged, a, strict=True)))


def _init(outputs: int, values: int) -> WeightedMoments:
    nothing = no_moments(outputs, values, 0)
    return WeightedMoments(np.zeros(0, "U1"), nothing, nothing, np.zeros((2, 0)))


def _update(state: WeightedMoments, values: np.ndarray, n: int, labels: Labels) -> WeightedMoments:
    if n == 0:
        return state
    once, squared = (no_moments(values.shape[0], values.shape[1], labels.names.size) for _ in range(2))
    _measure(values, labels.weight, labels.group, n, once)
    _measure(values, np.square(labels.weight), labels.group, n, squared)
    counts = [np.bincount(labels.group[:n], each[:n], labels.names.size) for each in (labels.weight > 0.0, labels.missing)]
    return merge_weighted(state, WeightedMoments(labels.names, once, squared, np.array(counts, np.float64)))


def merge_weighted(a: WeightedMoments, b: WeightedMoments) -> WeightedMoments:
    """Merge states of disjoint rows."""
    names = np.union1d(a.names, b.names)
    once, squared = (
        _merge_groups(spread_groups(one, a.names, names), spread_groups(other, b.names, names))
        for one, other in ((a.moments, b.moments), (a.squared, b.squared))
    )
    counts = np.zeros((2, names.size))
    for each in (a, b):
        counts[:, np.searchsorted(names, each.names)] += each.counts
    return WeightedMoments(names, once, squared, counts)


def take_group(state: WeightedMoments, group: int) -> WeightedMoments:
    """Select one group, as a state of its own."""
    some = slice(group, group + 1)
    once, squared = (Moments(*(each[..., some] for each in held)) for held in (state.moments, state.squared))
    return WeightedMoments(state.names[some], once, squared, state.counts[:, some])


def whole(state: WeightedMoments) -> WeightedMoments:
    """Add up all groups, in the order of their names, to one without a name."""
    outputs, values, _ = state.moments.mean.shape
    nothing = no_moments(outputs, values, 1)
    out = WeightedMoments(np.array([""]), nothing, nothing, np.zeros((2, 1)))
    for group in range(state.names.size):
        out = merge_weighted(out, take_group(state, group)._replace(names=np.array([""])))
    return out


def find_errors_of_means(state: WeightedMoments) -> np.ndarray:
    """Estimate the standard errors of weighted means of one group, ``(outputs, values)``; NaN of fewer than two rows."""
    n = state.counts[0, 0]
    if n < 2 or not state.moments.rows[0] > 0:
        return np.full(state.moments.mean.shape[:2], np.nan)
    squares = state.squared.spread + state.squared.rows * (state.squared.mean - state.moments.mean) ** 2
    return np.sqrt(squares[..., 0] * (n / (n - 1))) / state.moments.rows[0]


def alone(state: WeightedMoments) -> Moments:
    """Return the weighted moments of one group without groups."""
    rows, *others = state.moments
    return Moments(rows[:1], *(array[:, :, 0] for array in others))


def _finalize(state: WeightedMoments, place: np.ndarray, n_places: int) -> Any:  # noqa: ARG001 - the shape of a reduction
    """Leave a state as it is: tables need the groups' names."""
    return state


WEIGHTED_MOMENTS = Reduction("weighted moments", _init, _update, merge_weighted, _finalize)


def _update_means(state: Moments, values: np.ndarray, n: int, labels: Labels) -> Moments:
    together = labels._replace(group=np.zeros_like(labels.group), names=np.array([""]))
    return _merge_groups(state, alone(whole(_update(_init(*values.shape[:2]), values, n, together))))


WEIGHTED_MEANS = Reduction("weighted means", MEANS.init, _update_means, _merge_groups, MEANS.finalize)
