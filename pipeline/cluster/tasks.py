"""One Dask task for every item."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import distributed

from .requirements import do_checked, need, pack
from .waiting import as_completed, cancel, fetch_result, reported

W = TypeVar("W")  # one or several work items


def map_dask(client: distributed.Client, work: Callable[[Any, W], Any], task: Any, items: Sequence[W], memory: int) -> Iterator[tuple[W, Any]]:
    """Map a task over items, in a Dask task each. The first failure cancels the rest.

    Parameters
    ----------
    work : callable
        ``work(task, item)``, a function of a module, which workers import by name.
    task : Any
        A small record that every item needs.
    memory : int
        Bytes that a task needs.

    Yields
    ------
    item : WorkItem or PartGroup
        In the order in which they are done.
    made : Any
        What ``work`` returned.

    Raises
    ------
    WorkersDied
        Every worker that an item was given to died.
    ClusterLost
        The scheduler went away, or had no workers for REPLACE_SECONDS.
    """
    submit = partial(client.submit, do_checked, need(memory), work, task, pure=False)
    waiting = {submit(pack(item)): item for item in items}
    try:
        for (future,) in as_completed(client, list(waiting)):
            item = waiting.pop(future)
            with reported(str(item), len(waiting) + 1):
                made = fetch_result(client, future)
            yield item, made
    finally:
        cancel(client, list(waiting))
