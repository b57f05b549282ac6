"""What ranking methods write: the ranks of the method that ranks, or of the greedy definition, and the gap of the ranking, or its
curves, slice by slice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from kernels._jit import count_bytes
from kernels.methods import METHODS
from kernels.parameters import InvalidParameters
from kernels.prediction_gap import quasi_monte_carlo as sampling
from kernels.prediction_gap.greedy import TIE
from kernels.prediction_gap.noise import NOISES
from kernels.prediction_gap.rankings import SLICE
from kernels.prediction_gap.tables import gap_rows, greedy_rows, place_units
from kernels.prepare import ask_background, measure_background, merge_statistics, prepare, weigh_leaves
from tests import naive, perturbed
from tests.kernels.attributing import attributed, explain, run
from tests.kernels.prediction_gap.test_exact import groups_of, noisy, noisy_outcomes, outcomes_of, stumps
from tests.strategies import batches, forests

SCALE = 0.7
RTOL, ATOL = 1e-9, 1e-12  # probabilities of cells between thresholds are differences


def written(name, ensemble, rows, groups=None, **parameters):
    """Ranks ``(n, outputs, features)``, and the gap of each ranking ``(n, outputs)``."""
    defaults = {parameter.name: parameter.default for parameter in METHODS[name].parameters}
    return taken_apart(run(name, prepare(ensemble, METHODS[name], defaults | parameters, groups), rows, ensemble.n_features + 2)[0])


def taken_apart(phi):
    """Ranks and gaps, which are exact."""
    assert (phi[:, :, -1] == 0).all()
    return phi[:, :, :-2], phi[:, :, -2]


def expected_ranks(ensemble, order):
    """Place of each feature in a ranking, 0 of those in no split and of those that are not ranked."""
    ranks = np.zeros(ensemble.n_features)
    ranks[order] = np.arange(1, len(order) + 1)
    return np.where(np.isin(np.arange(ensemble.n_features), ensemble.feature), ranks, 0)


def defined(ensemble, row, noise):
    """What numeric features become, and PG² of a set of them."""
    asked = [j for j in range(ensemble.n_features) if ensemble.n_categories[j] == 0 and (ensemble.feature == j).any()]
    outcomes = {j: noisy_outcomes(ensemble, j, float(row[j]), SCALE, noise) for j in asked}
    return outcomes, perturbed.make_gap(ensemble, row, outcomes)


def scores_by(ranking, ensemble, rows):
    """phi of a method whose parameters follow its name."""
    name, *values = ranking.split(":")
    known = METHODS[name].parameters
    return explain(name, ensemble, rows, **{parameter.name: parameter.read(value) for parameter, value in zip(known, values, strict=False)})[0]


@pytest.mark.parametrize("ranking", ["shapley", "banzhaf:0.25", "beta:4:1"])
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3), noise=st.sampled_from(NOISES))
def test_rankings_are_those_of_the_method_that_ranks(data, ensemble, ranking, noise):
    """Features by size of its values, equal ones in their own order, with those in no split among them; PGI² by enumeration."""
    rows = data.draw(batches(ensemble, 2))
    phi = scores_by(ranking, ensemble, rows)
    ranks, gaps = written("gap", ensemble, rows, ranking=ranking, noise=noise.name, scale=(SCALE,))
    for i, row in enumerate(rows):
        outcomes, gap = defined(ensemble, row, noise)
        for k in range(ensemble.base.size):
            order = naive.ranking(np.abs(phi[i, k]))
            assert_array_equal(ranks[i, k], expected_ranks(ensemble, order))
            assert_allclose(gaps[i, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)


def curved(ensemble, rows, ranking):
    """Ranks ``(n, outputs, features)``, areas ``(n, outputs, 2)`` and curves ``(outputs, 2 * (features + 1), n)``."""
    prepared = prepare(ensemble, METHODS["curves"], {"ranking": ranking})
    phi = run("curves", prepared, rows, ensemble.n_features + 2)[0]
    return phi[:, :, :-2], phi[:, :, -2:], attributed("curves", prepared, rows).path[:, :, : len(rows)]


@pytest.mark.parametrize("ranking", ["shapley", "banzhaf:0.25", "beta:4:1", "ranker:3:0.1:ascent", "ranker"])
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3))
def test_curves_are_those_of_the_method_that_ranks(data, ensemble, ranking):
    """Features by its values, the highest first, with those in no split among them; every point of both curves in exact fractions."""
    rows = data.draw(batches(ensemble, 2))
    scores = scores_by(ranking, ensemble, rows)
    ranks, areas, path = curved(ensemble, rows, ranking)
    for i, k in np.ndindex(scores.shape[:2]):
        assert_array_equal(ranks[i, k], expected_ranks(ensemble, naive.ranking(scores[i, k])))
        expected = np.array([definition(ensemble, rows[i], scores[i, k], k) for definition in (naive.insertion, naive.deletion)], float)
        assert_allclose(path[k, :, i], expected.reshape(-1), rtol=0, atol=1e-9)
        assert_allclose(areas[i, k], expected[:, 1:].mean(axis=1), rtol=0, atol=1e-9)


def test_curves_of_many_rows_are_those_of_one():
    """More rows than are worked on at a time."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -1.0), (2, -0.5, 1.0, 0.0), (0, 1.0, 0.0, 2.0)), 4)
    rows = np.random.default_rng(0).normal(size=(SLICE + 2, 4))
    ranks, areas, path = curved(ensemble, rows, "shapley")
    for i in (0, SLICE - 1, SLICE, SLICE + 1):
        alone = curved(ensemble, rows[i : i + 1], "shapley")
        assert_array_equal(ranks[i], alone[0][0])
        assert_array_equal(areas[i], alone[1][0])
        assert_array_equal(path[:, :, i], alone[2][:, :, 0])


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ("owen", "expected one of shapley, banzhaf, beta, ranker"),
        (3, "expected one of shapley, banzhaf, beta, ranker"),
        ("shapley:1", "expected at most 0 parameters: shapley"),
        ("banzhaf:2", "expected a number between 0 and 1 for 'p'"),
        ("ranker:2.5", "expected a whole number from 1 to 10000 for 'steps'"),
    ],
)
def test_a_method_that_ranks_is_asked_for_by_name(given_, says):
    """With its parameters after colons; shapley by default."""
    (ranking,) = METHODS["curves"].parameters
    assert (ranking.default, ranking.read("beta:4:1")) == ("shapley", "beta:4:1")
    with pytest.raises(ValueError, match=says):
        ranking.read(given_)


