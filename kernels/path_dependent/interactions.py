"""Shapley interactions of player pairs in the path-dependent game: walks with partners of every split.

With D_k = o - a, the slope in t of a factor F_k = (1 - t) a + t o, the interaction of i and j is the sum over leaves and points t of weight * value *
D_i * D_j * product of the other factors (Grabisch and Roubens 1999, for any semivalue). It telescopes as single values do (see ``quadrature``), over
the splits of either player below an edge of the other:

    pair += (o a' - o' a) sum over nodes of weight * S * D / F'(o' = 1)^2 * D_k / F_k    for every other player k above the split

with k's nearest edge above. D_k / F_k is -1 / (1 - t) where the row leaves that edge's path, for any a, and otherwise (1 - a) / F_k: a constant of
the edge, added where the bit is 1. So the walk is that of single values, with each product added to a few more rows.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..arrays.ordering import pack_pairs, unpack_pairs
from ..game_values import GameValue, Quadrature, interior
from ..trees.forest import Forest
from ..trees.paths import first_splits, most_on_a_path, trace
from ..trees.player_sets import find_above
from .games import Game, points_of_trees, same_points
from .walks import (
    STEP_KIND,
    WALK_DOWN,
    WALK_DOWN_AGAIN,
    Walks,
    WalkTables,
    find_places,
    lay_out_steps,
    lay_out_walks,
    no_walk_tables,
    order_splits,
)


class Partners(NamedTuple):
    """For every split, the other players above it, which interact with its own player."""

    start: np.ndarray  # (nodes + 1,) int64, node v's partners are start[v]:start[v + 1]; leaves have none
    edge: np.ndarray  # (partners,) int32, the node that the partner's nearest edge leads to
    row: np.ndarray  # (partners,) int32, row of the pair


class PairGame(NamedTuple):
    """A game for interactions of its players, with a row for each pair."""

    game: Game  # the game without single values
    partners: Partners


class StepPartners(NamedTuple):
    """Partners of the splits in the upward steps of Walks."""

    start: np.ndarray  # (steps + 1,) int64, step s has partners[start[s]:start[s + 1]]
    partners: np.ndarray  # (partners, 3) int32: the pair's row, the place of the partner's bit, and the start of its constants
    present: np.ndarray  # float64, for every edge and node: increase of D_k / F_k if the bit is 1


NO_PARTNERS = StepPartners(np.zeros(1, np.int64), np.zeros((0, 3), np.int32), np.zeros(0))  # of no steps


class PairWalkTables(NamedTuple):
    """Walks with their partners, grouped by the number of quadrature nodes."""

    walks: WalkTables
    partners: tuple[StepPartners, StepPartners, StepPartners, StepPartners]

    def of_tree(self, tree: int) -> "PairWalkTables":
        """Select the walks of one of the model's trees, as ``Walks.of_tree`` does."""
        return self._replace(walks=self.walks.of_tree(tree))


def play_pairs(forest: Forest, value: GameValue) -> tuple[PairGame, np.ndarray]:
    """Play for interactions of all pairs i < j.

    Parameters
    ----------
    value : GameValue
        of the game in which the two are one player

    Returns
    -------
    played : PairGame
    pairs : (rows, 2) int32
        players that share a path, ascending; no others interact
    """
    ensemble, player = forest.ensemble, forest.player_of_node
    traced = trace(ensemble, player, forest.n_players)
    start, edge, partner = find_above(ensemble, traced, player, forest.n_players)
    mine = np.repeat(player, np.diff(start))
    keys, row = np.unique(pack_pairs(np.minimum(mine, partner), np.maximum(mine, partner)), return_inverse=True)

    def points(n_players: int) -> Quadrature:
        n_terms = max(1, n_players - 1)
        return interior(value(n_terms), n_terms)

    game = Game(
        ensemble=ensemble,
        splits=forest.splits,
        trace=traced,
        node=np.arange(player.size, dtype=np.int32),
        source=np.arange(ensemble.root.size, dtype=np.int32),
        gain=np.full(player.size, keys.size, np.int32),
        presence=np.zeros(player.size, np.int8),
        points=points_of_trees(lambda n: same_points(points(n)), most_on_a_path(ensemble, traced, first_splits(ensemble, traced))),
        n_rows=keys.size,
        n_used=forest.n_used,
    )
    return PairGame(game, Partners(start, edge, row.astype(np.int32))), np.stack(unpack_pairs(keys), axis=1).astype(np.int32)


def _find_step_partners(played: PairGame, walks: Walks, q: int) -> StepPartners:
    if not walks.tree.size:
        return NO_PARTNERS
    game, partners = played
    splits = order_splits(game)
    steps = lay_out_steps(game, splits, game.splits, walks.tree)
    node, walk = steps.node[steps.split], steps.walk[steps.split]
    n_partners = np.diff(partners.start)[node]
    n_partners[np.isin(steps.columns[:, STEP_KIND], (WALK_DOWN, WALK_DOWN_AGAIN))] = 0
    start = np.concatenate(([0], np.cumsum(n_partners)))
    taken = np.arange(start[-1]) + np.repeat(partners.start[node] - start[:-1], n_partners)
    edge = partners.edge[taken]

    in_tree = np.zeros(game.node.size, np.int64)  # position of a split among its tree's
    in_tree[splits.node] = np.arange(splits.node.size) - splits.start[game.trace.tree[splits.node]]
    n_splits = np.diff(splits.start)[walks.tree]
    first_split = np.cumsum(n_splits) - n_splits
    constants = q * (first_split[np.repeat(walk, n_partners)] + in_tree[edge])
    a, t = game.trace.absent[steps.node][:, None], walks.nodes[steps.walk]
    return StepPartners(
        start=start,
        partners=narrow(np.stack((partners.row[taken], find_places(game, splits)[edge], constants), axis=1)),
        present=((1 - a) / ((1 - t) * a + t) + 1 / (1 - t)).reshape(-1),
    )


def no_pair_walk_tables(width: int, words: np.ndarray) -> PairWalkTables:
    """Make the tables of no walks.

    Parameters
    ----------
    width : int
        numbers in a leaf of the model
    words : uint32, sets of bins, see BinnedSplits
    """
    return PairWalkTables(no_walk_tables(width, words), (NO_PARTNERS, NO_PARTNERS, NO_PARTNERS, NO_PARTNERS))


def lay_out_pair_walks(played: PairGame, trees: Iterable[int]) -> PairWalkTables:
    """Lay out trees as walks with partners.

    Parameters
    ----------
    trees : iterable of int
        trees of the game; walks keep their order
    """
    walks = lay_out_walks(played.game, trees)
    one, two, three, four = (_find_step_partners(played, some, q) for q, some in enumerate(walks, 1))
    return PairWalkTables(walks, (one, two, three, four))
