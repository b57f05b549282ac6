"""What ranking methods write: the ranks of the method that ranks, or of the greedy definition, and the gap of the ranking, slice by slice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernels.batch import prepare
from kernels.greedy import TIE
from kernels.methods import METHODS, RANKERS
from kernels.noise import NOISES
from kernels.parameters import InvalidParameters
from kernels.prediction_gap import gap_rows, greedy_rows, place_units
from kernels.rankings import SLICE
from tests import naive, perturbed
from tests.kernels.test_gap import noisy, noisy_outcomes, stumps
from tests.kernels.test_semivalue import explain, run
from tests.strategies import batches, forests

SCALE = 0.7
RTOL, ATOL = 1e-9, 1e-12  # probabilities of cells between thresholds are differences


def written(name, ensemble, rows, groups=None, **parameters):
    """Ranks ``(n, outputs, features)``, and the gap of each ranking ``(n, outputs)``."""
    defaults = {parameter.name: parameter.default for parameter in METHODS[name].parameters}
    phi, _, _ = run(name, prepare(ensemble, METHODS[name], defaults | parameters, groups), rows, ensemble.n_features + 1)
    return phi[:, :, :-1], phi[:, :, -1]


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


@pytest.mark.parametrize("ranking", RANKERS)
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=3), noise=st.sampled_from(NOISES))
def test_rankings_are_those_of_the_method_that_ranks(data, ensemble, ranking, noise):
    """Features by size of its values, equal ones in their own order, with those in no split among them; PGI² by enumeration."""
    rows = data.draw(batches(ensemble, 2))
    phi, _, _ = explain(ranking, ensemble, rows)
    ranks, gaps = written("gap", ensemble, rows, ranking=ranking, noise=noise.name, scale=(SCALE,))
    for i, row in enumerate(rows):
        outcomes, gap = defined(ensemble, row, noise)
        for k in range(ensemble.base.size):
            order = naive.ranking(np.abs(phi[i, k]))
            assert_array_equal(ranks[i, k], expected_ranks(ensemble, order))
            assert_allclose(gaps[i, k], float(perturbed.mean_gap(gap, outcomes, order)[k]), rtol=RTOL, atol=ATOL)


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
    assert_array_equal(gaps[some], gap_rows(tables, noise, values[:, some], ranked[:, some], *place_units(tables, order)))


@pytest.mark.parametrize("name", ["gap", "gap_greedy"])
@pytest.mark.parametrize(
    ("groups", "parameters", "says"),
    [
        ([0, 0], {}, "groups of features are drawn from data, which a run does not read beforehand"),
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
