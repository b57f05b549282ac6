"""Work items on Dask: a local cluster of one process per core, or one that is there already."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import dask
import distributed
from distributed.comm import CommClosedError
from distributed.exceptions import WorkerStartTimeoutError
from distributed.scheduler import KilledWorker

from kernels.merge_tree import FAN_IN

from ..dataset.listing import WorkItem
from ..errors import ClusterLost, UnfitCluster, UsageError, WorkersDied
from .background import Counted, count_item, first_rows, merge_counts
from .bundles import Bundle, Done, Task, do_bundle, name_run, try_files
from .certificates import check_expiry
from .job import Job
from .patience import answering, as_completed, cancel, fetch, find_workers
from .suspects import try_alone
from .workers import GUARD, Needs, check_script, check_workers, do_checked, need, pack, warm_late

# Dask's cluster ends a worker for good where none of its name is there so long after one was lost: also one that a busy machine is still starting,
# and with it the healthy task that it was given.
KEEP_WORKERS = {"distributed.deploy.lost-worker-timeout": "365 days"}
CLOSE_SECONDS = 5  # that a scheduler has to let a client go; a frozen one never does
TOGETHER = 100  # parts that are asked for at once
W = TypeVar("W")  # a work item, or several
Submit = Callable[..., distributed.Future]
SILENT = logging.CRITICAL  # what a worker has to say reaches the user as an exception


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Keep Dask's log of its own cluster from handlers that are not Dask's, such as Prefect's."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(SILENT)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def local_client(job: Job, n_items: int) -> Iterator[distributed.Client]:
    """Start one process per core of this machine, and stop them at the end.

    They listen on the loopback address only, and ask for a certificate made for this cluster: all users of the machine could run code as this one.

    Parameters
    ----------
    job : Job
        Its ``workers`` are started, each with ``worker_memory`` bytes.
    n_items : int
        Tasks there will be; no more processes are started than that.

    Yields
    ------
    distributed.Client

    Raises
    ------
    UnfitCluster
        The workers do not start.
    UsageError
        This process is itself a worker that is starting, and imports a script that calls this; or the script is no file that workers can import.
    """
    check_script()
    try:
        cluster = distributed.LocalCluster(
            n_workers=max(1, min(job.workers, n_items)),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=True,
            dashboard_address="127.0.0.1:0",  # None would take port 8787 all the same
            memory_limit=job.worker_memory,
            silence_logs=SILENT,
        )
    except RuntimeError as error:
        raise UnfitCluster(f"the local cluster's workers do not start ({error}); {GUARD}, since every worker imports it") from error
    with _silenced(), dask.config.set(KEEP_WORKERS), cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextlib.contextmanager
def remote_client(address: str, needs: Needs, wait: float) -> Iterator[distributed.Client]:
    """Connect to a scheduler that is there already, and has workers like this process.

    Parameters
    ----------
    address : str
        Of the Dask scheduler, as ``tls://host:port``.
    needs : Needs
        What its workers must have.
    wait : float
        Seconds that a scheduler may take to answer, and as many again to have a worker. A cluster that starts workers as there is work is given some.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ClusterLost
        No scheduler answers, or it has no workers, for so long; or it goes away meanwhile.
    UnfitCluster
        A worker has less memory, another Python or other packages than this process, or the certificate for TLS expired.
    UsageError
        There is no certificate for TLS.
    """
    certificate = dask.config.get("distributed.comm.tls.client.cert", None)
    if address.startswith("tls://") and certificate:
        check_expiry(certificate)
    try:
        client = distributed.Client(address, timeout=wait, set_as_default=False)  # what else the process computes with Dask stays where it was
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterLost(f"{address}: no Dask scheduler answers there: {' '.join(str(error).split())}") from error
    except TypeError as error:  # Dask's word for it
        raise UsageError(f"{address}: Dask has no certificate for TLS; its configuration names one in distributed.comm.tls") from error
    try:
        _wait_for_worker(client, address, wait)
        check_workers(client, needs)
        yield client
    finally:
        with contextlib.suppress(TimeoutError):  # a frozen scheduler does not take leave
            client.close(timeout=CLOSE_SECONDS)


def _wait_for_worker(client: distributed.Client, address: str, wait: float) -> None:
    """Which may just have been lost, or not have been there yet."""
    within = f"expected at least one within {wait:g} seconds"
    with answering():
        work = client.submit(int, pure=False)  # for which workers are started, where they are started for work
        try:
            client.sync(client.wait_for_workers, 1, timeout=wait, callback_timeout=2 * wait)
        except WorkerStartTimeoutError as error:
            many = f"{address}: the Dask scheduler has no workers, {within}"
            raise ClusterLost(f"{many}; see why none starts, such as a quota, or --wait longer") from error
        except TimeoutError as error:
            raise ClusterLost(f"{address}: the Dask scheduler does not answer when it is asked for workers, {within}") from error
        del work


@contextlib.contextmanager
def warm_client(job: Job, n_items: int, memory: int, warm: Callable[..., None], *arguments: Any) -> Iterator[distributed.Client]:
    """Make a client of the job's cluster, whose hosts have compiled the kernels: many processes must not fill one cache at once.

    Parameters
    ----------
    job : Job
        Says which cluster: one of this machine, or a scheduler's.
    n_items : int
        Tasks there will be.
    memory : int
        Bytes that a task needs.
    warm : callable
        Calls all kernels that tasks call. It runs here for a local cluster; otherwise on one worker of every host, and on those that come later.
    *arguments
        What it is called with.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ClusterLost
        There are no workers, or they went away.
    UnfitCluster
        The workers do not fit, see `remote_client`.
    """
    if job.options.scheduler is None:
        warm(*arguments)
        with local_client(job, n_items) as client:
            yield client
        return
    needs = need(memory)
    with remote_client(job.options.scheduler, needs, job.options.wait) as client:
        workers = find_workers(client)
        hosts = {worker["host"]: address for address, worker in workers.items()}
        with _reported(f"{job.options.scheduler}: compiling kernels", n_items):
            ask = partial(client.submit, do_checked, needs, warm, *arguments, pure=False)
            warmed = [ask(workers=[address], allow_other_workers=True) for address in hosts.values()]
            for (future,) in as_completed(client, warmed):
                fetch(client, future)
        warm_late(client, workers, needs, warm, *arguments)
        yield client


def _name(item: Any) -> str:
    return f"{item.uri}: row groups {list(item.row_groups)}" if isinstance(item, WorkItem) else str(item)


@contextlib.contextmanager
def _reported(where: str, n_left: int) -> Iterator[None]:
    """Say what was lost with workers or with the scheduler."""
    try:
        yield
    except KilledWorker as error:
        raise WorkersDied(f"{where}: the workers that it was given to died") from error
    except (CancelledError, CommClosedError) as error:  # all tasks are cancelled then, or what one returned was just being fetched
        raise ClusterLost(f"the Dask cluster went away with {n_left} parts to do; run again to go on from there") from error


def run_dask(client: distributed.Client, task: Task, bundles: Sequence[Bundle], memory: int) -> Iterator[Done]:
    """Make the parts of every bundle, one task each; the first failure cancels the rest.

    A worker that dies takes with it all tasks that it was given, and Dask blames every one of them. So items whose workers died are suspects: they
    wait until all others are done, and are then tried one at a time, with no other task of the run on any worker. One that workers die of again is
    what kills them, and is rejected; of several files in one item, those alone that kill workers.

    Parameters
    ----------
    client : distributed.Client
    task : Task
    bundles : sequence of Bundle
    memory : int
        Bytes that a task needs.

    Yields
    ------
    Done
        In the order in which they are done.

    Raises
    ------
    ClusterLost
        The scheduler went away, or had no workers for REPLACE_SECONDS.
    LeafledgerError
        Whatever else a part cannot be made for.
    """
    suspects, name = list[Bundle](), name_run(task.run, task.recipe, task.tables)

    def run(work: Callable[[Task, Bundle], Any], some: Sequence[Bundle], key: str, died: Callable[[Bundle], None]) -> Iterator[Any]:
        submit = partial(client.submit, do_checked, need(memory), work, task, pure=False)
        return _run_tasks(client, submit, some, f"{key}-{name}", died)

    yield from run(do_bundle, bundles, "part", suspects.append)
    for suspect in chain.from_iterable(bundle.split() for bundle in suspects):
        yield from try_alone(partial(run, do_bundle), partial(run, try_files), suspect)


def _gather(client: distributed.Client, done: Sequence[distributed.Future]) -> dict[str, Any]:
    """What tasks returned, by their keys, asked for at once: the client waits once for all of them. Nothing where one of them raises."""
    try:
        return fetch(client, {future.key: future for future in done if future.status == "finished"})
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
                    with _reported(_name(bundle.items[0]), left):
                        done = made[future.key] if future.key in made else fetch(client, future)
                except WorkersDied:
                    died(bundle)
                else:
                    yield done
                left -= len(bundle.items)
    finally:
        cancel(client, list(waiting))


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


def count_dask(
    client: distributed.Client,
    run: str,
    recipe: str,
    query: str,
    items: Sequence[WorkItem],
    memory: int,
    on_done: Callable[[WorkItem], None],
) -> Counted:
    """Count every item in a task of its own and add the counts up FAN_IN at a time, where they are: neither the client nor a worker ever holds all.

    They are added by their places alone, so the bits do not depend on the workers. The first failure cancels the rest.

    Parameters
    ----------
    client : distributed.Client
    run : str
        URI of the run's folder.
    recipe : str
        SHA-256 of the recipe that was broadcast, hexadecimal.
    query : str
        URI of the broadcast BackgroundQuery.
    items : sequence of WorkItem
        Of the background, at least one.
    memory : int
        Bytes that a task needs.
    on_done : callable
        Called with every item as it is counted.

    Returns
    -------
    Counted
        Of all items.

    Raises
    ------
    WorkersDied
        Every worker that an item was given to died.
    ClusterLost
        The scheduler went away, or had no workers for REPLACE_SECONDS.
    LeafledgerError
        Whatever else an item cannot be counted for.
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
                with _reported("the background's counts" if item is None else _name(item), len(waiting) + 1):
                    fetch(client, future)
            if item is not None:
                on_done(item)
        with _reported("the background's counts", 1):
            return fetch(client, total)
    finally:
        cancel(client, [*waiting, total])
