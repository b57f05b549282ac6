"""The current run of a folder: its manifest and plan, checked against each other, and whether another run replaced it."""

import hashlib
from collections import Counter
from dataclasses import dataclass

from ...arguments.readers import shorten
from ...dataset.files.listing import WorkItem
from ...errors import InvalidRun, NotFinished
from ...stores import storage
from ...stores.failures import published
from .folder import MANIFEST, RunFolder, find_place, is_place
from .manifest import Manifest, read_manifest
from .plan import Plan
from .plan_file import read_plan
from .rejected import count_rejected, find_given_up


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


def refuse_others(run: str, manifest: Manifest, plan: Plan) -> None:
    """Refuse a manifest that is not of a plan: of other parts, rows, places, outputs, features or players."""
    where = RunFolder(run).manifest
    if not is_place(plan, manifest.place):
        raise InvalidRun(f"{where}: place is {shorten(manifest.place)}, expected {find_place(plan, None)}-…, or none")
    listed = [entry["part"] for entry in manifest.parts]
    rejected = find_given_up(plan.items, manifest.rejected)
    if Counter(listed) + Counter(rejected) != Counter(item.part for item in plan.items):
        raise InvalidRun(f"{run}: the manifest's {len(listed)} parts and {len(rejected)} rejected ones differ from the plan's {len(plan.items)}")
    if manifest.n_rows + manifest.n_rejected != plan.n_rows:
        raise InvalidRun(f"{run}: the manifest counts {manifest.n_rows} rows and {manifest.n_rejected} rejected ones, the plan {plan.n_rows}")
    home, left_out = manifest.home(run), count_rejected(manifest.rejected)
    for entry in manifest.parts:
        item, expected = plan.items[entry["part"]], RunFolder(home).part(entry["part"])
        if RunFolder(run).listed(entry) != expected:
            raise InvalidRun(f"{where}: part {entry['part']} is at {shorten(entry['uri'])}, expected {expected}")
        n_rows = item.n_rows - left_out[item.part]
        if entry["n_rows"] != n_rows:
            raise InvalidRun(f"{where}: part {entry['part']} has {entry['n_rows']} rows, the plan says {n_rows}")
    if not len(manifest.base) == len(manifest.bound) == len(plan.outputs):
        raise InvalidRun(f"{where}: has not one base value and one bound for every output")
    n_players = len(plan.players)
    strange = [column for column in manifest.used if not 0 <= column < len(plan.features)]
    if strange:
        raise InvalidRun(f"{where}: has feature {shorten(strange[0])}, the plan has {len(plan.features)}")
    strange = [player for player in (*manifest.players, *sum(manifest.pairs, ())) if not 0 <= player < n_players]
    if strange:
        raise InvalidRun(f"{where}: has player {shorten(strange[0])}, the plan has {n_players}")


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
        raise NotFinished(f"{run}: no {MANIFEST} there: not a finished run")
    with published():
        plan = read_plan(manifest.home(run), manifest.plan)
    refuse_others(run, manifest, plan)
    return manifest, plan
