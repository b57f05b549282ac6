"""Trees one by one, each with its splits in preorder: what is asked at every split of eight rows, and where the answers lead.

Within a tree splits are numbered 0..n-1 in preorder, so that children follow their parents, and leaves n..2n.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..lanes import LANES, inside, load, splat, store
from ..trees.binning import is_member
from ..trees.forest import Forest
from ..trees.paths import trace

ROWS = LANES  # that a tree is asked for at a time
FEATURE, LOWER, SPAN, MEMBERS, LEFT, RIGHT, PLAYER, BEFORE = range(8)  # a split's numbers: a comparison, see BinnedSplits; the rest within the tree


class PreorderTrees(NamedTuple):
    """Trees with scalar leaves, in boosting order."""

    start: np.ndarray  # (trees + 1,) int64, tree t's splits are splits[start[t]:start[t + 1]]
    splits: np.ndarray  # (splits, 8) int32; BEFORE is the node of the player's nearest edge above, without one 2 n + 1 and the player's number
    share: np.ndarray  # (splits,) float64, of the cover that goes left
    value: np.ndarray  # (leaves,) float64, less the tree's mean; tree t's first leaf is value[start[t] + t]
    mean: np.ndarray  # (trees,) float64, of the leaves by cover
    player_start: np.ndarray  # (trees + 1,) int64, tree t's players are player[player_start[t]:player_start[t + 1]]
    player: np.ndarray  # int32, the forest's, ascending
    words: np.ndarray  # uint32


def number(forest: Forest) -> PreorderTrees:
    """Number the splits, leaves and players of every tree."""
    ensemble, splits, n_trees = forest.ensemble, forest.splits, forest.ensemble.root.size
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
    before = np.where(above < 0, 2 * np.diff(start)[tree[node]] + 1 + its_player, local[above])
    cover_left, cover_right = ensemble.cover[ensemble.left[node]], ensemble.cover[ensemble.right[node]]
    both = cover_left + cover_right
    value = ensemble.value[leaves, 0]
    mean = np.bincount(tree[leaves], value * traced.reach[leaves], minlength=n_trees)
    said = (splits.feature[node], splits.lower[node], splits.span[node], splits.members[node])
    leads = (local[ensemble.left[node]], local[ensemble.right[node]])
    return PreorderTrees(
        start=start,
        splits=np.stack((*said, *leads, its_player, before), axis=1).astype(np.int32),
        share=np.divide(cover_left, both, out=np.full(node.size, 0.5), where=both > 0),
        value=value - mean[tree[leaves]],
        mean=mean,
        player_start=player_start,
        player=(keys % n_all).astype(np.int32),
        words=splits.words,
    )


@jit
def ask(trees, t, bins, n, row, members, bits, values):
    """Put into ``bits (splits * ROWS,)`` 1.0 where a row goes left at a split of tree t, 0.0 where it goes right; and into
    ``values (nodes * ROWS,)`` what it finds below every node. ``bins (used * n,)``; ``members (ROWS,)`` to work in."""
    first, stop = trees.start[t], trees.start[t + 1]
    n_splits = stop - first
    for v in range(n_splits + 1):
        store(values, (n_splits + v) * ROWS, splat(trees.value[first + t + v]))
    for s in range(stop - 1, first - 1, -1):
        at, word = trees.splits[s, FEATURE] * n + row, trees.splits[s, MEMBERS]
        lower, span = np.int64(trees.splits[s, LOWER]), np.int64(trees.splits[s, SPAN])
        here, left, right = (s - first) * ROWS, trees.splits[s, LEFT] * ROWS, trees.splits[s, RIGHT] * ROWS
        if word >= 0:
            for i in range(ROWS):
                members[i] = is_member(trees.words, word, np.int64(bins[at + i]))
        b = inside(members, 0, lower, span) if word >= 0 else inside(bins, at, lower, span)
        store(bits, here, b)
        store(values, here, b * load(values, left) + (splat(1.0) - b) * load(values, right))
