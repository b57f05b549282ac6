"""Placement of work: on threads of this process, on a local cluster of processes, or at a scheduler."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from ipaddress import ip_address
from typing import Any

from ..arguments.endpoints import split_address
from ..arguments.readers import optional, read_flag, read_float, read_number, refuse, shorten
from ..display.nearest import did_you_mean
from ..display.text import count
from ..errors import UsageError
from ..extras import needing
from . import resources
from .threads import AHEAD

SERIAL = "serial"  # one thread, the specification
ENCRYPTED = ("tls", "wss")  # protocols with TLS
INSIDE = "inproc"  # protocol of schedulers in this very process
WAIT = 15.0  # seconds to wait for a scheduler
Scheduler = str | Any  # an address, SERIAL, or a Client or a cluster of Dask


def _find_address(name: str, given: Any) -> str:
    """Find the scheduler's address of a Dask client or cluster that is connected."""
    distributed = sys.modules.get("distributed")  # whoever has a client has imported it
    is_client = distributed is not None and isinstance(given, distributed.Client)
    if not is_client and not hasattr(given, "scheduler_address"):
        raise refuse(name, given, "an address as tls://host:8786, 'serial', or a Client or a cluster of Dask")
    expected = "expected one that is connected to a scheduler"
    status = str(getattr(given.status, "name", given.status))
    if status in ("closed", "closing", "failed"):
        raise UsageError(f"{name} is {shorten(given)} that is {status}, {expected}")
    address = getattr(given.scheduler, "address", None) if is_client else given.scheduler_address
    if not isinstance(address, str) or "://" not in address:  # a cluster that is not started says "<Not Connected>"
        raise UsageError(f"{name} is {shorten(given)} without an address, {expected}")
    return address


def _read_scheduler(name: str, given: Any) -> Any:
    """Read an address, or a client or a cluster, which is returned as it is."""
    if isinstance(given, str) and given:
        return given
    _find_address(name, given)
    return given


READERS: dict[str, Callable[[str, Any], Any]] = {
    "scheduler": optional(_read_scheduler),
    "threads": optional(lambda name, given: read_number(name, given, 1)),
    "workers": optional(lambda name, given: read_number(name, given, 1)),
    "wait": lambda name, given: read_float(name, given, "seconds, from 1 to 86,400", 1.0, 86400.0),
    "plain_tcp": read_flag,
}


@dataclass(frozen=True, slots=True)
class Placement:
    """Where work is done, and this machine's share."""

    scheduler: str | None  # a scheduler's address; SERIAL or None for this machine
    asked_threads: int | None  # requested threads of this process
    asked_workers: int | None  # requested processes of a local cluster; None without one
    threads: int  # actual threads of this process
    worker_memory: int  # bytes of each process of the local cluster, or of this process
    wait: float = WAIT  # seconds to wait for a scheduler's answer, and again for its first worker
    security: Any = None  # Dask's Security of a client or cluster that was given; None for what Dask's configuration says

    @property
    def is_here(self) -> bool:
        """Whether threads of this process do the work."""
        return self.asked_workers is None and self.on_this_machine

    @property
    def on_this_machine(self) -> bool:
        """Whether this machine does the work."""
        return self.scheduler in {None, SERIAL}

    def with_room(self, least: int, shared: int = 0) -> "Placement":
        """Reduce the threads so that each has enough memory, unless their number was given.

        Parameters
        ----------
        least : int
            Bytes that a worker with one thread needs,
        shared : int
            and how much of it further threads of it share.
        """
        if not self.is_here or self.asked_threads is not None:
            return self
        n_items = (self.worker_memory - shared) // max(1, least - shared)
        return replace(self, threads=max(1, min(self.threads, n_items - AHEAD)))

    def describe(self, n_tasks: int) -> str:
        """Describe the placement in words, such as "in this process"."""
        if self.is_here:
            return "in this process" if self.threads == 1 else f"on {self.threads} threads"
        workers = count(min(self.asked_workers or 1, max(1, n_tasks)), "worker")
        return f"on {self.scheduler or f'a local cluster of {workers}'}"


ONE_THREAD = Placement(SERIAL, None, None, 1, 0)


def _is_this_host(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _check_scheduler(address: str | None, plain_tcp: bool, local: Mapping[str, int | None]) -> None:
    """Refuse a remote scheduler without TLS: anybody who reaches it can run code on its workers and read their data."""
    said = [f"{name} is {number}" for name, number in local.items() if number is not None]
    if len(said) > 1:
        raise UsageError(f"{' and '.join(said)}: threads are of this process, workers are processes of their own; leave out one or the other")
    if address is None:
        return
    if said:
        raise UsageError(f"{said[0]}, which is for this machine, but scheduler is {address!r:.80}; leave out one or the other")
    if address == SERIAL:
        return
    whole = address if "://" in address else f"tcp://{address}"  # as Dask parses it
    where = split_address(whole, f"scheduler is {address!r:.80}, expected an address as tls://host:8786")
    if where.scheme not in (*ENCRYPTED, INSIDE) and not plain_tcp and not _is_this_host(where.hostname or ""):
        hint = did_you_mean(address, [SERIAL])
        raise UsageError(f"{address}: is another host without TLS; use tls://…, or plain_tcp if the network is your own{hint}")


def make_placement(
    scheduler: Scheduler | None = None, threads: int | None = None, workers: int | None = None, wait: float = WAIT, plain_tcp: bool = False
) -> Placement:
    """Read the placement that a person requested.

    Parameters
    ----------
    scheduler : str, Client or Cluster, optional
        Address of a Dask scheduler, or a client or a cluster of Dask, whose scheduler and TLS settings are taken; or SERIAL for one thread of this
        process.
    threads : int, optional
        Of this process; by default one per core.
    workers : int, optional
        Processes of a local cluster, in the place of threads.
    wait : float
        Seconds.
    plain_tcp : bool
        The network is the user's own, a scheduler on another host needs no TLS.

    Raises
    ------
    UsageError
        An argument is of a wrong type, the scheduler is reached without TLS or its address is none, or threads or workers were asked for beside it,
        or what encrypts between workers is not installed.
    """
    given = {"scheduler": scheduler, "threads": threads, "workers": workers, "wait": wait, "plain_tcp": plain_tcp}
    read = {name: READERS[name](name, value) for name, value in given.items()}
    security = None
    if not isinstance(scheduler, str | None):
        read["scheduler"], security = _find_address("scheduler", scheduler), getattr(scheduler, "security", None)
    _check_scheduler(read["scheduler"], read["plain_tcp"], {name: read[name] for name in ("threads", "workers")})
    if read["workers"] is not None:
        with needing("a local cluster of workers", "cryptography"):
            import_module("cryptography")
    n_threads = 1 if read["scheduler"] == SERIAL else read["threads"] or resources.count_cores()
    memory = resources.find_memory() // (read["workers"] or 1)
    return Placement(read["scheduler"], read["threads"], read["workers"], n_threads, memory, read["wait"], security)
