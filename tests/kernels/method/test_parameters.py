"""Parameters as text or values, and one line of what was expected."""

import numpy as np
import pandas as pd
import pytest

from leafledger.kernels.method.parameters import LARGEST, choice, number, numbers, points, sequence_of_groups, whole


@pytest.mark.parametrize(("given", "value"), [("0.25", 0.25), (0, 0.0), (1, 1.0), ("1e-3", 1e-3)])
def test_a_number_is_read(given, value):
    """From text and from numbers, ends included where they are."""
    assert number("p", 0.5, 0.0, 1.0, "", closed=True).read(given) == value


@pytest.mark.parametrize(
    ("given", "expected"), [("a", "a number$"), (None, "a number$"), (1.5, "between 0 and 1"), ("nan", "between"), (0, "between")]
)
def test_no_number_is_refused(given, expected):
    """The message says which numbers are meant."""
    with pytest.raises(ValueError, match=expected):
        number("p", 0.5, 0.0, 1.0, "").read(given)


def test_a_word_may_stand_for_a_number():
    """Where it does, it is said to be expected; in the place of other numbers it is none."""
    rate = number("rate", 0.1, 0.0, 1.0, "", word="auto")
    assert (rate.read("auto"), rate.read("0.5")) == ("auto", 0.5)
    with pytest.raises(ValueError, match=r"^expected a number, or 'auto'$"):
        rate.read("automatic")
    with pytest.raises(ValueError, match=r"^expected a number between 0 and 1, or 'auto'$"):
        rate.read(2)
    with pytest.raises(ValueError, match=r"^expected a number$"):
        number("p", 0.5, 0.0, 1.0, "").read("auto")


@pytest.mark.parametrize(("given", "value"), [("3", 3), (1, 1), (5.0, 5), ("2e0", 2)])
def test_a_whole_number_is_read(given, value):
    """From text and from numbers, bounds included, as an int."""
    found = whole("steps", 1, 1, 5, "").read(given)
    assert (found, type(found)) == (value, int)


@pytest.mark.parametrize("given", ["0", 6, 2.5, "nan", "inf", "a", None])
def test_what_is_no_whole_number_is_refused(given):
    """Fractions, numbers out of range, and what is no number at all."""
    with pytest.raises(ValueError, match=r"expected a (whole number from 1 to 5|number)$"):
        whole("steps", 1, 1, 5, "").read(given)


@pytest.mark.parametrize("given", ["0.5,0.25, 0.25", [0.5, 0.25, 0.25], np.array([0.5, 0.25, 0.25])])
def test_numbers_are_read(given):
    """From text with commas, and from sequences."""
    assert numbers("sizes", "").read(given) == (0.5, 0.25, 0.25)


@pytest.mark.parametrize("given", ["", "1,,2", "1,x", 3, [None], [float("inf")], ["nan"], {0: 0.5}, pd.Series([0.5, 0.25], ["b", "a"])])
def test_what_are_no_numbers_is_refused(given):
    """Neither text nor values that are not finite, nor numbers that have names, of which there may be another order."""
    with pytest.raises(ValueError, match="expected finite numbers"):
        numbers("sizes", "").read(given)


@pytest.mark.parametrize("given", ["0:0, 0.5:2,1:0", [(0, 0), (0.5, 2), (1, 0)], np.array([[0, 0], [0.5, 2], [1, 0]])])
def test_points_are_read(given):
    """From text, and from sequences of pairs; heights may be below zero."""
    assert points("atoms", "").read("0:-1,1:2") == ((0.0, -1.0), (1.0, 2.0))
    assert points("density", "").read(given) == ((0.0, 0.0), (0.5, 2.0), (1.0, 0.0))


def test_the_largest_numbers_are_read():
    """A bound itself is allowed, of either sign."""
    assert numbers("sizes", "").read([LARGEST, -LARGEST]) == (LARGEST, -LARGEST)
    assert points("atoms", "").read([(0, LARGEST), (1, -LARGEST)]) == ((0.0, LARGEST), (1.0, -LARGEST))


def test_a_function_is_taken_as_it_is():
    """In Python a density can be one."""
    density = lambda t, rest: t * rest  # noqa: E731 - a definition in a line
    assert points("density", "").read(density) is density


@pytest.mark.parametrize(
    "given", ["1", "1:x", "0.5:1,0.2:1", "0:0,1:0", "-1:1", "0:nan", 3, [1, 2], "0:1e301", "0:-1e301", "0:1,1.5:1", "0:1,1:1e301", "0:1,0.5:1,0.2:1"]
)
def test_what_are_no_points_is_refused(given):
    """Points outside [0, 1], out of order, too large or all zero."""
    with pytest.raises(ValueError, match="expected points t:height with t ascending"):
        points("density", "").read(given)


def test_nothing_is_the_default():
    """None were given: an empty list, which its own reader takes as well."""
    for parameter in (numbers("sizes", ""), points("atoms", "")):
        assert parameter.default == () == parameter.read(())


def test_a_choice_is_one_of_its_names():
    """As it is written, or the names are told."""
    noise = choice("noise", "normal", ("normal", "uniform"), "")
    assert noise.read("uniform") == "uniform"
    for given in ("pink", "Normal", 3, None, ["normal"]):
        with pytest.raises(ValueError, match=r"expected one of normal, uniform$"):
            noise.read(given)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("age, income,debt", ("age", "income", "debt")),
        (' ["a, b", " c"]', ("a, b", " c")),
        (["b", "a,c"], ("b", "a,c")),
        (np.array(["b", "a"]), ("b", "a")),
        ((), ()),
    ],
)
def test_a_sequence_of_groups_is_read(given, value):
    """From text with commas, JSON, and sequences, in their order; it is none of another kind of text."""
    sequence = sequence_of_groups("sequence", "")
    assert sequence.of_groups
    found = sequence.read(given)
    assert (found, {type(name) for name in found}) == (value, {str} if value else set())


@pytest.mark.parametrize("given", ["", "a,,b", "[1]", "[", "[" * 10**5, ["a", 1], ["a", ""], 3, None, {"a": 1}, {"a", "b"}, pd.Series(["a", "b"])])
def test_what_is_no_sequence_of_groups_is_refused(given):
    """Nor what has no order, or names of its own."""
    with pytest.raises(ValueError, match="expected names of groups, as text with commas between them, or a JSON list"):
        sequence_of_groups("sequence", "").read(given)
