"""Scores that rank, and what the places of a ranking are."""

import numpy as np

from kernels.methods import METHODS
from kernels.prepare import prepare
from tests.kernels.attributing import attributed, run


def expected_ranks(ensemble, order):
    """Place of each feature in a ranking, 0 of those that are not ranked."""
    ranks = np.zeros(ensemble.n_features)
    ranks[order] = np.arange(1, len(order) + 1)
    return ranks


def curved(ensemble, rows, ranking):
    """Ranks ``(n, outputs, features)``, areas ``(n, outputs, 2)`` and curves ``(outputs, 2 * (features + 1), n)``."""
    prepared = prepare(ensemble, METHODS["curves"], {"ranking": ranking})
    phi = run("curves", prepared, rows, ensemble.n_features + 2)[0]
    return phi[:, :, :-2], phi[:, :, -2:], attributed("curves", prepared, rows).path[:, :, : len(rows)]
