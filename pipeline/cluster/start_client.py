"""Dask clients: of a local cluster of processes, or of an existing scheduler."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dask
import distributed
from distributed.exceptions import WorkerStartTimeoutError

from ..errors import ClusterLost, UnfitCluster, UsageError
from ..extras import needing
from .placement import Placement
from .requirements import GUARD, Needs, check_script, check_workers, do_checked, need, warm_late
from .waiting import answering, as_completed, fetch_result, find_workers, reported

# Dask removes a worker for good if it has not reconnected after this time, including one that is still starting on a busy machine, with its task.
KEEP_WORKERS = {"distributed.deploy.lost-worker-timeout": "365 days"}
CLOSE_SECONDS = 5  # wait for a scheduler at closing; a frozen one never answers
SILENT = logging.CRITICAL  # workers' errors reach the user as exceptions


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Keep Dask's cluster log from other handlers, such as Prefect's."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(SILENT)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def local_client(placement: Placement, n_items: int) -> Iterator[distributed.Client]:
    """Start a local cluster of processes with a thread each, and stop it at the end.

    It listens on the loopback address with its own certificate, since otherwise all users of the machine could run code as this one.

    Parameters
    ----------
    placement : Placement
        Its ``asked_workers`` are started, each with ``worker_memory`` bytes.
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
            n_workers=max(1, min(placement.asked_workers or 1, n_items)),
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            security=True,
            dashboard_address="127.0.0.1:0",  # None would still take port 8787
            memory_limit=placement.worker_memory,
            silence_logs=SILENT,
        )
    except RuntimeError as error:
        raise UnfitCluster(f"the local cluster's workers do not start ({error}); {GUARD}, since every worker imports it") from error
    with _silenced(), dask.config.set(KEEP_WORKERS), cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextlib.contextmanager
def remote_client(address: str, needs: Needs, wait: float, security: Any = None) -> Iterator[distributed.Client]:
    """Connect to an existing scheduler with workers like this process.

    Parameters
    ----------
    address : str
        Of the Dask scheduler, as ``tls://host:port``.
    needs : Needs
        What its workers must have.
    wait : float
        Seconds that a scheduler may take to answer, and as many again to have a worker. A cluster that starts workers as there is work is given some.
    security : distributed.Security, optional
        Certificates and keys for TLS; by default those of Dask's configuration.

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
        There is no certificate for TLS, or what reads it is not installed.
    """
    configured = dask.config.get("distributed.comm.tls.client.cert", None)
    certificate = configured if security is None else security.tls_client_cert
    if address.startswith("tls://") and certificate:
        with needing(address, "cryptography"):
            from .certificates import check_expiry
        check_expiry(certificate)
    try:
        client = distributed.Client(address, security=security, timeout=wait, set_as_default=False)  # Dask's default client is unchanged
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterLost(f"{address}: no Dask scheduler answers there: {' '.join(str(error).split())}") from error
    except TypeError as error:  # raised by Dask for an unknown protocol
        raise UsageError(f"{address}: Dask has no certificate for TLS; its configuration names one in distributed.comm.tls") from error
    try:
        _wait_for_worker(client, address, wait)
        check_workers(client, needs)
        yield client
    finally:
        with contextlib.suppress(TimeoutError):  # a frozen scheduler does not confirm closing
            client.close(timeout=CLOSE_SECONDS)


def _wait_for_worker(client: distributed.Client, address: str, wait: float) -> None:
    """Wait for a worker, since the last may just have been lost, or the first not yet started."""
    within = f"expected at least one within {wait:g} seconds"
    with answering():
        work = client.submit(int, pure=False)  # triggers adaptive scaling
        try:
            client.sync(client.wait_for_workers, 1, timeout=wait, callback_timeout=2 * wait)
        except WorkerStartTimeoutError as error:
            many = f"{address}: the Dask scheduler has no workers, {within}"
            raise ClusterLost(f"{many}; see why none starts, such as a quota, or --wait longer") from error
        except TimeoutError as error:
            raise ClusterLost(f"{address}: the Dask scheduler does not answer when it is asked for workers, {within}") from error
        del work


@contextlib.contextmanager
def warm_client(placement: Placement, n_items: int, memory: int, warm: Callable[..., None], *arguments: Any) -> Iterator[distributed.Client]:
    """Make a client of the cluster, after compiling the kernels once per host: processes must not fill one cache concurrently.

    Parameters
    ----------
    placement : Placement
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
    if placement.scheduler is None:
        warm(*arguments)
        with local_client(placement, n_items) as client:
            yield client
        return
    needs = need(memory)
    with remote_client(placement.scheduler, needs, placement.wait, placement.security) as client:
        workers = find_workers(client)
        hosts = {worker["host"]: address for address, worker in workers.items()}
        with reported(f"{placement.scheduler}: compiling kernels", n_items):
            ask = partial(client.submit, do_checked, needs, warm, *arguments, pure=False)
            warmed = [ask(workers=[address], allow_other_workers=True) for address in hosts.values()]
            for (future,) in as_completed(client, warmed):
                fetch_result(client, future)
        warm_late(client, workers, needs, warm, *arguments)
        yield client
