"""Threads of this process: an item each, and slices of items where there are fewer items than threads."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

from . import resources

S = TypeVar("S")  # a slice of an item, such as a batch of rows
T = TypeVar("T")  # what is made of it
W = TypeVar("W")  # one or several work items

AHEAD = 2  # items beyond one for each thread: they wait for a thread, or for a store while threads compute


class GivenUp(Exception):
    """The work that a thread takes part in has failed elsewhere, or was interrupted."""


class Threads:
    """Threads that do items, and help each other with slices once there are fewer items left than threads.

    Parameters
    ----------
    n_threads : int
        At least 1.
    far : bool
        Items are read from a store that is slow to answer, or written to one: AHEAD more of them are begun, so that threads compute meanwhile.
    """

    def __init__(self, n_threads: int, far: bool = False):
        self._n_threads, self._lock = n_threads, threading.Lock()
        self._left = self._lent = 0  # items that are not done, and threads that help with slices
        self._given_up = False
        self._items = ThreadPoolExecutor(n_threads + AHEAD * far, "leafledger-item")
        self._slices = ThreadPoolExecutor(n_threads, "leafledger-slice")

    def map(self, work: Callable[[W], T], items: Sequence[W]) -> Iterator[tuple[W, T]]:
        """Do every item on a thread, or in turn on the calling one where there is no other; the first failure gives up the rest.

        Parameters
        ----------
        work : callable
            Called with each item. It may share the item's slices by `in_order`.

        Yields
        ------
        item : WorkItem, Bundle or PartGroup
            In the order in which they are done.
        made : Any
            What ``work`` returned.
        """
        if self._n_threads == 1:
            yield from ((item, work(item)) for item in items)
            return
        self._left, ahead, running = len(items), iter(items), dict[Future[T], W]()

        def submit(n: int) -> None:
            for item in islice(ahead, n):
                future = self._items.submit(work, item)
                future.add_done_callback(self._finish)
                running[future] = item

        try:
            submit(self._n_threads + AHEAD)
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in [each for each in running if each in done]:  # in the order of items
                    submit(1)
                    yield running.pop(future), future.result()
        finally:
            self._given_up = True
            self._items.shutdown(cancel_futures=True)
            self._slices.shutdown(cancel_futures=True)

    def in_order(self, work: Callable[[S], T], slices: Iterable[S]) -> Iterator[T]:
        """Do the slices of an item, and yield what is made of them in order, as ``map`` does; called on the item's thread.

        While threads have no item, they work on slices, and the item's thread reads and writes.

        Raises
        ------
        GivenUp
            Another item failed, or the process is being interrupted.
        """
        waiting = deque[Future[T]]()
        try:
            for each in slices:
                if self._given_up:
                    raise GivenUp
                while not (helped := self._borrow()) and waiting:
                    yield waiting.popleft().result()
                if not helped:
                    yield work(each)
                    continue
                waiting.append(self._slices.submit(work, each))
                waiting[-1].add_done_callback(self._give_back)
                while waiting and (waiting[0].done() or len(waiting) > self._n_threads // max(1, self._left)):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _borrow(self) -> bool:
        """Take a thread that has no item, if there is one."""
        with self._lock:
            free = self._left > 0 and self._left + self._lent < self._n_threads
            self._lent += free
            return free

    def _give_back(self, _: Future) -> None:
        with self._lock:
            self._lent -= 1

    def _finish(self, _: Future) -> None:
        with self._lock:
            self._left -= 1


def do_all(work: Callable[[W], T], items: Sequence[W], n_threads: int | None = None, on_done: Callable[[int], None] = lambda _: None) -> list[T]:
    """Do every item, on one thread per core unless told otherwise; the results in the order of the items. The first failure gives up the rest.

    ``on_done`` is told, on the calling thread, how many are done.
    """
    if len(items) <= 1:
        n_threads = 1
    elif n_threads is None:
        n_threads = min(resources.count_cores(), len(items))
    made = dict[int, T]()
    for place, result in Threads(n_threads).map(lambda place: work(items[place]), range(len(items))):
        made[place] = result
        on_done(len(made))
    return [made[place] for place in range(len(items))]
