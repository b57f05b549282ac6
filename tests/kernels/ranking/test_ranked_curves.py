"""Curves of many rows: slice by slice, as of one."""

import numpy as np
from numpy.testing import assert_array_equal

from leafledger.kernels.ranking.ranked_curves import SLICE, TIE, find_best
from tests.kernels.ranking.ranked import curved
from tests.trees import stumps


def test_curves_of_many_rows_are_those_of_one():
    """More rows than are worked on at a time."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -1.0), (2, -0.5, 1.0, 0.0), (0, 1.0, 0.0, 2.0)), 4)
    rows = np.random.default_rng(0).normal(size=(SLICE + 2, 4))
    ranks, scores, path = curved(ensemble, rows, "shapley")
    for i in (0, SLICE - 1, SLICE, SLICE + 1):
        alone = curved(ensemble, rows[i : i + 1], "shapley")
        assert_array_equal(ranks[i], alone[0][0])
        assert_array_equal(scores[i], alone[1][0])
        assert_array_equal(path[:, :, i], alone[2][:, :, 0])


def test_the_best_prefixes_are_the_shortest():
    """Of those that raise, or lower, the margin most; nobody, where every feature does the opposite. What differs by less than a tie is equal."""
    insertion, deletion = [1.0, 3.0, 3.0, 2.0], [1.0, 1.5, 0.5, 0.5 * (1 - TIE / 10)]
    assert find_best(np.array([[[insertion], [deletion]]]))[0, :, 0].tolist() == [1.0, 3.0, 2.0, 0.5]
    falling, rising = [2.0, 1.0, 0.0], [2.0, 3.0, 4.0]
    assert find_best(np.array([[[falling], [rising]]]))[0, :, 0].tolist() == [0.0, 2.0, 0.0, 2.0]
