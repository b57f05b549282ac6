"""Numbers are written with few digits, and axes hold what they are made for, with round numbers that fit."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leafledger.pipeline.report.figures.scale import SMALLEST, Axis, make_axis, shorten_name, shorten_names, write_apart, write_number, write_share

numbers = st.floats(allow_nan=True, allow_infinity=True)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (-1.23456, "−1.235"), (12345.6, "12,346"), (1e-7, "1e-07"), (math.nan, "–"), (None, "–"), (-math.inf, "−∞"), (2e9, "2e+09")],
)
def test_a_number_has_few_digits(number, text):
    assert write_number(number) == text
    assert write_number(1.5, signed=True) == "+1.5"
    assert write_number(1.2345, digits=2) == "1.2"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), unique=True, max_size=5))
def test_different_numbers_read_differently(found):
    """Whatever their size, and however near they are."""
    assert len(set(write_apart(found))) == len(found)


def test_no_more_digits_are_written_than_tell_numbers_apart():
    assert write_apart([20240101, 20240708, 20251231]) == ["20,240,101", "20,240,708", "20,251,231"]
    assert write_apart([1012.3, 1012.6, 1013.9]) == ["1,012.3", "1,012.6", "1,013.9"]
    assert write_apart([0.99991, 0.99994, 1]) == ["0.99991", "0.99994", "1"]
    assert write_apart([1.23456, 2.34567]) == ["1.235", "2.346"]
    assert write_apart([12345.6, 13456.7]) == ["12,346", "13,457"]
    assert write_apart([2e12, 2.00001e12]) == ["2e+12", "2.00001e+12"]


@pytest.mark.parametrize(("share", "text"), [(0.5, "50%"), (0.0123, "1.2%"), (0.0001, "<0.1%"), (1, "100%"), (0.9999, "99.9%"), (0, "0%")])
def test_nothing_but_all_is_all_and_nothing_but_none_is_none(share, text):
    assert write_share(share) == text
    assert write_share(math.nan) == write_share(None) == "–"


def test_a_long_name_keeps_both_ends():
    name = "a" * 100 + "end"
    assert len(shorten_name(name)) == 48
    assert shorten_name(name).endswith("end")
    assert shorten_name("short") == "short"


@given(st.lists(st.text("ab", max_size=12), max_size=6), st.integers(4, 9))
def test_different_names_stay_different_when_shortened(names, most):
    """Wherever they differ, and however often they are there."""
    short = shorten_names(names, most)
    assert len(set(zip(names, short, strict=True))) == len(set(names)) == len(set(short))
    for name, text in zip(names, short, strict=True):
        head, _, tail = text.partition("…")
        assert text == name if "…" not in text else name.startswith(head) and name.endswith(tail) and len(text) < len(name)


def test_names_keep_as_many_characters_as_tell_them_apart():
    names = [f"{'a' * 40}_{middle}_{'z' * 40}" for middle in ("debit", "credit")]
    assert len(set(map(shorten_name, names))) == 1
    assert [len(text) for text in shorten_names(names)] == [48, 48]
    assert shorten_names([f"{'a' * 90}{name}{'z' * 90}" for name in ("x", "y")], 20)[0].count("x") == 1
    huge = [f"{'a' * 5000}{name}{'z' * 5000}" for name in ("x", "y")]
    assert shorten_names(huge) == huge


@given(st.lists(numbers, max_size=5), st.booleans())
@example([5e-324], True)
@example([5e-324], False)
@example([1e-279, 1.000001e-279], False)
def test_an_axis_holds_all_its_numbers_and_its_ticks_fit(found, zero):
    """Whatever the numbers: ticks ascend, lie within, and need no more room than there is."""
    axis = make_axis(found, zero)
    assert math.isfinite(axis.high - axis.low)
    assert axis.low < axis.high
    ticks = axis.ticks()
    assert [tick.at for tick in ticks] == sorted({tick.at for tick in ticks})
    assert len({tick.text for tick in ticks}) == len(ticks)
    assert len(ticks) <= 1 or sum(len(tick.text) + 2 for tick in ticks) <= 44 or len(axis.ticks(1)) == len(ticks)
    for number in found:
        assert 0 <= axis.at(number) <= 100
    assert not zero or axis.low <= 0 <= axis.high
    assert axis == Axis(0, 1) or not zero or any(abs(number) > SMALLEST for number in found)


def test_ticks_are_round():
    assert [tick.text for tick in Axis(0, 21.7).ticks()] == ["0", "5", "10", "15", "20"]
    assert [tick.text for tick in Axis(-0.2, 0.11).ticks()] == ["−0.2", "−0.1", "0.0", "0.1"]
    assert [tick.text for tick in Axis(-3e6, 0).ticks()] == ["−3e+06", "−2e+06", "−1e+06", "0"]
    assert [tick.text for tick in Axis(20_240_101, 20_251_231).ticks(4, 24)] == ["20,245,000", "20,250,000"]
    assert [tick.text for tick in Axis(0.99990, 0.99998).ticks(4)] == ["0.99990", "0.99995"]
    assert [tick.text for tick in Axis(-4.6, 4.6).ticks(4)] == ["−4", "−2", "0", "2", "4"]  # not 0 alone, between −5 and 5
    assert {tick.side for tick in Axis(0, 10).ticks()} == {"middle"}
    assert [tick.side for tick in Axis(0, 20_000).ticks()] == ["middle", "middle", "middle", "middle", "end"]
    assert [(tick.at, tick.text) for tick in Axis(0, 0.5).percent()] == [(20.0 * i, f"{10 * i}") for i in range(6)]
    assert len(Axis(0, 700_000).ticks(4, 24)) < len(Axis(0, 700_000).ticks(4, 100))
