"""Samples of rows spread evenly over work items."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.parquet as pq

from ...stores import storage
from .listing import WorkItem
from .pieces import take_rows
from .row_groups import DAMAGED


def spread(items: Sequence[WorkItem], n_items: int) -> list[WorkItem]:
    """Choose items at even distances of rows, which favours large ones.

    Parameters
    ----------
    n_items : int
        How many, at most.

    Returns
    -------
    list of WorkItem
        In their order, each once.
    """
    n_rows, chosen, seen = sum(item.n_rows for item in items), list[WorkItem](), 0
    wanted = [(k + 0.5) / n_items * n_rows for k in range(n_items)]
    for item in items:
        seen += item.n_rows
        if wanted and wanted[0] < seen:
            chosen.append(item)
            wanted = [row for row in wanted if row >= seen]
    return chosen


def _count_rows(item: WorkItem) -> list[int]:
    """Return the rows of the item's row groups; 0 if the footer is unreadable, which reading will report."""
    try:
        with storage.opened(item.uri) as opened:
            metadata = pq.read_metadata(opened)
            return [metadata.row_group(group).num_rows for group in item.row_groups]
    except (*DAMAGED, IndexError):
        return []


def cut(item: WorkItem, n_rows: int, where: float) -> WorkItem:
    """Take a range of an item's rows.

    Parameters
    ----------
    n_rows : int
        How many, at most.
    where : float
        At which share of those that could be the first, from 0 to 1; of several row groups, the first of one is taken.

    Returns
    -------
    WorkItem
        The item itself, where it has no more rows.
    """
    if item.n_rows <= n_rows:
        return item
    if item.joined:
        return take_rows(item, int(where * (item.n_rows - n_rows)), n_rows)
    if len(item.row_groups) == 1:
        skipped = int(where * (item.n_rows - n_rows))
        return replace(item, skip=item.skip + skipped, n_rows=n_rows, first_row=item.first_row + skipped)
    rows = _count_rows(item)
    if sum(rows) != item.n_rows:
        return item
    firsts = [k for k in range(len(rows)) if sum(rows[k:]) >= n_rows]
    first = firsts[int(where * (len(firsts) - 1))]
    last = next(k for k in range(first + 1, len(rows) + 1) if sum(rows[first:k]) >= n_rows)
    return replace(item, row_groups=item.row_groups[first:last], skip=0, n_rows=n_rows, first_row=item.first_row + sum(rows[:first]))
