"""Each row's largest values by magnitude, in one pass over the values."""

import numpy as np

from ..jit.decorator import jit
from ..trees.binning import BATCH

MOST_INSERTED = 64  # kept values from which sorting beats insertion


@jit
def _insert(values: np.ndarray, size: np.ndarray, thing: np.ndarray) -> None:
    """Fill ``size`` and ``thing (n_kept, n)`` with every row's largest magnitudes and their positions in ``values (things, n)``."""
    last = size.shape[0] - 1
    for first in range(0, values.shape[1], BATCH):
        for t in range(values.shape[0]):
            for i in range(first, min(first + BATCH, values.shape[1])):
                found = abs(values[t, i])
                if found <= size[last, i]:
                    continue
                place = last
                while place > 0 and size[place - 1, i] < found:
                    size[place, i], thing[place, i] = size[place - 1, i], thing[place - 1, i]
                    place -= 1
                size[place, i], thing[place, i] = found, t


def find_largest(values: np.ndarray, n_kept: int) -> np.ndarray:
    """Find every row's largest values by magnitude.

    Parameters
    ----------
    values : (things, n) float32 or float64
        without NaN
    n_kept : int
        how many of a row, at most ``things``

    Returns
    -------
    (n_kept, n) int64
        whose they are, the largest first, equal ones in the order of the things
    """
    n = values.shape[1]
    if not n_kept:
        return np.zeros((0, n), np.int64)
    if n_kept > MOST_INSERTED:
        return np.argsort(-np.abs(values), axis=0, kind="stable")[:n_kept]
    size, thing = np.full((n_kept, n), -1.0, values.dtype), np.zeros((n_kept, n), np.int64)
    _insert(values, size, thing)
    return thing
