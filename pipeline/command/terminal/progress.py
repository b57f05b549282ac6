"""Progress of commands: a bar on a terminal, or lines in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ...dataset.files.listing import Rejected, WorkItem
from ...progress import Progress as Watch
from ...progress import Work, no_progress
from ...runs.records.part import Part
from .terminal import is_logged, log


def _how(done: Part | Rejected | WorkItem) -> str:
    if isinstance(done, Rejected):
        return f" rejected: {done.reason}"
    if isinstance(done, WorkItem):
        return ""
    return f", {done.n_rows / done.seconds:,.0f} rows/s" if done.seconds else ", was done before"


def _is_another(done: Part | Rejected | WorkItem, before: int | None) -> bool:
    """Return whether it is of another part than the piece before; rejected files of a part follow it one by one."""
    return not isinstance(done, Rejected) or done.part != before


def log_lines(work: Work) -> Callable[[Part | Rejected | WorkItem], None]:
    """Write a line per piece on standard error, for jobs without a terminal."""
    n_done, n_rows = 0, 0
    before: int | None = None
    if work.where or not work.n_items:
        log(work.said)

    def on_done(done: Part | Rejected | WorkItem) -> None:
        nonlocal n_done, n_rows, before
        n_done += _is_another(done, before)
        before = done.part
        n_rows += done.n_rows or 0
        line = f"{work.doing}: part {done.part}: {done.n_rows} rows{_how(done)}; {n_done} of {work.n_items} parts, {n_rows} of {work.n_rows} rows"
        log(line)

    return on_done


class Bar:
    """A progress bar with parts, rows per second, and time left; a context manager around the run."""

    def __init__(self, console: Console, transient: bool = False):
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("parts, {task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
            transient=transient,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        self._task = self._progress.add_task("loading", total=None, speed="")
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, work: Work) -> Callable[[Part | Rejected | WorkItem], None]:
        speed = "starting" if work.n_items else ""
        self._progress.reset(self._task, description=work.said, total=work.n_items or None, speed=speed)
        started, n_rows = time.perf_counter(), 0
        before: int | None = None

        def on_done(done: Part | Rejected | WorkItem) -> None:
            nonlocal n_rows, before
            n_rows += done.n_rows or 0
            speed = f"{n_rows / (time.perf_counter() - started):,.0f} rows/s"
            self._progress.update(self._task, advance=_is_another(done, before), speed=speed)
            before = done.part

        return on_done


@contextmanager
def watched(quiet: bool, transient: bool = False) -> Iterator[Watch]:
    """Show progress of a command: a bar on a terminal, otherwise lines.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    transient : bool
        The bar goes when all is done.

    Yields
    ------
    callable
        As ``progress`` of `explain`.
    """
    if quiet:
        yield no_progress
    elif is_logged() or not sys.stderr.isatty():
        yield log_lines
    else:
        with Bar(Console(stderr=True), transient) as bar:
            yield bar
