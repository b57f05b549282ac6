"""States of reductions as text come back bit by bit, and a damaged one is noticed."""

import base64
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from leafledger.kernels.methods import METHODS
from leafledger.kernels.reductions.reduction import MEANS, MOMENTS, Moments, merge_all
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.methods.reduction_states import pack_state, same_states, unpack_state
from tests.kernels.attributing import leaves

ANY = st.floats(allow_nan=True, allow_infinity=True)


@st.composite
def moments(draw):
    """Records of any numbers, also of no values and no outputs."""
    shape = draw(st.tuples(st.integers(0, 3), st.integers(0, 4)))
    return Moments(draw(arrays(float, (1,), elements=ANY)), *(draw(arrays(float, shape, elements=ANY)) for _ in range(5)))


def same(found, given):
    """The same records of arrays of the same types, shapes and bits."""
    return type(found) is type(given) and all(
        (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in zip(leaves(found), leaves(given), strict=True)
    )


@given(state=moments())
def test_a_state_comes_back_bit_by_bit(state):
    """NaN, infinities and signs of zeros included."""
    assert same(unpack_state(MOMENTS, pack_state(state)), state)


@pytest.mark.parametrize("name", METHODS)
def test_every_summary_of_every_method_has_states_that_come_back(name):
    """Whatever records they nest."""
    for summary in METHODS[name].summaries:
        state = summary.reduction.init(2, 3)
        assert same(unpack_state(summary.reduction, pack_state(state)), state)


def test_equal_states_are_equal_texts():
    """So that a part that is made twice is the same object: nothing in the text tells the time."""
    state = MOMENTS.update(MOMENTS.init(1, 2), np.arange(6.0).reshape(1, 2, 3), 3)
    assert pack_state(state) == pack_state(Moments(*(array.copy() for array in state)))


@pytest.mark.parametrize("bit", [0, 3, 5])
@pytest.mark.slow
def test_a_flipped_bit_never_changes_a_number(bit):
    """Of every byte: each array has a checksum, so the state is refused, or the bit was in nothing that is read."""
    state = MOMENTS.update(MOMENTS.init(1, 2), np.arange(6.0).reshape(1, 2, 3), 3)
    raw = base64.b64decode(pack_state(state))
    refusals = []
    for at in range(len(raw)):
        damaged = base64.b64encode(raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :]).decode()
        try:
            found = unpack_state(MOMENTS, damaged)
        except InvalidRun as error:
            refusals.append(str(error))
            continue
        assert same(found, state)
    assert len(refusals) > len(raw) / 2
    assert all(said.startswith("a part's state of 'moments' is damaged: ") and "\n" not in said for said in refusals)


@pytest.mark.parametrize(
    "text", ["", "AAAA", "é", "!" + pack_state(MOMENTS.init(1, 1)), pack_state(MOMENTS.init(1, 1))[:-8], pack_state(MOMENTS.init(1, 1))[:40]]
)
def test_what_is_no_state_is_refused(text):
    """In one line that names the reduction."""
    with pytest.raises(InvalidRun, match=r"^a part's state of 'means' is damaged: [^\n]*$"):
        unpack_state(MEANS, text)


def test_a_state_of_other_arrays_is_refused():
    """Not one more, and not one less."""
    state = MOMENTS.init(1, 2)
    for some, n in (((*state, np.zeros(1)), 7), (state[:-1], 5)):
        with pytest.raises(InvalidRun, match=rf"^a part's state of 'moments' is damaged: {n} arrays, expected 6$"):
            unpack_state(MOMENTS, pack_state(some))


def test_states_are_the_same_where_every_bit_is():
    """However they are packed. One array that is other by a bit, by its type or by its shape makes another state."""
    state = MOMENTS.update(MOMENTS.init(1, 2), np.arange(6.0).reshape(1, 2, 3), 3)
    packed, buffer = pack_state(state), io.BytesIO()
    np.savez_compressed(buffer, *state)
    otherwise = base64.b64encode(buffer.getvalue()).decode()
    assert otherwise != packed
    assert same_states(MOMENTS, packed, packed)
    assert same_states(MOMENTS, packed, otherwise)
    for other in (np.nextafter(state.mean, 9), state.mean.view(np.int64), state.mean.reshape(2, 1), -state.low, state.mean[:, :1]):
        assert not same_states(MOMENTS, packed, pack_state(state._replace(mean=other)))
        assert not same_states(MOMENTS, packed, pack_state(state._replace(high=other)))


@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=70), seed=st.integers(0, 9))
def test_states_merge_to_the_same_bits_in_whatever_order_they_arrive(sizes, seed):
    """They are put back in their places before they are merged, in a tree that depends on how many there are alone; packing changes nothing."""
    draw = np.random.default_rng(seed)
    states = [MOMENTS.update(MOMENTS.init(1, 2), draw.normal(size=(1, 2, n)), n) for n in sizes]
    arrived = {int(k): pack_state(states[k]) for k in draw.permutation(len(states))}
    found = merge_all(MOMENTS, (unpack_state(MOMENTS, arrived[k]) for k in sorted(arrived)), 1, 2)
    assert same(found, merge_all(MOMENTS, states, 1, 2))
