"""Execution of work items: serially, which defines the results, or on Dask, with the same bits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from ...dataset.files.listing import WorkItem
from ...errors import InvalidRun
from ...methods.background_counts import BackgroundCounts, merge_in_tree
from ..job.job import Job
from . import count_background as count_background_
from . import make_part as part
from .bundles import BundleResult, Task, choose_level, do_bundle, make_bundles
from .count_background import count_item, first_rows

W = TypeVar("W")  # one or several work items


def run_serial(task: Task, items: Sequence[WorkItem], earlier: Mapping[int, tuple[str, WorkItem]]) -> Iterator[BundleResult]:
    """Make the part of every item in turn, in this process."""
    for bundle in make_bundles(items, earlier, 0):
        yield do_bundle(task, bundle)


def count_serial(run: str, recipe: str, query: str, items: Sequence[WorkItem], on_done: Callable[[WorkItem], None]) -> BackgroundCounts:
    """Count every item of a background in turn, in this process."""

    def counted() -> Iterator[BackgroundCounts]:
        for item, first_row in zip(items, first_rows(items), strict=True):
            yield count_item(run, recipe, query, item, first_row)
            on_done(item)

    return merge_in_tree(counted())


def _own(task: Task, done: BundleResult) -> BundleResult:
    """Check that a result is of this run: a scheduler returns the old result of a known key."""
    if done.recipe not in (task.recipe, None):
        raise InvalidRun(f"{task.run}: the cluster has the results of another run, got {done.recipe[:12]}, expected {task.recipe[:12]}; run again")
    return done


def execute(job: Job, task: Task, items: Sequence[WorkItem], earlier: Mapping[int, tuple[str, WorkItem]], memory: int) -> Iterator[BundleResult]:
    """Make the parts of all items at the job's placement.

    Parameters
    ----------
    items : sequence of WorkItem
        Ascending by their parts. Where there are none, no cluster is started.
    earlier : mapping of int to (str, WorkItem)
        See `reuse.find_earlier`.
    memory : int
        Bytes that a worker needs.

    Yields
    ------
    BundleResult
        In the order in which they are done.

    Raises
    ------
    ClusterLost
        No scheduler answers, or it has no workers any more.
    """
    if job.placement.is_serial or not items:
        yield from run_serial(task, items, earlier)
        return
    from ...cluster import start_client as cluster
    from . import dask as dask_

    bundles = make_bundles(items, earlier, choose_level(items))
    with cluster.warm_client(job.placement, len(bundles), memory, part.warm, task.tables, job.options.method) as client:
        yield from map(partial(_own, task), dask_.run_dask(client, task, bundles, memory))


def count(job: Job, recipe: str, query: str, items: Sequence[WorkItem], memory: int, on_done: Callable[[WorkItem], None]) -> BackgroundCounts:
    """Count all items of a background at the job's placement; the bits do not depend on it.

    Parameters
    ----------
    recipe : str
        SHA-256 of the recipe that was broadcast, hexadecimal.
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
    BackgroundCounts
        Of all items.

    Raises
    ------
    ClusterLost
        No scheduler answers, it has no workers any more, or every worker that an item was given to died.
    """
    if job.placement.is_serial:
        return count_serial(job.out, recipe, query, items, on_done)
    from ...cluster import start_client as cluster
    from . import dask as dask_

    with cluster.warm_client(job.placement, len(items), memory, count_background_.warm, query) as client:
        return dask_.count_dask(client, job.out, recipe, query, items, memory, on_done)
