"""What Dask's workers have to be like to give this process's bits and to have room for them: those there are, and those that come later."""

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
    """Refuse a script that processes which it starts cannot import."""
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
    """
    return Needs(memory, get_package_info(SAME))


def check_workers(client: distributed.Client, needs: Needs) -> None:
    """Refuse the workers that a cluster has now, if one is otherwise."""
    found = call_scheduler(client, "broadcast", msg={"op": "versions", "packages": list(SAME)}, on_error="ignore")
    for name, worker in find_workers(client).items():
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
    """
    return Packed(zlib.compress(pickle.dumps(argument), 1))


def do_checked(needs: Needs, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do work on a worker, which may have come since the others were asked.

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


def _make_end(name: str, ours: str) -> distributed.SchedulerPlugin:
    """What has a scheduler forget a plugin of its workers when a client is gone, however it went; its code travels with it."""

    class End(distributed.SchedulerPlugin):
        def remove_client(self, scheduler: Any, client: str) -> None:
            if client == ours:
                del scheduler.plugins[name]
                scheduler.worker_plugins.pop(name, None)
                scheduler.loop.add_callback(scheduler.broadcast, msg={"op": "plugin-remove", "name": name}, on_error="ignore")

    return End()


def warm_late(client: distributed.Client, known: Iterable[str], needs: Needs, warm: Callable[..., None], *arguments: Any) -> None:
    """Let workers that come late compile kernels, or load them, before they get tasks, as long as the client is there."""
    name, work = f"leafledger-{client.id}", pickle.dumps(partial(_warm_here, needs, warm, arguments))
    end, late = _make_end(name, client.id), _make_plugin(frozenset(known), work)
    call_scheduler(client, "register_scheduler_plugin", plugin=pickle.dumps(end), name=name, idempotent=False)
    call_scheduler(client, "register_worker_plugin", plugin=pickle.dumps(late), name=name, idempotent=False)
