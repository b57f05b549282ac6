"""Vectors of eight rows in a register, for kernels whose inner loop runs over rows.

``Lanes`` is an LLVM vector of eight doubles, which the backend splits as the machine requires (one 512-bit, two 256-bit, four 128-bit registers).
Loads and stores take a flat contiguous array and the index of the first of eight elements. ``+ - *`` may fuse into multiply-adds (flag ``contract``)
and are otherwise exact, as is ``/``: results do not depend on how a loop was vectorised. With the JIT off the functions work on arrays of eight
elements.
"""

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from .decorator import Kernel, jit
from .widths import LANES, LINE, QUAD, WIDE

Lanes = Any  # LanesType in compiled code, (LANES,) float64 otherwise
Integer = int | np.integer
Function = TypeVar("Function", bound=Callable[..., Any])


def zeros(*shape: int) -> np.ndarray:
    """Allocate zeros aligned to a cache line.

    NumPy's large arrays start 16 bytes later, so that every second vector crosses a cache line.

    Returns
    -------
    zeros : shape, float64, contiguous
    """
    room = np.zeros(math.prod(shape) + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + math.prod(shape)].reshape(shape)


@jit
def aligned(n: int, value: float = 0.0) -> np.ndarray:
    """Allocate a filled array inside a kernel, aligned to a cache line.

    Numba aligns arrays to 32 bytes, so that vectors of 64 bytes may cross cache lines: kernels with such stacks take up to 1.4 times as long.

    Parameters
    ----------
    value : float

    Returns
    -------
    filled : (n,) float64, contiguous
    """
    room = np.empty(n + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    for i in range(n):
        room[first + i] = value
    return room[first : first + n]


def _instruction(function: Function) -> Function:
    """Use the instruction of the same name in compiled code; unlike ``overload``, without longer compilation."""

    def find() -> Any:
        from . import instructions

        return getattr(instructions, function.__name__)

    return cast(Function, Kernel(function, find))


@_instruction
def load(array: np.ndarray, index: Integer) -> Lanes:
    """Load eight elements.

    Parameters
    ----------
    array : (m,) float64, contiguous
    index : int, of the first
    """
    return array[index : index + LANES].copy()


@_instruction
def store(array: np.ndarray, index: Integer, lanes: Lanes) -> None:
    """Store eight elements.

    Parameters
    ----------
    array : (m,) float64, contiguous, overwritten from ``index`` on
    index : int, of the first
    lanes : eight float64
    """
    array[index : index + LANES] = lanes


@_instruction
def splat(x: float) -> Lanes:
    """Copy a float into all lanes.

    Parameters
    ----------
    x : float
    """
    return np.full(LANES, x)


@_instruction
def constant(array: np.ndarray, index: Integer) -> Lanes:
    """Copy an element of a read-only array into all lanes, so that the compiler need not reload it after stores.

    Parameters
    ----------
    array : (m,) float64, contiguous and read-only
    """
    return splat(array[index])


@_instruction
def inside(bins: np.ndarray, index: Integer, lower: Integer, span: Integer) -> Lanes:
    """Return which of eight bins lie in a cyclic interval; any numeric split is one subtraction and one comparison.

    Parameters
    ----------
    bins : (m,) unsigned integers, contiguous
    index : int, of the first bin
    lower, span : int, the interval is the ``span + 1`` bins from ``lower`` on; both are taken modulo the width of a bin, so that an interval may
        start at the missing bin (the highest) and go on at bin 0

    Returns
    -------
    lanes : eight float64, 1.0 on the interval, else 0.0
    """
    unsigned, top = bins.dtype.type, int(np.iinfo(bins.dtype).max)
    with np.errstate(over="ignore"):
        return (bins[index : index + LANES] - unsigned(lower & top) <= unsigned(span & top)).astype(np.float64)


@_instruction
def mark(codes: np.ndarray, at: Integer, bins: np.ndarray, index: Integer, lower: Integer, span: Integer, bit: Integer) -> None:
    """Set a bit in the codes of WIDE rows whose bins lie in an interval.

    Parameters
    ----------
    codes : (m,) integers, changed from ``at`` on
    bins, index, lower, span : as ``inside`` takes them, WIDE bins from ``index`` on
    bit : int, a power of two
    """
    for i in range(0, WIDE, LANES):
        codes[at + i : at + i + LANES] |= np.where(inside(bins, index + i, lower, span) > 0, bit, 0).astype(codes.dtype)


@_instruction
def choose(pool: np.ndarray, at: Integer, left: Integer, right: Integer, bins: np.ndarray, index: Integer, lower: Integer, span: Integer) -> None:
    """Select one of two bytes of a pool for each of WIDE rows.

    Parameters
    ----------
    pool : (m,) uint8, overwritten from ``at`` on
    left, right : int, where the bytes start that are taken by rows whose bins lie on the interval, and by the others
    bins, index, lower, span : as ``inside`` takes them, WIDE bins from ``index`` on
    """
    for i in range(0, WIDE, LANES):
        chosen = inside(bins, index + i, lower, span) > 0
        pool[at + i : at + i + LANES] = np.where(chosen, pool[left + i : left + i + LANES], pool[right + i : right + i + LANES])


@_instruction
def take(table: np.ndarray, first: Integer, starts: np.ndarray, at: Integer) -> tuple[Lanes, ...]:
    """Load QUAD numbers from a table row for each of eight rows of data.

    Parameters
    ----------
    table : (m,) float64, contiguous
    first : int, where the table starts
    starts : (n,) uint32, where in the table the numbers of each row of data start
    at : int, the first of the rows of data

    Returns
    -------
    lanes : QUAD times eight float64, number by number
    """
    places = first + starts[at : at + LANES].astype(np.int64)
    return tuple(table[places + k] for k in range(QUAD))
