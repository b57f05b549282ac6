"""Parts made, and a background counted, in Dask tasks."""

from collections.abc import Callable, Iterator, Sequence
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

TOGETHER = 100  # parts that are asked for at once
Submit = Callable[..., distributed.Future]


def run_dask(client: distributed.Client, task: Task, bundles: Sequence[Bundle], memory: int) -> Iterator[BundleResult]:
    """Make the parts of every bundle, one task each; the first failure cancels the rest.

    A worker that dies takes with it all tasks that it was given, and Dask blames every one of them. So items whose workers died are suspects: they
    wait until all others are done, and are then tried one at a time, with no other task of the run on any worker. One that workers die of again is
    what kills them, and is rejected; of several files in one item, those alone that kill workers.
    """
    suspects, name = list[Bundle](), name_run(task.run, task.recipe, task.tables)

    def run(work: Callable[[Task, Bundle], Any], some: Sequence[Bundle], key: str, died: Callable[[Bundle], None]) -> Iterator[Any]:
        submit = partial(client.submit, do_checked, need(memory), work, task, pure=False)
        return _run_tasks(client, submit, some, f"{key}-{name}", died)

    yield from run(do_bundle, bundles, "part", suspects.append)
    for suspect in chain.from_iterable(bundle.split() for bundle in suspects):
        yield from retry_isolated(partial(run, do_bundle), partial(run, try_files), suspect)


def _gather(client: distributed.Client, done: Sequence[distributed.Future]) -> dict[str, Any]:
    """What tasks returned, by their keys, asked for at once: the client waits once for all of them. Nothing where one of them raises."""
    try:
        return fetch_result(client, {future.key: future for future in done if future.status == "finished"})
    except ClusterLost:
        raise
    except Exception:  # which one, it says itself when it is asked alone
        return {}


def _run_tasks(client: distributed.Client, submit: Submit, bundles: Sequence[Bundle], key: str, died: Callable[[Bundle], None]) -> Iterator[Any]:
    """Do every bundle, one task each, and yield what they return; call ``died`` with those whose workers died."""
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
    """Count every item in a task of its own and add the counts up FAN_IN at a time, where they are: neither the client nor a worker ever holds all.

    They are added by their places alone, so the bits do not depend on the workers. The first failure cancels the rest.
    """
    name, submit = name_run(run, recipe, query), partial(client.submit, do_checked, need(memory), count_item, run, recipe, query, pure=False)
    numbered = zip(items, first_rows(items), strict=True)
    waiting = {submit(pack(item), first_row, key=f"count-{item.part}-{name}"): item for item, first_row in numbered}
    level, left = 0, list(waiting)
    while len(left) > 1:  # what is farther up goes first, which makes room
        level += 1
        left = [
            client.submit(merge_counts, *left[i : i + FAN_IN], key=f"merge-{level}-{i}-{name}", pure=False, priority=level)
            for i in range(0, len(left), FAN_IN)
        ]
    total = left.pop()
    try:
        for (future,) in as_completed(client, [*waiting, total]):
            item = waiting.pop(future, None)  # nothing but the sum that it is a part of holds on to its counts from here
            if future.status != "finished":
                with reported("the background's counts" if item is None else str(item), len(waiting) + 1):
                    fetch_result(client, future)
            if item is not None:
                on_done(item)
        with reported("the background's counts", 1):
            return fetch_result(client, total)
    finally:
        cancel(client, [*waiting, total])
