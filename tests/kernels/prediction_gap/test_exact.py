"""The prediction gap: equal to enumeration in exact fractions, right on worked examples, accurate far out; greedy rankings are greedy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernels.parameters import InvalidParameters
from kernels.prediction_gap.exact import Prefixes
from kernels.prediction_gap.leaf_regions import count_visits
from kernels.prediction_gap.noise import NOISES, Noise, deviations, measure
from kernels.prediction_gap.quasi_monte_carlo import REPEATS, haltons, sample_rows
from kernels.prediction_gap.rankings import EXACT, rank_rows_greedily
from kernels.prediction_gap.tables import affordable, complete, gap_rows, greedy_rows, place_units, prepare_gap
from kernels.prepare import merge_statistics
from kernels.trees.binning import BATCH, bin_dtype, bin_rows, padded
from kernels.trees.forest import make_forest
from tests import naive, perturbed
from tests.strategies import batches, forests
from tests.trees import grown, join, one_tree

RTOL, ATOL = 1e-11, 1e-13  # sums of some hundred products; leaves are at most 2 in size, trees at most 3
NORMAL = NOISES[0]


def binned(ensemble, rows, groups=None):
    """Values and bins of rows as kernels read them, the bin tables and the forest."""
    bins, forest = make_forest(ensemble, groups)
    values = np.zeros((bins.column.size, padded(len(rows))))
    values[:, : len(rows)] = rows.T[bins.column]
    found = np.zeros(values.shape, bin_dtype(bins))
    bin_rows(values, bins, found)
    return values[:, : len(rows)].copy(), found[:, : len(rows)].copy(), forest


def noisy(ensemble, rows, scale):
    """Tables, values and bins where numeric features get noise and nothing is drawn."""
    values, bins, forest = binned(ensemble, rows)
    return prepare_gap(forest, np.broadcast_to(scale, ensemble.n_features), None), values, bins


def drawn(ensemble, rows, data, groups=None, only=None):
    """The same where every unit, or those of the groups in ``only``, is drawn from data."""
    values, bins, forest = binned(ensemble, rows, groups)
    chosen = np.ones(forest.n_players, bool) if only is None else np.isin(forest.players, only)
    measured = measure(*binned(ensemble, data, groups)[:2], forest.player, chosen)
    return prepare_gap(forest, np.zeros(ensemble.n_features), measured, drawn=chosen), values, bins


def outcomes_of(data, groups, units):
    """What each unit becomes: its features' values in a row of data, every row alike."""
    found = {}
    for u in units:
        mine = [j for j, g in enumerate(groups) if g == u]
        found[int(u)] = [({j: row[j] for j in mine}, Fraction(1, len(data))) for row in data]
    return found


def together(tables, n, outputs, groups):
    """Places and weights of a set of groups."""
    there = np.isin(tables.units, groups) & tables.regions.units.perturbed
    return Prefixes(np.broadcast_to(there, (n, outputs, there.size)).astype(np.int64), np.ones((n, outputs, 1)))


def groups_of(data, ensemble):
    return np.unique([data.draw(st.integers(0, 2)) for _ in range(ensemble.n_features)], return_inverse=True)[1]


def ranked_greedily(tables, values, bins, steps):
    """By blocks that are kept and by blocks that are not: the same."""
    found = greedy_rows(tables, NORMAL, values, bins, steps)
    forgetful = tables._replace(regions=tables.regions._replace(cached=np.zeros(1, np.int64)))
    for one, other in zip(greedy_rows(forgetful, NORMAL, values, bins, steps), found, strict=True):
        assert_array_equal(one, other)
    return found


@pytest.mark.parametrize("grouped", [False, True])
@given(data=st.data(), ensemble=forests(max_features=4))
def test_gaps_of_sets_and_rankings_are_those_of_the_definition(data, ensemble, grouped):
    """Units drawn from data, by enumeration of all that they become, in exact fractions: numbers, categories, missing values, groups together."""
    rows, seen = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, 3))
    groups = groups_of(data, ensemble) if grouped else np.arange(ensemble.n_features)
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


def noisy_outcomes(ensemble, feature, x, scale, noise):
    """Cells under noise; what the model reads as missing, and what is infinite, stays."""
    with np.errstate(over="ignore"):
        read = float(np.float32(x)) if ensemble.single_precision else x
    if not math.isfinite(read) or (ensemble.zero_missing[feature] and abs(read) <= float(np.float32(1e-35))):
        return [({feature: x}, Fraction(1))]
    return perturbed.cells(ensemble, feature, lambda t: float(noise.lower(np.array((t - read) / scale))))


