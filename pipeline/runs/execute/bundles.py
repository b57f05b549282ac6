"""Bundles of work items, what a Dask task does: small items are done several at a time, and their states merged where they are made."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from leafledger.kernels.reductions.merge_tree import FAN_IN

from ...dataset.files.listing import Rejected, WorkItem
from ...methods.memory import ITEM_ROWS
from ..records.part import Part
from ..records.plan_file import open_recipe
from .make_part import find_unreadable, make_part_or_reject
from .merged_states import MergedStates
from .reuse import take_over

BUNDLED_ROWS = ITEM_ROWS // 8  # that are done in one task, at most, while there is enough for many workers to do
FEW_TASKS, MANY_TASKS = 128, 10_000  # no fewer are made by bundling, and no more are left where bundling makes fewer
HIGHEST = 2  # FAN_IN^2 items are what a task does at most
DIGITS = 32  # of a digest in the key of a task: a scheduler takes tasks of one key for one, also of several clients


@dataclass(frozen=True, slots=True)
class Task:
    """What every worker needs: names alone."""

    run: str  # URI of the run's folder
    recipe: str  # SHA-256 of the recipe that was broadcast, hexadecimal
    tables: str  # URI of the method's prepared tables


@dataclass(frozen=True, slots=True)
class Bundle:
    """Consecutive work items, those of FAN_IN^level places, as far as they are to be done."""

    level: int
    place: int  # among bundles of the level
    items: tuple[WorkItem, ...]
    earlier: Mapping[int, tuple[str, WorkItem]] = field(default_factory=dict)  # of these parts, see `reuse.find_earlier`
    rejected: Mapping[str, str] = field(default_factory=dict)  # URIs of files of the items that are left out, and why

    @property
    def name(self) -> str:
        """Of its task: the same where the same is done, and different otherwise, as where a file was replaced under its name."""
        return f"{self.level}-{self.place}-{_digest(self.items, sorted(self.rejected.items()))}"

    def split(self) -> list["Bundle"]:
        """Each item alone."""
        return [Bundle(0, item.part, (item,), _some(self.earlier, (item,))) for item in self.items]


@dataclass(frozen=True, slots=True)
class BundleResult:
    """What became of a bundle."""

    level: int
    place: int
    pieces: tuple[Part | Rejected, ...]  # in the order of the items; parts without their states
    states: Mapping[str, str] | None  # of all parts, merged and packed, by the names of summaries; None where there is none
    recipe: str | None = None  # SHA-256 of the recipe that it was done by, hexadecimal; None where it was not done, since workers died of it


def _digest(*does: Any) -> str:
    return hashlib.sha256(repr(does).encode()).hexdigest()[:DIGITS]


def name_run(run: str, recipe: str, tables: str) -> str:
    """Make a part of the keys of tasks: two attempts of one run share it, and two runs do not, also where one is made in the folder of the other."""
    return _digest(run, recipe, tables)


def _some(earlier: Mapping[int, tuple[str, WorkItem]], items: Sequence[WorkItem]) -> dict[int, tuple[str, WorkItem]]:
    return {item.part: earlier[item.part] for item in items if item.part in earlier}


def choose_level(items: Sequence[WorkItem]) -> int:
    """Decide how many items a task does: FAN_IN to this power. Nothing but time depends on it.

    Returns
    -------
    int
        At most HIGHEST. As many as have BUNDLED_ROWS rows on average, if that leaves FEW_TASKS; or as leave MANY_TASKS.
    """
    n_items, n_rows = len(items), sum(item.n_rows for item in items)
    for level in range(HIGHEST, 0, -1):
        n_tasks = n_items / FAN_IN**level
        if n_tasks >= FEW_TASKS and (n_rows <= BUNDLED_ROWS * n_tasks or n_items * FAN_IN > MANY_TASKS * FAN_IN**level):
            return level
    return 0


def make_bundles(items: Sequence[WorkItem], earlier: Mapping[int, tuple[str, WorkItem]], level: int) -> list[Bundle]:
    """Put items together by their places.

    Parameters
    ----------
    items : sequence of WorkItem
        Ascending by their parts; some of a plan's may be missing.
    earlier : mapping of int to (str, WorkItem)
        See `reuse.find_earlier`.
    """
    grouped = ((place, tuple(some)) for place, some in groupby(items, lambda item: item.part // FAN_IN**level))
    return [Bundle(level, place, some, _some(earlier, some)) for place, some in grouped]


def try_files(task: Task, bundle: Bundle) -> dict[str, str]:
    """Read and explain each file of a bundle by itself, and publish nothing."""
    (item,) = bundle.items
    return find_unreadable(task.run, task.recipe, task.tables, item)


def do_bundle(task: Task, bundle: Bundle) -> BundleResult:
    """Do a bundle's items in turn, see `make_part_or_reject`, and merge their states; take parts over where an earlier run has them."""
    merged, pieces = MergedStates(open_recipe(task.run, task.recipe).summaries), list[Part | Rejected]()
    for item in bundle.items:
        if item.part in bundle.earlier:
            take_over(*bundle.earlier[item.part], task.run, task.recipe, item)
        done, *left_out = make_part_or_reject(task.run, task.recipe, task.tables, item, bundle.rejected)
        if isinstance(done, Part):
            if len(bundle.items) == 1:
                return BundleResult(bundle.level, bundle.place, (replace(done, states={}), *left_out), done.states, task.recipe)
            merged.add(done.part, done.states)
            done = replace(done, states={})
        pieces += [done, *left_out]
    return BundleResult(bundle.level, bundle.place, tuple(pieces), merged.pack(), task.recipe)
