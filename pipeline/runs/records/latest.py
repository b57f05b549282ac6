"""The pointer to a data set's latest run: a JSON object moved after the manifest, never back in time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date as Date
from os import PathLike

from ...json_records import as_text
from ...stores import commit
from ..formats.earlier import take_latest
from ..formats.numbers import FORMAT
from .json_file import JsonFile


@dataclass(frozen=True, slots=True)
class Latest:
    """A finished run."""

    format_version: int = field(default=FORMAT, kw_only=True, compare=False)
    date: str  # YYYY-MM-DD, what runs are ordered by
    run: str  # its folder
    manifest: str  # SHA-256 of its manifest
    n_rows: int | None  # explained; None where version 0.1 wrote it
    share: float | None  # of the data's rows that are explained, see `Manifest.share`


def _check_date(latest: Latest, data: bytes) -> None:  # noqa: ARG001 - the shape of a check
    Date.fromisoformat(latest.date)


FILE = JsonFile(Latest, "does not name the latest run", check=_check_date, earlier=take_latest)


def read_latest(uri: str | PathLike) -> Latest | None:
    """Read which run is the latest, from the object that ``explain`` moves where it is given ``latest``.

    Parameters
    ----------
    uri : str or path
        Of the object.

    Returns
    -------
    Latest or None
        None where there is no such object.

    Raises
    ------
    InvalidRun
        The object is something else.
    StorageError
        The store does not answer.
    """
    return FILE.read(str(uri))


def move_latest(uri: str, mine: Latest, single_writer: bool = False, stands: Callable[[], bool] = lambda: True) -> Latest | None:
    """Let an object name a finished run, unless it names one of a later date. Of runs of one date it is the last that was moved.

    Parameters
    ----------
    uri : str
        Of the object.
    mine : Latest
        The run.
    single_writer : bool
        Nobody else writes the object, so that a store without conditions on writes will do.
    stands : callable
        Whether the run is still there. It is asked after the object was read, so that whoever takes the run's place meanwhile moves it after this.

    Returns
    -------
    Latest or None
        What the object names then; None where it names nothing, since the run is not there any more.
    """
    named: Latest | None = None

    def change(held: bytes | None) -> bytes | None:
        nonlocal named
        there = None if held is None else FILE.parse(held, uri)
        later = there is not None and Date.fromisoformat(there.date) > Date.fromisoformat(mine.date)
        named = there if later or not stands() else mine
        return as_text(mine).encode() if named is not None and named != there else None

    commit.update(uri, change, single_writer)
    return named
