"""Weights of interaction indices: exact for any product of factors, with as few points as they need."""

from fractions import Fraction

import numpy as np
import pytest

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.game_values import banzhaf, beta, shapley
from leafledger.kernels.set_indices import INDICES, of_index, of_value
from tests import naive_sets
from tests.kernels.interacting import point

ROUNDED = 1e-15  # of weights, relative to their magnitudes


@pytest.mark.again
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("n_players", [1, 2, 5])
def test_weights_are_those_of_a_game_of_one_coalition(index, order, n_players):
    """In the game that is 1 where everybody is present, and else 0, a set's index is the weight of the others' being there: t^others."""
    found, (nodes, weights) = of_index(index, order), of_index(index, order).rule(n_players)
    expected = naive_sets.by_index(lambda S: Fraction(len(S) == n_players), n_players, index, order)
    for members, value in expected.items():
        size, others = len(members), n_players - len(members)
        assert abs(weights[size - 1] @ nodes**others - float(value)) < 1e-14
        assert abs(found.coalitions(others + 1)[size - 1, others, 0] - float(value)) < ROUNDED


@pytest.mark.again
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("n_players", [3, 6, 14, 24])
def test_points_and_coalitions_agree_on_every_product(index, n_players):
    """Of so many factors t and 1 - t, with order 3: rules with fewer points than equations are as exact."""
    value = of_index(index, 3)
    (nodes, weights), coalitions = value.rule(n_players), value.coalitions(n_players)
    for size in (1, 2, 3):
        for present in range(n_players - size + 1):
            absent = n_players - size - present
            found = weights[size - 1] @ (nodes**present * (1 - nodes) ** absent)
            assert abs(found - coalitions[size - 1, present, absent]) < ROUNDED * max(1, np.abs(weights[size - 1]).sum())


@pytest.mark.parametrize(("index", "n_points"), [("SII", 7), ("BII", 1), ("k-SII", 14), ("STII", 14), ("FSII", 14), ("Moebius", 14)])
def test_positive_measures_need_half_the_points_and_banzhafs_one(index, n_points):
    """Of paths of 14 players."""
    assert of_index(index, 3).rule(14).nodes.size == n_points


def test_signed_weights_of_n_shapley_values_grow_slowly():
    """Their magnitudes, of single players with sets of up to three: 9, 111 and 301, so that at most three digits are lost."""
    assert [round(float(np.abs(of_index("k-SII", 3).rule(n).weights).sum(axis=1).max())) for n in (6, 14, 20)] == [9, 111, 301]


@pytest.mark.slow
def test_weights_that_would_lose_digits_are_refused():
    """Sets of up to eight on paths of 40 players."""
    with pytest.raises(InvalidParameters, match=r"index 'FBII' of order 8 on paths of 40 players has weights of up to 2\.89e\+07 that"):
        of_index("FBII", 8).rule(40)


@pytest.mark.parametrize(("value", "index"), [(shapley, "SII"), (lambda n: banzhaf(n, 0.5), "BII"), (lambda n: banzhaf(n, 0.0), "Moebius")])
def test_measures_of_game_values_are_indices(value, index):
    """Shapley's and Banzhaf's, and that of nobody else, which lies on the border and is moved inside."""
    by_value, by_name = of_value(value, 3), of_index(index, 3)
    assert not by_value.adds_up
    known = np.add.outer(np.arange(7), np.arange(7)) < 7  # coalitions of six others
    assert np.abs(by_value.coalitions(7) - by_name.coalitions(7))[:, known].max() < ROUNDED
    nodes, weights = by_value.rule(7)
    assert weights.shape == (3, nodes.size)
    assert ((nodes > 0) & (nodes < 1)).all()
    assert abs(weights[0] @ nodes**2 - by_name.coalitions(7)[0, 2, 0]) < 1e-14


def test_measures_keep_their_points():
    """One for weighted Banzhaf values, half as many as players for Beta values, whose weights are their moments."""
    assert of_value(lambda n: banzhaf(n, 0.3), 3).rule(10).nodes.tolist() == [0.3]
    assert of_value(lambda n: beta(n, 2.0, 3.0), 3).rule(10).nodes.size == 5
    assert of_value(lambda n: banzhaf(n, 0.3), 2).coalitions(4)[1, 2, 1] == pytest.approx(float(point(0.3)(2, 4)), rel=1e-12)
