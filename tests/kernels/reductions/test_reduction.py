"""Reductions: equal to NumPy on all rows, whatever the slices; merged in the order of parts to the same bits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from leafledger.kernels.reductions.reduction import MEANS, MOMENTS, merge_all


def states_of(phi, cuts):
    """A state per slice of ``phi (outputs, used, n)``."""
    slices = np.split(phi, cuts, axis=2)
    empty = MOMENTS.init(*phi.shape[:2])
    return [MOMENTS.update(empty, np.ascontiguousarray(part), part.shape[2]) for part in slices]


@given(st.integers(0, 2**32), st.lists(st.integers(0, 500), max_size=20))
def test_any_slicing_gives_the_moments_of_all_rows(seed, cuts):
    """Mean of |phi|, mean, standard deviation, extremes and rank are NumPy's, even far from zero."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(2, 3, 500)) * rng.choice([1e-3, 1, 1e3], (2, 3, 1)) + rng.choice([0, 1e6], (2, 3, 1))
    merged = merge_all(MOMENTS, states_of(phi, sorted(cuts)), 2, 3)
    found = MOMENTS.finalize(merged, np.array([3, 0, 1]), 5)
    everywhere = np.zeros((2, 5, 500))
    everywhere[:, [3, 0, 1]] = phi
    mean_abs = np.abs(everywhere).mean(axis=2)
    assert_allclose(found["mean_abs"], mean_abs, rtol=1e-12)
    assert_allclose(found["mean"], everywhere.mean(axis=2), rtol=1e-9, atol=1e-9)
    assert_allclose(found["std"], everywhere.std(axis=2), rtol=1e-7)
    assert (found["min"] == everywhere.min(axis=2)).all()
    assert (found["max"] == everywhere.max(axis=2)).all()
    for k in range(2):
        assert sorted(found["rank"][k]) == [1, 2, 3, 4, 5]
        assert (np.diff(mean_abs[k][np.argsort(found["rank"][k])]) <= 0).all()


def test_means_have_the_standard_errors_of_samples():
    """SciPy's, which divides by one less than the rows; of a single row there is none."""
    values = np.random.default_rng(5).normal(size=(2, 3, 7))
    found = MEANS.finalize(merge_all(MEANS, states_of(values, [2, 3]), 2, 3), np.arange(3), 3)
    assert_allclose(found["mean"], values.mean(axis=2), rtol=1e-12)
    assert_allclose(found["standard_error"], stats.sem(values, axis=2), rtol=1e-12)
    (alone,) = states_of(values[:, :, :1], [])
    assert np.isnan(MEANS.finalize(alone, np.arange(3), 3)["standard_error"]).all()


def test_states_are_merged_as_they_come():
    """A generator is as good as a list, and no more than one level of the tree is held."""
    values = np.random.default_rng(4).normal(size=(1, 2, 300))
    states = states_of(values, list(range(10, 300, 10)))
    whole, lazy = merge_all(MOMENTS, states, 1, 2), merge_all(MOMENTS, iter(states), 1, 2)
    assert all((a == b).all() for a, b in zip(whole, lazy, strict=True))


@pytest.mark.parametrize("n", [1, 2, 8, 9, 16, 17, 64, 65, 130])
def test_no_state_is_left_out(n):
    """However many there are, and however high the tree is."""
    state = MEANS.update(MEANS.init(1, 1), np.ones((1, 1, 1)), 1)
    assert merge_all(MEANS, [state] * n, 1, 1).rows[0] == n


def test_the_tree_of_merges_stays():
    """Bits of published summaries hang on it: eight at a time, from the left."""
    told = replace(MEANS, merge=lambda a, b: f"({a}{b})")
    assert merge_all(told, "abcdefghij", 1, 1) == "((((((((ab)c)d)e)f)g)h)(ij))"


def test_ties_rank_in_feature_order():
    """Features of equal importance keep the model's order: rankings are deterministic."""
    state = MOMENTS.update(MOMENTS.init(1, 2), np.ones((1, 2, 4)), 4)
    assert MOMENTS.finalize(state, np.array([1, 3]), 4)["rank"].tolist() == [[3, 1, 4, 2]]


def test_no_rows_give_zeros():
    """An empty data set has a summary, all zero."""
    found = MOMENTS.finalize(merge_all(MOMENTS, [], 1, 2), np.array([0, 1]), 2)
    assert all((values == 0).all() for name, values in found.items() if name != "rank")


def test_empty_slices_change_nothing():
    """A slice without rows leaves the state as it is."""
    state = MOMENTS.update(MOMENTS.init(1, 1), np.ones((1, 1, 4)), 4)
    assert MOMENTS.update(state, np.ones((1, 1, 4)), 0) is state
    nothing = MOMENTS.init(1, 1)
    assert MOMENTS.merge(nothing, nothing) is nothing


def test_padding_is_not_counted():
    """Only the first n rows enter."""
    phi = np.ones((1, 1, 64))
    phi[:, :, 10:] = 1e9
    state = MOMENTS.update(MOMENTS.init(1, 1), phi, 10)
    assert (state.rows[0], state.high[0, 0]) == (10, 1)
