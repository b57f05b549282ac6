"""Greedy rankings: every step's group is the one that moves the prediction most, by trying all of them in exact fractions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.prediction_gap.exact import Prefixes
from leafledger.kernels.prediction_gap.greedy import TIE
from leafledger.kernels.prediction_gap.tables import gap_rows, greedy_rows, place_units
from tests import perturbed
from tests.kernels.prediction_gap.gaps import ATOL, NORMAL, RTOL, drawn, noisy, outcomes_of
from tests.strategies import batches, forests
from tests.trees import grown, stumps


def ranked_greedily(tables, values, bins, steps):
    """By blocks that are kept and by blocks that are not: the same."""
    found = greedy_rows(tables, NORMAL, values, bins, steps)
    forgetful = tables._replace(regions=tables.regions._replace(cached=np.zeros(1, np.int64)))
    for one, other in zip(greedy_rows(forgetful, NORMAL, values, bins, steps), found, strict=True):
        assert_array_equal(one, other)
    return found


@settings(max_examples=2 if config.DISABLE_JIT else 15)  # exact fractions over all subsets are slow
@given(data=st.data(), ensemble=forests(max_features=4))
@pytest.mark.slow
@pytest.mark.more
def test_greedy_rankings_are_those_of_the_definition(data, ensemble):
    """Every feature tried at every step, in exact fractions; of equal gains the first feature's. What stays comes before what lowers the gap."""
    rows, seen = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, 2))
    only = np.array(data.draw(st.lists(st.integers(0, 3), min_size=1)))
    tables, values, bins = drawn(ensemble, rows, seen, only=only)
    n = ensemble.n_features
    order, gaps = ranked_greedily(tables, values, bins, n)
    outcomes = outcomes_of(seen, range(n), set(only) & set(ensemble.feature.tolist()))
    for i, row in enumerate(rows):
        gap = perturbed.make_gap(ensemble, row, outcomes)
        for k in range(ensemble.base.size):
            expected, of_prefix = perturbed.rank_greedily(gap, outcomes, n, k)
            assert_array_equal(order[i, k], expected)
            assert_allclose(gaps[i, k], [float(g) for g in of_prefix], rtol=RTOL, atol=ATOL)
    by_ranking = gap_rows(tables, NORMAL, values, bins, place_units(tables, order))
    assert_allclose(gaps.mean(axis=2), by_ranking, rtol=RTOL, atol=ATOL)


@pytest.mark.slow
def test_what_changes_nothing_comes_before_what_lowers_the_gap():
    """Each of two features is on its other side half the time; the second takes back some of what the first did. The third is in no split."""
    tables, values, bins = noisy(stumps(((0, 0.0, 0.0, 2.0), (1, 0.0, 0.0, -0.5)), 3), np.zeros((1, 3)), 1.0)
    order, gaps = ranked_greedily(tables, values, bins, 3)
    assert order[0, 0].tolist() == [0, 2, 1]
    assert_allclose(gaps[0, 0], [2.0, 2.0, 1.625], rtol=1e-15)


@given(data=st.data(), ensemble=forests(max_trees=4, max_depth=4, max_features=7))
def test_gaps_are_those_of_the_units_up_to_each_step(data, ensemble):
    """PG² of every prefix by itself, on larger trees."""
    rows = data.draw(batches(ensemble, 2))
    tables, values, bins = noisy(ensemble, rows, 0.5)
    shape = (len(rows), ensemble.base.size, 1)
    order, gaps = greedy_rows(tables, NORMAL, values, bins, ensemble.n_features)
    assert_array_equal(np.sort(order, axis=2), np.broadcast_to(np.arange(ensemble.n_features), order.shape))
    for end in range(1, ensemble.n_features + 1):
        there = (order[:, :, :end, None] == tables.units).any(axis=2) & tables.regions.units.perturbed
        alone = gap_rows(tables, NORMAL, values, bins, Prefixes(there.astype(np.int64), np.ones(shape)))
        assert_allclose(gaps[:, :, end - 1], alone, rtol=RTOL, atol=1e-12)


def test_trees_without_a_feature_in_common():
    """Each stump on a feature of its own: x' moves every one independently, so the largest come first, with gaps that are known."""
    n = 5
    tables, values, bins = noisy(stumps(tuple((j, 0.0, 0.0, float(j + 1)) for j in range(n)), n), -np.ones((1, n)), 1.0)
    order, gaps = ranked_greedily(tables, values, bins, n)
    assert_array_equal(order, np.arange(n)[::-1].reshape(1, 1, n))
    p, value = math.erfc(1 / math.sqrt(2)) / 2, np.arange(1.0, n + 1)[::-1]
    expected = [p * (value[:end] ** 2).sum() + p * p * (value[:end].sum() ** 2 - (value[:end] ** 2).sum()) for end in range(1, n + 1)]
    assert_allclose(gaps[0, 0], expected, rtol=1e-13)


def test_the_algorithm_as_it_is_printed():
    """Algorithm 1 in plain Python, asked about every candidate, ranks alike, as far as its c² - 2cE + E² lets it: trees of more leaves than are
    taken at a time, that ask for a feature again."""
    rng, features = np.random.default_rng(2), range(5)
    ensemble, rows = grown(rng, 3, 4, 5), rng.normal(size=(2, 5))[: 1 if config.DISABLE_JIT else 2]
    tables, values, bins = noisy(ensemble, rows, 0.5)
    order, gaps = ranked_greedily(tables, values, bins, 5)
    for i, row in enumerate(rows):
        gap = lambda chosen, row=row: [perturbed.algorithm_1(ensemble, row, set(chosen), 0.5)]  # noqa: E731 - a definition in a line
        expected, of_prefix = perturbed.rank_greedily(gap, features, 5, 0, 1e-9)
        assert_array_equal(order[i, 0], expected)
        assert_allclose(gaps[i, 0], of_prefix, rtol=1e-9)


@pytest.mark.parametrize(("more", "first"), [(0.0, 0), (TIE / 10, 0), (100 * TIE, 1)])
def test_equal_gains_are_told_apart_by_number(more, first):
    """Two features whose stumps jump alike, or the second's a little higher: less than a tie is equal, and then the first one comes first."""
    tables, values, bins = noisy(stumps(((0, 0.0, 0.0, 1.0), (1, 0.0, 0.0, 1.0 + more)), 2), -np.ones((1, 2)), 1.0)
    order, _ = ranked_greedily(tables, values, bins, 2)
    assert order[0, 0].tolist() == [first, 1 - first]
