"""Progress of commands: a bar on a terminal, or lines in a log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from ...dataset.files.listing import Rejected, WorkItem
from ...progress import Progress as Watch
from ...progress import Work, no_progress
from ...runs.records.part import Part
from .pace import Pace
from .terminal import is_logged, log


def _how(done: Part | Rejected | WorkItem) -> str:
    if isinstance(done, Rejected):
        return f" rejected: {done.reason}"
    if isinstance(done, WorkItem):
        return ""
    return f", {done.n_rows / done.seconds:,.0f} rows/s" if done.seconds else ", was done before"


def log_lines(work: Work) -> Callable[[Part | Rejected | WorkItem], None]:
    """Write a line per piece on standard error, for jobs without a terminal."""
    pace = Pace(work)
    if work.where or not work.n_items:
        log(work.said)

    def on_done(done: Part | Rejected | WorkItem) -> None:
        pace.add(done)
        how = f"part {done.part}: {done.n_rows} rows{_how(done)}"
        log(f"{work.doing}: {how}; {pace.n_done} of {work.n_items} parts, {pace.n_rows} of {work.n_rows} rows, {pace}")

    return on_done


class _PaceColumn(ProgressColumn):
    """Rows done in per cent, rows per second, and the time left, which goes on between parts."""

    max_refresh = 0.5  # seconds

    def render(self, task: Task) -> Text:
        """Show the pace of the work that is under way."""
        pace: Pace | None = task.fields["pace"]
        if pace is None:
            return Text("")
        speed = "starting" if pace.speed is None else f"{pace.speed:,.0f} rows/s"
        return Text(f"{speed}, {pace}")


class Bar:
    """A progress bar with parts, rows per second, per cent, and time left; a context manager around the run."""

    def __init__(self, console: Console, transient: bool = False):
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("parts,"),
            _PaceColumn(),
            console=console,
            transient=transient,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        self._task = self._progress.add_task("loading", total=None, pace=None)
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def __call__(self, work: Work) -> Callable[[Part | Rejected | WorkItem], None]:
        pace = Pace(work)
        self._progress.reset(self._task, description=work.said, total=work.n_items or None, pace=pace if work.n_items else None)

        def on_done(done: Part | Rejected | WorkItem) -> None:
            pace.add(done)
            self._progress.update(self._task, completed=pace.n_done)

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
