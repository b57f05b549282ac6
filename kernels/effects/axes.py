"""Axes of effects: the states that a feature, or a group of one-hot columns, can be in, and which of them lead to every leaf.

A model tells no two values of a bin apart, so a feature has as many states as bins: one between every two thresholds, or one for every category
and one for other ones, and last the missing value. A group of one-hot columns has a state for each column that is 1 while the others are 0, and one
where all are 0.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..trees.binning import BinTables, bin_dtype, bin_rows, is_member
from ..trees.forest import Forest


class Axis(NamedTuple):
    """The states of a feature, or of a group."""

    member: np.ndarray  # (members,) int64, used features
    bins: np.ndarray  # (members, states) unsigned integers: in each state the bin of every member

    @property
    def n_states(self) -> int:
        """Number of states."""
        return self.bins.shape[1]


class Nodes(NamedTuple):
    """What walks over all nodes read: the forest's arrays, and every node's parent."""

    order: np.ndarray  # (nodes,) int32, in preorder
    level: np.ndarray  # (nodes,) int32
    parent: np.ndarray  # (nodes,) int64, -1 at roots
    tree: np.ndarray  # (nodes,) int32
    left: np.ndarray  # (nodes,) int32
    right: np.ndarray  # (nodes,) int32
    feature: np.ndarray  # (nodes,) int32, used features, -1 at leaves; see BinnedSplits for the others
    lower: np.ndarray  # (nodes,) int64
    span: np.ndarray  # (nodes,) int64
    members: np.ndarray  # (nodes,) int64
    words: np.ndarray  # uint32
    root: np.ndarray  # (trees,) int32
    output: np.ndarray  # (trees,) int32
    value: np.ndarray  # (nodes, width) float64


class Runs(NamedTuple):
    """States that lead to every leaf, as runs of adjacent ones, if whatever else the path asks for is met."""

    start: np.ndarray  # (nodes + 1,) int64, leaf v's runs are first[start[v]:start[v + 1]]; splits have none
    first: np.ndarray  # (runs,) int32, the run's first state
    stop: np.ndarray  # (runs,) int32, the state behind its last


def list_nodes(forest: Forest) -> Nodes:
    """Collect what walks over the nodes of a forest read.

    Returns
    -------
    Nodes
        leaf values are those of ``forest.ensemble``, without what the trees' leaves have in common
    """
    ensemble, splits, trace = forest.ensemble, forest.splits, forest.trace
    parent, inner = np.full(ensemble.feature.size, -1, np.int64), np.flatnonzero(ensemble.feature >= 0)
    parent[ensemble.left[inner]] = parent[ensemble.right[inner]] = inner
    numbers = (splits.feature, splits.lower, splits.span, splits.members, splits.words, ensemble.root, ensemble.output)
    return Nodes(trace.order, trace.level, parent, trace.tree, ensemble.left, ensemble.right, *numbers, ensemble.value.astype(np.float64))


def feature_axis(tables: BinTables, used: int) -> Axis:
    """Make the axis of one used feature: all its bins, the missing value last."""
    n_codes, dtype = int(tables.n_codes[used]), bin_dtype(tables)
    if n_codes:
        return Axis(np.array([used]), np.arange(n_codes + 2).astype(dtype)[None])
    n_thresholds = np.isfinite(tables.threshold[tables.start[used] : tables.start[used + 1]]).sum()  # nothing is above a threshold of infinity
    return Axis(np.array([used]), np.append(np.arange(n_thresholds + 1), np.iinfo(dtype).max).astype(dtype)[None])


def hot_axis(tables: BinTables, used: np.ndarray) -> Axis:
    """Make the axis of a group of one-hot columns: each of its used features 1 in turn, then all of them 0.

    Parameters
    ----------
    used : (members,) int
        its features in splits
    """
    values = np.zeros((tables.column.size, used.size + 1))
    values[used, np.arange(used.size)] = 1.0
    bins = np.zeros(values.shape, bin_dtype(tables))
    bin_rows(values, tables, bins)
    return Axis(np.asarray(used, np.int64), np.ascontiguousarray(bins[used]))


def both_axes(first: Axis, second: Axis) -> Axis:
    """Make the axis of two together: a state for every two of theirs, those of the second adjacent."""
    left, right = np.repeat(first.bins, second.n_states, axis=1), np.tile(second.bins, first.n_states)
    return Axis(np.concatenate((first.member, second.member)), np.ascontiguousarray(np.concatenate((left, right))))


def find_states(axis: Axis, bins: np.ndarray) -> np.ndarray:
    """Find the state of every row.

    Parameters
    ----------
    bins : (used, n) unsigned integers

    Returns
    -------
    (n,) int64
        -1 where a group's columns are not one of them 1 and the others 0
    """
    if axis.n_states > axis.member.size + 1:  # of a feature: ascending
        return np.searchsorted(axis.bins[0], bins[axis.member[0]])
    states = np.full(bins.shape[1], -1)
    for state, wanted in enumerate(axis.bins.T):
        states[(bins[axis.member] == wanted[:, None]).all(axis=0) & (states < 0)] = state
    return states


@jit
def goes_left(nodes: Nodes, v: int, bin_: int, mask: int) -> bool:
    """Return whether a bin goes left at a split; ``mask`` is the highest number of a bin's type."""
    if nodes.members[v] >= 0:
        bin_ = is_member(nodes.words, nodes.members[v], bin_)
    return (bin_ - nodes.lower[v]) & mask <= nodes.span[v] & mask


@jit
def _find_runs(nodes: Nodes, place: np.ndarray, bins: np.ndarray, levels: int, write: bool, runs: Runs) -> None:
    """Count every leaf's runs into ``runs.start[leaf + 1]``, or write them; ``place (used,)`` is a feature's row of ``bins``, or -1."""
    n_states, mask = bins.shape[1], np.int64(np.iinfo(bins.dtype).max)
    passed = np.ones((levels + 1, n_states), np.bool_)
    for v in nodes.order:
        level, parent = nodes.level[v], nodes.parent[v]
        if parent >= 0:
            row, on_left = place[nodes.feature[parent]], nodes.left[parent] == v
            for s in range(n_states):
                passes = passed[level - 1, s]
                if passes and row >= 0:
                    passes = goes_left(nodes, parent, np.int64(bins[row, s]), mask) == on_left
                passed[level, s] = passes
        if nodes.feature[v] >= 0:
            continue
        found = 0
        for s in range(n_states):
            if passed[level, s] and (s == 0 or not passed[level, s - 1]):
                if write:
                    runs.first[runs.start[v] + found] = s
                found += 1
            if write and passed[level, s] and (s + 1 == n_states or not passed[level, s + 1]):
                runs.stop[runs.start[v] + found - 1] = s + 1
        if not write:
            runs.start[v + 1] = found


def find_runs(nodes: Nodes, axis: Axis) -> Runs:
    """Find the states that lead to every leaf."""
    n_used = int(max(nodes.feature.max(initial=-1), axis.member.max(initial=-1))) + 1
    place = np.full(n_used, -1, np.int64)
    place[axis.member] = np.arange(axis.member.size)
    levels, empty = int(nodes.level.max(initial=0)), np.zeros(0, np.int32)
    counted = Runs(np.zeros(nodes.feature.size + 1, np.int64), empty, empty)
    _find_runs(nodes, place, axis.bins, levels, False, counted)
    start = np.cumsum(counted.start)
    runs = Runs(start, np.zeros(start[-1], np.int32), np.zeros(start[-1], np.int32))
    _find_runs(nodes, place, axis.bins, levels, True, runs)
    return runs
