"""Statistics of a background's rows, and their merging in a fixed order."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.method import BackgroundQuery
from leafledger.kernels.prepare import ask_again, measure_background, merge_statistics
from leafledger.kernels.reductions.merge_tree import MergeTree

from ..errors import UsageError
from .unseen_categories import count_unseen


class BackgroundCounts(NamedTuple):
    """Statistics of background rows, with counts of unknown categories, which are not stored."""

    statistics: Any
    seen: np.ndarray  # (read, 2) int64, see `count_unseen`

    def merge(self, others: Sequence["BackgroundCounts"]) -> "BackgroundCounts":
        """Add the counts of other rows.

        Parameters
        ----------
        others : sequence of BackgroundCounts
            Of the rows that follow.
        """
        parts = (self, *others)
        return BackgroundCounts(merge_statistics([part.statistics for part in parts]), np.sum([part.seen for part in parts], axis=0))


def _merge(parts: Sequence[BackgroundCounts]) -> BackgroundCounts:
    first, *others = parts
    return first.merge(others)


def measure_rows(query: BackgroundQuery, values: np.ndarray, first_row: int) -> BackgroundCounts:
    """Measure rows of a background.

    Parameters
    ----------
    values : (used, n) float64
        NaN where missing.
    first_row : int
        Number of the first row in the whole background.
    """
    return BackgroundCounts(measure_background(query, values, first_row), count_unseen(query.bins, values))


def count_in_turn(query: BackgroundQuery, count: Callable[[BackgroundQuery], BackgroundCounts]) -> BackgroundCounts:
    """Ask a background what a method needs of it, and then what follows from the answer: what weighs rows by their margins reads them twice.

    Parameters
    ----------
    query : BackgroundQuery
        The first.
    count : callable
        ``query -> counts`` of all rows.

    Returns
    -------
    BackgroundCounts
        Of the last query.

    Raises
    ------
    UsageError
        Margins of the background lie too far apart for what was asked.
    """
    counted = count(query)
    try:
        following = ask_again(query, counted.statistics)
    except InvalidParameters as error:
        raise UsageError(str(error)) from error
    return counted if following is None else count_in_turn(following, count)


def merge_counts(*counted: BackgroundCounts) -> BackgroundCounts:
    """Merge the counts of several parts of the background.

    Parameters
    ----------
    *counted : BackgroundCounts
        At least one. Sums are rounded in this order.
    """
    return _merge(counted)


def merge_in_tree(parts: Iterable[tuple[int, BackgroundCounts]]) -> BackgroundCounts:
    """Merge by position, so that sums round the same everywhere, with few states in memory.

    Parameters
    ----------
    parts : iterable of (int, BackgroundCounts)
        At least one, with the positions of the background's items, in any order.
    """
    tree = MergeTree(_merge)
    for place, part in parts:
        tree.add(place, part)
    total = tree.total()
    if total is None:
        raise ValueError("nothing to add up, expected at least one part of a background")
    return total
