"""Members of JSON objects are of one type, and what is not is refused with its place."""

import numpy as np
import pytest

from leafledger.pipeline.errors import InvalidModel
from leafledger.pipeline.models.formats.json_fields import get, list_of, numbers, parse, single


def test_sound_members_are_read():
    """Whole numbers count as numbers; lists may be left out or null."""
    record = parse('{"a": 3, "b": [1, 2.5], "c": null, "d": true}', "m")
    assert (get(record, "a", int, "m"), get(record, "d", bool, "m"), list_of(record, "b", "m")) == (3, True, [1, 2.5])
    assert list_of(record, "c", "m") == list_of(record, "e", "m") == list_of(None, "e", "m") == []
    assert numbers(record["b"], "m").tolist() == [1.0, 2.5]
    assert (single({"x": 0.1}, "x", "m"), single({"x": 1e39}, "x", "m")) == (float(np.float32(0.1)), np.inf)


@pytest.mark.parametrize(
    ("read", "says"),
    [
        (lambda: parse('{"a": 1, "a": 2}', "m"), "not sound JSON: a key of .* is given twice"),
        (lambda: parse('{"a": NaN}', "m"), "not sound JSON: NaN is not a number"),
        (lambda: parse("[" * 100_000, "m"), "not sound JSON"),
        (lambda: parse(b"\xff", "m"), "not sound JSON"),
        (lambda: get([], "a", int, "m"), "has no 'a'"),
        (lambda: get({"a": True}, "a", int, "m"), "'a' is True, expected an integer"),
        (lambda: get({"a": 1}, "a", bool, "m"), "'a' is 1, expected true or false"),
        (lambda: get({"a": 1.0}, "a", str, "m"), "'a' is 1.0, expected a string"),
        (lambda: list_of({"a": {}}, "a", "m"), "'a' is {}, expected a list"),
        (lambda: numbers([True], "m"), r"got \[True\], expected a list of numbers"),
        (lambda: numbers(3, "m"), "got 3, expected a list of numbers"),
        (lambda: numbers([1, -(1 << 53) - 1], "m"), "-9007199254740993 is an integer of more than 53 bits"),
        (lambda: single({}, "a", "m"), r", a: got \[None\], expected a list of numbers"),
    ],
)
def test_others_are_refused(read, says):
    """In one line."""
    with pytest.raises(InvalidModel, match=f"^m:? ?.*{says}") as refusal:
        read()
    assert "\n" not in str(refusal.value)
