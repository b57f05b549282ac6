"""Changes in words never say another number than the one that crosses."""

import math

import pytest

from leafledger.pipeline.changes.words import check_text, write_change, write_exactly
from leafledger.pipeline.errors import UsageError


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        (3030.0, ",.0f", "3,030"),
        (40.4, ".0f", "40.4"),  # 40 is another number
        (0.4, ".0%", "40%"),
        (0.404, ".0%", "0.404"),
        (41, ".0f", "41"),
        (41.0, "", "41"),
        (0.1, "", "0.1"),
        (1e-35, ".2f", "1e-35"),
        (5.0, "08.2f", "00005.00"),
        ("AA", "", "AA"),
        ("AA", ".0f", "AA"),
        (True, ".0f", "True"),
    ],
)
def test_a_form_says_the_value_or_is_passed_over(value, form, expected):
    """Rounded to 40, what has to be at most 40.4 would be told as too little or too much."""
    assert write_exactly(value, form) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("x", 5.0, 3.0, None), "x at most 3 (3)"),
        (("x", 1, 3, None), "x at least 3 (3)"),
        (("x", 1, 3, 4), "x from 3 to 4 (3)"),
        (("x", 5, 3, 2), "x from 2 to 3 (3)"),
        (("x", 5, 3, 3), "x 3 (3)"),
        (("x", None, "AA", None), "x AA (AA)"),
        (("x", None, 4, None), "x 4 (4)"),
        (("x", 0.0, True, None), "x True (True)"),
    ],
)
def test_phrases(given, expected):
    """From the nearest number on, up to where it holds."""
    assert write_change("{feature} {change} ({value:.0f})", *given) == expected


@pytest.mark.parametrize(
    ("now", "value", "until", "expected"),
    [
        (70.0, 77.85000000000002, None, "at least 77.9"),
        (77.8, 77.85000000000002, None, "at least 77.8501"),  # 77.9 would double the change
        (70.0, -77.85000000000002, None, "at most -78"),
        (3.0, 0.10000000000000002, None, "at most 0.1"),
        (3.0, 0.09999999999999999, None, "at most 0.09"),
        (70.0, 77.85000000000002, 77.85000000000005, "from 77.85000000000002 to 77.85000000000005"),
        (70.0, 77.85000000000002, 90.12345678901, "from 77.9 to 90.1"),
        (95.0, 90.12345678901, 77.85000000000002, "from 77.86 to 90.1"),
        (70.0, 77.8500001, None, "at least 77.8500001"),  # nine digits may be what somebody wrote
        (0.0, 5e-324, None, "at least 5e-324"),
        (0.0, 1.7976931348623157e308, None, "at least 1.7976931348623157e+308"),
    ],
)
def test_numbers_that_nobody_would_say_are_rounded_to_the_far_side(now, value, until, expected):
    """The number that is told crosses as well, and makes the change a hundredth larger at most."""
    written = write_change("{change}", "x", now, value, until)
    assert written == expected
    first, last = sorted([value, math.copysign(math.inf, value - now) if until is None else until])
    told = [float(word) for word in written.split() if word not in ("at", "least", "most", "from", "to")]
    assert all(first <= each <= last for each in told)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text is '', expected words"),
        (3, "text is 3, expected words"),
        ("{chang}", "expected {feature}, {change} or {value} in braces, got {chang}"),
        ("{change!r}", "in braces, got {change}"),
        ("{change:{value}}", "in braces, got {change}"),
        ("{feature:>9}", "in braces, got {feature}"),
        ("{change:q}", "Unknown format code 'q'"),
        ("{change:99999.1f}", "more than 1000 characters"),
        ("{", "cannot be filled in"),
    ],
)
def test_texts_that_cannot_be_filled_in_are_refused(text, message):
    """Before any row is read."""
    with pytest.raises(UsageError) as refused:
        check_text(text, "here")
    assert str(refused.value).startswith("here: text ")
    assert message in str(refused.value)


def test_a_text_without_places_is_taken():
    """Words alone."""
    assert check_text("with fewer debts", "here") == "with fewer debts"
