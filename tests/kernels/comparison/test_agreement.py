"""What rankings are compared by: areas of the curves, prediction gaps, agreement as SciPy and sets have it, means with standard errors in any
slicing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numba import config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from leafledger.kernels.comparison.agreement import (
    AREAS,
    Value,
    agreements,
    list_values,
    measure_agreements,
    measure_areas,
    measure_gaps,
    measure_removal,
    prepare_areas,
    root_means,
    set_against,
)
from leafledger.kernels.comparison.player_ranks import place_scores
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prediction_gap.removal import shift_means
from leafledger.kernels.prepare import prepare
from leafledger.kernels.reductions.reduction import MEANS, merge_all
from leafledger.kernels.trees.forest import make_forest
from tests import naive, perturbed
from tests.kernels.attributing import ATOL, attributed
from tests.kernels.prediction_gap.gaps import drawn, outcomes_of
from tests.strategies import batches, forests
from tests.trees import grown

TOP = (1, 3)


@given(data=st.data(), ensemble=forests())
@pytest.mark.slow
def test_values_stand_where_the_list_says(data, ensemble):
    """Areas of each ranking are those of the definition, the pairs' numbers those of sets and of SciPy."""
    rows = data.draw(batches(ensemble, max_rows=1))
    found = [attributed(name, prepare(ensemble, METHODS[name], given_), rows) for name, given_ in (("shapley", {}), ("banzhaf", {"p": 0.25}))]
    scores, forest = [buffers.phi[:, :, :1] for buffers in found], make_forest(ensemble)[1]
    placed = [place_scores(some, forest.players, forest.n_all) for some in scores]
    areas = set_against(measure_areas(found[0].bins, prepare_areas(forest), placed))
    values = np.concatenate((areas, measure_agreements(placed, agreements(TOP))), axis=1)
    listed = list_values(AREAS, 2, agreements(TOP))
    assert values.shape == (ensemble.base.size, len(listed), 1)
    for k in range(ensemble.base.size):
        everywhere = np.zeros((2, ensemble.n_features))
        everywhere[:, forest.players] = [some[k, :, 0] for some in scores]
        for value, number in zip(listed, values[k, :, 0], strict=True):
            mine = everywhere[value.ranking]
            area = {"insertion": naive.insertion(ensemble, rows[0], mine, k), "deletion": naive.deletion(ensemble, rows[0], mine, k)}
            if value.measure in area and value.other is not None:
                mine, other = (values[k, listed.index(Value(value.measure, r)), 0] for r in (value.ranking, value.other))
                assert number == mine - other
            elif value.measure in area:
                assert_allclose(number, float(sum(area[value.measure][1:])) / ensemble.n_features, rtol=0, atol=ATOL)
            elif value.measure.startswith("top"):
                first = [set(naive.ranking(np.abs(some[k, :, 0]))[: int(value.measure[4:])]) for some in scores]
                assert number == len(first[0] & first[1]) / max(1, len(first[0]))
            elif value.measure.startswith("same"):
                first = [set(naive.ranking(np.abs(some[k, :, 0]))[: int(value.measure[5:])]) for some in scores]
                assert number == (first[0] == first[1])
            elif "swaps" in value.measure:
                one, other = (naive.ranking(np.abs(some[k, :, 0]))[: int(value.measure.split()[-1])] for some in scores)
                pair = naive.lengthen(one, other) if value.measure.startswith("list") else (one, naive.sort_by(one, other))
                assert number == naive.swaps(*pair)


@settings(max_examples=2 if config.DISABLE_JIT else 6)  # exact fractions over all subsets are slow
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=2, max_features=3))
@pytest.mark.slow
def test_gaps_of_rankings_are_those_of_the_definition(data, ensemble):
    """By enumeration of all that features become, in exact fractions; features in no split come last, in their own order."""
    rows, seen = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, 2))
    tables, values, ranks = drawn(ensemble, rows, seen)
    scores = data.draw(hnp.arrays(np.float64, (2, ensemble.base.size, tables.units.size, len(rows)), elements=st.integers(-2, 2)))
    placed = [place_scores(some, tables.units, ensemble.n_features) for some in scores]
    found, errors = measure_gaps(values, ranks, [tables, tables], NOISES[0], placed)
    assert (errors == 0).all()
    assert found.shape == (ensemble.base.size, 2, 2, len(rows))
    outcomes = outcomes_of(seen, range(ensemble.n_features), range(ensemble.n_features))
    for i, row in enumerate(rows):
        gap = perturbed.make_gap(ensemble, row, outcomes)
        for r in range(2):
            for k in range(ensemble.base.size):
                size = np.zeros(ensemble.n_features)
                size[tables.units] = np.abs(scores[r, k, :, i])
                expected = float(perturbed.mean_gap(gap, outcomes, naive.ranking(size))[k])
                assert_allclose(found[k, :, r, i], expected, rtol=1e-11, atol=1e-13)


