"""The rows of one work item, from Parquet to a part in a local file."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from kernels.batch import ADDITIVITY_TOLERANCE, Buffers, Prepared, attribute_batch, loss_residuals, make_buffers, residuals
from kernels.methods import METHODS, Method
from kernels.trees.binning import padded

from ..dataset import schema
from ..dataset.labels import check_groups, read_labels
from ..dataset.listing import WorkItem
from ..dataset.rows import carried_types, located, miscounted, read_slices
from ..errors import AdditivityBreach
from .columns import list_columns, make_batch, open_part
from .footer import Footer, write_footer
from .plan import Plan
from .states import init_state, pack_state, update_state


def fill_values(plan_features, prepared: Prepared, batch: pa.RecordBatch, buffers: Buffers) -> None:
    """Put the columns that some split asks for into ``buffers.values``."""
    for j, column in enumerate(prepared.bins.column):
        feature = plan_features[column]
        buffers.values[j, : batch.num_rows] = schema.column_values(feature, batch.column(feature.name))
        buffers.values[j, batch.num_rows :] = 0.0


def check_additivity(method: Method, prepared: Prepared, buffers: Buffers, n_rows: int, where: str, first_row: int) -> float | None:
    """The largest residual of the slice's rows, None where attributions need not add up to margins; refuse what does not add up to what it should."""
    if not method.additive and not method.labelled:
        return None
    if not n_rows:
        return 0.0
    found = (loss_residuals if method.labelled else residuals)(prepared, buffers, n_rows)
    breaches = np.flatnonzero(~(found <= ADDITIVITY_TOLERANCE).all(axis=0))
    if breaches.size:
        row = breaches[0]
        what = (
            ("losses miss what trees take off the squared error", "its")
            if method.labelled
            else ("attributions miss margin - base value", "the margin's")
        )
        raise AdditivityBreach(
            f"{where}row {first_row + row}: {what[0]} by {found[:, row].max():.3g} of {what[1]} bound, expected at most {ADDITIVITY_TOLERANCE:g}"
        )
    return float(found.max()) if method.additive else None


def explain_item(plan: Plan, plan_digest: str, item: WorkItem, prepared: Prepared, local: Path) -> None:
    """Attribute every row of the item and write the part to a local file, reduction states and digests in its footer; no rows where summaries are all
    that is asked for."""
    method = METHODS[plan.method]
    buffers = make_buffers(prepared, min(plan.slice_rows, item.n_rows))
    states = {name: init_state(name, buffers) for name in plan.reductions}
    labels = () if plan.labels is None else plan.labels.names
    wanted = list(dict.fromkeys((*(plan.features[column].name for column in prepared.bins.column), *plan.ids, *labels)))
    residual, done, writer = (0.0 if method.additive else None), 0, None
    try:
        for batch in read_slices(item, wanted, carried_types(plan.items), plan.slice_rows):
            n = batch.num_rows
            if padded(n) != buffers.values.shape[1]:  # kernels take all of a buffer, so the last slice gets a smaller one
                buffers = make_buffers(prepared, n)
            with located(item):
                fill_values(plan.features, prepared, batch, buffers)
                if plan.labels is not None:
                    buffers = buffers._replace(labels=read_labels(plan.labels, batch, item.uri, item.first_row + done))
                    check_groups(plan.labels, buffers.labels.names.size, len(plan.players))
            attribute_batch(method, prepared, buffers)
            found = check_additivity(method, prepared, buffers, n, f"{item.uri}: ", item.first_row + done)
            residual = found if residual is None or found is None else max(residual, found)
            states = {name: update_state(name, state, buffers, n) for name, state in states.items()}
            if writer is None:
                columns = list_columns(plan, prepared, batch.schema)
                writer = open_part(local, columns)
            if not plan.global_only:
                writer.write_batch(make_batch(columns, prepared, batch, buffers))
            done += n
        if done != item.n_rows or writer is None:
            raise miscounted(item, done)
        packed = {name: pack_state(state) for name, state in states.items()}
        write_footer(writer, plan_digest, item, Footer(done, residual, packed), 0 if plan.global_only else done)
    finally:
        if writer is not None:
            writer.close()
