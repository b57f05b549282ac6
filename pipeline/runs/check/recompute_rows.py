"""Recomputation of a finished run: tables from the model and the background, and rows of parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.method.method import BackgroundQuery, BackgroundStatistics
from leafledger.kernels.methods import METHODS
from leafledger.kernels.reductions.summary import Summary
from leafledger.kernels.slices.buffers import Prepared

from ...arguments.choices import MODEL
from ...cluster.card import can_compute
from ...cluster.resources import table_budget
from ...cluster.threads import Threads
from ...dataset.columns.names import call, spell
from ...dataset.columns.values import read_features
from ...dataset.files.listing import WorkItem, list_data, make_items
from ...dataset.files.pieces import leave_out, take_rows
from ...dataset.files.row_groups import read_batches
from ...dataset.files.rows import window
from ...display.text import count as count_nouns
from ...errors import InvalidData, InvalidRun, LeafledgerError, NotRepeatable, UsageError
from ...methods.background_counts import BackgroundCounts, count_in_turn, merge_in_tree
from ...methods.output_space import choose_space
from ...methods.parameters import find_method
from ...methods.reduction_states import same_states
from ...methods.tables import prepare_model, weigh_model
from ...methods.worker_memory import ITEM_ROWS
from ...models import load_ensemble
from ...models.model import Model
from ...models.row_output import choose_among
from ...models.selection import keep_output
from ...stores import storage
from ..columns.change_columns import with_changes
from ..execute.count_background import count_rows, first_rows
from ..execute.drop_rows import drop_rows
from ..execute.write_part import write_part
from ..plan.background import _ask, _whole
from ..records.footer import Footer, read_footer
from ..records.manifest import Game, describe_game
from ..records.plan import Plan


def recount_background(plan: Plan, model: Model, n_threads: int) -> tuple[BackgroundQuery, BackgroundStatistics]:
    """Count the background of a run again, on threads of this process and without cached counts."""
    method, background = METHODS[plan.method], str(plan.background)
    listing = None if background == MODEL else _whole(background, list_data(background, model))
    if listing is not None and listing.digest != plan.background_digest:
        raise NotRepeatable(f"{background}: the background's files changed since the run was planned")
    asked = plan.interactions is not None, plan.background_errors
    query = _ask(method, table_budget(), model, plan.groups, None if listing is None else listing.n_rows, *asked, plan.sets, plan.quantity)
    if listing is None:
        return query, weigh_model(model, method, plan.groups, query)
    features = read_features(plan.features, query.bins)
    items = make_items(listing, ITEM_ROWS)
    numbered = list(zip(items, first_rows(items), strict=True))

    def count(asked: BackgroundQuery) -> BackgroundCounts:
        threads = Threads(n_threads)
        counted = threads.map(lambda each: count_rows(features, asked, *each, in_order=threads.in_order), numbered)
        return merge_in_tree((item.part, counts) for (item, _), counts in counted)

    return query, count_in_turn(query, count).statistics


SAMPLE_ROWS = 64  # rows recomputed of every part


@dataclass(frozen=True, slots=True)
class RecomputedTables:
    """The method's tables of a run, recomputed."""

    prepared: Prepared
    game: Game  # the manifest's description of the game


def recompute_tables(plan: Plan, model: str | None, n_threads: int = 1) -> RecomputedTables:
    """Load a run's model and make the method's tables again."""
    if plan.version != version("leafledger"):
        raise NotRepeatable(f"the run is of leafledger {plan.version}, this is {version('leafledger')}")
    if not can_compute(plan.device):
        raise NotRepeatable("a graphics card computed its attributions, and there is none here")
    try:
        missing = next((feature.missing for feature in plan.features if feature.missing is not None), None)
        found = load_ensemble(plan.model if model is None else model, missing, trees=plan.trees)
    except LeafledgerError as error:
        if model is not None:
            raise
        raise NotRepeatable(str(error)) from error
    if found.digest != plan.model_digest:
        differs = f"SHA-256 is {found.digest[:12]}, the run's model had {plan.model_digest[:12]}"
        if model is not None:
            raise UsageError(f"{model}: {differs}")
        raise NotRepeatable(f"{plan.model}: {differs}")
    if plan.output is not None and plan.output >= len(found.outputs):
        raise InvalidRun(f"{plan.model}: has {count_nouns(len(found.outputs), 'output')}, the run's plan is of number {plan.output} alone")
    found = choose_among(plan.row_output, found if plan.output is None else keep_output(found, plan.output))
    found = replace(found, outputs=plan.outputs) if len(plan.outputs) == len(found.outputs) else found  # outputs may have been renamed
    found = call(found, *spell(found.features, [feature.name for feature in plan.features], plan.model))
    method, asked = find_method(plan.method), plan.interactions is not None
    if (found.features, found.outputs) != (plan.features, plan.outputs):
        raise InvalidRun(f"{plan.model}: has other features or outputs than the run's plan")
    carried = choose_space(plan.space, found, method, dict(plan.parameters), asked, plan.background)
    if carried != (plan.link, plan.quantity):
        raise InvalidRun(f"{plan.model}: has another link or loss than the run's plan")
    try:
        background = None if plan.background is None else recount_background(plan, found, n_threads)
    except LeafledgerError as error:
        raise NotRepeatable(str(error)) from error
    prepared = prepare_model(found, method, dict(plan.parameters), plan.groups, asked, bool(plan.combinations), background, plan.sets)
    prepared = with_changes(prepared, found, plan.reasons)
    return RecomputedTables(prepared, describe_game(found.library, prepared, plan.link))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace dictionaries by values: rows that were read separately, or without others, may have other dictionaries."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def same_values(found: pa.ChunkedArray, stored: pa.ChunkedArray) -> bool:
    """Return whether columns are equal, with NaN equal to itself, as in id columns."""
    if found.equals(stored):
        return True
    if found.type == stored.type and pa.types.is_dictionary(found.type):
        return _plain(found).equals(_plain(stored))
    if found.type != stored.type or not pa.types.is_floating(found.type) or not found.is_null().equals(stored.is_null()):
        return False
    return np.array_equal(found.to_numpy(), stored.to_numpy(), equal_nan=True)


