"""The prediction gap: equal to enumeration in exact fractions, right on worked examples, accurate far out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.prediction_gap.exact import Prefixes
from leafledger.kernels.prediction_gap.leaf_regions import count_visits
from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prediction_gap.tables import gap_rows, place_units
from tests import perturbed
from tests.kernels.prediction_gap.gaps import ATOL, NORMAL, RTOL, drawn, noisy, noisy_outcomes, outcomes_of, together
from tests.strategies import batches, forests, partitions
from tests.trees import grown, stumps


@pytest.mark.parametrize("grouped", [False, True])
@given(data=st.data(), ensemble=forests(max_features=4))
@pytest.mark.slow
def test_gaps_of_sets_and_rankings_are_those_of_the_definition(data, ensemble, grouped):
    """Units drawn from data, by enumeration of all that they become, in exact fractions: numbers, categories, missing values, groups together."""
    rows, seen = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, 3))
    groups = data.draw(partitions(ensemble)) if grouped else np.arange(ensemble.n_features)
    tables, values, bins = drawn(ensemble, rows, seen, groups)
    n_groups, outputs = int(groups.max()) + 1, ensemble.base.size
    outcomes = outcomes_of(seen, groups, range(n_groups))
    chosen = sorted(data.draw(st.sets(st.integers(0, n_groups - 1))))
    gaps = [perturbed.make_gap(ensemble, row, outcomes) for row in rows]
    expected = [[float(g) for g in gap(chosen)] for gap in gaps]
    assert_allclose(gap_rows(tables, NORMAL, values, bins, together(tables, len(rows), outputs, chosen)), expected, rtol=RTOL, atol=ATOL)
    ranking = data.draw(st.permutations(range(n_groups)))[: data.draw(st.integers(1, n_groups))]
    order = np.broadcast_to(np.array(ranking), (len(rows), outputs, len(ranking)))
    expected = [[float(g) for g in perturbed.mean_gap(gap, outcomes, ranking)] for gap in gaps]
    assert_allclose(gap_rows(tables, NORMAL, values, bins, place_units(tables, order)), expected, rtol=RTOL, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_features=4))
@pytest.mark.slow
def test_what_is_not_drawn_stays(data, ensemble):
    """Some units drawn, the others as they are."""
    rows, seen = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, 3))
    only = sorted(data.draw(st.sets(st.integers(0, ensemble.n_features - 1))))
    tables, values, bins = drawn(ensemble, rows, seen, None, only)
    outcomes = outcomes_of(seen, range(ensemble.n_features), only)
    found = gap_rows(tables, NORMAL, values, bins, together(tables, len(rows), ensemble.base.size, only))
    assert_allclose(found, [[float(g) for g in perturbed.make_gap(ensemble, row, outcomes)(only)] for row in rows], rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@given(data=st.data(), ensemble=forests(max_features=3))
def test_gaps_under_noise(data, ensemble, noise):
    """Noise on numeric features, by enumeration of the cells between thresholds, whose probabilities a distribution function gives."""
    rows = data.draw(batches(ensemble, 1))
    numeric = [j for j in range(ensemble.n_features) if ensemble.n_categories[j] == 0]
    tables, values, bins = noisy(ensemble, rows, 0.7)
    outcomes = {j: noisy_outcomes(ensemble, j, float(rows[0, j]), 0.7, noise) for j in numeric}
    found = gap_rows(tables, noise, values, bins, together(tables, 1, ensemble.base.size, numeric))
    assert_allclose(found[0], [float(g) for g in perturbed.make_gap(ensemble, rows[0], outcomes)(numeric)], rtol=1e-9, atol=1e-12)


GOLDEN = [  # Gajewski et al. 2024, by hand: 4 (1 - Phi(1)), and so on; thresholds, values and features of stumps, then the gap
    (((0, 0.0, 1.0, 3.0),), 1, 0.6346210157258283),
    (((0, 0.0, 0.0, 1.0), (0, 1.0, 0.0, 2.0)), 1, 0.3406563095),
    (((0, 0.0, 0.0, 1.0), (1, 0.0, 0.0, 2.0)), 2, 0.8939622281),
]


@pytest.mark.parametrize(("said", "n_features", "expected"), GOLDEN)
def test_worked_examples(said, n_features, expected):
    """x = -1 in every feature, standard normal noise on all."""
    tables, values, bins = noisy(stumps(said, n_features), -np.ones((1, n_features)), 1.0)
    found = gap_rows(tables, NORMAL, values, bins, together(tables, 1, 1, range(n_features)))
    assert_allclose(found, [[expected]], rtol=1e-9)
    assert gap_rows(tables, NORMAL, values, bins, together(tables, 1, 1, [])) == 0.0
    still, _, _ = noisy(stumps(said, n_features), -np.ones((1, n_features)), 0.0)
    assert gap_rows(still, NORMAL, values, bins, together(still, 1, 1, range(n_features))) == 0.0


@pytest.mark.parametrize("x", [-30.0, 30.0])
def test_far_tails_keep_their_digits(x):
    """A threshold thirty deviations away, on either side: 4 (1 - Phi(30)), and two trees' interval between thresholds there."""
    tables, values, bins = noisy(stumps(GOLDEN[0][0], 1), np.array([[x]]), 1.0)
    far = math.erfc(30 / math.sqrt(2)) / 2
    assert_allclose(gap_rows(tables, NORMAL, values, bins, together(tables, 1, 1, [0])), [[4 * far]], rtol=1e-12)
    step = math.copysign(1.0, -x)
    inner, outer = (math.erfc(z / math.sqrt(2)) / 2 for z in (30.0, 31.0))
    said = ((0, 0.0, 0.0, 1.0), (0, step, 0.0, 1.0))
    tables, values, bins = noisy(stumps(said, 1), np.array([[x]]), 1.0)
    assert_allclose(gap_rows(tables, NORMAL, values, bins, together(tables, 1, 1, [0])), [[inner - outer + 4 * outer]], rtol=1e-12)


