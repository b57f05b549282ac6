"""Contenders timed in turns, so that whatever else the machine does falls on all of them alike."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

MIN_SECONDS = 0.05  # a shorter call is made several times over, on the same rows
SLOW_SECONDS = 8.0  # a longer one is made once, and its first time counts


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that works through ``n_rows`` rows when called. Called before, it took ``first`` seconds, its only time where that is long."""

    name: str
    threads: int
    n_rows: int
    call: Callable[[], object]
    first: float | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured of a contender. ``spread`` is the slowest repeat minus the fastest, as a fraction of the median; None of one repeat."""

    name: str
    threads: int
    n_rows: int
    seconds: float  # median
    spread: float | None

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.n_rows / self.seconds


def clock(call: Callable[[], object], times: int = 1) -> float:
    """Seconds of one call, averaged over some."""
    started = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - started) / times


def size(name: str, threads: int, make: Callable[[int], Callable[[], object]], least: int, most: int, seconds: float) -> Contender:
    """A contender on as many rows as take it about ``seconds``: ``make(n)`` is the call on the first ``n``, doubled from ``least`` up to ``most``."""
    n_rows, spent = min(least, most), 0.0
    with threadpool_limits(threads):
        while True:
            call = make(n_rows)
            spent = clock(call)
            if spent >= seconds / 2 or n_rows == most:
                return Contender(name, threads, n_rows, call, spent)
            n_rows = min(most, n_rows * max(2, 1 << int(math.log2(seconds / 2 / spent))))


def _times(contender: Contender) -> int:
    """How often to make a call in a repeat. The first one is not counted: kernels compile, caches fill."""
    seconds = contender.first
    if seconds is None:
        with threadpool_limits(contender.threads):
            contender.call()
            seconds = clock(contender.call)
    return max(1, math.ceil(MIN_SECONDS / seconds))


def _clock_alone(contender: Contender, times: int) -> float:
    with threadpool_limits(contender.threads):
        return clock(contender.call, times)


def race(contenders: Sequence[Contender], repeats: int, warm: bool = True, slow: float = SLOW_SECONDS) -> list[Speed]:
    """Time every contender once per round, after a call that does not count where ``warm``; of those that took ``slow`` seconds, the first counts."""
    times = [_times(contender) if warm else 1 for contender in contenders]
    seconds: list[list[float]] = [[] for _ in contenders]
    for _ in range(repeats):
        for contender, n, found in zip(contenders, times, seconds, strict=True):
            if (contender.first or 0.0) <= slow:
                found.append(_clock_alone(contender, n))
    speeds = []
    for contender, repeated in zip(contenders, seconds, strict=True):
        found = repeated or [contender.first]
        median = statistics.median(found)
        spread = (max(found) - min(found)) / median if len(found) > 1 else None
        speeds.append(Speed(contender.name, contender.threads, contender.n_rows, median, spread))
    return speeds
