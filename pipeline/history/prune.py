"""Removal of old runs, manifest first, so that an interrupted removal leaves no finished run."""

import json
import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from datetime import date as Date
from os import PathLike

from ..arguments.readers import read_date, read_flag
from ..errors import InvalidRun, LeafledgerError, NotThere, UsageError
from ..runs.publish.table_commit import remove_from_table
from ..runs.records.current_run import list_places
from ..runs.records.folder import MANIFEST, PLACES, PLAN, REPLACEMENTS, RunFolder
from ..runs.records.latest import read_latest
from ..stores import commit, storage
from ..stores.uris import normalise, resolve
from .listed_runs import ListedRun, find_job, list_runs
from .pointers import find_objects

AGE = re.compile(r"(\d{1,5})d")
ABOVE = (PLACES, REPLACEMENTS)  # folders of a run that places of others are in


@dataclass(frozen=True, slots=True)
class Pruned:
    """What became of the runs of a folder.

    Attributes
    ----------
    folder : str
    before : str
        YYYY-MM-DD: runs of earlier days are old.
    dry_run : bool
        Nothing was removed.
    removed : tuple of ListedRun
        Old runs that are not there any more; with ``dry_run`` those that would be removed.
    kept : tuple of (str, str)
        Names of runs that are old, or have no day, and why they are still there.
    held : tuple of str
        Names of those that should have gone, but could not be taken out of their table.
    """

    folder: str
    before: str
    dry_run: bool
    removed: tuple[ListedRun, ...]
    kept: tuple[tuple[str, str], ...]
    held: tuple[str, ...]


def read_age(keep: str) -> int:
    """Read how many days are kept."""
    found = AGE.fullmatch(keep) if isinstance(keep, str) else None
    if found is None or int(found[1]) < 1:
        raise UsageError(f"keep is {keep!r:.80}, expected a number of days of at least 1, as 90d")
    return int(found[1])


def _find_place(run: str) -> str:
    """Return the real path of a run, independent of links."""
    return resolve(normalise(run))


def _read_named(objects: Iterable[str], latest: Sequence[str]) -> dict[str, str]:
    """Return the runs that pointers name: those given, and any found."""
    found = dict[str, str]()
    for uri in latest:
        named = read_latest(uri)
        if named is None:
            raise UsageError(f"{uri}: not there; expected an object that names the latest run")
        found[uri] = _find_place(named.run)
    for uri in sorted(objects):
        with suppress(InvalidRun):  # not a pointer
            named = read_latest(uri)
            found |= {} if named is None else {uri: _find_place(named.run)}
    return found


def _find_within(run: str) -> str | None:
    """Find a run within a run, which would be deleted with it."""

    def look(uri: str) -> Iterator[str]:
        try:
            here = storage.list_folder(uri)
        except NotThere:  # removed meanwhile
            return
        if uri != run and (PLAN in here.files or MANIFEST in here.files):
            yield uri
        for name in here.folders:
            if uri != run or name not in ABOVE:  # the run itself
                yield from look(storage.join(uri, name))

    return next(look(run), None)


def _list_inputs(uri: str) -> Iterator[str]:
    """List the inputs that a plan of any version names; empty for other objects."""
    try:
        plan = json.loads(storage.read_if_exists(uri) or b"{}")
    except (ValueError, RecursionError):
        return
    if isinstance(plan, dict):
        lists = (plan.get("items"), plan.get("rejected"))
        entries = [each for listed in lists if isinstance(listed, list) for each in listed if isinstance(each, dict)]
        joined = [each for entry in entries if isinstance(entry.get("joined"), list) for each in entry["joined"] if isinstance(each, dict)]
        named = [plan.get(name) for name in ("data", "background", "model")] + [each.get("uri") for each in (*entries, *joined)]
        yield from (each for each in named if isinstance(each, str))


