"""A row's largest values: those of a sorted list, few or many, over more rows than are worked on at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.slices.top_k import MOST_INSERTED, find_largest


@given(
    values=st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 1e-300]), min_size=0, max_size=9),
    n_kept=st.integers(0, 9),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_one_row(values, n_kept, dtype):
    """Ties in their own order, zeros last."""
    stored = np.array(values, dtype).reshape(-1, 1)
    n_kept = min(n_kept, len(values))
    expected = sorted(range(len(values)), key=lambda t: (-abs(stored[t, 0]), t))[:n_kept]
    assert find_largest(stored, n_kept)[:, 0].tolist() == expected


@pytest.mark.parametrize("n_kept", [1, 5, MOST_INSERTED, MOST_INSERTED + 1, 90])
def test_many_rows(n_kept):
    """Inserted or sorted, the same."""
    values = np.random.default_rng(n_kept).choice([0.0, 1.0, -1.0, 0.5, -4.0], size=(90, 300))
    expected = [sorted(range(90), key=lambda t: (-abs(values[t, i]), t))[:n_kept] for i in range(300)]
    assert find_largest(values, n_kept).T.tolist() == expected
