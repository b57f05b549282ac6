"""Readers of arguments: what is meant is taken, everything else is one short line with the argument's name, what it is and what was expected."""

from datetime import date, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leafledger.pipeline.arguments import readers as arguments
from leafledger.pipeline.errors import UsageError


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (None, "None"),
        ("a", "'a'"),
        ([1, "b"], "[1, 'b']"),
        ("two\nlines", r"'two\nlines'"),
        (np.zeros(3), "a ndarray"),
        (pd.DataFrame({"x": [1.0]}), "a DataFrame"),
        (object(), "an object"),
    ],
)
def test_a_value_is_written_in_one_line(given, written):
    """Texts, numbers and lists as they are, anything with much in it by its type."""
    assert arguments.shorten(given) == written


def test_a_long_value_is_cut():
    """At 80 characters, with an ellipsis for what is left out."""
    assert arguments.shorten("x" * 200) == "'" + "x" * 78 + "…"
    assert arguments.shorten("x" * 78) == repr("x" * 78)


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (arguments.read_place, Path("a") / "b", "a/b"),
        (arguments.read_text, "a", "a"),
        (arguments.read_names, "flight", ("flight",)),
        (arguments.read_names, iter(["a", "b"]), ("a", "b")),
        (arguments.read_names, None, ()),
        (arguments.read_flag, False, False),
        (partial(arguments.read_number, least=0), np.int8(0), 0),
        (arguments.read_numbers, 0.5, (0.5,)),
        (arguments.read_numbers, np.float32([0.5, 1.0]), (0.5, 1.0)),
        (partial(arguments.read_numbers, whole=True), [1, 2.0], (1, 2)),
        (partial(arguments.read_choice, choices=("a", "b")), "b", "b"),
        (arguments.read_space, "loss", "loss"),
        (arguments.read_parameters, ["p=0.3", "q=a=b"], {"p": "0.3", "q": "a=b"}),
        (arguments.read_parameters, None, {}),
        (arguments.read_parameters, {}, {}),
        (arguments.read_date, datetime(2026, 11, 22, 23, 59), date(2026, 11, 22)),
        (arguments.read_date, date(2026, 11, 22), date(2026, 11, 22)),
        (arguments.read_partition, Path("groups.json"), "groups.json"),
        (arguments.read_interactions, "12", 12),
        (arguments.read_interactions, "all", "all"),
        (arguments.optional(arguments.read_text), None, None),
        (arguments.optional(arguments.read_text), "a", "a"),
    ],
)
def test_what_is_meant_is_taken(read, given, expected):
    """As Python has it: NumPy's numbers as numbers, paths as texts, one name as a name."""
    found = read("name", given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (arguments.read_place, np.zeros(2), "a path or URI; attribute explains rows in memory"),
        (arguments.read_place, "", "a path or URI"),
        (arguments.read_text, "", "a name"),
        (arguments.read_names, ["a", ""], "a column's name or several"),
        (arguments.read_names, np.array([["a"]]), "a column's name or several"),
        (arguments.read_flag, 1, "True or False"),
        (partial(arguments.read_number, least=1), True, "a number of at least 1"),
        (partial(arguments.read_number, least=1), 0, "a number of at least 1"),
        (partial(arguments.read_number, least=1), 1.0, "a number of at least 1"),
        (arguments.read_numbers, [[1.0], [1.0, 2.0]], "numbers"),
        (arguments.read_numbers, ["a"], "numbers"),
        (arguments.read_numbers, [[1.0]], "numbers"),
        (partial(arguments.read_numbers, whole=True), [0.5], "whole numbers"),
        (partial(arguments.read_numbers, whole=True), [float("nan")], "whole numbers"),
        (partial(arguments.read_choice, choices=("a", "b")), "c", "'a' or 'b'"),
        (arguments.read_space, "raw", "'margin' or 'probability' or 'response' or 'loss'; did you mean 'margin'?"),
        (arguments.read_space, "predict_proba", "'margin' or 'probability' or 'response' or 'loss'; did you mean 'probability'?"),
        (arguments.read_space, "margins", "'margin' or 'probability' or 'response' or 'loss'; did you mean 'margin'?"),
        (arguments.read_space, "colour", "'margin' or 'probability' or 'response' or 'loss'"),
        (arguments.read_date, "22.11.2026", "YYYY-MM-DD, today or yesterday"),
        (arguments.read_date, 20261122, "YYYY-MM-DD, today or yesterday"),
        (arguments.read_date, ["today"], "YYYY-MM-DD, today or yesterday"),
        *((partial(arguments.read_float, least=0.0, most=1.0), wrong, "a number") for wrong in ("0.5", True, float("nan"), -0.1, 1.5)),
        (arguments.read_parameters, ["p"], "NAME=VALUE, or in Python {'NAME': VALUE}"),
        (arguments.read_parameters, {"p": 1, 1: 2}, "NAME=VALUE, or in Python {'NAME': VALUE}"),
        (arguments.read_partition, 3, "groups of features, as {'group': ['feature', …]}, or a path or URI"),
        (arguments.read_interactions, 0, "a number of at least 1, or 'all'"),
        (arguments.read_interactions, "some", "a number of at least 1, or 'all'"),
    ],
)
def test_anything_else_is_refused(read, given, expected):
    """With the argument's name, what was got and what was expected."""
    with pytest.raises(UsageError) as error:
        read("name", given)
    assert str(error.value) == f"name is {arguments.shorten(given)}, expected {expected}"


def test_a_name_twice_is_refused():
    """It would be read once and shown twice."""
    with pytest.raises(UsageError, match=r"^ids has 'a' twice, expected once$"):
        arguments.read_names("ids", ["a", "b", "a"])
