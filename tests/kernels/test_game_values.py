"""Quadratures integrate what the values need, exactly."""

from fractions import Fraction

import numpy as np
import pytest

from kernels.game_values import banzhaf, beta, shapley


@pytest.mark.parametrize("n_players", [0, 1, 2, 3, 6, 7, 30, 101])
def test_shapley_integrates_every_polynomial_it_meets(n_players):
    """Powers below the number of players have the integral 1 / (power + 1); the nodes lie inside (0, 1), as few as possible."""
    nodes, weights = shapley(n_players)
    assert nodes.size == max(1, -(-n_players // 2))
    assert ((nodes > 0) & (nodes < 1)).all()
    for power in range(max(1, n_players)):
        assert abs(float(np.sum(weights * nodes**power) - Fraction(1, power + 1))) < 1e-14


def test_banzhaf_is_one_point():
    """Every other feature is present with probability p."""
    assert [part.tolist() for part in banzhaf(9, 0.3)] == [[0.3], [1.0]]


@pytest.mark.parametrize("n_players", [1, 2, 9, 40])
def test_beta_with_even_parameters_is_shapley(n_players):
    """Beta(1, 1) has the nodes and weights of the Shapley value."""
    for mine, theirs in zip(beta(n_players, 1.0, 1.0), shapley(n_players), strict=True):
        assert np.abs(mine - theirs).max() < 1e-14
