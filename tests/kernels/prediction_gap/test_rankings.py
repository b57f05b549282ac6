"""Rankings of rows, slice by slice, exact or estimated, and what cannot be ranked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap import quasi_monte_carlo as sampling
from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prediction_gap.rankings import SLICE, add_gaps, add_greedy, order_by_size
from leafledger.kernels.prediction_gap.tables import gap_rows, greedy_rows, place_units
from leafledger.kernels.prepare import prepare
from leafledger.kernels.trees.binning import BATCH
from tests import naive
from tests.kernels.attributing import defaults, explain
from tests.kernels.prediction_gap.gaps import binned, noisy
from tests.kernels.prediction_gap.ranked import against, written
from tests.strategies import batches, forests
from tests.trees import stumps


@pytest.mark.again
@pytest.mark.parametrize(
    ("noise", "scale"), list(zip(NOISES, [(), (0.5,), (0.5, 0.0, 2.0)], strict=True)), ids=lambda given_: getattr(given_, "name", None)
)
@pytest.mark.slow
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


def alone(name, ensemble, rows, **parameters):
    """What a method adds for these rows, without those that buffers are padded with, ``(outputs, features + 2, n)``."""
    tables = prepare(ensemble, METHODS[name], defaults(name) | parameters).method
    values, bins, _ = binned(ensemble, rows)
    phi = np.zeros((ensemble.base.size, ensemble.n_features + 2, len(rows)))
    if name == "gap_greedy":
        add_greedy(values, bins, tables, phi)
    else:
        scores = explain("shapley", ensemble, rows)[0][:, :, tables.gap.units].transpose(1, 2, 0)
        add_gaps(values, bins, tables, scores, phi)
    return phi


@pytest.mark.parametrize("name", ["gap", "gap_greedy"])
def test_beyond_the_budget_gaps_are_estimated_where_they_may_be(name, monkeypatch):
    """The same rankings, PGI² within its standard errors; the points are those of the seed."""
    monkeypatch.setattr(sampling, "POINTS", BATCH if config.DISABLE_JIT else sampling.POINTS)
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -2.0), (0, 1.0, 0.0, 4.0)), 3)
    rows, parameters = np.random.default_rng(0).normal(size=(2, 3)), {"noise": "normal", "scale": (0.5,)}
    exact = alone(name, ensemble, rows, **parameters)
    assert (exact[:, -1] == 0).all()
    found, again, other = (alone(name, ensemble, rows, **parameters, budget=1.0, approximate="yes", seed=seed) for seed in (1, 1, 2))
    assert_array_equal(found[:, :-2], exact[:, :-2])
    assert (np.abs(found[:, -2] - exact[:, -2]) < 5 * found[:, -1]).all()
    assert_array_equal(found, again)
    assert (found[:, -2:] != other[:, -2:]).any()


@given(data=st.data(), ensemble=forests(max_features=4))
def test_groups_are_ordered_by_the_size_of_their_scores(data, ensemble):
    """Whatever their sign; those that no split asks for count as 0, and equal ones keep their order."""
    tables = noisy(ensemble, data.draw(batches(ensemble, 1)), 1.0)[0]
    n_units, n = tables.units.size, 2
    drawn_ = [data.draw(st.integers(-2, 2)) for _ in range(ensemble.base.size * n_units * n)]
    scores = np.array(drawn_, float).reshape(ensemble.base.size, n_units, n)
    found = order_by_size(tables, scores)
    for i, k in np.ndindex(n, ensemble.base.size):
        size = np.zeros(ensemble.n_features)
        size[tables.units] = np.abs(scores[k, :, i])
        assert found[i, k].tolist() == naive.ranking(size)


@pytest.mark.parametrize("noise", [noise.name for noise in NOISES])
def test_scales_are_in_deviations_of_a_background(noise):
    """Each feature's own."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -1.0), (2, -0.5, 1.0, 0.0), (0, 1.0, 0.0, 2.0)), 3)
    rows, seen = np.random.default_rng(0).normal(size=(2, 5, 3)) * [1.0, 3.0, 0.2]
    _, gaps, _, _ = against("gap", ensemble, rows, [seen[:2], seen[2:]], noise=noise, scale=(0.5,))
    _, expected = written("gap", ensemble, rows, noise=noise, scale=tuple(0.5 * seen.std(axis=0)))
    assert_allclose(gaps, expected, rtol=1e-10)


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
