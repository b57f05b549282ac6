"""Reuse of parts from a replaced run, if they were made of the same rows in the same way."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from ...dataset.files.listing import WorkItem
from ...errors import InvalidRun, StorageError
from ...stores import commit, storage
from ..plan.existing_run import ExistingRun
from ..records.folder import RunFolder
from ..records.plan import Plan, recipe
from ..records.plan_file import open_recipe
from .make_part import check_bytes, read_part


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
    return {part: (uris[old.part], old) for part, old in found if old is not None and old.part in uris}


def take_over(source: str, old: WorkItem, run: str, made_by: str, item: WorkItem) -> None:
    """Copy a part, verified as it is read; where it is not there or damaged, nothing happens, and it is made again."""
    target = RunFolder(run).part(item.part)
    if storage.exists(target):
        return
    with storage.scratch() as folder, suppress(InvalidRun, StorageError):
        local = folder / "part.parquet"
        storage.download(source, local)
        part = read_part(source, old, local, made_by, 0.0)
        if part.rejected:
            return  # an unreadable file may be readable now
        check_bytes(source, local, part.states, open_recipe(run, made_by).summaries)
        commit.create(target, local)