def test_what_a_ranking_does_not_tell_is_not_a_number():
    """Areas are of rankings by score, gaps and removal of those by size; what another one of both tells is what the whole one tells."""
    rng = np.random.default_rng(6)
    ensemble, rows = grown(rng, 3, 3, 4), rng.normal(size=(6, 4))
    tables, values, bins = drawn(ensemble, rows, rng.normal(size=(20, 4)))
    forest = make_forest(ensemble)[1]
    whole = place_scores(rng.normal(size=(1, tables.units.size, 6)), tables.units, 4)
    scored, sized = whole._replace(by_size=None), whole._replace(by_score=None)
    for told, untold, measure in (
        (scored, sized, lambda some: measure_areas(bins, prepare_areas(forest), some)),
        (sized, scored, lambda some: measure_gaps(values, bins, [tables], NOISES[0], some)[0]),
        (sized, scored, lambda some: measure_removal(values, bins, tables, some, (0, 2), np.ones((1, 6)))),
    ):
        among = measure([whole, untold, told])
        assert_array_equal(among[:, :, 2], among[:, :, 0])
        assert_array_equal(among[:, :, :1], measure([whole]))
        assert np.isnan(among[:, :, 1]).all()
        assert np.isnan(measure([untold])).all()


@given(st.integers(0, 2**32), st.integers(2, 9))
def test_the_correlation_is_spearmans(seed, n_players):
    """As SciPy has it, of signed scores and of their magnitudes."""
    a, b = np.random.default_rng(seed).normal(size=(2, 1, n_players, 4))
    for agreement in agreements(())[:2]:
        found = agreement.measure(*(agreement.order(place_scores(some, np.arange(n_players), n_players)) for some in (a, b)))
        sized = (np.abs(a), np.abs(b)) if agreement.name.startswith("size") else (a, b)
        assert_allclose(found[0], [stats.spearmanr(sized[0][0, :, i], sized[1][0, :, i]).statistic for i in range(4)], rtol=0, atol=1e-14)


def test_removal_is_the_squared_error_without_the_first_by_size():
    """Of every ranking and size, of the label less the mean prediction."""
    rng = np.random.default_rng(5)
    ensemble, rows = grown(rng, 3, 3, 4), rng.normal(size=(6, 4))
    tables, values, bins = drawn(ensemble, rows, rng.normal(size=(20, 4)))
    scores, missed = rng.normal(size=(2, 1, tables.units.size, 6)), rng.normal(size=(1, 6))
    placed = [place_scores(some, tables.units, 4) for some in scores]
    found = measure_removal(values, bins, tables, placed, (0, 2), missed)
    assert found.shape == (1, 2, 2, 6)
    assert_allclose(found[0, 0], [missed[0] ** 2] * 2)
    for r in range(2):
        assert_allclose(found[0, 1, r], (missed[0] - shift_means(values, bins, tables, placed[r].by_size[:, None], (2,))[0, 0, 0]) ** 2)


@given(st.integers(0, 2**32), st.sampled_from((0.0, 1e-6, 1.0)))
def test_roots_of_means_and_of_their_differences(seed, apart):
    """Standard errors are those of the mean of every row's part in the root, by its derivative: of two rankings of the same row by row."""
    rng = np.random.default_rng(seed)
    errors = rng.normal(size=(1, 1, 1, 50)) ** 2
    errors = np.concatenate((errors, errors * (1 + apart * rng.random(errors.shape))), axis=2)
    listed, squared = list_values(("removal 1",), 2), set_against(errors)
    found = root_means(MEANS.finalize(MEANS.update(MEANS.init(1, 3), squared, 50), np.arange(3), 3), listed)
    a, b = errors[0, 0]
    roots = np.sqrt([a.mean(), b.mean()])
    assert_allclose(found["mean"][0], [*roots, roots[0] - roots[1]], rtol=1e-12, atol=1e-15)
    parts = a / (2 * roots[0]), b / (2 * roots[1])
    expected = [stats.sem(parts[0]), stats.sem(parts[1]), stats.sem(parts[0] - parts[1])]
    assert_allclose(found["standard_error"][0], expected, rtol=1e-6, atol=1e-12)


def test_roots_of_no_error_are_certain():
    """Where every row is right there is nothing to be unsure of."""
    means = {"mean": np.array([[0.0, 4.0, -4.0]]), "standard_error": np.array([[0.0, 1.0, 1.0]])}
    found = root_means(means, list_values(("removal 1",), 2))
    assert_allclose(found["mean"], [[0.0, 2.0, -2.0]])
    assert_allclose(found["standard_error"], [[0.0, 0.25, 0.25]])


@given(st.integers(0, 2**32), st.lists(st.integers(1, 99), max_size=5))
def test_means_and_standard_errors_in_any_slicing(seed, cuts):
    """The mean, and the standard deviation of all rows by the root of their number."""
    values = np.random.default_rng(seed).normal(3.0, 2.0, (2, 3, 100))
    states = [MEANS.update(MEANS.init(2, 3), np.ascontiguousarray(some), some.shape[2]) for some in np.split(values, sorted(cuts), axis=2)]
    found = MEANS.finalize(merge_all(MEANS, states, 2, 3), np.arange(3), 3)
    assert_allclose(found["mean"], values.mean(axis=2), rtol=1e-12)
    assert_allclose(found["standard_error"], values.std(axis=2, ddof=1) / 10, rtol=1e-10)


def test_one_row_has_no_standard_error():
    """And none has no mean worth a name."""
    found = MEANS.finalize(MEANS.update(MEANS.init(1, 1), np.full((1, 1, 1), 5.0), 1), np.arange(1), 1)
    assert found["mean"][0, 0] == 5.0
    assert np.isnan(found["standard_error"][0, 0])
