"""Games on trees: who plays in every tree, whose values are asked for, and at which points every player's presence is taken.

Many values of the path-dependent game are one pass over trees whose splits of one player act together (Karczmarz et al. 2022, Section 3, merges
the splits of a feature; those of a group of features merge the same way). They differ only in

* who a player is: a feature, or a group of features (the quotient game);
* the probability with which a player is present: t, or s for the players that are ``own`` to a tree. Owen values (Owen 1977) have the other
  groups come whole with probability t, each member of one's own group with s; an interaction of i and j is j's value with i present (s = 1)
  less that with i absent (s = 0);
* whose values are kept, and in which row of phi.

A tree stands in a game once for each group or player that is its own there, cut to what that one can change.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..game_values import GameValue, Quadrature, shapley
from ..ordering import group_starts, pack_pairs, unpack_pairs
from ..trees.binning import BinnedSplits
from ..trees.ensemble import TreeEnsemble
from ..trees.forest import Forest
from ..trees.paths import Trace, first_splits, most_on_a_path, trace


class Points(NamedTuple):
    """Where a tree is evaluated: ``nodes (q, 2) float64``, t and s; ``weights (q,) float64``."""

    nodes: np.ndarray
    weights: np.ndarray


class Game(NamedTuple):
    """Trees with their players."""

    ensemble: TreeEnsemble
    splits: BinnedSplits
    trace: Trace  # splits of one player merged
    node: np.ndarray  # (nodes,) int32, the model's node
    source: np.ndarray  # (trees,) int32, the model's tree, ascending
    gain: np.ndarray  # (nodes,) int32, row of phi to which the split's player's value is added; n_rows if it is not asked for
    own: np.ndarray  # (nodes,) bool, the split's player is present with probability s
    points: tuple[Points, ...]  # per tree
    n_rows: int  # rows of phi


@jit
def _copy_around(order, start, left, right, team, trees, own, out):
    """Copy trees, each cut to the splits that have one of team ``own`` at, below or above them (own < 0: uncut); returns the number of nodes."""
    below, under, kept = np.zeros(order.size, np.bool_), np.zeros(order.size, np.bool_), np.zeros(order.size, np.bool_)
    came = np.zeros(order.size, np.int64)  # twice the new number of the parent, and one more for a right child
    n_nodes = 0
    for c in range(trees.size):
        nodes = order[start[trees[c]] : start[trees[c] + 1]]
        for i in range(nodes.size - 1, -1, -1):
            v = nodes[i]
            below[v] = left[v] >= 0 and (own[c] < 0 or team[v] == own[c] or below[left[v]] or below[right[v]])
        kept[nodes[0]], under[nodes[0]], came[nodes[0]] = True, own[c] < 0, -1
        out.root[c] = n_nodes
        for v in nodes:
            goes_on = kept[v] and left[v] >= 0 and (under[v] or below[v])
            if left[v] >= 0:
                for side, child in enumerate((left[v], right[v])):
                    kept[child], under[child], came[child] = goes_on, under[v] or team[v] == own[c], 2 * n_nodes + side
            if kept[v]:
                out.node[n_nodes], out.counts[n_nodes] = v, under[v] and left[v] < 0
                out.left[n_nodes] = out.right[n_nodes] = -1
                if came[v] >= 0:
                    if came[v] % 2 == 0:
                        out.left[came[v] // 2] = n_nodes
                    else:
                        out.right[came[v] // 2] = n_nodes
                n_nodes += 1
    return n_nodes


class _Copies(NamedTuple):
    node: np.ndarray  # (nodes,) int32, the model's
    left: np.ndarray  # (nodes,) int32
    right: np.ndarray  # (nodes,) int32
    counts: np.ndarray  # (nodes,) bool, a leaf whose value the own players can change
    root: np.ndarray  # (copies,) int32


def _copy(forest: Forest, traced: Trace, team, trees, own):
    """The trees listed, each cut around its own team, as an ensemble; and the copies it was made from."""
    ensemble, splits = forest.ensemble, forest.splits
    start = group_starts(traced.tree, ensemble.root.size)
    most = int((start[1:] - start[:-1])[trees].sum())
    node, left, right = (np.empty(most, np.int32) for _ in range(3))
    out = _Copies(node, left, right, np.empty(most, bool), np.empty(trees.size, np.int32))
    n_nodes = _copy_around(traced.order, start, ensemble.left, ensemble.right, team, trees, own, out)
    copies = out._replace(**{name: getattr(out, name)[:n_nodes] for name in ("node", "left", "right", "counts")})
    node, leaf = copies.node, copies.left < 0
    copied = ensemble._replace(
        **{name: getattr(ensemble, name)[node] for name in ("threshold", "missing_left", "category_set", "cover")},
        feature=np.where(leaf, -1, ensemble.feature[node]).astype(np.int32),
        left=copies.left,
        right=copies.right,
        value=np.where(copies.counts[:, None], ensemble.value[node], 0.0),
        root=copies.root,
        output=ensemble.output[trees],
    )
    taken = {name: getattr(splits, name)[node] for name in ("lower", "span", "members")}
    return copied, splits._replace(**taken, feature=np.where(leaf, -1, splits.feature[node]).astype(np.int32)), copies


def _same(rule: Quadrature) -> Points:
    return Points(np.stack((rule.nodes, rule.nodes), axis=1), rule.weights)


def _product(of_others: Quadrature, of_own: Quadrature) -> Points:
    t, s = np.meshgrid(of_others.nodes, of_own.nodes, indexing="ij")
    return Points(np.stack((t.ravel(), s.ravel()), axis=1), np.outer(of_others.weights, of_own.weights).ravel())


def _each(make, *numbers):
    """``make(a, b, …)`` for every tree's numbers, computed once for each combination."""
    rows = list(zip(*(array.tolist() for array in numbers), strict=True))
    made = {row: make(*row) for row in set(rows)}
    return tuple(made[row] for row in rows)