def _pieces(parquet: pq.ParquetFile, n_rows: int, at_a_time: int) -> Iterator[pa.Table]:
    """Read the first rows in pieces of equal size, across row groups."""
    held, n_held = list[pa.RecordBatch](), 0
    for batch in window(read_batches(parquet, range(parquet.num_row_groups), parquet.schema_arrow.names, at_a_time), 0, n_rows):
        first = batch.slice(0, at_a_time - n_held)
        held, n_held = [*held, first], n_held + first.num_rows
        if n_held == at_a_time:
            yield pa.Table.from_batches(held)
            held, n_held = [batch.slice(first.num_rows)], batch.num_rows - first.num_rows
    if n_held:
        yield pa.Table.from_batches(held)


def _compare(uri: str, found: Path, stored: Path, n_rows: int, at_a_time: int) -> None:
    """Refuse a part whose first rows differ from the recomputed ones."""
    done = 0
    with pq.ParquetFile(found, pre_buffer=False) as ours, pq.ParquetFile(stored, pre_buffer=False) as theirs:
        if [(each.name, each.type) for each in ours.schema_arrow] != [(each.name, each.type) for each in theirs.schema_arrow]:
            raise InvalidRun(f"{uri}: its columns differ from those of its rows explained again")
        for mine, other in zip(_pieces(ours, n_rows, at_a_time), _pieces(theirs, n_rows, at_a_time), strict=True):
            for name in mine.column_names:
                if not same_values(mine[name], other[name]):
                    raise InvalidRun(f"{uri}: rows {done} to {done + mine.num_rows - 1} explained again differ in column {name!r}")
            done += mine.num_rows


def _compare_footers(uri: str, found: Footer, stored: Footer, summaries: Sequence[Summary]) -> None:
    if found.residual != stored.residual:
        raise InvalidRun(f"{uri}: its residual is {stored.residual}, that of its rows explained again {found.residual}")
    for summary in summaries:
        if not same_states(summary.reduction, found.states[summary.name], stored.states[summary.name]):
            raise InvalidRun(f"{uri}: its state of {summary.name!r} differs from that of its rows explained again")


def recompute_part(
    uri: str,
    plan: Plan,
    made_by: str,
    item: WorkItem,
    prepared: Prepared,
    local: Path,
    all_rows: bool,
    rejected: Mapping[str, str],
    forgotten: Sequence[int] = (),
) -> int:
    """Recompute a part's first SAMPLE_ROWS rows, or all, and compare those that are not forgotten."""
    if plan.global_only and not all_rows:
        raise NotRepeatable(f"{uri}: it has summaries alone, for which all rows would have to be explained again")
    there = leave_out(item, rejected)
    n_rows = there.n_rows if all_rows else min(SAMPLE_ROWS, there.n_rows)
    asked = item if all_rows else take_rows(there, 0, n_rows)
    again = local.with_name("again")
    try:
        write_part(plan, made_by, asked, prepared, again, rejected if all_rows else {})
    except InvalidData as error:
        raise NotRepeatable(str(error)) from error
    gone = [row for row in forgotten if row < n_rows]
    if gone and not plan.global_only:
        again, n_rows = drop_rows(again, gone, local.with_name("without")), n_rows - len(gone)
    if all_rows and storage.sha256(again) == storage.sha256(local):
        return n_rows
    _compare(uri, again, local, 0 if plan.global_only else n_rows, plan.slice_rows if all_rows else SAMPLE_ROWS)
    if all_rows:
        found, stored = (read_footer(uri, path, made_by, item) for path in (again, local))
        _compare_footers(uri, found, stored, plan.summaries)
    return n_rows
