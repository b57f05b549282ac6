"""Game values as quadratures: a semivalue is an integral over [0, 1] of the game's gradient, and a finite sum where the game is a tree's.

At the point t every feature is present with probability t. A path of d distinct features makes the integrand a polynomial of degree
d - 1 in t, so a Gauss rule of ceil(d / 2) nodes is exact (Li, Yu and Low 2026, TreeGrad-Shap, with Gauss instead of fixed nodes).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import roots_jacobi


class Quadrature(NamedTuple):
    """Nodes in [0, 1] and weights that sum to one."""

    nodes: np.ndarray  # (q,) float64
    weights: np.ndarray  # (q,) float64


def shapley(n_players: int) -> Quadrature:
    """Gauss–Legendre on [0, 1], exact for trees whose paths hold at most ``n_players`` distinct features."""
    nodes, weights = np.polynomial.legendre.leggauss(max(1, (n_players + 1) // 2))
    return Quadrature((nodes + 1) / 2, weights / 2)


def banzhaf(n_players: int, p: float) -> Quadrature:  # noqa: ARG001 - every game value takes the number of players
    """One node at ``p``: weighted Banzhaf, every other feature present with probability p; the Banzhaf value at 1/2, the effect of adding a
    feature to nothing at 0, of taking it from all at 1."""
    return Quadrature(np.array([p]), np.ones(1))


def beta(n_players: int, alpha: float, beta: float) -> Quadrature:
    """Gauss–Jacobi for the density t^(beta - 1) (1 - t)^(alpha - 1): Beta(alpha, beta) of Kwon and Zou 2022, for any real parameters above 0.

    Exact with as few nodes as the Shapley value, which is Beta(1, 1). A large alpha weighs small coalitions, a large beta large ones.
    """
    nodes, weights = roots_jacobi(max(1, (n_players + 1) // 2), alpha - 1, beta - 1)
    return Quadrature((nodes + 1) / 2, weights / weights.sum())
