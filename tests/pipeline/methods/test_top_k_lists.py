"""The largest of many values: chosen as a loop would choose them."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.methods.interaction_lists import count_kept
from leafledger.pipeline.methods.top_k_lists import choose_largest, gather


@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]))
def test_entries_are_chosen_as_a_loop_would(data, dtype):
    """The largest by magnitude as stored, equal ones in their own order, no zeros."""
    n_pairs, n = data.draw(st.integers(0, 7)), data.draw(st.integers(0, 5))
    value = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 1 + 1e-12, 0.1, -3.0, 1e-300])
    values = np.array(data.draw(st.lists(st.lists(value, min_size=n, max_size=n), min_size=n_pairs, max_size=n_pairs))).reshape(n_pairs, n)
    n_kept = count_kept(n_pairs, data.draw(st.sampled_from(["all", 1, 2, 5, 100])))
    offset, pair, found = choose_largest(values, n_kept, dtype)
    assert (offset.size, offset[0], offset[-1], found.dtype) == (n + 1, 0, pair.size, dtype)
    for i in range(n):
        stored = values[:, i].astype(dtype)
        expected = sorted((p for p in range(n_pairs) if stored[p]), key=lambda p: (-abs(stored[p]), p))[:n_kept]
        assert pair[offset[i] : offset[i + 1]].tolist() == expected
        assert found[offset[i] : offset[i + 1]].tolist() == stored[expected].tolist()


def test_what_is_said_of_entries_stays_with_them():
    """Entries are handed over thing by thing, and come back in their own order."""
    thing, row = np.array([2, 0, 2, 1, 0]), np.array([0, 0, 1, 2, 3])
    found = gather(thing, row, lambda thing, rows: pa.array([f"{thing} in {row}" for row in rows]), pa.string())
    assert found.to_pylist() == [f"{a} in {b}" for a, b in zip(thing, row, strict=True)]
    assert gather(thing[:0], row[:0], lambda thing, rows: None, pa.string()).to_pylist() == []
