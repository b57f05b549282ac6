"""Distributions of columns: counts of values, or of cells with fixed edges, which merge exactly, and moments, which merge in the order of rows."""

from typing import Any, NamedTuple

import numpy as np

from ._jit import jit
from .reductions import Reduction

CELLS = 1 << 16  # a cell is the first 16 bits of a float32: sign, exponent, 7 bits of the fraction; its width is 1/128 of its lower edge at most
POINTS = 256  # different values that are counted one by one; where a column has more, its cells alone are
SLOTS = 1024  # of a hash table of them
BELOW, ABOVE = 0x007F, 0xFF80  # the cells of the infinities; what is finite lies between them


class Spreads(NamedTuple):
    """Counts and moments of columns, each of its own finite values; spreads are about the mean, so that merging does not cancel."""

    rows: np.ndarray  # (columns,) int64, all of them
    missing: np.ndarray  # (columns,) int64, NaN
    infinite: np.ndarray  # (columns,) int64
    mean: np.ndarray  # (columns,) float64, as all below
    spread: np.ndarray  # sum of squared distances from the mean
    mean_abs: np.ndarray
    spread_abs: np.ndarray  # the same of magnitudes
    low: np.ndarray
    high: np.ndarray


class Tally(NamedTuple):
    """Counts of one column, added to in place: see ``make_tally``."""

    cells: np.ndarray  # (CELLS,) int64
    value: np.ndarray  # (SLOTS,) int64, bits of the values counted one by one
    seen: np.ndarray  # (SLOTS,) int64, how often; 0 where the slot is free
    n_points: np.ndarray  # (1,) int64, slots that are taken; more than POINTS where there are too many


@jit
def _count_point(bits: int, tally: Tally) -> None:
    slot = (((bits ^ (bits >> 32)) & 0xFFFFFFFF) * 0x9E3779B1 >> 22) & (SLOTS - 1)  # multiplicative hashing, Knuth's
    while tally.seen[slot] > 0 and tally.value[slot] != bits:
        slot = (slot + 1) & (SLOTS - 1)
    if tally.seen[slot] == 0:
        tally.value[slot] = bits
        tally.n_points[0] += 1
    tally.seen[slot] += 1


@jit
def _count(values: np.ndarray, wide: np.ndarray, bits: np.ndarray, tally: Tally, found: np.ndarray) -> None:
    """Count values ``(n,) float64``, whose bits are ``(n,) int64``, and as float32 ``(n,) uint32``; ``found`` is overwritten."""
    missing, infinite, n, total, total_abs, low, high = 0, 0, 0, 0.0, 0.0, np.inf, -np.inf
    for i in range(values.size):
        x = values[i]
        if np.isnan(x):
            missing += 1
            continue
        cell = int(bits[i] >> np.uint32(16))
        if cell >= 0x8000:
            cell = 0xFFFF - cell  # magnitudes of what is negative count down
            cell += bits[i] == np.uint32(0x80000000)  # -0.0 is 0.0
        else:
            cell += 0x8000
        if np.isinf(x):
            infinite += 1
        else:
            cell = min(max(cell, BELOW + 1), ABOVE - 1)  # what is beyond float32 alone is in the outermost cells
            n += 1
            total += x
            total_abs += abs(x)
            low, high = min(low, x), max(high, x)
        tally.cells[cell] += 1
        if tally.n_points[0] <= POINTS:
            _count_point(0 if x == 0.0 else int(wide[i]), tally)
    found[0], found[1], found[2], found[3] = missing, infinite, low, high
    if n == 0:
        found[4:] = 0.0
        return
    mean, mean_abs, spread, spread_abs = total / n, total_abs / n, 0.0, 0.0
    for i in range(values.size):
        x = values[i]
        if np.isfinite(x):
            spread += (x - mean) ** 2
            spread_abs += (abs(x) - mean_abs) ** 2
    found[4], found[5], found[6], found[7] = mean, spread, mean_abs, spread_abs


def _count_finite(state: Spreads) -> np.ndarray:
    return state.rows - state.missing - state.infinite


