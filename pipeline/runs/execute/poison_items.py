"""Items whose workers died, tried again alone: what workers die of again is rejected, of several files those alone that kill them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from leafledger.kernels.reductions.merge_tree import FAN_IN

from ...dataset.files.listing import WorkItem
from ...dataset.files.pieces import split_files
from ...stores.traffic import count_moved
from ..records.part import reject
from .bundles import Bundle, BundleResult

# Does bundles, one task each, whose keys begin with the text, yields what becomes of them, and calls the last with those whose workers died.
Tasks = Callable[[Sequence[Bundle], str, Callable[[Bundle], None]], Iterator[Any]]


def _died(item: WorkItem) -> str:
    return f"{item.uri}: row groups {list(item.row_groups)}: the workers that it was given to died, every time"


def retry_isolated(do: Tasks, attempt: Tasks, suspect: Bundle) -> Iterator[BundleResult]:
    """Make a part as the only task of the run, or reject the item if its workers die again, or those of its files that workers die of."""
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
    """Files that workers die of or that cannot be read, and why: files are tried in groups, and what is in a group that kills workers, in smaller
    ones."""
    found = dict[str, str]()
    for number, some in enumerate(split_files(item, FAN_IN)):
        deadly, place = list[Bundle](), f"{key}-{number}"
        for unreadable in attempt([Bundle(0, some.part, (some,))], place, deadly.append):
            found |= unreadable
        if deadly:
            found |= _find_poison_files(attempt, some, place) if some.joined else {some.uri: _died(some)}
    return found
