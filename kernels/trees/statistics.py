"""CatBoost's target statistics (CTR): numbers looked up by hashes of a row's categories and comparisons.

A *projection* is the key of a look-up: whole categories, then bits, each of a number above a border or of a category equal to another. A column of
statistics is a projection with a code for every known key, and one for unknown keys: the number of the column's borders below CatBoost's statistic of
the counts.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit

MULTIPLIER = np.uint64(0x4906BA494954CB65)  # of CatBoost's CalcHash
CATEGORY, ABOVE, EQUAL = 0, 1, 2  # kinds of elements
KEY_BITS = 64
HASH_BITS = 32  # of a category
FEW = np.uint64(8)  # keys compared one by one
ONE = np.uint64(1)
BLOCK = 4096  # rows at a time, so that their keys stay in cache


NO_FORMULAS = np.zeros(0, np.uint8)


class Statistics(NamedTuple):
    """Columns of an ensemble that are not in the data: their sources, keys and codes.

    A statistic's value is its code, and splits compare it with thresholds 0, 1, 2, … as any other number.
    """

    source: np.ndarray  # (sources,) int32, columns of the ensemble in keys, ascending
    nan_above: np.ndarray  # (sources,) bool, missing numbers are above all borders, and otherwise below
    element_start: np.ndarray  # (projections + 1,) int64, elements of projection p are element_start[p]:element_start[p + 1]
    element: np.ndarray  # (elements,) int32, position among the sources
    kind: np.ndarray  # (elements,) uint8, CATEGORY, ABOVE or EQUAL
    bound: np.ndarray  # (elements,) float64, border of ABOVE, hash of the category of EQUAL, 0 otherwise
    key_start: np.ndarray  # (projections + 1,) int64, keys of projection p are key[key_start[p]:key_start[p + 1]]
    key: np.ndarray  # (keys,) uint64, distinct and ascending within a projection
    directory_bits: np.ndarray  # (projections,) int64, at least 1: number of a key's highest bits that index its directory
    directory_start: np.ndarray  # (projections,) int64, first entry of its directory, which has 2**bits + 1
    directory: np.ndarray  # int32, position among the projection's keys of the first whose highest bits are at least the entry's number
    column: np.ndarray  # (columns,) int32, columns of the ensemble that are filled, ascending, after those of features
    projection: np.ndarray  # (columns,) int32, ascending
    code_start: np.ndarray  # (columns,) int64, the code of key k of a column's projection is code[code_start + k], followed by that of unknown keys
    code: np.ndarray  # uint8
    formula: np.ndarray = NO_FORMULAS  # (columns,) uint8, formula of the library for each column, for display; or (0,)


NO_STATISTICS = Statistics(
    source=np.zeros(0, np.int32),
    nan_above=np.zeros(0, bool),
    element_start=np.zeros(1, np.int64),
    element=np.zeros(0, np.int32),
    kind=np.zeros(0, np.uint8),
    bound=np.zeros(0),
    key_start=np.zeros(1, np.int64),
    key=np.zeros(0, np.uint64),
    directory_bits=np.zeros(0, np.int64),
    directory_start=np.zeros(0, np.int64),
    directory=np.zeros(0, np.int32),
    column=np.zeros(0, np.int32),
    projection=np.zeros(0, np.int32),
    code_start=np.zeros(0, np.int64),
    code=np.zeros(0, np.uint8),
)


def make_directory(key: np.ndarray) -> tuple[int, np.ndarray]:
    """Index sorted keys by their highest bits, two to four entries per key.

    Parameters
    ----------
    key : (keys,) uint64, distinct and ascending

    Returns
    -------
    bits : int
        at least 1
    directory : (2**bits + 1,) int32
        for every number of so many bits, how many keys begin with a lower one; last of all the number of keys
    """
    bits = int(key.size).bit_length() + 1
    counts = np.bincount((key >> np.uint64(KEY_BITS - bits)).astype(np.int64), minlength=1 << bits)
    return bits, np.concatenate(([0], np.cumsum(counts))).astype(np.int32)


def _is_partition(start: np.ndarray, size: int) -> bool:
    """Return whether starts from 0 to a size never fall."""
    return start[0] == 0 and start[-1] == size and bool((np.diff(start) >= 0).all())


def _find_elements_fault(statistics: Statistics, n_categories: np.ndarray) -> str:
    """Describe what is wrong with elements, sources or bounds."""
    source, element, kind, bound = statistics.source, statistics.element, statistics.kind, statistics.bound
    n_features = n_categories.size - statistics.column.size
    if not (np.diff(source) > 0).all() or (source.size and not 0 <= source[0] <= source[-1] < n_features):
        return f"sources are columns {source.tolist()[:9]}, expected ascending ones of 0..{n_features - 1}"
    bad = np.flatnonzero((element < 0) | (element >= source.size) | (kind > EQUAL))
    if bad.size:
        return f"element {bad[0]} is source {element[bad[0]]} of kind {kind[bad[0]]}, expected one of {source.size} sources and 3 kinds"
    bad = np.flatnonzero((n_categories[source[element]] > 0) == (kind == ABOVE))
    if bad.size:
        return f"element {bad[0]} of kind {kind[bad[0]]} is of column {source[element[bad[0]]]}, which has other values"
    later = np.setdiff1d(np.arange(1, element.size), statistics.element_start)  # except the first of each projection
    bad = later[(kind[later] == CATEGORY) & (kind[later - 1] != CATEGORY)]
    if bad.size:
        return f"element {bad[0]} is a category behind a bit, expected categories first"
    hashes = np.where(kind == ABOVE, 0.0, bound)
    bad = np.flatnonzero(np.isnan(bound) | ~((hashes >= 0) & (hashes < 1 << HASH_BITS) & (hashes == np.floor(hashes))))
    return f"element {bad[0]} has bound {bound[bad[0]]}, expected a {'border' if kind[bad[0]] == ABOVE else 'hash'}" if bad.size else ""


def _find_keys_fault(statistics: Statistics) -> str:
    """Describe what is wrong with keys or directories."""
    bits, start = statistics.directory_bits, statistics.directory_start
    bad = np.flatnonzero((bits < 1) | (bits >= KEY_BITS - 1) | (start < 0))
    if bad.size:
        return f"projection {bad[0]} has a directory of {bits[bad[0]]} bits at {start[bad[0]]}, expected 1..{KEY_BITS - 2} and at least 0"
    for p in range(bits.size):
        key = statistics.key[statistics.key_start[p] : statistics.key_start[p + 1]]
        if not (key[1:] > key[:-1]).all():
            return f"projection {p} has keys that do not ascend"
        n_entries = (1 << int(bits[p])) + 1
        entries = statistics.directory[start[p] :][:n_entries]
        highest = key >> np.uint64(KEY_BITS - int(bits[p]))
        if entries.size != n_entries or not np.array_equal(entries, np.searchsorted(highest, np.arange(n_entries, dtype=np.uint64))):
            return f"projection {p} has a directory that is not of its keys"
    return ""


def find_fault(statistics: Statistics, n_categories: np.ndarray) -> str:
    """Describe what makes statistics invalid, if anything."""
    n_columns, n_projections = statistics.column.size, statistics.directory_bits.size
    sizes = {"nan_above": statistics.source.size, "directory_start": n_projections}
    sizes |= dict.fromkeys(("element_start", "key_start"), n_projections + 1)
    sizes |= dict.fromkeys(("kind", "bound"), statistics.element.size) | dict.fromkeys(("projection", "code_start"), n_columns)
    sizes["formula"] = n_columns if statistics.formula.size else 0
    for name, array in statistics._asdict().items():
        shape = (sizes.get(name, array.size),)
        if array.shape != shape:
            return f"array {name!r} of statistics has shape {array.shape}, expected {shape}"
    if statistics.key.dtype != np.uint64:
        return f"keys of statistics are {statistics.key.dtype}, expected uint64"
    for name, start, values in (("elements", statistics.element_start, statistics.element), ("keys", statistics.key_start, statistics.key)):
        if not _is_partition(start, values.size):
            return f"{name} of projections begin at {start.tolist()[:9]}, expected ascending numbers from 0 to {values.size}"
    first = n_categories.size - n_columns
    if first < 0 or not np.array_equal(statistics.column, np.arange(first, n_categories.size)) or n_categories[first:].any():
        return f"statistics are columns {statistics.column.tolist()[:9]}, expected the last of {n_categories.size}, which are numbers"
    fault = _find_elements_fault(statistics, n_categories) or _find_keys_fault(statistics)
    if fault:
        return fault
    projection = statistics.projection
    if not (np.diff(projection) >= 0).all() or (n_columns and not 0 <= projection[0] <= projection[-1] < n_projections):
        return f"statistics are of projections {projection.tolist()[:9]}, expected ascending ones of 0..{n_projections - 1}"
    end = statistics.code_start + np.diff(statistics.key_start)[projection] + 1
    bad = np.flatnonzero((statistics.code_start < 0) | (end > statistics.code.size))
    if bad.size:
        return f"codes of statistic {bad[0]} are {statistics.code_start[bad[0]]}..{end[bad[0]] - 1}, expected some of {statistics.code.size}"
    return ""


@jit
def _same_categories(projection: int, other: int, statistics: Statistics) -> bool:
    """Return whether two projections begin with the same whole categories."""
    at, other_at = statistics.element_start[projection], statistics.element_start[other]
    end, other_end = statistics.element_start[projection + 1], statistics.element_start[other + 1]
    while True:
        mine = at < end and statistics.kind[at] == CATEGORY
        theirs = other_at < other_end and statistics.kind[other_at] == CATEGORY
        if not (mine and theirs):
            return mine == theirs
        if statistics.element[at] != statistics.element[other_at]:
            return False
        at, other_at = at + 1, other_at + 1


@jit
def _hash_categories(parts: np.ndarray, projection: int, statistics: Statistics, hashed: np.ndarray) -> None:
    """Hash the categories at a projection's start (CalcHash), ``parts (sources, n)``, into ``hashed (n,)``."""
    hashed[:] = 0
    for e in range(statistics.element_start[projection], statistics.element_start[projection + 1]):
        if statistics.kind[e] == CATEGORY:
            hashed[:] = MULTIPLIER * (hashed + MULTIPLIER * parts[statistics.element[e]])


