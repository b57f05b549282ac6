"""Timeouts for Dask clusters without workers or answers, for which Dask itself would wait forever."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Iterator, Sequence
from concurrent.futures import CancelledError, wait
from typing import Any, cast

import distributed
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from ..errors import ClusterLost, WorkersDied


@contextlib.contextmanager
def reported(where: str, n_left: int) -> Iterator[None]:
    """Report work lost with workers or the scheduler."""
    try:
        yield
    except KilledWorker as error:
        raise WorkersDied(f"{where}: the workers that it was given to died") from error
    except (CancelledError, CommClosedError) as error:  # all tasks were cancelled, or a result was being fetched
        raise ClusterLost(f"the Dask cluster went away with {n_left} parts to do; run again to go on from there") from error


REPLACE_SECONDS = 300  # wait for a cluster without workers, or for a silent scheduler; new machines take minutes to start
LOOK_SECONDS = 5  # interval between checks for workers


def _lost(what: str) -> ClusterLost:
    return ClusterLost(f"the Dask cluster {what} for {REPLACE_SECONDS} seconds; run again to go on from there")


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Report a cluster that disappeared during a call outside tasks."""
    try:
        yield
    except TimeoutError as error:
        raise _lost("has not answered") from error
    except (OSError, ClosedClientError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ClusterLost(f"the Dask cluster went away ({reason}); run again to go on from there") from error


def find_workers(client: distributed.Client) -> dict[str, Any]:
    """List a scheduler's workers.

    Returns
    -------
    dict of str to Any
        What the scheduler knows of each, by its address.

    Raises
    ------
    ClusterLost
        The scheduler does not answer for REPLACE_SECONDS, or is gone.
    """
    with answering():
        return _identify(client, -1)


def _scheduler(client: distributed.Client) -> Any:
    """Return the scheduler's address; Dask's client forgets it after giving up."""
    if client.scheduler is None:
        raise ClusterLost("the Dask cluster went away; run again to go on from there")
    return client.scheduler


def _identify(client: distributed.Client, n_workers: int) -> dict[str, Any]:
    """Ask the scheduler directly: the client repeats old answers if it is gone, and waits for a frozen one."""
    return cast(dict[str, Any], client.sync(_scheduler(client).identity, n_workers=n_workers, callback_timeout=REPLACE_SECONDS)["workers"])


class WorkerTimeout:
    """Timeout that restarts whenever the cluster makes progress or has workers.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: distributed.Client):
        self._client = client
        self.renew()

    def renew(self) -> None:
        """Restart the timeout after progress."""
        self._seen = self._looked = time.monotonic()

    def look(self) -> None:
        """Check for workers at most every LOOK_SECONDS."""
        if time.monotonic() - self._looked <= min(LOOK_SECONDS, REPLACE_SECONDS):
            return
        workers, lost = dict[str, Any](), "has had no workers"
        try:
            workers = _identify(self._client, 1)
        except OSError:  # a busy scheduler may answer next time
            lost = "has not answered"
        self._looked = time.monotonic()
        if workers:
            self._seen = self._looked
        elif self._looked - self._seen > REPLACE_SECONDS:
            raise _lost(lost)


def as_completed(client: distributed.Client, futures: Sequence[distributed.Future], most: int = 1) -> Iterator[list[distributed.Future]]:
    """Yield tasks as they complete.

    Parameters
    ----------
    most : int
        That are yielded at once.

    Yields
    ------
    list of distributed.Future
        What is done.

    Raises
    ------
    ClusterLost
        There were no workers, or no answer of the scheduler, for REPLACE_SECONDS.
    """
    done, patience = distributed.as_completed(futures, loop=client.loop), WorkerTimeout(client)
    del futures  # otherwise all results stay in memory until the end
    while not done.is_empty():
        if done.has_ready():
            yield [next(done) for _ in range(min(most, done.queue.qsize()))]
            patience.renew()
        else:
            time.sleep(0.02)
            patience.look()


def fetch_result(client: distributed.Client, asked: Any) -> Any:
    """Fetch the results of finished tasks.

    If workers with results are gone, wait for the recomputation as for tasks.

    Returns
    -------
    Any
        What the task returned, or a mapping with what each did.

    Raises
    ------
    ClusterLost
        There were no workers, or no answer of the scheduler, for REPLACE_SECONDS.
    Exception
        Whatever a task raised.
    """
    return _attend(client, client.gather(asked, asynchronous=True))


def call_scheduler(client: distributed.Client, what: str, /, **given: Any) -> Any:
    """Call the scheduler and wait for its answer as for a task."""
    with answering():
        return _attend(client, getattr(_scheduler(client), what)(**given))


def _attend(client: distributed.Client, asked: Awaitable[Any]) -> Any:
    patience, loop = WorkerTimeout(client), cast(Any, client.loop)
    answer = asyncio.run_coroutine_threadsafe(cast(Any, asked), loop.asyncio_loop)
    try:
        while not wait([answer], min(LOOK_SECONDS, REPLACE_SECONDS)).done:
            patience.look()
        return answer.result()
    finally:
        answer.cancel()


def cancel(client: distributed.Client, futures: Sequence[distributed.Future]) -> None:
    """Cancel tasks, done or not; if the client lost its scheduler, do nothing."""
    with contextlib.suppress(ClosedClientError):
        client.cancel(futures)
