"""The machine and the process that something is done by, as records of a run name them."""

import os
import platform
import socket
from dataclasses import dataclass
from functools import lru_cache

CPUINFO = "/proc/cpuinfo"  # of Linux


@dataclass(frozen=True, slots=True)
class Machine:
    """A host, by its name, and what computes there."""

    host: str
    cpu: str  # its model


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that makes parts."""

    machine: Machine
    process: int  # its number on that machine


def _find_cpu() -> str:
    """The model of the CPU; its architecture where nobody says."""
    try:
        with open(CPUINFO, encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    return " ".join(value.split())
    except OSError:
        pass
    return platform.processor() or platform.machine() or "unknown"


@lru_cache(maxsize=1)
def this_machine() -> Machine:
    """Name the machine of this process, which is looked at once."""
    return Machine(socket.gethostname(), _find_cpu())


def this_worker() -> Worker:
    """Name this process."""
    return Worker(this_machine(), os.getpid())