@jit
def _hash_bits(inputs: np.ndarray, projection: int, statistics: Statistics, hashed: np.ndarray) -> None:
    """Continue the hashes with the projection's bits, from ``inputs (sources, n)``."""
    for e in range(statistics.element_start[projection], statistics.element_start[projection + 1]):
        values, kind, bound = inputs[statistics.element[e]], statistics.kind[e], statistics.bound[e]
        if kind == ABOVE:
            nan_above = statistics.nan_above[statistics.element[e]] and bound < np.inf  # as +inf in its place would be
            above = (values > bound) | (np.isnan(values) & nan_above)
            hashed[:] = MULTIPLIER * (hashed + MULTIPLIER * above.astype(np.uint64))
        elif kind == EQUAL:
            hashed[:] = MULTIPLIER * (hashed + MULTIPLIER * (values == bound).astype(np.uint64))


@jit
def _find_keys(hashed: np.ndarray, projection: int, statistics: Statistics, place: np.ndarray) -> None:
    """Find every key's position in its projection; unknown keys get the number of keys.

    In passes, so that memory accesses of rows overlap. ``place (n,) uint64`` is unsigned, so that indices need no sign check.
    """
    begin, end = statistics.key_start[projection], statistics.key_start[projection + 1]
    key, directory = statistics.key[begin:end], statistics.directory[statistics.directory_start[projection] :]
    shift, n_keys = np.uint64(KEY_BITS - statistics.directory_bits[projection]), np.uint64(key.size)
    for i in range(hashed.size):
        place[i] = directory[hashed[i] >> shift]
    for i in range(hashed.size):
        low, last = place[i], min(place[i] + FEW, n_keys)
        while low < last and key[low] < hashed[i]:
            low += ONE
        place[i] = low
    for i in range(hashed.size):
        low = place[i]
        if low < n_keys and key[low] < hashed[i]:  # more keys than usual share their highest bits
            low += np.uint64(np.searchsorted(key[low:], hashed[i]))
        place[i] = low if low < n_keys and key[low] == hashed[i] else n_keys


