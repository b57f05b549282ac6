"""The methods ranker and curves: their parameters, which methods rank, and the curves of each one's ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernels.buffers import make_buffers
from kernels.methods import METHODS
from kernels.parameters import InvalidParameters
from kernels.prepare import prepare
from kernels.summaries import Subject
from tests import naive
from tests.hypercubes import full_tree
from tests.kernels.attributing import defaults, scores_by
from tests.kernels.ranking.ranked import curved, expected_ranks
from tests.strategies import batches, forests


@pytest.mark.parametrize("ranking", ["shapley", "banzhaf:0.25", "beta:4:1", "ranker:3:0.1:ascent", "ranker"])
@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3))
def test_curves_are_those_of_the_method_that_ranks(data, ensemble, ranking):
    """Features by its values, the highest first, with those in no split among them; every point of both curves in exact fractions."""
    rows = data.draw(batches(ensemble, 2))
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


def test_there_is_no_marginal_ranker():
    """Nor interactions: the game is the trees' own."""
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
