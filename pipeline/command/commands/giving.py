"""The command ``reasons``: reasons of a finished run for those whom they are given to."""

from typing import Annotated

from cyclopts import Parameter

from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Quiet
from ..terminal.terminal import open_console, say
from .showing import Names, read_where


def reasons(
    run: Annotated[str, Parameter(group=INPUT)],
    *,
    csv: Annotated[str | None, Parameter(group=INPUT)] = None,
    letters: Annotated[str | None, Parameter(group=INPUT)] = None,
    template: Annotated[str, Parameter(group=INPUT)] = "text",
    where: Names = (),
    null: Names = (),
    output: Annotated[str | None, Parameter(group=INPUT)] = None,
    date: Day = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write the reasons of a finished run for those whom they are given to: ids, codes and texts, as a table or as letters.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI, which was explained with --reasons.
    csv
        Table to write, a path or an fsspec URI that is not there yet: a row for each row, with code and text of each reason.
    letters
        Folder to write a letter for each row into, named by its ids, which have to tell rows apart.
    template
        Jinja template of letters, of ids and reasons, each with code and text; HTML where its name ends in .html or .html.jinja. "text" and "html"
        come along.
    where
        NAME=VALUE of a column that rows have, mostly an id; all of several have to hold. By default all rows are taken.
    null
        Columns whose value is missing in the rows.
    output
        Of a model of several outputs, the one whose reasons are given.
    date
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in RUN, --csv, --letters and --template.
    json
        Write one JSON document instead: how many rows there are, and where they were written.
    quiet
        Show nothing but errors.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from dataclasses import asdict

    from ...display.text import count
    from ...finished.given_reasons import write_reasons

    table, folder = (None if place is None else fill_day(place, date) for place in (csv, letters))
    asked = read_where(where, null)
    written = write_reasons(fill_day(run, date), csv=table, letters=folder, template=fill_day(template, date), where=asked or None, output=output)
    if json:
        write_document(asdict(written))
        return
    console = open_console(quiet)
    places = [f"{name}: {place}" for name, place in (("table", written.csv), ("letters", written.letters)) if place is not None]
    for line in (f"{count(written.n_rows, 'row')}, {written.n_without:,} without a reason", *places):
        say(console, line)
