"""Curves of many rows: slice by slice, as of one."""

import numpy as np
from numpy.testing import assert_array_equal

from kernels.ranking.ranked_curves import SLICE
from tests.kernels.ranking.ranked import curved
from tests.trees import stumps


def test_curves_of_many_rows_are_those_of_one():
    """More rows than are worked on at a time."""
    ensemble = stumps(((0, 0.0, 0.0, 1.0), (1, 0.5, 0.0, -1.0), (2, -0.5, 1.0, 0.0), (0, 1.0, 0.0, 2.0)), 4)
    rows = np.random.default_rng(0).normal(size=(SLICE + 2, 4))
    ranks, areas, path = curved(ensemble, rows, "shapley")
    for i in (0, SLICE - 1, SLICE, SLICE + 1):
        alone = curved(ensemble, rows[i : i + 1], "shapley")
        assert_array_equal(ranks[i], alone[0][0])
        assert_array_equal(areas[i], alone[1][0])
        assert_array_equal(path[:, :, i], alone[2][:, :, 0])
