"""Axes: a state for everything that a model tells apart, and the states that lead to every leaf."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from leafledger.kernels.effects.axes import find_states
from tests.kernels.effects.changed import Grown
from tests.naive import goes_left
from tests.strategies import batches, forests
from tests.trees import chain


@given(ensemble=forests())
def test_every_state_is_found_by_its_value(ensemble):
    """Between thresholds, every category, unknown ones, and the missing value."""
    grown = Grown(ensemble)
    for j, axis in enumerate(grown.axes):
        values = grown.values(j)
        rows = np.zeros((values.size, ensemble.n_features))
        rows[:, grown.forest.column[j]] = values
        assert_array_equal(find_states(axis, grown.bins(rows))[: values.size], np.arange(axis.n_states))


@given(data=st.data(), ensemble=forests())
def test_runs_hold_the_states_that_lead_to_a_leaf(data, ensemble):
    """A row reaches a leaf if, and only if, its own state is in the leaf's runs and the path's other conditions are met."""
    grown = Grown(ensemble)
    rows = data.draw(batches(ensemble, max_rows=3))
    bins = grown.bins(rows)
    for axis, runs in zip(grown.axes, grown.runs, strict=True):
        states = find_states(axis, bins)[: len(rows)]
        allowed = np.zeros((ensemble.feature.size, axis.n_states), bool)
        for v in range(ensemble.feature.size):
            for first, stop in zip(runs.first[runs.start[v] : runs.start[v + 1]], runs.stop[runs.start[v] : runs.start[v + 1]], strict=True):
                assert first < stop
                assert not allowed[v, first - 1 if first else 0 : stop].any(), "runs are apart"
                allowed[v, first:stop] = True
        for row, state in zip(rows, states, strict=True):
            for root in ensemble.root:
                v = root
                while ensemble.feature[v] >= 0:
                    j = ensemble.feature[v]
                    v = ensemble.left[v] if goes_left(ensemble, v, float(row[j])) else ensemble.right[v]
                assert allowed[v, state]
        for root in ensemble.root:
            leaves = grown.forest.trace.tree == grown.forest.trace.tree[root]
            assert allowed[leaves].any(axis=0).all(), "every state leads to some leaf of every tree"


def test_a_group_of_one_hot_columns_has_a_state_for_each_and_one_for_none():
    """Rows with two of them 1 are in no state."""
    ensemble = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 3)
    grown = Grown(ensemble, np.array([0, 0, 1], np.int32))
    axis, runs = grown.hot([0, 1])
    rows = np.array([[1.0, 0, 7], [0, 1, 7], [0, 0, 7], [1, 1, 7]])
    assert_array_equal(find_states(axis, grown.bins(rows))[:4], [0, 1, 2, -1])
    states = {float(ensemble.value[v, 0]): [*map(int, runs.first[runs.start[v] : runs.start[v + 1]])] for v in np.flatnonzero(ensemble.feature < 0)}
    assert states == {1.0: [1], 2.0: [0], 3.0: []}, "both 1 leads nowhere"
    assert_array_equal(runs.stop, [3, 1])
