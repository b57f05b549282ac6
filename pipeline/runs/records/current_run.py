"""The current run of a folder: its manifest and plan, checked against each other, and whether another run replaced it."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from ...arguments.readers import shorten
from ...dataset.files.listing import WorkItem
from ...display.text import count, printable
from ...errors import InvalidRun, NotFinished, NotThere
from ...stores import storage
from ...stores.failures import published
from ...stores.storage import list_folder
from .folder import (
    DOCUMENTS,
    MANIFEST,
    PARTS,
    PLACES,
    REPLACEMENTS,
    SUMMARY,
    RunFolder,
    find_pending,
    find_place,
    find_strays,
    is_place,
    is_place_without,
    may_stay,
    name_file,
    name_part,
)
from .manifest import Manifest, read_manifest
from .plan import Plan
from .plan_file import FILE as PLANS
from .plan_file import read_plan
from .rejected import count_rejected, find_given_up


@dataclass(frozen=True, slots=True)
class Done:
    """What is there of an unfinished run."""

    n_parts: int
    n_rows: int
    changed: float | None  # when the last part was written, in seconds since 1970; None without parts, and where the store does not say


@dataclass(frozen=True, slots=True)
class FinishedPart:
    """A part of a finished run, and the work item that it is of."""

    item: WorkItem
    uri: str

    def __str__(self) -> str:
        return str(self.item)


def list_parts(run: str, manifest: Manifest, plan: Plan) -> list[FinishedPart]:
    """Find the parts of a finished run where its manifest says that they are."""
    return [FinishedPart(plan.items[entry["part"]], RunFolder(run).listed(entry)) for entry in manifest.parts]


def is_current(run: str, manifest: Manifest) -> bool:
    """Tell whether a run is still the one that its folder holds: another may have taken its place since it was finished or read."""
    held = storage.read_if_exists(RunFolder(run).manifest)
    return held is not None and hashlib.sha256(held).hexdigest() == manifest.sha256


def list_places(run: str) -> list[str]:
    """List the places of runs below a run's folder, those of earlier versions too, by their names below it."""
    places = list[str]()
    for above in (PLACES, REPLACEMENTS):
        with suppress(NotThere):
            places += [f"{above}/{name}" for name in list_folder(storage.join(run, above)).folders]
    return places


def list_copies(run: str, manifest: Manifest) -> dict[str, str]:
    """List what lies in a run's folder besides its parts, by names below it, and where the run that took the place has its own, if it has one."""
    if not manifest.place.startswith(PLACES):
        return {}
    home = RunFolder(manifest.home(run))
    summaries = {f"{SUMMARY}/{name_file(entry['uri'])}": RunFolder(run).listed(entry) for entry in manifest.summaries}
    return summaries | {name: home.named(name) for name in DOCUMENTS}


def say_strays(strays: Sequence[str], manifest: Manifest) -> str:
    """Say that parts of other runs lie beside a run's own, and what puts it right."""
    found = (
        f"{PARTS}/ holds {count(len(strays), 'part')} of another run, such as {printable(strays[0])}, so that readers of the folder find rows twice"
    )
    pending = find_pending(strays, manifest.sha256)
    if not pending:  # the new run's command, or the old one's, is that of the run that is there
        return f"{found}; an exchange is under way, or was interrupted: give the command of the run that is there again"
    given_up = f"or, if it was given up for good, remove {' '.join(pending)}"
    return f"{found}; a replacement is under way, or was interrupted: give the new run's command again, {given_up}"


def find_left(run: str, manifest: Manifest) -> tuple[str, ...]:
    """Say what readers of a finished run's folder find there that is not the run's, as where an exchange was interrupted.

    Returns
    -------
    tuple of str
        Lines; none where all is as the manifest says.
    """
    said = list[str]()
    with suppress(NotThere):
        strays = find_strays(list_folder(RunFolder(run).parts).files, manifest.parts)
        said += [say_strays(strays, manifest)] if strays else []
    copies = (
        (name, storage.read_if_exists(storage.join(run, name)), storage.read_if_exists(uri)) for name, uri in list_copies(run, manifest).items()
    )
    other = [name for name, found, expected in copies if found != expected]
    if other:
        said.append(f"{other[0]} is not that of the run that took this place; give the command of that run again")
    return tuple(said)


