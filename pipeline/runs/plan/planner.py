"""A plan made of a job, its model and its data: what is written, how many rows go together, and what a worker needs of memory."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

from leafledger.kernels.method.jackknife import N_GROUPS
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.links import IDENTITY
from leafledger.kernels.trees.binning import padded

from ...arguments.choices import FILE, OWN
from ...dataset.columns.grouping import make_group_columns
from ...dataset.columns.partition import Groups
from ...dataset.columns.players import combination_names
from ...dataset.files.bundling import bundle_small, fill_items
from ...dataset.files.listing import Listing, make_items
from ...dataset.files.row_groups import READ_BYTES
from ...methods.interaction_lists import choose_sets, count_kept
from ...methods.output_space import choose_space
from ...methods.worker_memory import CHUNK_BYTES, ENTRY_BYTES, Extent, Memory, max_group_rows, max_item_rows, max_slice_rows
from ...models.model import Model
from ...models.objectives import Margin
from ..columns.reasons_file import plan_reasons
from ..columns.top_attributions import read_top
from ..job.job import Job
from ..records.plan import Plan

STATE_BYTES = 272  # of a player and output in states of summaries: as they are, as they were before a slice, as bytes, as text, and in the footer
LABEL_BYTES = 128  # of a row's label, weight and group, as read and as laid out, and what comes of them
LEAST_ROWS, LEAST_GROUPS = 100_000, 4  # rows and row groups of a part that is made of small files, whichever is less
TOP_LEAVES, REASON_LEAVES, CHANGE_LEAVES = 3, 7, 4  # columns that a list of the largest attributions, of reasons, and of changes is made of


@dataclass(frozen=True, slots=True)
class RowSize:
    """What a row takes of a slice, and of a part."""

    n_columns: int  # of a part, as Parquet counts them
    n_phi: int  # attributions to an output, with those without each group of a background
    n_kept: int  # interactions of an output that are written
    written: int  # bytes


def draft_plan(job: Job, model: Model, groups: Groups, found: Listing, background: Listing | None) -> Plan:
    """Decide all that the output depends on, but how many rows go together."""
    options, method = job.options, METHODS[job.options.method]
    link, quantity = choose_space(options.space, model, method, dict(job.parameters), options.interactions is not None, options.background)
    return Plan(
        version=version("leafledger"),
        model=model.origin or job.model,
        model_digest=model.digest,
        method=options.method,
        parameters=job.parameters,
        groups=groups,
        interactions=options.interactions,
        sets=choose_sets(method, options.interactions, options.order, options.index),
        precision=options.precision,
        device=options.device,
        space=options.space,
        link=link,
        quantity=quantity,
        predicts=model.objective.margin is Margin.LABEL and model.objective.link == IDENTITY,
        data=found.uri,
        background=options.background,
        background_digest=None if background is None else background.digest,
        background_errors=options.background_errors,
        labels=job.labels,
        by=make_group_columns(options.by, found.types),
        predictions=options.predictions,
        top=read_top(options, method.attributes),
        reasons=plan_reasons(job, model, groups),
        values=options.values,
        global_only=options.global_only,
        ids=options.ids,
        features=model.features,
        combinations=combination_names(model, groups) if options.combinations == OWN else (),
        trees=options.trees,
        output=model.only_output,
        outputs=model.outputs,
        row_output=job.row_output,
        slice_rows=0,
        group_rows=0,
        items=(),
        rejected=found.rejected,
    )


def _count_columns(draft: Plan) -> int:
    """Count the columns of a part, as Parquet counts them."""
    n_columns = len(draft.ids) + len(draft.chosen) + sum(map(len, draft.columns)) + len(draft.error_columns)
    n_columns += TOP_LEAVES * len(draft.top_columns) + REASON_LEAVES * len(draft.reason_columns) + CHANGE_LEAVES * len(draft.change_columns)
    return n_columns + len(draft.value_columns) + bool(draft.label_column)


def measure_row(draft: Plan, tables: Extent) -> RowSize:
    """Count what a row has."""
    n_columns = _count_columns(draft)
    lots = 2 * N_GROUPS + 2 if draft.background_errors else 0  # phi without each lot, and all of these together
    n_kept = count_kept(len(tables.pairs), draft.interactions)
    n_entries = n_kept + sum(kept.most for kept in (draft.top, draft.reasons) if kept is not None)
    n_entries += len(draft.reasons.changes.features) if draft.reasons is not None and draft.reasons.changes is not None else 0
    written = 8 * n_columns + ENTRY_BYTES * n_entries * len(draft.written_outputs)
    return RowSize(n_columns, tables.n_players * (1 + lots), n_kept, written)


def size_items(draft: Plan, tables: Extent, row: RowSize, found: Listing, item_rows: int | str | None) -> Plan:
    """Decide how many rows are explained at a time, and go into a row group and a part."""
    slice_rows = max_slice_rows(len(draft.outputs) * (row.n_phi + len(tables.pairs) + row.n_kept + tables.n_steps))
    return _cut(draft, slice_rows, max_group_rows(slice_rows, row.written), found, item_rows)


def _cut(draft: Plan, slice_rows: int, group_rows: int, found: Listing, item_rows: int | str | None) -> Plan:
    """Divide the rows into work items: of small files, of about so many rows, or of single files."""
    most = max_item_rows(group_rows, _count_columns(draft))
    items = make_items(found, min(item_rows, most) if isinstance(item_rows, int) else most)
    if isinstance(item_rows, int) and found.alike:
        items = fill_items(items, min(item_rows, most))
    elif item_rows != FILE and found.alike:
        items = bundle_small(items, max(1, min(LEAST_ROWS, LEAST_GROUPS * group_rows, most // 2)), most)
    return dataclasses.replace(draft, slice_rows=slice_rows, group_rows=group_rows, items=items)


def plan_again(earlier: Plan, job: Job, model: Model, groups: Groups, found: Listing, background: Listing | None) -> Plan:
    """Plan without tables: they decide no more than how many rows go together, which is as in an earlier plan of the same model and options."""
    draft = draft_plan(job, model, groups, found, background)
    return _cut(draft, earlier.slice_rows, earlier.group_rows, found, job.options.item_rows)


def project_memory(plan: Plan, tables: Extent, row: RowSize, found: Listing, background: Listing | None) -> Memory:
    """Project what a worker needs to explain the largest item; a term to a line."""
    n_pairs, n_written = len(tables.pairs), len(plan.written_outputs)
    largest = max((item.n_rows for item in plan.items), default=0)
    held, gathered, n_groups = min(plan.slice_rows, largest), min(plan.group_rows, largest), -(-largest // plan.group_rows)
    read = [found] if background is None else [found, background]
    inputs = tables.n_used * (8 + 4 + 1 + 8)  # values, bins, kinds, columns as read
    interacting = n_pairs * (1 + (plan.quantity is not None))  # with those of one weighted background
    found_of_row = len(plan.outputs) * 8 * (6 + row.n_phi + interacting + tables.n_steps)  # margins and checks, attributions, interactions, paths
    chosen = n_written * 8 * row.n_phi * (plan.row_output is not None)  # those of the row's own output
    rounded = n_written * 8 * row.n_phi * 2 * (plan.wide and not plan.global_only)  # and encoded
    listed = n_written * row.n_kept * (2 * 8 + _mean_length(tables.pairs, plan.players))  # interactions, rounded and encoded, with names
    labels = LABEL_BYTES if plan.labels or plan.by else 0
    values = len(plan.value_columns) * 3 * 8  # as read, as kept, and encoded
    explained = padded(held) * (inputs + found_of_row + chosen + rounded + listed + labels + values)
    waiting = 2 * (gathered - held) * row.written  # rows of the row group, and encoded
    states = STATE_BYTES * (tables.n_players + (n_pairs if plan.sets is not None else 0)) * n_written
    counted = 0 if background is None else max_slice_rows(tables.n_used) * tables.n_used * (3 * 8 + 4)  # values as read, together, padded and ranked
    return Memory(
        tables=tables.n_bytes,
        slice=max(explained + waiting + states, counted),
        row_group=max(listing.row_group for listing in read) + READ_BYTES,
        footer=(n_groups * row.n_columns + max(listing.n_chunks for listing in read)) * CHUNK_BYTES,
    )


def make_plan(job: Job, model: Model, groups: Groups, found: Listing, background: Listing | None, tables: Extent) -> tuple[Plan, Memory]:
    """Decide all that the output depends on, and project what a worker needs of memory."""
    draft = draft_plan(job, model, groups, found, background)
    row = measure_row(draft, tables)
    plan = size_items(draft, tables, row, found, job.options.item_rows)
    return plan, project_memory(plan, tables, row, found, background)


def _mean_length(pairs: np.ndarray, players: Sequence[str]) -> int:
    """Bytes of the names of a pair's, or a set's, players."""
    numbers = pairs[pairs >= 0]
    lengths = np.array([len(player.encode()) for player in players])
    return int(np.ceil((4 + np.ceil(lengths[numbers].mean())) * numbers.size / len(pairs))) if numbers.size else 0
