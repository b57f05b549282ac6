"""The command ``forget``: removal of one person's rows from finished runs."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ...display.text import count, printable
from ...errors import Exit, UsageError
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Quiet
from ..terminal.terminal import complain, open_console, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...forgetting.forget import ForgottenRows, OlderVersions

Places = Annotated[tuple[str, ...], Parameter(group=INPUT, negative=(), consume_multiple=True)]


def _say_older(older: "OlderVersions") -> "Iterator[str]":
    held = f", {count(len(older.holding), 'file')} of others with it" if older.holding else ""
    versions, one = count(len(older.versions), "older version"), len(older.versions) == 1
    yield f"{older.table}: {versions} {'names' if one else 'name'} {count(older.gone, 'file')} that nobody can read any more{held}"
    yield f"{'it expires' if one else 'they expire'} by: {older.expire}"


def _say(found: "ForgottenRows") -> "Iterator[str]":
    would = "would forget" if found.dry_run else "forgot"
    for run in found.runs:
        made = f"; {', '.join(run.removed)} removed, make {'it' if len(run.removed) == 1 else 'them'} again" if run.removed else ""
        parts = f"{run.n_parts:,} of {count(run.of_parts, 'part')} written anew"
        what = count(run.n_rows, "row") if run.n_rows else "what lists it beside rows"
        yield f"{would} {what} of {run.name or found.folder}: {parts}{made}"
    for uri in found.pages:
        yield f"{'would remove' if found.dry_run else 'removed'} the page {uri}"
    for uri in found.kept:
        yield f"{'would remove' if found.dry_run else 'removed'} what is kept of a run that was replaced, {uri}: there is no way back"
    for uri in found.pointers:
        yield f"{uri} names the run by its new manifest"
    what = f"{found.column}={found.value}"
    yield f"{count(found.n_runs, 'run')} searched for {what}: {count(found.n_rows, 'row')} in {count(len(found.runs), 'run')}"
    n, held = count(found.n_objects, "object"), len(found.holding) + len(found.pages)
    if found.dry_run:
        yield f"{n} searched, of which {held:,} {'holds' if held == 1 else 'hold'} it"
        for each in found.holding:
            yield f"  {each.uri}: {each.what}"
    elif not found.holding:
        yield f"{n} searched byte by byte: none holds it{', but not all runs could be searched for its rows' if found.untouched else ''}"
    for older in found.older:
        yield from _say_older(older)


def forget(
    runs: Annotated[str, Parameter(group=INPUT)],
    *,
    where: Annotated[str, Parameter(group=INPUT)],
    dry_run: Annotated[bool, Parameter(group=INPUT, negative=())] = False,
    latest: Places = (),
    pages: Places = (),
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Remove one person's rows from all finished runs below a folder, and search every object there afterwards for what is left of them.

    It cannot be undone. Remove the person from the data first, or the next run has them again. Parts with such rows are written anew and put in place
    as a replacement is, the table that a run is in has the new ones in one commit, reports and pages of such rows go. Summaries stay as they were
    computed, with these rows; the manifest says how many were forgotten, and when. Interrupted, the same command goes on from there.

    Parameters
    ----------
    runs
        A folder of runs, as of runs, or a run; a path or an fsspec URI.
    where
        COLUMN=VALUE of an id column, read by the column's type.
    dry_run
        Change nothing, and show what would be changed and which objects hold the value now.
    latest
        Objects that name the latest run; those in RUNS, and in folders between it and runs, are found.
    pages
        Folders elsewhere, with pages of show --html or copies: pages of such rows are removed there, whatever else holds the value is named.
    quiet
        Show nothing but errors, and what still holds the value.
    json
        Write one JSON document instead.

    Returns
    -------
    int
        Exit code: 0, or 3 where a run could not be searched or changed, or something holds the value still.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...forgetting.forget import forget as forget_rows

    column, equals, value = where.partition("=")
    if not column or not equals or not value:
        raise UsageError(f"where is {where!r:.80}, expected COLUMN=VALUE of an id column, such as customer_id=4711")
    found = forget_rows(runs, {column: value}, dry_run=dry_run, latest=latest, pages=pages)
    if json:
        write_document(found.to_dict())
    console = open_console(json or quiet)
    for line in _say(found):
        say(console, printable(line))
    for run in found.untouched:
        complain(f"not touched: {run.name or found.folder}: {run.why}")
    held = [] if found.dry_run else [*found.holding, *(each for older in found.older for each in older.holding)]
    for each in held:
        complain(f"still holds it: {each.uri}: {each.what}")
    return Exit.PARTLY if found.untouched or held else Exit.DONE
