"""Games on trees: players, the players whose values are computed, and probabilities of presence.

Many values of the path-dependent game are one pass over trees whose splits of one player act together (Karczmarz et al. 2022, Section 3, merges
the splits of a feature; those of a group of features merge the same way). They differ only in

* who a player is: a feature, or a group of features (the quotient game);
* the probability with which a player is present: t, or s for the players that are a tree's own. Owen values (Owen 1977) have the other
  groups come whole with probability t, each member of one's own group with s. Asymmetric values (Frye, Rowat and Feige 2020) have groups in a
  sequence: earlier ones are present, later ones absent, and each member of one's own comes with s;
* whose values are kept, and in which row of phi.

A tree occurs in a game once for each group or player that is its own there, cut to the splits that this one can change.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import check_offset
from ..arrays.ordering import group_starts, pack_pairs, unpack_pairs
from ..game_values import GameValue, Quadrature
from ..jit.decorator import jit
from ..trees.binning import BinnedSplits
from ..trees.ensemble import TreeEnsemble
from ..trees.forest import Forest
from ..trees.paths import Trace, first_splits, most_on_a_path, trace


class Points(NamedTuple):
    """Quadrature points: probabilities with which players are present."""

    nodes: np.ndarray  # (q, kinds of players) float64, see Game.presence
    weights: np.ndarray  # (q,) float64


class Game(NamedTuple):
    """Trees with their players."""

    ensemble: TreeEnsemble
    splits: BinnedSplits
    trace: Trace  # with the splits of each player merged
    node: np.ndarray  # (nodes,) int32, the model's node
    source: np.ndarray  # (trees,) int32, the model's tree, ascending
    gain: np.ndarray  # (nodes,) int32, row of phi for the value of the split's player; n_rows if it is not computed
    presence: np.ndarray  # (nodes,) int8, which column of its tree's points is the probability that the split's player is present
    points: tuple[Points, ...]  # per tree
    n_rows: int  # rows of phi
    n_used: int  # rows of bins: features of splits, and unused ones, as in a statistic


class CutTrees(NamedTuple):
    """Copies of trees, each cut to what its own player can change."""

    ensemble: TreeEnsemble
    splits: BinnedSplits
    node: np.ndarray  # (nodes,) int32, the forest's node
    own: np.ndarray  # (nodes,) int32, the tree's own player; -1 for none, in an uncut tree


class _Copies(NamedTuple):
    """Output of ``_copy_around``."""

    node: np.ndarray  # (nodes,) int32, the forest's
    left: np.ndarray  # (nodes,) int32
    right: np.ndarray  # (nodes,) int32
    counts: np.ndarray  # (nodes,) bool, a leaf whose value depends on the own player
    root: np.ndarray  # (copies,) int32


@jit
def _copy_around(
    order: np.ndarray, start: np.ndarray, children: np.ndarray, player: np.ndarray, trees: np.ndarray, own: np.ndarray, out: _Copies
) -> int:
    """Copy trees, each cut to the splits that have one of its own player at, below or above them; return the number of nodes."""
    left, right = children[0], children[1]
    below, under, kept = np.zeros(order.size, np.bool_), np.zeros(order.size, np.bool_), np.zeros(order.size, np.bool_)
    came = np.zeros(order.size, np.int64)  # twice the parent's new number, plus one for a right child
    n_nodes = 0
    for c in range(trees.size):
        nodes = order[start[trees[c]] : start[trees[c] + 1]]
        for i in range(nodes.size - 1, -1, -1):
            v = nodes[i]
            below[v] = left[v] >= 0 and (own[c] < 0 or player[v] == own[c] or below[left[v]] or below[right[v]])
        kept[nodes[0]], under[nodes[0]], came[nodes[0]] = True, own[c] < 0, -1
        out.root[c] = n_nodes
        for v in nodes:
            goes_on = kept[v] and left[v] >= 0 and (under[v] or below[v])
            if left[v] >= 0:
                for side, child in enumerate((left[v], right[v])):
                    kept[child], under[child], came[child] = goes_on, under[v] or player[v] == own[c], 2 * n_nodes + side
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


def cut_trees(forest: Forest, trees: np.ndarray, own: np.ndarray) -> CutTrees:
    """Copy trees, each cut to what its own player can change; leaves that do not depend on it get value 0."""
    ensemble, splits = forest.ensemble, forest.splits
    start = group_starts(forest.trace.tree, ensemble.root.size)
    most = int((start[1:] - start[:-1])[trees].sum())
    node, left, right = (np.empty(most, np.int32) for _ in range(3))
    out = _Copies(node, left, right, np.empty(most, bool), np.empty(trees.size, np.int32))
    n_nodes = _copy_around(forest.trace.order, start, np.stack((ensemble.left, ensemble.right)), forest.player_of_node, trees, own, out)
    check_offset(n_nodes)
    node, left, right, counts = (array[:n_nodes] for array in out[:4])
    leaf = left < 0
    copied = ensemble._replace(
        **{name: getattr(ensemble, name)[node] for name in ("threshold", "missing_left", "category_set", "cover")},
        feature=np.where(leaf, -1, ensemble.feature[node]).astype(np.int32),
        left=left,
        right=right,
        value=np.where(counts[:, None], ensemble.value[node], 0.0),
        root=out.root,
        output=ensemble.output[trees],
    )
    taken = {name: getattr(splits, name)[node] for name in ("lower", "span", "members")}
    binned = splits._replace(**taken, feature=np.where(leaf, -1, splits.feature[node]).astype(np.int32))
    return CutTrees(copied, binned, node, np.repeat(own, np.diff(np.append(out.root, n_nodes))))


def same_points(rule: Quadrature) -> Points:
    """Make points at which all players have the same probability."""
    return Points(np.stack((rule.nodes, rule.nodes), axis=1), rule.weights)


def product_points(of_others: Quadrature, of_own: Quadrature) -> Points:
    """Make points at which own players have a probability of their own: all pairs of a node t and a node s."""
    t, s = np.meshgrid(of_others.nodes, of_own.nodes, indexing="ij")
    return Points(np.stack((t.ravel(), s.ravel()), axis=1), np.outer(of_others.weights, of_own.weights).ravel())


def points_in_sequence(of_own: Quadrature) -> Points:
    """Make points at which own players have a probability, those of earlier groups are present, and those of later ones absent."""
    return Points(np.stack((of_own.nodes, np.ones_like(of_own.nodes), np.zeros_like(of_own.nodes)), axis=1), of_own.weights)


def points_of_trees(make: Callable[..., Points], *numbers: np.ndarray) -> tuple[Points, ...]:
    """Make every tree's points from its numbers, once for each distinct combination."""
    rows = list(zip(*(array.tolist() for array in numbers), strict=True))
    made = {row: make(*row) for row in set(rows)}
    return tuple(made[row] for row in rows)


