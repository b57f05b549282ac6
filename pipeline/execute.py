"""Work items mapped to parts: serially, which is the specification, or on Dask, which gives the same bits."""

from collections.abc import Iterator, Sequence

from .config import SERIAL, Job
from .part import Part, make_part, warm
from .plan import WorkItem


def run_serial(run: str, plan_digest: str, tables: str, items: Sequence[WorkItem]) -> Iterator[Part]:
    """Every item in turn, in this process."""
    for item in items:
        yield make_part(run, plan_digest, tables, item)


def execute(job: Job, plan_digest: str, tables: str, items: Sequence[WorkItem], memory: int) -> Iterator[Part]:
    """Parts in the order in which they are done, where the job wants them made; a worker needs ``memory`` bytes."""
    if job.scheduler == SERIAL or not items:
        yield from run_serial(job.out, plan_digest, tables, items)
        return
    from . import cluster  # Dask takes a second to import, which planning and serial runs need not wait for

    if job.scheduler is None:
        warm(tables, job.method)  # fills this machine's cache of compiled kernels before its workers start
        with cluster.local_client(job, len(items)) as client:
            yield from cluster.run_dask(client, job.out, plan_digest, tables, items)
        return
    with cluster.remote_client(job.scheduler, memory) as client:
        cluster.warm_hosts(client, tables, job.method)
        yield from cluster.run_dask(client, job.out, plan_digest, tables, items)
