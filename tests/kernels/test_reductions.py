"""Summaries: equal to NumPy on all rows, whatever the slices; merged in the order of parts to the same bits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernels.reductions import REDUCTIONS, merge_all

IMPORTANCE = REDUCTIONS["importance"]


def states_of(phi, cuts):
    """A state per slice of ``phi (outputs, used, n)``."""
    slices = np.split(phi, cuts, axis=2)
    empty = IMPORTANCE.init(*phi.shape[:2])
    return [IMPORTANCE.update(empty, np.ascontiguousarray(part), part.shape[2]) for part in slices]


@given(st.integers(0, 2**32), st.lists(st.integers(0, 500), max_size=20))
def test_any_slicing_gives_the_moments_of_all_rows(seed, cuts):
    """Mean of |phi|, mean, standard deviation, extremes, share and rank are NumPy's, even far from zero."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(2, 3, 500)) * rng.choice([1e-3, 1, 1e3], (2, 3, 1)) + rng.choice([0, 1e6], (2, 3, 1))
    merged = merge_all(IMPORTANCE, states_of(phi, sorted(cuts)), 2, 3)
    found = IMPORTANCE.finalize(merged, np.array([3, 0, 1]), 5)
    everywhere = np.zeros((2, 5, 500))
    everywhere[:, [3, 0, 1]] = phi
    mean_abs = np.abs(everywhere).mean(axis=2)
    assert_allclose(found["mean_abs"], mean_abs, rtol=1e-12)
    assert_allclose(found["mean"], everywhere.mean(axis=2), rtol=1e-9, atol=1e-9)
    assert_allclose(found["std"], everywhere.std(axis=2), rtol=1e-7)
    assert (found["min"] == everywhere.min(axis=2)).all()
    assert (found["max"] == everywhere.max(axis=2)).all()
    assert_allclose(found["share"].sum(axis=1), 1.0, rtol=1e-12)
    for k in range(2):
        assert sorted(found["rank"][k]) == [1, 2, 3, 4, 5]
        assert (np.diff(mean_abs[k][np.argsort(found["rank"][k])]) <= 0).all()


def test_pairs_are_summarised_as_players_are():
    """Interactions have the same moments and ranks, each under its own name, without a share."""
    interactions = REDUCTIONS["interactions"]
    assert (IMPORTANCE.reduces, interactions.reduces) == ("phi", "pairs")
    values = np.random.default_rng(3).normal(size=(2, 3, 50))
    found = interactions.finalize(interactions.update(interactions.init(2, 3), values, 50), np.arange(3), 3)
    same = IMPORTANCE.finalize(IMPORTANCE.update(IMPORTANCE.init(2, 3), values, 50), np.arange(3), 3)
    assert set(same) - set(found) == {"share"}
    assert all((found[name] == same[name]).all() for name in found)


def test_a_way_is_summarised_step_by_step():
    """What the ranker makes larger has moments at each of its steps, and steps have no ranks."""
    objective, path = REDUCTIONS["objective"], np.random.default_rng(5).normal(size=(2, 4, 50))
    assert objective.reduces == "path"
    found = objective.finalize(objective.update(objective.init(2, 4), path, 50), np.arange(4), 4)
    assert set(found) == {"mean", "std", "min", "max"}
    for name, values in found.items():
        assert_allclose(values, getattr(np, name)(path, axis=2), rtol=1e-12)


def test_states_are_merged_as_they_come():
    """A generator is as good as a list, and no more than one level of the tree is held."""
    values = np.random.default_rng(4).normal(size=(1, 2, 300))
    states = states_of(values, list(range(10, 300, 10)))
    whole, lazy = merge_all(IMPORTANCE, states, 1, 2), merge_all(IMPORTANCE, iter(states), 1, 2)
    assert all((a == b).all() for a, b in zip(whole, lazy, strict=True))


def test_ties_rank_in_feature_order():
    """Features of equal importance keep the model's order: rankings are deterministic."""
    state = IMPORTANCE.update(IMPORTANCE.init(1, 2), np.ones((1, 2, 4)), 4)
    assert IMPORTANCE.finalize(state, np.array([1, 3]), 4)["rank"].tolist() == [[3, 1, 4, 2]]


def test_no_rows_give_zeros():
    """An empty data set has a summary, all zero."""
    found = IMPORTANCE.finalize(merge_all(IMPORTANCE, [], 1, 2), np.array([0, 1]), 2)
    assert all((values == 0).all() for name, values in found.items() if name != "rank")


def test_empty_slices_change_nothing():
    """A slice without rows leaves the state as it is."""
    state = IMPORTANCE.update(IMPORTANCE.init(1, 1), np.ones((1, 1, 4)), 4)
    assert IMPORTANCE.update(state, np.ones((1, 1, 4)), 0) is state
    nothing = IMPORTANCE.init(1, 1)
    assert IMPORTANCE.merge(nothing, nothing) is nothing


def test_padding_is_not_counted():
    """Only the first n rows enter."""
    phi = np.ones((1, 1, 64))
    phi[:, :, 10:] = 1e9
    state = IMPORTANCE.update(IMPORTANCE.init(1, 1), phi, 10)
    assert (state.rows[0], state.high[0, 0]) == (10, 1)


@given(st.integers(0, 2**32), st.integers(1, 4), st.lists(st.integers(0, 60), max_size=5))
def test_rankings_are_summarised_by_mean_rank(seed, top, cuts):
    """Of four players, two in no split: whom a row does not rank comes after the others there, so that being ranked seldom is not being first; the
    scores after them keep their moments, and take no rank."""
    gaps, rng = REDUCTIONS["gaps"], np.random.default_rng(seed)
    ranks = rng.permuted(np.tile(np.arange(1.0, 5.0), (1, 60, 1)), axis=2)[:, :, [1, 3]].transpose(0, 2, 1)
    ranks[ranks > top] = 0.0
    phi = np.concatenate((ranks, rng.choice([0.0, 0.5, 7.0], (1, 2, 60))), axis=1)
    states = [gaps.update(gaps.init(1, 4), np.ascontiguousarray(part), part.shape[2]) for part in np.split(phi, sorted(cuts), axis=2)]
    found = gaps.finalize(merge_all(gaps, states, 1, 4), np.array([1, 3, 4, 5]), 6)
    mean = np.where(ranks[0] > 0, ranks[0], 3.0).mean(axis=1)
    assert_allclose(found["mean"][0], [0.0, mean[0], 0.0, mean[1], *phi[0, 2:].mean(axis=1)], rtol=1e-12)
    order = np.argsort(found["rank"][0], kind="stable")
    assert (found["rank"][0, [4, 5]] == 0).all()
    assert order[[0, 1, 4, 5]].tolist() == [4, 5, 0, 2]
    assert found["mean"][0, order[2]] <= found["mean"][0, order[3]] + 1e-12
