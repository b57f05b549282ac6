"""Eight rows in one register: explicit vectors for kernels whose inner loop runs over rows.

``Lanes`` is an LLVM vector of eight doubles, which the backend splits into what the machine has (one 512-bit, two 256-bit, four 128-bit
registers). Loads and stores take a flat contiguous array and the index of the first of eight elements; ``+ - *`` may fuse into
multiply-adds (flag ``contract``) and are otherwise exact, as is ``/``, so results do not depend on how a loop was vectorised. With the JIT off
the same functions work on arrays of eight elements.
"""

import math
import operator

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8
QUAD = 4  # numbers of a table's row that are taken at once
WIDE = 32  # rows whose codes are made at once
LINE = 64  # bytes


def zeros(*shape):
    """Zeros as float64 from the start of a cache line on: NumPy's own, where large, start 16 bytes later, so that every second vector reaches into
    the next line."""
    room = np.zeros(math.prod(shape) + LINE // 8)
    first = -room.ctypes.data % LINE // 8
    return room[first : first + math.prod(shape)].reshape(shape)


class LanesType(types.Type):
    """Numba's type of eight doubles."""

    def __init__(self):
        super().__init__(name="Lanes")


LANES_TYPE = LanesType()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, numba_type):
        super().__init__(manager, numba_type, _VECTOR)


def _pointer(context, builder, array_type, array, index, room=LANES):
    """Address of ``array[index]`` as a vector's, with room for its elements where bounds are checked."""
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


def _is_flat(array):
    return isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"


@intrinsic
def _load(typing_context, array, index):
    if not (_is_flat(array) and array.dtype == types.float64):
        return None

    def generate(context, builder, signature, arguments):
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=8)

    return LANES_TYPE(array, types.intp), generate


@intrinsic
def _store(typing_context, array, index, lanes):
    if not (_is_flat(array) and array.dtype == types.float64 and array.mutable):
        return None

    def generate(context, builder, signature, arguments):
        array_value, index_value, lanes_value = arguments
        pointer = _pointer(context, builder, signature.args[0], array_value, index_value)
        builder.store(lanes_value, pointer, align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, LANES_TYPE), generate


def _broadcast(builder, scalar, vector):
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return _shuffled(builder, single, ir.Constant(vector, ir.Undefined), [0] * vector.count)


def _shuffled(builder, a, b, order):
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order))


@intrinsic
def _splat(typing_context, x):
    def generate(context, builder, signature, arguments):
        return _broadcast(builder, arguments[0], _VECTOR)

    return LANES_TYPE(types.float64), generate


