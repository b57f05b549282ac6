"""Interactions of two players of the path-dependent game."""

import numpy as np

from ..game_values import GameValue, Quadrature
from ..ordering import pack_pairs, unpack_pairs
from ..trees.forest import Forest
from ..trees.paths import first_splits, most_on_a_path, trace
from .games import Game, cut_trees, points_of_trees, product_points

PRESENCE = Quadrature(np.array([1.0, 0.0]), np.array([1.0, -1.0]))  # with the other player, less without it


def play_pairs(forest: Forest, value: GameValue) -> tuple[Game, np.ndarray]:
    """Play for interactions of two players, i < j: j's value where i is present less that where i is absent (Grabisch and Roubens 1999).

    Parameters
    ----------
    forest : Forest
    value : GameValue
        of the game in which the two are one player

    Returns
    -------
    game : Game
        phi has a row per pair
    pairs : (rows, 2) int32
        players that share a path, ascending; no others interact
    """
    player = forest.player_of_node
    inner = np.flatnonzero(player >= 0)
    tree, lower = unpack_pairs(np.unique(pack_pairs(forest.trace.tree[inner], player[inner])))
    has_higher = np.flatnonzero(tree[1:] == tree[:-1])  # all but each tree's last player, who is nobody's lower one
    trees, own = tree[has_higher].astype(np.int32), lower[has_higher].astype(np.int32)
    cut = cut_trees(forest, trees, own)
    player = np.where(cut.splits.feature < 0, -1, player[cut.node]).astype(np.int32)
    asked = player > cut.own
    keys, row = np.unique(pack_pairs(cut.own[asked], player[asked]), return_inverse=True)
    gain = np.full(player.size, keys.size, np.int32)
    gain[asked] = row
    traced = trace(cut.ensemble, player, forest.n_players)
    game = Game(
        ensemble=cut.ensemble,
        splits=cut.splits,
        trace=traced,
        node=cut.node,
        source=trees,
        gain=gain,
        own=player == cut.own,
        points=points_of_trees(
            lambda n: product_points(value(max(1, n - 1)), PRESENCE), most_on_a_path(cut.ensemble, traced, first_splits(cut.ensemble, traced))
        ),
        n_rows=keys.size,
    )
    return game, np.stack(unpack_pairs(keys), axis=1).astype(np.int32)
