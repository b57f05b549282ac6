"""Time, CPU, memory and traffic of a piece of work."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ..stores.traffic import Moved, find_moved

STATUS, PEAK = "/proc/self/status", "VmHWM:"  # Linux


class PartTimings(NamedTuple):
    """Seconds spent on a part."""

    reading: float = 0.0
    kernel: float = 0.0  # from raw values to checked and summarised attributions, including buffers
    writing: float = 0.0
    publishing: float = 0.0  # writing and digesting the object
    cpu: float = 0.0  # of the process with all threads, except while reading
    peak: int = 0  # peak memory of the process so far, in bytes

    def publish(self, seconds: float, cpu: float) -> "PartTimings":
        """Add the time after the part was written.

        Parameters
        ----------
        seconds : float
            That the part took in all.
        cpu : float
            Of the process since it was written.

        Returns
        -------
        PartTimings
            Which adds up to these seconds.
        """
        return self._replace(publishing=seconds - self.reading - self.kernel - self.writing, cpu=self.cpu + cpu)


class ResourceUsage(NamedTuple):
    """Resources used by a piece of work."""

    seconds: float = 0.0
    cpu: float = 0.0  # seconds, of this process and of finished children
    read: int = 0  # bytes
    written: int = 0


class Stopwatch:
    """A stopwatch for one thread that adds up time by name."""

    def __init__(self) -> None:
        self._lap, self._cpu_lap = time.perf_counter(), time.process_time()
        self._seconds: dict[str, float] = {}
        self._cpu: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """Record the time since the last lap.

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
        """Return the timings."""
        return PartTimings(**self._seconds, cpu=sum(self._cpu.values()) - self._cpu.get("reading", 0.0), peak=find_peak())


def find_peak() -> int:
    """Return the process's peak memory, or its current memory if the system does not report peaks.

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
    import psutil

    return psutil.Process().memory_info().rss


def _cpu_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@contextmanager
def measure_usage(found: list[ResourceUsage]) -> Iterator[None]:
    """Measure the resources used inside the context.

    Parameters
    ----------
    found : list of ResourceUsage
        Gets one more.
    """
    moved, cpu, began = find_moved(), _cpu_seconds(), time.perf_counter()
    yield
    now: Moved = find_moved()
    found.append(ResourceUsage(time.perf_counter() - began, _cpu_seconds() - cpu, now.read - moved.read, now.written - moved.written))
