"""The command ``show``: single rows of a finished run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ...errors import Exit, NotRepeatable, UsageError
from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Whole
from ..terminal.terminal import complain, open_console, say

if TYPE_CHECKING:
    from ...finished.finished_run import FinishedRun
    from ...runs.lookup.row_lookup import FoundRows


UNVERIFIED = Exit.PARTLY  # exit code if rows could not be recomputed
Names = Annotated[tuple[str, ...], Parameter(group=INPUT, negative=(), consume_multiple=True)]


def _read_where(given: Sequence[str], null: Sequence[str]) -> dict[str, str | None]:
    where: dict[str, str | None] = {}
    for name, value in (*(_split(text) for text in given), *((name, None) for name in null)):
        if name in where:
            raise UsageError(f"where names {name!r:.80} twice, expected every column once")
        where[name] = value
    return where


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"where is {text!r:.80}, expected NAME=VALUE; --null NAME asks for a missing value")
    return name, value


def _verify(run: "FinishedRun", found: "FoundRows", model: str | None) -> tuple[bool, str]:
    """Recompute the rows: return whether that was possible, and a message; InvalidRun if they differ."""
    from ...display.text import count
    from ...runs.check.verify_rows import verify_rows

    try:
        verify_rows(run.uri, run.manifest, run.plan, found, model)
    except NotRepeatable as error:
        return False, f"not verified: {error}"
    against = "model and data" if run.plan.background_digest is None else "model, data and background"
    n = len(found.places)
    return True, f"verified: {count(n, 'row')} explained again {'agrees' if n == 1 else 'agree'} with what is stored; {against} are those of the plan"


def show(
    run: Annotated[str, Parameter(group=INPUT)],
    *,
    where: Names = (),
    null: Names = (),
    most: Annotated[Whole, Parameter(group=INPUT)] = 10,
    output: Annotated[str | None, Parameter(group=INPUT)] = None,
    top: Annotated[Whole, Parameter(group=INPUT)] = 10,
    json: Json = False,
    html: Annotated[str | None, Parameter(group=INPUT)] = None,
    verify: Annotated[bool, Parameter(group=INPUT, negative=())] = False,
    model: Annotated[str | None, Parameter(group=INPUT)] = None,
    date: Day = None,
) -> int:
    """Show rows of a finished run: prediction, base value, and what each feature added.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI.
    where
        NAME=VALUE of a column that the row has, mostly an id, read by the column's type; all of several have to hold.
    null
        Columns whose value is missing in the row.
    most
        Rows that are shown; all are counted.
    output
        The only output to show, by its name; by default the one of the largest margin, and --json and --html have all.
    top
        Features of a row that are shown; where attributions add up, the others are added up.
    json
        Write one JSON document instead, with all that the run has of the rows.
    html
        Also write a page, to a path or an fsspec URI that is not there yet.
    verify
        Explain the rows again from the model and the data that the plan names, and compare every column with what is stored.
    model
        The model's file, where it is not any more where it was.
    date
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in RUN and --html.

    Returns
    -------
    int
        Exit code: 0, or UNVERIFIED where the rows could not be explained again.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...arguments.readers import read_number
    from ...finished.finished_run import read_run

    asked = _read_where(where, null)
    if model is not None and not verify:
        raise UsageError("a model is given, but no row is explained again; ask for --verify")
    read_number("top", top, 1)
    finished, console = read_run(fill_day(run, date)), open_console()
    found = finished.find(asked, most)
    shown = finished.describe(found, output)
    verified, said = _verify(finished, found, model) if verify else (True, "")
    if html is not None:
        from ...finished.row_page import save_page

        save_page(fill_day(html, date), shown, top, said)
    if json:
        write_document(shown.to_dict() | {"verified": verified if verify else None})
    else:
        for line in shown.text(top).split("\n"):
            say(console, line)
    if said and not verified:
        complain(said)
    elif said and not json:
        say(console, said)
    return 0 if verified else UNVERIFIED
