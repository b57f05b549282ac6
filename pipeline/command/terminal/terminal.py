"""Output of commands: plain lines and tables, logs, and streams that survive closed or full outputs."""

import errno
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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
    """A standard stream that survives being closed, full, without a reader, or of a limited encoding."""

    def __init__(self, stream: TextIO | None):
        self._stream = stream
        self.lost: OSError | None = None  # the first write error
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write a text, and record what cannot be written.

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
        """Flush the buffer, or record the error."""
        self._try("flush")

    def isatty(self) -> bool:
        """Return whether the stream is a terminal.

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
        """Discard the stream's buffer, since Python would retry at exit and end with its own exit code."""
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
        except (OSError, AttributeError):  # without a file descriptor
            pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _fill_descriptors() -> None:
    """Open closed standard streams, since the next opened file would get their number, and libraries' output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Replace standard output and error by Streams; write errors of one are reported on the other at the end.

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
        if out.lost is not None and out.lost.errno != errno.EPIPE:  # a closed pipe is no error
            complain(f"standard output: cannot write: {out.lost.strerror}")
        err.flush()
        sys.stdout, sys.stderr = held


def open_console(quiet: bool = False) -> Console:
    """Open standard output for tables and lines without markup.

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
    """Print a table in its full width, up to WIDEST characters: names that cannot wrap leave no room for others.

    Parameters
    ----------
    console : rich.console.Console
        It stays as wide.
    table : rich.table.Table
    """
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=WIDEST)).maximum)
    console.print(table)


def say(console: Console, line: str) -> None:
    """Print a line without interpretation.

    Parameters
    ----------
    console : rich.console.Console
        As `open_console` opens it.
    line : str
    """
    console.print(printable(line), soft_wrap=True, highlight=False)


def write_raw(text: str) -> None:
    """Write a text unchanged on standard output.

    Parameters
    ----------
    text : str
    """
    sys.stdout.write(text)


@dataclass(frozen=True, slots=True)
class Log:
    """Format of lines on standard error."""

    form: Literal["text", "json"] | None = None  # None for plain lines, without time, level and run
    run: str = ""


PLAIN = Log()
_LOG: ContextVar[Log] = ContextVar("log", default=PLAIN)


def is_logged() -> bool:
    """Return whether lines on standard error are log records.

    Returns
    -------
    bool
    """
    return _LOG.get().form is not None


@contextmanager
def logged(how: Log) -> Iterator[None]:
    """Write lines and warnings on standard error in another format inside the context.

    Parameters
    ----------
    how : Log

    Yields
    ------
    None
    """
    before = _LOG.set(how)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            yield
    finally:
        _LOG.reset(before)


@contextmanager
def named(run: str) -> Iterator[None]:
    """Add the run to log lines inside the context.

    Parameters
    ----------
    run : str

    Yields
    ------
    None
    """
    with logged(replace(_LOG.get(), run=run)):
        yield


def _say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Write a warning of Python as a line; its place says nothing to whoever typed a command."""
    complain(f"{message}" if category is UserWarning and not is_logged() else f"{category.__name__}: {message}")


def complain(line: str, level: str = "warning") -> None:
    """Write a line on standard error, prefixed by the command's name unless in a log.

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
    if sys.stderr is not None:  # print(file=None) would use standard output
        print(_as_logged(line, level), file=sys.stderr, flush=True)  # noqa: T201 - where a command's log and errors go


def _as_logged(line: str, level: str) -> str:
    """Format a line without credentials, since it may quote arguments."""
    how, time = _LOG.get(), datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line, run = redact(line), redact(how.run)
    if how.form is None:
        return printable(line)
    if how.form == "json":
        return json.dumps({"time": time, "level": level, "run": run, "message": line})
    return printable(f"{time} {level.upper()} {run or '-'} {line}")
