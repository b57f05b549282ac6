"""Look-ups on a card are those of the processor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.kernels.attributing import ATOL
from tests.kernels.cuda.card import both, tables
from tests.strategies import batches, forests
from tests.trees import join, symmetric


@given(data=st.data(), ensemble=forests())
def test_small_trees(data, ensemble):
    """Trees of few comparisons: categories, missing values, several outputs."""
    rows = data.draw(batches(ensemble, max_rows=3))
    one, other = both("shapley", tables("shapley", ensemble), rows)
    assert_allclose(one, other, rtol=0, atol=ATOL)


@pytest.mark.again
@pytest.mark.parametrize("name", ["shapley", "banzhaf"])
def test_symmetric_trees(name):
    """Trees of one, of four and of nine comparisons, all looked up; missing values and several trees."""
    rng = np.random.default_rng(3)
    ensemble = join([symmetric(rng, features, 6) for features in ([0], [0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 0, 1, 2])])
    prepared, rows = tables(name, ensemble), rng.normal(size=(5, 6))
    rows[1, 2] = np.nan
    assert prepared.method.looked_up.first.size == 3
    one, other = both(name, prepared, rows)
    assert_allclose(one, other, rtol=0, atol=ATOL)
