"""The two-step Shapley value is that of its definition, walked and looked up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from tests import naive
from tests.kernels.attributing import ATOL, explain, run
from tests.strategies import batches, forests, partitions
from tests.trees import chain

FEW_ROWS = 2


@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_values_are_those_of_the_definition(data, ensemble):
    """In exact fractions (Kamijo 2009); they add up, and within a group to the group's Shapley value in the game of groups."""
    rows, group = data.draw(batches(ensemble, FEW_ROWS)), data.draw(partitions(ensemble))
    phi, base, margin = run("two_step", prepare(ensemble, METHODS["two_step"], {}, group), rows, ensemble.n_features)
    assert_allclose(phi, [naive.two_step(ensemble, row, group) for row in rows], rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)
    of_groups, _, _ = run("shapley", prepare(ensemble, METHODS["shapley"], {}, group), rows, int(group.max()) + 1)
    for g in range(group.max() + 1):
        assert_allclose(phi[:, :, group == g].sum(axis=2), of_groups[:, :, g], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
def test_groups_of_one_share_nothing(data, ensemble):
    """Where every feature is a group, the two steps are one: Shapley values."""
    rows = data.draw(batches(ensemble, FEW_ROWS))
    prepared = prepare(ensemble, METHODS["two_step"], {}, np.arange(ensemble.n_features))
    assert_allclose(run("two_step", prepared, rows, ensemble.n_features)[0], explain("shapley", ensemble, rows)[0], rtol=0, atol=ATOL)


def test_a_feature_in_no_split_shares_what_its_group_wins_together():
    """Features 0 and 1 decide together, 1 is grouped with 2, which nothing asks for: of the interaction that 1 brings its group each gets half.

    Both present the margin is 1, one absent 1/2, both absent 1/4: alone features 0 and 1 get 1/4, groups get 3/8 each, so 1/8 is shared by 1 and 2.
    """
    ensemble = chain(np.array([0, 1]), np.array([0.0, 0.0, 1.0]), np.array([2.0, 1.0, 1.0]), 3)
    prepared = prepare(ensemble, METHODS["two_step"], {}, np.array([0, 1, 1]))
    phi, base, margin = run("two_step", prepared, np.ones((1, 3)), 3)
    assert_allclose((base[0], margin[0, 0]), (0.25, 1.0), rtol=1e-15)
    assert_allclose(phi[0, 0], [3 / 8, 1 / 4 + 1 / 16, 1 / 16], rtol=0, atol=ATOL)
