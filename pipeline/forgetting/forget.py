"""Removal of one person's rows from the finished runs below a folder, and the proof that no object holds them any more."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from os import PathLike
from typing import Any

import numpy as np

from ..arguments.readers import read_flag
from ..errors import LeafledgerError, NotThere, RunConflict, SchemaMismatch, StorageError, UsageError
from ..finished.row_page import FOOTER
from ..history.listed_runs import ListedRun, list_runs
from ..history.pointers import find_pointers, refresh_pointer
from ..runs.publish.kept_run import list_kept, remove_kept
from ..runs.publish.settle import settle
from ..runs.publish.table_commit import find_table
from ..runs.records.derived import TABLE, read_after
from ..runs.records.folder import KEPT, SHORT, RunFolder
from ..stores import commit, storage
from ..stores.uris import normalise
from ..tables.writing import TablePlace
from .exchange import Leaving, check_table, exchange, find_leaving
from .search import Holding, Sought, list_objects, search, search_object

KEPT_RUN = re.compile(rf"(?P<kept>.*/{KEPT}/[0-9a-f]{{{SHORT}}})/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ForgottenRun:
    """A run that held such rows.

    Attributes
    ----------
    name : str
        What it is called below the folder.
    n_rows : int
        Rows that are gone, or would go.
    n_parts : int
        Parts that were written anew for it.
    of_parts : int
        All parts of the run.
    removed : tuple of str
        What was made of the run before and goes with the rows, as "report/index.html": to be made again.
    """

    name: str
    n_rows: int
    n_parts: int
    of_parts: int
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UntouchedRun:
    """A run that could not be searched, or whose rows could not be taken out.

    Attributes
    ----------
    name : str
    why : str
        In words.
    """

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class OlderVersions:
    """What versions of a table before the newest still name.

    Attributes
    ----------
    table : str
        URI.
    versions : tuple of str
        Their names, those that name files which the newest does not.
    gone : int
        Such files that are not there any more: nobody can read their rows.
    holding : tuple of Holding
        Such files that are there and hold the value, which others wrote.
    expire : str
        The command, in Python, after which the table has no versions but the newest.
    """

    table: str
    versions: tuple[str, ...]
    gone: int
    holding: tuple[Holding, ...]
    expire: str


@dataclass(frozen=True, slots=True)
class ForgottenRows:
    """What became of one person's rows below a folder.

    Attributes
    ----------
    folder : str
    column, value : str
        By which they were found.
    dry_run : bool
        Nothing was changed.
    n_runs : int
        Finished runs that were searched.
    runs : tuple of ForgottenRun
        Those that held such rows; with ``dry_run`` those that do.
    untouched : tuple of UntouchedRun
        Runs that are unfinished or unreadable, have no such id column, or name the value otherwise than in rows.
    pages : tuple of str
        Pages of such rows, as ``show --html`` writes them, that were removed, or would be.
    kept : tuple of str
        Runs that others had replaced and that were kept, with such rows or in the folder of a run that changes: removed whole, or would be.
    pointers : tuple of str
        Objects that name the latest run, and name it by its new manifest now.
    n_objects : int
        Objects that were searched at the end, byte by byte.
    holding : tuple of Holding
        Those that hold the value: none is the proof. With ``dry_run`` all that hold it now.
    older : tuple of OlderVersions
        What older versions of the runs' tables still name.
    """

    folder: str
    column: str
    value: str
    dry_run: bool
    n_runs: int
    runs: tuple[ForgottenRun, ...]
    untouched: tuple[UntouchedRun, ...]
    pages: tuple[str, ...]
    kept: tuple[str, ...]
    pointers: tuple[str, ...]
    n_objects: int
    holding: tuple[Holding, ...]
    older: tuple[OlderVersions, ...]

    @property
    def n_rows(self) -> int:
        """Rows of all runs."""
        return sum(run.n_rows for run in self.runs)

    @property
    def proved(self) -> bool:
        """All runs were searched, and no object holds the value, older versions of tables included."""
        return not (self.dry_run or self.untouched or self.holding or any(each.holding for each in self.older))

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON has it.

        Returns
        -------
        dict
        """
        return asdict(self) | {"n_rows": self.n_rows, "proved": self.proved}


