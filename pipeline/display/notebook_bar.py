"""A progress bar in a notebook, for calls that take longer than a person waits without asking."""

import sys
import threading
import time
from html import escape
from typing import Any

SECONDS = 2.0  # before which there is none,
EVERY = 0.3  # and between two of its changes


class NotebookBar:
    """Shows in a notebook how much of a call's work is done, once it takes a while, until its block ends; elsewhere nothing.

    Parameters
    ----------
    n : int
        Pieces of work.
    title : str
        What is done.
    """

    def __init__(self, n: int, title: str) -> None:
        self._n, self._title, self._began = n, title, time.monotonic()
        self._show = _find_display() if n > 1 else None
        self._shown, self._last = None, self._began

    def __enter__(self) -> "NotebookBar":
        return self

    def __exit__(self, *raised: object) -> None:
        """Take the bar away, also where the call is interrupted."""
        if self._shown is not None:
            self._shown.update({"text/html": "", "text/plain": ""}, raw=True)

    def __call__(self, n_done: int) -> None:
        """Say how many pieces are done."""
        now = time.monotonic()
        if self._show is None or n_done >= self._n or now - self._began < SECONDS or now - self._last < EVERY:
            return
        left = (now - self._began) / n_done * (self._n - n_done)
        said = f"{self._title}: {n_done / self._n:.0%}, about {left:,.0f} s left"
        drawn = {"text/html": f'<progress value="{n_done}" max="{self._n}"></progress> {escape(said)}', "text/plain": said}
        self._last = now
        if self._shown is None:
            self._shown = self._show(drawn, raw=True, display_id=True)
        else:
            self._shown.update(drawn, raw=True)


def _find_display() -> Any:
    """Return IPython's display function, if this is the thread of a notebook's cell."""
    ipython = sys.modules.get("IPython")
    if ipython is None or threading.current_thread() is not threading.main_thread():
        return None
    return ipython.display.display if hasattr(ipython.get_ipython(), "kernel") else None
