"""Counting of a background's rows by work item, and caching of the counts for later runs."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.method.method import BackgroundQuery

from ...dataset.columns.values import fill_values, read_features
from ...dataset.files.listing import WorkItem
from ...dataset.files.rows import located, miscounted, read_slices, read_some
from ...errors import SchemaMismatch
from ...methods.background_counts import BackgroundCounts, measure_rows, merge_counts
from ...methods.unseen_categories import refuse_counted
from ...methods.warmup import call_counting
from ...methods.worker_memory import max_slice_rows
from ...models.model import Feature
from ...stores.table_arrays import open_tables, store_tables
from ..plan.background import MarginalPlan
from ..records.plan import Plan
from ..records.plan_file import open_recipe
from .write_part import InOrder


def first_rows(items: Sequence[WorkItem]) -> list[int]:
    """Return the number of each item's first row in the background.

    Parameters
    ----------
    items : sequence of WorkItem
        All of them, in order.

    Returns
    -------
    list of int
        The number of each item's first row.
    """
    return [0, *accumulate(item.n_rows for item in items)][: len(items)]


def count_rows(features: Sequence[Feature], asked: BackgroundQuery, item: WorkItem, first_row: int = 0, in_order: InOrder = map) -> BackgroundCounts:
    """Count the rows of one item.

    Parameters
    ----------
    features : sequence of Feature
        Those that are read, in the order of the query's columns.
    first_row : int
        Number of its first row in the whole background, by which rows are dealt out where errors are asked for.
    in_order : callable
        Counts the slices and yields them in order, as ``map`` does, perhaps on several threads.

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    """

    def numbered() -> Iterator[tuple[int, pa.RecordBatch]]:
        first = first_row
        for batch in read_slices(item, [feature.name for feature in features], max_slice_rows(asked.bins.column.size)):
            yield first, batch
            first += batch.num_rows

    def measure(read: tuple[int, pa.RecordBatch]) -> tuple[int, BackgroundCounts]:
        first, batch = read
        with located(item):
            values = np.zeros((asked.bins.column.size, batch.num_rows))
            fill_values(features, asked.bins, [batch.column(feature.name) for feature in features], values)
            return batch.num_rows, measure_rows(asked, values, first)

    counted, done = list[BackgroundCounts](), 0  # rows so far
    for n_rows, measured in in_order(measure, numbered()):
        counted, done = [merge_counts(*counted, measured)], done + n_rows
    if not counted or done != item.n_rows:
        raise miscounted(item, done)
    return counted[0]


def count_item(run: str, recipe: str, query: str, item: WorkItem, first_row: int, in_order: InOrder = map) -> BackgroundCounts:
    """Count the rows of one item of the background: a Dask task."""
    plan, asked = open_recipe(run, recipe), open_tables(query)
    return count_rows(read_features(plan.features, asked.bins), asked, item, first_row, in_order)


def keep_counts(counted: BackgroundCounts, game: MarginalPlan, plan: Plan, allow_unseen: bool) -> Any:
    """Cache the counts for later runs if the model knows the background's categories, since later runs may not allow others.

    Parameters
    ----------
    counted : BackgroundCounts
        Of all rows.
    allow_unseen : bool

    Raises
    ------
    SchemaMismatch
        The model knows hardly any category of a feature, which is not allowed.
    """
    try:
        features = read_features(plan.features, game.query.bins)
        refuse_counted(counted.seen, features, str(plan.background), lambda name: read_some(game.items[0], name))
    except SchemaMismatch:
        if not allow_unseen:
            raise
    else:
        store_tables(counted.statistics, game.counts)
    return counted.statistics


def warm(query: str) -> None:
    """Compile or load every kernel that counting calls.

    Parameters
    ----------
    query : str
        URI of the broadcast BackgroundQuery.
    """
    call_counting(open_tables(query))
