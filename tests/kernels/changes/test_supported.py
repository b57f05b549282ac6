"""Numbers that a column can hold, on each side of thresholds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from leafledger.kernels.changes.supported import Grid, support_numbers

STEPS = [0.05, 0.25, 0.3, 1.0, 2.5, 100.0]
TYPES = [np.float32, np.float64]


@given(
    step=st.sampled_from(STEPS),
    dtype=st.sampled_from(TYPES),
    halves=st.lists(st.integers(-40, 40), min_size=1, max_size=4, unique=True),
    ends=st.tuples(st.integers(-45, 0), st.integers(0, 45)),
)
def test_ends_of_bins_are_those_of_all_multiples(step, dtype, halves, ends):
    """Thresholds at multiples and between them: of a bin's multiples within bounds the first and the last, by comparing each as it is seen."""
    grid = Grid(step, dtype)
    multiples = np.array([k / round(1 / step) if step < 0.3 else k * step for k in range(-60, 61)])
    thresholds = np.sort(np.array(halves) / 2 * step).astype(dtype).astype(float)
    least, most = ends[0] * step, ends[1] * step
    low, high = support_numbers(thresholds, grid, least, most, [(0.0, 0.0)])
    seen = multiples.astype(dtype).astype(float)
    allowed = (seen >= dtype(least)) & (seen <= dtype(most)) & (seen != 0)
    for b, (lower, upper) in enumerate(zip([-np.inf, *thresholds], [*thresholds, np.inf], strict=True)):
        inside = multiples[allowed & (seen > lower) & (seen <= upper)]
        assert_array_equal([low[b], high[b]], [inside.min(), inside.max()] if inside.size else [np.nan, np.nan])


@pytest.mark.parametrize("dtype", TYPES)
def test_without_a_step_the_next_number_of_the_type(dtype):
    """The first on the far side is the next one there is; the last is the threshold."""
    t = dtype(0.1)
    low, high = support_numbers(np.array([t], float), Grid(0.0, dtype), -np.inf, np.inf, [])
    assert_array_equal(low, [-np.inf, np.nextafter(t, dtype(1))])
    assert_array_equal(high, [t, np.inf])


def test_a_narrow_column_holds_neither_a_double_s_neighbour_nor_the_double():
    """Thresholds of double precision beside a column of single precision: both ends are what the column holds, inside the bin."""
    low, high = support_numbers(np.array([0.1, 0.1 + 1e-12]), Grid(0.0, np.float32), -np.inf, np.inf, [])
    single = np.float32(0.1)  # above both
    assert_array_equal(low, [-np.inf, np.nan, single])
    assert_array_equal(high, [np.nextafter(single, np.float32(0)), np.nan, np.inf])


def test_no_bin_reaches_beyond_the_largest_number():
    """There is nothing above the largest float."""
    low, high = support_numbers(np.array([np.finfo(np.float32).max], float), Grid(0.0, np.float32), -np.inf, np.inf, [])
    assert np.isnan(low[1])
    assert np.isnan(high[1])


def test_steps_finer_than_the_type_are_still_seen_beyond():
    """Whole numbers beyond 2^24 in single precision: the first that rounds above, and none inside a bin that has none."""
    t = float(2**25)
    low, _ = support_numbers(np.array([t]), Grid(1.0, np.float32), -np.inf, np.inf, [])
    assert np.float32(low[1]) > t
    assert low[1] - t <= 4
    low, high = support_numbers(np.array([1e9, 1e9 + 64]), Grid(0.01, np.float32), -np.inf, np.inf, [])
    assert np.float32(low[1]) == 1e9 + 64
    assert np.float32(high[1]) == 1e9 + 64
