"""Planning of the marginal game: background listing, query, and cached counts.

Counts are cached instead of the tables made of them: tables are full of indices that kernels follow unchecked, while bounds and sums of counts can be
checked. So a tampered cache cannot make a kernel read out of bounds.
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.jackknife import DEALING
from leafledger.kernels.method.method import BackgroundQuery, BackgroundStatistics, Method
from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.set_indices import Sets

from ...arguments.choices import MODEL, OWN
from ...dataset.columns.partition import Groups
from ...dataset.files.listing import Listing, WorkItem, make_items
from ...errors import InvalidData, InvalidRun, UsageError
from ...json_records import as_fields
from ...methods.interaction_lists import check_order, choose_sets
from ...methods.output_space import choose_space
from ...methods.parameters import find_method
from ...methods.tables import ask_model, find_shared, weigh_model
from ...methods.worker_memory import ITEM_ROWS, Extent
from ...models.model import Model
from ...stores import storage
from ...stores.table_arrays import open_stored_tables
from ..job.job import TABLE_BYTES, Job
from .listing import list_for


@dataclass(frozen=True, slots=True)
class MarginalPlan:
    """The planned marginal game of a run."""

    listing: Listing | None  # of the background; None if it is the model
    query: BackgroundQuery  # statistics to measure of every row
    items: tuple[WorkItem, ...]  # rows to count; empty if the background is the model
    counts: str  # URI of the folder of cached counts
    counted: BackgroundStatistics | None  # cached counts, or the model's leaf weights
    extent: Extent  # dimensions of the tables

    @property
    def uncounted(self) -> bool:
        """Whether rows have to be counted."""
        return self.counted is None


def _name_counts(job: Job, model: Model, groups: Groups, listing: Listing, sets: Sets | None, quantity: Quantity | None) -> str:
    """Name the folder of cached counts by a digest of all that determines them: query, rows, and how rows are read."""
    part = model.digest, job.options.trees, model.only_output, len(model.outputs)
    asked = job.options.interactions is not None, job.options.background_errors and DEALING  # trees may be cut differently for these
    read = model.features, [carried for _, carried, _ in listing.files]  # names, missing-value numbers, and values from paths
    order = () if sets is None else (sets.order,)
    weighted = () if quantity is None else (quantity,)  # whose sums of weights are kept as well
    decides = (version("leafledger"), part, job.options.method, groups, listing.digest, *read, *asked, *order, *weighted, "counts")
    return storage.join(job.tables, hashlib.sha256(json.dumps(decides, default=as_fields).encode()).hexdigest())


def _ask(
    method: Method,
    most: int,
    model: Model,
    groups: Groups,
    n_rows: int | None,
    interactions: bool,
    errors: bool,
    sets: Sets | None,
    quantity: Quantity | None,
) -> BackgroundQuery:
    """Make the query with TABLE_BYTES, or the multiple needed if a worker has the memory, so that memory only decides feasibility."""
    budget = TABLE_BYTES
    while True:
        try:
            return ask_model(model, method, groups, n_rows, budget, interactions, errors, sets, quantity)
        except UsageError:
            budget *= 2
            if budget > most:
                raise


def _whole(uri: str, listing: Listing) -> Listing:
    """Return the listing if every file is readable and there are rows."""
    if listing.rejected:
        raise InvalidData(listing.rejected[0].reason)  # an average over some of the rows would be another game
    if not listing.n_rows:
        raise UsageError(f"{uri}: the background has no rows, expected at least one")
    return listing


def _open_counts(uri: str, query: BackgroundQuery, n_rows: int) -> BackgroundStatistics | None:
    """Read and validate cached counts, which anybody may have written."""
    counted = open_stored_tables(uri)
    try:
        if counted is not None:
            query.check(counted, n_rows)
    except InvalidParameters as error:
        raise InvalidRun(f"{uri}: {error}; remove this folder") from error
    return counted


def plan_marginal(job: Job, model: Model, groups: Groups) -> MarginalPlan | None:
    """List the background, match it with the model and plan its counting, or find cached counts."""
    if job.options.background is None:
        return None
    listing = None if job.options.background == MODEL else _whole(job.options.background, list_for(job, job.options.background, model))
    return plan_counts(job, model, groups, listing)


def plan_counts(job: Job, model: Model, groups: Groups, listing: Listing | None) -> MarginalPlan:
    """Plan the counting of a background, None for the model's own leaf weights, or find cached counts."""
    method = find_method(job.options.method)
    asked, space = (job.options.interactions is not None, job.options.background_errors), job.options.space
    sets = choose_sets(method, job.options.interactions, job.options.order, job.options.index)
    check_order(sets, model, groups, job.options.combinations == OWN)
    _, quantity = choose_space(space, model, method, dict(job.parameters), asked[0], job.options.background)
    find_shared(model, method, groups, asked[0], job.options.combinations == OWN)
    query = _ask(method, job.placement.worker_memory // 2, model, groups, None if listing is None else listing.n_rows, *asked, sets, quantity)
    extent = Extent(query.bins.column.size, query.players.size, query.pairs, int(query.n_bytes[0]))
    if listing is None:
        return MarginalPlan(None, query, (), "", weigh_model(model, method, groups, query), extent)
    counts = _name_counts(job, model, groups, listing, sets, quantity)
    return MarginalPlan(listing, query, make_items(listing, ITEM_ROWS), counts, _open_counts(counts, query, listing.n_rows), extent)
