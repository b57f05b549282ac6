"""Interactions as columns of lists: the pairs of every row, the largest first."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from leafledger.kernels.slices.top_k import find_largest

from ..arguments.readers import ALL
from .top_k_lists import choose_largest

FIRST, SECOND, VALUE = "first", "second", "value"  # fields of an entry


def column_type(number: pa.DataType) -> pa.DataType:
    """Make the Arrow type of an interactions column: a list of pairs with values per row.

    Parameters
    ----------
    number : pa.DataType
        Of the values.
    """
    return pa.list_(pa.struct([(FIRST, pa.string()), (SECOND, pa.string()), (VALUE, number)]))


def count_kept(n_pairs: int, keep: int | str | None) -> int:
    """Return the maximal number of entries of a row.

    Parameters
    ----------
    n_pairs : int
        Pairs that interact.
    keep : int or "all", optional
        How many are asked for; None where interactions are not.
    """
    return 0 if keep is None else n_pairs if keep == ALL else min(int(keep), n_pairs)


def keep_largest(values: np.ndarray, n_kept: int) -> None:
    """Set all but each row's and output's largest values by magnitude to 0; ties keep the order of pairs.

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
        pairs = np.ascontiguousarray(values[:, k].T)
        kept = np.zeros(pairs.shape, bool)
        np.put_along_axis(kept, find_largest(pairs, n_kept), True, axis=0)
        values[:, k][~kept.T] = 0


def make_column(values: np.ndarray, n_kept: int, dtype: np.dtype, names: Sequence[pa.Array]) -> pa.Array:
    """Make the interactions column of one output.

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
    offset, chosen, value = choose_largest(values, n_kept, dtype)
    pair = pa.array(chosen)
    entries = pa.StructArray.from_arrays([names[0].take(pair), names[1].take(pair), pa.array(value)], [FIRST, SECOND, VALUE])
    return pa.ListArray.from_arrays(pa.array(offset), entries)
