"""Explanation of a work item's rows, from Parquet to a part in a local file."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers
from leafledger.kernels.slices.labels import check_groups
from leafledger.kernels.slices.links import IDENTITY, find_reach
from leafledger.kernels.slices.row_outputs import keep_outputs
from leafledger.kernels.trees.binning import padded

from ...cluster.resource_usage import PartTimings, Stopwatch
from ...dataset.columns import schema
from ...dataset.columns.grouping import group_rows
from ...dataset.columns.labels import read_labels
from ...dataset.columns.values import fill_values, read_features
from ...dataset.files.listing import WorkItem
from ...dataset.files.pieces import leave_out
from ...dataset.files.rows import located, miscounted, read_slices
from ...errors import PredictionMismatch
from ...methods.output_space import TOTALS, find_base
from ...methods.reduction_states import pack_state
from ...methods.slice_step import SliceStep
from ...methods.tables import refused
from ...models.model import Feature
from ..records.footer import Footer, write_footer
from ..records.plan import Plan
from .part_columns import RowGroups, list_columns, make_batch, open_part

PREDICTED = 1e-5  # of margins, which libraries sum in single precision over thousands of trees


def check_predictions(plan: Plan, prepared: Prepared, batch: pa.RecordBatch, buffers: Buffers, first_row: int, uri: str) -> None:
    """Refuse rows whose margins or predictions differ from the data's prediction columns."""
    total, base = TOTALS[plan.space], find_base(plan.link, prepared)[:, None]
    reach = find_reach(plan.link or IDENTITY, base, prepared.bound[:, None], buffers.margin)
    for k, name in enumerate(plan.predictions):
        found, predicted = buffers.margin[k, : batch.num_rows], schema.column_values(Feature(name), batch.column(name))
        wrong = np.flatnonzero(~(np.abs(found - predicted) <= PREDICTED * (np.abs(found) + reach[k, : batch.num_rows])))
        if wrong.size:
            row = int(wrong[0])
            raise PredictionMismatch(
                f"{uri}: row {first_row + row}: {name!r} is {predicted[row]:.7g}, expected the model's {total}, {found[row]:.7g}; "
                f"{wrong.size:,} of {batch.num_rows:,} rows there differ: another model, other inputs, or no {total}"
            )


def read_names(plan: Plan, prepared: Prepared) -> list[str]:
    """Name the columns to read of an item's rows.

    Parameters
    ----------
    prepared : Prepared
        Tables of the plan's method.

    Returns
    -------
    list of str
        Each once.
    """
    features = (feature.name for feature in read_features(plan.features, prepared.bins))
    labels = () if plan.labels is None else plan.labels.numbers
    passed = [feature.name for feature in plan.features] if plan.values else []
    return list(dict.fromkeys((*features, *plan.ids, *labels, *(column.name for column in plan.by), *plan.predictions, *passed)))


def _read_rows(item: WorkItem, names: Sequence[str], slice_rows: int) -> Iterator[tuple[WorkItem, int, pa.RecordBatch]]:
    """Yield batches of an item's files: the file's piece, the number of the batch's first row in the file, and its rows."""
    for piece in item.pieces:
        done = 0
        for batch in read_slices(piece, names, slice_rows):
            yield piece, piece.first_row + done, batch
            done += batch.num_rows
        if done != piece.n_rows:
            raise miscounted(piece, done)


def _fields_of(item: WorkItem, batch: pa.RecordBatch) -> pa.Schema:
    """Return the fields of passed-through columns, nullable if further files follow."""
    return batch.schema if not item.joined else pa.schema([pa.field(each.name, each.type) for each in batch.schema])


def write_part(
    plan: Plan, recipe: str, item: WorkItem, prepared: Prepared, local: Path, rejected: Mapping[str, str] = MappingProxyType({})
) -> PartTimings:
    """Attribute every row of an item and write the part to a local file, with reduction states in its footer.

    Parameters
    ----------
    recipe : str
        Of the plan, see `plan.recipe`.
    item : WorkItem
        One of the plan's, or its first rows.
    prepared : Prepared
        Tables of the plan's method.
    local : Path
        Where to write. It has no rows where the plan asks for summaries alone.
    rejected : mapping of str to str
        URIs of files of the item that cannot be read, but not of all, and why: they are left out.

    Raises
    ------
    InvalidData
        Rows cannot be read, or are others than were planned.
    InvalidLabel
        A label or weight cannot be used.
    UsageError
        There are more groups of rows than are worth a table.
    AdditivityBreach
        Attributions of a row do not add up, or are not finite.
    PredictionMismatch
        A margin is not what the data say that the model predicted.
    """
    watch, step = Stopwatch(), SliceStep(METHODS[plan.method], plan.check, plan.link, plan.row_output, prepared)
    buffers = make_buffers(prepared, min(plan.slice_rows, item.n_rows))
    empty = buffers if plan.row_output is None else keep_outputs(buffers, np.zeros(buffers.margin.shape[1], np.int64))
    states = {summary.name: summary.init(empty) for summary in plan.summaries}
    by, groups = tuple(column.name for column in plan.by), np.zeros(0, str)
    features = read_features(plan.features, prepared.bins)
    residual, done, writer = (0.0 if plan.additive else None), 0, None
    watch.lap("kernel")
    try:
        for piece, first_row, batch in _read_rows(leave_out(item, rejected), read_names(plan, prepared), plan.slice_rows):
            watch.lap("reading")
            n = batch.num_rows
            if padded(n) != buffers.values.shape[1]:  # kernels take all of a buffer, so the last slice gets a smaller one
                buffers = make_buffers(prepared, n)
            with located(piece):
                fill_values(features, prepared.bins, [batch.column(feature.name) for feature in features], buffers.values)
                if plan.labels is not None:
                    buffers = buffers._replace(labels=read_labels(plan.labels, batch, piece.uri, first_row))
                if by:
                    buffers = buffers._replace(labels=group_rows(buffers.labels, batch, plan.by))
                    groups = np.union1d(groups, buffers.labels.names)
                    with refused():
                        check_groups(by, groups.size, len(plan.written_outputs) * len(plan.players))
            found = step.explain(buffers, n, f"{piece.uri}: ", first_row)
            check_predictions(plan, prepared, batch, found.every, first_row, piece.uri)
            residual = found.residual if residual is None or found.residual is None else max(residual, found.residual)
            states = {summary.name: summary.update(states[summary.name], found.kept, n) for summary in plan.summaries}
            watch.lap("kernel")
            if writer is None:
                columns = list_columns(plan, prepared, _fields_of(item, batch))
                writer = open_part(local, columns, min(plan.group_rows, item.n_rows))
                row_groups = RowGroups(writer, plan.group_rows)
            done += n
            if not plan.global_only:
                row_groups.add(make_batch(columns, batch, found.kept, found.output))
            watch.lap("writing")
        watch.lap("reading")
        if writer is None:
            raise miscounted(item, done)
        row_groups.flush()
        packed = {name: pack_state(state) for name, state in states.items()}
        base = dict(zip(plan.outputs, find_base(plan.link, prepared).tolist(), strict=True))
        footer = Footer(done, residual, packed, plan.space, base, 0 if plan.global_only else done, dict(rejected))
        write_footer(writer, recipe, item, footer)
    finally:
        if writer is not None:
            writer.close()
    watch.lap("writing")
    return watch.spent()
