"""Dates in paths on the command line, as ``explained/{date-1d}``."""

from collections.abc import Sequence
from datetime import date as Date
from typing import Annotated, Any

from cyclopts import Parameter, Token

from .flags import INPUT


def _read_day(_type: Any, tokens: Sequence[Token]) -> Date:
    """Read a date once, while the command line is parsed: "today" stays one day, however long the command takes."""
    from ...arguments.readers import read_date

    (token,) = tokens
    return read_date("date", token.value)


Day = Annotated[Date | None, Parameter(group=INPUT, converter=_read_day)]


def fill_day(place: str, date: Date | None) -> str:
    """Fill a date into a path on the command line.

    Parameters
    ----------
    place : str
        A path or URI, with {date} in it, or not.

    Raises
    ------
    UsageError
        There is no day to fill in, or something else stands between the braces.
    """
    from ...arguments.dates import fill_date

    return fill_date(place, date)
