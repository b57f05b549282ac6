"""What making something takes of a process: time, and what it moves to and from stores."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psutil

from ..stores.traffic import Moved, find_moved

STATUS, PEAK = "/proc/self/status", "VmHWM:"  # of Linux


class PartTimings(NamedTuple):
    """Seconds that a part took."""

    reading: float = 0.0
    kernel: float = 0.0  # from values as they are read to attributions that are checked and added to the summaries, and room for them
    writing: float = 0.0
    publishing: float = 0.0  # the object, its digest, and what else there is
    cpu: float = 0.0  # of the process, other threads included, while it did not read
    peak: int = 0  # bytes of the process at its largest, so far

    def publish(self, seconds: float, cpu: float) -> "PartTimings":
        """Add what came after the part was written.

        Parameters
        ----------
        seconds : float
            That the part took in all.
        cpu : float
            Of the process since it was written.

        Returns
        -------
        Spent
            Which adds up to these seconds.
        """
        return self._replace(publishing=seconds - self.reading - self.kernel - self.writing, cpu=self.cpu + cpu)


class ResourceUsage(NamedTuple):
    """What a piece of work took."""

    seconds: float = 0.0
    cpu: float = 0.0  # seconds, of this process and of those that it started and that are over
    read: int = 0  # bytes
    written: int = 0


class Stopwatch:
    """A stopwatch of one thread: time is added up under the name of what it was spent on."""

    def __init__(self) -> None:
        self._lap, self._cpu_lap = time.perf_counter(), time.process_time()
        self._seconds: dict[str, float] = {}
        self._cpu: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Put down what passed since the lap before.

        Parameters
        ----------
        name : str
            A field of `PartTimings` of seconds.
        """
        now, cpu = time.perf_counter(), time.process_time()
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._lap
        self._cpu[name] = self._cpu.get(name, 0.0) + cpu - self._cpu_lap
        self._lap, self._cpu_lap = now, cpu

    def spent(self) -> PartTimings:
        """Add up."""
        return PartTimings(**self._seconds, cpu=sum(self._cpu.values()) - self._cpu.get("reading", 0.0), peak=find_peak())


def find_peak() -> int:
    """Look up the most memory that this process has held, or, where the system does not tell, what it holds now.

    Returns
    -------
    int
        Bytes.
    """
    try:
        with open(STATUS, encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(PEAK):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return psutil.Process().memory_info().rss


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@contextmanager
def measure_usage(found: list[ResourceUsage]) -> Iterator[None]:
    """Measure what a piece of work takes.

    Parameters
    ----------
    found : list of ResourceUsage
        Gets one more.
    """
    moved, cpu, began = find_moved(), _cpu_seconds(), time.perf_counter()
    yield
    now: Moved = find_moved()
    found.append(ResourceUsage(time.perf_counter() - began, _cpu_seconds() - cpu, now.read - moved.read, now.written - moved.written))
