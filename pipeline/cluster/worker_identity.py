"""Names of the machine and the process, for records of a run."""

import os
import platform
import socket
from dataclasses import dataclass
from functools import lru_cache

CPUINFO = "/proc/cpuinfo"  # Linux


@dataclass(frozen=True, slots=True)
class Machine:
    """A host and its CPU."""

    host: str
    cpu: str  # model name


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process."""

    machine: Machine
    process: int  # process id


def _find_cpu() -> str:
    """Return the CPU's model, or its architecture if unknown."""
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
    """Describe this machine; cached."""
    return Machine(socket.gethostname(), _find_cpu())


def this_worker() -> Worker:
    """Describe this process."""
    return Worker(this_machine(), os.getpid())
