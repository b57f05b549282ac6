"""UBJSON read as its definition writes it, whatever markers a writer chooses; XGBoost's own files; and no length that is believed."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.errors import InvalidModel
from leafledger.pipeline.models.formats.ubjson import MAX_DEPTH, integer, member, numbers, read_document, read_ubjson, shown
from tests.pipeline.models.xgboost.training import CLASS, train

# Draft 12 of ubjson.org: the marker of every type of number, how struct writes it, big-endian, and the least and largest integer of it.
INTEGERS = {"i": (">b", -(2**7), 2**7 - 1), "U": (">B", 0, 2**8 - 1), "I": (">h", -(2**15), 2**15 - 1)}
INTEGERS |= {"l": (">i", -(2**31), 2**31 - 1), "L": (">q", -(2**63), 2**63 - 1)}
FLOATS = {"d": ">f", "D": ">d"}


class Writer:
    """A naive encoder that draws every choice the format leaves: the width of an integer, whether a container is counted, closed or packed."""

    def __init__(self, draw):
        self.draw = draw

    def integer(self, value):
        marker = self.draw(st.sampled_from([marker for marker, (_, low, high) in INTEGERS.items() if low <= value <= high]))
        return marker.encode() + struct.pack(INTEGERS[marker][0], value)

    def text(self, value):
        data = value.encode()
        return self.integer(len(data)) + data

    def value(self, value):
        if value is None:
            return b"Z"
        if isinstance(value, bool):
            return b"T" if value else b"F"
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, float):
            single = struct.unpack(">f", struct.pack(">f", value))[0] == value if abs(value) < 3e38 else False
            marker = self.draw(st.sampled_from("dD")) if single else "D"
            return marker.encode() + struct.pack(FLOATS[marker], value)
        if isinstance(value, str):
            return b"S" + self.text(value)
        counted = self.draw(st.booleans())
        if isinstance(value, list):
            body, opening, closing = b"".join(map(self.value, value)), b"[", b"]"
        else:
            body, opening, closing = b"".join(self.text(key) + self.value(each) for key, each in value.items()), b"{", b"}"
        return opening + b"#" + self.integer(len(value)) + body if counted else opening + body + closing


SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=300)
DOCUMENTS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=9), inner, max_size=5), max_leaves=20)


def same(found, given):
    """Equal with equal types, so that True is not 1."""
    if isinstance(given, dict):
        return isinstance(found, dict) and list(found) == list(given) and all(same(found[key], given[key]) for key in given)
    if isinstance(given, list):
        return isinstance(found, list) and len(found) == len(given) and all(map(same, found, given))
    return type(found) is type(given) and found == given


@given(document=DOCUMENTS, data=st.data())
def test_a_document_comes_back_as_it_was_written(document, data):
    """Whichever of the widths and containers its writer chose."""
    assert same(read_ubjson(Writer(data.draw).value(document)), document)


@given(marker=st.sampled_from([*INTEGERS, *FLOATS]), data=st.data())
def test_packed_numbers_are_an_array_of_their_type(marker, data):
    """In the byte order of this machine."""
    if marker in FLOATS:
        form = FLOATS[marker]
        values = data.draw(st.lists(st.floats(width=32 if marker == "d" else 64, allow_nan=False), max_size=9))
    else:
        form, low, high = INTEGERS[marker]
        values = data.draw(st.lists(st.integers(low, high), max_size=9))
    count = Writer(data.draw).integer(len(values))
    found = read_ubjson(b"[$" + marker.encode() + b"#" + count + b"".join(struct.pack(form, value) for value in values))
    assert isinstance(found, np.ndarray)
    assert found.dtype.isnative
    assert found.dtype.itemsize == struct.calcsize(form)
    assert found.tolist() == values


@given(document=DOCUMENTS, data=st.data())
def test_no_document_ends_early_or_late(document, data):
    """Cut anywhere it is refused with the byte, and so is what follows it."""
    written = Writer(data.draw).value(document)
    for size in range(0, len(written), max(1, len(written) // 20)):
        with pytest.raises(ValueError, match=r"^byte \d+: "):
            read_ubjson(written[:size])
    with pytest.raises(ValueError, match=f"^byte {len(written)}: the document ends, 1 bytes follow$"):
        read_ubjson(written + b"Z")


def test_nesting_is_bounded():
    """As deep as is allowed, and one deeper."""
    for depth in (1, MAX_DEPTH):
        found = read_ubjson(b"[" * depth + b"]" * depth)
        for _ in range(depth):
            (found,) = found or [None]
        assert found is None
    with pytest.raises(ValueError, match=f"^byte {MAX_DEPTH}: containers are nested more than {MAX_DEPTH} deep$"):
        read_ubjson(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


def as_plain(value):
    """Arrays as lists, numbers in float32, in which XGBoost computes what it writes."""
    if isinstance(value, dict):
        return {key: as_plain(each) for key, each in value.items()}
    if isinstance(value, list | np.ndarray):
        return [as_plain(each) for each in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return float(np.float32(value)) if isinstance(value, float) else value


@pytest.mark.parametrize("parameters", [{}, {"objective": "multi:softprob", "num_class": 3, "target": CLASS}])
def test_xgboost_writes_the_same_document_in_both_formats(parameters):
    """Its own UBJSON, read here, is its own JSON, read by Python."""
    booster = train(n_rounds=2, **parameters)
    plain = json.loads(booster.save_raw("json"))
    for form in ("ubj", "json"):
        assert as_plain(read_document(bytes(booster.save_raw(form)), "m")) == as_plain(plain)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'{"a": 1, "a": 2}', "key 'a' is given twice"),
        (b"{i\x01aTi\x01aF}", "key 'a' is given twice"),
        (b'{"a": ', "not a whole document"),
        (b'{"a": ' + b"[" * 200_000, "objects are nested too deep for a model"),
        (b"{", "not a whole document: byte 1"),
    ],
)
def test_documents_that_are_none_are_refused(data, says):
    """In one line with the file."""
    with pytest.raises(InvalidModel, match=f"^m: .*{says}[^\n]*$"):
        read_document(data, "m")


HELD = {"text": "3", "number": 4, "float": 2.5, "yes": True, "list": [1, 2], "mixed": [1, 2.5], "words": ["a"], "array": np.array([1, 2], np.int8)}
HELD |= {"halves": np.array([0.5]), "huge": [2**70], "long": "x" * 99, "object": {}}


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda: integer(HELD, "text", 0, 9, "m"), 3),
        (lambda: integer(HELD, "number", 4, 4, "m"), 4),
        (lambda: integer(HELD, "none", 0, 9, "m", "7"), 7),
        (lambda: numbers(HELD, "list", int, 2, "m").tolist(), [1, 2]),
        (lambda: numbers(HELD, "mixed", float, None, "m").tolist(), [1.0, 2.5]),
        (lambda: numbers(HELD, "array", int, 2, "m").tolist(), [1, 2]),
        (lambda: numbers(HELD, "array", float, 2, "m").tolist(), [1.0, 2.0]),
        (lambda: member(HELD, "object", dict, "m"), {}),
    ],
)
def test_members_are_read_as_what_they_are_asked_for(read, expected):
    """XGBoost writes integers as texts."""
    assert read() == expected


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: integer(HELD, "text", 4, 9, "m"), r"'text' is '3', expected 4\.\.9"),
        (lambda: integer(HELD, "none", 0, 9, "m"), r"'none' is None, expected 0\.\.9"),
        (lambda: integer(HELD, "float", 0, 9, "m"), r"'float' is 2\.5, expected 0\.\.9"),
        (lambda: integer(HELD, "yes", 0, 9, "m"), r"'yes' is True, expected 0\.\.9"),
        (lambda: integer(HELD, "list", 0, 9, "m"), r"'list' is 2 elements, expected 0\.\.9"),
        (lambda: numbers(HELD, "mixed", int, None, "m"), "'mixed' is 2 elements, expected a list of integers"),
        (lambda: numbers(HELD, "halves", int, None, "m"), "'halves' is 1 elements, expected a list of integers"),
        (lambda: numbers(HELD, "words", float, None, "m"), "'words' is 1 elements, expected a list of numbers"),
        (lambda: numbers(HELD, "huge", int, None, "m"), "'huge' is 1 elements, expected a list of integers"),
        (lambda: numbers(HELD, "list", int, 3, "m"), "'list' has 2 numbers, expected 3"),
        (lambda: numbers(HELD, "none", int, 3, "m"), "'none' is missing, expected a list of integers"),
        (lambda: member(HELD, "none", list, "m"), "'none' is missing, expected a list"),
        (lambda: member(HELD, "object", str, "m"), "'object' is 0 elements, expected a text"),
    ],
)
def test_members_that_are_something_else_are_refused(read, says):
    """With what was got, whose size alone is told where it may be large."""
    with pytest.raises(InvalidModel, match=f"^m: {says}$"):
        read()


def test_long_texts_are_cut_in_messages():
    """A text may be as long as the file."""
    assert shown("x" * 1_000_000) == repr("x" * 40)
