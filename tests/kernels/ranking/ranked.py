"""Scores that rank, and what the places of a ranking are."""

import numpy as np

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.ranking.ranked_curves import SCORES
from tests.kernels.attributing import ATOL, attributed, run

SIZES = "probabilistic"  # stands for what write_ranking makes of it
RANKINGS = ("shapley", "banzhaf:0.25", "beta:4:1", "semivalue(atoms=0.25:1,0.5:2,density=0:1,1:0)", SIZES, "ranker:3:0.1:ascent", "ranker")


def write_ranking(ranking, ensemble):
    """The text of a ranking; probabilities of sizes fit the number of features."""
    n = ensemble.n_features
    return f"probabilistic(sizes={','.join(repr(2 * (k + 1) / (n * (n + 1))) for k in range(n))})" if ranking == SIZES else ranking


def expected_ranks(ensemble, order):
    """Place of each feature in a ranking, 0 of those that are not ranked."""
    ranks = np.zeros(ensemble.n_features)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def assert_ranked(ranks, scores):
    """By descending score, all of them; those that lie within rounding of each other in any order."""
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    assert (np.diff(scores[np.argsort(ranks)]) <= ATOL).all()


def curved(ensemble, rows, ranking):
    """Ranks ``(n, outputs, features)``, scores ``(n, outputs, 6)`` and curves ``(outputs, 2 * (features + 1), n)``."""
    prepared = prepare(ensemble, METHODS["curves"], {"ranking": ranking})
    phi = run("curves", prepared, rows, ensemble.n_features + len(SCORES))[0]
    return phi[:, :, : -len(SCORES)], phi[:, :, -len(SCORES) :], attributed("curves", prepared, rows).path[:, :, : len(rows)]
