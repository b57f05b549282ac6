"""A card's memory: tables of a few values, and rooms that a slice takes, as many as fit; threads that find none wait.

What a slice needs is known before anything is sent, and the card says what it has free. What is kept for later gives way where there is too little:
rooms that nobody has, then tables, the longest unused first.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..errors import NoRoom
from .decorator import ask_memory, cuda
from .tables import Jobs, send

KEPT = 4  # values whose tables stay on the card
SPARE = 1 / 16, 1 << 30  # memory that is left to the driver, for stacks and code: a part of all, and at most so many bytes


class Room(NamedTuple):
    """What a slice takes on the card."""

    stream: Any
    there: Any  # (words,) float64, on the card
    here: np.ndarray  # (words,) float64, page-locked, from where and to where copies go


def _find_shortage(tables: int, of_slice: int) -> str:
    """Say how many bytes are needed, and how many are free, if these are fewer."""
    if not tables + of_slice:
        return ""
    free, total = ask_memory()
    free -= min(SPARE[0] * total, SPARE[1])
    if tables + of_slice <= free:
        return ""
    sizes = (max(free, 0.0), tables + of_slice, tables, of_slice)
    return "the card has {:,.1f} MiB to spare, expected {:,.1f}: tables {:,.1f}, a slice of rows {:,.1f}".format(*(n / 2**20 for n in sizes))


class Memory:
    """What is on the card for the threads of this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._kept: list[tuple[Any, list[Jobs]]] = []  # what tables are of, and tables; the last used last
        self._rooms: list[Room] = []  # that nobody has
        self._n_out = 0  # rooms that somebody has

    def use(self, key: Any, lay_out: Callable[[], list[Jobs]], n_words: int, work: Callable[[list[Jobs], Room], None]) -> None:
        """Call ``work`` with the tables of ``key`` and a room of so many words or more, perhaps when others are done; refuse what does not fit."""
        tables, room = self._enter(key, lay_out, n_words)
        try:
            work(tables, room)
        finally:
            with self._changed:
                self._rooms.append(room)
                self._n_out -= 1
                del tables, room  # before others ask what is free
                self._changed.notify_all()

    def _enter(self, key: Any, lay_out: Callable[[], list[Jobs]], n_words: int) -> tuple[list[Jobs], Room]:
        laid_out: list[Jobs] | None = None
        with self._changed:
            while True:
                missing = not any(known is key for known, _ in self._kept)
                laid_out = (laid_out or lay_out()) if missing else None
                tables = sum(job.n_bytes for jobs in laid_out or () for job in jobs)
                shortage = _find_shortage(tables, 8 * n_words * (self._find_room(n_words) is None))
                if not shortage:
                    break
                if self._let_go(key, n_words):
                    continue
                if not self._n_out:
                    raise NoRoom(shortage)
                self._changed.wait()
            if laid_out is not None:
                self._kept.append((key, [send(jobs) for jobs in laid_out]))
                del self._kept[:-KEPT]
            self._kept.sort(key=lambda kept: kept[0] is key)
            room = self._find_room(n_words) or Room(cuda.stream(), cuda.device_array(n_words, np.float64), cuda.pinned_array(n_words, np.float64))
            self._rooms = [other for other in self._rooms if other is not room]
            self._n_out += 1
            return self._kept[-1][1], room

    def _find_room(self, n_words: int) -> Room | None:
        return next((room for room in self._rooms if room.here.size >= n_words), None)

    def _let_go(self, key: Any, n_words: int) -> bool:
        """Let go rooms that are not needed now, or the longest unused tables, or a room that is too large; return whether there was any."""
        room = self._find_room(n_words)
        idle, others = [other for other in self._rooms if other is not room], [kept for kept in self._kept if kept[0] is not key]
        too_large = room is not None and room.here.size > n_words
        if idle:
            self._rooms = [] if room is None else [room]
        elif others:
            self._kept = [kept for kept in self._kept if kept is not others[0]]
        elif too_large:
            self._rooms = []
        return bool(idle or others or too_large)


MEMORY = Memory()
