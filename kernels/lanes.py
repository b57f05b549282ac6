"""Eight rows in one register: explicit vectors for kernels whose inner loop runs over rows.

``Lanes`` is an LLVM vector of eight doubles, which the backend splits into what the machine has (one 512-bit, two 256-bit, four 128-bit
registers). Loads and stores take a flat contiguous array and the index of the first of eight elements; ``+ - *`` may fuse into
multiply-adds (flag ``contract``) and are otherwise exact, so results do not depend on how a loop was vectorised. With the JIT off the same
functions work on arrays of eight elements.
"""

import operator

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.extending import intrinsic, models, overload, register_model

LANES = 8


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


def _pointer(context, builder, array_type, array, index):
    """Address of ``array[index]``, with room for eight elements where bounds are checked."""
    record = context.make_array(array_type)(context, builder, array)
    if config.BOUNDSCHECK:  # type: ignore[attr-defined]  # set from the environment
        last = builder.add(index, ir.Constant(index.type, LANES))
        outside = builder.or_(
            builder.icmp_signed("<", index, ir.Constant(index.type, 0)),
            builder.icmp_signed(">", last, builder.extract_value(record.shape, 0)),
        )
        with builder.if_then(outside, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("lanes reach outside the array",))
    return builder.bitcast(builder.gep(record.data, [index]), ir.VectorType(record.data.type.pointee, LANES).as_pointer())


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
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), mask)


@intrinsic
def _splat(typing_context, x):
    def generate(context, builder, signature, arguments):
        return _broadcast(builder, arguments[0], _VECTOR)

    return LANES_TYPE(types.float64), generate


@intrinsic
def _inside(typing_context, ranks, index, lower, span):
    if not (_is_flat(ranks) and ranks.dtype in types.unsigned_domain):
        return None

    def generate(context, builder, signature, arguments):
        array, first, lower, span = arguments
        integer = ir.IntType(ranks.dtype.bitwidth)
        vector = ir.VectorType(integer, LANES)
        loaded = builder.load(_pointer(context, builder, signature.args[0], array, first), align=ranks.dtype.bitwidth // 8)
        bounds = [_broadcast(builder, builder.trunc(bound, integer), vector) for bound in (lower, span)]
        return builder.uitofp(builder.icmp_unsigned("<=", builder.sub(loaded, bounds[0]), bounds[1]), _VECTOR)

    return LANES_TYPE(ranks, types.intp, types.int64, types.int64), generate


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


for _python_operator, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):
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


def inside(ranks, index, lower, span):
    """1.0 where a rank lies on the cyclic interval of ``span + 1`` ranks that starts at ``lower``, else 0.0.

    ``ranks : (m,)`` unsigned integers; ``lower`` and ``span`` are taken modulo their width, so that an interval may start at the missing
    rank (the highest) and go on at rank 0: any numeric split is one subtraction and one comparison.
    """
    unsigned, top = ranks.dtype.type, int(np.iinfo(ranks.dtype).max)
    with np.errstate(over="ignore"):
        return (ranks[index : index + LANES] - unsigned(lower & top) <= unsigned(span & top)).astype(np.float64)


@overload(load)
def _compiled_load(array, index):
    return lambda array, index: _load(array, index)


@overload(store)
def _compiled_store(array, index, lanes):
    return lambda array, index, lanes: _store(array, index, lanes)


@overload(splat)
def _compiled_splat(x):
    return lambda x: _splat(x)


@overload(inside)
def _compiled_inside(ranks, index, lower, span):
    return lambda ranks, index, lower, span: _inside(ranks, index, lower, span)