def _compared(context, builder, array_type, array, index, lower, span, room):
    """Which of the bins from ``array[index]`` on lie on a cyclic interval."""
    integer = ir.IntType(array_type.dtype.bitwidth)
    vector = ir.VectorType(integer, room)
    loaded = builder.load(_pointer(context, builder, array_type, array, index, room), align=array_type.dtype.bitwidth // 8)
    bounds = [_broadcast(builder, builder.trunc(bound, integer), vector) for bound in (lower, span)]
    return builder.icmp_unsigned("<=", builder.sub(loaded, bounds[0]), bounds[1])


@intrinsic
def _constant(typing_context, array, index):
    if not (_is_flat(array) and array.dtype == types.float64 and not array.mutable):
        return None

    def generate(context, builder, signature, arguments):
        array, index = arguments
        pointer = _pointer(context, builder, signature.args[0], array, index, room=1)
        loaded = builder.load(builder.bitcast(pointer, ir.DoubleType().as_pointer()))
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return _broadcast(builder, loaded, _VECTOR)

    return LANES_TYPE(array, types.intp), generate


@intrinsic
def _inside(typing_context, bins, index, lower, span):
    if not (_is_flat(bins) and bins.dtype in types.unsigned_domain):
        return None

    def generate(context, builder, signature, arguments):
        array, first, lower, span = arguments
        return builder.uitofp(_compared(context, builder, signature.args[0], array, first, lower, span, LANES), _VECTOR)

    return LANES_TYPE(bins, types.intp, types.int64, types.int64), generate


@intrinsic
def _mark(typing_context, codes, at, bins, index, lower, span, bit):
    def generate(context, builder, signature, arguments):
        codes, at, bins, index, lower, span, bit = arguments
        integer, width = ir.IntType(signature.args[0].dtype.bitwidth), signature.args[0].dtype.bitwidth // 8
        pointer = _pointer(context, builder, signature.args[0], codes, at, WIDE)
        bits = _broadcast(builder, bit if bit.type == integer else builder.trunc(bit, integer), ir.VectorType(integer, WIDE))
        chosen = builder.select(_compared(context, builder, signature.args[2], bins, index, lower, span, WIDE), bits, ir.Constant(bits.type, None))
        builder.store(builder.or_(builder.load(pointer, align=width), chosen), pointer, align=width)
        return context.get_dummy_value()

    return types.none(codes, types.intp, bins, types.intp, types.int64, types.int64, types.int64), generate


@intrinsic
def _choose(typing_context, pool, at, left, right, bins, index, lower, span):
    def generate(context, builder, signature, arguments):
        pool, at, left, right, bins, index, lower, span = arguments
        inside = _compared(context, builder, signature.args[4], bins, index, lower, span, WIDE)
        target, *sources = (_pointer(context, builder, signature.args[0], pool, place, WIDE) for place in (at, left, right))
        builder.store(builder.select(inside, *(builder.load(source, align=1) for source in sources)), target, align=1)
        return context.get_dummy_value()

    return types.none(pool, types.intp, types.intp, types.intp, bins, types.intp, types.int64, types.int64), generate


@intrinsic
def _take(typing_context, table, first, starts, at):
    def generate(context, builder, signature, arguments):
        table, first, starts, at = arguments
        rows = []
        offset = _pointer(context, builder, signature.args[2], starts, at)
        offset = builder.bitcast(offset, offset.type.pointee.element.as_pointer())
        for i in range(LANES):
            start = builder.load(builder.gep(offset, [ir.Constant(ir.IntType(32), i)]), align=4)  # one by one: a vector would be taken apart again
            pointer = _pointer(context, builder, signature.args[0], table, builder.add(first, builder.zext(start, first.type)), QUAD)
            rows.append(builder.load(pointer, align=8))
        halves = []
        for a, b, c, d in (rows[:QUAD], rows[QUAD:]):
            ab, cd = ([_shuffled(builder, x, y, order) for order in ([0, 4, 2, 6], [1, 5, 3, 7])] for x, y in ((a, b), (c, d)))
            halves.append([_shuffled(builder, ab[k % 2], cd[k % 2], [0, 1, 4, 5] if k < 2 else [2, 3, 6, 7]) for k in range(QUAD)])
        columns = [_shuffled(builder, low, high, list(range(LANES))) for low, high in zip(*halves, strict=True)]
        return context.make_tuple(builder, signature.return_type, columns)

    return types.UniTuple(LANES_TYPE, QUAD)(table, types.intp, starts, types.intp), generate


def _arithmetic(python_operator, instruction):
    @intrinsic
    def operate(typing_context, a, b):
        def generate(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=("contract",))

        return LANES_TYPE(LANES_TYPE, LANES_TYPE), generate

    @overload(python_operator)
    def overloaded(a, b):
        if isinstance(a, LanesType) and isinstance(b, LanesType):
            return lambda a, b: operate(a, b)
        return None


for _python_operator, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv")):
    _arithmetic(_python_operator, _instruction)


def load(array, index):
    """Eight elements of ``array (m,) float64`` from ``index`` on."""
    return array[index : index + LANES].copy()


def store(array, index, lanes):
    """Write eight elements into ``array (m,) float64`` from ``index`` on."""
    array[index : index + LANES] = lanes


def splat(x):
    """Eight copies of a float."""
    return np.full(LANES, x)


def constant(array, index):
    """Eight copies of an element of ``array (m,) float64``, which is read-only: the compiler need not load it again after every store."""
    return splat(array[index])


def inside(bins, index, lower, span):
    """1.0 where a bin lies on the cyclic interval of ``span + 1`` bins that starts at ``lower``, else 0.0.

    ``bins : (m,)`` unsigned integers; ``lower`` and ``span`` are taken modulo their width, so that an interval may start at the missing
    bin (the highest) and go on at bin 0: any numeric split is one subtraction and one comparison.
    """
    unsigned, top = bins.dtype.type, int(np.iinfo(bins.dtype).max)
    with np.errstate(over="ignore"):
        return (bins[index : index + LANES] - unsigned(lower & top) <= unsigned(span & top)).astype(np.float64)


def mark(codes, at, bins, index, lower, span, bit):
    """Set ``bit`` in the codes of WIDE rows, ``codes (m,)`` integers from ``at`` on, where the rows' bins lie on an interval; see ``inside``."""
    for i in range(0, WIDE, LANES):
        codes[at + i : at + i + LANES] |= np.where(inside(bins, index + i, lower, span) > 0, bit, 0).astype(codes.dtype)


def choose(pool, at, left, right, bins, index, lower, span):
    """For WIDE rows copy, within ``pool (m,) uint8``, to ``at`` and on: what is from ``left`` on where the rows' bins lie on an interval, else
    what is from ``right`` on; see ``inside``."""
    for i in range(0, WIDE, LANES):
        chosen = inside(bins, index + i, lower, span) > 0
        pool[at + i : at + i + LANES] = np.where(chosen, pool[left + i : left + i + LANES], pool[right + i : right + i + LANES])


def take(table, first, starts, at):
    """QUAD numbers from a row of a table for each of eight rows of data, as QUAD lanes.

    ``starts (m,) uint32`` from ``at`` on say where in ``table (m,) float64``, counted from ``first``, the numbers of a row of data start.
    """
    places = first + starts[at : at + LANES].astype(np.int64)
    return tuple(table[places + k] for k in range(QUAD))


@overload(load)
def _compiled_load(array, index):
    return lambda array, index: _load(array, index)


@overload(store)
def _compiled_store(array, index, lanes):
    return lambda array, index, lanes: _store(array, index, lanes)


@overload(splat)
def _compiled_splat(x):
    return lambda x: _splat(x)


@overload(constant)
def _compiled_constant(array, index):
    return lambda array, index: _constant(array, index)


@overload(inside)
def _compiled_inside(bins, index, lower, span):
    return lambda bins, index, lower, span: _inside(bins, index, lower, span)


@overload(mark)
def _compiled_mark(codes, at, bins, index, lower, span, bit):
    return lambda codes, at, bins, index, lower, span, bit: _mark(codes, at, bins, index, lower, span, bit)


@overload(choose)
def _compiled_choose(pool, at, left, right, bins, index, lower, span):
    return lambda pool, at, left, right, bins, index, lower, span: _choose(pool, at, left, right, bins, index, lower, span)


@overload(take)
def _compiled_take(table, first, starts, at):
    return lambda table, first, starts, at: _take(table, first, starts, at)
