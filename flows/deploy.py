"""The command ``deploy``: the flow's Prefect deployment, as a file or made on the server."""

from typing import Annotated, Any

import yaml
from cyclopts import Parameter
from prefect import get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import DeploymentApplyError, RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.types.entrypoint import EntrypointType

from leafledger.pipeline.command.terminal.documents import write_document
from leafledger.pipeline.command.terminal.flags import DEFAULTS, Flags, Json, PathArgument
from leafledger.pipeline.command.terminal.terminal import open_console, say, write_raw
from leafledger.pipeline.errors import UsageError

from .deployment import Deployment, Nights, answered, check_name, check_server, forget_schedules, make_deployment
from .explain import explain

ENTRYPOINT = f"{explain.__module__}.{explain.fn.__name__}"
DESCRIPTION = "Explain the night's partition and publish attributions, summaries and a manifest; say what changed and write a report."
ONE_BY_ONE = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)  # a run that comes due meanwhile waits


def list_schedules(deployment: Deployment) -> list[dict[str, Any]]:
    """List the schedules of a deployment in the format of its file.

    Parameters
    ----------
    deployment : Deployment

    Returns
    -------
    list of dict
        Each with ``cron``, ``timezone`` and ``slug``.
    """
    return [{"cron": schedule.cron, "timezone": schedule.timezone, "slug": slug} for slug, schedule in deployment.schedules.items()]


def write_file(deployment: Deployment, pool: str) -> str:
    """Write the file for ``prefect deploy --prefect-file``.

    Parameters
    ----------
    deployment : Deployment
    pool : str
        Name of the work pool.

    Returns
    -------
    str
        YAML.

    Raises
    ------
    UsageError
        Something holds what Prefect takes for a template.
    """
    described = {
        "name": deployment.name,
        "description": DESCRIPTION,
        "entrypoint": ENTRYPOINT,
        "pull": [],  # the code is the installed package
        "work_pool": {"name": pool},
        "schedules": list_schedules(deployment),
        "concurrency_limit": {"limit": ONE_BY_ONE.limit, "collision_strategy": ONE_BY_ONE.collision_strategy.value},
        "parameters": deployment.parameters,
    }
    written = yaml.safe_dump({"deployments": [described]}, sort_keys=False, allow_unicode=True, width=float("inf"))
    if "{{" in written:
        line = next(line for line in written.splitlines() if "{{" in line)
        raise UsageError(f"{line.strip()}: has {{{{, which Prefect would fill in as a template; expected a file without, or --apply")
    return written


def apply_deployment(deployment: Deployment, pool: str) -> str:
    """Create or replace a deployment on the server.

    Parameters
    ----------
    deployment : Deployment
    pool : str
        Name of the work pool.

    Returns
    -------
    str
        Its id.

    Raises
    ------
    UsageError
        No server answers, it has no such work pool, or it refuses the deployment. What was deployed before stays as it was.
    """
    url = check_server()
    made = RunnerDeployment.from_flow(
        explain,
        deployment.name,
        description=DESCRIPTION,
        parameters=deployment.parameters,
        concurrency_limit=ONE_BY_ONE,
        work_pool_name=pool,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    schedules = [{"schedule": schedule, "slug": slug} for slug, schedule in deployment.schedules.items()]
    with answered(url):
        with get_client(sync_client=True) as client:
            try:
                client.read_work_pool(pool)
            except ObjectNotFound:
                made_by = f"`prefect work-pool create {pool} --type process` makes one"
                raise UsageError(f"--pool is {pool!r}, which {url} does not have; {made_by}") from None
        try:
            number = str(made.apply(schedules=schedules))
        except DeploymentApplyError as error:
            raise UsageError(f"{url}: refuses the deployment: {' '.join(str(error).split())}") from error
        forget_schedules(f"{explain.name}/{deployment.name}", deployment)
    return number


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
    check_name("pool", pool)
    deployment = make_deployment(model, data, out, options, nights)
    name = f"{explain.name}/{deployment.name}"
    made = apply_deployment(deployment, pool) if apply else None
    if json:
        schedules = list_schedules(deployment)
        document = {"deployment": name, "entrypoint": ENTRYPOINT, "pool": pool, "schedules": schedules, "parameters": deployment.parameters}
        write_document(document | {"id": made})
    elif made is None:
        write_raw(write_file(deployment, pool))
    else:
        say(open_console(), f"{name}: deployed to {pool}, {made}")
