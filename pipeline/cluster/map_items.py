"""Mapping of a task over items, on threads of this process or on a cluster; imports Dask only for the latter."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from .placement import Placement
from .threads import Threads

W = TypeVar("W")  # one or several work items


def map_items(
    placement: Placement, work: Callable[[Any, W], Any], warm: Callable[[Any], None], task: Any, items: Sequence[W], memory: int
) -> Iterator[tuple[W, Any]]:
    """Map a task over all items at the given placement.

    Parameters
    ----------
    work : callable
        ``work(task, item)``, a function of a module.
    warm : callable
        ``warm(task)`` compiles what ``work`` calls; not called where one thread does all items.
    task : Any
        A small record that every item needs.
    items : sequence of WorkItem or PartGroup
        Where there are none, no cluster is started.
    memory : int
        Bytes that a worker needs.

    Yields
    ------
    item : WorkItem or PartGroup
        In the order in which they are done.
    made : Any
        What ``work`` returned.

    Raises
    ------
    ClusterLost
        No scheduler answers, it has no workers any more, or every worker that an item was given to died.
    """
    if placement.is_here:
        n_threads = max(1, min(placement.with_room(memory).threads, len(items)))
        if n_threads > 1:
            warm(task)
        yield from Threads(n_threads).map(partial(work, task), items)
        return
    if not items:
        return
    from .start_client import warm_client
    from .tasks import map_dask

    with warm_client(placement, len(items), memory, warm, task) as client:
        yield from map_dask(client, work, task, items, memory)