@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3), noise=st.sampled_from(NOISES))
def test_greedy_rankings_are_those_of_the_definition(data, ensemble, noise):
    """Every candidate tried at every step; features that nothing perturbs come last, in their own order. The first k of them are the same."""
    rows, top = data.draw(batches(ensemble, 2)), data.draw(st.integers(0, 4))
    ranks, gaps = written("gap_greedy", ensemble, rows, noise=noise.name, scale=(SCALE,), top=top)
    for i, row in enumerate(rows):
        outcomes, gap = defined(ensemble, row, noise)
        for k in range(ensemble.base.size):
            order, _ = perturbed.rank_greedily(gap, outcomes, k, TIE)
            order = [*order, *(j for j in range(ensemble.n_features) if j not in outcomes)][: top or None]
            assert_array_equal(ranks[i, k], expected_ranks(ensemble, order))
            assert_allclose(gaps[i, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize(
    ("noise", "scale"), list(zip(NOISES, [(), (0.5,), (0.5, 0.0, 2.0)], strict=True)), ids=lambda given_: getattr(given_, "name", None)
)
def test_many_rows_are_ranked_as_one_is(scale, noise):
    """More rows than are worked on at a time, whose values differ; scales of all features or of each, 1 where none is given."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -1.0), (2, -0.5, 1.0, 0.0), (0, 1.0, 0.0, 2.0)), 3)
    rows = np.random.default_rng(0).normal(size=(SLICE + 2, 3))
    tables, values, ranked = noisy(ensemble, rows, scale or 1.0)
    some = [0, SLICE - 1, SLICE, SLICE + 1]
    order, of_prefix = greedy_rows(tables, noise, values[:, some], ranked[:, some], 3)
    ranks, gaps = written("gap_greedy", ensemble, rows, noise=noise.name, scale=scale)
    assert_array_equal(ranks[some, 0], np.argsort(order[:, 0], axis=1) + 1)
    assert_array_equal(gaps[some], of_prefix.mean(axis=2))
    phi, _, _ = explain("shapley", ensemble, rows)
    order = np.argsort(-np.abs(phi[some]), axis=2, kind="stable")
    ranks, gaps = written("gap", ensemble, rows, noise=noise.name, scale=scale)
    assert_array_equal(ranks[some, 0], np.argsort(order[:, 0], axis=1) + 1)
    assert_array_equal(gaps[some], gap_rows(tables, noise, values[:, some], ranked[:, some], place_units(tables, order)))


@pytest.mark.parametrize("name", ["gap", "gap_greedy"])
def test_beyond_the_budget_gaps_are_estimated_where_they_may_be(name, monkeypatch):
    """The same rankings, PGI² within its standard errors; the points are those of the seed."""
    monkeypatch.setattr(sampling, "POINTS", 1 << (6 if config.DISABLE_JIT else 10))
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -2.0), (0, 1.0, 0.0, 4.0)), 3)
    rows, parameters = np.random.default_rng(0).normal(size=(2, 3)), {"budget": 1.0, "approximate": "yes", "noise": "normal", "scale": (0.5,)}
    defaults = {parameter.name: parameter.default for parameter in METHODS[name].parameters}
    found, again, other = (
        run(name, prepare(ensemble, METHODS[name], defaults | parameters | {"seed": seed}), rows, ensemble.n_features + 2)[0] for seed in (1, 1, 2)
    )
    ranks, gaps = written(name, ensemble, rows, noise="normal", scale=(0.5,))
    assert_array_equal(found[:, :, :-2], ranks)
    assert (np.abs(found[:, :, -2] - gaps) < 5 * found[:, :, -1]).all()
    assert_array_equal(found, again)
    assert (found[:, :, -2:] != other[:, :, -2:]).any()


def against(name, ensemble, rows, parts, groups=None, **parameters):
    """The same where rows are perturbed by what is measured of a background that comes in parts, and a bound on the bytes of tables."""
    method, n_rows = METHODS[name], sum(map(len, parts))
    query = ask_background(ensemble, method, groups, n_rows=n_rows, budget=1 << 30)
    counted = merge_statistics([measure_background(query, part.T[query.bins.column]) for part in parts])
    given_ = {parameter.name: parameter.default for parameter in method.parameters} | parameters
    prepared = prepare(ensemble, method, given_, groups, background=(query, counted))
    phi, _, _ = run(name, prepared, rows, ensemble.n_features + 2 if groups is None else int(max(groups)) + 3)
    return *taken_apart(phi), query, prepared


@pytest.mark.parametrize("name", ["gap", "gap_greedy"])
@pytest.mark.parametrize("grouped", [False, True])
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=2, max_features=3))
def test_values_are_drawn_from_a_background(data, ensemble, grouped, name):
    """Numbers, categories and groups by enumeration of all that they become, whatever parts the background comes in."""
    rows, parts = data.draw(batches(ensemble, 1)), [data.draw(batches(ensemble, 2)) for _ in range(2)]
    groups = groups_of(data, ensemble) if grouped else None
    ranks, gaps, query, prepared = against(name, ensemble, rows, parts, groups, noise="empirical")
    of = np.arange(ensemble.n_features) if groups is None else groups
    units = np.unique(of[np.unique(ensemble.feature[ensemble.feature >= 0])])
    outcomes = outcomes_of(np.concatenate(parts), of, units.tolist())
    gap = perturbed.make_gap(ensemble, rows[0], outcomes)
    for k in range(ensemble.base.size):
        if name == "gap":
            order = [u for u in np.argsort(ranks[0, k], kind="stable") if ranks[0, k, u] > 0]
            order += [u for u in range(of.max() + 1) if u not in order] if len(order) < of.max() + 1 else []
        else:
            order, _ = perturbed.rank_greedily(gap, outcomes, k, TIE)
            assert_array_equal(ranks[0, k][order], np.arange(1, len(order) + 1))
            order = [*order, *(u for u in range(of.max() + 1) if u not in order)]
        if name == "gap_greedy" or not (set(range(of.max() + 1)) - set(units.tolist())):
            assert_allclose(gaps[0, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)
    assert count_bytes(prepared.method.gap) + count_bytes(prepared.method.of_ranker) <= query.n_bytes[0]


@pytest.mark.parametrize("noise", [noise.name for noise in NOISES])
def test_scales_are_in_deviations_of_a_background(noise):
    """Each feature's own."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -1.0), (2, -0.5, 1.0, 0.0), (0, 1.0, 0.0, 2.0)), 3)
    rows, seen = np.random.default_rng(0).normal(size=(2, 5, 3)) * [1.0, 3.0, 0.2]
    _, gaps, _, _ = against("gap", ensemble, rows, [seen[:2], seen[2:]], noise=noise, scale=(0.5,))
    _, expected = written("gap", ensemble, rows, noise=noise, scale=tuple(0.5 * seen.std(axis=0)))
    assert_allclose(gaps, expected, rtol=1e-10)


@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3))
def test_what_is_not_resampled_stays(data, ensemble):
    """Categories stay as they do without a background."""
    rows, seen = data.draw(batches(ensemble, 2)), np.tile([[-1.0], [1.0]], (1, ensemble.n_features))  # deviations of 1
    ranks, gaps, _, _ = against("gap", ensemble, rows, [seen], resample="no", scale=(SCALE,))
    expected = written("gap", ensemble, rows, scale=(SCALE,))
    assert_array_equal(ranks, expected[0])
    assert_allclose(gaps, expected[1], rtol=1e-12, atol=1e-15)


