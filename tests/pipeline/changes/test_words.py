"""Changes in words never say another number than the one that crosses."""

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
