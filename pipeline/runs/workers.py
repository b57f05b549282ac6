"""What Dask's workers have to be like to give this process's bits and to have room for them: those there are, and those that come later."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import distributed
from distributed.versions import get_package_info

from ..errors import UnfitCluster

ALIKE = "start workers from the same image or environment"
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


def do_checked(needs: Needs, work: Callable[..., Any], *arguments: Any) -> Any:
    """Do work on a worker, which may have come since the others were asked.

    Parameters
    ----------
    needs : Needs
    work : callable
    *arguments
        What it is called with.

    Returns
    -------
    Any
        What ``work`` returns.

    Raises
    ------
    UnfitCluster
        As `Needs.check`.
    """
    worker = distributed.get_worker()
    needs.check(worker.address, _share(worker.memory_manager.memory_limit, worker.state.nthreads), get_package_info(SAME))
    return work(*arguments)


def _share(memory: int | None, n_threads: int) -> int | None:
    return memory // n_threads if memory else None
