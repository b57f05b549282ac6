"""Explanation of a work item's rows, from Parquet to a part in a local file."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers, take_rows
from leafledger.kernels.slices.labels import check_groups
from leafledger.kernels.slices.links import find_reach
from leafledger.kernels.trees.binning import padded

from ...cluster.card import method_on
from ...cluster.resource_usage import PartTimings, Stopwatch
from ...dataset.columns import schema
from ...dataset.columns.grouping import group_rows
from ...dataset.columns.labels import read_labels
from ...dataset.columns.row_places import RowPlaces
from ...dataset.columns.values import fill_values, read_features
from ...dataset.files.joined_slices import JoinedSlice, join_slices
from ...dataset.files.listing import WorkItem
from ...dataset.files.pieces import leave_out
from ...dataset.files.rows import miscounted, read_rows
from ...errors import PredictionMismatch
from ...methods.output_space import TOTALS, find_base, find_scale
from ...methods.reduction_states import pack_state
from ...methods.slice_step import Slice, SliceStep
from ...methods.tables import refused
from ...models.model import Feature
from ..records.footer import Footer, write_footer
from ..records.plan import Plan
from .part_columns import RowGroups, list_columns, make_batch, open_part

InOrder = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]  # as ``map``
PREDICTED = 1e-5  # of margins, which libraries sum in single precision over thousands of trees


def check_predictions(plan: Plan, prepared: Prepared, batch: pa.RecordBatch, buffers: Buffers, places: RowPlaces) -> None:
    """Refuse rows whose margins or predictions differ from the data's prediction columns."""
    total, base = TOTALS[plan.space], find_base(plan.link, prepared)[:, None]
    reach = find_reach(find_scale(plan.link, plan.quantity), base, prepared.bound[:, None], buffers.margin)
    for k, name in enumerate(plan.predictions):
        found, predicted = buffers.margin[k, : batch.num_rows], schema.column_values(Feature(name), batch.column(name))
        wrong = np.flatnonzero(~(np.abs(found - predicted) <= PREDICTED * (np.abs(found) + reach[k, : batch.num_rows])))
        if wrong.size:
            row = int(wrong[0])
            start, stop = places.span_of(row, batch.num_rows)
            raise PredictionMismatch(
                f"{places.name(row)}: {name!r} is {predicted[row]:.7g}, expected the model's {total}, {found[row]:.7g}; "
                f"{(wrong < stop).sum():,} of {stop - start:,} rows there differ: another model, other inputs, or no {total}"
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


def _fields_of(item: WorkItem, batch: pa.RecordBatch) -> pa.Schema:
    """Return the fields of passed-through columns, nullable if further files follow."""
    return batch.schema if not item.joined else pa.schema([pa.field(each.name, each.type) for each in batch.schema])


class _Explained(NamedTuple):
    """A slice of rows, as read and as explained."""

    batch: pa.RecordBatch
    places: RowPlaces
    buffers: Buffers
    found: Slice


def _explain_slices(plan: Plan, prepared: Prepared, rows: Iterable[JoinedSlice], in_order: InOrder, watch: Stopwatch) -> Iterator[_Explained]:
    """Explain slices, each in buffers of its own, which further slices take once it is done with."""
    method = method_on(plan.device, METHODS[plan.method], prepared)
    step, features = SliceStep(method, plan.check, plan.link, plan.row_output, prepared), read_features(plan.features, prepared.bins)
    free = list[Buffers]()

    def explain(read: JoinedSlice) -> _Explained:
        batch, places, n = read.batch, read.places, read.batch.num_rows
        with watch.timed("kernel"):
            buffers = free.pop() if free else make_buffers(prepared, n)
            if padded(n) != buffers.values.shape[1]:  # kernels take all of a buffer, so the last slice gets a smaller one
                buffers = make_buffers(prepared, n)
            values, labels = buffers.values, buffers.labels
            read.convert(lambda some: fill_values(features, prepared.bins, [some.column(feature.name) for feature in features], values))
            if plan.labels is not None:
                labels = read_labels(plan.labels, batch, places, plan.quantity)
            if plan.by:
                ungrouped = labels
                labels = read.convert(lambda some: group_rows(ungrouped, some, plan.by))
            buffers = buffers._replace(labels=labels)
            found = step.explain(buffers, n, places)
            check_predictions(plan, prepared, batch, found.every, places)
            return _Explained(batch, places, buffers, found)

    for explained in in_order(explain, rows):
        yield explained
        free.append(explained.buffers)


def write_part(
    plan: Plan,
    recipe: str,
    item: WorkItem,
    prepared: Prepared,
    local: Path,
    rejected: Mapping[str, str] = MappingProxyType({}),
    in_order: InOrder = map,
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
    in_order : callable
        Explains the slices and yields them in order, as ``map`` does, perhaps on several threads.

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
    watch, states, groups = Stopwatch(), dict[str, Any](), np.zeros(0, str)
    by = tuple(column.name for column in plan.by)
    residual, done, writer = (0.0 if plan.additive else None), 0, None
    read = read_rows(leave_out(item, rejected), read_names(plan, prepared), plan.slice_rows)
    rows = watch.iterate("reading", join_slices(read, plan.slice_rows))
    try:
        for batch, places, buffers, found in _explain_slices(plan, prepared, rows, in_order, watch):
            spans = places.spans(batch.num_rows)
            with watch.timed("kernel"):
                if by:
                    groups = np.union1d(groups, buffers.labels.names)
                    with refused():
                        check_groups(by, groups.size, len(plan.written_outputs) * len(plan.players))
                residual = found.residual if residual is None or found.residual is None else max(residual, found.residual)
                states = states or {summary.name: summary.init(found.kept) for summary in plan.summaries}
                for start, stop in spans:  # each by itself, so that sums do not depend on what is explained together
                    some = found.kept if len(spans) == 1 else take_rows(found.kept, start, stop)
                    states = {summary.name: summary.update(states[summary.name], some, stop - start) for summary in plan.summaries}
            with watch.timed("writing"):
                if writer is None:
                    columns = list_columns(plan, prepared, _fields_of(item, batch))
                    writer = open_part(local, columns, min(plan.group_rows, item.n_rows))
                    row_groups = RowGroups(writer, plan.group_rows)
                done += batch.num_rows
                if not plan.global_only:
                    made = make_batch(columns, batch, found.kept, found.output)
                    for start, stop in spans:
                        row_groups.add(made.slice(start, stop - start))
        if writer is None:
            raise miscounted(item, done)
        with watch.timed("writing"):
            row_groups.flush()
            packed = {name: pack_state(state) for name, state in states.items()}
            base = {} if plan.base_columns else dict(zip(plan.outputs, find_base(plan.link, prepared).tolist(), strict=True))
            footer = Footer(done, residual, packed, plan.space, base, 0 if plan.global_only else done, dict(rejected))
            write_footer(writer, recipe, item, footer)
    finally:
        if writer is not None:
            with watch.timed("writing"):
                writer.close()
    return watch.spent()
