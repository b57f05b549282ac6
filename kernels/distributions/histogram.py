"""Mergeable histograms of floats: bins from leading bits, as narrow as a fixed number of bins allows."""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit

CELLS = 1 << 12  # bins that a column has at most
SLOTS = 1 << 13  # slots of the hash table
LEVELS = 53  # at the last level a bin is a sign and a power of two: CELLS bins, two of them the infinities
REST = (1 << 63) - 1  # all bits but the sign
INFINITE = 0x7FF << 52  # bits of infinity


class HistogramBuilder(NamedTuple):
    """Counts of one column, updated in place; made by ``start_histogram``."""

    cell: np.ndarray  # (SLOTS,) int64
    seen: np.ndarray  # (SLOTS,) int64, values in the bin; 0 where the slot is free
    level: np.ndarray  # (1,) int64
    taken: np.ndarray  # (1,) int64, occupied slots


TALLY_BYTES = 2 * 8 * SLOTS


class Histogram(NamedTuple):
    """Histogram of one column.

    A bin is the float64 bit pattern without its last ``level`` bits, as an integer in the order of the numbers. The level is the lowest with at most
    CELLS bins. So the result depends on the set of values alone, and merging never lowers the level.
    """

    level: int  # at 0, a bin is one value
    cells: np.ndarray  # (cells,) int64, ascending: nonempty bins
    counts: np.ndarray  # (cells,) int64


NOTHING = Histogram(0, np.zeros(0, np.int64), np.zeros(0, np.int64))
ONE = np.ones(1, np.int64)


@jit
def _add(bits: np.ndarray, counts: np.ndarray, step: int, start: int, tally: HistogramBuilder) -> int:
    """Add ``counts[i * step]`` of the i-th value, given as bits ``(n,) int64``, from start on; NaN is skipped.

    Returns the position of the first value that finds no free bin, or n.
    """
    level, taken = int(tally.level[0]), int(tally.taken[0])
    for i in range(start, bits.size):
        key = int(bits[i])
        if key & REST > INFINITE:
            continue
        if key < 0:
            key = key ^ REST if key & REST else 0  # negative numbers ascend as magnitudes fall; -0.0 becomes 0.0
        cell = key >> level
        slot = (cell * 0x1E3779B97F4A7C15 >> 51) & (SLOTS - 1)  # multiplicative hashing (Knuth)
        while tally.seen[slot] > 0 and tally.cell[slot] != cell:
            slot = (slot + 1) & (SLOTS - 1)
        if tally.seen[slot] == 0:
            if taken == CELLS:
                return i
            taken += 1
            tally.taken[0], tally.cell[slot] = taken, cell
        tally.seen[slot] += counts[i * step]
    return bits.size


def _turn(keys: np.ndarray) -> np.ndarray:
    """Map float bits to integers in the order of the numbers, and back."""
    return keys ^ ((keys >> 63) & REST)


def _find_keys(cells: np.ndarray, level: int) -> np.ndarray:
    """Return an ordered integer of every bin: its value nearest to 0, with 0.0 for -0.0."""
    keys = cells << level
    return np.where(keys < 0, np.minimum(keys | (1 << level) - 1, -2), keys)


def _add_up(cells: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, place = np.unique(cells, return_inverse=True)
    total = np.zeros(found.size, np.int64)
    np.add.at(total, place, counts)
    return found, total


def _find_drop(cells: np.ndarray) -> int:
    """Return by how many bits the level has to rise until ascending bins number at most CELLS."""

    def fits(drop: int) -> bool:
        left = cells >> drop
        return 1 + int(np.count_nonzero(left[1:] != left[:-1])) <= CELLS

    return bisect_left(range(LEVELS), True, key=fits) if cells.size > CELLS else 0


def start_histogram() -> HistogramBuilder:
    """Start an empty histogram."""
    return HistogramBuilder(*(np.zeros(size, np.int64) for size in (SLOTS, SLOTS, 1, 1)))


def finish_histogram(tally: HistogramBuilder) -> Histogram:
    """Return the finished histogram."""
    taken = np.flatnonzero(tally.seen)
    order = taken[np.argsort(tally.cell[taken])]
    return Histogram(int(tally.level[0]), tally.cell[order], tally.seen[order])


def _make_room(value: np.ndarray, tally: HistogramBuilder) -> None:
    """Raise the level until there is a bin for one more value, ``(1,) float64``."""
    level, taken = int(tally.level[0]), np.flatnonzero(tally.seen)
    cells, counts = tally.cell[taken], tally.seen[taken]
    drop = _find_drop(np.sort(np.append(cells, find_cells(value, level))))
    tally.seen[:] = 0
    tally.level[0], tally.taken[0] = level + drop, 0
    _add(_turn(_find_keys(cells, level)), counts, 1, 0, tally)


def count_cells(values: np.ndarray, tally: HistogramBuilder) -> None:
    """Add the values of one column."""
    bits, done = values.view(np.int64), 0
    while (done := _add(bits, ONE, 0, done, tally)) < bits.size:
        _make_room(values[done : done + 1], tally)


def coarsen(found: Histogram, level: int) -> Histogram:
    """Rebin a histogram at a coarser level.

    Parameters
    ----------
    level : int
        theirs, or a higher one
    """
    return found if level == found.level else Histogram(level, *_add_up(found.cells >> (level - found.level), found.counts))


def merge_histograms(a: Histogram, b: Histogram) -> Histogram:
    """Add two histograms; the result depends neither on the cut of the rows nor on the merge order."""
    level = max(a.level, b.level)
    a, b = coarsen(a, level), coarsen(b, level)
    merged = Histogram(level, *_add_up(np.concatenate((a.cells, b.cells)), np.concatenate((a.counts, b.counts))))
    return coarsen(merged, level + _find_drop(merged.cells))


def find_cells(values: np.ndarray, level: int) -> np.ndarray:
    """Return the bin of every value.

    Parameters
    ----------
    values : (m,) float64
        without NaN

    Returns
    -------
    (m,) int64
    """
    return _turn((np.asarray(values, np.float64) + 0.0).view(np.int64)) >> level


def cell_edges(cells: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of bins.

    Parameters
    ----------
    cells : (m,) int64

    Returns
    -------
    lower, upper : (m,) float64 each
        the value itself at level 0. Else a cell of numbers from 0 on has its lower edge and not its upper one, one of negative numbers the upper one
        alone; both are infinite for an infinity
    """
    negative = cells < 0
    first = np.where(negative, -1 - cells, cells).astype(np.uint64)
    inner, outer = (np.minimum(each << np.uint64(level), np.uint64(INFINITE)).view(np.float64) for each in (first, first + np.uint64(level > 0)))
    return np.where(negative, -outer, inner), np.where(negative, -inner, outer)


def round_histogram(found: Histogram, kind: np.dtype) -> Histogram:
    """Return the histogram of the same values rounded to a narrower type.

    Parameters
    ----------
    kind : dtype
        float32 or float16

    Returns
    -------
    Counts
        one by one. The given ones where cells are wider than the type's own steps: then what is rounded stays in its cell, but for what lies half a
        step from the next one
    """
    if found.level > LEVELS - 2 - np.finfo(kind).nmant:
        return found
    lower, upper = cell_edges(found.cells, found.level)
    values = lower / 2 + upper / 2 if found.level else lower  # the middle of a bin; values that round apart are separated at its edges
    with np.errstate(over="ignore"):
        rounded = values.astype(kind).astype(np.float64)
    return Histogram(0, *_add_up(find_cells(rounded, 0), found.counts))
