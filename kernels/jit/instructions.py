"""The compiled form of lanes: their type, and the instruction for every function of ``lanes``."""

import operator
from typing import Any

from llvmlite import ir
from numba.core import config, types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from .widths import LANES, QUAD, WIDE


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
def load(typing_context: Any, array: Any, index: Any) -> Any:
    if not (_is_flat(array) and array.dtype == types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=8)

    return LANES_TYPE(array, types.intp), generate


@intrinsic
def store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
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
def splat(typing_context: Any, x: Any) -> Any:
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
def constant(typing_context: Any, array: Any, index: Any) -> Any:
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
def inside(typing_context: Any, bins: Any, index: Any, lower: Any, span: Any) -> Any:
    if not (_is_flat(bins) and bins.dtype in types.unsigned_domain):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, first, lower, span = arguments
        return builder.uitofp(_compared(context, builder, signature.args[0], array, first, lower, span, LANES), _VECTOR)

    return LANES_TYPE(bins, types.intp, types.int64, types.int64), generate


@intrinsic
def mark(typing_context: Any, codes: Any, at: Any, bins: Any, index: Any, lower: Any, span: Any, bit: Any) -> Any:
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
def choose(typing_context: Any, pool: Any, at: Any, left: Any, right: Any, bins: Any, index: Any, lower: Any, span: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pool, at, left, right, bins, index, lower, span = arguments
        inside = _compared(context, builder, signature.args[4], bins, index, lower, span, WIDE)
        target, *sources = (_pointer(context, builder, signature.args[0], pool, place, WIDE) for place in (at, left, right))
        builder.store(builder.select(inside, *(builder.load(source, align=1) for source in sources)), target, align=1)
        return context.get_dummy_value()

    return types.none(pool, types.intp, types.intp, types.intp, bins, types.intp, types.int64, types.int64), generate


@intrinsic
def take(typing_context: Any, table: Any, first: Any, starts: Any, at: Any) -> Any:
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