def _find_inputs(run: str) -> str | None:
    """What a run was made of and lies in its folder, as where a day's data and its run share one: it would be lost with it."""
    places = [run, *(storage.join(run, place) for place in list_places(run))]
    within = f"{run}/", f"{_find_place(run)}/"

    def is_lost(place: str) -> bool:
        return place.startswith(within) or (place.startswith("/") and os.path.realpath(place).startswith(within))

    return next(filter(is_lost, (each for place in places for each in _list_inputs(RunFolder(place).plan))), None)


def _remove(run: str) -> None:
    """Its manifest first, last what it is known by without: whatever ends this in between, what is left is an unfinished run, which the next one
    removes."""
    commit.remove(RunFolder(run).manifest)
    try:
        here = storage.list_folder(run)
    except NotThere:  # concurrently
        return
    for name in (*here.folders, *here.files):
        if name not in (MANIFEST, *ABOVE, PLAN):
            commit.remove(storage.join(run, name))
    commit.abort_uploads(run)
    for name in ABOVE:
        commit.remove(storage.join(run, name))
    commit.remove(RunFolder(run).plan)
    commit.remove(run)  # a folder of this machine


def _why_held(run: str) -> str | None:
    """Remove a run from its table; return why it has to be kept if that fails, without affecting other runs."""
    try:
        remove_from_table(run)
    except LeafledgerError as error:
        return f"it cannot be taken out of its table: {error}"
    return None


def _why_kept(run: ListedRun, newest: Container[str], named: Container[str]) -> str | None:
    if _find_place(run.run) in named:
        return "it is the latest"
    if run.name in newest:
        return "no finished run is newer"
    within = _find_within(run.run) or _find_inputs(run.run)
    return None if within is None else f"{within} lies within it"


def prune(folder: str | PathLike, *, keep: str, latest: Sequence[str] = (), dry_run: bool = False, date: str | Date | None = None) -> Pruned:
    """Remove the old runs below a folder, finished or not. A run is of the day that its name has; one whose name has none stays.

    What stays in any case: runs that ``latest`` names, and the newest finished run of every job: of runs whose names are the same before the day; and
    a run in whose folder another one lies, or the data, the background or the model that it is of.

    Parameters
    ----------
    folder : str or path
        A path or an fsspec URI, as of `list_runs`.
    keep : str
        How many days are kept, as "90d".
    latest : sequence of str
        Objects that name the latest run; those in the folder, and in folders between it and runs, are found.
    dry_run : bool
        Remove nothing, and say what would be removed.
    date : str or date, optional
        The day from which days are counted, YYYY-MM-DD, or "today" or "yesterday" in local time; by default today, in UTC.

    Returns
    -------
    Pruned

    Raises
    ------
    UsageError
        An argument is none, or the folder is a run itself.
    StorageError
        The store refuses or does not answer; what was removed of a run until then leaves an unfinished one.
    """
    read_flag("dry_run", dry_run)
    place, day = normalise(str(folder)), datetime.now(UTC).date() if date is None else read_date("date", date)
    before = (day - timedelta(days=min(read_age(keep), day.toordinal() - 1))).isoformat()
    runs = list_runs(place)
    objects = find_objects(place, (run.name for run in runs))
    named = _read_named(objects, latest)
    others = objects.difference(named)  # possibly many, each read once
    if any(not run.name for run in runs):
        raise UsageError(f"{place}: is a run itself, expected a folder of runs")
    newest = {find_job(run.name): run.name for run in runs if run.state == "finished" and run.date is not None}.values()
    removed, held, kept = list[ListedRun](), list[str](), [(run.name, "its name has no day") for run in runs if run.date is None]
    for run in runs:
        if run.date is None or run.date >= before:
            continue
        if not dry_run:  # another run may have moved them
            named = _read_named({*named, *find_objects(place, [run.name])}.difference(latest, others), latest)
        why = _why_kept(run, newest, named.values())
        if why is None and not dry_run:
            why = _why_held(run.run)
            held += [] if why is None else [run.name]
        if why is not None:
            kept.append((run.name, why))
            continue
        if not dry_run:
            _remove(run.run)
        removed.append(run)
    return Pruned(place, before, dry_run, tuple(removed), tuple(kept), tuple(held))
