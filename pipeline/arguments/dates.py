"""Dates in paths: ``{date}`` and days around it in any format; and ranges of days."""

import re
from collections.abc import Mapping, Sequence
from datetime import date as Date
from datetime import timedelta
from string import Formatter
from typing import Any

from ..errors import UsageError
from .readers import DATES, read_date, refuse

DAY = re.compile(r"date(?:([+-][0-9]{1,6})d)?")  # with an offset in days
DIRECTIVE = re.compile(r"%[-_0^#]?(.?)")  # of strftime, with a flag of the C library
MISSING = f"no date was given; give --date {DATES}"
OF_A_DAY = "aAwdbBmyYjUWxGuVCDFegh%"  # directives of dates; others need a time, or are unknown and kept


class _Dates(Formatter):
    """Formatter of ``{date}`` and ``{date-1d}``; raises ValueError for other fields."""

    def __init__(self, date: Date) -> None:
        self.date = date

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:  # noqa: ARG002 - a formatter's
        found = DAY.fullmatch(field_name)
        if found is None:
            raise ValueError(f"{{{field_name}}}")
        try:
            return self.date + timedelta(days=int(found[1] or 0)), field_name
        except OverflowError:
            raise ValueError(f"{{{field_name}}}, which is no day of a calendar") from None

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion is not None:
            raise ValueError(f"!{conversion}")
        return value

    def format_field(self, value: Any, format_spec: str) -> str:
        directives = DIRECTIVE.findall(format_spec)
        for found in directives:
            if not found or found not in OF_A_DAY:
                raise ValueError(f"the form {format_spec}: %{found} is no part of a day")
        if format_spec and not directives:
            raise ValueError(f"the form {format_spec}, which has no part of a day, as %Y")
        return super().format_field(value, format_spec)


def fill_date(uri: str, date: Date | None) -> str:
    """Fill a date into a path or URI.

    Parameters
    ----------
    uri : str
        With {date} in it, or not.

    Raises
    ------
    UsageError
        There is no date to fill in, or something else between the braces, as the form of a time.
    """
    if "{" not in uri:
        return uri
    if date is None:
        raise UsageError(f"{uri}: has a {{date}} to fill in, but {MISSING}")
    try:
        return _Dates(date).vformat(uri, (), {})
    except ValueError as error:
        expected = "only {date}, a day around it such as {date-1d}, or a form of these such as {date-1d:%Y/%m/%d} can be filled in"
        raise UsageError(f"{uri}: {expected}; got {error}") from None


def list_days(dates: str, out: str, date: Date | None) -> list[Date]:
    """List the days of a range.

    Parameters
    ----------
    dates : str
        FIRST..LAST, each as YYYY-MM-DD, "today" or "yesterday".
    out : str
        Of the runs, one for each day.
    date : date or None
        Of a single run, which a range takes the place of.

    Returns
    -------
    list of date
        From the first to the last, both among them.

    Raises
    ------
    UsageError
        It is no such range, a date is given too, or two runs would have the same place.
    """
    first, dots, last = dates.partition("..")
    if not dots:
        raise refuse("dates", dates, "two days, as 2026-01-01..2026-01-31 or 2026-01-01..yesterday")
    start, end = read_date("the first of dates", first), read_date("the last of dates", last)
    if end < start:
        raise UsageError(f"dates are {dates}: the last day is before the first")
    if date is not None:
        raise UsageError(f"dates are {dates}, and date is {date}; leave out one or the other")
    days = [start + timedelta(days=day) for day in range((end - start).days + 1)]
    refuse_shared(out, days)
    return days


def refuse_shared(out: str, days: Sequence[Date]) -> None:
    """Refuse an output with the same path for two days.

    Parameters
    ----------
    out : str
        Of the runs, one for each day.
    """
    first: dict[str, Date] = {}
    for day in days:
        other = first.setdefault(fill_date(out, day), day)
        if other != day:
            raise UsageError(f"{out}: is the same place on {other} and on {day}, whose runs would be one; fill in {{date}}")
