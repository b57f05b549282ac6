"""Listing of the runs below a folder: state, date, and key facts of each."""

import hashlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from datetime import date as Date
from os import PathLike
from typing import Any, Literal

from ..errors import InvalidRun, NotThere, OtherVersion, UsageError
from ..runs.advisories.known import find_advisories
from ..runs.execute.interrupted import is_working
from ..runs.publish.kept_run import find_kept
from ..runs.records.current_run import count_done, list_places, say_strays
from ..runs.records.derived import AFTER, read_after
from ..runs.records.folder import ATTEMPT, KEPT, MANIFEST, PARTS, PLACE, PLACES, PLAN, REPLACEMENTS, RunFolder, find_strays
from ..runs.records.manifest import Manifest, read_manifest
from ..runs.records.part import list_sizes
from ..runs.records.plan_file import from_json
from ..stores import storage
from ..stores.failures import published
from ..stores.storage import Folder, list_folder
from ..stores.uris import normalise

READERS = 16  # runs that are read at a time
DEPTH = 6  # depth of the search below the folder
DRIFT, REPORT = "after/drift.json", ("report", "index.html")
# Plausible years: otherwise one in thirty eight-digit numbers, such as a model's, would be a date, and an old one.
DAY = re.compile(r"(?<!\d)((?:19|20|21)\d{2})[-_/]?(0[1-9]|1[0-2])[-_/]?(0[1-9]|[12]\d|3[01])(?!\d)")
State = Literal["finished", "unfinished", "damaged", "unreadable"]


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run of a folder.

    Attributes
    ----------
    run : str
        URI of its folder.
    name : str
        What it is called below the folder that was listed; "" where that is a run itself.
    date : str or None
        YYYY-MM-DD, where the name has a day.
    state : str
        "finished", "unfinished", "damaged", where something that it lists is missing, or is not as it says, or "unreadable", where a version of
        leafledger made it whose records this one does not read.
    working : bool or None
        Of an unfinished run, whether the process that began it on this machine still works; None where nobody knows, as of another machine, of a
        cluster, and where it ended in good order.
    last_part : str or None
        Of an unfinished run, when its last part was written, in UTC.
    why : str or None
        What is damaged, or cannot be read.
    manifest : str or None
        SHA-256 of its manifest.
    model, model_digest, method : str or None
        As in the plan.
    n_rows : int or None
        Rows explained; of an unfinished run those of the parts that are there.
    n_parts, n_planned : int or None
        Parts that are there, and those that are planned; None of what an interrupted `prune` left of a run that had replaced another.
    n_rejected : int or None
        Pieces of the data that were rejected.
    residual : float or None
        As in the manifest.
    r2 : float or None
        Of a run whose method shares it out.
    alarms : tuple of str or None
        What has drifted, in words, where that was asked of this very run; empty where nothing has.
    report : bool
        Whether it has a page, report/index.html, that was made of this very run.
    advisories : tuple of str
        Names of those that may concern it, as in `docs/advisories.md`.
    n_forgotten : int
        Rows that were taken out of a finished run, see `forget`.
    n_kept_bytes : int
        What is kept of the run that it replaced, see `rollback`.
    left : str or None
        Of a finished run, what readers of its folder find there besides, as where a replacement was interrupted.
    n_rows_planned : int or None
        Of an unfinished run, the rows that its plan has.
    """

    run: str
    name: str
    date: str | None
    state: State
    why: str | None = None
    manifest: str | None = None
    model: str | None = None
    model_digest: str | None = None
    method: str | None = None
    n_rows: int | None = None
    n_parts: int | None = None
    n_planned: int | None = None
    n_rejected: int | None = None
    residual: float | None = None
    r2: float | None = None
    alarms: tuple[str, ...] | None = None
    report: bool = False
    advisories: tuple[str, ...] = ()
    left: str | None = None
    working: bool | None = None
    last_part: str | None = None
    n_rows_planned: int | None = None
    n_forgotten: int = 0
    n_kept_bytes: int = 0

    @property
    def progress(self) -> str:
        """How far an unfinished run is, in words; empty of any other."""
        if self.state != "unfinished" or self.n_planned is None:
            return ""
        now = {True: "works", False: "died", None: "unfinished"}[self.working]
        last = "" if self.last_part is None else f", the last {self.last_part[:19].replace('T', ' ')} UTC"
        return f"{now}, {self.n_parts} of {self.n_planned} parts{last}"

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON has it.

        Returns
        -------
        dict
        """
        return asdict(self)


