"""Mergeable summaries of attributions and interactions: states updated slice by slice, which merge in a fixed order to the same bits."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ._jit import jit
from .ordering import ranks_by_score
from .r2 import shares as r2

FAN_IN = 8
N_SCORES = 2  # in the last places of gaps: PGI² and its standard error


class Moments(NamedTuple):
    """Moments of values over rows; the spread is kept about the mean, so that merging does not cancel (Chan, Golub and LeVeque 1983)."""

    rows: np.ndarray  # (1,) float64, how many
    mean_abs: np.ndarray  # (outputs, values) float64, as all below
    mean: np.ndarray
    spread: np.ndarray  # sum of squared distances from the mean
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, slots=True)
class Reduction:
    """A summary of what ``reduces`` names, a field of ``Buffers``: ``(outputs, values, rows)``.

    ``init(outputs, values) -> state``, ``update(state, array, n, labels) -> state`` for the first n rows of the array and their labels, ``merge(a,
    b) -> state``, ``finalize(state, place, n_places)``, where ``place (values,)`` says where the state's values stand among all; the others are 0 on
    every row. Moments come out as a dict from name to ``(outputs, n_places)``, R^2 as the Shares of all rows, and those of every group.
    """

    name: str
    reduces: str
    init: Callable[[int, int], Any]
    update: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    finalize: Callable[[Any, np.ndarray, int], Any]


def _init_moments(outputs, values):
    zero = np.zeros((outputs, values))
    return Moments(np.zeros(1), zero, zero, zero, np.full_like(zero, np.inf), np.full_like(zero, -np.inf))


@jit
def _measure(values, n, state):
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


def _update_moments(state, values, n, labels=None):  # noqa: ARG001 - the shape of an update
    if n == 0:
        return state
    here = Moments(np.array([float(n)]), *(np.empty(values.shape[:2]) for _ in range(5)))
    _measure(values, n, here)
    return _merge_moments(state, here)


def _merge_moments(a, b):
    rows = a.rows + b.rows
    if rows[0] == 0:
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


def _finalize_moments(state, place, n_places):
    def everywhere(found):
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


def _finalize_importance(state, place, n_places):
    moments = _finalize_moments(state, place, n_places)
    rank, mean_abs = moments.pop("rank"), moments["mean_abs"]
    total = mean_abs.sum(axis=1, keepdims=True)
    return {**moments, "share": np.divide(mean_abs, total, out=np.zeros_like(mean_abs), where=total > 0), "rank": rank}


def _finalize_path(state, place, n_places):
    moments = _finalize_moments(state, place, n_places)
    return {name: moments[name] for name in ("mean", "std", "min", "max")}


def _finalize_means(state, place, n_places):  # noqa: ARG001 - the shape of a reduction
    """Means and their standard errors, which one row does not tell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"mean": state.mean, "standard_error": np.sqrt(state.spread / (state.rows - 1) / state.rows)}


MEANS = Reduction("means", "values", _init_moments, _update_moments, _merge_moments, _finalize_means)  # of what rankings are compared by


def _update_ranks(state, ranks, n, labels=None):
    """Whom a row does not rank comes after all others there; the last are not players' ranks but scores."""
    counted = np.where(ranks == 0, float(ranks.shape[1] - N_SCORES + 1), ranks)
    counted[:, -N_SCORES:] = ranks[:, -N_SCORES:]
    return _update_moments(state, counted, n, labels)


def _finalize_ranks(state, place, n_places):
    """Players by mean rank, those in no split last; the last places are not players' but scores', and have rank 0."""
    moments = _finalize_moments(state, place, n_places)
    mean = moments["mean"][:, :-N_SCORES]
    rank = np.zeros(moments["mean"].shape, np.int64)
    rank[:, :-N_SCORES] = ranks_by_score(-np.where(mean == 0, np.inf, mean), axis=1)
    return {**moments, "rank": rank}


REDUCTIONS = {
    reduction.name: reduction
    for reduction in (
        Reduction("importance", "phi", _init_moments, _update_moments, _merge_moments, _finalize_importance),
        Reduction("objective", "path", _init_moments, _update_moments, _merge_moments, _finalize_path),
        Reduction("gaps", "phi", _init_moments, _update_ranks, _merge_moments, _finalize_ranks),
        Reduction("areas", "phi", _init_moments, _update_ranks, _merge_moments, _finalize_ranks),
        Reduction("curves", "path", _init_moments, _update_moments, _merge_moments, _finalize_path),
        Reduction("interactions", "pairs", _init_moments, _update_moments, _merge_moments, _finalize_moments),
        Reduction(
            name="r2",
            reduces="phi",
            init=lambda outputs, values: r2.no_rows(values),
            update=lambda state, phi, n, labels: r2.update(state, phi[0], labels, n),
            merge=r2.merge,
            finalize=lambda state, place, n_places: tuple(r2.finalize(part, place, n_places) for part in (r2.whole(state), state)),
        ),
    )
}


def _merge_groups(reduction: Reduction, states: Iterator[Any]) -> Iterator[Any]:
    while group := list(islice(states, FAN_IN)):
        merged = group[0]
        for state in group[1:]:
            merged = reduction.merge(merged, state)
        yield merged


def merge_all(reduction: Reduction, states: Iterable[Any], outputs: int, values: int):
    """Merge states in the order given, in a tree of fan-in FAN_IN: the same bits whoever computed them, and in whatever order they came."""
    level = list(_merge_groups(reduction, iter(states))) or [reduction.init(outputs, values)]
    while len(level) > 1:
        level = list(_merge_groups(reduction, iter(level)))
    return level[0]
