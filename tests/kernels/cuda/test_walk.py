"""The walk on a card is the definition, and the processor's numbers within rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.cuda import card as module
from leafledger.kernels.cuda import memory
from leafledger.kernels.cuda import tables as on_the_card
from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees import lookup
from tests import naive
from tests.kernels.attributing import ATOL, WEIGHTS
from tests.kernels.cuda.card import EQUAL, both, on, on_card, scattered, tables
from tests.strategies import batches, forests
from tests.trees import chain, grown, join

VALUES = (("shapley", {}), ("banzhaf", {"p": 0.5}), ("banzhaf", {"p": 0.125}), ("banzhaf", {"p": 1.0}), ("beta", {"alpha": 4.0, "beta": 1.0}))
SEVERAL = ((0.0, 1.0), (0.25, 2.0), (0.5, 1.0), (0.75, 3.0), (1.0, 4.0))


@pytest.fixture(autouse=True)
def nothing_is_looked_up(monkeypatch):
    monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)


@given(data=st.data(), ensemble=forests(), name=st.sampled_from(sorted(WEIGHTS)))
def test_values_on_a_card_are_the_definition(data, ensemble, name):
    """Phi equals the enumeration of all coalitions in exact fractions: several outputs, vector leaves, categories, missing values, covers of 0."""
    rows = data.draw(batches(ensemble, max_rows=3))
    prepared = tables(name, ensemble)
    phi = scattered(name, prepared, rows, ensemble.n_features)
    assert_allclose(phi, [naive.semivalue(ensemble, row, WEIGHTS[name]) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(), value=st.sampled_from((*VALUES, ("semivalue", {"atoms": SEVERAL}))))
def test_a_card_agrees_with_the_processor(data, ensemble, value):
    """Any semivalue, at a single node and at more than a walk takes; groups of features are players."""
    name, given_ = value
    rows = data.draw(batches(ensemble, max_rows=3))
    for group in (None, np.arange(ensemble.n_features) // 2):
        prepared = tables(name, ensemble, group, **given_)
        if module.find_obstacle(METHODS[name], prepared) == "":
            one, other = both(name, prepared, rows)
            assert_allclose(one, other, rtol=0, atol=ATOL)


def test_a_branch_without_training_weight_where_nobody_is_present_is_refused():
    """Where t = 0 and a' = 0 the factor F' is 0, and its share has a limit that the card's records cannot say."""
    prepared = tables("banzhaf", chain([0, 0], [1.0, 2.0, 3.0], [1.0, 0.0, 0.0], 1), p=0.0)
    found = module.find_obstacle(METHODS["banzhaf"], prepared)
    assert found == "a branch without training weight has no value where no player is present"


@pytest.mark.parametrize("depth", [3, 5 if config.DISABLE_JIT else 9])  # threads that play a card and are traced take minutes
@pytest.mark.slow
def test_bits_of_a_row_do_not_depend_on_the_others(depth):
    """A row alone, among others, in another block: the same bits."""
    rng = np.random.default_rng(depth)
    prepared, rows = tables("shapley", grown(rng, 2, depth, 6)), rng.normal(size=(7, 6))
    method = on_card(METHODS["shapley"], prepared)
    together = on(method, prepared, rows)[0]
    for i in (0, 5, 6):
        assert_array_equal(on(method, prepared, rows[i : i + 1])[0][:, :, 0], together[:, :, i])
    assert_array_equal(on(method, prepared, rows[::-1])[0], together[:, :, ::-1])


@pytest.mark.parametrize("n_levels", [1, 31, 40, 63])
def test_deep_trees(n_levels):
    """As many levels as there are bits for, with few features that come again and again, and walks of four nodes and one."""
    rng = np.random.default_rng(n_levels)
    ensemble = chain(rng.integers(0, 9, n_levels), rng.normal(size=n_levels + 1), rng.random(n_levels + 1) + 0.1, 9)
    one, other = both("shapley", tables("shapley", ensemble), rng.normal(0.5, 1.0, size=(3, 9)))
    assert_allclose(one, other, rtol=0, atol=EQUAL * np.abs(one).max())


def test_trees_that_are_too_deep_are_refused():
    rng = np.random.default_rng(0)
    prepared = tables("shapley", chain(rng.integers(0, 5, 64), rng.normal(size=65), rng.random(65) + 0.1, 5))
    assert module.find_obstacle(METHODS["shapley"], prepared) == "trees have 64 levels of splits, at most 63 are possible"


def test_sums_that_do_not_fit_into_shared_memory(monkeypatch):
    """Many features: sums go to the card's memory at once, those of one number of nodes after the other, and are the same within rounding."""
    rng = np.random.default_rng(1)
    prepared, rows = tables("shapley", join([grown(rng, 1, 4, 6), grown(rng, 1, 2, 6)])), rng.normal(size=(5, 6))
    shared = on(on_card(METHODS["shapley"], prepared), prepared, rows)[0]
    monkeypatch.setattr(on_the_card, "SHARED_BYTES", 0)
    monkeypatch.setattr(memory, "MEMORY", memory.Memory())
    assert_allclose(on(on_card(METHODS["shapley"], prepared), prepared, rows)[0], shared, rtol=0, atol=ATOL)
