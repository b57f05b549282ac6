"""Interactions as they are stored: of every row the pairs that interact, the largest first."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from .arguments import ALL
from .precision import round_to

BLOCK = 1 << 20  # values that are sorted at a time
FIRST, SECOND, VALUE = "first", "second", "value"  # fields of an entry


def column_type(number: pa.DataType) -> pa.DataType:
    """Make the type of a column of interactions: a list of pairs and their values, per row.

    Parameters
    ----------
    number : pa.DataType
        Of the values.

    Returns
    -------
    pa.DataType
    """
    return pa.list_(pa.struct([(FIRST, pa.string()), (SECOND, pa.string()), (VALUE, number)]))


def leaves(column: str, *fields: str) -> list[str]:
    """Name the leaves of Parquet's schema that hold fields of a column's entries.

    Parameters
    ----------
    column : str
    *fields : str
        FIRST, SECOND or VALUE.

    Returns
    -------
    list of str
    """
    return [f"{column}.list.element.{field}" for field in fields]


def count_kept(n_pairs: int, keep: int | str | None) -> int:
    """Count the entries that a row has at most.

    Parameters
    ----------
    n_pairs : int
        Pairs that interact.
    keep : int or "all", optional
        How many are asked for; None where interactions are not.

    Returns
    -------
    int
    """
    return 0 if keep is None else n_pairs if keep == ALL else min(int(keep), n_pairs)


def _largest(values: np.ndarray, n_kept: int) -> np.ndarray:
    """The ``n_kept`` largest of every row by magnitude, ``(n, n_kept)`` indices in order of magnitude, equal ones in their own order."""
    n, n_pairs = values.shape
    size = np.abs(values)
    if n_kept < n_pairs:
        last = np.partition(size, n_pairs - n_kept, axis=1)[:, n_pairs - n_kept, None]
        above, equal = size > last, size == last
        chosen = above | (equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= n_kept - above.sum(axis=1, keepdims=True)))
        index = np.nonzero(chosen)[1].reshape(n, n_kept)
    else:
        index = np.broadcast_to(np.arange(n_pairs), (n, n_pairs))
    order = np.argsort(-np.take_along_axis(size, index, axis=1), axis=1, kind="stable")
    return np.take_along_axis(index, order, axis=1)


def keep_largest(values: np.ndarray, n_kept: int) -> None:
    """Set to 0, of every row and output, all values but the largest by magnitude, equal ones in the order of pairs.

    Parameters
    ----------
    values : (n, outputs, pairs) float64, margin units
        Changed in place.
    n_kept : int
        How many of a row and output are kept, at most ``pairs``.
    """
    if n_kept == values.shape[2]:
        return
    for k in range(values.shape[1]):
        kept = np.zeros((len(values), values.shape[2]), bool)
        np.put_along_axis(kept, _largest(values[:, k], n_kept), True, axis=1)
        values[:, k][~kept] = 0


def _blocks(values: np.ndarray, n_kept: int, dtype: np.dtype) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    rows = max(1, BLOCK // max(1, len(values)))
    for start in range(0, values.shape[1], rows):
        block = round_to(np.ascontiguousarray(values[:, start : start + rows].T), dtype)
        index = _largest(block, n_kept)
        found = np.take_along_axis(block, index, axis=1)
        there = found != 0  # zeros come last
        yield there.sum(axis=1), index[there], found[there]


def choose(values: np.ndarray, n_kept: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every row the pairs with the largest values by magnitude, largest first, equal ones in the order of pairs; zeros are left out.

    Parameters
    ----------
    values : (pairs, n) float64, margin units
    n_kept : int
        Entries of a row, at most.
    dtype : float32 or float64
        In which values are stored; they are compared as stored.

    Returns
    -------
    offset : (n + 1,) int32
        Row i's entries are ``entry[offset[i]:offset[i + 1]]``.
    pair : (entries,) int32
    value : (entries,) of ``dtype``
    """
    blocks = list(_blocks(values, n_kept, dtype)) if n_kept else []
    counts, pairs, found = zip(*blocks, strict=True) if blocks else ((np.zeros(values.shape[1], np.int64),), (), ())
    offset = np.concatenate(([0], np.cumsum(np.concatenate(counts)))).astype(np.int32)
    return offset, np.concatenate([np.zeros(0, np.int32), *pairs]).astype(np.int32), np.concatenate([np.zeros(0, dtype), *found])


def make_column(values: np.ndarray, n_kept: int, dtype: np.dtype, names: Sequence[pa.Array]) -> pa.Array:
    """Make the column of one output's interactions.

    Parameters
    ----------
    values : (pairs, n) float64, margin units
    n_kept : int
        Entries of a row, at most.
    dtype : float32 or float64
        In which values are stored.
    names : two pa.Array of (pairs,) string
        Of every pair's first player, and of its second.

    Returns
    -------
    pa.ListArray
        n lists of entries, the largest by magnitude first.
    """
    offset, chosen, value = choose(values, n_kept, dtype)
    pair = pa.array(chosen)
    entries = pa.StructArray.from_arrays([names[0].take(pair), names[1].take(pair), pa.array(value)], [FIRST, SECOND, VALUE])
    return pa.ListArray.from_arrays(pa.array(offset), entries)