GOLDEN = [  # Gajewski et al. 2024, by hand: 4 (1 - Phi(1)), and so on; thresholds, values and features of stumps, then the gap
    (((0, 0.0, 1.0, 3.0),), 1, 0.6346210157258283),
    (((0, 0.0, 0.0, 1.0), (0, 1.0, 0.0, 2.0)), 1, 0.3406563095),
    (((0, 0.0, 0.0, 1.0), (1, 0.0, 0.0, 2.0)), 2, 0.8939622281),
]


def stumps(said, n_features):
    """An ensemble of stumps: feature, threshold, value up to it and beyond."""
    trees = [one_tree([f, -1, -1], [t, 0, 0], [1, -1, -1], [2, -1, -1], [0, low, high], [2, 1, 1], n_features) for f, t, low, high in said]
    return join(trees)


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


def test_rounding_of_a_distribution_function_does_no_harm():
    """One that falls by a rounding between two thresholds, above the middle and below: nothing is between them."""

    def lower(z):
        return np.where(z < 0, np.where(z <= -1.0, 0.2, np.nextafter(0.2, 0.0)), 0.8)

    falling = Noise("falling", lower, lambda z: lower(-z))
    ensemble = one_tree([0, 0, -1, -1, -1], [-0.25, 0.25, 0, 0, 0], [2, 3, -1, -1, -1], [1, 4, -1, -1, -1], [0, 0, 0, 5, 1], [3, 2, 1, 1, 1], 1)
    for x in (-0.75, 0.75):  # one deviation, and a half, from the thresholds
        tables, values, bins = noisy(ensemble, np.array([[x]]), 1.0)
        assert_allclose(gap_rows(tables, falling, values, bins, together(tables, 1, 1, [0])), [[0.2]], rtol=1e-12)


@given(data=st.data(), ensemble=forests(max_features=4))
def test_greedy_rankings_are_those_of_the_definition(data, ensemble):
    """Every candidate tried at every step, in exact fractions; of equal gains the first feature's."""
    rows, seen = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, 2))
    tables, values, bins = drawn(ensemble, rows, seen)
    units, n = tables.units, ensemble.n_features
    order, gaps = ranked_greedily(tables, values, bins, units.size)
    outcomes = outcomes_of(seen, range(n), units.tolist())
    for i, row in enumerate(rows):
        gap = perturbed.make_gap(ensemble, row, outcomes)
        for k in range(ensemble.base.size):
            expected, of_prefix = perturbed.rank_greedily(gap, outcomes, k)
            assert_array_equal(units[order[i, k]] if units.size else [], expected)
            assert_allclose(gaps[i, k], [float(g) for g in of_prefix], rtol=RTOL, atol=ATOL)
    whole, of_whole = complete(tables, order, gaps, n)
    assert_array_equal(np.sort(whole, axis=2), np.broadcast_to(np.arange(n), whole.shape))
    by_ranking = gap_rows(tables, NORMAL, values, bins, place_units(tables, whole))
    assert_allclose(of_whole.mean(axis=2), by_ranking, rtol=RTOL, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=4, max_depth=4, max_features=7))
def test_a_ranking_is_the_mean_of_its_prefixes(data, ensemble):
    """PGI² in one pass, PG² of every prefix by itself, and greedy gaps step by step, on larger trees; features that nothing can move come along."""
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
    order, gaps = greedy_rows(tables, NORMAL, values, bins, tables.units.size + 1)  # one step more than there are units
    steps = int(tables.regions.units.perturbed.sum())
    assert (order[:, :, steps:] == -1).all()
    for end in range(1, steps + 1):
        there = (order[:, :, :end, None] == np.arange(tables.units.size)).any(axis=2)
        alone = gap_rows(tables, NORMAL, values, bins, Prefixes(there.astype(np.int64), np.ones((len(rows), outputs, 1))))
        assert_allclose(gaps[:, :, end - 1], alone, rtol=RTOL, atol=1e-12)


def test_trees_without_a_feature_in_common():
    """Each stump on a feature of its own: x' moves every one independently, so the gap is known, and no pair of leaves is looked at."""
    n = 5
    ensemble = stumps(tuple((j, 0.0, 0.0, float(j + 1)) for j in range(n)), n)
    tables, values, bins = noisy(ensemble, -np.ones((1, n)), 1.0)
    assert count_visits(tables.regions) == 0
    p, value = math.erfc(1 / math.sqrt(2)) / 2, np.arange(1.0, n + 1)
    moves = lambda some: p * (some**2).sum() + p * p * (some.sum() ** 2 - (some**2).sum())  # noqa: E731 - a definition in a line
    expected = [moves(value[::-1][:end]) for end in range(1, n + 1)]
    order, gaps = greedy_rows(tables, NORMAL, values, bins, n)
    assert_array_equal(order[0, 0], np.arange(n)[::-1])
    assert_allclose(gaps[0, 0], expected, rtol=1e-13)
    assert_allclose(gap_rows(tables, NORMAL, values, bins, place_units(tables, order)), [[np.mean(expected)]], rtol=1e-13)


