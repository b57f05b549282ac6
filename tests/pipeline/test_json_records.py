"""JSON becomes the record that its fields describe, or is refused in one line that names the place."""

import hashlib
import json
import re
import tracemalloc
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.json_records import as_text, as_tuples, digest_text, read_record, refuse_other_text


class Entry(TypedDict):
    """An entry of a list."""

    name: str
    size: int


@dataclass(frozen=True)
class Inner:
    """A record in another one."""

    flag: bool
    share: float | None


@dataclass(frozen=True)
class Outer:
    """Every kind of field."""

    inner: Inner | None
    entries: tuple[Entry, ...]
    pair: tuple[str, int]
    kind: Literal["a", "b"]
    several: int | str | None
    named: dict[str, float]
    anything: Any


SOUND = {
    "inner": {"flag": True, "share": 0.5},
    "entries": [{"name": "x", "size": 1}],
    "pair": ["x", 1],
    "kind": "a",
    "several": "x",
    "named": {"x": 1.5},
    "anything": [1, [2, {"x": None}]],
}


def test_every_kind_of_field_is_read():
    """Lists become tuples, objects records."""
    found = read_record(Outer, json.dumps(SOUND))
    assert found == Outer(Inner(True, 0.5), ({"name": "x", "size": 1},), ("x", 1), "a", "x", {"x": 1.5}, (1, (2, {"x": None})))
    assert json.loads(json.dumps(asdict(found))) == SOUND
    assert read_record(tuple[Inner, ...], b'[{"flag": false, "share": null}]') == (Inner(False, None),)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"inner": {"flag": 1, "share": None}}, "inner.flag is 1, expected true or false"),
        ({"inner": {"flag": True, "share": 1}}, "inner.share is 1, expected a number with a point"),
        ({"inner": {"flag": True}}, "inner has no 'share'"),
        ({"inner": []}, "inner is [], expected an object"),
        ({"entries": [{"name": "x", "size": True}]}, "entries[0].size is true, expected a whole number"),
        ({"entries": [{"name": "x", "size": 1, "more": 1}]}, "entries[0] has a 'more'"),
        ({"entries": {}}, "entries is {}, expected a list"),
        ({"pair": ["x"]}, 'pair is ["x"], expected 2 entries'),
        ({"pair": ["x", "y"]}, 'pair[1] is "y", expected a whole number'),
        ({"kind": "c"}, "kind is \"c\", expected 'a' or 'b'"),
        ({"several": 1.5}, "several is 1.5, expected a whole number or a text or null"),
        ({"named": {"x": None}}, "named.x is null, expected a number with a point"),
        ({"named": 1}, "named is 1, expected an object"),
        ({"kind": "x" * 100}, f"kind is \"{'x' * 38}…, expected 'a' or 'b'"),
    ],
)
def test_another_type_is_refused(change, says):
    """With the place and what was expected there."""
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        read_record(Outer, json.dumps(SOUND | change))


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", "[" * 100_000, '{"a":\n', "1" * 5000])
def test_what_is_no_json_is_refused(text):
    """In one line."""
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        read_record(Outer, text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(JSON)
def test_anything_else_is_refused(value):
    """With no other error than ValueError; and no list is left where anything goes."""
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        read_record(Outer, json.dumps(value))
    assert not isinstance(as_tuples(value), list)


@given(names=st.lists(st.text(), max_size=3), share=st.none() | st.floats(), sort_keys=st.booleans())
def test_a_record_is_written_as_json_would_write_it(names, share, sort_keys):
    """A manifest's text has a digest, so that not a blank may differ from ``json.dumps`` of the same values as dicts and lists."""
    record = Outer(Inner(True, share), tuple(Entry(name=name, size=1) for name in names), ("x", 2), "a", None, dict.fromkeys(names, 0.5), [names, {}])
    assert as_text(record, sort_keys) == json.dumps(asdict(record), indent=1, sort_keys=sort_keys)


@given(sort_keys=st.booleans(), encoded=st.booleans(), at=st.integers(0, 200), other=st.sampled_from([" ", "0", "x", ""]))
def test_a_text_that_says_the_same_is_refused_unless_it_is_written_the_same(sort_keys, encoded, at, other):
    """Its digest is that of the text, and one character more, less or other makes it another text."""
    record = read_record(Outer, json.dumps(SOUND))
    text = json.dumps(asdict(record), indent=1, sort_keys=sort_keys)
    assert digest_text(record, sort_keys) == hashlib.sha256(text.encode()).hexdigest()
    refuse_other_text(record, text.encode() if encoded else text, sort_keys)
    for changed in (text[:at] + other + text[at:], text[:at] + other + text[at + 1 :], text[:at]):
        if changed != text:
            with pytest.raises(ValueError, match=r"^it is written otherwise than leafledger writes it$"):
                refuse_other_text(record, changed.encode() if encoded else changed, sort_keys)


MANY = Outer(None, tuple(Entry(name=f"{i:064x}", size=i) for i in range(20_000)), ("x", 2), "a", None, {}, None)


def peak_of(work):
    """Most bytes at once."""
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.slow
def test_long_lists_are_not_held_twice():
    """A hundred thousand parts: all pieces of their text took ten times the text, and what JSON says of them as much again as the records."""
    text = as_text(MANY)
    assert peak_of(lambda: as_text(MANY)) < 4 * len(text)
    assert peak_of(lambda: digest_text(MANY)) < len(text) / 2
    assert peak_of(lambda: refuse_other_text(MANY, text)) < len(text) / 2
    parsed = peak_of(lambda: json.loads(text))
    assert peak_of(lambda: read_record(Outer, text)) < 1.3 * parsed
