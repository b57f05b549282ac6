"""Compiled lanes do what their Python twins say."""

import numpy as np
import pytest
from numba import config

from kernels._jit import jit
from kernels.lanes import LANES, inside, load, splat, store


@jit
def combine(a, b, ranks, lower, span, out):
    """out = (a + 3) * b - inside, eight at a time."""
    for i in range(0, out.size, LANES):
        store(out, i, (load(a, i) + splat(3.0)) * load(b, i) - inside(ranks, i, lower, span))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("lower", "span"), [(0, 0), (0, 3), (-1, 4), (4, -6), (2, -2), (1, 0)])
def test_lanes_agree_with_numpy(dtype, lower, span):
    """Arithmetic is exact on small numbers; intervals are cyclic in the rank's own width."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, 32).astype(float), rng.integers(-9, 9, 32).astype(float)
    top = int(np.iinfo(dtype).max)
    ranks = rng.choice([0, 1, 2, 3, 4, 5, top - 1, top], 32).astype(dtype)
    out = np.zeros(32)
    combine(a, b, ranks, lower, span, out)
    expected = [(int(r) - lower) % (top + 1) <= span % (top + 1) for r in ranks]
    assert (out == (a + 3) * b - np.array(expected)).all()


@pytest.mark.skipif(not config.BOUNDSCHECK or config.DISABLE_JIT, reason="bounds are checked in a pass of their own: make bounds")
@pytest.mark.parametrize("n", [-8, 25, 31])
def test_lanes_outside_the_array_are_refused_where_bounds_are_checked(n):
    """A load or store that reaches past the end, or starts before the array, is an error under ``NUMBA_BOUNDSCHECK``."""

    @jit
    def read(array, index, out):
        store(out, 0, load(array, index))

    with pytest.raises(IndexError, match="lanes reach outside the array"):
        read(np.zeros(32), n, np.zeros(8))
