"""Placement of work: in this process, on a local cluster, or at a scheduler."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

from ..arguments.endpoints import split_address
from ..arguments.readers import optional, read_flag, read_float, read_number, read_text
from ..display.text import count
from ..errors import UsageError
from .resources import share_out

SERIAL = "serial"
ENCRYPTED = ("tls", "wss")  # protocols with TLS
WAIT = 15.0  # seconds to wait for a scheduler
READERS: dict[str, Callable[[str, Any], Any]] = {
    "scheduler": optional(read_text),
    "workers": optional(lambda name, given: read_number(name, given, 1)),
    "wait": lambda name, given: read_float(name, given, "seconds, from 1 to 86,400", 1.0, 86400.0),
    "plain_tcp": read_flag,
}


@dataclass(frozen=True, slots=True)
class Placement:
    """Where work is done, and this machine's share for a local cluster."""

    scheduler: str | None  # SERIAL for this process, None for a local cluster, otherwise a scheduler's address
    asked_workers: int | None  # requested processes of the local cluster
    workers: int  # actual processes of the local cluster
    worker_memory: int  # bytes of each
    wait: float = WAIT  # seconds to wait for a scheduler's answer, and again for its first worker

    @property
    def is_serial(self) -> bool:
        """Whether this process does the work."""
        return self.scheduler == SERIAL

    @property
    def is_open(self) -> bool:
        """Whether neither scheduler nor workers were given."""
        return self.scheduler is None and self.asked_workers is None

    def here_if(self, small: bool) -> "Placement":
        """Return this process as placement for little work, which is done before a local cluster has started, unless one was requested."""
        return replace(self, scheduler=SERIAL) if small and self.is_open else self

    def with_room(self, least: int) -> "Placement":
        """Reduce the workers so that each has enough memory, unless their number was given."""
        workers, worker_memory = share_out(self.asked_workers, least)
        return replace(self, workers=workers, worker_memory=worker_memory)

    def describe(self, n_tasks: int) -> str:
        """Describe the placement in words, such as "in this process"."""
        if self.is_serial:
            return "in this process"
        workers = count(min(self.workers, max(1, n_tasks)), "worker")
        return f"on {self.scheduler or f'a local cluster of {workers}'}"


def _is_this_host(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _check_scheduler(address: str | None, plain_tcp: bool, workers: int | None) -> None:
    """Refuse a remote scheduler without TLS: anybody who reaches it can run code on its workers and read their data."""
    if address is None:
        return
    if workers is not None:
        raise UsageError(f"workers is {workers}, which is for a local cluster, but scheduler is {address!r:.80}; leave out one or the other")
    if address == SERIAL:
        return
    whole = address if "://" in address else f"tcp://{address}"  # as Dask parses it
    where = split_address(whole, f"scheduler is {address!r:.80}, expected an address as tls://host:8786")
    if where.scheme not in ENCRYPTED and not plain_tcp and not _is_this_host(where.hostname or ""):
        raise UsageError(f"{address}: is another host without TLS; use tls://…, or plain_tcp if the network is your own")


def make_placement(scheduler: str | None, workers: int | None, plain_tcp: bool, wait: float = WAIT) -> Placement:
    """Read the placement that a person requested.

    Parameters
    ----------
    scheduler : str or None
        Address of a Dask scheduler, or SERIAL.
    workers : int or None
        Processes of a local cluster; None for one per core, but for those that would not have enough memory.
    plain_tcp : bool
        The network is the user's own, a scheduler on another host needs no TLS.
    wait : float
        Seconds.

    Raises
    ------
    UsageError
        An argument is of a wrong type, the scheduler is reached without TLS or its address is none, or workers were asked for beside it.
    """
    given = {"scheduler": scheduler, "workers": workers, "wait": wait, "plain_tcp": plain_tcp}
    read = {name: READERS[name](name, value) for name, value in given.items()}
    _check_scheduler(read["scheduler"], read["plain_tcp"], read["workers"])
    return Placement(read["scheduler"], read["workers"], *share_out(read["workers"]), read["wait"])