def _init(outputs: int, values: int) -> Spreads:
    none, zero = np.zeros(outputs * values, np.int64), np.zeros(outputs * values)
    return Spreads(none, none, none, zero, zero, zero, zero, np.full_like(zero, np.inf), np.full_like(zero, -np.inf))


def _merge(a: Spreads, b: Spreads) -> Spreads:
    n_a, n_b = _count_finite(a), _count_finite(b)
    share = n_b / np.maximum(n_a + n_b, 1)
    apart, apart_abs = b.mean - a.mean, b.mean_abs - a.mean_abs
    return Spreads(
        rows=a.rows + b.rows,
        missing=a.missing + b.missing,
        infinite=a.infinite + b.infinite,
        mean=a.mean + apart * share,
        spread=a.spread + b.spread + apart**2 * (n_a * share),
        mean_abs=a.mean_abs + apart_abs * share,
        spread_abs=a.spread_abs + b.spread_abs + apart_abs**2 * (n_a * share),
        low=np.minimum(a.low, b.low),
        high=np.maximum(a.high, b.high),
    )


def _update(state: Spreads, values: Spreads, n: int = 0, labels: Any = None) -> Spreads:  # noqa: ARG001 - the shape of an update
    return _merge(state, values)


SPREADS = Reduction("distributions", _init, _update, _merge, lambda state, place, n_places: state)


def make_tally() -> Tally:
    """Make the counts of no values.

    Returns
    -------
    Tally
    """
    return Tally(*(np.zeros(size, np.int64) for size in (CELLS, SLOTS, SLOTS, 1)))


def read_points(tally: Tally) -> tuple[np.ndarray, np.ndarray] | None:
    """Read the values that were counted one by one.

    Parameters
    ----------
    tally : Tally

    Returns
    -------
    values : (points,) float64
        ascending
    counts : (points,) int64
        None in the place of both where there are more than POINTS
    """
    if tally.n_points[0] > POINTS:
        return None
    taken = np.flatnonzero(tally.seen)
    values = tally.value[taken].view(np.float64)
    order = np.argsort(values)
    return values[order], tally.seen[taken][order]


def count_column(values: np.ndarray, tally: Tally) -> Spreads:
    """Measure the values of one column.

    Parameters
    ----------
    values : (n,) float64
        NaN where missing
    tally : Tally
        those that are not missing are added to

    Returns
    -------
    Spreads
        of one column
    """
    found = np.empty(8)
    with np.errstate(over="ignore", under="ignore"):
        _count(values, values.view(np.int64), values.astype(np.float32).view(np.uint32), tally, found)
    missing, infinite, low, high, *moments = found
    return Spreads(
        np.array([values.size]), *(np.array([int(count)]) for count in (missing, infinite)), *(np.array([each]) for each in (*moments, low, high))
    )


def find_cells(values: np.ndarray) -> np.ndarray:
    """Find the cell of every value, as they are counted.

    Parameters
    ----------
    values : (m,) float64
        without NaN

    Returns
    -------
    (m,) int64
    """
    with np.errstate(over="ignore", under="ignore"):
        bits = (np.asarray(values, np.float64).astype(np.float32) + np.float32(0.0)).view(np.uint32).astype(np.int64) >> 16
    cells = np.where(bits >= 0x8000, 0xFFFF - bits, bits + 0x8000)
    return np.where(np.isinf(values), cells, np.clip(cells, BELOW + 1, ABOVE - 1))


def cell_edges(cells: np.ndarray) -> np.ndarray:
    """Find where cells begin. A cell of numbers from 0 on has its lower edge and not its upper one, one of negative numbers the upper one alone.

    Parameters
    ----------
    cells : (m,) int
        from 0 to CELLS; the upper edge of a cell is where the next begins

    Returns
    -------
    (m,) float64
        ``-inf`` and ``inf`` for the cells of the infinities and beyond
    """
    cells = np.clip(np.asarray(cells, np.int64), BELOW, ABOVE)
    first_bits = np.minimum(np.where(cells >= 0x8000, cells - 0x8000, 0x8000 - cells), 0x7F80).astype(np.uint32)
    edges = (first_bits << np.uint32(16)).view(np.float32).astype(np.float64)
    return np.where(cells >= 0x8000, edges, -edges)
