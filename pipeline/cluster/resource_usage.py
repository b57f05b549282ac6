"""Time, CPU, memory and traffic of a piece of work."""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from ..stores.traffic import Moved, find_moved

T = TypeVar("T")

STATUS, PEAK = "/proc/self/status", "VmHWM:"  # Linux


class PartTimings(NamedTuple):
    """Seconds spent on a part, of all threads that worked on it."""

    reading: float = 0.0
    kernel: float = 0.0  # from raw values to checked and summarised attributions, including buffers
    writing: float = 0.0
    publishing: float = 0.0  # writing and digesting the object
    cpu: float = 0.0  # of the threads that worked on it, except while reading
    peak: int = 0  # peak memory of the process so far, in bytes

    def add(self, later: "PartTimings") -> "PartTimings":
        """Add the timings of further work."""
        added = {name: getattr(self, name) + getattr(later, name) for name in ("reading", "kernel", "writing", "publishing", "cpu")}
        return PartTimings(**added, peak=max(self.peak, later.peak))


class ResourceUsage(NamedTuple):
    """Resources used by a piece of work."""

    seconds: float = 0.0
    cpu: float = 0.0  # seconds, of this process and of finished children
    read: int = 0  # bytes
    written: int = 0


class Stopwatch:
    """A stopwatch that adds up time by name, of several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds, self._cpu = defaultdict[str, float](float), defaultdict[str, float](float)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Measure what the calling thread does inside the context.

        Parameters
        ----------
        name : str
            A field of `PartTimings` of seconds.
        """
        began, cpu = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            with self._lock:
                self._seconds[name] += time.perf_counter() - began
                self._cpu[name] += time.thread_time() - cpu

    def iterate(self, name: str, values: Iterable[T]) -> Iterator[T]:
        """Measure how long values take to come."""
        iterator = iter(values)
        with suppress(StopIteration):
            while True:
                with self.timed(name):
                    value = next(iterator)
                yield value

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
