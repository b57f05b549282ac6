"""The methods ranker and curves: their parameters, which methods rank, and the curves of each one's ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.notation import read_method
from leafledger.kernels.method.open_parameters import find_open
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, prepare
from leafledger.kernels.reductions.summary import Subject
from leafledger.kernels.slices.buffers import make_buffers
from tests import naive
from tests.hypercubes import full_tree
from tests.kernels.attributing import ATOL, attributed, defaults, run, scores_by
from tests.kernels.marginal.against import against
from tests.kernels.ranking.ranked import RANKINGS, assert_ranked, curved, expected_ranks, write_ranking
from tests.strategies import batches, forests
from tests.trees import chain


@pytest.mark.again
@pytest.mark.parametrize("ranking", RANKINGS)
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3))
def test_curves_are_those_of_the_method_that_ranks(data, ensemble, ranking):
    """Features by its values, the highest first, with those in no split among them; every point of both curves in exact fractions."""
    rows, ranking = data.draw(batches(ensemble, 2)), write_ranking(ranking, ensemble)
    scores = scores_by(ranking, ensemble, rows)
    ranks, found, path = curved(ensemble, rows, ranking)
    for i, k in np.ndindex(scores.shape[:2]):
        assert_array_equal(ranks[i, k], expected_ranks(ensemble, naive.ranking(scores[i, k])))
        expected = np.array([definition(ensemble, rows[i], scores[i, k], k) for definition in (naive.insertion, naive.deletion)], float)
        assert_allclose(path[k, :, i], expected.reshape(-1), rtol=0, atol=1e-9)
        assert_allclose(found[i, k, :2], expected[:, 1:].mean(axis=1), rtol=0, atol=1e-9)
        for sign, curve, (size, margin) in zip((1, -1), expected, found[i, k, 2:].reshape(2, 2), strict=True):
            best = [value >= max(sign * curve) - 1e-9 for value in sign * curve].index(True)
            assert size == best
            assert abs(margin - curve[best]) < 1e-9


@pytest.mark.parametrize("ranking", RANKINGS[:-1])
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=4))
def test_curves_against_a_background(data, ensemble, ranking):
    """Of the marginal game, by the method's values there."""
    rows, background = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, max_rows=3))
    ranking = write_ranking(ranking, ensemble)
    method, given_ = read_method(ranking, METHODS)
    ranked = against(method.name, ensemble, background, given_)
    scores = run(method.name, ranked, rows, ensemble.n_features)[0]
    buffers = attributed("curves", against("curves", ensemble, background, {"ranking": ranking}), rows)
    for i, k in np.ndindex(scores.shape[:2]):
        n = ensemble.n_features
        ranks = buffers.phi[k, :n, i]
        assert_ranked(ranks, scores[i, k])
        expected = np.array([curve(ensemble, rows[i], -ranks, k, background) for curve in (naive.insertion, naive.deletion)], float)
        assert_allclose(buffers.path[k, :, i], expected.reshape(-1), rtol=0, atol=ATOL)
        assert_allclose(buffers.phi[k, n : n + 2, i], expected[:, 1:].mean(axis=1), rtol=0, atol=ATOL)


