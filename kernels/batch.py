"""From floats to attributions: everything a worker needs of a model, and one slice of rows through it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .ensemble import TreeEnsemble
from .margin import MarginTables, add_margins, prepare_margin
from .methods import Method
from .paths import empty_coalition, margin_bound, trace
from .ranks import RankTables, padded, rank_dtype, rank_ensemble, rank_rows

ADDITIVITY_TOLERANCE = 1e-9  # of the margin bound; rounding stays near 1e-13, a wrong table is off by far more


class Prepared(NamedTuple):
    """A model and a method, ready for rows: what is broadcast."""

    ranks: RankTables
    margin: MarginTables
    method: Any  # the method's tables
    base: np.ndarray  # (outputs,) float64, value of the empty coalition
    bound: np.ndarray  # (outputs,) float64, no margin is larger


class Buffers(NamedTuple):
    """What a slice of rows is worked on in; rows are padded to a multiple of BATCH and reused from slice to slice."""

    values: np.ndarray  # (used, n) float64, the caller's input; changed by ranking
    ranks: np.ndarray  # (used, n) unsigned integers
    phi: np.ndarray  # (outputs, used, n) float64
    margin: np.ndarray  # (outputs, n) float64


def _frozen(tables):
    """The same arrays contiguous and read-only, as they are when mapped from files: kernels see one array type, and compile once."""
    if isinstance(tables, np.ndarray):
        array = np.ascontiguousarray(tables).view()
        array.flags.writeable = False
        return array
    return type(tables)(*map(_frozen, tables))


def prepare(ensemble: TreeEnsemble, method: Method, parameters: Mapping[str, float]) -> Prepared:
    """Make every table the workers read."""
    ranks, splits = rank_ensemble(ensemble)
    traced = trace(ensemble, splits.feature, ranks.column.size)
    tables = method.prepare(ensemble, splits, traced, parameters)
    margin = prepare_margin(ensemble, splits, traced)
    return _frozen(Prepared(ranks, margin, tables, empty_coalition(ensemble, traced), margin_bound(ensemble, traced)))


def make_buffers(prepared: Prepared, n_rows: int) -> Buffers:
    """Buffers for slices of at most ``n_rows`` rows, values all zero."""
    used, outputs, n = prepared.ranks.column.size, prepared.base.size, padded(n_rows)
    return Buffers(
        values=np.zeros((used, n)),
        ranks=np.zeros((used, n), rank_dtype(prepared.ranks)),
        phi=np.zeros((outputs, used, n)),
        margin=np.zeros((outputs, n)),
    )


def attribute_batch(method: Method, prepared: Prepared, buffers: Buffers) -> None:
    """Rank ``buffers.values`` and overwrite ``buffers.phi`` and ``buffers.margin``."""
    buffers.phi[:] = 0.0
    buffers.margin[:] = 0.0
    rank_rows(buffers.values, prepared.ranks, buffers.ranks)
    add_margins(buffers.ranks, prepared.margin, buffers.margin)
    method.kernel(buffers.ranks, prepared.method, buffers.phi)


def residuals(prepared: Prepared, buffers: Buffers, n_rows: int):
    """How far attributions are from adding up, ``(outputs, n_rows) float64``: |base + sum of phi - margin|, as a fraction of the margin bound."""
    total = buffers.phi[:, :, :n_rows].sum(axis=1) + prepared.base[:, None] - buffers.margin[:, :n_rows]
    return np.abs(total) / np.maximum(prepared.bound, np.finfo(np.float64).tiny)[:, None]
