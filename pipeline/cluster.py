"""Work items on Dask: a local cluster of one process per core, or one that is there already. The only code that imports Dask."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

import distributed
from distributed.scheduler import KilledWorker

from .config import Job
from .errors import ClusterLost, UsageError
from .part import Part, make_part, warm
from .plan import WorkItem

CONNECT_SECONDS = 15  # Dask's own comm timeouts hang below this
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
    """One process per core of this machine, listening on the loopback address only."""
    try:
        cluster = distributed.LocalCluster(
            n_workers=max(1, min(job.workers, n_items)),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # None would take port 8787 all the same
            memory_limit=job.worker_memory,
            silence_logs=SILENT,
        )
    except RuntimeError as error:
        raise ClusterLost(
            f"the local cluster's workers do not start ({error}); a script that calls explain must do so under if __name__ == '__main__', "
            "since every worker imports it"
        ) from error
    with _silenced(), cluster, distributed.Client(cluster) as client:
        yield client


@contextlib.contextmanager
def remote_client(address: str, memory: int) -> Iterator[distributed.Client]:
    """A client of the scheduler at ``address``, which must answer and have workers whose threads get ``memory`` bytes each."""
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterLost(f"{address}: no Dask scheduler answers there: {' '.join(str(error).split())}") from error
    with client:
        workers = client.scheduler_info()["workers"]
        if not workers:
            raise UsageError(f"{address}: the Dask scheduler has no workers, expected at least one")
        for name, worker in workers.items():
            share = worker["memory_limit"] // worker["nthreads"] if worker["memory_limit"] else memory
            if share < memory:
                raise UsageError(f"{name}: a task needs {memory >> 20} MiB, the worker has {share >> 20} for each of its threads")
        yield client


def warm_hosts(client: distributed.Client, tables: str, method: str) -> None:
    """Compile on one worker of every host before its others need it: many processes must not fill one cache at once."""
    hosts = {worker["host"]: address for address, worker in client.scheduler_info()["workers"].items()}
    client.gather([client.submit(warm, tables, method, workers=[address], pure=False) for address in hosts.values()])


def run_dask(client: distributed.Client, run: str, plan_digest: str, tables: str, items: Sequence[WorkItem]) -> Iterator[Part]:
    """One task per item; parts in the order in which they are done. The first failure cancels the rest."""
    waiting = {
        client.submit(make_part, run, plan_digest, tables, item, key=f"part-{item.part}-{plan_digest[:12]}", pure=False): item for item in items
    }
    try:
        for future in distributed.as_completed(list(waiting)):
            item = waiting.pop(future)
            try:
                yield future.result()
            except KilledWorker as error:
                raise ClusterLost(f"{item.uri}: row groups {list(item.row_groups)}: the workers that explained them died") from error
            except CancelledError as error:
                raise ClusterLost(f"the Dask cluster went away with {len(waiting) + 1} parts to do; run again to go on from there") from error
    finally:
        client.cancel(list(waiting))
