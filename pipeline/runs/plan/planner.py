"""The planner: makes the Plan of a job, with work items and the projected memory of a worker."""

import dataclasses
from collections.abc import Sequence
from importlib.metadata import version

import numpy as np

from leafledger.kernels.method.jackknife import N_GROUPS
from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees.binning import padded

from ...arguments.choices import OWN
from ...dataset.columns.grouping import make_group_columns
from ...dataset.columns.partition import Groups
from ...dataset.columns.players import combination_names
from ...dataset.files.listing import Listing, make_items
from ...dataset.files.row_groups import READ_BYTES
from ...methods.interaction_lists import count_kept
from ...methods.memory import CHUNK_BYTES, ENTRY_BYTES, Extent, Memory, max_group_rows, max_item_rows, max_slice_rows
from ...methods.output_space import choose_link
from ...models.model import Model
from ..columns.reasons_file import plan_reasons
from ..columns.top_attributions import read_top
from ..job.job import Job
from ..records.plan import Plan

STATE_BYTES = 272  # of a player and output in states of summaries: as they are, as they were before a slice, as bytes, as text, and in the footer
LABEL_BYTES = 128  # of a row's label, weight and group, as read and as laid out, and what comes of them
REASON_LEAVES = 7  # columns that a list of reasons is made of


def make_plan(job: Job, model: Model, groups: Groups, found: Listing, background: Listing | None, tables: Extent) -> tuple[Plan, Memory]:
    """Decide all that the output depends on, and project what a worker needs of memory."""
    method, asked = METHODS[job.options.method], job.options.interactions is not None
    link = choose_link(job.options.space, model, method, dict(job.parameters), asked)
    draft = Plan(
        version=version("leafledger"),
        model=model.origin or job.model,
        model_digest=model.digest,
        method=job.options.method,
        parameters=job.parameters,
        groups=groups,
        interactions=job.options.interactions,
        precision=job.options.precision,
        space=job.options.space,
        link=link,
        data=found.uri,
        background=job.options.background,
        background_digest=None if background is None else background.digest,
        background_errors=job.options.background_errors,
        labels=job.labels,
        by=make_group_columns(job.options.by, found.types),
        predictions=job.options.predictions,
        top=read_top(job.options, method.attributes),
        reasons=plan_reasons(job, model, groups),
        values=job.options.values,
        global_only=job.options.global_only,
        ids=job.options.ids,
        features=model.features,
        combinations=combination_names(model, groups) if job.options.combinations == OWN else (),
        trees=job.options.trees,
        output=model.only_output,
        outputs=model.outputs,
        row_output=job.row_output,
        slice_rows=0,
        group_rows=0,
        items=(),
        rejected=found.rejected,
    )
    n_outputs, n_pairs = len(model.outputs), len(tables.pairs)
    n_columns = len(draft.ids) + len(draft.chosen) + sum(map(len, draft.columns)) + len(draft.error_columns) + 3 * len(draft.top_columns)
    n_columns += REASON_LEAVES * len(draft.reason_columns)
    n_columns += len(draft.value_columns) + bool(draft.label_column)
    lots = 2 * N_GROUPS + 2 if draft.background_errors else 0  # phi without each lot, and all of these together
    n_kept = count_kept(n_pairs, job.options.interactions)
    slice_rows = max_slice_rows(n_outputs * (tables.n_players * (1 + lots) + n_pairs + n_kept + tables.n_steps))
    n_entries = n_kept + sum(kept.most for kept in (draft.top, draft.reasons) if kept is not None)
    written = 8 * n_columns + ENTRY_BYTES * n_entries * len(draft.written_outputs)
    group_rows = max_group_rows(slice_rows, written)
    most = max_item_rows(group_rows, n_columns)
    items = make_items(found, min(job.options.item_rows or most, most), joins=job.options.item_rows is not None)
    plan = dataclasses.replace(draft, slice_rows=slice_rows, group_rows=group_rows, items=items)
    largest = max((item.n_rows for item in items), default=0)
    n_groups, held, gathered = -(-largest // group_rows), min(slice_rows, largest), min(group_rows, largest)
    # Values, bins, kinds, columns as read; margins, attributions, interactions, checks; of what is written, a chosen output, rounded, encoded.
    n_phi, entry = tables.n_players * (1 + lots), 2 * 8 + 2 * (4 + _mean_length(tables.pairs, plan.players))
    of_output = 6 * 8 + n_phi * 8 + n_pairs * 8 + tables.n_steps * 8
    of_written = n_kept * entry + n_phi * 8 * ((draft.row_output is not None) + 2 * (draft.wide and not draft.global_only))
    row_bytes = tables.n_used * (8 + 4 + 1 + 8) + n_outputs * of_output + len(draft.written_outputs) * of_written
    row_bytes += LABEL_BYTES if job.labels or draft.by else 0
    row_bytes += len(draft.value_columns) * 3 * 8  # as read, as kept, and encoded
    read = [found] if background is None else [found, background]
    states = STATE_BYTES * tables.n_players * len(draft.written_outputs)
    # While a background is counted: values as read, together, padded and ranked.
    counted = 0 if background is None else max_slice_rows(tables.n_used) * tables.n_used * (3 * 8 + 4)
    return plan, Memory(
        tables=tables.n_bytes,
        slice=max(padded(held) * row_bytes + 2 * (gathered - held) * written + states, counted),  # gathered rows, and encoded
        row_group=max(listing.row_group for listing in read) + READ_BYTES,
        footer=(n_groups * n_columns + max(listing.n_chunks for listing in read)) * CHUNK_BYTES,
    )


def _mean_length(pairs: np.ndarray, players: Sequence[str]) -> int:
    """Bytes of the name of a pair's player."""
    numbers = pairs.reshape(-1)
    lengths = np.array([len(player.encode()) for player in players])
    return int(np.ceil(lengths[numbers].mean())) if numbers.size else 0
