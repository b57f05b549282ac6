"""``python -m flows.serve``: run the flow on a schedule from this process, which needs no work pool. It takes what ``leafledger explain`` takes.

Stopping it, by SIGTERM or Ctrl-C, leaves the schedule active: the nights it misses become late runs, which it makes up for, one at a time and
each under its own date, when it is started again. Only a run that it is in the middle of is stopped with it, and ends as crashed; running the
same deployment by hand with that run's ``date`` goes on from the parts it published.
"""

import sys
from dataclasses import fields, replace
from datetime import date as Date
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cyclopts import App, Parameter
from prefect import get_client
from prefect.client.schemas.schedules import CronSchedule
from prefect.settings import PREFECT_API_URL
from prefect.types.entrypoint import EntrypointType

from pipeline.command.cli import Place, main
from pipeline.command.flags import DEFAULTS, Flags
from pipeline.drift.thresholds import read_thresholds
from pipeline.errors import UsageError
from pipeline.runs.job import MODEL, fill_date, make_job
from pipeline.stores.places import normalise

from .explain import explain

app = App(
    name="python -m flows.serve",
    help="Explain every night's data at its time, from this process.",
    help_epilogue='Example: python -m flows.serve model.json "flights/{date-1d}" --out "explained/{date-1d}" '
    '--cron "0 3 * * *" --time-zone Europe/Berlin',
    result_action="return_value",
)


def make_schedule(cron: str, time_zone: str) -> CronSchedule:
    """Make a checked cron schedule.

    Parameters
    ----------
    cron : str
        Minute, hour, day of month, month and day of week, as in ``0 3 * * *``.
    time_zone : str
        As in Europe/Berlin.

    Returns
    -------
    CronSchedule

    Raises
    ------
    UsageError
        Either is not what it should be.
    """
    try:
        ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise UsageError(f"--time-zone is {time_zone!r}, expected a name such as Europe/Berlin") from None
    try:
        return CronSchedule(cron=cron, timezone=time_zone)
    except ValueError:
        raise UsageError(f"--cron is {cron!r}, expected minute, hour, day of month, month and day of week, as in '0 3 * * *'") from None


def check_server() -> None:
    """Refuse to serve without a server that runs schedules, which the one that Prefect starts by itself does not.

    Raises
    ------
    UsageError
        PREFECT_API_URL is not set, or no server answers there.
    """
    url = PREFECT_API_URL.value()
    if url is None:
        raise UsageError("PREFECT_API_URL is not set, expected that of a Prefect server: `prefect server start` starts one and says its URL")
    with get_client(sync_client=True) as client:
        error = client.api_healthcheck()
    if error is not None:
        raise UsageError(f"PREFECT_API_URL is {url}, no Prefect server answers there: {' '.join(str(error).split())}")


@app.default
def serve(
    model: Place,
    data: Place,
    *,
    out: Place,
    options: Flags = DEFAULTS,
    cron: str,
    time_zone: Annotated[str, Parameter(name="--time-zone")] = "UTC",
    name: str = "nightly",
    against: str | None = None,
    thresholds: str | None = None,
    report: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Deploy the flow with a schedule and run it when it is due, until stopped.

    Parameters
    ----------
    model
        As for leafledger explain; {date} is filled in, here as in data and --out, with the date for which a run is scheduled.
    data
        As for leafledger explain.
    out
        As for leafledger explain.
    options
        What else a run can be told; every one is a flag of its own.
    cron
        When to run, as minute, hour, day of month, month and day of week.
    time_zone
        Of the schedule and of {date}, as in Europe/Berlin.
    name
        Of the deployment.
    against
        Say what changed since this run, or the one that this JSON object names, which can be that of --latest; {date} is filled in.
    thresholds
        TOML or JSON file that says what counts as drift, as for leafledger drift.
    report
        Write a page about every run, report/index.html, as leafledger report does.

    Raises
    ------
    UsageError
        An argument cannot be used, or there is no server that runs schedules.
    """
    schedule = make_schedule(cron, time_zone)
    today = options.date or Date.today()
    make_job(model, data, out, replace(options, date=today))  # a mistake is refused now, not tonight
    if against is not None:
        normalise(fill_date(against, today))
    read_thresholds(thresholds)
    check_server()
    arguments = {"model": model, "data": data, "out": out} | {field.name: getattr(options, field.name) for field in fields(options)}
    arguments |= {"against": against, "thresholds": thresholds, "report": report}
    for place in ("model", "data", "out", "latest", "partition", "reasons", "background", "tables", "against", "thresholds"):
        if arguments[place] is not None and (place, arguments[place]) != ("background", MODEL):
            arguments[place] = normalise(arguments[place])
    explain.serve(
        name=name,
        schedules=[schedule],
        parameters=arguments,
        limit=1,
        pause_on_shutdown=False,  # or a restart of the machine would end the nights silently
        entrypoint_type=EntrypointType.MODULE_PATH,  # found wherever the package is installed, whatever the working directory
    )


if __name__ == "__main__":
    sys.exit(main(command=app))
