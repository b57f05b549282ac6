"""Moments of columns against NumPy's, in any pieces; what is counted of them is in ``test_cells``."""

import numpy as np
from numpy.testing import assert_allclose

from leafledger.kernels.distributions.column_distribution import SPREADS, count_column
from leafledger.kernels.distributions.histogram import finish_histogram, start_histogram
from leafledger.kernels.reductions.reduction import merge_all


def test_moments_are_those_of_numpy():
    """Of the finite values, in pieces that merge to the same bits every time; of a large offset too."""
    for values in (np.concatenate((np.random.default_rng(1).normal(1e9, 1.0, 3000), [np.nan, np.inf, -np.inf])), -np.arange(50.0)):
        tally, pieces = start_histogram(), np.array_split(values, 20)
        states = [count_column(piece, tally) for piece in pieces]
        state = merge_all(SPREADS, states, 1, 1)
        finite = values[np.isfinite(values)]
        assert state.rows[0] == values.size
        assert (state.missing[0], state.infinite[0]) == (np.isnan(values).sum(), np.isinf(values).sum())
        assert_allclose(state.mean[0], finite.mean(), rtol=1e-14)
        assert_allclose(state.spread[0], ((finite - finite.mean()) ** 2).sum(), rtol=1e-6)
        assert_allclose(state.mean_abs[0], np.abs(finite).mean(), rtol=1e-14)
        assert_allclose(state.spread_abs[0], ((np.abs(finite) - np.abs(finite).mean()) ** 2).sum(), rtol=1e-6)
        assert (state.low[0], state.high[0]) == (finite.min(), finite.max())
        assert finish_histogram(tally).counts.sum() == values.size - state.missing[0]
        again = merge_all(SPREADS, [count_column(piece, start_histogram()) for piece in pieces], 1, 1)
        assert [array.tobytes() for array in again] == [array.tobytes() for array in state]
        assert SPREADS.finalize(SPREADS.update(SPREADS.init(1, 1), state), None, 1).rows[0] == values.size


def test_nothing_is_a_state_too():
    """No rows, and rows without a value, leave moments of others as they are."""
    tally = start_histogram()
    empty, missing, one = (count_column(np.array(values, float), tally) for values in ([], [np.nan, np.inf], [2.0]))
    merged = merge_all(SPREADS, [empty, missing, one], 1, 1)
    assert [array[0] for array in merged] == [3, 1, 1, 2.0, 0.0, 2.0, 0.0, 2.0, 2.0]
    assert SPREADS.init(1, 0).rows.size == 0