@jit
def _look_up_block(inputs: np.ndarray, statistics: Statistics, parts: np.ndarray, out: np.ndarray, seen: np.ndarray) -> None:
    """Look up at most BLOCK rows."""
    n = inputs.shape[1]
    categories, hashed, place = np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64)
    missing = [np.isnan(values).any() for values in inputs]
    column = 0
    for projection in range(statistics.key_start.size - 1):
        n_keys = np.uint64(statistics.key_start[projection + 1] - statistics.key_start[projection])
        elements = range(statistics.element_start[projection], statistics.element_start[projection + 1])
        if projection == 0 or not _same_categories(projection, projection - 1, statistics):
            _hash_categories(parts, projection, statistics, categories)
        hashed[:] = categories
        _hash_bits(inputs, projection, statistics, hashed)
        _find_keys(hashed, projection, statistics, place)
        for e in elements:
            if statistics.kind[e] == CATEGORY and missing[statistics.element[e]]:
                values = inputs[statistics.element[e]]
                for i in range(n):
                    place[i] = n_keys if np.isnan(values[i]) else place[i]
        for e in elements:
            for i in range(n):
                seen[statistics.element[e], i] |= place[i] < n_keys
        while column < statistics.column.size and statistics.projection[column] == projection:
            code = statistics.code[statistics.code_start[column] :]
            for i in range(n):
                out[column, i] = code[place[i]]
            column += 1


@jit
def look_up(inputs: np.ndarray, statistics: Statistics, out: np.ndarray, seen: np.ndarray) -> None:
    """Look up every row's statistics (CatBoost's ``ctr_provider.h`` and ``hash.h``).

    Parameters
    ----------
    inputs : (sources, n) float64
        of categories their 32-bit hashes; of numbers what the library compares, which is float32. NaN where missing: a category that is missing
        is one that was never seen
    out : (columns, n) float64
        overwritten by codes
    seen : (sources, n) bool
        overwritten: what a row holds in this column was part of a key that is known
    """
    seen[:] = False
    for first in range(0, inputs.shape[1], BLOCK):
        block = inputs[:, first : first + BLOCK]
        signed = np.where(np.isnan(block), 0.0, block).astype(np.int64)
        parts = (signed - ((signed >> (HASH_BITS - 1)) << HASH_BITS)).view(np.uint64)  # CatBoost's category hashes are signed
        _look_up_block(block, statistics, parts, out[:, first : first + BLOCK], seen[:, first : first + BLOCK])
