"""Dates in paths on the command line, as ``explained/{date-1d}``."""

from typing import Annotated

from cyclopts import Parameter

from .flags import INPUT

Day = Annotated[str | None, Parameter(group=INPUT)]


def fill_day(place: str, date: str | None) -> str:
    """Fill a date into a path on the command line.

    Parameters
    ----------
    place : str
        A path or URI, with {date} in it, or not.
    date : str or None
        YYYY-MM-DD.

    Returns
    -------
    str

    Raises
    ------
    UsageError
        There is no such day, none is given to fill in, or something else stands between the braces.
    """
    from ...arguments.dates import fill_date
    from ...arguments.readers import read_date

    return fill_date(place, None if date is None else read_date("date", date))
