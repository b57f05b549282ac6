"""Leaves with a background on a card are the definition, and the processor's numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.methods import METHODS
from tests import naive
from tests.kernels.attributing import ATOL
from tests.kernels.cuda.card import EQUAL, both, on, on_card, scattered, tables
from tests.kernels.marginal.against import KEPT, PARAMETERS, WEIGHTS, counted, query_for
from tests.strategies import batches, forests
from tests.trees import chain, grown


def against(name, ensemble, background, kept, group=None, **parameters):
    """A method's tables, with what is said kept of the background."""
    asked = query_for(name, ensemble, group, KEPT[kept])
    return tables(name, ensemble, group, (asked, counted(asked, background)), **(PARAMETERS[name] | parameters))


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4), name=st.sampled_from(sorted(WEIGHTS)))
def test_values_are_those_of_the_definition(data, ensemble, name, kept):
    """By enumeration in exact fractions: several outputs, vector leaves, categories, missing values, whatever is kept of the background."""
    rows, background = data.draw(batches(ensemble, max_rows=3)), data.draw(batches(ensemble, max_rows=4))
    n = ensemble.n_features
    phi = scattered(name, against(name, ensemble, background, kept), rows, n)
    expected = [naive.quotient_semivalue(ensemble, row, np.arange(n), n, WEIGHTS[name], background) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(), name=st.sampled_from(("shapley", "banzhaf", "owen", "asymmetric")))
def test_a_card_agrees_with_the_processor(data, ensemble, name, kept):
    """Groups of features as players, and features within groups, where others are weighed apart or come first."""
    rows, background = data.draw(batches(ensemble, max_rows=3)), data.draw(batches(ensemble, max_rows=5))
    group = np.arange(ensemble.n_features) // 2
    sequence = {"sequence": tuple(range(int(group[-1]), -1, -1))} if name == "asymmetric" else {}
    one, other = both(name, against(name, ensemble, background, kept, group, **sequence), rows)
    assert_allclose(other, one, rtol=0, atol=EQUAL * np.abs(one).max(initial=0))


@pytest.mark.skipif(config.DISABLE_JIT, reason="whose lines are run on shorter paths")
@pytest.mark.parametrize("kept", ["tables and sums", "sums and patterns"])
@pytest.mark.slow
def test_a_path_of_any_number_of_players(kept):
    """Seventy features above a leaf: patterns of two words, and more own players than a block of threads; short paths keep tables or sums."""
    n, rng = 70, np.random.default_rng(7)
    ensemble = chain(rng.permutation(n), rng.normal(size=n + 1), np.ones(n + 1), n)
    rows, background = ((rng.random((size, n)) < 0.97).astype(float) for size in (4, 40))
    rows[0] = 1.0
    prepared = against("shapley", ensemble, background, kept)
    assert prepared.method.patterns.patterns.shape[1] == 2
    assert prepared.method.subsets.first.size > 0
    one, other = both("shapley", prepared, rows)
    assert np.count_nonzero(one) > n
    assert_allclose(other, one, rtol=0, atol=EQUAL * np.abs(one).max())


@pytest.mark.again
@pytest.mark.parametrize("kept", KEPT)
def test_bits_of_a_row_do_not_depend_on_the_others(kept):
    """A row alone, among others, in another block: the same bits."""
    rng = np.random.default_rng(5)
    ensemble, background, rows = grown(rng, 2, 4, 6), rng.normal(size=(20, 6)), rng.normal(size=(7, 6))
    prepared = against("shapley", ensemble, background, kept)
    method = on_card(METHODS["shapley"], prepared)
    together = on(method, prepared, rows)[0]
    assert np.abs(together).max() > 0
    for i in (0, 5, 6):
        assert_array_equal(on(method, prepared, rows[i : i + 1])[0][:, :, 0], together[:, :, i])
    assert_array_equal(on(method, prepared, rows[::-1])[0], together[:, :, ::-1])
