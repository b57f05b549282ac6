"""Where the command writes: lines and tables as plain text, and streams that cost what is shown, never the run, where they cannot be written."""

import errno
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.table import Table

from ...display.text import printable
from ...errors import redact

WIDEST = 400  # characters of a table


class Stream:
    """A standard stream that may be closed, full, a pipe that nobody reads, or of an encoding that lacks characters."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream
        self.lost: OSError | None = None  # the first thing that could not be written
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write, or lose what cannot be written.

        Parameters
        ----------
        text : str

        Returns
        -------
        int
            Characters.
        """
        self._try("write", text)
        return len(text)

    def flush(self) -> None:
        """Write what is held back, or lose it."""
        self._try("flush")

    def isatty(self) -> bool:
        """Tell whether a person looks on.

        Returns
        -------
        bool
        """
        return self._stream is not None and not self._stream.closed and self._stream.isatty()

    def _try(self, operation: str, *arguments: str) -> None:
        if self._stream is None or self._stream.closed or self.lost is not None:
            return
        try:
            getattr(self._stream, operation)(*arguments)
        except OSError as error:
            self.lost = error
            self._discard()

    def _discard(self) -> None:
        """Let what the stream still holds go nowhere, or Python would try again when it ends, and end with an exit code of its own."""
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
        except (OSError, AttributeError):  # it has no descriptor
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _fill_descriptors() -> None:
    """Open what is closed of the three standard streams: the next file would get its number, and what libraries write to it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest that is free


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Let standard output and standard error be Streams for a while; what could not be written is said on the other one at the end.

    Yields
    ------
    None
    """
    _fill_descriptors()
    held = sys.stdout, sys.stderr
    out, err = Stream(held[0]), Stream(held[1])
    sys.stdout, sys.stderr = out, err
    try:
        yield
    finally:
        out.flush()
        if out.lost is not None and out.lost.errno != errno.EPIPE:  # whoever closed a pipe has seen enough
            complain(f"standard output: cannot write: {out.lost.strerror}")
        err.flush()
        sys.stdout, sys.stderr = held


def open_console(quiet: bool = False) -> Console:
    """Open standard output for tables and lines, in which nothing is markup.

    Parameters
    ----------
    quiet : bool
        Show nothing.

    Returns
    -------
    rich.console.Console
    """
    return Console(file=sys.stdout, quiet=quiet, markup=False, emoji=False)


def print_whole(console: Console, table: Table) -> None:
    """Print a table as wide as it needs to be, up to WIDEST characters: names that do not wrap, or numbers, leave the others no room.

    Parameters
    ----------
    console : rich.console.Console
        It stays as wide.
    table : rich.table.Table
    """
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=WIDEST)).maximum)
    console.print(table)


def say(console: Console, line: str) -> None:
    """Show a line, whatever stands in it.

    Parameters
    ----------
    console : rich.console.Console
        As `open_console` opens it.
    line : str
    """
    console.print(printable(line), soft_wrap=True, highlight=False)


def write_raw(text: str) -> None:
    """Write a text as it is on standard output.

    Parameters
    ----------
    text : str
    """
    sys.stdout.write(text)


@dataclass(frozen=True, slots=True)
class Log:
    """How lines on standard error are written."""

    form: Literal["text", "json"] | None = None  # None as people read them, without time, level and run
    run: str = ""


PLAIN = Log()
_LOG: ContextVar[Log] = ContextVar("log", default=PLAIN)


def is_logged() -> bool:
    """Tell whether lines on standard error are those of a log.

    Returns
    -------
    bool
    """
    return _LOG.get().form is not None


@contextmanager
def logged(how: Log) -> Iterator[None]:
    """Write lines on standard error otherwise for a while, those of warnings too where they are those of a log.

    Parameters
    ----------
    how : Log

    Yields
    ------
    None
    """
    before = _LOG.set(how)
    try:
        with nullcontext() if how.form is None else warnings.catch_warnings():
            if how.form is not None:
                warnings.showwarning = _log_warning
            yield
    finally:
        _LOG.reset(before)


@contextmanager
def named(run: str) -> Iterator[None]:
    """Say in the log which run its lines are about, for a while.

    Parameters
    ----------
    run : str

    Yields
    ------
    None
    """
    with logged(replace(_LOG.get(), run=run)):
        yield


def _log_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    log(f"{category.__name__}: {message}", "warning")


def complain(line: str, level: str = "warning") -> None:
    """Write a line on standard error, under the command's name where it is not one of a log.

    Parameters
    ----------
    line : str
    level : str
        ``warning`` or ``error``.
    """
    log(line if is_logged() else f"leafledger: {line}", level)


def log(line: str, level: str = "info") -> None:
    """Write a line on standard error.

    Parameters
    ----------
    line : str
    level : str
        ``info``, ``warning`` or ``error``.
    """
    if sys.stderr is not None:  # or print would take standard output
        print(_as_logged(line, level), file=sys.stderr, flush=True)  # noqa: T201 - where a command's log and errors go


def _as_logged(line: str, level: str) -> str:
    """A line as it is written, without credentials: it may be about arguments that were not read yet, or that somebody else refused."""
    how, time = _LOG.get(), datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line, run = redact(line), redact(how.run)
    if how.form is None:
        return printable(line)
    if how.form == "json":
        return json.dumps({"time": time, "level": level, "run": run, "message": line})
    return printable(f"{time} {level.upper()} {run or '-'} {line}")
