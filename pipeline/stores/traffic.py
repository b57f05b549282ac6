"""Counters of this process: bytes read from and written to stores, and retries."""

import threading
from typing import NamedTuple


class Moved(NamedTuple):
    """Sums over a while."""

    read: int = 0  # bytes that were asked for, of files and objects
    written: int = 0  # bytes of files and objects that were published
    retried: int = 0  # operations and work items that were tried again; what clients of stores try again by themselves does not count


_lock = threading.Lock()
_total, _taken = Moved(), Moved()


def add(first: Moved, second: Moved) -> Moved:
    """Add sums up."""
    return Moved(*(mine + other for mine, other in zip(first, second, strict=True)))


def count_moved(read: int = 0, written: int = 0, retried: int = 0) -> None:
    """Count something, from any thread.

    Parameters
    ----------
    read, written : int
        Bytes.
    """
    global _total
    with _lock:
        _total = add(_total, Moved(read, written, retried))


def find_moved() -> Moved:
    """Look up what was moved since this process began."""
    return _total


def take_moved() -> Moved:
    """Take what was moved since it was last taken, so that sums of what is taken, by whatever thread, hold everything once."""
    global _taken
    with _lock:
        before, _taken = _taken, _total
        return Moved(*(now - then for now, then in zip(_taken, before, strict=True)))
