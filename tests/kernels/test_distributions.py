"""Counts in cells with fixed edges against NumPy's histogram on these edges, points against ``unique``, moments against NumPy's; in any pieces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernels.distributions import ABOVE, BELOW, CELLS, POINTS, SPREADS, cell_edges, count_column, find_cells, make_tally, read_points
from kernels.reductions import merge_all

ODD = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, -1e300, 1e-300, -1e-300, 3e38, 1.0, -1.0, 1.0078125, 1.0078124, 5e-324, 1e-42, -1e-42])


def draw(n=700, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n) * 10.0 ** rng.integers(-30, 30, n)
    values[rng.random(n) < 0.1] = np.nan
    return np.concatenate((values, ODD))


def test_cells_are_in_the_order_of_numbers_and_have_these_edges():
    """Every finite value lies between the edges of its cell, once rounded to float32; edges ascend, and are 1/128 apart at most."""
    edges = cell_edges(np.arange(BELOW + 1, ABOVE + 1))
    assert (np.diff(edges) > 0).all()
    assert (edges[0], edges[-1]) == (-np.inf, np.inf)
    assert (cell_edges(np.array([0, CELLS])) == [-np.inf, np.inf]).all()
    normal = edges[(edges > 1e-37) & np.isfinite(edges)]
    assert (np.diff(normal) / normal[:-1]).max() <= 1 / 128
    values = draw()
    values = values[~np.isnan(values)]
    cells = find_cells(values)
    lower, upper = cell_edges(cells), cell_edges(cells + 1)
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(np.float32)
    assert (lower <= np.maximum(rounded, lower)).all()
    inside = np.isfinite(rounded)
    assert ((lower <= rounded) & (rounded <= upper))[inside].all()
    assert (rounded < upper)[inside & (rounded >= 0)].all()
    assert_array_equal(cells[np.argsort(values, kind="stable")], np.sort(cells))


def test_counts_are_those_of_numpy():
    """By cell as ``histogram`` counts positive numbers between the edges, one by one as ``unique`` does; zeros are one, missing none."""
    values = np.abs(draw(5000))
    values = values[np.isfinite(values) & (values < 3e38) & (values > 1e-37)].astype(np.float32).astype(np.float64)
    tally = make_tally()
    count_column(values, tally)
    edges = cell_edges(np.arange(0x8000, ABOVE))
    assert_array_equal(tally.cells[0x8000 : ABOVE - 1], np.histogram(values, edges)[0])
    assert read_points(tally) is None
    tally = make_tally()
    count_column(ODD, tally)
    found, counts = np.unique(ODD[~np.isnan(ODD)] + 0.0, return_counts=True)
    points = read_points(tally)
    assert_array_equal(points[0], found)
    assert_array_equal(points[1], counts)
    assert_array_equal(np.repeat(find_cells(found), counts), np.repeat(np.arange(CELLS), tally.cells))


@pytest.mark.parametrize("n", [POINTS - 1, POINTS, POINTS + 1])
def test_few_values_are_counted_one_by_one(n):
    """Up to POINTS different ones, in whatever pieces they come."""
    values, tally = np.tile(np.arange(n) / 7.0, 3), make_tally()
    for piece in np.array_split(values, 4):
        count_column(piece, tally)
    points = read_points(tally)
    assert (points is None) == (n > POINTS)
    if points is not None:
        assert_array_equal(points[0], np.arange(n) / 7.0)
        assert (points[1] == 3).all()


def test_moments_are_those_of_numpy():
    """Of the finite values, in pieces that merge to the same bits every time; of a large offset too."""
    for values in (np.concatenate((np.random.default_rng(1).normal(1e9, 1.0, 3000), [np.nan, np.inf, -np.inf])), -np.arange(50.0)):
        tally, pieces = make_tally(), np.array_split(values, 20)
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
        again = merge_all(SPREADS, [count_column(piece, make_tally()) for piece in pieces], 1, 1)
        assert [array.tobytes() for array in again] == [array.tobytes() for array in state]
        assert SPREADS.finalize(SPREADS.update(SPREADS.init(1, 1), state), None, 1).rows[0] == values.size


def test_nothing_is_a_state_too():
    """No rows, and rows without a value, leave moments of others as they are."""
    tally = make_tally()
    empty, missing, one = (count_column(np.array(values, float), tally) for values in ([], [np.nan, np.inf], [2.0]))
    merged = merge_all(SPREADS, [empty, missing, one], 1, 1)
    assert [array[0] for array in merged] == [3, 1, 1, 2.0, 0.0, 2.0, 0.0, 2.0, 2.0]
    assert SPREADS.init(1, 0).rows.size == 0
