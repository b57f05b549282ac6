"""Trees of a regression in preorder, and the descent of eight rows at once.

A tree's splits are numbered 0..n-1 in preorder, so that children follow their parents, and its leaves n..2n.
"""

from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..jit.decorator import jit
from ..jit.lanes import LANES, inside, load, splat, store
from ..trees.binning import is_member
from ..trees.forest import Forest
from ..trees.paths import trace

# Columns of PreorderTrees.splits: a comparison, see BinnedSplits; both children, the player, and the edge above, numbered within the tree.
PREORDER_FEATURE, PREORDER_LOWER, PREORDER_SPAN, PREORDER_MEMBERS, PREORDER_LEFT, PREORDER_RIGHT, PREORDER_PLAYER, PREORDER_ABOVE = range(8)


class PreorderTrees(NamedTuple):
    """Trees with scalar leaves, in boosting order."""

    start: np.ndarray  # (trees + 1,) int64, tree t's splits are splits[start[t]:start[t + 1]]
    splits: np.ndarray  # (splits, 8) int32; ABOVE is the node of the player's nearest edge above, or 2 n + 1 plus the player's number if none
    share: np.ndarray  # (splits,) float64, share of the cover that goes left
    value: np.ndarray  # (leaves,) float64, less the tree's mean; tree t's first leaf is value[start[t] + t]
    mean: np.ndarray  # (trees,) float64, mean of the leaves by cover
    player_start: np.ndarray  # (trees + 1,) int64, tree t's players are player[player_start[t]:player_start[t + 1]]
    player: np.ndarray  # int32, numbers of the forest's players, ascending within a tree
    words: np.ndarray  # uint32, category sets


class Workspace(NamedTuple):
    """Scratch arrays of a tree, for LANES rows: numbers of one node or player are adjacent."""

    members: np.ndarray  # (LANES,) unsigned integers, whether a row's category is in a set
    goes_left: np.ndarray  # (splits * LANES,) float64, 1.0 where a row goes left, 0.0 where it goes right
    values: np.ndarray  # (places * LANES,) float64, the row's leaf value below every node; then an expansion's terms
    phi: np.ndarray  # (players * LANES,) float64, Shapley values of the tree's game
    phi_of_square: np.ndarray  # (players * LANES,) float64, those of its square


def lay_out_preorder(forest: Forest) -> PreorderTrees:
    """Number the splits, leaves and players of every tree."""
    ensemble, splits, n_trees = forest.stored, forest.splits, forest.stored.root.size
    player = forest.player_of_node
    traced = trace(ensemble, player, forest.n_players)
    leaf = ensemble.feature < 0
    node, leaves = traced.order[~leaf[traced.order]], traced.order[leaf[traced.order]]
    tree = traced.tree
    start = np.searchsorted(tree[node], np.arange(n_trees + 1))
    local = np.zeros(leaf.size, np.int64)
    local[node] = np.arange(node.size) - start[tree[node]]
    local[leaves] = np.arange(leaves.size) - (start[:-1] + np.arange(n_trees))[tree[leaves]] + np.diff(start)[tree[leaves]]
    n_all = max(forest.n_players, 1)
    keys, found = np.unique(tree[node].astype(np.int64) * n_all + player[node], return_inverse=True)
    player_start = np.searchsorted(keys // n_all, np.arange(n_trees + 1))
    above, its_player = traced.above[node], found - player_start[tree[node]]
    edge_above = np.where(above < 0, 2 * np.diff(start)[tree[node]] + 1 + its_player, local[above])
    cover_left, cover_right = ensemble.cover[ensemble.left[node]], ensemble.cover[ensemble.right[node]]
    both = cover_left + cover_right
    value = ensemble.value[leaves, 0]
    mean = np.bincount(tree[leaves], value * traced.reach[leaves], minlength=n_trees).astype(np.float64)  # of nothing it makes integers
    comparison = (splits.feature[node], splits.lower[node], splits.span[node], splits.members[node])
    children = (local[ensemble.left[node]], local[ensemble.right[node]])
    return PreorderTrees(
        start=start,
        splits=narrow(np.stack((*comparison, *children, its_player, edge_above), axis=1)),
        share=np.divide(cover_left, both, out=np.full(node.size, 0.5), where=both > 0),
        value=value - mean[tree[leaves]],
        mean=mean,
        player_start=player_start,
        player=(keys % n_all).astype(np.int32),
        words=splits.words,
    )


@jit
def descend(trees: PreorderTrees, t: int, bins: np.ndarray, n: int, row: int, work: Workspace) -> None:
    """Descend LANES rows: the direction at every split of a tree, and the leaf value reached below every node."""
    first, stop = trees.start[t], trees.start[t + 1]
    n_splits = stop - first
    for v in range(n_splits + 1):
        store(work.values, (n_splits + v) * LANES, splat(trees.value[first + t + v]))
    for s in range(stop - 1, first - 1, -1):
        at, word = trees.splits[s, PREORDER_FEATURE] * n + row, trees.splits[s, PREORDER_MEMBERS]
        lower, span = np.int64(trees.splits[s, PREORDER_LOWER]), np.int64(trees.splits[s, PREORDER_SPAN])
        here, left, right = (s - first) * LANES, trees.splits[s, PREORDER_LEFT] * LANES, trees.splits[s, PREORDER_RIGHT] * LANES
        if word >= 0:
            for i in range(LANES):
                work.members[i] = is_member(trees.words, word, np.int64(bins[at + i]))
        b = inside(work.members, 0, lower, span) if word >= 0 else inside(bins, at, lower, span)
        store(work.goes_left, here, b)
        store(work.values, here, b * load(work.values, left) + (splat(1.0) - b) * load(work.values, right))
