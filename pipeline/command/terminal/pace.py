"""How far work is, and how long the rest of it may take: estimates that are left out where there is nothing to go by."""

import time
from collections.abc import Callable

from ...dataset.files.listing import Rejected, WorkItem
from ...progress import Work
from ...runs.records.part import Part

LEAST_SECONDS = 3.0  # of work before an estimate
SECOND_TURN = 1.8  # times the first piece's, before an estimate
UNITS = ((48 * 3600.0, 86400.0, "d"), (90 * 60.0, 3600.0, "h"), (90.0, 60.0, "min"))  # from how many seconds on, a unit's seconds, its name


class Pace:
    """Rows done of a piece of work, and the speed of those that were not done before.

    Parts of an earlier attempt are passed over in no time, so that neither they nor the time until then say how fast the others are. Several threads
    or workers finish their first pieces at about the same time: an estimate waits for about twice the time of the first, when others are done too.

    Parameters
    ----------
    work : Work
    clock : callable
        Seconds.

    Attributes
    ----------
    n_done, n_rows : int
        Parts, and rows of them, also of earlier attempts and rejected ones.
    """

    def __init__(self, work: Work, clock: Callable[[], float] = time.monotonic):
        self.work, self._clock = work, clock
        self.n_done = self.n_rows = self._made_rows = self._n_made = 0
        self._began = self._last = clock()
        self._first = 0.0  # seconds until the first piece
        self._part: int | None = None

    def add(self, done: Part | Rejected | WorkItem) -> None:
        """Count a piece; rejected files of a part follow it one by one, and are no part."""
        self.n_done += not isinstance(done, Rejected) or done.part != self._part
        self._part = done.part
        self.n_rows += done.n_rows or 0
        now = self._clock()
        if isinstance(done, WorkItem) or (isinstance(done, Part) and done.seconds):
            self._made_rows += done.n_rows
            self._n_made += 1
            self._last = now
            if self._n_made == 1:
                self._first = now - self._began
        elif not self._n_made:
            self._began = self._last = now

    @property
    def percent(self) -> int:
        """Rows done, or pieces where there are no rows; 100 only if all are."""
        done, of = (self.n_rows, self.work.n_rows) if self.work.n_rows else (self.n_done, self.work.n_items)
        return min(100, 100 * done // of) if of else 100

    @property
    def speed(self) -> float | None:
        """Rows per second of those that were not done before; None before the first."""
        seconds = self._last - self._began
        return self._made_rows / seconds if self._made_rows and seconds > 0 else None

    @property
    def left(self) -> float | None:
        """Seconds that the rest may take; None where that is not known yet, longer than was estimated, or nothing is left."""
        now, speed, rows = self._clock(), self.speed, self.work.n_rows - self.n_rows
        seconds = now - self._began
        if speed is None or rows <= 0 or self._n_made < 2 or seconds < max(LEAST_SECONDS, SECOND_TURN * self._first):
            return None
        left = rows / speed - (now - self._last)
        return left if left > 0 else None

    def __str__(self) -> str:
        """Such as ``42%, about 3 min left``."""
        left = self.left
        return f"{self.percent}%" + ("" if left is None else f", about {write_seconds(left)} left")


def write_seconds(seconds: float) -> str:
    """Write a duration with the precision of an estimate, as ``40 s``, ``3 min`` or ``2 h``."""
    for least, unit, name in UNITS:
        if seconds >= least:
            return f"{seconds / unit:.0f} {name}"
    return f"{max(1, round(seconds)) if seconds < 10 else 5 * round(seconds / 5)} s"
