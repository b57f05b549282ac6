"""The marginal game of a run: its background found while planning, counted item by item, and where the counts are kept for later runs.

Counts are kept, and not the tables that are made of them: tables are full of indices, which compiled kernels follow without looking, while counts are
numbers whose bounds and sums are known. So nobody who can write where they are kept can lead a kernel out of its arrays.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from kernels.lots import DEALING
from kernels.merge_tree import MergeTree
from kernels.method import BackgroundQuery, BackgroundStatistics, Method
from kernels.methods import METHODS
from kernels.parameters import InvalidParameters
from kernels.prepare import measure_background, merge_statistics

from ..dataset.listing import Listing, WorkItem, list_data, make_items
from ..dataset.partition import Groups
from ..dataset.rows import located, miscounted, read_slices
from ..dataset.values import fill_values, read_features
from ..errors import InvalidData, InvalidRun, NotRepeatable, SchemaMismatch, UsageError
from ..models import Model
from ..models.model import Feature
from ..records import as_fields
from ..stores import storage
from ..stores.arrays import open_stored_tables, open_tables, store_tables
from .inputs import count_unseen, refuse_counted
from .job import MODEL, TABLE_BYTES, Job, find_method, table_budget
from .listed import list_for
from .options import OWN
from .plan import Plan
from .planned import open_recipe
from .prepare import ask_model, find_shared, weigh_model
from .sizes import ITEM_ROWS, Extent, max_slice_rows
from .warming import call_counting


@dataclass(frozen=True, slots=True)
class Marginal:
    """The marginal game of a run."""

    listing: Listing | None  # of the background, None where it is the model
    query: BackgroundQuery  # what is asked of every row
    items: tuple[WorkItem, ...]  # rows to count; none where it is the model
    counts: str  # URI of the folder where counts are kept
    counted: BackgroundStatistics | None  # what an earlier run left there, or the model's own leaf weights
    extent: Extent  # of tables made of the counts

    @property
    def uncounted(self) -> bool:
        """Rows have to be counted."""
        return self.counted is None


class Counted(NamedTuple):
    """What is known of rows of a background, and what the model knows of their categories, which is not kept."""

    statistics: Any
    seen: np.ndarray  # (read, 2) int64, see `count_unseen`

    def merge(self, others: Sequence["Counted"]) -> "Counted":
        """Add up with those of other rows.

        Parameters
        ----------
        others : sequence of Counted
            Of the rows that follow.

        Returns
        -------
        Counted
        """
        parts = (self, *others)
        return Counted(merge_statistics([part.statistics for part in parts]), np.sum([part.seen for part in parts], axis=0))


def _merge(parts: Sequence[Counted]) -> Counted:
    first, *others = parts
    return first.merge(others)


def measure_rows(query: BackgroundQuery, values: np.ndarray, first_row: int) -> Counted:
    """Look at rows of a background.

    Parameters
    ----------
    query : BackgroundQuery
    values : (used, n) float64
        NaN where missing.
    first_row : int
        Number of the first row in the whole background.

    Returns
    -------
    Counted
    """
    return Counted(measure_background(query, values, first_row), count_unseen(query.bins, values))


def _name_counts(job: Job, model: Model, groups: Groups, listing: Listing) -> str:
    """The folder of the counts, named by all that decides what is in them: what is asked of rows, which rows there are, and how they are read."""
    part = model.digest, job.options.trees, model.only_output, len(model.outputs)
    asked = job.options.interactions is not None, job.options.background_errors and DEALING  # by which trees may be cut otherwise
    read = model.features, [carried for _, carried, _ in listing.files]  # under which names, what is missing, and what files do not say themselves
    decides = (version("leafledger"), part, job.options.method, groups, listing.digest, *read, *asked, "counts")
    return storage.join(job.tables, hashlib.sha256(json.dumps(decides, default=as_fields).encode()).hexdigest())


def _ask(method: Method, most: int, model: Model, groups: Groups, n_rows: int | None, interactions: bool, errors: bool) -> BackgroundQuery:
    """With TABLE_BYTES, or as many times more as it takes and a worker has room for, so that its room decides nothing but whether there is enough."""
    budget = TABLE_BYTES
    while True:
        try:
            return ask_model(model, method, groups, n_rows, budget, interactions, errors)
        except UsageError:
            budget *= 2
            if budget > most:
                raise


def _whole(uri: str, listing: Listing) -> Listing:
    """The background, if every file can be read and there are rows."""
    if listing.rejected:
        raise InvalidData(listing.rejected[0].reason)  # an average over some of the rows would be that of another game
    if not listing.n_rows:
        raise UsageError(f"{uri}: the background has no rows, expected at least one")
    return listing


def _open_counts(uri: str, query: BackgroundQuery, n_rows: int) -> BackgroundStatistics | None:
    """What an earlier run counted, if it can be what these rows give: anybody may have written it."""
    counted = open_stored_tables(uri)
    try:
        if counted is not None:
            query.check(counted, n_rows)
    except InvalidParameters as error:
        raise InvalidRun(f"{uri}: {error}; remove this folder") from error
    return counted


def plan_marginal(job: Job, model: Model, groups: Groups) -> Marginal | None:
    """List the background, match it against the model and see what it takes to count it, or find the counts that an earlier run left.

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
    InvalidRun
        Counts of an earlier run are damaged, or can be those of no rows.
    StorageError
        The store does not answer.
    """
    if job.options.background is None:
        return None
    method = find_method(job.options.method)
    listing = None if job.options.background == MODEL else _whole(job.options.background, list_for(job, job.options.background, model))
    asked = job.options.interactions is not None, job.options.background_errors
    find_shared(model, method, groups, asked[0], job.options.combinations == OWN)
    query = _ask(method, job.worker_memory // 2, model, groups, None if listing is None else listing.n_rows, *asked)
    extent = Extent(query.bins.column.size, query.players.size, query.pairs, int(query.n_bytes[0]))
    if listing is None:
        return Marginal(None, query, (), "", weigh_model(model, method, groups, query), extent)
    counts = _name_counts(job, model, groups, listing)
    return Marginal(listing, query, make_items(listing, ITEM_ROWS), counts, _open_counts(counts, query, listing.n_rows), extent)


def count_again(plan: Plan, model: Model) -> tuple[BackgroundQuery, BackgroundStatistics]:
    """Count the background of a run once more, in this process and without what is kept of it.

    Parameters
    ----------
    plan : Plan
        With a background.
    model : Model
        That it was made for.

    Returns
    -------
    query : BackgroundQuery
    counted : BackgroundStatistics

    Raises
    ------
    NotRepeatable
        The background's files are others by now.
    LeafledgerError
        The background cannot be read.
    """
    method, background = METHODS[plan.method], str(plan.background)
    listing = None if background == MODEL else _whole(background, list_data(background, model))
    if listing is not None and listing.digest != plan.background_digest:
        raise NotRepeatable(f"{background}: the background's files changed since the run was planned")
    asked = plan.interactions is not None, plan.background_errors
    query = _ask(method, table_budget(), model, plan.groups, None if listing is None else listing.n_rows, *asked)
    if listing is None:
        return query, weigh_model(model, method, plan.groups, query)
    features = read_features(plan.features, query.bins)
    items = make_items(listing, ITEM_ROWS)
    return query, merge_evenly(count_rows(features, query, item, first) for item, first in zip(items, first_rows(items), strict=True)).statistics


def first_rows(items: Sequence[WorkItem]) -> list[int]:
    """Number the rows of a background through all of its items.

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