def _read_where(where: Mapping[str, Any]) -> Sought:
    if not isinstance(where, Mapping) or len(where) != 1:
        raise UsageError(f"where is {where!r:.80}, expected one id column and its value, such as {{'customer_id': 4711}}")
    ((column, value),) = where.items()
    if not isinstance(column, str) or value is None or str(value) == "":
        raise UsageError(f"where is {where!r:.80}, expected a column's name and a value; rows without one are nobody's")
    whole = isinstance(value, float | np.floating) and value.is_integer()  # 17.0, as pandas has ids where one is missing: texts have 17
    return Sought(column, int(value) if whole else value)


def _say_gone(error: NotThere) -> str:
    """Say why an object that a finished run lists may be gone."""
    return f"{error}; another command changes the run, or it is damaged, which check tells: give the same command again"


def _find(run: ListedRun, sought: Sought) -> Leaving | UntouchedRun:
    """Find the rows of a run, or why they cannot be found or taken out: nothing is changed where a table would not let go of them."""
    why = None if run.state == "finished" else run.state if run.why is None else f"{run.state}: {run.why}"
    if why is None:
        try:
            leaving = find_leaving(run.run, sought)
            if leaving.rows:
                check_table(run.run)
        except LeafledgerError as error:
            if isinstance(error, StorageError) and not isinstance(error, NotThere):
                raise
            why = _say_gone(error) if isinstance(error, NotThere) else str(error).removeprefix(f"{run.run}: ")
        else:
            return leaving
    return UntouchedRun(run.name, why)


def _change(leaving: Leaving, day: str, pointers: Collection[str]) -> list[str]:
    """Take rows out of a run, and do what an attempt that was interrupted left to do; return the objects that name it as the latest run."""
    manifest = exchange(leaving, day) if leaving.rows else leaving.manifest
    if not manifest.forgotten:
        return []
    refreshed = list[str]()
    settle(leaving.run, manifest, lambda: refreshed.extend(uri for uri in sorted(pointers) if refresh_pointer(uri, leaving.run, manifest)))
    return refreshed


def _tell(run: ListedRun, leaving: Leaving) -> ForgottenRun:
    made = tuple(entry["uri"] for entry in read_after(run.run, leaving.manifest.sha256).objects if entry["uri"] != TABLE)
    return ForgottenRun(run.name, leaving.n_rows, len(leaving.rows), len(leaving.manifest.parts), made)


def _is_page(uri: str) -> bool:
    """Tell whether an object is a page of rows, as ``show --html`` writes them."""
    data = storage.read_if_exists(uri) or b""
    return data.startswith(b"<!DOCTYPE html>") and FOOTER.encode() in data


def _find_older(table: TablePlace, sought: Sought) -> OlderVersions:
    live, versions = table.list_live(), table.list_older()
    left = {uri for version in versions for uri in version.files} - live
    there = {uri for uri in left if storage.exists(uri)}
    held = [each for each in (search_object(uri, sought) for uri in sorted(there)) if each is not None]
    naming = tuple(version.name for version in versions if version.files - live)
    return OlderVersions(table.uri, naming, len(left - there), tuple(held), table.expiry)


def _search_all(places: Sequence[str], tables: Sequence[TablePlace], sought: Sought) -> tuple[int, list[Holding]]:
    below = [uri for place in places for uri in list_objects(place)]
    live = [uri for table in tables for uri in sorted(table.list_live())]
    return search([*below, *live], sought)


