"""``python -m leafledger.flows.serve``: runs the flow on a schedule from this process, without a work pool.

It takes the arguments of ``leafledger explain``. Stopped by SIGTERM or Ctrl-C, it leaves the schedule active: missed nights become late runs, which a
restart catches up on, one at a time and each under its own date. Only a run in progress is stopped too, and ends as crashed; the same deployment with
that run's ``date`` resumes from its published parts.
"""

import sys

from cyclopts import App

from leafledger.pipeline.command.cli import main
from leafledger.pipeline.command.terminal.flags import DEFAULTS, Flags, PathArgument
from leafledger.pipeline.extras import needing

from .night_flags import Nights

app = App(
    name="python -m leafledger.flows.serve",
    help="Explain every night's data at its time, from this process.",
    help_epilogue='Example: python -m leafledger.flows.serve model.json "flights/{date-1d}" --out "explained/{date-1d}" '
    '--cron "0 3 * * *" --time-zone Europe/Berlin',
    result_action="return_value",
)


@app.default
def serve(model: PathArgument, data: PathArgument, *, out: PathArgument, options: Flags = DEFAULTS, nights: Nights) -> None:
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
    nights
        When to run, and what follows; flags too.

    Raises
    ------
    UsageError
        An argument cannot be used, there is no server that runs schedules, or it refuses the deployment.
    """
    with needing("python -m leafledger.flows.serve", "prefect"):
        from prefect.client.schemas.actions import DeploymentScheduleCreate
        from prefect.deployments.runner import RunnerDeployment
        from prefect.types.entrypoint import EntrypointType
    from .deployment import answered, check_server, forget_schedules, make_deployment
    from .explain import explain

    deployment = make_deployment(model, data, out, options, nights)
    schedules = [DeploymentScheduleCreate(schedule=schedule, slug=slug) for slug, schedule in deployment.schedules.items()]
    found = EntrypointType.MODULE_PATH  # independent of the working directory
    with answered(check_server()):
        RunnerDeployment.from_flow(explain, deployment.name, schedules=schedules, parameters=deployment.parameters, entrypoint_type=found).apply()
        forget_schedules(f"{explain.name}/{deployment.name}", deployment)
    explain.serve(
        name=deployment.name,
        schedules=schedules,
        parameters=deployment.parameters,
        limit=1,
        pause_on_shutdown=False,  # otherwise a restart of the machine would stop the schedule silently
        entrypoint_type=found,
    )


if __name__ == "__main__":
    sys.exit(main(command=app))