def play(forest: Forest, value: GameValue) -> Game:
    """Play the plain game: every player's own value, with a row of phi for each."""
    ensemble, player = forest.ensemble, forest.player_of_node
    traced = trace(ensemble, player, forest.n_players)
    return Game(
        ensemble=ensemble,
        splits=forest.splits,
        trace=traced,
        node=np.arange(player.size, dtype=np.int32),
        source=np.arange(ensemble.root.size, dtype=np.int32),
        gain=player,
        presence=np.zeros(player.size, np.int8),
        points=points_of_trees(lambda n: same_points(value(n)), most_on_a_path(ensemble, traced, first_splits(ensemble, traced))),
        n_rows=forest.n_players,
        n_used=forest.n_used,
    )


def play_owen(forest: Forest, across: GameValue, within: GameValue) -> Game:
    """Play for values of features within groups, the other groups whole; a row of phi for each used feature.

    This is the coalitional value of two game values (Filom et al. 2024, Eq. E.6): the Owen value (Owen 1977) for two Shapley values, and the value of
    the group's own game if the other groups never come.

    Parameters
    ----------
    forest : Forest
        whose players are the groups
    across : GameValue
        of the game that the groups play
    within : GameValue
        of the game that the members of a group play
    """
    feature, group = forest.splits.feature, forest.player_of_node
    tree_of_node = forest.trace.tree
    inner = np.flatnonzero(feature >= 0)
    tree, member = unpack_pairs(np.unique(pack_pairs(tree_of_node[inner], feature[inner])))  # features of every tree, to count those of each group
    keys, n_members = np.unique(pack_pairs(tree, forest.player[member]), return_counts=True)
    several = keys[n_members > 1]
    # Groups with one feature in a tree share a copy without own players.
    single = np.unique(unpack_pairs(keys[n_members == 1])[0])
    tree, of_several = unpack_pairs(several)
    trees = np.concatenate((single, tree)).astype(np.int32)
    own = np.concatenate((np.full(single.size, -1), of_several)).astype(np.int32)
    by_tree = np.argsort(trees, kind="stable")
    trees, own = trees[by_tree], own[by_tree]

    cut = cut_trees(forest, trees, own)
    feature, group = cut.splits.feature, group[cut.node]
    inner_node = feature >= 0
    mine = inner_node & (group == cut.own)
    alone = inner_node & (cut.own < 0) & ~np.isin(pack_pairs(tree_of_node[cut.node], group), several)
    player = np.where(mine, feature, np.where(inner_node, forest.n_used + group, -1)).astype(np.int32)
    traced = trace(cut.ensemble, player, forest.n_used + forest.n_players)
    firsts = first_splits(cut.ensemble, traced)
    return Game(
        ensemble=cut.ensemble,
        splits=cut.splits,
        trace=traced,
        node=cut.node,
        source=trees.astype(np.int32),
        gain=np.where(mine | alone, feature, forest.n_used).astype(np.int32),
        presence=mine.astype(np.int8),
        points=points_of_trees(
            lambda n, n_own, whose: same_points(across(n)) if whose < 0 else product_points(across(n + 1), within(n_own)),
            most_on_a_path(cut.ensemble, traced, firsts & ~mine),
            most_on_a_path(cut.ensemble, traced, firsts & mine),
            own,
        ),
        n_rows=forest.n_used,
        n_used=forest.n_used,
    )


