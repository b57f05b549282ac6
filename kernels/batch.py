"""One slice of rows through a model and a method: from values to attributions."""

import numpy as np

from .buffers import Buffers, Prepared
from .method import TOLERANCE, Method
from .semivalues.tables import add_semivalues
from .trees.binning import bin_rows
from .trees.margin import add_margins


def attribute_batch(method: Method, prepared: Prepared, buffers: Buffers) -> None:
    """Bin ``buffers.values`` and overwrite all else but labels, of which what the kernel writes."""
    buffers.phi[:] = 0.0
    buffers.pairs[:] = 0.0
    buffers.margin[:] = 0.0
    bin_rows(buffers.values, prepared.bins, buffers.bins)
    add_margins(buffers.bins, prepared.margin, buffers.margin)
    method.kernel(buffers, prepared.method)
    add_semivalues(buffers.bins, prepared.pairs.tables, buffers.pairs)


def find_residuals(method: Method, prepared: Prepared, buffers: Buffers, n_rows: int) -> np.ndarray:
    """Measure how far every row's attributions are from what they have to add up to, as fractions of a bound.

    Returns
    -------
    (outputs, n_rows) float64, or (0, n_rows) where they need not add up to anything; a row breaks its promise above TOLERANCE, or where it is NaN
    """
    check = method.check
    return np.zeros((0, n_rows)) if check is None else check.residuals(prepared, buffers, n_rows)


def find_breach(residuals: np.ndarray) -> int | None:
    """Find the first row that does not add up."""
    broken = np.flatnonzero(~(residuals <= TOLERANCE).all(axis=0))
    return int(broken[0]) if broken.size else None