def refuse_others(run: str, manifest: Manifest, plan: Plan) -> None:
    """Refuse a manifest that is not of a plan: of other parts, rows, places, outputs, features or players."""
    where = RunFolder(run).manifest
    if not is_place(plan, manifest.place) and not (manifest.forgotten and is_place_without(manifest.place)):
        raise InvalidRun(f"{where}: place is {shorten(manifest.place)}, expected {find_place(plan, None)}-…, or none")
    listed = [entry["part"] for entry in manifest.parts]
    rejected = find_given_up(plan.items, manifest.rejected)
    if Counter(listed) + Counter(rejected) != Counter(item.part for item in plan.items):
        raise InvalidRun(f"{run}: the manifest's {len(listed)} parts and {len(rejected)} rejected ones differ from the plan's {len(plan.items)}")
    if manifest.n_explained + manifest.n_rejected != plan.n_rows:
        gone = f", {manifest.n_forgotten} forgotten" * bool(manifest.forgotten)
        raise InvalidRun(f"{run}: the manifest counts {manifest.n_rows} rows and {manifest.n_rejected} rejected{gone} ones, the plan {plan.n_rows}")
    left_out, forgotten = count_rejected(manifest.rejected), manifest.list_forgotten()
    if not forgotten.keys() <= {*listed}:
        raise InvalidRun(f"{where}: rows of parts are forgotten that it does not list")
    for entry in manifest.parts:
        item, expected = plan.items[entry["part"]], name_part(manifest.place, entry["part"])
        if entry["uri"] != expected and not (manifest.place and may_stay(entry["uri"], item.part)):
            raise InvalidRun(f"{where}: part {entry['part']} is at {shorten(entry['uri'])}, expected {expected}")
        explained, without = item.n_rows - left_out[item.part], forgotten.get(item.part, [])
        if without and not (without[0] >= 0 and without[-1] < explained and len({*without}) == len(without)):
            raise InvalidRun(f"{where}: part {entry['part']} had {explained} rows, among which are not the {len(without)} that are forgotten")
        n_rows = explained - len(without)
        if entry["n_rows"] != n_rows:
            raise InvalidRun(f"{where}: part {entry['part']} has {entry['n_rows']} rows, the plan says {n_rows}")
    if not (len(manifest.base) or len(plan.outputs) * bool(plan.base_columns)) == len(manifest.bound) == len(plan.outputs):
        raise InvalidRun(f"{where}: has not one base value and one bound for every output")
    n_players = len(plan.players)
    strange = [column for column in manifest.used if not 0 <= column < len(plan.features)]
    if strange:
        raise InvalidRun(f"{where}: has feature {shorten(strange[0])}, the plan has {len(plan.features)}")
    strange = [player for player in (*manifest.players, *sum(manifest.pairs, ())) if not 0 <= player < n_players]
    if strange:
        raise InvalidRun(f"{where}: has player {shorten(strange[0])}, the plan has {n_players}")


def not_finished(run: str, working: bool | None = None) -> NotFinished:
    """Say how far a run is that is not finished, and whether a process works on it; nothing is known of one without a plan, or that is not there."""
    plan = None
    with suppress(InvalidRun, NotThere):
        plan = PLANS.read(RunFolder(run).plan)
    if plan is None:
        return NotFinished(f"{run}: no {MANIFEST} there: not a finished run")
    done = count_done(run, plan)
    how_far = f"{done.n_parts} of {count(len(plan.items), 'part')} {'is' if len(plan.items) == 1 else 'are'} there"
    then = "a process works on it: wait for it" if working else "the command that explains it goes on from there"
    return NotFinished(f"{run}: not a finished run, {how_far}; {then}")


def count_done(run: str, plan: Plan) -> Done:
    """Count the parts of an unfinished run that are there, and their rows."""
    found = storage.Folder((), {})
    with suppress(NotThere):
        found = storage.list_folder(RunFolder(run).parts)
    rows = [item.n_rows for item in plan.items if RunFolder(run).part(item.part).rpartition("/")[2] in found.files]
    return Done(len(rows), sum(rows), found.changed if rows else None)


def read_finished(run: str) -> tuple[Manifest, Plan]:
    """Read what a finished run says of itself.

    Returns
    -------
    manifest : Manifest
    plan : Plan

    Raises
    ------
    NotFinished
        There is no manifest: the run is not finished, or not there.
    """
    manifest = read_manifest(run)
    if manifest is None:
        raise not_finished(run)
    with published():
        plan = read_plan(manifest.home(run), manifest.plan)
    refuse_others(run, manifest, plan)
    return manifest, plan
