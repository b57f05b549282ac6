"""Margins of rows: sums of the leaf values that they reach in all trees.

Trees are evaluated in one of three ways. Few distinct comparisons: the leaf is looked up. Few leaves: every split is evaluated for all rows, 32 per
instruction, and leaf numbers are selected bottom-up; a split costs a third of an instruction per row, where descending costs a dozen per level. Many
leaves: rows descend together, a level at a time, without branches on the data.
"""

from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..jit.decorator import jit
from ..jit.lanes import WIDE, choose
from .binning import BATCH, BinnedSplits, is_member
from .ensemble import TreeEnsemble
from .lookup import Comparisons, LookupTables, add_lookups, descend, look_up, outcomes, padded_width, worth_looking_up
from .paths import Trace

MOST_LEAVES = 256  # leaf numbers fit a byte
SPLITS_PER_LEVEL = 36  # splits evaluated in the time of one level of descent
NODE_BYTES = 64  # bytes of a split or leaf in any of the three ways, without its value
SELECTED_ROWS = 256  # rows per split
POOL_LEAVES = MOST_LEAVES * WIDE  # bytes at the start of a pool: every leaf's number, WIDE times


class Selection(NamedTuple):
    """Splits of every tree, children before parents: each selects between the results of its children."""

    start: np.ndarray  # (trees + 1,) int64, tree t's splits are steps[start[t]:start[t + 1]]
    steps: np.ndarray  # (splits, 7) int32: used feature, lower, span, members (see BinnedSplits); places in the pool: left, right, own
    first: np.ndarray  # (trees,) int64, value of the tree's leaf 0
    value: np.ndarray  # (leaves, width) float64
    places: np.ndarray  # (1,) int64, largest number of places in use after the constants
    words: np.ndarray  # uint32
    output: np.ndarray  # (trees,) int32


class Descent(NamedTuple):
    """Nodes numbered so that a right child follows its left sibling; a leaf is its own left child, and every row goes left there, so that rows stay
    at leaves."""

    nodes: np.ndarray  # (4 * nodes,) int32: used feature, lower, span (see BinnedSplits), left child
    members: np.ndarray  # (nodes,) int64, first word of a categorical split's set, -1 elsewhere
    words: np.ndarray  # uint32
    value: np.ndarray  # (nodes, width) float64
    root: np.ndarray  # (trees,) int32
    levels: np.ndarray  # (trees,) int32, edges on the longest path
    categorical: np.ndarray  # (trees,) bool, some split of the tree is categorical
    output: np.ndarray  # (trees,) int32


class MarginTables(NamedTuple):
    """Tables of all three ways, and the base values."""

    looked_up: LookupTables  # with a row of results per output
    selected: Selection
    descended: Descent
    base: np.ndarray  # (outputs,) float64


# Columns of Selection.steps, and numbers of a node in Descent.nodes.
SELECT_FEATURE, SELECT_LOWER, SELECT_SPAN, SELECT_MEMBERS, SELECT_FROM_LEFT, SELECT_FROM_RIGHT, SELECT_PLACE = range(7)
NODE_FEATURE, NODE_LOWER, NODE_SPAN, NODE_LEFT = range(4)
NODE_NUMBERS = 4


def look_up_trees(ensemble: TreeEnsemble, splits: BinnedSplits, comparisons: Comparisons, trees: np.ndarray) -> LookupTables:
    """Make tables of leaf values, by descending each tree with every combination of outcomes.

    Parameters
    ----------
    trees : (looked up,) int
    """
    targets, tables = [], []
    for tree in trees:
        n_comparisons = int(comparisons.start[tree + 1] - comparisons.start[tree])
        left = outcomes(n_comparisons, 2**n_comparisons, np.bool_)
        tables.append(ensemble.value[descend(ensemble, comparisons, tree, left)])
        targets.append(ensemble.output[tree] + np.arange(ensemble.value.shape[1]))
    return look_up(splits, comparisons, trees, targets, tables)