def test_the_model_is_no_background():
    """There is nothing to be measured of it."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0),), 1)
    query = ask_background(ensemble, METHODS["gap"], n_rows=None, budget=1 << 30)
    with pytest.raises(InvalidParameters, match="rows are perturbed by what is measured of a background, expected rows, got the model"):
        weigh_leaves(ensemble, METHODS["gap"], None, query)


@pytest.mark.parametrize("name", ["gap", "gap_greedy"])
@pytest.mark.parametrize(
    ("groups", "parameters", "says"),
    [
        ([0, 0], {}, "groups of features are drawn from a background, but none was given"),
        (None, {"noise": "empirical"}, "'empirical', which draws values from a background, but none was given"),
        (None, {"scale": (1.0, 1.0, 1.0)}, "parameter 'scale' has 3 numbers, expected one of at least 0, or as many for 2 features"),
        (None, {"scale": (1.0, -1.0)}, "parameter 'scale' has 2 numbers, expected one of at least 0"),
        (None, {"budget": 1.0}, "pairs of leaves per row, the budget is 1"),
    ],
)
def test_what_cannot_be_done_is_refused(name, groups, parameters, says):
    """Before any row is seen."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (0, 1.0, 0.0, 1.0), (1, 0.0, 0.0, 1.0)), 2)
    with pytest.raises(InvalidParameters, match=says):
        written(name, ensemble, np.zeros((1, 2)), groups, **parameters)


@pytest.mark.parametrize("given_", ["inf", -1, 0.5, "many"])
def test_how_many_are_ranked_is_a_whole_number(given_):
    """0 stands for all."""
    top = next(parameter for parameter in METHODS["gap_greedy"].parameters if parameter.name == "top")
    assert (top.default, top.read("5")) == (0, 5)
    with pytest.raises(ValueError, match=r"expected a (whole )?number"):
        top.read(given_)


def test_partitions_of_single_features_are_no_groups():
    """Numbered the other way round, ranks are the same and equal ones come the other way round."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.0, 0.0, 1.0), (2, 0.0, 0.0, 2.0)), 3)
    for name in ("gap", "gap_greedy"):
        assert written(name, ensemble, np.zeros((1, 3)))[0].tolist() == [[[2, 3, 1]]]
        assert written(name, ensemble, np.zeros((1, 3)), [2, 1, 0])[0].tolist() == [[[1, 2, 3]]]
