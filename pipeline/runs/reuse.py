"""Parts of the run whose place another one takes: what was made of the same rows in the same way is taken over, not made again."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from ..dataset.listing import Rejected, WorkItem
from ..errors import InvalidRun, StorageError
from ..stores import commit, storage
from .part import Part, check_bytes, part_uri, read_part, try_part
from .plan import recipe
from .planned import read_plan, read_recipe
from .replacement import REPLACEMENTS, read_standing


@dataclass(frozen=True, slots=True)
class Earlier:
    """A run made by the same recipe."""

    home: str
    items: Mapping[WorkItem, WorkItem]  # from items without their numbers to those of the run


def _unnumbered(item: WorkItem) -> WorkItem:
    return replace(item, part=0)


@lru_cache(maxsize=2)
def _find_earlier(run: str, plan_digest: str) -> Earlier | None:
    """The run whose place this one takes, where its parts may be taken over. Read once in every process."""
    folder, inside, _ = run.rpartition(f"/{REPLACEMENTS}/")
    if not inside:
        return None
    try:
        standing = read_standing(folder)
    except InvalidRun:  # it is about to be replaced
        return None
    if standing is None or recipe(standing.plan) != read_recipe(run, plan_digest):
        return None
    return Earlier(standing.home, {_unnumbered(item): item for item in standing.plan.items})


def _take_over(earlier: Earlier, old: WorkItem, run: str, plan_digest: str, item: WorkItem) -> None:
    """Copy a part, verified as it is read; where it is not there or damaged, it is made again."""
    source, target = part_uri(earlier.home, old.part), part_uri(run, item.part)
    if storage.exists(target):
        return
    with storage.scratch() as folder, suppress(InvalidRun, StorageError):
        local = folder / "part.parquet"
        storage.download(source, local)
        part = read_part(source, old, local, read_recipe(run, plan_digest), 0.0)
        check_bytes(source, local, part.states, read_plan(run, plan_digest).summaries)
        commit.create(target, local)


def do_item(run: str, plan_digest: str, tables: str, item: WorkItem) -> Part | Rejected:
    """Do a work item, see `try_part`; take its part over where this run takes the place of one that has it.

    Parameters
    ----------
    run : str
        URI of where the run is made.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    tables : str
        URI of the method's prepared tables.
    item : WorkItem

    Returns
    -------
    Part or Rejected

    Raises
    ------
    LeafledgerError
        As of `try_part`.
    """
    earlier = _find_earlier(run, plan_digest)
    old = None if earlier is None else earlier.items.get(_unnumbered(item))
    if earlier is not None and old is not None:
        _take_over(earlier, old, run, plan_digest, item)
    return try_part(run, plan_digest, tables, item)