@given(data=st.data(), ensemble=forests())
def test_measures_of_parts_add_up(data, ensemble):
    """Deviations and what units are drawn from, of two parts and of the whole."""
    parts = [data.draw(batches(ensemble, 3)) for _ in range(2)]
    finite = [np.where(np.isfinite(part) & (np.abs(part) < 100), part, np.nan) for part in parts]
    _, _, forest = binned(ensemble, finite[0])
    everything = np.ones(forest.n_players, bool)
    some = np.arange(forest.n_players) % 2 == 0
    for chosen in (everything, some):
        one, two, whole = (measure(*binned(ensemble, rows)[:2], forest.player, chosen) for rows in (*finite, np.concatenate(finite)))
        merged = merge_statistics([one, two])
        assert_allclose(deviations(merged), deviations(whole), rtol=1e-12, atol=1e-12)
        for name in ("n", "start", "seen", "times"):
            assert_array_equal(getattr(merged, name), getattr(whole, name))


def forest_and_rows():
    rng = np.random.default_rng(0)
    said = tuple((int(j), float(t), 0.0, float(v)) for j, t, v in zip(rng.integers(0, 4, 12), rng.normal(size=12), rng.normal(size=12), strict=True))
    return stumps(said, 4), rng.normal(size=(3, 4))


def independent(repeats, seed=0):
    """Plain Monte Carlo, as few points as there may be, several times."""
    return [lambda n_units, repeat=repeat: np.random.default_rng(seed + repeat).random((BATCH, n_units)) for repeat in range(repeats)]


def test_sampling_comes_to_the_exact_value():
    """By quasi-Monte Carlo within its standard errors; by Monte Carlo with an error that falls like one over the root of the number of points."""
    ensemble, rows = forest_and_rows()
    tables, values, bins = noisy(ensemble, rows, 0.5)
    prefixes = together(tables, 3, 1, range(4))
    exact = gap_rows(tables, NORMAL, values, bins, prefixes)
    found, error = sample_rows(tables, NORMAL, values[:, :1], bins[:, :1], Prefixes(prefixes.place[:1], prefixes.weight[:1]), haltons(0))
    assert (np.abs(found - exact[:1]) < 5 * error).all()
    assert (error < 0.01 * exact[:1]).all()
    errors = {}
    for repeats in (2, 18):
        runs = [sample_rows(tables, NORMAL, values, bins, prefixes, independent(repeats, 1000 * seed))[0] for seed in range(8)]
        errors[repeats] = np.sqrt(np.mean([(run - exact) ** 2 for run in runs]))
    assert 1.8 < errors[2] / errors[18] < 5  # 3, for nine times as many


def test_sampling_draws_from_data_too():
    """Features by themselves and groups of them, missing values among what is seen; every prefix of a ranking that leaves some out."""
    ensemble, rows = forest_and_rows()
    rows = rows[:1]
    seen = np.where(np.arange(20).reshape(5, 4) % 7 == 0, np.nan, np.random.default_rng(1).normal(size=(5, 4)))
    for groups in (np.arange(4), np.array([0, 0, 1, 2])):
        tables, values, bins = drawn(ensemble, rows, seen, groups)
        prefixes = place_units(tables, np.array([[[2, 0]]]))
        exact = gap_rows(tables, NORMAL, values, bins, prefixes)
        found, error = sample_rows(tables, NORMAL, values, bins, prefixes, independent(REPEATS))
        assert (np.abs(found - exact) < 5 * error).all()


@pytest.mark.parametrize("how", ["noise", "drawn", "groups"])
def test_sampled_greedy_rankings_are_greedy(how):
    """Units far enough apart come in the exact order, those that stay last; gaps of prefixes, and PGI², within their standard errors."""
    ensemble, rows = forest_and_rows()
    if how == "noise":
        tables, values, bins = noisy(ensemble, rows, [0.5, 0.0, 0.5, 1.0])
    else:
        groups = np.array([0, 0, 1, 2]) if how == "groups" else np.arange(4)
        tables, values, bins = drawn(ensemble, rows, np.random.default_rng(1).normal(size=(5, 4)), groups, [0, 2])
    top = int(tables.n_all[0])
    exact, found = (rank_rows_greedily(tables, NORMAL, values, bins, top, seed) for seed in (EXACT, 3))
    assert_array_equal(found.order, exact.order)
    assert (found.pgi2_errors > 0).all()
    assert (np.abs(found.gaps - exact.gaps) < 5 * found.gap_errors).all()
    assert (np.abs(found.pgi2 - exact.pgi2) < 5 * found.pgi2_errors).all()
    assert (found.gap_errors < 0.03 * exact.gaps).all()
    assert (exact.pgi2_errors == 0).all()


