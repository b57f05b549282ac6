"""What Dask's workers have to be like to give this process's bits and to have room for them: those there are, and those that come later."""

import asyncio
import contextlib
import multiprocessing
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import distributed
from dask.tokenize import tokenize
from distributed.protocol import pickle
from distributed.versions import get_package_info

from ..errors import UnfitCluster, UsageError
from .patience import answering

ALIKE = "start workers from the same image or environment"
GUARD = "a script that calls Leafledger must do so under if __name__ == '__main__'"
FORGET_SECONDS = 5  # that workers have to forget a run; a frozen one never does
SAME = ("leafledger", "dask", "distributed", "numpy", "scipy", "numba", "pyarrow")  # what tasks understand, and their bits


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker must have; workers are asked when work begins, and every task asks again, since workers may come while it goes on."""

    memory: int  # bytes of every thread
    packages: Mapping[str, str | None]  # versions by name, Python's among them

    def check(self, name: str, share: int | None, packages: Mapping[str, str | None]) -> None:
        """Refuse a worker that is otherwise.

        Parameters
        ----------
        name : str
            Its address.
        share : int or None
            Bytes that each of its threads may take, None where there is no limit.
        packages : mapping of str to str or None
            As it has them.

        Raises
        ------
        UnfitCluster
            It has less memory, another Python, or another version of a package.
        """
        if share is not None and share < self.memory:
            raise UnfitCluster(
                f"{name}: a task needs {self.memory >> 20} MiB, the worker has {share >> 20} for each of its threads; give it more, or fewer threads"
            )
        mine, theirs = self.packages["python"] or "", packages["python"] or ""
        if theirs.split(".")[:2] != mine.split(".")[:2]:
            raise UnfitCluster(f"{name}: the worker has Python {theirs}, expected {mine} as here; {ALIKE}")
        for package in SAME:
            if packages[package] != self.packages[package]:
                had = packages[package] or "not at all"
                raise UnfitCluster(f"{name}: the worker has {package} {had}, expected {self.packages[package]} as here; {ALIKE}")


def check_script() -> None:
    """Refuse a script that processes which it starts cannot import.

    Raises
    ------
    UsageError
        This process is itself a worker that is starting, and imports a script that starts some; or the script is no file.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # what multiprocessing asks before it refuses with a page
        raise UsageError(f"a worker imports the script that started it, which calls Leafledger again; {GUARD}")
    script = getattr(sys.modules["__main__"], "__file__", None) or ""
    if script.startswith("<"):
        raise UsageError(f"the script is read from {script}, and a local cluster's workers import it: write it to a file, or give scheduler='serial'")


def need(memory: int) -> Needs:
    """Say what workers must have to do what this process would.

    Parameters
    ----------
    memory : int
        Bytes that a task needs.

    Returns
    -------
    Needs
    """
    return Needs(memory, get_package_info(SAME))


def check_workers(client: distributed.Client, needs: Needs) -> None:
    """Refuse the workers that a cluster has now, if one is otherwise.

    Parameters
    ----------
    client : distributed.Client
    needs : Needs

    Raises
    ------
    UnfitCluster
        As `Needs.check`.
    """
    versions: Any = client.get_versions(packages=list(SAME))
    found = versions["workers"]
    for name, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        if name in found:  # or it has left
            needs.check(name, _share(worker["memory_limit"], worker["nthreads"]), found[name]["packages"])


@dataclass(frozen=True, slots=True)
class Packed:
    """Something that a task is called with, as it travels: a scheduler holds all tasks, and records of many work items are ten times as large."""

    data: bytes


def pack(argument: Any) -> Packed:
    """Make what a task is called with small.

    Parameters
    ----------
    argument : Any
        A record, which pickle takes.

    Returns
    -------
    Packed
    """
    return Packed(zlib.compress(pickle.dumps(argument), 1))


def do_checked(needs: Needs, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do work on a worker, which may have come since the others were asked.

    Parameters
    ----------
    needs : Needs
    work : callable
    *arguments
        What it is called with, some of it `Packed`.

    Returns
    -------
    Any
        What ``work`` returns.

    Raises
    ------
    UnfitCluster
        As `Needs.check`.
    """
    _check_here(needs, distributed.get_worker())
    return work(*(pickle.loads(zlib.decompress(each.data)) if isinstance(each, Packed) else each for each in arguments))


def _check_here(needs: Needs, worker: distributed.Worker) -> None:
    needs.check(worker.address, _share(worker.memory_manager.memory_limit, worker.state.nthreads), get_package_info(SAME))


def _share(memory: int | None, n_threads: int) -> int | None:
    return memory // n_threads if memory else None


def _warm_here(needs: Needs, warm: Callable[..., None], arguments: Sequence[Any], worker: distributed.Worker) -> None:
    _check_here(needs, worker)
    warm(*arguments)


def _make_plugin(known: frozenset[str], work: bytes) -> distributed.WorkerPlugin:
    """What Dask has every worker do before it does tasks, but those that are known.

    The class is made here, so that its code travels with it: somebody else's worker, without this package, could not import it and would not start.
    """

    class Late(distributed.WorkerPlugin):
        async def setup(self, worker: distributed.Worker) -> None:
            if worker.address not in known:
                await asyncio.to_thread(self.warm, worker)

        def warm(self, worker: distributed.Worker) -> None:
            with contextlib.suppress(Exception):  # its first task says it, if it gets one
                pickle.loads(work)(worker)

    return Late()


@contextlib.contextmanager
def warm_late(client: distributed.Client, known: Iterable[str], needs: Needs, warm: Callable[..., None], *arguments: Any) -> Iterator[None]:
    """Let workers that come late compile kernels, or load them, before they get tasks.

    Parameters
    ----------
    client : distributed.Client
    known : iterable of str
        Addresses of workers that have them: whoever came while these compiled is late.
    needs : Needs
        What a worker must have; nothing is compiled on one that has not, which its first task will refuse.
    warm : callable
        Calls all kernels that tasks call. A function of a module.
    *arguments
        What it is called with.

    Yields
    ------
    None
        As long as this holds. Where the client is killed, the scheduler keeps it until the same run has gone on and ended.

    Raises
    ------
    ClusterLost
        The scheduler goes away, or a worker while it is told.
    """
    scheduler: Any = client.scheduler
    name = f"leafledger-{tokenize(warm.__module__, arguments)}"
    work = pickle.dumps(partial(_warm_here, needs, warm, arguments))
    try:
        with answering():  # where a worker goes away meanwhile, the scheduler keeps the plugin all the same
            client.register_plugin(_make_plugin(frozenset(known), work), name=name)
        yield
    finally:
        with contextlib.suppress(Exception):  # the scheduler may be gone; it forgets at once, whatever its workers do
            client.sync(scheduler.unregister_worker_plugin, name=name, callback_timeout=FORGET_SECONDS)
