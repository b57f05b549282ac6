"""What of a tree does not depend on the row: levels, absent weights, and which edge of the same feature a split comes under."""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from .ensemble import TreeEnsemble


class Trace(NamedTuple):
    """Per node, what the edges above it say; per tree, its longest path. "Edge v" is the edge into node v."""

    order: np.ndarray  # (nodes,) int32, nodes in preorder, trees end to end
    tree: np.ndarray  # (nodes,) int32
    level: np.ndarray  # (nodes,) int32, edges above the node
    above: np.ndarray  # (nodes,) int32, at a split the nearest edge above of the same feature, -1 if none
    absent: np.ndarray  # (nodes,) float64, product of the cover ratios of all edges of edge v's feature down to v; 1 at roots
    reach: np.ndarray  # (nodes,) float64, product of the cover ratios of all edges above
    levels: np.ndarray  # (trees,) int32, edges on the longest path


@jit
def _trace(feature, left, right, cover, root, n_used, out):
    last = np.full(n_used, -1, np.int32)  # nearest edge of each feature on the way to the current node
    parent = np.full(feature.size, -1, np.int32)
    stack = np.empty(2 * feature.size + 1, np.int32)
    n_done = 0
    for t in range(root.size):
        stack[0] = root[t]
        size = 1
        while size > 0:
            size -= 1
            v = stack[size]
            if v < 0:  # a split whose children are done: its feature is again what it was above
                v = -v - 1
                last[feature[v]] = out.above[v]
                continue
            if parent[v] >= 0:
                last[feature[parent[v]]] = v
            out.order[n_done] = v
            out.tree[v] = t
            n_done += 1
            out.levels[t] = max(out.levels[t], out.level[v])
            if feature[v] < 0:
                continue
            above = last[feature[v]]
            out.above[v] = above
            stack[size] = -v - 1
            size += 1
            both = cover[left[v]] + cover[right[v]]
            for child in (right[v], left[v]):
                ratio = cover[child] / both if both > 0 else 0.5
                parent[child] = v
                out.level[child] = out.level[v] + 1
                out.absent[child] = ratio * (out.absent[above] if above >= 0 else 1.0)
                out.reach[child] = ratio * out.reach[v]
                stack[size] = child
                size += 1


def trace(ensemble: TreeEnsemble, feature, n_used: int) -> Trace:
    """Walk every tree once, without recursion; ``feature (nodes,) int32`` counts used features, -1 at leaves.

    Where no training weight reached a split its children weigh one half each, so that absent weights always sum to one.
    """
    n_nodes, n_trees = feature.size, ensemble.root.size
    out = Trace(
        order=np.zeros(n_nodes, np.int32),
        tree=np.zeros(n_nodes, np.int32),
        level=np.zeros(n_nodes, np.int32),
        above=np.full(n_nodes, -1, np.int32),
        absent=np.ones(n_nodes),
        reach=np.ones(n_nodes),
        levels=np.zeros(n_trees, np.int32),
    )
    _trace(feature, ensemble.left, ensemble.right, ensemble.cover, ensemble.root, n_used, out)
    return out


@jit
def _count_down(order, left, right, counted, out):
    """How many edges into a node or above it leave a split that is counted."""
    for v in order:
        if left[v] >= 0:
            out[left[v]] = out[right[v]] = out[v] + counted[v]


def first_splits(ensemble: TreeEnsemble, trace: Trace):
    """``(nodes,) bool``: splits of a feature that no split above asks for."""
    return (ensemble.feature >= 0) & (trace.above < 0)


def count_above(ensemble: TreeEnsemble, trace: Trace, counted):
    """How many of the ``counted (nodes,) bool`` splits are above each node, ``(nodes,) int64``."""
    found = np.zeros(counted.size, np.int64)
    _count_down(trace.order, ensemble.left, ensemble.right, counted, found)
    return found


def most_on_a_path(ensemble: TreeEnsemble, trace: Trace, counted):
    """Most of the ``counted (nodes,) bool`` splits on a path, ``(trees,) int64``."""
    most = np.zeros(ensemble.root.size, np.int64)
    np.maximum.at(most, trace.tree, count_above(ensemble, trace, counted))
    return most


def empty_coalition(ensemble: TreeEnsemble, trace: Trace):
    """Margin with every feature absent, ``(outputs,) float64``: the leaves averaged by cover."""
    leaf = np.flatnonzero(ensemble.feature < 0)
    base = ensemble.base.astype(np.float64)
    for column in range(ensemble.value.shape[1]):
        output = ensemble.output[trace.tree[leaf]] + column
        base += np.bincount(output, ensemble.value[leaf, column] * trace.reach[leaf], minlength=base.size)
    return base


def margin_bound(ensemble: TreeEnsemble, trace: Trace):
    """A bound of every margin's size, ``(outputs,) float64``: the largest leaf of every tree, added up; what rounding is measured against."""
    leaf = np.flatnonzero(ensemble.feature < 0)
    bound = np.abs(ensemble.base).astype(np.float64)
    for column in range(ensemble.value.shape[1]):
        largest = np.zeros(ensemble.root.size)
        np.maximum.at(largest, trace.tree[leaf], np.abs(ensemble.value[leaf, column]))
        bound += np.bincount(ensemble.output + column, largest, minlength=bound.size)
    return bound
