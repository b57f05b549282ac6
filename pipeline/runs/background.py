"""The marginal game of a run: its background found while planning, counted item by item, and where the tables made of the counts are kept."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from kernels.method import BackgroundQuery, BackgroundStatistics, Method
from kernels.prepare import measure_background, merge_statistics

from ..dataset import schema
from ..dataset.listing import Listing, WorkItem, list_data, make_items
from ..dataset.partition import Groups
from ..dataset.rows import located, miscounted, read_slices
from ..errors import InvalidData, UsageError
from ..models import Model
from ..models.model import Feature
from ..stores import storage
from ..stores.arrays import open_stored_tables, open_tables
from .job import MODEL, TABLE_BYTES, Job, find_method
from .plan import ITEM_ROWS, Extent, Plan, extent_of, max_slice_rows
from .planned import read_plan
from .prepare import ask_model, weigh_model

FAN_IN = 8  # counts that are added up at a time


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A background before it is counted."""

    query: BackgroundQuery  # what is asked of every row
    items: tuple[WorkItem, ...]  # rows to count; none where these stand in their place:
    weights: BackgroundStatistics | None  # the model's own


@dataclass(frozen=True, slots=True)
class Marginal:
    """The marginal game of a run."""

    listing: Listing | None  # of the background, None where it is the model
    tables: str  # URI of the folder of the game's tables
    uncounted: Uncounted | None  # None where the tables are there already
    extent: Extent


def _name_tables(job: Job, model: Model, groups: Groups, listing: Listing | None) -> str:
    """The folder of the tables, named by all that decides what is in them."""
    decides = (version("leafledger"), model.digest, job.options.method, job.parameters, groups, MODEL if listing is None else listing.digest)
    return storage.join(job.tables, hashlib.sha256(json.dumps(decides).encode()).hexdigest())


def ask(model: Model, method: Method, groups: Groups, n_rows: int | None, room: int) -> BackgroundQuery:
    """Find what has to be known of a background.

    Tables may have TABLE_BYTES, or as many times more as it takes and there is room for: the room decides nothing but whether there is enough.

    Parameters
    ----------
    model : Model
    method : Method
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.
    n_rows : int or None
        Of the background; None for the model's own leaf weights.
    room : int
        Bytes.

    Returns
    -------
    BackgroundQuery

    Raises
    ------
    UsageError
        The method has no marginal game, or the tables would take more room.
    """
    budget = TABLE_BYTES
    while True:
        try:
            return ask_model(model, method, groups, n_rows, budget, False)
        except UsageError:
            budget *= 2
            if budget > room:
                raise


def _list(background: str, model: Model) -> Listing:
    """A background's files, all of which can be read: an average over some of the rows would be that of another game."""
    listing = list_data(background, (), model)
    if listing.rejected:
        raise InvalidData(listing.rejected[0].reason)
    return listing


def count_again(plan: Plan, model: Model, room: int) -> tuple[BackgroundQuery, BackgroundStatistics]:
    """Count the background of a planned run once more, in this process.

    Parameters
    ----------
    plan : Plan
        With a background.
    model : Model
        Of the run.
    room : int
        Bytes that tables may have.

    Returns
    -------
    query : BackgroundQuery
    counted : BackgroundStatistics

    Raises
    ------
    InvalidData
        The background has other files, or cannot be read.
    UsageError
        The tables would take more room.
    StorageError
        The store does not answer.
    """
    method = find_method(plan.method)
    if plan.background is None or plan.background == MODEL:
        query = ask(model, method, plan.groups, None, room)
        return query, weigh_model(model, method, plan.groups, query)
    listing = _list(plan.background, model)
    if listing.digest != plan.background_digest:
        raise InvalidData(f"{plan.background}: the background's files changed since the run was planned")
    query = ask(model, method, plan.groups, listing.n_rows, room)
    used = [plan.features[column] for column in query.bins.column]
    return query, merge_evenly(count_rows(used, query, item) for item in make_items(listing, ITEM_ROWS))


