"""Work items done: serially, which is the specification, or on Dask, which gives the same bits."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kernels.method import BackgroundStatistics

from ..dataset.listing import Rejected, WorkItem
from . import background, part
from .background import count_item, merge_evenly
from .job import SERIAL, Job
from .part import Part
from .reuse import do_item

Work = Callable[[Any, WorkItem], Any]


def run_serial(run: str, plan_digest: str, tables: str, items: Sequence[WorkItem]) -> Iterator[Part | Rejected]:
    """Make the part of every item in turn, in this process.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    tables : str
        URI of the method's prepared tables.
    items : sequence of WorkItem

    Yields
    ------
    Part or Rejected
        In the order of the items.

    Raises
    ------
    LeafledgerError
        A part cannot be made for another reason than its data.
    """
    for item in items:
        yield do_item(run, plan_digest, tables, item)


def count_serial(run: str, plan_digest: str, query: str, items: Sequence[WorkItem], on_done: Callable[[WorkItem], None]) -> BackgroundStatistics:
    """Count every item of a background in turn, in this process.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    query : str
        URI of the broadcast BackgroundQuery.
    items : sequence of WorkItem
        At least one.
    on_done : callable
        Called with every item as it is counted.

    Returns
    -------
    BackgroundStatistics
        Of all items.

    Raises
    ------
    LeafledgerError
        An item cannot be counted.
    """

    def counted() -> Iterator[BackgroundStatistics]:
        for item in items:
            yield count_item(run, plan_digest, query, item)
            on_done(item)

    return merge_evenly(counted())


def execute(job: Job, plan_digest: str, tables: str, items: Sequence[WorkItem], memory: int) -> Iterator[Part | Rejected]:
    """Make the parts of all items, where the job wants them made.

    Parameters
    ----------
    job : Job
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    tables : str
        URI of the method's prepared tables.
    items : sequence of WorkItem
        Where there are none, no cluster is started.
    memory : int
        Bytes that a worker needs.

    Yields
    ------
    Part or Rejected
        In the order in which they are done.

    Raises
    ------
    ClusterLost
        No scheduler answers, or it has no workers any more.
    LeafledgerError
        Whatever else a part cannot be made for.
    """
    if job.options.scheduler == SERIAL or not items:
        yield from run_serial(job.out, plan_digest, tables, items)
        return
    from . import cluster

    with cluster.warm_client(job, len(items), memory, part.warm, tables, job.options.method) as client:
        yield from cluster.run_dask(client, job.out, plan_digest, tables, items, memory)


def map_items(job: Job, work: Work, warm: Callable[[Any], None], task: Any, items: Sequence[WorkItem], memory: int) -> Iterator[tuple[WorkItem, Any]]:
    """Do something with every item, where the job wants it done.

    Parameters
    ----------
    job : Job
    work : callable
        ``work(task, item)``, a function of a module.
    warm : callable
        ``warm(task)`` compiles what ``work`` calls; not called where items are done in this process.
    task : Any
        A small record that every item needs.
    items : sequence of WorkItem
        Where there are none, no cluster is started.
    memory : int
        Bytes that a worker needs.

    Yields
    ------
    item : WorkItem
        In the order in which they are done.
    made : Any
        What ``work`` returned.

    Raises
    ------
    ClusterLost
        No scheduler answers, it has no workers any more, or every worker that an item was given to died.
    LeafledgerError
        Whatever ``work`` raises.
    """
    if job.options.scheduler == SERIAL or not items:
        yield from ((item, work(task, item)) for item in items)
        return
    from . import cluster

    with cluster.warm_client(job, len(items), memory, warm, task) as client:
        yield from cluster.map_dask(client, work, task, items, memory)


def count(
    job: Job, plan_digest: str, query: str, items: Sequence[WorkItem], memory: int, on_done: Callable[[WorkItem], None]
) -> BackgroundStatistics:
    """Count a background's items and add them up, where the job wants it done. The bits do not depend on where.

    Parameters
    ----------
    job : Job
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    query : str
        URI of the broadcast BackgroundQuery.
    items : sequence of WorkItem
        At least one.
    memory : int
        Bytes that a worker needs.
    on_done : callable
        Called with every item as it is counted.

    Returns
    -------
    BackgroundStatistics
        Of all items.

    Raises
    ------
    ClusterLost
        No scheduler answers, it has no workers any more, or every worker that an item was given to died.
    LeafledgerError
        Whatever else an item cannot be counted for.
    """
    if job.options.scheduler == SERIAL:
        return count_serial(job.out, plan_digest, query, items, on_done)
    from . import cluster

    with cluster.warm_client(job, len(items), memory, background.warm, query) as client:
        return cluster.count_dask(client, job.out, plan_digest, query, items, memory, on_done)
