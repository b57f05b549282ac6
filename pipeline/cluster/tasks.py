"""Tasks."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import distributed

from ..dataset.files.listing import WorkItem
from ..runs.job.job import Job
from .placement import SERIAL
from .requirements import do_checked, need, pack
from .waiting import _reported, as_completed, cancel, fetch

W = TypeVar("W")  # a work item, or several


def _name(item: Any) -> str:
    return f"{item.uri}: row groups {list(item.row_groups)}" if isinstance(item, WorkItem) else str(item)


def map_dask(client: distributed.Client, work: Callable[[Any, W], Any], task: Any, items: Sequence[W], memory: int) -> Iterator[tuple[W, Any]]:
    """Do every item in a Dask task of its own. The first failure cancels the rest.

    Parameters
    ----------
    client : distributed.Client
    work : callable
        ``work(task, item)``, a function of a module, which workers import by name.
    task : Any
        A small record that every item needs.
    items : sequence of WorkItem or Several
    memory : int
        Bytes that a task needs.

    Yields
    ------
    item : WorkItem or Several
        In the order in which they are done.
    made : Any
        What ``work`` returned.

    Raises
    ------
    WorkersDied
        Every worker that an item was given to died.
    ClusterLost
        The scheduler went away, or had no workers for REPLACE_SECONDS.
    LeafledgerError
        Whatever ``work`` raises.
    """
    submit = partial(client.submit, do_checked, need(memory), work, task, pure=False)
    waiting = {submit(pack(item)): item for item in items}
    try:
        for (future,) in as_completed(client, list(waiting)):
            item = waiting.pop(future)
            with _reported(_name(item), len(waiting) + 1):
                made = fetch(client, future)
            yield item, made
    finally:
        cancel(client, list(waiting))


def map_items(
    job: Job, work: Callable[[Any, W], Any], warm: Callable[[Any], None], task: Any, items: Sequence[W], memory: int
) -> Iterator[tuple[W, Any]]:
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
    items : sequence of WorkItem or Several
        Where there are none, no cluster is started.
    memory : int
        Bytes that a worker needs.

    Yields
    ------
    item : WorkItem or Several
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
    from . import client as cluster
    from . import tasks as tasks_

    with cluster.warm_client(job, len(items), memory, warm, task) as client:
        yield from tasks_.map_dask(client, work, task, items, memory)
