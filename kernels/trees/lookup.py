"""Look-up tables of trees with few distinct comparisons: the outcomes form a code, the row of a table.

A symmetric tree of depth m makes m comparisons in its 2^m - 1 splits, so its attributions are one of 2^m rows (the leaf codes of CatBoost's own
evaluator). Codes are computed for 32 rows at a time, in bytes where they fit; a table's row is loaded four numbers at a time and shuffled into lanes.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..arrays.ordering import group_starts
from ..jit.decorator import jit
from ..jit.lanes import LANES, QUAD, WIDE, load, mark, store, take, zeros
from .binning import BinnedSplits, is_member
from .ensemble import TreeEnsemble
from .paths import Trace

MAX_COMPARISONS = 10  # a table has 2**MAX_COMPARISONS rows at most
ENTRIES_PER_NODE = 32  # largest table relative to its tree; walks need about as many constants
WORD_BITS = 62  # bits of a code in one number, so that numbers stay positive
LOOKUP_ROWS = 1 << 13  # rows of data per tree: with fewer, large tables would be read from memory too often
MARK_FEATURE, MARK_LOWER, MARK_SPAN, MARK_MEMBERS, MARK_BIT = range(5)  # columns of LookupTables.marks


class Comparisons(NamedTuple):
    """Distinct comparisons of every tree."""

    number: np.ndarray  # (nodes,) int32, number of the split's comparison in its tree, -1 at leaves
    start: np.ndarray  # (trees + 1,) int64, tree t's comparisons are node[start[t]:start[t + 1]]
    node: np.ndarray  # (comparisons,) int64, a split with the comparison


class LookupTables(NamedTuple):
    """Look-up tables of trees or parts of them, concatenated."""

    marks: np.ndarray  # (marks, 5) int32: a comparison, see BinnedSplits, and the bit that it sets in the code
    start: np.ndarray  # (tables + 1,) int64, table t's codes are made by marks[start[t]:start[t + 1]]
    column: np.ndarray  # (tables + 1,) int64, table t's codes have marks[start[t]:start[t + 1]]
    target: np.ndarray  # (columns,) int32, row of the result that a column is added to
    n_codes: np.ndarray  # (tables,) int32, rows of the table
    first: np.ndarray  # (tables,) int64, where the table starts in values; its rows are padded, see padded_width
    values: np.ndarray  # float64
    words: np.ndarray  # uint32


def compare(ensemble: TreeEnsemble, splits: BinnedSplits, trace: Trace) -> Comparisons:
    """Find the distinct comparisons of every tree."""
    inner = np.flatnonzero(ensemble.feature >= 0)
    comparison = (trace.tree, splits.feature, ensemble.category_set, splits.lower, splits.span, ensemble.missing_left)
    rows = np.stack([array[inner].astype(np.int64) for array in comparison], axis=1)
    order = np.lexsort(rows.T[::-1])
    new = np.append(True, (rows[order[1:]] != rows[order[:-1]]).any(axis=1))[: order.size]
    node = inner[order[new]]
    start = group_starts(trace.tree[node], ensemble.root.size)
    number = np.full(ensemble.feature.size, -1, np.int32)
    number[inner[order]] = np.cumsum(new) - 1 - start[trace.tree[inner[order]]]
    return Comparisons(number, start, node)


def worth_looking_up(comparisons: Comparisons, n_nodes: np.ndarray, columns: np.ndarray, entries_per_node: int | None = None) -> np.ndarray:
    """Choose the trees whose tables are small enough.

    Parameters
    ----------
    n_nodes, columns : (trees,) int64, of the trees and of their tables
    entries_per_node : int, optional
        how many times as large as its tree a table may be, ENTRIES_PER_NODE if not given

    Returns
    -------
    chosen : (trees,) bool
    """
    n_comparisons, most = np.diff(comparisons.start), ENTRIES_PER_NODE if entries_per_node is None else entries_per_node
    small = (n_comparisons > 0) & (n_comparisons <= MAX_COMPARISONS)
    return small & (columns << np.minimum(n_comparisons, MAX_COMPARISONS) <= most * n_nodes)


def outcomes(n_comparisons: int, n_rows: int, dtype: type[np.generic]) -> np.ndarray:
    """List all combinations of outcomes of some comparisons, as bins 0 and 1.

    Parameters
    ----------
    dtype : type
        of a bin

    Returns
    -------
    bins : (n_comparisons, n_rows) dtype
        row r's outcomes are the bits of r
    """
    return (np.arange(n_rows) >> np.arange(n_comparisons)[:, None] & 1).astype(dtype)


def descend(ensemble: TreeEnsemble, comparisons: Comparisons, tree: int, left: np.ndarray) -> np.ndarray:
    """Find the leaf of a tree that each row reaches.

    Parameters
    ----------
    left : (comparisons, n) bool
        rows go left, at each distinct comparison of the tree

    Returns
    -------
    node : (n,) int64
    """
    node = np.full(left.shape[1], ensemble.root[tree], np.int64)
    while (ensemble.feature[node] >= 0).any():
        inner = np.flatnonzero(ensemble.feature[node] >= 0)
        v = node[inner]
        node[inner] = np.where(left[comparisons.number[v], inner], ensemble.left[v], ensemble.right[v])
    return node


def look_up(splits: BinnedSplits, comparisons: Comparisons, trees: Iterable[int], targets: Sequence, tables: Sequence) -> LookupTables:
    """Concatenate the tables of trees.

    Parameters
    ----------
    trees : (tables,) int
    targets : sequence of (columns,) int
        of every table, the rows of the result that its columns are added to
    tables : sequence of (2**comparisons, columns) float64
    """
    nodes = [comparisons.node[comparisons.start[t] : comparisons.start[t + 1]] for t in trees]
    node = np.concatenate(nodes) if nodes else np.zeros(0, np.int64)
    start = np.cumsum([0, *(part.size for part in nodes)])
    bit = np.arange(node.size) - np.repeat(start[:-1], np.diff(start))
    marks = np.stack((splits.feature[node], splits.lower[node], splits.span[node], splits.members[node], bit), axis=1)
    return end_to_end(marks, start, targets, tables, splits.words)


@jit
def padded_width(n_columns: int) -> int:
    """Return the padded width of a table's row: 1, or a multiple of QUAD."""
    return n_columns if n_columns == 1 else (n_columns + QUAD - 1) // QUAD * QUAD


