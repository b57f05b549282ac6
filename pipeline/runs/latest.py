"""Which run of a data set is the latest: a small JSON object for readers that want just that one, moved after the manifest and never back in time."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date as Date
from os import PathLike

from ..errors import InvalidData, InvalidRun
from ..records import read_record
from ..stores import commit, storage
from ..stores.places import normalise
from .options import Options
from .publish import Manifest
from .replacement import stands


@dataclass(frozen=True, slots=True)
class Latest:
    """A finished run."""

    date: str  # YYYY-MM-DD, what runs are ordered by
    run: str  # its folder
    manifest: str  # SHA-256 of its manifest
    n_rows: int | None  # explained; None where version 0.1 wrote it, as below
    share: float | None  # of the data's rows that are explained, see `Manifest.share`


def _read(data: bytes, uri: str) -> Latest:
    try:
        found = json.loads(data)
        if isinstance(found, dict) and found.keys() == {"date", "run", "manifest"}:
            data = json.dumps({**found, "n_rows": None, "share": None}).encode()
        latest = read_record(Latest, data)
        Date.fromisoformat(latest.date)
    except (ValueError, RecursionError) as error:
        raise InvalidRun(f"{uri}: does not name the latest run: {' '.join(str(error).split())}") from error
    return latest


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
    data = storage.read_if_exists(str(uri))
    return None if data is None else _read(data, str(uri))


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

    Raises
    ------
    InvalidRun
        The object is something else.
    StorageError
        The store does not answer, or others kept writing the object.
    """
    named: Latest | None = None

    def change(held: bytes | None) -> bytes | None:
        nonlocal named
        there = None if held is None else _read(held, uri)
        later = there is not None and Date.fromisoformat(there.date) > Date.fromisoformat(mine.date)
        named = there if later or not stands() else mine
        return json.dumps(asdict(mine), indent=1).encode() if named is not None and named != there else None

    commit.update(uri, change, single_writer)
    return named


def refuse_small(options: Options, run: str, manifest: Manifest) -> None:
    """Refuse that a run of too few rows takes the place of the one that ``latest`` names: by its folder, so that it would name this one.

    Parameters
    ----------
    options : Options
        Of the run.
    run : str
        URI of its folder.
    manifest : Manifest
        Of the run, which is not there yet.

    Raises
    ------
    InvalidData
        Fewer rows are explained than are required.
    InvalidRun
        What ``latest`` points at is something else.
    StorageError
        The store does not answer.
    """
    why = why_latest_stays(options, manifest)
    named = None if why is None else read_latest(str(options.latest))
    if named is not None and normalise(named.run) == run:
        raise InvalidData(f"{why}; it names {run}, where the run of before stays")


def name_latest(options: Options, run: str, manifest: Manifest, kept: bool = False) -> Latest | None:
    """Let ``latest``, where it was asked for, name a run, unless it names one of a later date or too few rows are explained.

    Where it names the folder of the run already, it says of it what is there, however few rows that are. A run whose place another one took meanwhile
    is not named. One that is kept, though another was asked for, stays of the date under which it is named.

    Parameters
    ----------
    options : Options
        Of the run.
    run : str
        URI of its folder.
    manifest : Manifest
        Of the run, which is finished.
    kept : bool
        It is another run than was asked for, and may be of another date.

    Returns
    -------
    Latest or None
        What ``latest`` names then; None where it was not asked for, or names nothing.

    Raises
    ------
    InvalidRun
        What ``latest`` points at is something else.
    StorageError
        The store does not answer.
    """
    if options.latest is None or options.date is None:
        return None
    few = manifest.share < options.latest_requires
    if few or kept:
        named = read_latest(options.latest)
        mine_before = named if named is not None and normalise(named.run) == run else None
        if few if mine_before is None else mine_before.manifest == manifest.sha256:
            return named
    mine = Latest(options.date.isoformat(), run, manifest.sha256, manifest.n_rows, manifest.share)
    return move_latest(options.latest, mine, options.single_writer, lambda: stands(run, manifest))


def why_latest_stays(options: Options, manifest: Manifest, named: Latest | None = None) -> str | None:
    """Say why a finished run is not taken for the latest, whatever its date is, or should not be: one whose folder is named already is.

    Parameters
    ----------
    options : Options
        Of the run.
    manifest : Manifest
        Of the run.
    named : Latest, optional
        What ``latest`` names.

    Returns
    -------
    str or None
        None where it is taken, or ``latest`` was not asked for.
    """
    requires = options.latest_requires
    if options.latest is None or manifest.share >= requires:
        return None
    how = "not moved," if named is None or named.manifest != manifest.sha256 else "names this run, of which"
    return f"{options.latest}: {how} {manifest.share:.2%} of the rows are explained ({manifest.n_rows:,}), expected at least {requires:.2%}"