def test_a_budget_refuses_with_the_number():
    """Twelve stumps on four features: pairs of leaves of stumps on the same one."""
    ensemble, rows = forest_and_rows()
    tables, _, _ = noisy(ensemble, rows, 1.0)
    same = sum(int(a == b) for i, a in enumerate(ensemble.feature[::3]) for b in ensemble.feature[::3][:i])
    assert count_visits(tables.regions) == 4 * same
    assert affordable(tables, 4.0 * same)
    assert not affordable(tables, 4.0 * same - 1, approximate=True)
    assert not affordable(tables, 4.0 * same, 2, approximate=True)
    with pytest.raises(InvalidParameters, match="pairs of leaves per row, the budget is 1"):
        affordable(tables, 1.0)


def test_a_model_without_splits_has_no_gap():
    """One leaf: nothing is perturbed, and every feature comes in its own order."""
    ensemble = one_tree([-1], [0.0], [-1], [-1], [2.0], [1.0], 3)
    tables, values, bins = noisy(ensemble, np.zeros((2, 3)), 1.0)
    order, gaps = complete(tables, *greedy_rows(tables, NORMAL, values, bins, 0), 3)
    assert_array_equal(order, np.broadcast_to(np.arange(3), (2, 1, 3)))
    assert (gaps == 0).all()
    assert (gap_rows(tables, NORMAL, values, bins, place_units(tables, order)) == 0).all()
    assert (sample_rows(tables, NORMAL, values, bins, place_units(tables, order), haltons(0))[0] == 0).all()
    assert naive.margin(ensemble, np.zeros(3)) == 2.0


def test_the_algorithm_as_it_is_printed():
    """Algorithm 1 in plain Python gives the same, of sets and of greedy rankings, as far as its c² - 2cE + E² lets it: trees of more leaves than are
    taken at a time, that ask for a feature again."""
    rng = np.random.default_rng(2)
    ensemble, rows = grown(rng, 3, 4, 5), rng.normal(size=(2, 5))
    tables, values, bins = noisy(ensemble, rows, 0.5)
    ranking = [3, 0, 4, 1, 2]
    order, gaps = ranked_greedily(tables, values, bins, 5)
    for i, row in enumerate(rows):
        gap = lambda chosen, row=row: [perturbed.algorithm_1(ensemble, row, set(chosen), 0.5)]  # noqa: E731 - a definition in a line
        one = values[:, i : i + 1], bins[:, i : i + 1]
        for chosen in ([0, 1, 2, 3, 4], [1, 3], []):
            assert_allclose(gap_rows(tables, NORMAL, *one, together(tables, 1, 1, chosen)), [gap(chosen)], rtol=1e-9, atol=1e-12)
        assert_allclose(
            gap_rows(tables, NORMAL, *one, place_units(tables, np.array([[ranking]]))), [perturbed.mean_gap(gap, ranking, ranking)], rtol=1e-9
        )
        expected, of_prefix = perturbed.rank_greedily(gap, ranking, 0, 1e-9)
        assert_array_equal(order[i, 0], expected)
        assert_allclose(gaps[i, 0], of_prefix, rtol=1e-9)


def test_scales_are_multiples_of_deviations():
    """Of the values that are finite, each feature's own."""
    ensemble, rows = forest_and_rows()
    seen = np.random.default_rng(3).normal(size=(50, 4)) * [1.0, 2.0, 0.5, 3.0]
    holes = seen.copy()
    holes[::7, 1], holes[::5, 2], holes[3, 3] = np.nan, np.inf, -np.inf
    forest = make_forest(ensemble)[1]
    nothing, wanted = np.zeros(4, bool), [np.std(column[np.isfinite(column)]) for column in holes.T]
    measured = measure(*binned(ensemble, holes)[:2], forest.player, nothing)
    assert_allclose(deviations(measured), wanted, rtol=1e-12)
    tables = prepare_gap(forest, np.full(4, 0.5), measured, relative=True)
    expected, values, bins = noisy(ensemble, rows, 0.5 * np.array(wanted))
    all_of_them = together(tables, 3, 1, range(4))
    assert_allclose(gap_rows(tables, NORMAL, values, bins, all_of_them), gap_rows(expected, NORMAL, values, bins, all_of_them), rtol=1e-10)