def end_to_end(marks: np.ndarray, start: np.ndarray, targets: Sequence, tables: Sequence, words: np.ndarray) -> LookupTables:
    """Concatenate tables.

    Parameters
    ----------
    marks : (marks, 5) int, see LookupTables
    start : (tables + 1,) int64
    targets, tables : as ``look_up`` takes them, a table has a row for every code
    words : uint32
    """
    ends = np.cumsum([0, *(len(table) * padded_width(table.shape[1]) for table in tables)])
    values = zeros(ends[-1])
    for table, first, end in zip(tables, ends[:-1], ends[1:], strict=True):
        values[first:end].reshape(len(table), -1)[:, : table.shape[1]] = table
    return LookupTables(
        marks=narrow(marks),
        start=start,
        column=np.cumsum([0, *(len(target) for target in targets)]),
        target=np.concatenate([np.zeros(0), *targets]).astype(np.int32),
        n_codes=np.array([len(table) for table in tables], np.int32),
        first=ends[:-1],
        values=values,
        words=words,
    )


@jit
def make_codes(bins: np.ndarray, n: int, row: int, size: int, tables: Any, t: int, codes: np.ndarray, members: np.ndarray) -> None:
    """Compute the codes of some rows at one table.

    Parameters
    ----------
    bins : (used * n,) unsigned integers
    n : int, rows of data
    row, size : int, the first of the rows, and how many, a multiple of WIDE
    tables : LookupTables, or a record with its ``marks``, ``start`` and ``words``
    t : int, the table
    codes : (words * LOOKUP_ROWS,) of a type that holds WORD_BITS bits of them, or all, overwritten: the lowest word of all rows, then the next; with
        one word ``size`` or more are enough
    members : (LOOKUP_ROWS,) as bins, to work in; ``size`` or more are enough
    """
    for first in range(0, codes.size, LOOKUP_ROWS):
        codes[first : first + size] = 0
    for m in range(tables.start[t], tables.start[t + 1]):
        at, to = tables.marks[m, MARK_FEATURE] * n + row, tables.marks[m, MARK_BIT] // WORD_BITS * LOOKUP_ROWS
        bit = 1 << np.int64(tables.marks[m, MARK_BIT] % WORD_BITS)
        lower, span, word = np.int64(tables.marks[m, MARK_LOWER]), np.int64(tables.marks[m, MARK_SPAN]), tables.marks[m, MARK_MEMBERS]
        if word < 0:
            for i in range(0, size, WIDE):
                mark(codes, to + i, bins, at + i, lower, span, bit)
        else:
            for i in range(size):
                members[i] = is_member(tables.words, word, np.int64(bins[at + i]))
            for i in range(0, size, WIDE):
                mark(codes, to + i, members, i, lower, span, bit)


