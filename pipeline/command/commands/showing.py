"""The command ``show``: single rows of a finished run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ...errors import Exit, NotFinished, NotRepeatable, UsageError
from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Whole
from ..terminal.terminal import complain, open_console, say

if TYPE_CHECKING:
    from ...finished.finished_run import FinishedRun
    from ...finished.row_view import Shown
    from ...runs.lookup.row_lookup import FoundRows


UNVERIFIED = Exit.PARTLY  # exit code if rows could not be recomputed
Names = Annotated[tuple[str, ...], Parameter(group=INPUT, negative=(), consume_multiple=True)]


def read_where(given: Sequence[str], null: Sequence[str]) -> dict[str, str | None]:
    """Read conditions on columns of rows."""
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


@dataclass(frozen=True, slots=True)
class _Look:
    """What is asked for, and how it is shown."""

    where: Mapping[str, str | None]
    most: int
    output: str | None
    top: int
    json: bool
    html: str | None  # URI of the page
    verify: bool
    model: str | None
    names: str | None


def _tell(look: _Look, text: str, document: Mapping[str, Any], checks: Sequence[tuple[bool, str]]) -> int:
    """Write lines or a document, and what verification said; return the exit code."""
    console, verified = open_console(), all(done for done, _ in checks)
    if look.json:
        write_document({**document, "verified": verified if look.verify else None})
    else:
        for line in text.split("\n"):
            say(console, line)
    for done, said in checks:
        if not done:
            complain(said)
        elif not look.json:
            say(console, said)
    return Exit.DONE if verified else UNVERIFIED


def _call(shown: "Shown", run: "FinishedRun", look: _Look) -> "Shown":
    """Call features by their readable names."""
    from ...finished.names import read_names_file

    return shown if look.names is None else shown.called(read_names_file(look.names, run.plan))


def _show_in_run(run: "FinishedRun", look: _Look) -> int:
    found = run.find(look.where, look.most)
    stored = run.describe(found, look.output)
    shown = _call(stored, run, look)
    checks = [_verify(run, found, look.model)] if look.verify else []
    if look.html is not None:
        from ...finished.row_page import save_page, write_page

        never = () if run.plan.reasons is None else run.plan.reasons.never
        save_page(look.html, write_page(shown, look.top, "".join(said for _, said in checks), never))
    return _tell(look, shown.text(look.top), stored.to_dict(), checks)


def _show_in_runs(folder: str, look: _Look) -> int:
    from ...finished.rows_of_runs import find_in_runs, say_not_searched

    found = find_in_runs(folder, look.where, look.most, look.output)
    named = replace(found, found=tuple(replace(each, shown=_call(each.shown, each.run, look)) for each in found.found))
    checks = [_verify(each.run, each.rows, look.model) for each in found.found] if look.verify else []
    checks = [(done, f"{each.name}: {said}") for each, (done, said) in zip(found.found, checks, strict=look.verify)]
    if look.html is not None:
        from ...finished.row_page import save_page, write_page_of_runs

        note = "; ".join(said for _, said in checks)
        save_page(look.html, write_page_of_runs(found.folder, [each.shown for each in named.found], look.top, note))
    code = _tell(look, named.text(look.top), found.to_dict(), checks)
    if found.not_searched:
        complain(f"{found.folder}: {say_not_searched(found.not_searched)}")
    return UNVERIFIED if found.not_searched else code


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
    names: Annotated[str | None, Parameter(group=INPUT)] = None,
    date: Day = None,
) -> int:
    """Show rows of a finished run, or of all finished runs below a folder: prediction, base value, and what each feature added.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI; or a folder of runs, such as that of all nights: then every row is told with its run, and runs
        that were not searched, as they are unfinished or unreadable, are named.
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
    names
        TOML or JSON file of readable names of features, with units, as for leafledger report; --json has the run's own.
    date
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in RUN, --html and --names.

    Returns
    -------
    int
        Exit code: 0, or UNVERIFIED where the rows could not be explained again, or not all runs of a folder could be searched.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...arguments.readers import read_number
    from ...finished.finished_run import read_run

    asked = read_where(where, null)
    if model is not None and not verify:
        raise UsageError("a model is given, but no row is explained again; ask for --verify")
    read_number("top", top, 1)
    place, page, words = fill_day(run, date), *(None if given is None else fill_day(given, date) for given in (html, names))
    look = _Look(asked, most, output, top, json, page, verify, model, words)
    try:
        finished = read_run(place)
    except NotFinished:
        from ...finished.rows_of_runs import is_folder_of_runs

        if not is_folder_of_runs(place):
            raise
        return _show_in_runs(place, look)
    return _show_in_run(finished, look)