def _lay_out_selection(ensemble: TreeEnsemble, splits: BinnedSplits, trace: Trace, trees: np.ndarray) -> Selection:
    """Lay out the splits of ``trees (selected,)``, children before parents."""
    upwards = trace.order[::-1]
    upwards = upwards[np.argsort(trace.tree[upwards], kind="stable")]
    upwards = upwards[np.isin(trace.tree[upwards], trees)]
    leaf = ensemble.feature < 0
    leaves, inner = upwards[leaf[upwards]], upwards[~leaf[upwards]]
    n_leaves, n_splits = (np.bincount(trace.tree[nodes], minlength=ensemble.root.size)[trees] for nodes in (leaves, inner))
    first = np.cumsum(n_leaves) - n_leaves
    place = np.zeros(leaf.size, np.int64)
    place[leaves] = (np.arange(leaves.size) - np.repeat(first, n_leaves)) * WIDE
    right_child = np.zeros(leaf.size, bool)
    right_child[ensemble.right[inner]] = True
    place[inner] = POOL_LEAVES + (2 * trace.level[inner] + right_child[inner]) * SELECTED_ROWS
    comparison = (splits.feature[inner], splits.lower[inner], splits.span[inner], splits.members[inner])
    return Selection(
        start=np.concatenate(([0], np.cumsum(n_splits))),
        steps=narrow(np.stack((*comparison, place[ensemble.left[inner]], place[ensemble.right[inner]], place[inner]), axis=1)),
        first=first,
        value=ensemble.value[leaves],
        places=np.array([2 * trace.level[inner].max(initial=0) + 2], np.int64),
        words=splits.words,
        output=ensemble.output[trees],
    )


def lay_out_descent(ensemble: TreeEnsemble, splits: BinnedSplits, trace: Trace, trees: np.ndarray) -> Descent:
    """Lay out all nodes, the roots first, then pairs of children.

    Parameters
    ----------
    trees : (descended,) int
        those that have a root in the tables
    """
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
    return Descent(
        nodes=nodes.astype(np.int32).reshape(-1),
        members=splits.members[old],
        words=splits.words,
        value=ensemble.value[old],
        root=new[ensemble.root[trees]],
        levels=trace.levels[trees],
        categorical=(np.bincount(trace.tree, splits.members >= 0, minlength=ensemble.root.size) > 0)[trees],
        output=ensemble.output[trees],
    )


