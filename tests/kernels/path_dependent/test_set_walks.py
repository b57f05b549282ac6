"""Interactions of sets in the path-dependent game are those of their definitions, walked and looked up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leafledger.kernels.methods import METHODS
from leafledger.kernels.set_indices import INDICES, Sets, of_index
from tests.kernels.attributing import ATOL, WEIGHTS, attributed, defaults
from tests.kernels.interacting import asked, by_index, by_measure, check_sets, find, point
from tests.strategies import batches, forests, partitions
from tests.trees import chain, join

SIGNED = 10 * ATOL  # signed weights of five players add up to 10 in size


@pytest.mark.again
@pytest.mark.parametrize("index", INDICES)
@given(data=st.data(), ensemble=forests(max_trees=2))
@settings(max_examples=12)
@pytest.mark.usefixtures("trees")
def test_interactions_are_those_of_the_definition(data, ensemble, index):
    """Of features, in orders 1 to 4: categories, missing values, repeated features, several outputs, vector leaves, no cover."""
    rows, order = data.draw(batches(ensemble, max_rows=1)), data.draw(st.integers(1, 4))
    found, _ = find(ensemble, rows, asked(index, order))
    check_sets(found, ensemble, rows, by_index(index, order), ensemble.n_features, SIGNED)


@pytest.mark.parametrize("index", INDICES)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=6))
@settings(max_examples=6)
@pytest.mark.usefixtures("trees")
def test_of_groups_too(data, ensemble, index):
    """Players are groups of features."""
    rows, group, order = data.draw(batches(ensemble, max_rows=1)), data.draw(partitions(ensemble, max_groups=4)), data.draw(st.integers(1, 4))
    found, _ = find(ensemble, rows, asked(index, order), group=group)
    check_sets(found, ensemble, rows, by_index(index, order), int(group.max()) + 1, SIGNED, group)


@pytest.mark.parametrize("name", ["banzhaf", "beta"])
@given(data=st.data(), ensemble=forests(max_trees=2))
@settings(max_examples=10)
@pytest.mark.usefixtures("walked")
def test_methods_with_a_measure_of_their_own_keep_it(data, ensemble, name):
    """For sets of every size."""
    rows = data.draw(batches(ensemble, max_rows=1))
    found, _ = find(ensemble, rows, Sets(3, ""), name, defaults(name))
    check_sets(found, ensemble, rows, by_measure(3, WEIGHTS[name]), ensemble.n_features, ATOL)


@pytest.mark.parametrize("p", [0.0, 1e-12, 0.25, 1.0])
@pytest.mark.usefixtures("walked")
def test_measures_on_the_border_lose_nothing(p):
    """Of chains of five players, some of them without training weight."""
    rng = np.random.default_rng(1)
    ensemble = join([chain(rng.permutation(5), rng.standard_normal(6), rng.uniform(1, 5, 6) * [1, 1, 0, 1, 0, 1], 5) for _ in range(3)])
    row = np.array([[1.0, 0.0, 1.0, 1.0, 0.0]])
    found, _ = find(ensemble, row, Sets(4, ""), "banzhaf", {"p": p})
    check_sets(found, ensemble, row, by_measure(4, point(p)), 5, ATOL)


@pytest.mark.again
@pytest.mark.parametrize("order", [1, 2, 3, 9])
@pytest.mark.parametrize("index", [index for index, said in INDICES.items() if said.adds_up])
@pytest.mark.usefixtures("walked")
def test_long_paths_add_up(order, index):
    """Nine players: more points than a walk takes at once. Every row's sets add up to its margin less the base value."""
    rng = np.random.default_rng(order)
    ensemble = join([chain(rng.permutation(9), rng.standard_normal(10), rng.uniform(1, 9, 10), 9), chain([3, 3, 1], [1, 2, -1, 3], np.ones(4), 9)])
    rows = (rng.random((3, 9)) < 0.7).astype(float)
    found, prepared = find(ensemble, rows, asked(index, order))
    margin = attributed("shapley", prepared, rows).margin[:, :3]
    assert max(map(len, found)) == order
    cancel = np.abs(of_index(index, order).rule(9).weights).sum(axis=1).max()  # 1,751 of k-SII of order 9
    assert np.abs(sum(found.values()) + prepared.base[:, None] - margin).max() < ATOL * (10 + cancel)


@pytest.mark.usefixtures("walked")
def test_pairs_of_the_shapley_index_are_those_without_an_order():
    """By another walk."""
    rng = np.random.default_rng(7)
    ensemble = join([chain(rng.permutation(6), rng.standard_normal(7), rng.uniform(1, 9, 7), 6) for _ in range(4)])
    rows = (rng.random((4, 6)) < 0.5).astype(float)
    pairs, _ = find(ensemble, rows, None)
    sets, _ = find(ensemble, rows, asked("SII", 3))
    assert METHODS["shapley"].games.index == "k-SII"
    assert len(pairs) == 15
    for pair, values in pairs.items():
        assert np.abs(values - sets[pair]).max() < ATOL
