"""A-priori bound of the error of marginal Shapley values that comes from sampling the background."""

import numpy as np

from ..trees.ensemble import TreeEnsemble
from ..trees.forest import make_forest
from .background import list_outcomes


def bound_sampling(ensemble: TreeEnsemble, n_rows: int) -> np.ndarray:
    """Bound the root mean squared error of marginal Shapley values of any row (Filom et al. 2024, Theorem 3.15).

    With T the trees that use a feature, m their comparisons, k their features, p the shares of rows in their leaves, and c the leaf values (also of
    leaves reachable only by mixing two rows) less the component that all leaves of the tree share and that changes no attribution, it is

        4 |T| / sqrt(n_rows) * max (sum p²)^(1/4) * max (1.5 / k (1 + m / k)^k)^(1/4) * max sqrt(sum c²)

    There is no bound for groups of features: m_q nested thresholds of one feature have m_q + 1 outcomes, from which the factor of m and k comes; m_q
    comparisons of several features have up to 2^m_q.

    Parameters
    ----------
    ensemble : TreeEnsemble
        of symmetric trees, whose leaf weights say how many rows of the population are where
    n_rows : int
        of the sample

    Returns
    -------
    (outputs, features) float64, margin units
        0 where no tree asks for a feature

    Raises
    ------
    InvalidParameters
        trees that are not symmetric, or have no weights
    """
    _, forest = make_forest(ensemble)
    trees, outputs = forest.ensemble.root.size, forest.ensemble.base.size
    n_trees, gini, growth, norm = (np.zeros((outputs, forest.n_all)) for _ in range(4))
    for tree in range(trees):
        weighted, outcomes = list_outcomes(forest, tree)
        mine, split = forest.trace.tree == tree, forest.ensemble.feature >= 0
        players, leaves = forest.players[np.unique(forest.player_of_node[mine & split])], np.flatnonzero(mine & ~split)
        share = forest.ensemble.cover[weighted] / forest.ensemble.cover[weighted].sum()
        m, k = outcomes.shape[1], max(1, players.size)
        for column in range(forest.ensemble.value.shape[1]):
            output = forest.ensemble.output[tree] + column
            n_trees[output, players] += 1
            for most, found in (
                (gini, (share**2).sum()),
                (growth, 1.5 / k * (1 + m / k) ** k),
                (norm, np.sqrt((forest.ensemble.value[leaves, column] ** 2).sum())),
            ):
                most[output, players] = np.maximum(most[output, players], found)
    return 4 * n_trees * gini**0.25 * growth**0.25 * norm / np.sqrt(n_rows)