@pytest.mark.parametrize("name", ["ranker", "curves"])
def test_leaves_of_too_many_features_are_refused_against_a_background(name):
    """Rather than filling the memory with a number for each of their sets."""
    ensemble = chain(np.arange(21), np.arange(22.0), np.ones(22), 21)
    with pytest.raises(InvalidParameters, match="a leaf has 21 features, or groups, above it; rankings against a background take at most 20"):
        ask_background(ensemble, METHODS[name], n_rows=1, budget=1 << 40)
    ask_background(ensemble, METHODS[name], np.arange(21) // 2, n_rows=1, budget=1 << 40)


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ("owen", "expected one of shapley, banzhaf, beta, semivalue, probabilistic, ranker"),
        (3, "expected one of shapley, banzhaf, beta, semivalue, probabilistic, ranker"),
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


@pytest.mark.parametrize(("name", "given_"), [("steps", 0), ("steps", 1.5), ("steps", "many"), ("optimizer", "sgd"), ("rate", 0)])
def test_parameters_out_of_range_are_refused(name, given_):
    """Whole numbers of steps, a rate above 0, one of two optimizers."""
    parameter = next(parameter for parameter in METHODS["ranker"].parameters if parameter.name == name)
    with pytest.raises(ValueError, match="expected"):
        parameter.read(given_)


def test_parameters_are_read():
    """Text from a command line, or numbers."""
    read = {parameter.name: parameter.read for parameter in METHODS["ranker"].parameters}
    assert (read["steps"]("100"), read["rate"]("5"), read["optimizer"]("ascent")) == (100, 5.0, "ascent")


def test_the_ranker_has_no_interactions():
    """It is no value of a game."""
    with pytest.raises(InvalidParameters, match="no interactions"):
        prepare(full_tree([0.0, 1.0], [0]), METHODS["ranker"], {"steps": 1, "rate": 0.1, "optimizer": "adam"}, interactions=True)


def test_curves_are_summarised_point_by_point():
    """Both curves' names, and how many features are present: means over rows as NumPy has them."""
    summary, n_points = METHODS["curves"].summaries[1], 3
    path = np.random.default_rng(0).normal(size=(2, 2 * n_points, 20))
    state = summary.reduction.update(summary.reduction.init(2, 2 * n_points), path, 20)
    subject = Subject(("a", "b"), ("x", "y", *METHODS["curves"].phi.scores), np.arange(4), np.zeros((0, 2), np.int64), 2 * n_points)
    found = summary.tabulate(state, subject)["curves"].columns
    assert tuple(found) == summary.columns
    assert found["curve"] == (["insertion"] * n_points + ["deletion"] * n_points) * 2
    assert found["present"] == [0, 1, 2] * 4
    assert_allclose(found["mean"], path.mean(axis=2).reshape(-1), rtol=1e-12)


@given(ensemble=forests(), steps=st.integers(1, 5))
def test_paths_have_as_many_steps_as_are_declared(ensemble, steps):
    """The ranker's as it is told, curves' one more than features, for both."""
    ranker = prepare(ensemble, METHODS["ranker"], defaults("ranker") | {"steps": steps})
    assert make_buffers(ranker, 1).path.shape[1] == steps
    curves = prepare(ensemble, METHODS["curves"], defaults("curves"))
    assert make_buffers(curves, 1).path.shape[1] == 2 * (ensemble.n_features + 1)


@pytest.mark.parametrize(
    ("name", "given", "filled"),
    [
        ("ranker", {"steps": 3, "rate": "auto", "optimizer": "ascent"}, {"steps": 3, "rate": 0.05, "optimizer": "ascent"}),
        ("curves", {"ranking": "ranker:3:auto:ascent"}, {"ranking": "ranker:3:0.05:ascent"}),
    ],
)
def test_a_rate_may_be_left_open(name, given, filled):
    """The ranker is tried in its place, and the number that is found is read as if it had been given; before that there are no tables."""
    method = METHODS[name]
    read = defaults(name) | {parameter.name: parameter.read(given[parameter.name]) for parameter in method.parameters if parameter.name in given}
    tried, parameters = find_open(method, read)
    assert (tried.name, parameters["steps"], parameters["optimizer"]) == ("ranker", 3, "ascent")
    prepare(full_tree([0.0, 1.0], [0]), tried, parameters)
    assert method.tuning.fill(read, 0.05) == read | filled
    assert find_open(method, method.tuning.fill(read, 0.05)) is None
    with pytest.raises(InvalidParameters, match="rate is 'auto', but there are no rows to choose it by; expected a number"):
        prepare(full_tree([0.0, 1.0], [0]), method, read)


def test_values_without_a_rate_leave_nothing_open():
    """Of curves."""
    assert find_open(METHODS["curves"], {"ranking": "beta:4:1"}) is None
