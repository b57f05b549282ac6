"""Accumulated local effects and Friedman's H, by their definitions."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.effects.statistics import accumulate, against_all, against_one
from leafledger.kernels.effects.sums import AxisSums, Moments


def test_local_effects_add_up_and_their_mean_is_zero():
    """Two intervals with 3 rows and 1: effects -w, 2-w, 1-w, where rows have the means of their intervals' ends."""
    rises = Moments(np.array([3.0, 1.0]), np.array([[2.0, -1.0]]), np.array([[6.0, 0.0]]))
    effect, error = accumulate(rises)
    centre = (3 * 1.0 + 1 * 1.5) / 4
    assert_allclose(effect, [[-centre, 2 - centre, 1 - centre]])
    assert_allclose(error, [[1.0, np.nan]])
    nothing = accumulate(Moments(np.zeros(0), np.zeros((2, 0)), np.zeros((2, 0))))
    assert_array_equal(nothing[0], np.zeros((2, 1)))


def test_h_is_the_share_of_what_is_together_alone():
    """Of x·y on four corners all is joint; of x + y nothing; of a constant there is no share."""
    corners, x = np.ones((2, 2), np.int64), np.array([-1.0, 1.0])
    surface = np.stack([np.outer(x, x), np.add.outer(x, x), np.zeros((2, 2))])
    first = np.stack([np.zeros(2), x, np.zeros(2)])
    assert_allclose(against_one(corners, surface, first, first), [1.0, 0.0, np.nan])
    part = Moments(np.array([4.0]), np.zeros(3), np.array([2.0, 0.0, 0.0]))
    whole = Moments(np.array([4.0]), np.zeros(3), np.array([8.0, 1.0, 0.0]))
    assert_allclose(against_all(AxisSums(part, np.zeros(0), part, part), whole), [0.25, 0.0, np.nan])
