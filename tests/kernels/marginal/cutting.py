"""Models cut into subtrees and played against a background, and what the tests of the parts hold that against: which players a row fails."""

import numpy as np

from leafledger.kernels.game_values import shapley, weigh_by_value
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.marginal.background import count_background, n_words
from leafledger.kernels.marginal.game import Levels, MarginalGame
from leafledger.kernels.marginal.patterns import add_patterns
from leafledger.kernels.marginal.subsets import add_subsets
from leafledger.kernels.marginal.subtrees import Partitioner
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.lookup import LOOKUP_ROWS, WORD_BITS, add_lookups, make_codes
from tests import naive

SHAPLEY = Levels(None, weigh_by_value(shapley))
OWEN = Levels(weigh_by_value(shapley), weigh_by_value(shapley))


def cut(ensemble, most_bits):
    """How values become bins, the forest and its subtrees, with features as players."""
    bins, forest = make_forest(ensemble)
    return bins, forest, frozen(Partitioner(forest, forest.player_of_node).partition(most_bits))


def binned(tables, rows):
    """Bins of a few rows, padded."""
    values = np.zeros((tables.column.size, padded(len(rows))))
    values[:, : len(rows)] = rows.T[tables.column]
    bins = np.zeros(values.shape, bin_dtype(tables))
    bin_rows(values, tables, bins)
    return bins


def codes_of(subtrees, bins, n_rows):
    """Codes as whole numbers of any size, a list of every subtree's."""
    words, found = n_words(subtrees), []
    codes, members = np.empty(words * LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype)
    for u in range(subtrees.size):
        make_codes(bins.reshape(-1), bins.shape[1], 0, bins.shape[1], subtrees, u, codes, members)
        found.append([sum(int(codes[w * LOOKUP_ROWS + i]) << WORD_BITS * w for w in range(words)) for i in range(n_rows)])
    return found


def leaves_of(subtrees, u):
    """Numbers of a subtree's leaves among all."""
    return range(subtrees.leaves.start[u], subtrees.leaves.start[u + 1])


def failed_by_code(subtrees, u, leaf, code):
    """Players that a row with this code fails on its way to a leaf of the subtree."""
    players = subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]].tolist()
    above = {players[bit] for bit in range(subtrees.n_above[u]) if code >> bit & 1}
    edges = subtrees.leaves.edges[subtrees.leaves.edge_start[leaf] : subtrees.leaves.edge_start[leaf + 1]].tolist()
    return frozenset(above | {players[player] for bit, outcome, player in edges if code >> bit & 1 != outcome})


def way_to(ensemble, node):
    """Splits above a node, the lowest first, each with the side that leads to the node: true for the left."""
    way = []
    while (parent := np.flatnonzero((ensemble.left == node) | (ensemble.right == node))).size:
        way.append((int(parent[0]), bool(ensemble.left[parent[0]] == node)))
        node = parent[0]
    return way


def failed(ensemble, node, row):
    """Features of the splits at which the row turns off the way to a node."""
    return frozenset(int(ensemble.feature[v]) for v, left in way_to(ensemble, node) if naive.goes_left(ensemble, v, row[ensemble.feature[v]]) != left)


def play(ensemble, rows, background, views, levels, kept, group=None):
    """phi ``(n, outputs, features)`` of rows against a background of few rows, where ``kept`` is most bits of a code, and of summed leaves."""
    tables, forest, partitioning = cut(ensemble, kept[0])
    of_player = (np.arange(ensemble.n_features) if group is None else np.asarray(group)).astype(np.int32)[forest.column]
    game = MarginalGame(forest, partitioning, count_background(binned(tables, background), partitioning, len(background)), of_player, kept[1])
    looked_up, subsets, patterns = map(frozen, game.play(views, levels, forest.n_used))
    bins = binned(tables, rows)
    found = np.zeros((ensemble.base.size, forest.n_used, bins.shape[1]))
    add_lookups(bins, looked_up, found.reshape(-1, bins.shape[1]))
    add_subsets(bins, subsets, found)
    add_patterns(bins, patterns, found)
    phi = np.zeros((len(rows), ensemble.base.size, ensemble.n_features))
    phi[:, :, forest.column] = found[:, :, : len(rows)].transpose(2, 0, 1)
    return phi
