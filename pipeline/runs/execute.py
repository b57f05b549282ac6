"""Work items done: serially, which is the specification, or on Dask, which gives the same bits."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kernels.method import BackgroundStatistics

from ..dataset.listing import Rejected, WorkItem
from . import background, part
from .background import count_item, merge_evenly
from .job import SERIAL, Job
from .part import Part, try_part

Work = Callable[[Any, WorkItem], Any]


def run_serial(run: str, plan_digest: str, tables: str, items: Sequence[WorkItem]) -> Iterator[Part | Rejected]:
    """Every item in turn, in this process."""
    for item in items:
        yield try_part(run, plan_digest, tables, item)


def count_serial(run: str, plan_digest: str, query: str, items: Sequence[WorkItem], on_done: Callable[[WorkItem], None]) -> BackgroundStatistics:
    """Every item of a background in turn, in this process."""

    def counted() -> Iterator[BackgroundStatistics]:
        for item in items:
            yield count_item(run, plan_digest, query, item)
            on_done(item)

    return merge_evenly(counted())


def execute(job: Job, plan_digest: str, tables: str, items: Sequence[WorkItem], memory: int) -> Iterator[Part | Rejected]:
    """Parts, and items that are rejected, in the order in which they are done, where the job wants them made; a worker needs ``memory`` bytes."""
    if job.options.scheduler == SERIAL or not items:
        yield from run_serial(job.out, plan_digest, tables, items)
        return
    from . import cluster

    with cluster.warm_client(job, len(items), memory, part.warm, tables, job.options.method) as client:
        yield from cluster.run_dask(client, job.out, plan_digest, tables, items)


def map_items(job: Job, work: Work, warm: Callable[[Any], None], task: Any, items: Sequence[WorkItem], memory: int) -> Iterator[tuple[WorkItem, Any]]:
    """What ``work(task, item)`` makes of every item, in the order in which they are done, where the job wants it; ``task`` is a small record, and
    ``warm(task)`` compiles what it calls."""
    if job.options.scheduler == SERIAL or not items:
        yield from ((item, work(task, item)) for item in items)
        return
    from . import cluster

    with cluster.warm_client(job, len(items), memory, warm, task) as client:
        yield from cluster.map_dask(client, work, task, items)


def count(
    job: Job, plan_digest: str, query: str, items: Sequence[WorkItem], memory: int, on_done: Callable[[WorkItem], None]
) -> BackgroundStatistics:
    """A background's items counted and added up, where the job wants it done; ``on_done`` is called with every item as it is done."""
    if job.options.scheduler == SERIAL:
        return count_serial(job.out, plan_digest, query, items, on_done)
    from . import cluster

    with cluster.warm_client(job, len(items), memory, background.warm, query) as client:
        return cluster.count_dask(client, job.out, plan_digest, query, items, on_done)
