"""Rows' own curves: the margin of the row with the feature set, at every value."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.effects.rows import row_curves
from tests.kernels.attributing import ATOL
from tests.kernels.effects.changed import Grown
from tests.strategies import batches, forests


@given(data=st.data(), ensemble=forests())
def test_a_row_s_curve_is_its_margin_with_the_feature_set(data, ensemble):
    """In every state, of every output."""
    grown, rows = Grown(ensemble), data.draw(batches(ensemble, max_rows=3))
    for j, (axis, runs) in enumerate(zip(grown.axes, grown.runs, strict=True)):
        found = row_curves(grown.nodes, grown.forest.ensemble.base, axis, runs, grown.bins(rows), len(rows))
        for state, value in enumerate(grown.values(j)):
            assert_allclose(found[:, :, state].T, grown.changed(rows, {grown.forest.column[j]: value}), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_features=3))
def test_a_group_s_columns_change_together(data, ensemble):
    """Each is 1 in turn and the others are 0."""
    groups = np.zeros(ensemble.n_features, np.int32)
    grown, rows = Grown(ensemble, groups), data.draw(batches(ensemble, max_rows=2))
    used = [j for j in range(grown.forest.n_used) if not ensemble.n_categories[grown.forest.column[j]]]
    if not used:
        return
    axis, runs = grown.hot(used)
    found, columns = row_curves(grown.nodes, grown.forest.ensemble.base, axis, runs, grown.bins(rows), len(rows)), grown.forest.column[used]
    for state in range(axis.n_states):
        settings = {column: float(place == state) for place, column in enumerate(columns)}
        assert_allclose(found[:, :, state].T, grown.changed(rows, settings), rtol=0, atol=ATOL)
