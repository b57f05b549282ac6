"""The signal by which whoever runs commands asks one to end: systemd, Slurm, Kubernetes, `kill`."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM came; libraries take it as they take Ctrl-C."""


def _raise(_number: int, _frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # whoever sends another one does not want to wait
    raise Terminated


@contextmanager
def heeding_sigterm() -> Iterator[None]:
    """Raise Terminated where SIGTERM comes, so that metrics and lineage say how it ended, and the first process of a container ends at all.

    Without it the process is gone at once, but for one that is the first in a container, which the signal does not reach.

    Yields
    ------
    None
        Nothing is changed where a program that calls the command has a way of its own, or in a thread beside the main one.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
