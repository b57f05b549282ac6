"""Which run of a data set is the latest: a small JSON object for readers that want just that one, moved after the manifest and never back in time."""

import json
from dataclasses import asdict, dataclass, fields
from datetime import date as Date
from hashlib import sha256

from ..errors import InvalidRun
from ..stores import commit, storage
from .arguments import shorten
from .publish import MANIFEST


@dataclass(frozen=True, slots=True)
class Latest:
    """A finished run."""

    date: str  # YYYY-MM-DD, what runs are ordered by
    run: str  # its folder
    manifest: str  # SHA-256 of its manifest


NAMES = [field.name for field in fields(Latest)]


def _read(data: bytes, uri: str) -> Latest:
    try:
        found = json.loads(data)
        if not (isinstance(found, dict) and sorted(found) == sorted(NAMES) and all(isinstance(value, str) for value in found.values())):
            raise ValueError(f"got {shorten(found)}")
        Date.fromisoformat(found["date"])
    except (ValueError, RecursionError) as error:
        raise InvalidRun(f"{uri}: does not name the latest run, expected {', '.join(NAMES)}: {' '.join(str(error).split())}") from error
    return Latest(**found)


def read_latest(uri: str) -> Latest | None:
    """Read which run is the latest, from the object that ``explain`` moves where it is given ``latest``.

    Parameters
    ----------
    uri : str
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
    data = storage.read_if_exists(uri)
    return None if data is None else _read(data, uri)


def move_latest(uri: str, date: Date, run: str, single_writer: bool = False) -> Latest:
    """Let an object name a finished run, unless it names one of a later date. Of runs of one date it is the last that was moved.

    Parameters
    ----------
    uri : str
        Of the object.
    date : date
        Of the run.
    run : str
        URI of the run's folder, in which the manifest is.
    single_writer : bool
        Nobody else writes the object, so that a store that ignores conditions on writes will do.

    Returns
    -------
    Latest
        What the object names then.

    Raises
    ------
    InvalidRun
        The object is something else.
    StorageError
        The manifest is missing, the store does not answer, or others kept writing the object.
    """
    mine = Latest(date.isoformat(), run, sha256(storage.read(storage.join(run, MANIFEST))).hexdigest())
    named = mine

    def change(held: bytes | None) -> bytes | None:
        nonlocal named
        there = mine if held is None else _read(held, uri)
        named = there if Date.fromisoformat(there.date) > date else mine
        return json.dumps(asdict(mine), indent=1).encode() if held is None or named != there else None

    commit.update(uri, change, single_writer)
    return named
