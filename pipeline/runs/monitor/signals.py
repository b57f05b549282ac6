"""SIGTERM as an exception, sent by systemd, Slurm, Kubernetes and ``kill``, so that what a run has to say at its end is said."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived; libraries handle it as Ctrl-C."""


def _raise(_number: int, _frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second SIGTERM ends the process at once
    raise Terminated


def _is_free() -> bool:
    """Return whether nobody has a way of his own with SIGTERM, and this thread may choose one."""
    return threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@contextmanager
def heeding_sigterm() -> Iterator[None]:
    """Raise Terminated on SIGTERM, so that metrics and lineage record the end, and a container's first process ends.

    By default the process ends at once, except a container's first process, which ignores the signal.

    Yields
    ------
    None
        Nothing is changed where a program that calls the command has a way of its own, or in a thread beside the main one.
    """
    if not _is_free():
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def passing_sigterm_on() -> Iterator[None]:
    """Raise Terminated on SIGTERM inside the context, and end the process by the signal afterwards, as it would have without.

    For a program that calls Python and has no way of its own; the command has one.

    Yields
    ------
    None
    """
    mine = _is_free()
    try:
        with heeding_sigterm():
            yield
    except Terminated:
        if mine:
            signal.raise_signal(signal.SIGTERM)
        raise
