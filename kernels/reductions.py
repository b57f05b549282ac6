"""Mergeable summaries of attributions: states that workers update slice by slice and that merge in a fixed order to the same bits."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._jit import jit

FAN_IN = 8


class ImportanceState(NamedTuple):
    """Moments of phi; the spread is kept about the mean, so that merging does not cancel (Chan, Golub and LeVeque 1983)."""

    rows: np.ndarray  # (1,) float64, how many
    mean_abs: np.ndarray  # (outputs, used) float64, as all below
    mean: np.ndarray
    spread: np.ndarray  # sum of squared distances from the mean
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, slots=True)
class Reduction:
    """A summary: ``init(outputs, used) -> state``, ``update(state, phi, n) -> state`` for the first n rows of ``phi (outputs, used, rows)``,
    ``merge(a, b) -> state``, ``finalize(state, column, n_features) -> dict`` from name to ``(outputs, features)``, where ``column (used,)`` says
    which features the state's are; the others are in no split, and their phi is 0."""

    name: str
    init: Callable[[int, int], Any]
    update: Callable[[Any, np.ndarray, int], Any]
    merge: Callable[[Any, Any], Any]
    finalize: Callable[[Any, np.ndarray, int], dict[str, np.ndarray]]


def _init_importance(outputs, used):
    zero = np.zeros((outputs, used))
    return ImportanceState(np.zeros(1), zero, zero, zero, np.full_like(zero, np.inf), np.full_like(zero, -np.inf))


@jit
def _moments(phi, n, state):
    for k in range(phi.shape[0]):
        for j in range(phi.shape[1]):
            total, total_abs, low, high = 0.0, 0.0, np.inf, -np.inf
            for i in range(n):
                x = phi[k, j, i]
                total += x
                total_abs += abs(x)
                low, high = min(low, x), max(high, x)
            mean, spread = total / n, 0.0
            for i in range(n):
                spread += (phi[k, j, i] - mean) ** 2
            state.mean_abs[k, j], state.mean[k, j], state.spread[k, j] = total_abs / n, mean, spread
            state.low[k, j], state.high[k, j] = low, high


def _update_importance(state, phi, n):
    if n == 0:
        return state
    here = ImportanceState(np.array([float(n)]), *(np.empty(phi.shape[:2]) for _ in range(5)))
    _moments(phi, n, here)
    return _merge_importance(state, here)


def _merge_importance(a, b):
    rows = a.rows + b.rows
    if rows[0] == 0:
        return a
    share, distance = b.rows / rows, b.mean - a.mean
    return ImportanceState(
        rows=rows,
        mean_abs=a.mean_abs + (b.mean_abs - a.mean_abs) * share,
        mean=a.mean + distance * share,
        spread=a.spread + b.spread + distance**2 * (a.rows * share),
        low=np.minimum(a.low, b.low),
        high=np.maximum(a.high, b.high),
    )


def _finalize_importance(state, column, n_features):
    def everywhere(found):
        out = np.zeros((found.shape[0], n_features))
        if state.rows[0] > 0:
            out[:, column] = found
        return out

    mean_abs = everywhere(state.mean_abs)
    total = mean_abs.sum(axis=1, keepdims=True)
    order = np.argsort(-mean_abs, axis=1, kind="stable")
    rank = np.empty(order.shape, np.int64)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(1, n_features + 1), order.shape), axis=1)
    return {
        "mean_abs": mean_abs,
        "mean": everywhere(state.mean),
        "std": np.sqrt(everywhere(state.spread) / max(state.rows[0], 1.0)),
        "min": everywhere(state.low),
        "max": everywhere(state.high),
        "share": np.divide(mean_abs, total, out=np.zeros_like(mean_abs), where=total > 0),
        "rank": rank,
    }


REDUCTIONS = {
    reduction.name: reduction
    for reduction in (Reduction("importance", _init_importance, _update_importance, _merge_importance, _finalize_importance),)
}


def merge_all(reduction: Reduction, states: Iterable[Any], outputs: int, used: int):
    """Merge states in the order given, in a tree of fan-in FAN_IN: the same bits whoever computed them, and in whatever order they came."""
    level = list(states) or [reduction.init(outputs, used)]
    while len(level) > 1:
        groups = [level[i : i + FAN_IN] for i in range(0, len(level), FAN_IN)]
        level = []
        for group in groups:
            merged = group[0]
            for state in group[1:]:
                merged = reduction.merge(merged, state)
            level.append(merged)
    return level[0]
