"""Moments of values by group of rows, in states that merge group by group; order of groups in tables."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..slices.labels import Labels
from .reduction import Moments, Reduction, merge_moments


class GroupMoments(NamedTuple):
    """Moments of every group, by name."""

    names: np.ndarray  # (groups,) str, distinct and ascending
    moments: Moments  # rows (groups,), all others (outputs, values, groups)


def no_moments(outputs: int, values: int, groups: int) -> Moments:
    shape = outputs, values, groups
    mean_abs, mean, spread = (np.zeros(shape) for _ in range(3))
    return Moments(np.zeros(groups), mean_abs, mean, spread, np.full(shape, np.inf), np.full(shape, -np.inf))


def _init(outputs: int, values: int) -> GroupMoments:
    return GroupMoments(np.zeros(0, "U1"), no_moments(outputs, values, 0))


@jit
def _measure(values: np.ndarray, group: np.ndarray, n: int, state: Moments) -> None:
    """Compute the moments of the first n rows, into an empty state."""
    for i in range(n):
        state.rows[group[i]] += 1
    for k in range(values.shape[0]):
        for j in range(values.shape[1]):
            for i in range(n):
                g, x = group[i], values[k, j, i]
                state.mean[k, j, g] += x
                state.mean_abs[k, j, g] += abs(x)
                state.low[k, j, g], state.high[k, j, g] = min(state.low[k, j, g], x), max(state.high[k, j, g], x)
            for g in range(state.rows.size):
                state.mean[k, j, g] /= max(state.rows[g], 1.0)
                state.mean_abs[k, j, g] /= max(state.rows[g], 1.0)
            for i in range(n):
                state.spread[k, j, group[i]] += (values[k, j, i] - state.mean[k, j, group[i]]) ** 2


def _update(state: GroupMoments, values: np.ndarray, n: int, labels: Labels) -> GroupMoments:
    if n == 0:
        return state
    here = no_moments(values.shape[0], values.shape[1], labels.names.size)
    _measure(values, labels.group, n, here)
    return _merge(state, GroupMoments(labels.names, here))


def spread_groups(moments: Moments, own: np.ndarray, names: np.ndarray) -> Moments:
    """Expand moments of the groups ``own`` to the groups ``names``, ascending, which include them."""
    outputs, values, _ = moments.mean.shape
    out = no_moments(outputs, values, names.size)
    place = np.searchsorted(names, own)
    for array, found in zip(out, moments, strict=True):
        array[..., place] = found
    return out


def _merge(a: GroupMoments, b: GroupMoments) -> GroupMoments:
    names = np.union1d(a.names, b.names)
    return GroupMoments(names, merge_moments(*(spread_groups(each.moments, each.names, names) for each in (a, b))))


def moments_of(state: GroupMoments, group: int) -> Moments:
    """Select the moments of one group."""
    rows, *others = state.moments
    return Moments(rows[group : group + 1], *(array[:, :, group] for array in others))


def sort_groups(names: np.ndarray) -> tuple[list[int], list[Sequence[Any]]]:
    """Sort groups by value, ascending, with None last.

    Parameters
    ----------
    names : (groups,) str
        of every group its values, as a JSON list

    Returns
    -------
    order : list of int
        positions of the groups
    values : list of sequences
        of every group, in this order: one value for each column that makes groups
    """
    values = [json.loads(name) for name in names.tolist()]
    order = sorted(range(len(values)), key=lambda g: [(value is None, 0 if value is None else value) for value in values[g]])
    return order, [values[g] for g in order]


# Finalizing is the identity, since results need the groups' names.
GROUP_MOMENTS = Reduction("group moments", _init, _update, _merge, lambda state, place, n_places: state)
