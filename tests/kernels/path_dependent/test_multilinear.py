"""The gradient at any point: equal to enumeration, to finite differences of itself, and to values that are gradients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config
from numpy.testing import assert_allclose

from tests import naive
from tests.kernels.attributing import ATOL, explain
from tests.kernels.path_dependent.gradients import drawn_points, gradients
from tests.strategies import batches, forests
from tests.trees import chain, with_statistic


@given(data=st.data(), ensemble=forests())
def test_gradients_are_those_of_the_definition(data, ensemble):
    """Every derivative, and the expected margin, equal the enumeration of all subsets in exact fractions, on the faces of the cube as well."""
    rows = data.draw(batches(ensemble, max_rows=2))
    z = drawn_points(data, ensemble, rows)
    phi, margin = gradients(ensemble, rows, z)
    for i, row in enumerate(rows):
        for k in range(ensemble.base.size):
            assert_allclose(phi[i, k], np.array(naive.gradient(ensemble, row, z[i, k], k), float), rtol=0, atol=ATOL)
            assert_allclose(margin[i, k], float(naive.extension(ensemble, row, z[i, k], k)), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests().filter(lambda ensemble: (ensemble.category_set >= 0).any()))
def test_a_column_that_no_split_asks_for_changes_nothing(data, ensemble):
    """A statistic that is there for other trees is a row of bins all the same: categorical splits are compared behind it."""
    rows = data.draw(batches(ensemble, max_rows=2))
    z = drawn_points(data, ensemble, rows)
    phi, margin = gradients(with_statistic(ensemble), np.pad(rows, ((0, 0), (0, 1))), np.pad(z, ((0, 0), (0, 0), (0, 1))))
    assert (phi[:, :, -1] == 0).all()
    for i, row in enumerate(rows):
        for k in range(ensemble.base.size):
            assert_allclose(phi[i, k, :-1], np.array(naive.gradient(ensemble, row, z[i, k], k), float), rtol=0, atol=ATOL)
            assert_allclose(margin[i, k], float(naive.extension(ensemble, row, z[i, k], k)), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_depth=5, max_features=7), p=st.sampled_from((0.5, 0.125, 0.75, 0.0, 1.0)))
def test_on_the_diagonal_gradients_are_banzhaf_values(data, ensemble, p):
    """Where everything is present with probability p, the derivatives are the weighted Banzhaf values, which the other kernel computes."""
    rows = data.draw(batches(ensemble))
    phi, _ = gradients(ensemble, rows, np.full((len(rows), ensemble.base.size, ensemble.n_features), p))
    assert_allclose(phi, explain("banzhaf", ensemble, rows, p=p)[0], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_depth=5, max_features=7))
def test_the_corners_are_the_margin_and_the_base_value(data, ensemble):
    """With all present f is the row's margin, with none the value of the empty coalition."""
    rows = data.draw(batches(ensemble))
    shape = (len(rows), ensemble.base.size, ensemble.n_features)
    _, base, margin = explain("banzhaf", ensemble, rows)
    assert_allclose(gradients(ensemble, rows, np.ones(shape))[1], margin, rtol=0, atol=ATOL)
    assert_allclose(gradients(ensemble, rows, np.zeros(shape))[1], np.tile(base, (len(rows), 1)), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
def test_along_an_axis_the_derivative_is_a_difference(data, ensemble):
    """f is linear in each probability alone: f at its end less f at its start, whatever the others are."""
    rows = data.draw(batches(ensemble, max_rows=2))
    z = drawn_points(data, ensemble, rows)
    phi, _ = gradients(ensemble, rows, z)
    j = data.draw(st.integers(0, ensemble.n_features - 1))
    there, not_there = z.copy(), z.copy()
    there[:, :, j], not_there[:, :, j] = 1.0, 0.0
    difference = gradients(ensemble, rows, there)[1] - gradients(ensemble, rows, not_there)[1]
    assert_allclose(phi[:, :, j], difference, rtol=0, atol=ATOL)


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-15])
@pytest.mark.parametrize("z", [0.0, 1e-6, 0.5, 1.0])
def test_rare_branches_do_no_harm(rare, z):
    """A row on the rare side of two splits of one feature: right to rounding of f, whatever the covers."""
    ensemble = chain(np.array([0, 1, 0]), np.array([0.0, 0.0, 1.0, 5.0]), np.array([1.0, rare, rare * rare, rare * rare]), 2)
    row, point = np.array([[1.0, 1.0]]), np.full((1, 1, 2), z)
    phi, _ = gradients(ensemble, row, point)
    assert_allclose(phi[0, 0], np.array(naive.gradient(ensemble, row[0], point[0, 0], 0), float), rtol=0, atol=ATOL)


@pytest.mark.parametrize("depth", [30] if config.DISABLE_JIT else [100, 1000])
def test_deep_chains_are_exact(depth):
    """A chain whose only leaf other than 0 asks all features: its derivatives are that leaf times products of one less."""
    value = 2.0**40
    ensemble = chain(np.arange(depth), np.append(np.zeros(depth), value), np.append(np.ones(depth), 99.0), depth)
    z = np.random.default_rng(3).uniform(0.9, 1.0, (1, 1, depth))
    phi, margin = gradients(ensemble, np.ones((1, depth)), z)
    absent = (99.0 + np.arange(depth)[::-1]) / (100.0 + np.arange(depth)[::-1])
    factor = (1 - z[0, 0]) * absent + z[0, 0]
    assert_allclose(margin[0, 0], value * factor.prod(), rtol=1e-12)
    assert_allclose(phi[0, 0], value * (1 - absent) * factor.prod() / factor, rtol=1e-10)