@given(data=st.data(), ensemble=forests(max_trees=4, max_depth=4, max_features=7))
def test_a_ranking_is_the_mean_of_its_prefixes(data, ensemble):
    """PGI² in one pass, and PG² of every prefix by itself, on larger trees; features that nothing can move come along."""
    rows = data.draw(batches(ensemble, 2))
    tables, values, bins = noisy(ensemble, rows, 0.5)
    n, outputs = ensemble.n_features, ensemble.base.size
    ranking = np.array([[data.draw(st.permutations(range(n))) for _ in range(outputs)] for _ in rows])
    found = gap_rows(tables, NORMAL, values, bins, place_units(tables, ranking))
    prefixes = np.zeros((len(rows), outputs))
    for end in range(1, n + 1):
        there = (ranking[:, :, :end, None] == tables.units).any(axis=2) & tables.regions.units.perturbed
        prefixes += gap_rows(tables, NORMAL, values, bins, Prefixes(there.astype(np.int64), np.ones((len(rows), outputs, 1))))
    assert_allclose(found, prefixes / n, rtol=RTOL, atol=ATOL)


def test_trees_without_a_feature_in_common():
    """Each stump on a feature of its own: x' moves every one independently, so the gap is known, and no pair of leaves is looked at."""
    n = 5
    ensemble = stumps(tuple((j, 0.0, 0.0, float(j + 1)) for j in range(n)), n)
    tables, values, bins = noisy(ensemble, -np.ones((1, n)), 1.0)
    assert count_visits(tables.regions) == 0
    p, value = math.erfc(1 / math.sqrt(2)) / 2, np.arange(1.0, n + 1)
    moves = lambda some: p * (some**2).sum() + p * p * (some.sum() ** 2 - (some**2).sum())  # noqa: E731 - a definition in a line
    expected = [moves(value[::-1][:end]) for end in range(1, n + 1)]
    order = np.arange(n)[::-1].reshape(1, 1, n)
    assert_allclose(gap_rows(tables, NORMAL, values, bins, place_units(tables, order)), [[np.mean(expected)]], rtol=1e-13)


@pytest.mark.slow
def test_the_algorithm_as_it_is_printed():
    """Algorithm 1 in plain Python gives the same, of sets and of rankings, as far as its c² - 2cE + E² lets it: trees of more leaves than are
    taken at a time, that ask for a feature again."""
    rng = np.random.default_rng(2)
    ensemble, rows = grown(rng, 3, 4, 5), rng.normal(size=(2, 5))
    tables, values, bins = noisy(ensemble, rows, 0.5)
    ranking = [3, 0, 4, 1, 2]
    for i, row in enumerate(rows):
        gap = lambda chosen, row=row: [perturbed.algorithm_1(ensemble, row, set(chosen), 0.5)]  # noqa: E731 - a definition in a line
        one = values[:, i : i + 1], bins[:, i : i + 1]
        for chosen in ([0, 1, 2, 3, 4], [1, 3], []):
            assert_allclose(gap_rows(tables, NORMAL, *one, together(tables, 1, 1, chosen)), [gap(chosen)], rtol=1e-9, atol=1e-12)
        assert_allclose(
            gap_rows(tables, NORMAL, *one, place_units(tables, np.array([[ranking]]))), [perturbed.mean_gap(gap, ranking, ranking)], rtol=1e-9
        )
