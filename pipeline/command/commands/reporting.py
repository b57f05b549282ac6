"""The command ``report``: a page about a finished run."""

from typing import Annotated, Any

from cyclopts import Parameter

from ..terminal.dated import Day, fill_day
from ..terminal.documents import write_document
from ..terminal.flags import CLUSTER, INPUT, Json, Quiet, Threads, Wait, Workers
from ..terminal.terminal import open_console, say


def report(
    run: Annotated[str, Parameter(group=INPUT)],
    *,
    against: Annotated[str | None, Parameter(group=INPUT)] = None,
    effects: Annotated[str | None, Parameter(group=INPUT)] = None,
    names: Annotated[str | None, Parameter(group=INPUT)] = None,
    overview: Annotated[str | None, Parameter(group=INPUT)] = None,
    date: Day = None,
    threads: Threads = None,
    scheduler: Annotated[str | None, Parameter(group=CLUSTER)] = None,
    workers: Workers = None,
    plain_tcp: Annotated[bool, Parameter(group=CLUSTER, negative=())] = False,
    wait: Wait = 15.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a report of a finished run: one page of figures that runs and fetches nothing, report/index.html below the run.

    Parameters
    ----------
    run
        Folder of the run, a path or an fsspec URI.
    against
        Folder of another run, or the JSON object that names the latest one: say what changed since. Said anyway where the two were compared before.
    effects
        Folder that leafledger effects wrote, of the same model: the effect of the first features stands beside their attributions.
    names
        TOML or JSON file of readable names: tables features, of a title, a unit and a description by feature, prediction, of the same, and rows.
    overview
        Page that lists this run and others, as leafledger runs --html writes it: the report links to it.
    date
        YYYY-MM-DD, today or yesterday, in local time; fills {date} in RUN and every option that is a place.
    threads
        Threads of this process, by default one per core that it may use.
    scheduler
        Address of a Dask scheduler, tls:// where it is another host, or "serial" for one thread; by default this process does all.
    workers
        Processes of a local Dask cluster, in the place of threads.
    plain_tcp
        As for explain.
    wait
        As for explain.
    json
        Write one JSON document instead: where the page is, and its bytes.
    quiet
        Show nothing but errors.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...report.report import report as write_report
    from ..terminal.progress import watched

    given = (against, effects, names, overview)
    run, before, curves, words, index = fill_day(run, date), *(None if place is None else fill_day(place, date) for place in given)
    with watched(quiet) as progress:
        where: dict[str, Any] = {"scheduler": scheduler, "threads": threads, "workers": workers, "plain_tcp": plain_tcp, "wait": wait}
        written = write_report(run, against=before, effects=curves, names=words, overview=index, **where, progress=progress)
    if json:
        write_document({"run": run, "page": written.uri, "size": written.size})
    else:
        say(open_console(quiet), f"report: {written.uri} ({written.size / 1000:,.0f} kB)")
