"""Binning of values by thresholds: the only comparison of floats, after which splits compare small integers."""

from typing import Any, NamedTuple

import numpy as np

from ..jit.decorator import jit
from .ensemble import WORD_BITS, TreeEnsemble
from .statistics import Statistics

BATCH = 128  # buffers are padded to a multiple of this many rows; kernels take as many at a time, or half
BIN_TYPES: dict[int, type[np.unsignedinteger]] = {
    2: np.uint16,
    4: np.uint32,
}  # by bytes; of one byte they would gain next to nothing, and need kernels of their own
ZERO = float(np.float32(1e-35))  # LightGBM's kZeroThreshold, a float32 literal there


class BinTables(NamedTuple):
    """Binning of each used feature; used features are those in splits, in column order.

    With statistics, their source columns are used too, and every statistic is a feature after those of the data.
    """

    column: np.ndarray  # (used,) int32, the feature's column in the ensemble
    start: np.ndarray  # (used + 1,) int64, feature j's thresholds are threshold[start[j]:start[j + 1]]
    threshold: np.ndarray  # float64, sorted and distinct, padded with +inf to a length of 2**steps - 1
    n_codes: np.ndarray  # (used,) int64, number of known categories; 0 on numeric features
    zero_missing: np.ndarray  # (used,) int32, number of known categories; 0 on numeric features
    single_precision: np.ndarray  # (1,) bool
    width: np.ndarray  # (1,) int64, bytes of a bin: 2 or 4
    statistics: Statistics  # with bins in place of codes

    @property
    def read(self) -> np.ndarray:
        """Return the used features that are columns of the data, ``(read,) int32``: all but statistics, which come last."""
        return self.column[: self.column.size - self.statistics.column.size]


class BinnedSplits(NamedTuple):
    """The ensemble's nodes with every split as a comparison of bins.

    A row goes left iff ``bin - lower <= span`` modulo the width of a bin: the missing bin is the highest, so an interval that starts there continues
    at bin 0. At a categorical split, bit ``bin`` of the words from ``members`` on replaces the bin.
    """

    feature: np.ndarray  # (nodes,) int32, position among the used features, -1 at leaves
    lower: np.ndarray  # (nodes,) int64
    span: np.ndarray  # (nodes,) int64
    members: np.ndarray  # (nodes,) int64, first word of the set of bins that go left, -1 on numeric splits and leaves
    words: np.ndarray  # uint32, the sets of all nodes, concatenated


