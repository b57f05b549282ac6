"""The commands ``prune`` and ``rollback``: old runs, removed or put back."""

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from ...display.text import count
from ...errors import Exit
from ..terminal.dated import Day, fill_day
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


def rollback(
    run: Annotated[str, Parameter(group=INPUT)],
    *,
    latest: Annotated[tuple[str, ...], Parameter(group=INPUT, negative=(), consume_multiple=True)] = (),
    date: Day = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Put the run back that the one in a folder replaced, where explain kept it by --keep-replaced. The one that is there goes for good.

    Nothing is explained. The run takes the place as any run that replaces another, in one step for readers of the manifest and of the table.
    Interrupted, the same command goes on from there.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI.
    latest
        Objects that name the latest run; that in the folder above the run is found.
    date
        YYYY-MM-DD, fills {date} in RUN.
    quiet
        Show nothing but errors.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...history.rollback import rollback as put_back

    found = put_back(fill_day(run, date), latest=[fill_day(each, date) for each in latest])
    if json:
        made = {"n_rows": found.manifest.n_rows, "manifest": found.manifest.sha256, "replaced": found.replaced}
        write_document({"run": found.run, "finished_before": found.finished_before, **made, "pointers": found.pointers})
    console = open_console(json or quiet)
    done = "was put back before; what was left to do is done" if found.finished_before else "is put back"
    say(console, f"{found.run}: the run of before {done}: {found.manifest.counted}, SHA-256 of manifest.json {found.manifest.sha256}")
    for uri in found.pointers:
        say(console, f"{uri} names the run by its new manifest")
    say(console, "what was found of drift, and a report, are not kept: leafledger drift and leafledger report make them again")
