"""The command ``deploy``: the flow's Prefect deployment, as a file or made on the server."""

from typing import Annotated

from cyclopts import Parameter

from leafledger.pipeline.command.terminal.documents import write_document
from leafledger.pipeline.command.terminal.flags import DEFAULTS, Flags, Json, PathArgument
from leafledger.pipeline.command.terminal.terminal import open_console, say, write_raw
from leafledger.pipeline.extras import needing

from .night_flags import Nights


def deploy(
    model: PathArgument,
    data: PathArgument,
    *,
    out: PathArgument,
    options: Flags = DEFAULTS,
    nights: Nights,
    pool: str = "leafledger",
    apply: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> None:
    """Write the Prefect deployment that explains every night's data, for prefect deploy; or make it on the server.

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
    pool
        Name of the work pool whose workers run it, on machines where leafledger is installed.
    apply
        Make the deployment on the server of PREFECT_API_URL, or make it anew, instead of writing the file.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    with needing("deploy", "prefect"):
        import prefect  # noqa: F401 - whether it is there
    from .deployment import check_name, make_deployment
    from .work_pool import ENTRYPOINT, FLOW, apply_deployment, list_schedules, write_file

    check_name("pool", pool)
    deployment = make_deployment(model, data, out, options, nights)
    name = f"{FLOW}/{deployment.name}"
    made = apply_deployment(deployment, pool) if apply else None
    if json:
        schedules = list_schedules(deployment)
        document = {"deployment": name, "entrypoint": ENTRYPOINT, "pool": pool, "schedules": schedules, "parameters": deployment.parameters}
        write_document(document | {"id": made})
    elif made is None:
        write_raw(write_file(deployment, pool))
    else:
        say(open_console(), f"{name}: deployed to {pool}, {made}")
