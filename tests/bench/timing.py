"""Contenders timed in turns, so that whatever else the machine does falls on all of them alike."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MIN_SECONDS = 0.05  # a shorter call is made several times over, on the same rows


@dataclass(frozen=True, slots=True)
class Contender:
    """Something that works through ``n_rows`` rows when called."""

    name: str
    threads: int
    n_rows: int
    call: Callable[[], object]


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


def _times(call: Callable[[], object]) -> int:
    """How often to make a call in a repeat. The first one is not counted: kernels compile, caches fill."""
    call()
    return max(1, math.ceil(MIN_SECONDS / clock(call)))


def race(contenders: Sequence[Contender], repeats: int, warm: bool = True) -> list[Speed]:
    """Time every contender once per round, after a call that does not count where ``warm``."""
    times = [_times(contender.call) if warm else 1 for contender in contenders]
    rounds = [[clock(contender.call, n) for contender, n in zip(contenders, times, strict=True)] for _ in range(repeats)]
    speeds = []
    for contender, seconds in zip(contenders, zip(*rounds, strict=True), strict=True):
        median = statistics.median(seconds)
        spread = (max(seconds) - min(seconds)) / median if repeats > 1 else None
        speeds.append(Speed(contender.name, contender.threads, contender.n_rows, median, spread))
    return speeds
