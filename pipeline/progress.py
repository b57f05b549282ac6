"""What a person or a log sees of a run while it works."""

import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from .part import Part
from .run import Run


def silent(run: Run) -> Callable[[Part], None]:  # noqa: ARG001 - the shape of a watcher
    """Say nothing."""
    return lambda part: None


def log_lines(run: Run) -> Callable[[Part], None]:
    """A line per part on standard error, for jobs without a terminal."""
    done = [0, 0]

    def said(part: Part) -> None:
        done[0] += 1
        done[1] += part.n_rows
        how = f"{part.n_rows / part.seconds:,.0f} rows/s" if part.seconds else "was done before"
        line = f"part {part.part}: {part.n_rows} rows, {how}; {done[0]} of {len(run.plan.items)} parts, {done[1]} of {run.plan.n_rows} rows"
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - the log of a job

    return said


class Bar:
    """A progress bar on the terminal: parts, rows per second, time left. Enter it around the run."""

    def __init__(self, console: Console):
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("parts, {task.fields[speed]}"),
            TimeRemainingColumn(),
            console=console,
        )

    def __enter__(self):
        self._progress.start()
        self._task = self._progress.add_task("loading", total=None, speed="")
        return self

    def __exit__(self, *_):
        self._progress.stop()

    def __call__(self, run: Run) -> Callable[[Part], None]:
        self._progress.update(self._task, description="explaining", total=len(run.plan.items), speed="starting workers")
        started, rows = time.perf_counter(), [0]

        def said(part: Part) -> None:
            rows[0] += part.n_rows
            speed = f"{rows[0] / (time.perf_counter() - started):,.0f} rows/s"
            self._progress.update(self._task, advance=1, speed=speed)

        return said