def find_day(name: str) -> str | None:
    """Find a date in a name."""
    days = set()
    for found in DAY.finditer(name):
        try:
            days.add(Date(*map(int, found.groups())).isoformat())
        except ValueError:  # such as the 30th of February
            continue
    return days.pop() if len(days) == 1 else None


def find_job(name: str) -> str:
    """Return the part of a run's name before its date, shared by the nights of one job."""
    return DAY.split(name, 1)[0]


def _is_run(uri: str, here: Folder) -> bool:
    """Return whether a folder is a run, or the remains of one from an interrupted `prune`."""
    if PLAN in here.files or MANIFEST in here.files:
        return True
    return any(above in here.folders for above in (PLACES, REPLACEMENTS)) and any(
        PLACE.fullmatch(each.rpartition("/")[2]) for each in list_places(uri)
    )


def _find_runs(folder: str, name: str = "", depth: int = 0) -> Iterator[tuple[str, Folder]]:
    """Find runs below a folder, with their objects; runs are not searched inside, and vanished folders are skipped."""
    uri = storage.join(folder, name) if name else folder
    try:
        here = list_folder(uri)
        found = _is_run(uri, here)
    except NotThere:
        if not name:
            raise
        return
    if found:
        yield name, here
    elif depth < DEPTH:
        for each in here.folders:
            if not each.startswith((".", "_")):
                yield from _find_runs(folder, f"{name}/{each}" if name else each, depth + 1)


def _check_there(run: str, manifest: Manifest) -> list[str]:
    """Check that all listed objects exist with their sizes; return the parts of other runs beside them."""
    listed = (*manifest.parts, *manifest.summaries)
    sizes = list_sizes(run, listed)
    for entry in listed:
        size = sizes.get(entry["uri"])
        if size != entry["size"]:
            raise InvalidRun(f"{entry['uri']}: {'is missing' if size is None else f'has {size} bytes'}, the manifest says {entry['size']} bytes")
    return find_strays((uri.removeprefix(f"{PARTS}/") for uri in sizes if uri.startswith(f"{PARTS}/")), manifest.parts)


def _read_alarms(run: str, manifest: Manifest, here: Folder) -> tuple[str, ...] | None:
    """Read the alarms of this run's drift record."""
    data = storage.read_if_exists(storage.join(run, DRIFT)) if "after" in here.folders else None
    try:
        found = {} if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("manifest") != manifest.sha256 or not isinstance(found.get("alarms"), list):
        return None
    return tuple(map(str, found["alarms"]))


def _has_page(run: str, manifest: Manifest, here: Folder) -> bool:
    """Return whether a report of this very run exists."""
    if REPORT[0] not in here.folders or AFTER not in here.files:
        return False
    try:
        made = read_after(run, manifest.sha256).objects
    except InvalidRun:
        return False
    size = list_folder(storage.join(run, REPORT[0])).files.get(REPORT[1])
    return any((entry["uri"], entry["size"]) == ("/".join(REPORT), size) for entry in made)


