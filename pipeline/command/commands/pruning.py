"""The command ``prune``: removal of old runs."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from ...display.text import count
from ...errors import Exit
from ..terminal.dated import Day
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Quiet
from ..terminal.terminal import complain, open_console, say


def prune(
    folder: Annotated[str, Parameter(group=INPUT)],
    *,
    keep: Annotated[str, Parameter(group=INPUT)],
    latest: Annotated[tuple[str, ...], Parameter(group=INPUT, negative=(), consume_multiple=True)] = (),
    dry_run: Annotated[bool, Parameter(group=INPUT, negative=())] = False,
    date: Day = None,
    quiet: Quiet = False,
    json: Json = False,
) -> int:
    """Remove the old runs below a folder, whole, each with its manifest first. The newest stays, and so does a run whose name has no day.

    Parameters
    ----------
    folder
        A path or an fsspec URI, as of runs.
    keep
        How many days are kept, as 90d. A run is of the day that its name has.
    latest
        Objects that name the latest run, which stays; those in the folder, and in folders between it and runs, are found.
    dry_run
        Remove nothing, and show what would be removed.
    date
        YYYY-MM-DD, today or yesterday in local time: from which days are counted; by default today, in UTC.
    quiet
        Show nothing but errors.
    json
        Write one JSON document instead.

    Returns
    -------
    int
        Exit code: 0, or 3 where an old run could not be taken out of its table, and stays.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...history.prune import prune as prune_runs

    found = prune_runs(folder, keep=keep, latest=latest, dry_run=dry_run, date=date)
    for name, why in found.kept:
        if name in found.held:
            complain(f"keeps {name}: {why}")
    if json:
        write_document(asdict(found) | {"kept": [{"run": run, "why": why} for run, why in found.kept]})
    console = open_console(json or quiet)
    for run in found.removed:
        rows = "" if run.n_rows is None else f", {count(run.n_rows, 'row')}"
        kept = f", and {count(run.n_kept_bytes, 'byte')} kept of what it replaced" if run.n_kept_bytes else ""
        say(console, f"{'would remove' if dry_run else 'removed'} {run.name}: {run.state}{rows}{kept}")
    for name, why in found.kept:
        if name not in found.held:
            say(console, f"keeps {name}: {why}")
    say(console, f"{count(len(found.removed), 'run')} of days before {found.before} {'would be removed' if dry_run else 'removed'}")
    return Exit.PARTLY if found.held else Exit.DONE
