"""The largest of many values, row by row, and lists of them in Parquet."""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from .precision import round_to

BLOCK = 1 << 20  # values that are sorted at a time


def leaves(column: str, *fields: str) -> list[str]:
    """Name the leaves of Parquet's schema that hold fields of a column of lists.

    Parameters
    ----------
    column : str
    *fields : str
        Names of them.

    Returns
    -------
    list of str
    """
    return [f"{column}.list.element.{field}" for field in fields]


def find_largest(values: np.ndarray, n_kept: int) -> np.ndarray:
    """Find the largest values of every row by magnitude.

    Parameters
    ----------
    values : (n, things) float
    n_kept : int
        How many, at most ``things``.

    Returns
    -------
    (n, n_kept) int64
        Indices in order of magnitude, equal ones in their own order.
    """
    n, n_things = values.shape
    size = np.abs(values)
    if n_kept < n_things:
        last = np.partition(size, n_things - n_kept, axis=1)[:, n_things - n_kept, None]
        above, equal = size > last, size == last
        chosen = above | (equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= n_kept - above.sum(axis=1, keepdims=True)))
        index = np.nonzero(chosen)[1].reshape(n, n_kept)
    else:
        index = np.broadcast_to(np.arange(n_things), (n, n_things))
    order = np.argsort(-np.take_along_axis(size, index, axis=1), axis=1, kind="stable")
    return np.take_along_axis(index, order, axis=1)


def _blocks(values: np.ndarray, n_kept: int, dtype: np.dtype) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rows = max(1, BLOCK // max(1, len(values)))
    for start in range(0, values.shape[1], rows):
        block = round_to(np.ascontiguousarray(values[:, start : start + rows].T), dtype)
        index = find_largest(block, n_kept)
        found = np.take_along_axis(block, index, axis=1)
        there = found != 0  # zeros come last
        yield there.sum(axis=1), index[there], found[there]


def choose_largest(values: np.ndarray, n_kept: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose of every row the largest values by magnitude, the largest first, equal ones in their own order; zeros are left out.

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
    thing : (entries,) int32
    value : (entries,) of ``dtype``
    """
    blocks = list(_blocks(values, n_kept, dtype)) if n_kept else []
    counts, things, found = zip(*blocks, strict=True) if blocks else ((np.zeros(values.shape[1], np.int64),), (), ())
    offset = np.concatenate(([0], np.cumsum(np.concatenate(counts)))).astype(np.int32)
    return offset, np.concatenate([np.zeros(0, np.int32), *things]).astype(np.int32), np.concatenate([np.zeros(0, dtype), *found])


def gather(thing: np.ndarray, row: np.ndarray, write: Callable[[int, np.ndarray], pa.Array], kind: pa.DataType) -> pa.Array:
    """Say something of every entry, one thing at a time.

    Parameters
    ----------
    thing : (entries,) int
    row : (entries,) int
        Where each entry stands.
    write : callable
        From a thing and its (m,) rows to m values of ``kind``.
    kind : pa.DataType

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
