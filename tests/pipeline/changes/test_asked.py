"""What may be changed, as it is read; what refuses wrong names and bounds is tested with the rows in memory."""

import pytest

from leafledger.pipeline.changes.asked import Change, read_change, read_threshold
from leafledger.pipeline.errors import UsageError


def test_everything_may_be_left_out():
    """Both directions, without bounds or steps."""
    assert read_change("x", {}, "here") == Change("x", "both", None, None, None, None, None)


def test_everything_may_be_said():
    """Of numbers, and of categories as one or several."""
    given = {"direction": "down", "at_least": 0, "at_most": 3.5, "step": 0.5}
    assert read_change("x", given, "here", "words") == Change("x", "down", 0.0, 3.5, 0.5, None, "words")
    assert read_change("x", {"to": "AA"}, "here").to == ("AA",)
    assert read_change("x", {"to": [2, "b"]}, "here").to == (2.0, "b")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"to": ["AA", "AA"]}, "here: to is ['AA', 'AA'], expected one category or several, each once"),
        ({"to": [None]}, "here: to is None, expected categories, as texts or numbers"),
        ({"at_most": "3"}, "here: at_most is '3', expected a number"),
        ({"step": -1}, "here: step is -1, expected a number above 0"),
    ],
)
def test_other_things_are_refused(given, message):
    """In one line."""
    with pytest.raises(UsageError) as refused:
        read_change("x", given, "here")
    assert str(refused.value) == message


def test_a_threshold_is_needed():
    """There is none that goes without saying."""
    assert read_threshold(3, None) == (3.0, "margin")
    with pytest.raises(UsageError, match="here: threshold is not given, expected the number"):
        read_threshold(None, None, "here: ")
