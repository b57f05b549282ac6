"""One batch of rows through a model and a method: from feature values to attributions."""

from functools import partial
from typing import Any

import numpy as np

from .jit.decorator import jit
from .method.method import TOLERANCE, Check, Method, miss_margins
from .reductions.input_counts import classify
from .slices.buffers import Buffers, Prepared, Sharing
from .trees.binning import bin_rows
from .trees.margin import add_margins
from .weighted.rows import carry_rows, find_carried_misses


@jit
def _share(played: np.ndarray, sharing: Sharing, phi: np.ndarray) -> None:
    """Split every row of ``played (outputs, played, n)`` equally among the rows of ``phi (outputs, rows, n)`` that share it."""
    for output in range(phi.shape[0]):
        for r in range(played.shape[1]):
            start, stop = sharing.start[r], sharing.start[r + 1]
            for k in range(start, stop):
                phi[output, sharing.row[k]] += played[output, r] / (stop - start)


def _play(method: Method, prepared: Prepared, tables: Any, buffers: Buffers) -> None:
    """Run the method's kernel with some tables, overwriting phi."""
    buffers.phi[:] = 0.0
    if prepared.n_played:
        buffers.played[:] = 0.0
        method.kernel(buffers._replace(phi=buffers.played), tables)
        _share(buffers.played, prepared.sharing, buffers.phi)
    else:
        method.kernel(buffers, tables)


def attribute_batch(method: Method, prepared: Prepared, buffers: Buffers, n_rows: int | None = None) -> None:
    """Bin ``buffers.values`` and overwrite every other buffer that the kernel writes; labels stay.

    Parameters
    ----------
    method : Method
        by which ``prepared`` was made
    buffers : Buffers
        as ``make_buffers`` makes them for ``prepared``. ``values`` hold the rows, NaN where missing; they are changed where the library compares
        float32 or reads zeros as missing. ``labels`` hold the rows' own where the method needs them
    n_rows : int, optional
        how many rows count, the first; of others anything may be found. All of the buffers' if not given
    """
    if n_rows is not None:
        buffers = buffers._replace(n_rows=n_rows)
    buffers.pairs[:] = 0.0
    buffers.margin[:] = 0.0
    bin_rows(buffers.values, prepared.bins, buffers.bins)
    classify(buffers.bins, prepared.bins, buffers.kinds)
    add_margins(buffers.bins, prepared.margin, buffers.margin)
    if prepared.weighted.tables:
        carry_rows(prepared, buffers, partial(_play, method, prepared))
        return
    _play(method, prepared, prepared.method, buffers)
    for lot, tables in enumerate(prepared.without.tables):
        _play(method, prepared, tables, buffers._replace(phi=buffers.without[lot]))
    prepared.pairs.tables.add(buffers.bins, buffers.pairs, buffers.n_rows)


def find_residuals(check: Check | None, prepared: Prepared, buffers: Buffers, n_rows: int) -> np.ndarray:
    """Measure each row's additivity residual as a fraction of its bound.

    Parameters
    ----------
    check : Check or None
        of the method, given its parameters
    buffers : Buffers
        as ``attribute_batch`` left them
    n_rows : int
        how many of the rows count, the first

    Returns
    -------
    residuals : (outputs, n_rows) float64, or (0, n_rows) where they need not add up to anything
        a row breaks its promise above TOLERANCE, or where it is NaN
    """
    return np.zeros((0, n_rows)) if check is None else check.residuals(prepared, buffers, n_rows)


def find_set_residuals(prepared: Prepared, buffers: Buffers, n_rows: int) -> np.ndarray:
    """Measure by how much each row's interactions miss what they add up to, as a fraction of the row's bound; (0, n_rows) where they may."""
    if not prepared.pairs.tables.add_up:
        return np.zeros((0, n_rows))
    if prepared.weighted.tables:
        return find_carried_misses(buffers.pairs, buffers, n_rows)
    return miss_margins(buffers.pairs, prepared, buffers, n_rows)


def find_breach(residuals: np.ndarray) -> int | None:
    """Find the first row that violates additivity.

    Parameters
    ----------
    residuals : (outputs, n_rows) float64
        as ``find_residuals`` returns them

    Returns
    -------
    int or None
        number of the first row with a residual above TOLERANCE, or NaN, for any output; None where all rows add up
    """
    broken = np.flatnonzero(~(residuals <= TOLERANCE).all(axis=0))
    return int(broken[0]) if broken.size else None


def find_not_finite(buffers: Buffers, n_rows: int) -> int | None:
    """Find the first row with an infinite or NaN margin, attribution or interaction.

    Parameters
    ----------
    buffers : Buffers
        as ``attribute_batch`` left them
    n_rows : int
        how many of the rows count, the first

    Returns
    -------
    int or None
        number of the row; None where all is finite
    """
    found = [values[..., :n_rows] for values in (buffers.margin, buffers.phi, buffers.pairs)]
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite([values.sum() for values in found]).all():
            return None
    broken = ~np.concatenate([np.isfinite(values).reshape(-1, n_rows) for values in found]).all(axis=0)
    return int(np.argmax(broken)) if broken.any() else None
