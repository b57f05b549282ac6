"""Largest values of each row, and their encoding as lists in Parquet."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from leafledger.kernels.slices.top_k import find_largest

from .precision import round_to


def leaves(column: str, *fields: str) -> list[str]:
    """Name the Parquet leaves of the fields of a list column.

    Parameters
    ----------
    *fields : str
        Names of them.
    """
    return [f"{column}.list.element.{field}" for field in fields]


def choose_largest(values: np.ndarray, n_kept: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose each row's largest values by magnitude, in descending order with ties in their own; zeros are left out.

    Parameters
    ----------
    values : (things, n) float64
    n_kept : int
        Entries of a row, at most.
    dtype : float32 or float64
        In which values are stored; they are compared as stored.

    Returns
    -------
    offset : (n + 1,) int32
        Row i's entries are ``entry[offset[i]:offset[i + 1]]``.
    thing : (entries,) int64
    value : (entries,) of ``dtype``
    """
    stored = round_to(values, dtype)
    things = find_largest(stored, min(n_kept, len(stored))).T
    found = np.take_along_axis(stored.T, things, axis=1)
    there = found != 0  # zeros sort last
    offset = np.concatenate(([0], np.cumsum(there.sum(axis=1)))).astype(np.int32)
    return offset, things[there], found[there]


def gather(thing: np.ndarray, row: np.ndarray, write: Callable[[int, np.ndarray], pa.Array], kind: pa.DataType) -> pa.Array:
    """Build an array over all entries, calling ``write`` once for each distinct thing.

    Parameters
    ----------
    thing : (entries,) int
    row : (entries,) int
        Where each entry stands.
    write : callable
        From a thing and its (m,) rows to m values of ``kind``.

    Returns
    -------
    pa.Array
        Of all entries, in their order.
    """
    order = np.argsort(thing, kind="stable")
    starts = np.flatnonzero(np.diff(thing[order], prepend=-1))
    pieces = [pa.nulls(0, kind), *(write(int(thing[some[0]]), row[some]) for some in (np.split(order, starts[1:]) if thing.size else ()))]
    back = np.empty(order.size, np.int64)
    back[order] = np.arange(order.size)
    return pa.concat_arrays(pieces).take(pa.array(back))
