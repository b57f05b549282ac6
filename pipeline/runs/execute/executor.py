"""Execution of work items: on one thread, which defines the results, or on several, or on Dask, with the same bits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...cluster.card import task_resources
from ...cluster.child_process import ChildProcess
from ...cluster.threads import Threads
from ...dataset.files.listing import WorkItem
from ...errors import InvalidRun, WorkersDied
from ...methods.background_counts import BackgroundCounts, merge_in_tree
from ...stores import storage
from ..job.job import Job
from ..records.plan_file import open_recipe
from . import count_background as count_background_
from . import make_part as part
from .bundles import Bundle, BundleResult, Task, choose_level, do_bundle, make_bundles, try_files
from .count_background import count_item, first_rows
from .interrupted import find_suspects, forget, recorded
from .poison_items import retry_isolated
from .reuse import find_staying


def _do_here(task: Task, bundles: Sequence[Bundle], n_threads: int, method: str) -> Iterator[BundleResult]:
    """Do bundles on threads of this process, in turn on one."""
    threads = Threads(n_threads, far=any(storage.local_path(uri) is None for uri in (task.run, *(bundle.items[0].uri for bundle in bundles[:1]))))
    if n_threads > 1 and bundles:  # one thread loads for all
        open_recipe(task.run, task.recipe)
        part.warm(task.tables, method)
    yield from (done for _, done in threads.map(partial(do_bundle, task, in_order=threads.in_order), bundles))


def _do_apart(child: ChildProcess, task: Task, work: Callable[..., Any], bundles: Sequence[Bundle], _: str, died: Callable[[Bundle], None]) -> Any:
    """Do bundles in a child process, see `poison_items.Tasks`."""
    for bundle in bundles:
        try:
            yield child.call(work, task, bundle)
        except WorkersDied:
            died(bundle)


def run_here(
    task: Task, items: Sequence[WorkItem], earlier: Mapping[int, tuple[str, WorkItem]], n_threads: int, method: str
) -> Iterator[BundleResult]:
    """Make the part of every item in this process.

    An item that kills the process cannot be rejected by it. So the next attempt does what was being explained then last, one at a time, in a child
    process, whose death it survives.
    """
    staying = find_staying(task.run, earlier, items)  # of which no part is made, though nothing went wrong with them
    suspects, bundles = find_suspects(task.run, [item for item in items if item.part not in staying]), make_bundles(items, earlier, 0)
    with recorded(task.run, n_threads), ChildProcess() as child:
        yield from _do_here(task, [bundle for bundle in bundles if bundle.place not in suspects], n_threads, method)
        do, attempt = (partial(_do_apart, child, task, work) for work in (do_bundle, try_files))
        for bundle in bundles:
            if bundle.place in suspects:
                yield from retry_isolated(do, attempt, bundle)


def count_here(run: str, recipe: str, query: str, items: Sequence[WorkItem], n_threads: int, on_done: Callable[[WorkItem], None]) -> BackgroundCounts:
    """Count every item of a background in this process."""
    threads, numbered = Threads(n_threads), list(zip(items, first_rows(items), strict=True))
    if n_threads > 1:
        open_recipe(run, recipe)
        count_background_.warm(query)

    def counted() -> Iterator[tuple[int, BackgroundCounts]]:
        work = partial(count_item, run, recipe, query, in_order=threads.in_order)
        for (item, _), counts in threads.map(lambda each: work(*each), numbered):
            yield item.part, counts
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
    if job.placement.is_here or not items:
        yield from run_here(task, items, earlier, job.placement.threads, job.options.method)
        return
    from ...cluster import start_client as cluster
    from . import dask as dask_

    bundles = make_bundles(items, earlier, choose_level(items))
    with cluster.warm_client(job.placement, len(bundles), memory, part.warm, task.tables, job.options.method) as client:
        yield from map(
            partial(_own, task),
            dask_.run_dask(client, task, bundles, memory, {} if job.placement.on_this_machine else task_resources(job.options.device)),
        )
    forget(task.run)


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
    if job.placement.is_here:
        return count_here(job.out, recipe, query, items, job.placement.threads, on_done)
    from ...cluster import start_client as cluster
    from . import dask as dask_

    with cluster.warm_client(job.placement, len(items), memory, count_background_.warm, query) as client:
        return dask_.count_dask(client, job.out, recipe, query, items, memory, on_done)
