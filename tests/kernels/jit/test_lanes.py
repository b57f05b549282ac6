"""Compiled lanes do what their Python twins say."""

import numpy as np
import pytest
from numba import config

from leafledger.kernels.jit import instructions
from leafledger.kernels.jit import lanes as twins
from leafledger.kernels.jit.decorator import jit
from leafledger.kernels.jit.lanes import LANES, LINE, QUAD, WIDE, aligned, choose, constant, inside, load, mark, splat, store, take, zeros


@pytest.mark.parametrize("name", ["load", "store", "splat", "constant", "inside", "mark", "choose", "take"])
def test_a_function_of_lanes_is_the_instruction_of_its_name(name, monkeypatch):
    """In compiled code, whether or not kernels are compiled where this runs."""
    monkeypatch.setattr(config, "DISABLE_JIT", 0)
    function = getattr(twins, name)
    assert twins._instruction(function.__wrapped__).compiled is getattr(instructions, name)
    assert (function.__name__, function.__doc__) == (name, function.__wrapped__.__doc__)


@jit
def combine(a, b, bins, lower, span, out):
    """out = (a + 3) * b - inside, eight at a time."""
    for i in range(0, out.size, LANES):
        store(out, i, (load(a, i) + splat(3.0)) * load(b, i) - inside(bins, i, lower, span))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("lower", "span"), [(0, 0), (0, 3), (-1, 4), (4, -6), (2, -2), (1, 0)])
def test_lanes_agree_with_numpy(dtype, lower, span):
    """Arithmetic is exact on small numbers; intervals are cyclic in the bin's own width."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, 32).astype(float), rng.integers(-9, 9, 32).astype(float)
    top = int(np.iinfo(dtype).max)
    bins = rng.choice([0, 1, 2, 3, 4, 5, top - 1, top], 32).astype(dtype)
    out = np.zeros(32)
    combine(a, b, bins, lower, span, out)
    expected = [(int(r) - lower) % (top + 1) <= span % (top + 1) for r in bins]
    assert (out == (a + 3) * b - np.array(expected)).all()


@jit
def code(bins, lower, span, codes, bit, pool, table, starts, out):
    """Codes of all rows in two comparisons, choices by the first, and the middle of each code's row of the table."""
    for i in range(0, bins.size, WIDE):
        mark(codes, i, bins, i, lower, span, 1)
        mark(codes, i, bins, i, 2, 1, bit)
        choose(pool, i, bins.size + i, 2 * bins.size + i, bins, i, lower, span)
    for i in range(0, bins.size, LANES):
        for k, lanes in enumerate(take(table, 2, starts, i)):
            store(out, k * bins.size + i, lanes)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("lower", "span"), [(0, 3), (-1, 4), (4, -6)])
@pytest.mark.parametrize(("code_type", "bit"), [(np.uint8, 128), (np.uint16, 512)])
def test_codes_choices_and_rows_of_tables_agree_with_numpy(dtype, lower, span, code_type, bit):
    """A bit per comparison, a byte per choice, four numbers of a row per code."""
    rng = np.random.default_rng(0)
    top, n, width = int(np.iinfo(dtype).max), 2 * WIDE, 8
    bins = rng.choice([0, 1, 2, 3, 4, 5, top - 1, top], n).astype(dtype)
    first = np.array([(int(r) - lower) % (top + 1) <= span % (top + 1) for r in bins])
    codes, pool = np.zeros(n, code_type), rng.integers(0, 255, 3 * n).astype(np.uint8)
    table, out = rng.standard_normal(width * 1024), np.zeros(QUAD * n)
    chosen = np.where(first, pool[n : 2 * n], pool[2 * n :])
    starts = rng.integers(0, 1024, n).astype(np.uint32) * width
    code(bins, lower, span, codes, bit, pool, table, starts, out)
    assert (codes == first + bit * np.isin(bins, (2, 3))).all()
    assert (pool[:n] == chosen).all()
    assert (out.reshape(QUAD, n) == table.reshape(-1, width)[starts // width, 2 : 2 + QUAD].T).all()


@jit
def scale(a, constants, index, out):
    """out = constants[index] * a / 3, eight at a time."""
    for i in range(0, out.size, LANES):
        store(out, i, constant(constants, index) * load(a, i) / splat(3.0))


def test_constants_are_copied_into_all_lanes():
    """An element of a read-only array; quotients are as exact as NumPy's."""
    a, constants, out = np.random.default_rng(0).standard_normal(16), np.array([2.0, 0.1, -7.0]), np.zeros(16)
    constants.flags.writeable = False
    scale(a, constants, 1, out)
    assert (out == constants[1] * a / 3.0).all()


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (2, 0, 4), (7, 1000)])
def test_zeros_start_on_a_cache_line(shape):
    """As rows of one contiguous array, whose vectors then never reach into the next line."""
    found = zeros(*shape)
    assert (found.shape, found.dtype, found.flags.c_contiguous) == (shape, np.float64, True)
    assert found.size == 0 or found.ctypes.data % LINE == 0
    assert not found.any()


@jit
def make_many(n, value):
    """Arrays of a kernel, none of which goes before the next is made; and the places of their first numbers."""
    made = [aligned(n, value) for _ in range(50)]
    return made, [array.ctypes.data for array in made]


@pytest.mark.parametrize("n", [0, 1, 8, 1001])
def test_arrays_of_kernels_start_at_a_line_too(n):
    """Whatever Numba gives them; each has its own numbers."""
    made, places = make_many(n, 0.5)
    assert [array.shape for array in made] == [(n,)] * 50
    assert n == 0 or all(place % LINE == 0 for place in places)
    assert (n == 0) or len(set(places)) == 50
    assert all((array == 0.5).all() for array in made)


@pytest.mark.skipif(not config.BOUNDSCHECK or config.DISABLE_JIT, reason="bounds are checked in a pass of their own: make bounds")
@pytest.mark.parametrize("n", [-8, 25, 31])
def test_lanes_outside_the_array_are_refused_where_bounds_are_checked(n):
    """A load or store that reaches past the end, or starts before the array, is an error under ``NUMBA_BOUNDSCHECK``."""

    @jit
    def read(array, index, out):
        store(out, 0, load(array, index))

    with pytest.raises(IndexError, match="lanes reach outside the array"):
        read(np.zeros(32), n, np.zeros(8))