def _choose_look_ups(ensemble: TreeEnsemble, trace: Trace, comparisons: Comparisons) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of nodes of every tree, and which are looked up: ``(trees,) int64``, ``(trees,) bool``."""
    n_nodes = np.bincount(trace.tree, minlength=ensemble.root.size)
    return n_nodes, worth_looking_up(comparisons, n_nodes, np.full(n_nodes.size, ensemble.value.shape[1]))


def margin_bytes(ensemble: TreeEnsemble, trace: Trace, comparisons: Comparisons) -> int:
    """Bound the bytes of the tables of ``prepare_margin``.

    Returns
    -------
    int
        bytes
    """
    _, looked_up = _choose_look_ups(ensemble, trace, comparisons)
    codes = int((1 << np.diff(comparisons.start)[looked_up]).sum())
    return 8 * padded_width(ensemble.value.shape[1]) * codes + (NODE_BYTES + 8 * ensemble.value.shape[1]) * ensemble.feature.size


def prepare_margin(ensemble: TreeEnsemble, splits: BinnedSplits, trace: Trace, comparisons: Comparisons) -> MarginTables:
    """Lay out every tree for ``add_margins``, in its fastest way."""
    n_nodes, looked_up = _choose_look_ups(ensemble, trace, comparisons)
    selected = ~looked_up & (n_nodes < 2 * MOST_LEAVES) & (n_nodes // 2 <= SPLITS_PER_LEVEL * trace.levels) & (trace.levels > 0)
    return MarginTables(
        looked_up=look_up_trees(ensemble, splits, comparisons, np.flatnonzero(looked_up)),
        selected=_lay_out_selection(ensemble, splits, trace, np.flatnonzero(selected)),
        descended=lay_out_descent(ensemble, splits, trace, np.flatnonzero(~looked_up & ~selected)),
        base=ensemble.base,
    )


@jit
def _select(flat: np.ndarray, tables: Selection, out: np.ndarray) -> None:
    """Add the selected leaf values of the rows in ``flat (used * n,)`` bins to ``out (outputs, n)``."""
    n, steps = out.shape[1], tables.steps
    pool = np.empty(POOL_LEAVES + tables.places[0] * SELECTED_ROWS, np.uint8)
    for leaf in range(MOST_LEAVES):
        pool[leaf * WIDE : (leaf + 1) * WIDE] = leaf
    members = np.empty(SELECTED_ROWS, flat.dtype)
    for row in range(0, n, SELECTED_ROWS):
        size = min(SELECTED_ROWS, n - row)
        for t in range(tables.first.size):
            for s in range(tables.start[t], tables.start[t + 1]):
                at, lower, span = steps[s, SELECT_FEATURE] * n + row, np.int64(steps[s, SELECT_LOWER]), np.int64(steps[s, SELECT_SPAN])
                left, right, place = steps[s, SELECT_FROM_LEFT], steps[s, SELECT_FROM_RIGHT], steps[s, SELECT_PLACE]
                by_left, by_right = np.int64(left >= POOL_LEAVES), np.int64(right >= POOL_LEAVES)
                if steps[s, SELECT_MEMBERS] < 0:
                    for i in range(0, size, WIDE):
                        choose(pool, place + i, left + i * by_left, right + i * by_right, flat, at + i, lower, span)
                else:
                    for i in range(size):
                        members[i] = is_member(tables.words, steps[s, SELECT_MEMBERS], np.int64(flat[at + i]))
                    for i in range(0, size, WIDE):
                        choose(pool, place + i, left + i * by_left, right + i * by_right, members, i, lower, span)
            for k in range(tables.value.shape[1]):
                output = tables.output[t] + k
                for i in range(size):
                    out[output, row + i] += tables.value[tables.first[t] + pool[POOL_LEAVES + i], k]


@jit
def _descend(bins: np.ndarray, tables: Descent, out: np.ndarray) -> None:
    """Add the leaf values that rows in ``bins (used, n)`` reach by descent to ``out (outputs, n)``."""
    n_used, n = bins.shape
    flat, nodes = bins.reshape(-1), tables.nodes
    node = np.empty(BATCH, np.int64)
    batch = np.zeros(max(n_used, 1) * BATCH, np.int64)
    mask = np.int64(np.iinfo(bins.dtype).max)
    for first in range(0, n, BATCH):
        for j in range(n_used):
            for i in range(BATCH):
                batch[j * BATCH + i] = flat[j * n + first + i]
        for t in range(tables.root.size):
            node[:] = tables.root[t]
            for _ in range(tables.levels[t]):
                if tables.categorical[t]:
                    for i in range(BATCH):
                        v = NODE_NUMBERS * node[i]
                        bin_ = batch[nodes[v + NODE_FEATURE] * BATCH + i]
                        if tables.members[node[i]] >= 0:
                            bin_ = is_member(tables.words, tables.members[node[i]], bin_)
                        node[i] = nodes[v + NODE_LEFT] + (((bin_ - nodes[v + NODE_LOWER]) & mask) > (nodes[v + NODE_SPAN] & mask))
                else:
                    for i in range(BATCH):
                        v = NODE_NUMBERS * node[i]
                        bin_ = batch[nodes[v + NODE_FEATURE] * BATCH + i]
                        node[i] = nodes[v + NODE_LEFT] + (((bin_ - nodes[v + NODE_LOWER]) & mask) > (nodes[v + NODE_SPAN] & mask))
            for k in range(tables.value.shape[1]):
                output = tables.output[t] + k
                for i in range(BATCH):
                    out[output, first + i] += tables.value[node[i], k]


def add_margins(bins: np.ndarray, tables: MarginTables, out: np.ndarray) -> None:
    """Add every row's margin to ``out``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    out : (outputs, n) float64, margin units
    """
    out += tables.base[:, None]
    if tables.looked_up.first.size:
        add_lookups(bins, tables.looked_up, out)
    if tables.selected.first.size:
        _select(bins.reshape(-1), tables.selected, out)
    if tables.descended.root.size:
        _descend(bins, tables.descended, out)
