"""Reuse of parts from a replaced run, if they were made of the same rows in the same way."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from ...dataset.files.listing import WorkItem
from ...errors import InvalidRun, StorageError
from ...stores import commit, storage
from ...stores.traffic import take_moved
from ..plan.existing_run import ExistingRun
from ..records.folder import RunFolder, may_stay
from ..records.part import Part
from ..records.plan import Plan, recipe
from ..records.plan_file import open_recipe
from .make_part import check_bytes, read_part
from .worker_metrics import count_found


def _unnumbered(item: WorkItem) -> WorkItem:
    return replace(item, part=0)


def find_earlier(standing: ExistingRun | None, plan: Plan) -> Mapping[int, tuple[str, WorkItem]]:
    """Find reusable parts of the replaced run.

    Parameters
    ----------
    standing : ExistingRun or None
        None where no place is taken.
    plan : Plan
        Of the run that is made.

    Returns
    -------
    mapping of int to (str, WorkItem)
        From parts to those of the same rows, by where they are and of what item of the other plan; empty where that was made by another recipe.
    """
    if standing is None or recipe(standing.plan) != recipe(plan):
        return {}
    there = {_unnumbered(item): item for item in standing.plan.items}
    found = ((item.part, there.get(_unnumbered(item))) for item in plan.items)
    uris = standing.find_parts()
    lacking = set[int]() if standing.manifest is None else {entry.part for entry in standing.manifest.forgotten if entry.rows}
    return {part: (uris[old.part], old) for part, old in found if old is not None and old.part in uris.keys() - lacking}


def _stays(source: str, run: str, item: WorkItem) -> str:
    """Name below the run's folder a part that may stay where it is; empty where it may not."""
    uri = source.removeprefix(f"{RunFolder(run).run}/")
    return uri if may_stay(uri, item.part) else ""


def find_staying(run: str, earlier: Mapping[int, tuple[str, WorkItem]], items: Sequence[WorkItem]) -> set[int]:
    """Find the items whose parts may stay where they are, by their parts' numbers."""
    return {item.part for item in items if item.part in earlier and _stays(earlier[item.part][0], run, item)}


def take_over(source: str, old: WorkItem, run: str, made_by: str, item: WorkItem) -> Part | None:
    """Take over a part, verified: as it lies there if it may stay, else as a copy that the store makes. None where it is not there or damaged, and is
    to be made again; or was made again already."""
    target = RunFolder(run).part(item.part)
    if storage.exists(target):
        return None
    with storage.scratch() as folder, suppress(InvalidRun, StorageError):
        local = folder / "part.parquet"
        storage.download(source, local)
        part = replace(read_part(source, old, local, made_by, 0.0), part=item.part, stays=_stays(source, run, item))
        if part.rejected:
            return None  # an unreadable file may be readable now
        check_bytes(source, local, part.states, open_recipe(run, made_by).summaries)
        if part.stays or commit.copy(source, target):
            count_found()
            return replace(part, moved=take_moved())
    return None
