"""Dask tasks that make parts or count a background, with isolation of items that kill workers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import distributed

from leafledger.kernels.reductions.merge_tree import FAN_IN

from ...cluster.requirements import do_checked, need, pack
from ...cluster.waiting import as_completed, cancel, fetch_result, reported
from ...dataset.files.listing import WorkItem
from ...errors import ClusterLost, WorkersDied
from ...methods.background_counts import BackgroundCounts, merge_counts
from .bundles import Bundle, BundleResult, Task, do_bundle, name_run, try_files
from .count_background import count_item, first_rows
from .poison_items import retry_isolated

TOGETHER = 100  # results fetched at once
NO_RESOURCES: Mapping[str, Any] = {}  # of a worker's, that a task takes besides memory
Submit = Callable[..., distributed.Future]


def run_dask(
    client: distributed.Client, task: Task, bundles: Sequence[Bundle], memory: int, resources: Mapping[str, Any] = NO_RESOURCES
) -> Iterator[BundleResult]:
    """Make the parts of all bundles, one task each, with the ``resources`` that each takes; the first failure cancels the rest.

    Dask blames every task of a dead worker. So items whose workers died are suspects: after all others they are retried one at a time, with no other
    task of the run on any worker. An item whose workers die again is rejected; of several files in it, only those that kill workers.
    """
    suspects, name = list[Bundle](), name_run(task.run, task.recipe, task.tables)

    def run(work: Callable[[Task, Bundle], Any], some: Sequence[Bundle], key: str, died: Callable[[Bundle], None]) -> Iterator[Any]:
        submit = partial(client.submit, do_checked, need(memory), work, task, pure=False, **resources)
        return _run_tasks(client, submit, some, f"{key}-{name}", died)

    yield from run(do_bundle, bundles, "part", suspects.append)
    for suspect in chain.from_iterable(bundle.split() for bundle in suspects):
        yield from retry_isolated(partial(run, do_bundle), partial(run, try_files), suspect)


def _gather(client: distributed.Client, done: Sequence[distributed.Future]) -> dict[str, Any]:
    """Fetch the results of tasks at once, by key; return nothing if any of them raised."""
    try:
        return fetch_result(client, {future.key: future for future in done if future.status == "finished"})
    except ClusterLost:
        raise
    except Exception:  # the failed one raises when fetched alone
        return {}


def _run_tasks(client: distributed.Client, submit: Submit, bundles: Sequence[Bundle], key: str, died: Callable[[Bundle], None]) -> Iterator[Any]:
    """Do every bundle in a task, and yield the results; call ``died`` with bundles whose workers died."""
    waiting = {submit(pack(bundle), key=f"{key}-{bundle.name}"): bundle for bundle in bundles}
    left = sum(len(bundle.items) for bundle in bundles)
    try:
        for ready in as_completed(client, list(waiting), TOGETHER):
            made = _gather(client, ready)
            for future in ready:
                bundle = waiting.pop(future)
                try:
                    with reported(str(bundle.items[0]), left):
                        done = made[future.key] if future.key in made else fetch_result(client, future)
                except WorkersDied:
                    died(bundle)
                else:
                    yield done
                left -= len(bundle.items)
    finally:
        cancel(client, list(waiting))


def count_dask(
    client: distributed.Client,
    run: str,
    recipe: str,
    query: str,
    items: Sequence[WorkItem],
    memory: int,
    on_done: Callable[[WorkItem], None],
) -> BackgroundCounts:
    """Count every item in a task, and merge the counts FAN_IN at a time on the workers: no process holds all of them.

    Counts are merged by position, so that the bits do not depend on workers. The first failure cancels the rest.
    """
    name, submit = name_run(run, recipe, query), partial(client.submit, do_checked, need(memory), count_item, run, recipe, query, pure=False)
    numbered = zip(items, first_rows(items), strict=True)
    waiting = {submit(pack(item), first_row, key=f"count-{item.part}-{name}"): item for item, first_row in numbered}
    level, left = 0, list(waiting)
    while len(left) > 1:  # merges of higher levels first, which frees memory
        level += 1
        left = [
            client.submit(merge_counts, *left[i : i + FAN_IN], key=f"merge-{level}-{i}-{name}", pure=False, priority=level)
            for i in range(0, len(left), FAN_IN)
        ]
    total = left.pop()
    try:
        for (future,) in as_completed(client, [*waiting, total]):
            item = waiting.pop(future, None)  # drop the reference, so that only the merge holds the counts
            if future.status != "finished":
                with reported("the background's counts" if item is None else str(item), len(waiting) + 1):
                    fetch_result(client, future)
            if item is not None:
                on_done(item)
        with reported("the background's counts", 1):
            return fetch_result(client, total)
    finally:
        cancel(client, [*waiting, total])
