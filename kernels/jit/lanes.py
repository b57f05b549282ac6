"""Vectors of eight rows in a register, for kernels whose inner loop runs over rows.

``Lanes`` is an LLVM vector of eight doubles, which the backend splits as the machine requires (one 512-bit, two 256-bit, four 128-bit registers).
Loads and stores take a flat contiguous array and the index of the first of eight elements. ``+ - *`` may fuse into multiply-adds (flag ``contract``)
and are otherwise exact, as is ``/``: results do not depend on how a loop was vectorised. With the JIT off the functions work on arrays of eight
elements.
"""

import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from .decorator import jit

LANES = 8  # doubles in a register
QUAD = 4  # numbers of a table row loaded at once
WIDE = 32  # rows whose codes are computed at once
LINE = 64  # bytes of a cache line

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


class LanesType(types.Type):
    """Numba type of eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


LANES_TYPE = LanesType()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _VECTOR)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any, room: int = LANES) -> Any:
    """Return the address of ``array[index]`` as a vector pointer, with bounds checked where enabled."""
    record = context.make_array(array_type)(context, builder, array)
    if config.BOUNDSCHECK:  # type: ignore[attr-defined]  # set from the environment
        last = builder.add(index, ir.Constant(index.type, room))
        outside = builder.or_(
            builder.icmp_signed("<", index, ir.Constant(index.type, 0)),
            builder.icmp_signed(">", last, builder.extract_value(record.shape, 0)),
        )
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("lanes reach outside the array",))
    return builder.bitcast(builder.gep(record.data, [index]), ir.VectorType(record.data.type.pointee, room).as_pointer())


def _is_flat(array: Any) -> bool:
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"


@intrinsic
def _load(typing_context: Any, array: Any, index: Any) -> Any:
    if not (_is_flat(array) and array.dtype == types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=8)

    return LANES_TYPE(array, types.intp), generate


@intrinsic
def _store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    if not (_is_flat(array) and array.dtype == types.float64 and array.mutable):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, index_value, lanes_value = arguments
        pointer = _pointer(context, builder, signature.args[0], array_value, index_value)
        builder.store(lanes_value, pointer, align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, LANES_TYPE), generate


def _broadcast(builder: Any, scalar: Any, vector: Any) -> Any:
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, single, ir.Constant(vector, ir.Undefined), [0] * vector.count)


def _shuffled(builder: Any, a: Any, b: Any, order: Any) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order))


@intrinsic
def _splat(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _broadcast(builder, arguments[0], _VECTOR)

    return LANES_TYPE(types.float64), generate


def _compared(context: Any, builder: Any, array_type: Any, array: Any, index: Any, lower: Any, span: Any, room: int) -> Any:
    """Compare the bins from ``array[index]`` on with a cyclic interval."""
    integer = ir.IntType(array_type.dtype.bitwidth)
    vector = ir.VectorType(integer, room)
    loaded = builder.load(_pointer(context, builder, array_type, array, index, room), align=array_type.dtype.bitwidth // 8)
    bounds = [_broadcast(builder, builder.trunc(bound, integer), vector) for bound in (lower, span)]
    return builder.icmp_unsigned("<=", builder.sub(loaded, bounds[0]), bounds[1])


@intrinsic
def _constant(typing_context: Any, array: Any, index: Any) -> Any:
    if not (_is_flat(array) and array.dtype == types.float64 and not array.mutable):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        pointer = _pointer(context, builder, signature.args[0], array, index, room=1)
        loaded = builder.load(builder.bitcast(pointer, ir.DoubleType().as_pointer()))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return _broadcast(builder, loaded, _VECTOR)

    return LANES_TYPE(array, types.intp), generate


@intrinsic
def _inside(typing_context: Any, bins: Any, index: Any, lower: Any, span: Any) -> Any:
    if not (_is_flat(bins) and bins.dtype in types.unsigned_domain):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, first, lower, span = arguments
        return builder.uitofp(_compared(context, builder, signature.args[0], array, first, lower, span, LANES), _VECTOR)

    return LANES_TYPE(bins, types.intp, types.int64, types.int64), generate


@intrinsic
def _mark(typing_context: Any, codes: Any, at: Any, bins: Any, index: Any, lower: Any, span: Any, bit: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        codes, at, bins, index, lower, span, bit = arguments
        integer, width = ir.IntType(signature.args[0].dtype.bitwidth), signature.args[0].dtype.bitwidth // 8
        pointer = _pointer(context, builder, signature.args[0], codes, at, WIDE)
        bits = _broadcast(builder, bit if bit.type == integer else builder.trunc(bit, integer), ir.VectorType(integer, WIDE))
        chosen = builder.select(_compared(context, builder, signature.args[2], bins, index, lower, span, WIDE), bits, ir.Constant(bits.type, None))
        builder.store(builder.or_(builder.load(pointer, align=width), chosen), pointer, align=width)
        return context.get_dummy_value()

    return types.none(codes, types.intp, bins, types.intp, types.int64, types.int64, types.int64), generate


@intrinsic
def _choose(typing_context: Any, pool: Any, at: Any, left: Any, right: Any, bins: Any, index: Any, lower: Any, span: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pool, at, left, right, bins, index, lower, span = arguments
        inside = _compared(context, builder, signature.args[4], bins, index, lower, span, WIDE)
        target, *sources = (_pointer(context, builder, signature.args[0], pool, place, WIDE) for place in (at, left, right))
        builder.store(builder.select(inside, *(builder.load(source, align=1) for source in sources)), target, align=1)
        return context.get_dummy_value()

    return types.none(pool, types.intp, types.intp, types.intp, bins, types.intp, types.int64, types.int64), generate


@intrinsic
def _take(typing_context: Any, table: Any, first: Any, starts: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, first, starts, at = arguments
        rows = []
        offset = _pointer(context, builder, signature.args[2], starts, at)
        offset = builder.bitcast(offset, offset.type.pointee.element.as_pointer())
        for i in range(LANES):
            start = builder.load(builder.gep(offset, [ir.Constant(ir.IntType(32), i)]), align=4)  # scalar loads: LLVM would split a vector load again
            pointer = _pointer(context, builder, signature.args[0], table, builder.add(first, builder.zext(start, first.type)), QUAD)
            rows.append(builder.load(pointer, align=8))
        halves = []
        for a, b, c, d in (rows[:QUAD], rows[QUAD:]):
            ab, cd = ([_shuffled(builder, x, y, order) for order in ([0, 4, 2, 6], [1, 5, 3, 7])] for x, y in ((a, b), (c, d)))
            halves.append([_shuffled(builder, ab[k % 2], cd[k % 2], [0, 1, 4, 5] if k < 2 else [2, 3, 6, 7]) for k in range(QUAD)])
        columns = [_shuffled(builder, low, high, list(range(LANES))) for low, high in zip(*halves, strict=True)]
        return context.make_tuple(builder, signature.return_type, columns)

    return types.UniTuple(LANES_TYPE, QUAD)(table, types.intp, starts, types.intp), generate


def _arithmetic(python_operator: Any, instruction: str) -> None:
    """Implement an operator between lanes in compiled code."""

    @infer_global(python_operator)
    class _Typed(ConcreteTemplate):
        cases = (signature(LANES_TYPE, LANES_TYPE, LANES_TYPE),)

    @lower_builtin(python_operator, LANES_TYPE, LANES_TYPE)
    def _lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments, flags=("contract",))


for _python_operator, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv")):
    _arithmetic(_python_operator, _instruction)


def _compiled_as(compiled: Any) -> Callable[[Function], Function]:
    """Use another implementation of a function in compiled code; unlike ``overload``, without longer compilation."""
    return lambda function: function if config.DISABLE_JIT else compiled  # type: ignore[attr-defined]  # set from the environment


@_compiled_as(_load)
def load(array: np.ndarray, index: Integer) -> Lanes:
    """Load eight elements.

    Parameters
    ----------
    array : (m,) float64, contiguous
    index : int, of the first
    """
    return array[index : index + LANES].copy()


@_compiled_as(_store)
def store(array: np.ndarray, index: Integer, lanes: Lanes) -> None:
    """Store eight elements.

    Parameters
    ----------
    array : (m,) float64, contiguous, overwritten from ``index`` on
    index : int, of the first
    lanes : eight float64
    """
    array[index : index + LANES] = lanes


@_compiled_as(_splat)
def splat(x: float) -> Lanes:
    """Copy a float into all lanes.

    Parameters
    ----------
    x : float
    """
    return np.full(LANES, x)


@_compiled_as(_constant)
def constant(array: np.ndarray, index: Integer) -> Lanes:
    """Copy an element of a read-only array into all lanes, so that the compiler need not reload it after stores.

    Parameters
    ----------
    array : (m,) float64, contiguous and read-only
    """
    return splat(array[index])


@_compiled_as(_inside)
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


@_compiled_as(_mark)
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


@_compiled_as(_choose)
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


@_compiled_as(_take)
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
