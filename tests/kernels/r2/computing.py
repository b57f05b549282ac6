"""Trees of a regression in preorder with rows to work on, and the Shapley values of their games by definition."""

from fractions import Fraction

import numpy as np

from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.jit.lanes import LANES
from leafledger.kernels.r2.preorder import Workspace, descend, lay_out_preorder
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.strategies import forests

# Leaves are at most 2 in size, and a value at most 16: what is left is rounding of sums of some hundred terms.
ATOL = 1e-13


def regressions(**shape):
    """Forests of one output."""
    return forests(**shape).filter(lambda ensemble: ensemble.base.size == 1)


def in_preorder(ensemble):
    """How values become bins, the forest, and its trees."""
    bins, forest = make_forest(ensemble)
    return bins, forest, frozen(lay_out_preorder(forest))


def n_splits(trees, t):
    """Of one tree."""
    return int(trees.start[t + 1] - trees.start[t])


def descended(tables, trees, t, rows, places=0):
    """A workspace after at most LANES rows went down a tree, with room for as many players as nodes."""
    values = np.zeros((tables.column.size, padded(LANES)))
    values[:, : len(rows)] = rows.T[tables.column]
    bins = np.zeros(values.shape, bin_dtype(tables))
    bin_rows(values, tables, bins)
    nodes = 2 * n_splits(trees, t) + 1
    sizes = (nodes, max(nodes, places), nodes, nodes)
    work = Workspace(np.zeros(LANES, bins.dtype), *(np.full(size * LANES, np.nan) for size in sizes))
    descend(trees, t, bins.reshape(-1), bins.shape[1], 0, work)
    return work


def one_by_one(ensemble):
    """Every tree as an ensemble of its own, without a base value."""
    return [ensemble._replace(root=ensemble.root[t : t + 1], output=ensemble.output[t : t + 1], base=np.zeros(1)) for t in range(ensemble.root.size)]


def shapley_values(tree, row):
    """Shapley values of a tree's game less its mean, and of that squared, by feature in exact fractions (Jiang, Zhang and Zhang 2025, Section 4)."""
    n, subsets = tree.n_features, [frozenset(j for j in range(tree.n_features) if s >> j & 1) for s in range(1 << tree.n_features)]
    m = {s: naive.coalition_value(tree, row, s, 0) for s in subsets}
    phi, of_square = [Fraction(0)] * n, [Fraction(0)] * n
    for j in range(n):
        for s in (some for some in subsets if j not in some):
            weight, one, other = naive.shapley_weight(len(s), n), m[s | {j}] - m[frozenset()], m[s] - m[frozenset()]
            phi[j] += weight * (one - other)
            of_square[j] += weight * (one**2 - other**2)
    return np.array(phi, float), np.array(of_square, float)


def computed(work, trees, t, forest, n_features, i):
    """Of row i, the Shapley values of a tree's game and of its square that a workspace holds, by feature."""
    players = trees.player[trees.player_start[t] : trees.player_start[t + 1]]
    found = np.zeros((2, n_features))
    for array, held in zip(found, (work.phi, work.phi_of_square), strict=True):
        array[forest.players[players]] = held.reshape(-1, LANES)[: players.size, i]
    return found
