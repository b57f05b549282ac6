"""States of parts by the names of summaries: merged by their places, refused where they are damaged."""

import numpy as np
import pytest

from leafledger.kernels.reductions.reduction import MOMENTS, merge_all
from leafledger.kernels.reductions.summary import IMPORTANCE, INTERACTIONS
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.methods.reduction_states import pack_state
from leafledger.pipeline.runs.execute.merged_states import MergedStates

SUMMARIES = (IMPORTANCE, INTERACTIONS)


def state(seed, values):
    return MOMENTS.update(MOMENTS.init(2, values), np.random.default_rng(seed).normal(size=(2, values, 5)), 5)


def packed(seed):
    return {"interactions": pack_state(state(seed, 1)), "other": "?", "importance": pack_state(state(seed, 3))}


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_states_are_taken_by_the_names_of_summaries():
    """A part's footer has one for each; what else it has is passed over. What was added comes back unpacked."""
    merged = MergedStates(SUMMARIES)
    for k in range(10):
        assert same(merged.add(k, packed(k))["interactions"], state(k, 1))
    total = merged.total()
    assert list(total) == ["importance", "interactions"]
    assert same(total["importance"], merge_all(MOMENTS, [state(k, 3) for k in range(10)], 2, 3))
    assert same(total["interactions"], merge_all(MOMENTS, [state(k, 1) for k in range(10)], 2, 1))
    assert merged.total() == {"importance": None, "interactions": None}


def test_what_is_packed_is_taken_again():
    """Sixteen parts merged elsewhere, eight at a time, have the bits of all in one place; where nothing could be explained, there is nothing."""
    merged = MergedStates(SUMMARIES)
    for place in (1, 0):
        elsewhere = MergedStates(SUMMARIES)
        for k in range(8 * place, 8 * place + 8):
            elsewhere.add(k, packed(k))
        merged.add(place, elsewhere.pack(), 1)
        assert elsewhere.pack() is None
    assert merged.add(2, None, 1) == {}
    assert same(merged.total()["importance"], merge_all(MOMENTS, [state(k, 3) for k in range(16)], 2, 3))


def test_a_damaged_state_is_refused():
    with pytest.raises(InvalidRun, match="state of 'moments' is damaged"):
        MergedStates(SUMMARIES).add(0, packed(0) | {"importance": packed(0)["importance"][:-8]})