def plan_marginal(job: Job, model: Model, groups: Groups) -> Marginal | None:
    """List the background, match it against the model and see what it takes to count it, or find the tables that an earlier run left.

    Parameters
    ----------
    job : Job
    model : Model
    groups : tuple of (str, tuple of str)
        The partition, empty where there is none.

    Returns
    -------
    Marginal or None
        None where no background is given: the path-dependent game needs none.

    Raises
    ------
    UsageError
        The method has no marginal game, the background has no rows, or the tables would take more than half of a worker's memory.
    InvalidData
        A file of the background cannot be read.
    SchemaMismatch
        The background's columns do not fit the model.
    StorageError
        The store does not answer.
    """
    if job.options.background is None:
        return None
    listing = None if job.options.background == MODEL else _list(job.options.background, model)
    if listing is not None and not listing.n_rows:
        raise UsageError(f"{job.options.background}: the background has no rows, expected at least one")
    tables = _name_tables(job, model, groups, listing)
    stored = open_stored_tables(tables)
    if stored is not None:
        return Marginal(listing, tables, None, extent_of(stored))
    query = ask(model, find_method(job.options.method), groups, None if listing is None else listing.n_rows, job.worker_memory // 2)
    items = () if listing is None else make_items(listing, ITEM_ROWS)
    weights = weigh_model(model, find_method(job.options.method), groups, query) if listing is None else None
    extent = Extent(query.bins.column.size, query.players.size, np.zeros((0, 2), np.int32), int(query.n_bytes[0]))
    return Marginal(listing, tables, Uncounted(query, items, weights), extent)


def count_rows(features: Sequence[Feature], asked: BackgroundQuery, item: WorkItem) -> BackgroundStatistics:
    """Count the rows of one item.

    Parameters
    ----------
    features : sequence of Feature
        Those that splits ask for, in the order of the query's columns.
    asked : BackgroundQuery
    item : WorkItem

    Returns
    -------
    BackgroundStatistics

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    StorageError
        The store does not answer.
    """
    counted, done = None, 0
    for batch in read_slices(item, [feature.name for feature in features], max_slice_rows(len(features))):
        with located(item):
            values = [schema.column_values(feature, batch.column(feature.name), bool(asked.bins.single_precision[0])) for feature in features]
            part = measure_background(asked, np.array(values, np.float64).reshape(len(features), batch.num_rows))
        counted, done = part if counted is None else merge_statistics([counted, part]), done + batch.num_rows
    if counted is None or done != item.n_rows:
        raise miscounted(item, done)
    return counted


def count_item(run: str, plan_digest: str, query: str, item: WorkItem) -> BackgroundStatistics:
    """Count the rows of one item of the background: what a Dask task does. Names and a small record come in.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    query : str
        URI of the broadcast BackgroundQuery.
    item : WorkItem

    Returns
    -------
    BackgroundStatistics

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    InvalidRun
        The run's folder holds another plan.
    StorageError
        The store does not answer.
    """
    plan, asked = read_plan(run, plan_digest), open_tables(query)
    return count_rows([plan.features[column] for column in asked.bins.column], asked, item)


def merge_counts(*counted: BackgroundStatistics) -> BackgroundStatistics:
    """Add up what was counted of several parts of the background.

    Parameters
    ----------
    *counted : BackgroundStatistics
        At least one. Sums are rounded in this order.

    Returns
    -------
    BackgroundStatistics
    """
    return merge_statistics(counted)


def merge_evenly(parts: Iterable[BackgroundStatistics]) -> BackgroundStatistics:
    """Add up FAN_IN at a time, by their places alone, so that sums are rounded the same wherever it is done; few are held at once.

    Parameters
    ----------
    parts : iterable of BackgroundStatistics
        At least one, in the order of the background's items.

    Returns
    -------
    BackgroundStatistics
    """
    levels: list[list[BackgroundStatistics]] = [[]]
    for part in parts:
        levels[0].append(part)
        for level, held in enumerate(levels):
            if len(held) < FAN_IN:
                break
            if level + 1 == len(levels):
                levels.append([])
            levels[level + 1].append(merge_counts(*held))
            held.clear()
    last: list[BackgroundStatistics] = []
    for held in levels:
        held += last
        last = [merge_counts(*held)] if held else []
    return last[0]


def warm(query: str) -> None:
    """Compile, or read from the cache, every kernel that counting calls.

    Parameters
    ----------
    query : str
        URI of the broadcast BackgroundQuery.
    """
    asked = open_tables(query)
    merge_statistics([measure_background(asked, np.zeros((asked.bins.column.size, 1)))] * 2)
