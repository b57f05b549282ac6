"""Deployment to a work pool: as a file for ``prefect deploy``, or on the server."""

from typing import Any

import yaml
from prefect import get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import DeploymentApplyError, RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.types.entrypoint import EntrypointType

from leafledger.pipeline.errors import UsageError

from .deployment import Deployment, answered, check_server, forget_schedules
from .explain import explain

FLOW = explain.name
ENTRYPOINT = f"{explain.__module__}.{explain.fn.__name__}"
DESCRIPTION = "Explain the night's partition and publish attributions, summaries and a manifest; say what changed and write a report."
ONE_BY_ONE = ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.ENQUEUE)  # a night that comes due meanwhile waits


def list_schedules(deployment: Deployment) -> list[dict[str, Any]]:
    """List the schedules of a deployment as its file has them.

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
    """Write the file that ``prefect deploy --prefect-file`` takes.

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
        "pull": [],  # the installed package is the code
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
    """Make a deployment on the server, or make it anew where there is one of its name.

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
        forget_schedules(f"{FLOW}/{deployment.name}", deployment)
    return number
