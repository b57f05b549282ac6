"""Days in places: the one that is meant, in any form of a day, or none; and the days of a range."""

from datetime import date

import pytest

from leafledger.pipeline.arguments.dates import fill_date, list_days, refuse_shared
from leafledger.pipeline.errors import UsageError


@pytest.mark.parametrize(
    ("uri", "filled"),
    [
        ("explained", "explained"),
        ("{date}", "2026-03-01"),
        ("{date-1d}", "2026-02-28"),
        ("{date-1d:%Y/%m/%d}", "2026/02/28"),
        ("{date-1d:%Y%m%d}-{date:%Y%m%d}", "20260228-20260301"),
        ("{date+31d}", "2026-04-01"),
        ("{date-0d}", "2026-03-01"),
        ("{date-366d:%-d.%-m.%y}", "28.2.25"),
        ("{date:week=%G-%V}/{date:%%%j}", "week=2026-09/%060"),
        ("{{kept}}-{date:%d}", "{kept}-01"),
    ],
)
def test_days_around_the_date_are_filled_in(uri, filled):
    """The night before, over the ends of months and years, in any form."""
    assert fill_date(uri, date(2026, 3, 1)) == filled


@pytest.mark.parametrize(
    ("uri", "got"),
    [
        ("{night}", r"\{night\}"),
        ("{0}", r"\{0\}"),
        ("{}", r"\{0\}"),
        ("{date-1}", r"\{date-1\}"),
        ("{date-1m}", r"\{date-1m\}"),
        ("{date--1d}", r"\{date--1d\}"),
        ("{date.year}", r"\{date.year\}"),
        ("{date-999999d}", r"\{date-999999d\}, which is no day of a calendar"),
        ("{date!r}", "!r"),
        ("{date", "expected '}' before end of string"),
        ("{date}}", "Single '}' encountered in format string"),
        ("{date:%Y%M%d}", "the form %Y%M%d: %M is no part of a day"),
        ("{date:%Y-%m-%d %H}", "the form %Y-%m-%d %H: %H is no part of a day"),
        ("{date:%Q}", "the form %Q: %Q is no part of a day"),
        ("{date:%Y%}", "the form %Y%: % is no part of a day"),
        ("{date:YYYY-MM-DD}", "the form YYYY-MM-DD, which has no part of a day, as %Y"),
    ],
)
def test_what_is_no_day_is_refused(uri, got):
    """Minutes that were meant as months too: every night would have been of minute 00."""
    with pytest.raises(UsageError, match=rf"only \{{date\}}, a day around it such as \{{date-1d\}}, or a form of these .*; got {got}$"):
        fill_date(uri, date(2026, 3, 1))


def test_places_that_days_share_are_refused():
    """Those of a month alone, and of a day that comes again."""
    days = [date(2026, 1, 31), date(2026, 2, 1), date(2027, 1, 31)]
    refuse_shared("o/{date}", days)
    refuse_shared("o/{date:%m}", days[:2])
    with pytest.raises(UsageError, match=r"^o/\{date:%m-%d\}: is the same place on 2026-01-31 and on 2027-01-31, whose runs would be one; fill in"):
        refuse_shared("o/{date:%m-%d}", days)


def test_days_of_a_range():
    """Both ends among them, over the end of February."""
    assert list_days("2026-02-27..2026-03-01", "o/{date}", None) == [date(2026, 2, 27), date(2026, 2, 28), date(2026, 3, 1)]
    assert list_days("2026-02-27..2026-02-27", "o", None) == [date(2026, 2, 27)]


@pytest.mark.parametrize(
    ("dates", "out", "day", "says"),
    [
        ("2026-02-27", "o/{date}", None, r"dates is '2026-02-27', expected two days, as 2026-01-01\.\.2026-01-31"),
        ("2026-02-27..", "o/{date}", None, "the last of dates is '', expected YYYY-MM-DD"),
        ("..2026-02-27", "o/{date}", None, "the first of dates is ''"),
        ("2026-02-30..2026-03-01", "o/{date}", None, "the first of dates is '2026-02-30', expected YYYY-MM-DD"),
        ("2026-03-01..2026-02-27", "o/{date}", None, "the last day is before the first"),
        ("2026-02-27..2026-03-01", "o/{date}", date(2026, 2, 27), "and date is 2026-02-27; leave out one or the other"),
        ("2026-02-27..2026-03-01", "o", None, "o: is the same place on 2026-02-27 and on 2026-02-28, whose runs would be one; fill in"),
        ("2026-02-27..2026-03-01", "o/{date:%m}", None, "is the same place on 2026-02-27 and on 2026-02-28"),
    ],
)
def test_what_is_no_range_of_days_is_refused(dates, out, day, says):
    with pytest.raises(UsageError, match=says):
        list_days(dates, out, day)
