"""Requirements of Dask workers: equal package versions and enough memory, also for workers that join later."""

import asyncio
import contextlib
import multiprocessing
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import distributed
from distributed.protocol import pickle
from distributed.versions import get_package_info

from ..errors import UnfitCluster, UsageError
from .waiting import call_scheduler, find_workers

ALIKE = "start workers from the same image or environment"
GUARD = "a script that calls Leafledger must do so under if __name__ == '__main__'"
SAME = ("leafledger", "dask", "distributed", "numpy", "scipy", "numba", "pyarrow")  # packages that tasks and their bits depend on


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of a worker, checked at the start and by every task, since workers may join later."""

    memory: int  # bytes per thread
    packages: Mapping[str, str | None]  # versions by name, including Python's

    def check(self, name: str, share: int | None, packages: Mapping[str, str | None]) -> None:
        """Refuse a worker that does not meet the requirements.

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
    """Refuse a script that child processes cannot import."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # multiprocessing checks this before raising a long error
        raise UsageError(f"a worker imports the script that started it, which calls Leafledger again; {GUARD}")
    script = getattr(sys.modules["__main__"], "__file__", None) or ""
    if script.startswith("<"):
        raise UsageError(f"the script is read from {script}, and a local cluster's workers import it: write it to a file, or leave out workers")


def need(memory: int) -> Needs:
    """Return the requirements for workers to give this process's results.

    Parameters
    ----------
    memory : int
        Bytes that a task needs.
    """
    return Needs(memory, get_package_info(SAME))


def check_workers(client: distributed.Client, needs: Needs) -> None:
    """Refuse a cluster if any current worker fails the requirements."""
    found = call_scheduler(client, "broadcast", msg={"op": "versions", "packages": list(SAME)}, on_error="ignore")
    for name, worker in find_workers(client).items():
        if name in found:  # otherwise it has left
            needs.check(name, _share(worker["memory_limit"], worker["nthreads"]), found[name]["packages"])


@dataclass(frozen=True, slots=True)
class Packed:
    """A task's argument, compressed: the scheduler holds all tasks, and records of work items are ten times as large."""

    data: bytes


def pack(argument: Any) -> Packed:
    """Compress an argument of a task.

    Parameters
    ----------
    argument : Any
        A record, which pickle takes.
    """
    return Packed(zlib.compress(pickle.dumps(argument), 1))


def do_checked(needs: Needs, work: Callable[..., Any], *arguments: Any) -> Any:
    """Check the worker, which may have joined late, and do the work.

    Parameters
    ----------
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
    """Make a plugin that runs on every new worker before its first task.

    The class is local so that it is pickled by value: workers without this package could not import it and would fail to start.
    """

    class Late(distributed.WorkerPlugin):
        async def setup(self, worker: distributed.Worker) -> None:
            if worker.address not in known:
                await asyncio.to_thread(self.warm, worker)

        def warm(self, worker: distributed.Worker) -> None:
            with contextlib.suppress(Exception):  # its first task will report the error
                pickle.loads(work)(worker)

    return Late()


def _make_end(name: str, ours: str) -> distributed.SchedulerPlugin:
    """Make a scheduler plugin that removes our worker plugin when the client is gone; pickled by value."""

    class End(distributed.SchedulerPlugin):
        def remove_client(self, scheduler: Any, client: str) -> None:
            if client == ours:
                del scheduler.plugins[name]
                scheduler.worker_plugins.pop(name, None)
                scheduler.loop.add_callback(scheduler.broadcast, msg={"op": "plugin-remove", "name": name}, on_error="ignore")

    return End()


def warm_late(client: distributed.Client, known: Iterable[str], needs: Needs, warm: Callable[..., None], *arguments: Any) -> None:
    """Let workers that join late load or compile kernels before their first task, while the client exists."""
    name, work = f"leafledger-{client.id}", pickle.dumps(partial(_warm_here, needs, warm, arguments))
    end, late = _make_end(name, client.id), _make_plugin(frozenset(known), work)
    call_scheduler(client, "register_scheduler_plugin", plugin=pickle.dumps(end), name=name, idempotent=False)
    call_scheduler(client, "register_worker_plugin", plugin=pickle.dumps(late), name=name, idempotent=False)
