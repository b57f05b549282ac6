"""Margins by descent: every row of a batch goes down a tree together, one level at a time, without branches on the data."""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .ensemble import TreeEnsemble
from .paths import Trace
from .ranks import BATCH, RankedSplits, is_member

FEATURE, LOWER, SPAN, LEFT = range(4)  # a node's four numbers


class MarginTables(NamedTuple):
    """Nodes to descend, numbered so that a right child follows its left sibling; a leaf is its own left child and every row goes left there,
    so that a row that has arrived stays."""

    nodes: np.ndarray  # (4 * nodes,) int32: used feature, lower, span (see RankedSplits), left child
    members: np.ndarray  # (nodes,) int64, first word of a categorical split's set, -1 elsewhere
    words: np.ndarray  # uint32
    value: np.ndarray  # (nodes, width) float64
    root: np.ndarray  # (trees,) int32
    levels: np.ndarray  # (trees,) int32, edges on the longest path
    categorical: np.ndarray  # (trees,) bool, some split of the tree is categorical
    output: np.ndarray  # (trees,) int32
    base: np.ndarray  # (outputs,) float64


def prepare_margin(ensemble: TreeEnsemble, splits: RankedSplits, trace: Trace) -> MarginTables:
    """Lay out the nodes for the descent: the roots first, then pairs of children."""
    inner = np.flatnonzero(ensemble.feature >= 0)
    old = np.concatenate((ensemble.root, np.stack((ensemble.left[inner], ensemble.right[inner]), axis=1).reshape(-1)))
    new = np.zeros(old.size, np.int32)
    new[old] = np.arange(old.size)
    leaf = ensemble.feature[old] < 0
    nodes = np.stack(
        (
            np.where(leaf, 0, splits.feature[old]),
            np.where(leaf, 0, splits.lower[old]),
            np.where(leaf, -1, splits.span[old]),
            np.where(leaf, np.arange(old.size), new[ensemble.left[old]]),
        ),
        axis=1,
    )
    return MarginTables(
        nodes=nodes.astype(np.int32).reshape(-1),
        members=splits.members[old],
        words=splits.words,
        value=ensemble.value[old],
        root=new[ensemble.root],
        levels=trace.levels,
        categorical=np.bincount(trace.tree, splits.members >= 0, minlength=ensemble.root.size) > 0,
        output=ensemble.output,
        base=ensemble.base,
    )


@jit
def add_margins(ranks, tables, out):
    """Add every row's margin to ``out``.

    Parameters
    ----------
    ranks : (used, n) unsigned integers, n a multiple of BATCH
    tables : MarginTables
    out : (outputs, n) float64
    """
    n_used, n = ranks.shape
    flat, nodes = ranks.reshape(-1), tables.nodes
    node = np.empty(BATCH, np.int64)
    batch = np.zeros(max(n_used, 1) * BATCH, np.int64)
    mask = np.int64(np.iinfo(ranks.dtype).max)
    for first in range(0, n, BATCH):
        for j in range(n_used):
            for i in range(BATCH):
                batch[j * BATCH + i] = flat[j * n + first + i]
        for k in range(out.shape[0]):
            for i in range(BATCH):
                out[k, first + i] += tables.base[k]
        for t in range(tables.root.size):
            node[:] = tables.root[t]
            for _ in range(tables.levels[t]):
                if tables.categorical[t]:
                    for i in range(BATCH):
                        v = 4 * node[i]
                        rank = batch[nodes[v + FEATURE] * BATCH + i]
                        if tables.members[node[i]] >= 0:
                            rank = is_member(tables.words, tables.members[node[i]], rank)
                        node[i] = nodes[v + LEFT] + (((rank - nodes[v + LOWER]) & mask) > (nodes[v + SPAN] & mask))
                else:
                    for i in range(BATCH):
                        v = 4 * node[i]
                        rank = batch[nodes[v + FEATURE] * BATCH + i]
                        node[i] = nodes[v + LEFT] + (((rank - nodes[v + LOWER]) & mask) > (nodes[v + SPAN] & mask))
            for k in range(tables.value.shape[1]):
                output = tables.output[t] + k
                for i in range(BATCH):
                    out[output, first + i] += tables.value[node[i], k]