def _read_finished(run: str, name: str, here: Folder, manifest: Manifest) -> ListedRun:
    with published():
        plan = storage.read(RunFolder(manifest.home(run)).plan)
    if hashlib.sha256(plan).hexdigest() != manifest.plan:
        raise InvalidRun(f"{PLAN}: is not the one that the manifest names")
    strays = _check_there(run, manifest)
    r2 = manifest.totals.get("r2", {}).get("total_r2")
    return ListedRun(
        run=run,
        name=name,
        date=find_day(name),
        state="finished",
        manifest=manifest.sha256,
        model=manifest.model,
        model_digest=manifest.model_digest,
        method=manifest.method,
        n_rows=manifest.n_rows,
        n_parts=len(manifest.parts),
        n_planned=len({entry["part"] for entry in manifest.parts} | {entry.part for entry in manifest.rejected if entry.part is not None}),
        n_rejected=len(manifest.rejected),
        residual=manifest.residual,
        r2=r2 if isinstance(r2, float) else None,
        alarms=_read_alarms(run, manifest, here),
        report=_has_page(run, manifest, here),
        advisories=tuple(each.name for each in find_advisories(manifest, lambda: from_json(plan, RunFolder(manifest.home(run)).plan))),
        left=say_strays(strays, manifest) if strays else None,
        n_forgotten=manifest.n_forgotten,
        n_kept_bytes=0 if KEPT not in here.folders or (kept := find_kept(run, manifest)) is None else kept.n_bytes,
    )


def _read_unfinished(run: str, name: str, here: Folder) -> ListedRun:
    if PLAN not in here.files:
        return ListedRun(run=run, name=name, date=find_day(name), state="unfinished")
    with published():
        plan = from_json(storage.read(RunFolder(run).plan), RunFolder(run).plan)
    done = count_done(run, plan)
    return ListedRun(
        run=run,
        name=name,
        date=find_day(name),
        state="unfinished",
        model=plan.model,
        model_digest=plan.model_digest,
        method=plan.method,
        n_rows=done.n_rows,
        n_parts=done.n_parts,
        n_planned=len(plan.items),
        n_rows_planned=plan.n_rows,
        working=is_working(run) if ATTEMPT in here.files else None,
        last_part=None if done.changed is None else datetime.fromtimestamp(done.changed, UTC).isoformat(timespec="seconds"),
    )


def _look_again(run: str) -> Folder | None:
    """List a run's objects again; None if it is gone."""
    try:
        now = list_folder(run)
        return now if _is_run(run, now) else None
    except NotThere:
        return None


def _read(folder: str, name: str, here: Folder) -> ListedRun | None:
    """Read a run; None if it is gone."""
    run = storage.join(folder, name) if name else folder
    try:
        manifest = read_manifest(run)
        return _read_unfinished(run, name, here) if manifest is None else _read_finished(run, name, here, manifest)
    except (InvalidRun, NotThere) as error:
        now = _look_again(run)
        if now is None:
            return None
        if MANIFEST in here.files and MANIFEST not in now.files:  # being removed
            return _read(folder, name, now)
        state: State = "unreadable" if isinstance(error, OtherVersion) else "damaged"
        return ListedRun(run=run, name=name, date=find_day(name), state=state, why=str(error))


def _refuse_file(uri: str) -> None:
    if not storage.is_folder(uri):
        raise UsageError(f"{uri}: is not a folder, expected a folder of runs")


def list_runs(folder: str | PathLike) -> tuple[ListedRun, ...]:
    """List the runs below a folder, by date. Sizes are looked at, not bytes: `check_run` verifies a run.

    Parameters
    ----------
    folder : str or path
        A path or an fsspec URI. Runs may lie up to six folders below it, but not within a run; names that start with "_" or "." are passed over.

    Returns
    -------
    tuple of ListedRun
        Those without a day in their name come first. Those that somebody removes meanwhile are left out.

    Raises
    ------
    UsageError
        It is a file.
    NotThere
        There is no such folder.
    StorageError
        The store does not answer.
    """
    place = normalise(str(folder))
    found = list(_find_runs(place))
    if not found:
        _refuse_file(place)
    with ThreadPoolExecutor(READERS) as readers:
        runs = [run for run in readers.map(lambda each: _read(place, *each), found) if run is not None]
    return tuple(sorted(runs, key=lambda run: (run.date or "", run.name)))
