"""Row-independent properties of trees: levels, absent weights, and nearest edges of the same feature."""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from .ensemble import TreeEnsemble

BASE_SHARE = 1e-6  # of a base value, whose sums are rounded to 1e-16 of it


class Trace(NamedTuple):
    """For each node, properties of its path; for each tree, the longest path. "Edge v" is the edge into node v."""

    order: np.ndarray  # (nodes,) int32, nodes in preorder, trees end to end
    tree: np.ndarray  # (nodes,) int32
    level: np.ndarray  # (nodes,) int32, edges above the node
    above: np.ndarray  # (nodes,) int32, at a split the nearest edge above of the same feature, -1 if none
    absent: np.ndarray  # (nodes,) float64, product of the cover ratios of all edges of edge v's feature down to v; 1 at roots
    reach: np.ndarray  # (nodes,) float64, product of the cover ratios of all edges above
    levels: np.ndarray  # (trees,) int32, edges on the longest path


@jit
def _trace(feature: np.ndarray, left: np.ndarray, right: np.ndarray, cover: np.ndarray, root: np.ndarray, n_used: int, out: Trace) -> None:
    """Fill the arrays made by ``trace`` from the ensemble's."""
    last = np.full(n_used, -1, np.int32)  # nearest edge of each feature on the path to the current node
    parent = np.full(feature.size, -1, np.int32)
    stack = np.empty(2 * feature.size + 1, np.int32)
    n_done = 0
    for t in range(root.size):
        stack[0] = root[t]
        size = 1
        while size > 0:
            size -= 1
            v = stack[size]
            if v < 0:  # both children done: restore the feature's edge from above
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


def trace(ensemble: TreeEnsemble, feature: np.ndarray, n_used: int) -> Trace:
    """Trace every tree, without recursion.

    Where no training weight reached a split its children get one half each, so that absent weights always sum to one.

    Parameters
    ----------
    feature : (nodes,) int32
        the split's feature among the used ones, or the player that it belongs to; -1 at leaves
    n_used : int
        how many features, or players, there are
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


def find_parents(ensemble: TreeEnsemble) -> np.ndarray:
    """Find the split above every node.

    Returns
    -------
    parent : (nodes,) int32
        -1 at roots
    """
    parent, inner = np.full(ensemble.feature.size, -1, np.int32), np.flatnonzero(ensemble.feature >= 0)
    parent[ensemble.left[inner]] = parent[ensemble.right[inner]] = inner
    return parent


@jit
def _count_down(order: np.ndarray, left: np.ndarray, right: np.ndarray, counted: np.ndarray, out: np.ndarray) -> None:
    """Count, down every path, the edges from splits with ``counted (nodes,)`` 1, into zeroed ``out (nodes,)``."""
    for v in order:
        if left[v] >= 0:
            out[left[v]] = out[right[v]] = out[v] + counted[v]


def first_splits(ensemble: TreeEnsemble, trace: Trace) -> np.ndarray:
    """Find the splits whose feature no split above uses.

    Returns
    -------
    first : (nodes,) bool
    """
    return (ensemble.feature >= 0) & (trace.above < 0)


def count_above(ensemble: TreeEnsemble, trace: Trace, counted: np.ndarray) -> np.ndarray:
    """Count selected splits above each node.

    Parameters
    ----------
    counted : (nodes,) bool
        the splits that count

    Returns
    -------
    n_above : (nodes,) int64
    """
    found = np.zeros(counted.size, np.int64)
    _count_down(trace.order, ensemble.left, ensemble.right, counted, found)
    return found


def most_on_a_path(ensemble: TreeEnsemble, trace: Trace, counted: np.ndarray) -> np.ndarray:
    """Return the largest number of selected splits on a path of every tree.

    Parameters
    ----------
    counted : (nodes,) bool
        the splits that count

    Returns
    -------
    most : (trees,) int64
    """
    most = np.zeros(ensemble.root.size, np.int64)
    np.maximum.at(most, trace.tree, count_above(ensemble, trace, counted))
    return most


def empty_coalition(ensemble: TreeEnsemble, trace: Trace) -> np.ndarray:
    """Compute the margin of the empty coalition: leaves averaged by cover (Lundberg et al. 2018, Alg. 1 with no feature present).

    Returns
    -------
    base : (outputs,) float64, margin units
    """
    leaf = np.flatnonzero(ensemble.feature < 0)
    base = ensemble.base.astype(np.float64)
    for column in range(ensemble.value.shape[1]):
        output = ensemble.output[trace.tree[leaf]] + column
        base += np.bincount(output, ensemble.value[leaf, column] * trace.reach[leaf], minlength=base.size)
    return base


def value_range(ensemble: TreeEnsemble, trace: Trace, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the smallest and the largest leaf of every tree."""
    leaf = np.flatnonzero(ensemble.feature < 0)
    low, high = np.full(ensemble.root.size, np.inf), np.full(ensemble.root.size, -np.inf)
    np.minimum.at(low, trace.tree[leaf], ensemble.value[leaf, column])
    np.maximum.at(high, trace.tree[leaf], ensemble.value[leaf, column])
    return low, high


def margin_bound(ensemble: TreeEnsemble, trace: Trace) -> np.ndarray:
    """Bound the distance of margins from the base value by the sum of the trees' leaf ranges: the scale of rounding errors.

    Adding a base value rounds too: a millionth of it counts as well, where TOLERANCE is a billionth.

    Returns
    -------
    bound : (outputs,) float64, margin units
    """
    bound = np.abs(ensemble.base).astype(np.float64) * BASE_SHARE
    for column in range(ensemble.value.shape[1]):
        low, high = value_range(ensemble, trace, column)
        bound += np.bincount(ensemble.output + column, high - low, minlength=bound.size)
    return bound