@jit
def make_starts(codes: np.ndarray, width: int, size: int, starts: np.ndarray) -> None:
    """Return the table offsets of the rows that codes select.

    Parameters
    ----------
    codes : (n,) unsigned integers
    width : int, numbers in a row of the table
    size : int, how many of the codes count, the first
    starts : (n,) uint32, overwritten
    """
    for i in range(size):
        starts[i] = np.uint32(codes[i]) * np.uint32(width)


@jit
def add_lookups(bins: np.ndarray, tables: LookupTables, out: np.ndarray) -> None:
    """Add the table row of every tree, for every row of data.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    out : (rows, n) float64
    """
    n = bins.shape[1]
    flat_bins, flat_out = bins.reshape(-1), out.reshape(-1)
    narrow, wide = np.empty(LOOKUP_ROWS, np.uint8), np.empty(LOOKUP_ROWS, np.uint16)
    members, starts = np.empty(LOOKUP_ROWS, bins.dtype), np.empty(LOOKUP_ROWS, np.uint32)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for t in range(tables.first.size):
            n_columns = tables.column[t + 1] - tables.column[t]
            if tables.n_codes[t] <= 1 << 8:
                make_codes(flat_bins, n, row, size, tables, t, narrow, members)
                make_starts(narrow, padded_width(n_columns), size, starts)
            else:
                make_codes(flat_bins, n, row, size, tables, t, wide, members)
                make_starts(wide, padded_width(n_columns), size, starts)
            if n_columns == 1:
                table, sums = tables.values[tables.first[t] :], out[tables.target[tables.column[t]], row : row + size]
                for i in range(size):
                    sums[i] += table[starts[i]]
                continue
            for k in range(0, n_columns, QUAD):
                column, last = tables.column[t] + k, n_columns - k - 1
                first = tables.target[column] * n + row
                second = tables.target[column + min(1, last)] * n + row
                third = tables.target[column + min(2, last)] * n + row
                fourth = tables.target[column + min(3, last)] * n + row
                for i in range(0, size, LANES):
                    w, x, y, z = take(tables.values, tables.first[t] + k, starts, i)
                    store(flat_out, first + i, load(flat_out, first + i) + w)
                    if last > 0:
                        store(flat_out, second + i, load(flat_out, second + i) + x)
                    if last > 1:
                        store(flat_out, third + i, load(flat_out, third + i) + y)
                    if last > 2:
                        store(flat_out, fourth + i, load(flat_out, fourth + i) + z)
