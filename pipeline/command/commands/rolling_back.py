"""The command ``rollback``: a run that was replaced, put back."""

from typing import Annotated

from cyclopts import Parameter

from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json, Quiet
from ..terminal.terminal import open_console, say


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