def forget(
    folder: str | PathLike,
    where: Mapping[str, Any],
    *,
    dry_run: bool = False,
    latest: Sequence[str] = (),
    pages: Sequence[str] = (),
) -> ForgottenRows:
    """Remove one person's rows from all finished runs below a folder, and prove it: every object below it is searched afterwards.

    Parts that hold such rows are written anew without them and put in place as a run that replaces another is, so that readers see a run with all of
    the rows or with none of them; its manifest says how many rows were forgotten and when. The table that a run is in gets the new parts in one
    commit. What was made of a run, such as its report, goes, and so do pages that ``show --html`` wrote of such rows. Summaries stay as they were
    computed. Ended at any moment, the same call goes on from there.

    Parameters
    ----------
    folder : str or path
        A folder of runs as of `list_runs`, or a run; a path or an fsspec URI.
    where : mapping of str to Any
        One id column, and the value that the person has there, or its text.
    dry_run : bool
        Change nothing, and say what would be changed and which objects hold the value now.
    latest : sequence of str
        Objects that name the latest run, which then name it by its new manifest; those in the folder, and on the way to runs, are found.
    pages : sequence of str
        Folders elsewhere, with pages or copies, that are searched too. Pages of such rows are removed there; whatever else holds the value is named.

    Returns
    -------
    ForgottenRows

    Raises
    ------
    UsageError
        An argument is none, or there are no runs below the folder.
    NotThere
        There is no such folder.
    StorageError
        The store does not answer.
    """
    read_flag("dry_run", dry_run)
    for name, given in (("latest", latest), ("pages", pages)):
        if isinstance(given, str | PathLike):
            raise UsageError(f"{name} is {given!r:.80}, expected a list of places")
    sought, place, elsewhere = _read_where(where), normalise(str(folder)), [normalise(str(each)) for each in pages]
    for uri in elsewhere:  # a misspelt one would be searched and prove nothing
        storage.list_folder(uri)
    for uri in latest:
        storage.read(str(uri))
    runs = list_runs(place)
    if not runs:
        raise UsageError(f"{place}: no runs there, expected a folder of runs")
    found = [(run, _find(run, sought)) for run in runs]
    tables = list(dict.fromkeys(table for run in runs if (table := find_table(run.run)) is not None))
    untouched = [each for _, each in found if isinstance(each, UntouchedRun)]
    searched = [(run, each) for run, each in found if isinstance(each, Leaving)]
    sought = replace(sought, written=frozenset().union(*(each.written for _, each in searched)))
    day, pointers = datetime.now(UTC).date().isoformat(), {*latest, *find_pointers(place, (run.name for run in runs))}
    gone, refreshed, lost = list[ForgottenRun](), list[str](), set[str]()
    for run, each in searched:
        told, below = ([_tell(run, each)], list_kept(run.run)) if each.rows else ([], ())
        try:
            refreshed += [] if dry_run else _change(each, day, pointers)
        except (UsageError, RunConflict, SchemaMismatch, NotThere) as error:  # others are at work on the run, or on its table
            untouched.append(UntouchedRun(run.name, _say_gone(error) if isinstance(error, NotThere) else str(error)))
        else:
            gone += told
            lost |= {RunFolder(run.run).kept(name).uri for name in below}
    n_objects, holding = _search_all([place, *elsewhere], tables, sought)
    pages_found = [each.uri for each in holding if _is_page(each.uri)]
    for uri in pages_found:
        if not dry_run:
            commit.remove(uri)
    kept = sorted({inside["kept"] for each in holding if (inside := KEPT_RUN.match(each.uri)) is not None})
    if not dry_run:
        for uri in kept:
            remove_kept(uri)
        holding = [each for each in holding if KEPT_RUN.match(each.uri) is None]
    older = [_find_older(table, sought) for table in tables]
    return ForgottenRows(
        place,
        sought.column,
        sought.text,
        dry_run,
        len(searched),
        tuple(gone),
        tuple(untouched),
        tuple(pages_found),
        tuple(sorted({*kept, *lost})),
        tuple(refreshed),
        n_objects,
        tuple(each for each in holding if each.uri not in pages_found),
        tuple(each for each in older if each.versions),
    )
