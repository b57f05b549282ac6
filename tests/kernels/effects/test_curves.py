"""Partial dependence: the mean margin with a feature set, at every value; by covers, the value of coalitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.effects.curves import draw_curve, draw_surface
from leafledger.kernels.effects.shares import count_shares, weigh_shares
from leafledger.kernels.method.jackknife import standard_errors
from tests import naive
from tests.kernels.attributing import ATOL
from tests.kernels.effects.changed import Grown
from tests.kernels.marginal.against import KEPT, counted, query_for
from tests.strategies import batches, forests


def sets_of(*players):
    return np.array([(*each, -1)[:2] for each in players], np.int64).reshape(-1, 2)


def sizes_of(*lots):
    return np.array([float(len(lot)) for lot in lots])


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_features=4))
def test_a_curve_is_the_mean_margin_with_the_feature_set(data, ensemble, kept):
    """In every state, of every output, with all that may be kept of a background; lots that are left out in turn give the standard error."""
    grown = Grown(ensemble)
    lots = [data.draw(batches(ensemble, max_rows=3)) for _ in range(2)]
    query = query_for("shapley", ensemble, kept=KEPT[kept])
    parts, sets = tuple(counted(query, lot) for lot in lots), sets_of(*((j,) for j in range(grown.forest.n_used)))
    weights = count_shares(query.partitioning, parts, grown.forest.n_players, sets, ensemble.feature.size)
    for j, (axis, runs) in enumerate(zip(grown.axes, grown.runs, strict=True)):
        drawn = draw_curve(grown.nodes, runs, weights[:, j], sizes_of(*lots), grown.forest.ensemble.base, axis.n_states)
        for state, value in enumerate(grown.values(j)):
            of_lots = [grown.changed(lot, {grown.forest.column[j]: value}) for lot in lots]
            mean = np.concatenate(of_lots).mean(axis=0)
            assert_allclose(drawn.value[:, state], mean, rtol=0, atol=ATOL)
            assert_allclose(drawn.error[:, state], standard_errors(np.stack([each.mean(axis=0) for each in of_lots]), mean), rtol=0, atol=ATOL)


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_features=3))
def test_a_surface_is_the_mean_margin_with_two_features_set(data, ensemble, kept):
    """In every pair of states; also where no leaf has both on its path."""
    grown = Grown(ensemble)
    if grown.forest.n_used < 2:
        return
    background, query = data.draw(batches(ensemble, max_rows=4)), query_for("shapley", ensemble, kept=KEPT[kept])
    weights = count_shares(query.partitioning, (counted(query, background),), grown.forest.n_players, sets_of((0, 1)), ensemble.feature.size)
    (a, b), (of_a, of_b) = grown.axes[:2], grown.runs[:2]
    drawn = draw_surface(grown.nodes, of_a, of_b, weights[:, 0], sizes_of(background), grown.forest.ensemble.base, (a.n_states, b.n_states))
    assert np.isnan(drawn.error).all(), "one lot says nothing of errors"
    for s, first in enumerate(grown.values(0)):
        for t, second in enumerate(grown.values(1)):
            changed = grown.changed(background, {grown.forest.column[0]: first, grown.forest.column[1]: second})
            assert_allclose(drawn.value[:, s, t], changed.mean(axis=0), rtol=0, atol=ATOL)


@given(ensemble=forests(max_features=4))
def test_by_covers_a_curve_is_the_coalition_of_the_feature_alone(ensemble):
    """scikit-learn's recursion is the path-dependent game's value of one feature, or of two."""
    grown, sets = Grown(ensemble), []
    n_used = grown.forest.n_used
    sets = sets_of(*((j,) for j in range(n_used)), *([(0, 1)] if n_used > 1 else []))
    weights, base = weigh_shares(grown.forest, grown.nodes, sets), grown.forest.ensemble.base
    for j, (axis, runs) in enumerate(zip(grown.axes, grown.runs, strict=True)):
        drawn = draw_curve(grown.nodes, runs, weights[:, j], np.ones(1), base, axis.n_states)
        for state, value in enumerate(grown.values(j)):
            row = np.zeros(ensemble.n_features)
            row[grown.forest.column[j]] = value
            expected = [float(naive.coalition_value(ensemble, row, {grown.forest.column[j]}, k)) for k in range(base.size)]
            assert_allclose(drawn.value[:, state], expected, rtol=0, atol=ATOL)
    if n_used > 1:
        row, columns = np.zeros(ensemble.n_features), grown.forest.column[:2]
        row[columns] = grown.values(0)[0], grown.values(1)[-1]
        drawn = draw_surface(grown.nodes, *grown.runs[:2], weights[:, -1], np.ones(1), base, tuple(axis.n_states for axis in grown.axes[:2]))
        expected = [float(naive.coalition_value(ensemble, row, {*columns}, k)) for k in range(base.size)]
        assert_allclose(drawn.value[:, 0, -1], expected, rtol=0, atol=ATOL)
