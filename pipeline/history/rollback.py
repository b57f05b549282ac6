"""A run that was replaced put back in its place, where it was kept: as if it had been made again, but that nothing is explained."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import PathLike

from ..errors import InvalidRun, NotFinished, UsageError
from ..runs.publish.kept_run import list_kept, read_kept
from ..runs.publish.same_run import copy_documents, copy_object, list_summaries, seat
from ..runs.publish.settle import settle
from ..runs.records.folder import MANIFEST, RunFolder, find_place, find_place_without, may_stay, name_part, replaced_by
from ..runs.records.input_digests import digest_file
from ..runs.records.manifest import Manifest, PartEntry, read_manifest
from ..runs.records.plan_file import read_plan
from ..runs.records.provenance import FILE, Provenance
from ..stores import storage
from ..stores.uris import normalise
from .pointers import find_pointers, refresh_pointer

READERS = 8  # parts that are read at a time


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What became of a run.

    Attributes
    ----------
    run : str
        URI of its folder.
    manifest : Manifest
        Of the run that is there now.
    replaced : str
        SHA-256 of the manifest that it replaced, or its first digits where an attempt that was interrupted had done so.
    finished_before : bool
        It was there already, put back by an attempt that was interrupted: only what that left to do was done.
    pointers : tuple of str
        Objects that name the latest run, and name it by its new manifest now.
    """

    run: str
    manifest: Manifest
    replaced: str
    finished_before: bool
    pointers: tuple[str, ...]


def _put_part(run: str, now: Manifest, home: RunFolder, place: str, entry: PartEntry, kept: RunFolder) -> PartEntry:
    """Put a part into the place; one that the run of now has too stays where it is."""
    part, uri = entry["part"], kept.part(entry["part"])
    found = digest_file(uri)
    if (found.size, found.sha256) != (entry["size"], entry["sha256"]):
        raise InvalidRun(f"{uri}: SHA-256 is {found.sha256[:12]}, its manifest says {entry['sha256'][:12]}; {run} stays as it is")
    if entry in now.parts and may_stay(entry["uri"], part):
        return entry
    copy_object(uri, home.part(part))
    return {**entry, "uri": name_part(place, part)}


def _read_how(kept: RunFolder) -> Provenance | None:
    return FILE.read(kept.provenance) if storage.exists(kept.provenance) else None


def _put_back(run: str, now: Manifest, before: Manifest) -> Manifest:
    kept = RunFolder(run).kept(replaced_by(now.place))
    plan = read_plan(kept.uri, before.plan)
    gone = before.list_forgotten()
    place = find_place_without(now.sha256, gone) if before.forgotten else find_place(plan, now.sha256)
    home = RunFolder(run).at(place)
    with ThreadPoolExecutor(READERS) as readers:
        parts = tuple(readers.map(lambda entry: _put_part(run, now, home, place, entry, kept), before.parts))
    copy_documents(before, kept.named, home)
    made = replace(before, place=place, parts=parts, summaries=list_summaries(before, place))
    seat(run, made, now.sha256, _read_how(kept))
    return made


def rollback(run: str | PathLike, *, latest: Sequence[str] = ()) -> RolledBack:
    """Put the run back that the one in a folder replaced, where it was kept by ``keep_replaced``; the one that is there goes for good.

    It takes the place as any run that replaces another, in one step for readers of the manifest and of the table. Its rows, summaries and documents
    are those that it had; its manifest has another SHA-256, since it lies in another place. Ended at any moment, the same call goes on from there.

    Parameters
    ----------
    run : str or path
        Of the run's folder.
    latest : sequence of str
        Objects that name the latest run; that in the folder above the run is found.

    Returns
    -------
    RolledBack

    Raises
    ------
    UsageError
        Nothing is kept.
    NotFinished
        There is no finished run.
    InvalidRun
        What is kept is damaged; the run stays as it is.
    RunConflict
        Another run took the place meanwhile.
    """
    uri = normalise(str(run))
    now = read_manifest(uri)
    if now is None:
        raise NotFinished(f"{uri}: no {MANIFEST} there: not a finished run")
    before, interrupted = read_kept(uri, now), list_kept(uri)
    if before is None and not interrupted:
        raise UsageError(
            f"{uri}: nothing is kept of what it replaced: it was put back before, or explain was to keep none; explain keeps it with --keep-replaced"
        )
    made = now if before is None else _put_back(uri, now, before)
    refreshed, pointers = list[str](), sorted({*map(normalise, latest), *find_pointers(uri, [""])})
    settle(uri, made, lambda: refreshed.extend(each for each in pointers if refresh_pointer(each, uri, made)))
    return RolledBack(uri, made, replaced_by(made.place) if before is None else now.sha256, before is None, tuple(refreshed))
