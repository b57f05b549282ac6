"""Pairs of leaves give the Shapley values of a tree's game and of its square, for trees of any shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.game_values import shapley
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.r2.leaf_pairs import make_passes, pair_leaves
from tests.kernels.r2.computing import ATOL, computed, descended, in_preorder, n_splits, one_by_one, regressions, shapley_values
from tests.strategies import batches
from tests.trees import chain, symmetric


def paired(tables, trees, t, rows, n_players):
    """A workspace with the values of one tree, from a quadrature for so many players."""
    work, nodes = descended(tables, trees, t, rows), 2 * n_splits(trees, t) + 1
    pair_leaves(trees, t, frozen(np.stack(shapley(n_players), axis=1)), work, make_passes(nodes, nodes))
    return work


@given(data=st.data(), ensemble=regressions(max_features=4))
def test_values_are_those_of_the_game_and_of_its_square(data, ensemble):
    """By enumeration of all sets of features in exact fractions, of every tree with a split: two paths have no more players than there are."""
    rows = data.draw(batches(ensemble, max_rows=2))
    tables, forest, trees = in_preorder(ensemble)
    for t, tree in enumerate(one_by_one(ensemble)):
        if n_splits(trees, t):
            work = paired(tables, trees, t, rows, ensemble.n_features)
            for i, row in enumerate(rows):
                assert_allclose(computed(work, trees, t, forest, ensemble.n_features, i), shapley_values(tree, row), rtol=0, atol=ATOL)


@pytest.mark.parametrize("n_points_for", [4, 9])
def test_more_points_than_needed_change_nothing(n_points_for):
    """The quadrature is exact with those for the players of two paths."""
    rng = np.random.default_rng(2)
    ensemble, rows = symmetric(rng, (0, 1, 2, 1, 3), 4), rng.standard_normal((3, 4))
    tables, forest, trees = in_preorder(ensemble)
    work = paired(tables, trees, 0, rows, n_points_for)
    for i, row in enumerate(rows):
        assert_allclose(computed(work, trees, 0, forest, 4, i), shapley_values(ensemble, row), rtol=0, atol=ATOL)


def test_a_split_that_no_weight_reached_counts_half():
    """Where a whole branch has no cover, and a row goes there all the same."""
    ensemble = chain([0, 1, 0], [1.0, -2.0, 3.0, 4.0], [2.0, 0.0, 0.0, 0.0], 2)
    tables, forest, trees = in_preorder(ensemble)
    rows = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    work = paired(tables, trees, 0, rows, 2)
    for i, row in enumerate(rows):
        assert_allclose(computed(work, trees, 0, forest, 2, i), shapley_values(ensemble, row), rtol=0, atol=ATOL)
