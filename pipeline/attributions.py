"""Attributions of rows in memory, on all cores of this machine."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.batch import ADDITIVITY_TOLERANCE, Prepared, attribute_batch, make_buffers, prepare, residuals
from kernels.methods import Method

from . import schema
from .config import check_parameters, count_cores, find_method
from .errors import AdditivityBreach, SchemaMismatch
from .models import load_ensemble
from .models.model import Feature, Model
from .part import fill_values

SLICE_ROWS = 1 << 13


@dataclass(frozen=True, slots=True)
class Attributions:
    """What each feature contributed to each row's margin.

    phi : (n, outputs, features) float64, margin units; base : (outputs,) float64, margin with every feature absent; margin : (n, outputs)
    float64, raw score. Where the method is additive, ``phi.sum(axis=2) + base`` is ``margin``.
    """

    phi: np.ndarray
    base: np.ndarray
    margin: np.ndarray


def _as_batch(model: Model, rows: Any) -> tuple[tuple[Feature, ...], pa.RecordBatch]:
    """Rows as Arrow columns, and how to read them: a data frame's hold categories, a matrix's, in the model's order, their codes."""
    names = [feature.name for feature in model.features]
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2 or rows.shape[1] != len(model.features):
            raise SchemaMismatch(f"rows have shape {rows.shape}, the model was trained on {len(model.features)} features")
        coded = tuple(Feature(feature.name, feature.categorical) for feature in model.features)
        return coded, pa.record_batch([pa.array(column) for column in rows.T.astype(np.float64)], names=names)
    try:
        table = pa.table(rows).combine_chunks()
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise SchemaMismatch(f"rows are a {type(rows).__name__} that Arrow cannot read: {' '.join(str(error).split())}") from error
    schema.check_columns(model.features, (), table.schema, (), "rows")
    columns = [table.column(name) for name in names]
    arrays = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in columns]
    return model.features, pa.record_batch(arrays, names=names)


def _attribute_slice(features, method: Method, prepared: Prepared, batch: pa.RecordBatch, first: int, out: Attributions) -> None:
    n, column = batch.num_rows, prepared.ranks.column
    buffers = make_buffers(prepared, n)
    fill_values(features, prepared, batch, buffers)
    attribute_batch(method, prepared, buffers)
    if method.additive:
        found = residuals(prepared, buffers, n).max(axis=0, initial=0.0)
        breaches = np.flatnonzero(~(found <= ADDITIVITY_TOLERANCE))
        if breaches.size:
            raise AdditivityBreach(
                f"row {first + breaches[0]}: attributions miss margin - base value by {found[breaches[0]]:.3g} of the margin's bound"
            )
    out.phi[first : first + n, :, column] = buffers.phi[:, :, :n].transpose(2, 0, 1)
    out.margin[first : first + n] = buffers.margin[:, :n].T


def attribute(ensemble: Model | Any, rows: Any, method: str = "shapley", **parameters: float) -> Attributions:
    """Attribute every row's margin to the features.

    Parameters
    ----------
    ensemble : a loaded model, or whatever ``load_ensemble`` takes
    rows : data frame or Arrow table with the features by name (categories as values), or an (n, features) matrix in the model's order (categories
        as codes); NaN or null where missing
    method : one of ``METHODS``
    **parameters : the method's own

    Returns
    -------
    Attributions
    """
    model = load_ensemble(ensemble)
    chosen = find_method(method)
    prepared = prepare(model.ensemble, chosen, check_parameters(chosen, parameters))
    features, batch = _as_batch(model, rows)
    n, outputs = batch.num_rows, prepared.base.size
    out = Attributions(np.zeros((n, outputs, len(model.features))), prepared.base, np.zeros((n, outputs)))

    def work(first):
        _attribute_slice(features, chosen, prepared, batch.slice(first, SLICE_ROWS), first, out)

    with ThreadPoolExecutor(count_cores()) as threads:
        list(threads.map(work, range(0, n, SLICE_ROWS)))
    return out
