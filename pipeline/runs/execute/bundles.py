"""Bundles of small work items that one Dask task makes, with their states merged on the worker."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from leafledger.kernels.reductions.merge_tree import FAN_IN

from ...dataset.files.listing import Rejected, WorkItem
from ...methods.worker_memory import ITEM_ROWS
from ..records.part import Part
from ..records.plan_file import open_recipe
from .make_part import find_unreadable, make_part_or_reject
from .merged_states import MergedStates
from .reuse import take_over
from .write_part import InOrder

BUNDLED_ROWS = ITEM_ROWS // 8  # rows of one task, at most, as long as there is enough work for many workers
FEW_TASKS, MANY_TASKS = 128, 10_000  # bundling makes at least FEW_TASKS, and fewer than MANY_TASKS if possible
HIGHEST = 2  # a task has FAN_IN^2 items at most
DIGITS = 32  # hexadecimal digits of a digest in a task's key; the scheduler merges tasks with equal keys, also across clients


@dataclass(frozen=True, slots=True)
class Task:
    """Names that every worker needs."""

    run: str  # URI of the run's folder
    recipe: str  # SHA-256 of the recipe that was broadcast, hexadecimal
    tables: str  # URI of the method's prepared tables


@dataclass(frozen=True, slots=True)
class Bundle:
    """Consecutive work items to do, within FAN_IN^level positions."""

    level: int
    place: int  # position among bundles of the level
    items: tuple[WorkItem, ...]
    earlier: Mapping[int, tuple[str, WorkItem]] = field(default_factory=dict)  # by part, see `reuse.find_earlier`
    rejected: Mapping[str, str] = field(default_factory=dict)  # reasons by URI of files of the items that are left out

    @property
    def name(self) -> str:
        """Key of its task: equal only for the same work, so different if a file was replaced."""
        return f"{self.level}-{self.place}-{_digest(self.items, sorted(self.rejected.items()))}"

    def split(self) -> list["Bundle"]:
        """Split into single items."""
        return [Bundle(0, item.part, (item,), _some(self.earlier, (item,))) for item in self.items]


@dataclass(frozen=True, slots=True)
class BundleResult:
    """Result of a bundle."""

    level: int
    place: int
    pieces: tuple[Part | Rejected, ...]  # in the order of items; parts without their states
    states: Mapping[str, str] | None  # of all parts, merged and packed, by names of summaries; None without parts
    recipe: str | None = None  # SHA-256 of the recipe used, hexadecimal; None if it was not done because workers died


def _digest(*does: Any) -> str:
    return hashlib.sha256(repr(does).encode()).hexdigest()[:DIGITS]


def name_run(run: str, recipe: str, tables: str) -> str:
    """Name a run in keys of tasks: shared by its attempts, and different from other runs, even in the same folder."""
    return _digest(run, recipe, tables)


def _some(earlier: Mapping[int, tuple[str, WorkItem]], items: Sequence[WorkItem]) -> dict[int, tuple[str, WorkItem]]:
    return {item.part: earlier[item.part] for item in items if item.part in earlier}


def choose_level(items: Sequence[WorkItem]) -> int:
    """Choose the power of FAN_IN of items per task; results do not depend on it.

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
    """Group items by position.

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
    """Explain each file of a bundle alone, without publishing."""
    (item,) = bundle.items
    return find_unreadable(task.run, task.recipe, task.tables, item)


def do_bundle(task: Task, bundle: Bundle, in_order: InOrder = map) -> BundleResult:
    """Do a bundle's items in turn, see `make_part_or_reject`, reusing parts of an earlier run, and merge their states."""
    merged, pieces = MergedStates(open_recipe(task.run, task.recipe).summaries), list[Part | Rejected]()
    for item in bundle.items:
        taken = take_over(*bundle.earlier[item.part], task.run, task.recipe, item) if item.part in bundle.earlier else None
        done, *left_out = (taken,) if taken else make_part_or_reject(task.run, task.recipe, task.tables, item, bundle.rejected, in_order)
        if isinstance(done, Part):
            if len(bundle.items) == 1:
                return BundleResult(bundle.level, bundle.place, (replace(done, states={}), *left_out), done.states, task.recipe)
            merged.add(done.part, done.states)
            done = replace(done, states={})
        pieces += [done, *left_out]
    return BundleResult(bundle.level, bundle.place, tuple(pieces), merged.pack(), task.recipe)