def padded(n: int) -> int:
    """Return the size of a buffer for ``n`` rows: the next multiple of BATCH."""
    return -(-n // BATCH) * BATCH


def bin_dtype(tables: BinTables) -> type[np.unsignedinteger]:
    """Return the dtype of a bin.

    Returns
    -------
    type
        np.uint16 or np.uint32
    """
    return BIN_TYPES[int(tables.width[0])]


def _binned_sets(ensemble: TreeEnsemble, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Make the bin sets of the categorical ``nodes (m,)``: their first words ``(m,)``, and all words concatenated.

    A set has a bit for each code, for unseen and for missing, one more than in the ensemble.
    """
    words = []
    for node in nodes:
        stored = ensemble.category_set[node]
        missing = int(ensemble.n_categories[ensemble.feature[node]]) + 1
        row = np.zeros(missing // WORD_BITS + 1, np.uint32)
        codes = ensemble.set_words[ensemble.set_start[stored] : ensemble.set_start[stored + 1]]
        row[: codes.size] = codes
        row[missing // WORD_BITS] |= np.uint32(int(ensemble.missing_left[node]) << (missing % WORD_BITS))
        words.append(row)
    ends = np.cumsum([row.size for row in words], dtype=np.int64)
    return np.concatenate(([0], ends[:-1])), np.concatenate(words)


def _bin_statistics(statistics: Statistics, thresholds: list[np.ndarray]) -> Statistics:
    """Replace the codes of statistics by bins, given each one's sorted distinct thresholds."""
    code = statistics.code.copy()
    sizes = np.diff(statistics.key_start)[statistics.projection] + 1
    for start, size, threshold in zip(statistics.code_start, sizes, thresholds, strict=True):
        code[start : start + size] = np.searchsorted(threshold, statistics.code[start : start + size])
    return statistics._replace(code=code)


def find_used(ensemble: TreeEnsemble) -> np.ndarray:
    """Find the columns needed: those of splits, statistics, and sources of statistics."""
    statistics = ensemble.statistics
    return np.unique(np.concatenate((ensemble.feature[ensemble.feature >= 0], statistics.source, statistics.column))).astype(np.int32)


def read_columns(ensemble: TreeEnsemble) -> np.ndarray:
    """Find the columns that rows have to have.

    Returns
    -------
    (read,) int32
        ascending; as ``BinTables.read``
    """
    used = find_used(ensemble)
    return used[: used.size - ensemble.statistics.column.size]


def bin_ensemble(ensemble: TreeEnsemble) -> tuple[BinTables, BinnedSplits]:
    """Collect every feature's distinct thresholds, and express every split by bins.

    Returns
    -------
    bins : BinTables
    splits : BinnedSplits
    """
    inner = np.flatnonzero(ensemble.feature >= 0)
    column = find_used(ensemble)
    used = np.searchsorted(column, ensemble.feature[inner]).astype(np.int32)
    feature = np.full(ensemble.feature.size, -1, np.int32)
    feature[inner] = used
    lower, span = np.ones(feature.size, np.int64), np.zeros(feature.size, np.int64)
    members = np.full(feature.size, -1, np.int64)

    by_feature = inner[np.argsort(used, kind="stable")]
    ends = np.cumsum(np.bincount(used, minlength=column.size))
    n_codes = ensemble.n_categories[column].astype(np.int64)
    start, lists = np.zeros(column.size + 1, np.int64), []
    highest = 0
    for j, nodes in enumerate(np.split(by_feature, ends[:-1]) if column.size else []):
        distinct = np.zeros(0)
        if n_codes[j] == 0:
            distinct, position = np.unique(ensemble.threshold[nodes], return_inverse=True)
            lower[nodes] = np.where(ensemble.missing_left[nodes], -1, 0)
            span[nodes] = position - lower[nodes]
        highest = max(highest, distinct.size, int(n_codes[j]) + 1)
        steps = int(distinct.size).bit_length()
        lists.append(np.concatenate((distinct, np.full(2**steps - 1 - distinct.size, np.inf))))
        start[j + 1] = start[j] + lists[-1].size
    categorical = inner[ensemble.category_set[inner] >= 0]
    words = np.zeros(0, np.uint32)
    if categorical.size:
        members[categorical], words = _binned_sets(ensemble, categorical)
    tables = BinTables(
        column=column,
        start=start,
        threshold=np.concatenate(lists) if lists else np.zeros(0),
        n_codes=n_codes,
        zero_missing=ensemble.zero_missing[column],
        single_precision=np.array([ensemble.single_precision]),
        width=np.array([next(w for w in BIN_TYPES if highest < 2 ** (8 * w) - 1)], np.int64),
        statistics=_bin_statistics(ensemble.statistics, [each[np.isfinite(each)] for each in lists[column.size - ensemble.statistics.column.size :]]),
    )
    return tables, BinnedSplits(feature, lower, span, members, words)


def complement(lower: Any, span: Any) -> tuple[Any, Any]:
    """Turn the interval of bins that go left into that of bins that go right.

    On a circle of bins, the complement of the interval from ``lower`` to ``lower + span``. Comparisons of set membership with 1, see
    ``BinnedSplits``, are complemented the same way.

    Parameters
    ----------
    lower, span : int, or int64 of one shape, as in ``BinnedSplits``

    Returns
    -------
    lower, span : of the same type and shape
    """
    return lower + span + 1, -span - 2


def child_intervals(splits: BinnedSplits, nodes: np.ndarray, to_left: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the bins that send a row from each split to one of its children.

    Parameters
    ----------
    nodes : (m,) int, splits
    to_left : (m,) bool, the left child, or else the right one

    Returns
    -------
    lower, span : (m,) int64, intervals as in ``BinnedSplits``
    """
    lower, span = splits.lower[nodes], splits.span[nodes]
    beyond, rest = complement(lower, span)
    return np.where(to_left, lower, beyond), np.where(to_left, span, rest)


@jit
def is_member(words: np.ndarray, first: int, bin_: int) -> np.int64:
    """Return whether a bin is in a set.

    Parameters
    ----------
    words : uint32, sets end to end
    first : int, the set's first word

    Returns
    -------
    int64
        1 or 0
    """
    return np.int64((words[first + bin_ // WORD_BITS] >> np.uint32(bin_ % WORD_BITS)) & np.uint32(1))


@jit
def _bin_numbers(values: np.ndarray, threshold: np.ndarray, start: int, stop: int, position: np.ndarray) -> None:
    """Count the thresholds below each of ``values (n,)`` by binary search, the highest bit first.

    ``position (n,) uint64`` is overwritten: unsigned, so that indices need no sign check. Bits are shifted in, since LLVM would branch on conditional
    additions: six times as long on an Intel, where half of the predictions fail.
    """
    position[:] = 0
    one, ahead = np.uint64(1), np.uint64((stop - start + 1) // 2)
    while ahead > 0:
        middle, twice = threshold[start + np.int64(ahead) - 1 : stop], ahead << one
        for i in range(values.size):
            position[i] = position[i] << one | np.uint64(middle[position[i] * twice] < values[i])
        ahead >>= one


@jit
def _bin_codes(values: np.ndarray, n_codes: int, position: np.ndarray) -> None:
    """Turn category codes into bins: truncated towards zero, ``n_codes`` where negative or unknown, ``n_codes + 1`` where missing."""
    for i in range(values.size):
        x = values[i]
        if np.isnan(x):
            position[i] = n_codes + 1
        elif x > -1.0 and x < n_codes:
            position[i] = np.uint64(x)
        else:
            position[i] = n_codes


@jit
def _bin_columns(
    values: np.ndarray,
    start: np.ndarray,
    threshold: np.ndarray,
    n_codes: np.ndarray,
    zero_missing: np.ndarray,
    single_precision: bool,
    top: int,
    out: np.ndarray,
) -> None:
    """Bin the values of features of the data; see ``bin_rows``. Arrays that it does not need would cost time to compile and to call."""
    position = np.empty(BATCH, np.uint64)
    for j in range(out.shape[0]):
        for first in range(0, out.shape[1], BATCH):
            x = values[j, first : first + BATCH]
            if single_precision:
                for i in range(x.size):
                    x[i] = np.float64(np.float32(x[i]))
            if zero_missing[j]:
                for i in range(x.size):
                    if abs(x[i]) <= ZERO:
                        x[i] = np.nan
            found = position[: x.size]
            if n_codes[j] > 0:
                _bin_codes(x, n_codes[j], found)
            else:
                _bin_numbers(x, threshold, start[j], start[j + 1], found)
            for i in range(x.size):
                out[j, first + i] = found[i] if n_codes[j] > 0 or not np.isnan(x[i]) else top


def bin_rows(values: np.ndarray, tables: BinTables, out: np.ndarray) -> None:
    """Bin values.

    Parameters
    ----------
    values : (used, n) float64, one row per used feature, NaN where missing, and of statistics what is looked up; changed in place where the library
        compares float32 or reads zeros as missing
    out : (used, n) of type ``bin_dtype(tables)``, overwritten: the number of the feature's distinct thresholds below the value, the type's highest
        number where missing; on categorical features the code, then unseen, then missing
    """
    n_read = out.shape[0] - tables.statistics.column.size
    out[n_read:] = values[n_read:]
    single_precision, top = bool(tables.single_precision[0]), np.iinfo(out.dtype).max
    _bin_columns(values, tables.start, tables.threshold, tables.n_codes, tables.zero_missing, single_precision, top, out[:n_read])


@jit
def copy_batch(bins: np.ndarray, row: int, n_rows: int, batch: np.ndarray) -> None:
    """Copy the bins of adjacent rows, feature by feature.

    By a loop, since Numba takes seconds to compile the error message of a slice assignment.

    Parameters
    ----------
    bins : (used, n) unsigned integers
    row : int
        the first
    batch : (at least used * n_rows,) unsigned integers
        overwritten
    """
    for j in range(bins.shape[0]):
        for i in range(n_rows):
            batch[j * n_rows + i] = bins[j, row + i]
