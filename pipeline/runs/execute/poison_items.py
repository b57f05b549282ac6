"""Isolated retries of items whose workers died; files that kill workers again are rejected."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from leafledger.kernels.reductions.merge_tree import FAN_IN

from ...dataset.files.listing import WorkItem
from ...dataset.files.pieces import split_files
from ...stores.traffic import count_moved
from ..records.part import reject
from .bundles import Bundle, BundleResult

# Function that does bundles in tasks with a key prefix, yields the results, and passes bundles of dead workers to the callback.
Tasks = Callable[[Sequence[Bundle], str, Callable[[Bundle], None]], Iterator[Any]]


def _died(item: WorkItem) -> str:
    return f"{item.uri}: row groups {list(item.row_groups)}: the processes that it was given to died, every time"


def retry_isolated(do: Tasks, attempt: Tasks, suspect: Bundle) -> Iterator[BundleResult]:
    """Make a part as the run's only task; reject the item, or those of its files, whose workers die again."""
    deadly, (item,) = list[Bundle](), suspect.items
    count_moved(retried=1)
    yield from do([suspect], "alone", deadly.append)
    found = _find_poison_files(attempt, item, "file") if deadly and item.joined else {}
    if 0 < len(found) < len(item.pieces):
        deadly.clear()
        yield from do([replace(suspect, rejected=found)], "rest", deadly.append)
    if deadly:
        yield BundleResult(0, item.part, reject(item, {piece.uri: found.get(piece.uri, _died(piece)) for piece in item.pieces}), None)


def _find_poison_files(attempt: Tasks, item: WorkItem, key: str) -> dict[str, str]:
    """Find files that kill workers or are unreadable, with reasons, by bisection into smaller groups of files."""
    found = dict[str, str]()
    for number, some in enumerate(split_files(item, FAN_IN)):
        deadly, place = list[Bundle](), f"{key}-{number}"
        for unreadable in attempt([Bundle(0, some.part, (some,))], place, deadly.append):
            found |= unreadable
        if deadly:
            found |= _find_poison_files(attempt, some, place) if some.joined else {some.uri: _died(some)}
    return found