def count_rows(features: Sequence[Feature], asked: BackgroundQuery, item: WorkItem, first_row: int = 0) -> Counted:
    """Count the rows of one item.

    Parameters
    ----------
    features : sequence of Feature
        Those that are read, in the order of the query's columns.
    asked : BackgroundQuery
    item : WorkItem
    first_row : int
        Number of its first row in the whole background, by which rows are dealt out where errors are asked for.

    Returns
    -------
    Counted

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    StorageError
        The store does not answer.
    """
    counted, done = list[Counted](), 0  # that of all rows so far
    for batch in read_slices(item, [feature.name for feature in features], max_slice_rows(asked.bins.column.size)):
        with located(item):
            values = np.zeros((asked.bins.column.size, batch.num_rows))
            fill_values(features, asked.bins, [batch.column(feature.name) for feature in features], values)
            counted, done = [_merge([*counted, measure_rows(asked, values, first_row + done)])], done + batch.num_rows
    if not counted or done != item.n_rows:
        raise miscounted(item, done)
    return counted[0]


def count_item(run: str, recipe: str, query: str, item: WorkItem, first_row: int) -> Counted:
    """Count the rows of one item of the background: what a Dask task does. Names and a small record come in.

    Parameters
    ----------
    run : str
        URI of the run's folder.
    recipe : str
        SHA-256 of the run's recipe, hexadecimal; see `plan.recipe`.
    query : str
        URI of the broadcast BackgroundQuery.
    item : WorkItem
    first_row : int
        Number of its first row in the whole background.

    Returns
    -------
    Counted

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    InvalidRun
        The recipe that was broadcast is another one.
    StorageError
        The store does not answer.
    """
    plan, asked = open_recipe(run, recipe), open_tables(query)
    return count_rows(read_features(plan.features, asked.bins), asked, item, first_row)


def merge_counts(*counted: Counted) -> Counted:
    """Add up what was counted of several parts of the background.

    Parameters
    ----------
    *counted : Counted
        At least one. Sums are rounded in this order.

    Returns
    -------
    Counted
    """
    return _merge(counted)


def merge_evenly(parts: Iterable[Counted]) -> Counted:
    """Add up by their places alone, so that sums are rounded the same wherever it is done; few are held at once.

    Parameters
    ----------
    parts : iterable of Counted
        At least one, in the order of the background's items.

    Returns
    -------
    Counted
    """
    tree = MergeTree(_merge)
    for place, part in enumerate(parts):
        tree.add(place, part)
    total = tree.total()
    if total is None:
        raise ValueError("nothing to add up, expected at least one part of a background")
    return total


def keep_counts(counted: Counted, game: Marginal, plan: Plan, allow_unseen: bool) -> Any:
    """Keep what was counted for later runs, if the model knows the background's categories: a later run may not allow others.

    Parameters
    ----------
    counted : Counted
        Of all rows.
    game : Marginal
    plan : Plan
    allow_unseen : bool

    Returns
    -------
    BackgroundStatistics

    Raises
    ------
    SchemaMismatch
        The model knows hardly any category of a feature, which is not allowed.
    StorageError
        The store does not answer.
    """
    try:
        refuse_counted(counted.seen, read_features(plan.features, game.query.bins), str(plan.background))
    except SchemaMismatch:
        if not allow_unseen:
            raise
    else:
        store_tables(counted.statistics, game.counts)
    return counted.statistics


def warm(query: str) -> None:
    """Compile, or read from the cache, every kernel that counting calls.

    Parameters
    ----------
    query : str
        URI of the broadcast BackgroundQuery.
    """
    call_counting(open_tables(query))