def play(forest: Forest, value: GameValue) -> Game:
    """The game itself: every player's own value, a row of phi for each."""
    ensemble, player = forest.ensemble, forest.player_of_node
    traced = trace(ensemble, player, forest.n_players)
    return Game(
        ensemble=ensemble,
        splits=forest.splits,
        trace=traced,
        node=np.arange(player.size, dtype=np.int32),
        source=np.arange(ensemble.root.size, dtype=np.int32),
        gain=player,
        own=np.zeros(player.size, bool),
        points=_each(lambda n: _same(value(n)), most_on_a_path(ensemble, traced, first_splits(ensemble, traced))),
        n_rows=forest.n_players,
    )


def play_owen(forest: Forest, across: GameValue) -> Game:
    """A feature's Shapley value within its group, among other groups that come whole; a row of phi for each used feature.

    With the Shapley value also ``across`` groups it is the Owen value (Owen 1977); where others never come, that of the group's own game.
    """
    feature, team = forest.splits.feature, forest.player_of_node
    traced = trace(forest.ensemble, team, forest.n_players)
    inner = np.flatnonzero(feature >= 0)
    tree, member = unpack_pairs(np.unique(pack_pairs(traced.tree[inner], feature[inner])))  # which features a tree has, and how many of each group
    keys, n_members = np.unique(pack_pairs(tree, forest.player[member]), return_counts=True)
    several = keys[n_members > 1]
    # Groups with one feature in a tree share a copy in which nobody is own.
    single = np.unique(unpack_pairs(keys[n_members == 1])[0])
    tree, group = unpack_pairs(several)
    trees = np.concatenate((single, tree)).astype(np.int32)
    owns = np.concatenate((np.full(single.size, -1), group)).astype(np.int32)
    by_tree = np.argsort(trees, kind="stable")
    trees, owns = trees[by_tree], owns[by_tree]

    copied, taken, copies = _copy(forest, traced, team, trees, owns)
    team, own_of_node = team[copies.node], owns[_copy_of_node(copies)]
    inner = taken.feature >= 0
    mine = inner & (team == own_of_node)
    alone = inner & (own_of_node < 0) & ~np.isin(pack_pairs(traced.tree[copies.node], team), several)
    player = np.where(mine, taken.feature, np.where(inner, forest.n_used + team, -1)).astype(np.int32)
    traced = trace(copied, player, forest.n_used + forest.n_players)
    firsts = first_splits(copied, traced)
    return Game(
        ensemble=copied,
        splits=taken,
        trace=traced,
        node=copies.node,
        source=trees,
        gain=np.where(mine | alone, taken.feature, forest.n_used).astype(np.int32),
        own=mine,
        points=_each(
            lambda n, n_own, own: _same(across(n)) if own < 0 else _product(across(n + 1), shapley(n_own)),
            most_on_a_path(copied, traced, firsts & ~mine),
            most_on_a_path(copied, traced, firsts & mine),
            owns,
        ),
        n_rows=forest.n_used,
    )


def play_pairs(forest: Forest, value: GameValue) -> tuple[Game, np.ndarray]:
    """Interactions of two players, i < j: j's value where i is present less that where i is absent (Grabisch and Roubens 1999).

    Returns
    -------
    Game
        phi has a row per pair
    pairs : (rows, 2) int32
        players that share a path; no others interact
    """
    player = forest.player_of_node
    traced = trace(forest.ensemble, player, forest.n_players)
    inner = np.flatnonzero(player >= 0)
    tree, lower = unpack_pairs(np.unique(pack_pairs(traced.tree[inner], player[inner])))
    has_higher = np.flatnonzero(tree[1:] == tree[:-1])  # all but each tree's last player, who is nobody's lower one
    trees, owns = tree[has_higher].astype(np.int32), lower[has_higher].astype(np.int32)
    copied, taken, copies = _copy(forest, traced, player, trees, owns)
    player, own_of_node = np.where(taken.feature < 0, -1, player[copies.node]).astype(np.int32), owns[_copy_of_node(copies)]
    asked = player > own_of_node
    keys, row = np.unique(pack_pairs(own_of_node[asked], player[asked]), return_inverse=True)
    gain = np.full(player.size, keys.size, np.int32)
    gain[asked] = row
    traced = trace(copied, player, forest.n_players)
    presence = Quadrature(np.array([1.0, 0.0]), np.array([1.0, -1.0]))
    game = Game(
        ensemble=copied,
        splits=taken,
        trace=traced,
        node=copies.node,
        source=trees,
        gain=gain,
        own=player == own_of_node,
        points=_each(lambda n: _product(value(max(1, n - 1)), presence), most_on_a_path(copied, traced, first_splits(copied, traced))),
        n_rows=keys.size,
    )
    return game, np.stack(unpack_pairs(keys), axis=1).astype(np.int32)


def _copy_of_node(copies: _Copies):
    """``(nodes,)``, copies lie end to end."""
    size = np.diff(np.append(copies.root, copies.node.size))
    return np.repeat(np.arange(copies.root.size), size)