def play_in_sequence(forest: Forest, place: np.ndarray, within: GameValue) -> Game:
    """Play for values of features within groups that come one after the other; a row of phi for each used feature.

    Earlier groups are present and later ones absent (Frye, Rowat and Feige 2020, asymmetric Shapley values for a Shapley value within).

    Parameters
    ----------
    forest : Forest
        whose players are the groups
    place : (players,) int
        of each group in the sequence, all different
    within : GameValue
        of the game that the members of a group play
    """
    group, tree_of_node = forest.player_of_node, forest.trace.tree
    inner = np.flatnonzero(group >= 0)
    trees, own = unpack_pairs(np.unique(pack_pairs(tree_of_node[inner], group[inner])))
    cut = cut_trees(forest, trees, own)
    feature, ahead = cut.splits.feature, place[cut.own] - place[group[cut.node]]  # meaningless at leaves
    mine = (feature >= 0) & (ahead == 0)
    traced = trace(cut.ensemble, feature, forest.n_used)
    return Game(
        ensemble=cut.ensemble,
        splits=cut.splits,
        trace=traced,
        node=cut.node,
        source=trees.astype(np.int32),
        gain=np.where(mine, feature, forest.n_used).astype(np.int32),
        presence=(np.sign(ahead) % 3).astype(np.int8),
        points=points_of_trees(
            lambda n_own: points_in_sequence(within(n_own)),
            most_on_a_path(cut.ensemble, traced, first_splits(cut.ensemble, traced) & mine),
        ),
        n_rows=forest.n_used,
        n_used=forest.n_used,
    )
