"""How runs of a range ended, in a line, a count and one exit code."""

from datetime import date

import pytest

from leafledger.pipeline.command.terminal.outcome import Outcome, end_nights, say_totals
from leafledger.pipeline.errors import Exit


def ended(code, how="explained", said=(), drift=""):
    return Outcome("runs/a", how, code, {}, "10 rows in 1 part" if how != "failed" else "data: not there", said, drift)


DONE, BEFORE, PARTLY = ended(Exit.DONE), ended(Exit.DONE, "finished before"), ended(Exit.PARTLY, said=("rejected: a",))
DRIFTED = ended(Exit.DRIFT, drift="2 alarms against runs/b")


def failed(code):
    return ended(code, "failed")


@pytest.mark.parametrize(
    ("done", "code"),
    [
        ([DONE, BEFORE], 0),
        ([DONE, PARTLY, DRIFTED], 3),
        ([DRIFTED, DONE], 4),
        ([PARTLY, failed(Exit.REFUSED), failed(Exit.NOT_YET)], 6),
        ([failed(Exit.USAGE), failed(Exit.REFUSED)], 8),
        ([failed(Exit.USAGE), DRIFTED], 2),
    ],
)
def test_a_range_ends_with_the_gravest(done, code):
    """What failed before what is not in full, and that before drift; of failures the one that is tried again, and arguments last."""
    assert end_nights(done) == code


def test_nights_are_counted():
    """What ended otherwise than explained, finished before or failed is named only where there is some."""
    assert say_totals(7, [DONE] * 6 + [BEFORE]) == "7 nights: 6 explained, 1 finished before, 0 failed"
    said = say_totals(9, [DONE, PARTLY, DRIFTED, failed(Exit.NOT_YET), ended(Exit.DONE, "kept as it is")])
    assert said == "9 nights: 3 explained, 0 finished before, 1 failed, 1 kept as it is, 4 left to do; 1 not in full, 1 drifted"
    kept = [ended(Exit.DONE, "kept as it is")] * 2
    assert say_totals(2, kept) == "2 nights: 0 explained, 0 finished before, 0 failed, 2 kept as they are"


def test_a_night_is_one_line():
    day = date(2026, 3, 1)
    assert DONE.line(day) == "2026-03-01 runs/a: explained (10 rows in 1 part)"
    assert failed(Exit.NOT_YET).line(day) == "2026-03-01 runs/a: failed, exit code 6: data: not there"
    both = ended(Exit.PARTLY, said=("rejected: a", "rejected: b", "latest stays"), drift="2 alarms against runs/b")
    assert both.line(day) == "2026-03-01 runs/a: explained (10 rows in 1 part); rejected: a and 2 more; 2 alarms against runs/b"
