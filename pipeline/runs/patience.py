"""How long a Dask cluster is waited for: as long as it has workers, and a while without; Dask itself would wait without end."""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from typing import Any, cast

import distributed
from distributed.client import ClosedClientError

from ..errors import ClusterLost

REPLACE_SECONDS = 300  # that a cluster may be without any worker; new machines take minutes to start
LOOK_SECONDS = 5  # between two looks at whether there are workers


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Say that a cluster went away while something was asked of it that is no task.

    Yields
    ------
    None

    Raises
    ------
    ClusterLost
        The scheduler is gone, or a worker that it asked in turn.
    """
    try:
        yield
    except (OSError, ClosedClientError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ClusterLost(f"the Dask cluster went away ({reason}); run again to go on from there") from error


class Patience:
    """What is left of it: all, whenever something comes of the cluster or it has workers.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: distributed.Client):
        self._client = client
        self.renew()

    def renew(self) -> None:
        """Begin anew, since something came of the cluster."""
        self._seen = self._looked = time.monotonic()

    def look(self) -> None:
        """Look whether there are workers, where nobody has for LOOK_SECONDS.

        Raises
        ------
        ClusterLost
            There have been none for REPLACE_SECONDS, or the scheduler is gone.
        """
        now = time.monotonic()
        if now - self._looked <= min(LOOK_SECONDS, REPLACE_SECONDS):
            return
        self._looked = now
        with answering():
            workers = self._client.scheduler_info(n_workers=1)["workers"]
        if workers:
            self._seen = now
        elif now - self._seen > REPLACE_SECONDS:
            raise ClusterLost(f"the Dask cluster has had no workers for {REPLACE_SECONDS} seconds; run again to go on from there")


def as_completed(client: distributed.Client, futures: Sequence[distributed.Future], most: int = 1) -> Iterator[list[distributed.Future]]:
    """Wait for tasks, whichever is done first.

    Parameters
    ----------
    client : distributed.Client
    futures : sequence of distributed.Future
    most : int
        That are yielded at once.

    Yields
    ------
    list of distributed.Future
        What is done.

    Raises
    ------
    ClusterLost
        There were no workers for REPLACE_SECONDS.
    """
    done, patience = distributed.as_completed(futures), Patience(client)
    del futures  # or results that only the scheduler needs would be kept until all are done
    while not done.is_empty():
        if done.has_ready():
            yield [next(done) for _ in range(min(most, done.queue.qsize()))]
            patience.renew()
        else:
            time.sleep(0.02)
            patience.look()


def fetch(client: distributed.Client, asked: Any) -> Any:
    """Fetch what tasks returned that are done.

    Where the workers that have it are gone by now, so that others have to do it again, it is waited for as the tasks were.

    Parameters
    ----------
    client : distributed.Client
    asked : distributed.Future or mapping of str to distributed.Future

    Returns
    -------
    Any
        What the task returned, or a mapping with what each did.

    Raises
    ------
    ClusterLost
        There were no workers for REPLACE_SECONDS.
    Exception
        Whatever a task raised.
    """
    patience, loop = Patience(client), cast(Any, client.loop)
    answer = asyncio.run_coroutine_threadsafe(client.gather(asked, asynchronous=True), loop.asyncio_loop)
    try:
        while not wait([answer], min(LOOK_SECONDS, REPLACE_SECONDS)).done:
            patience.look()
        return answer.result()
    finally:
        answer.cancel()
