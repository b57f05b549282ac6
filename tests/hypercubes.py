"""Functions on the hypercube, whose rows are all combinations of zeros and ones, as trees."""

import numpy as np
from hypothesis import strategies as st
from numba.core import config

from tests.trees import one_tree

MAX_BITS = 4 if config.DISABLE_JIT else 6


def hypercube(n_bits):
    """All rows, ``(2^n, n)`` float64; bit j of a row's number is its feature j."""
    return (np.arange(2**n_bits)[:, None] >> np.arange(n_bits) & 1).astype(float)


def full_tree(values, order):
    """A function on the hypercube, ``values[number of the row]``, as a tree that asks all features in ``order``, every leaf of cover 1.

    Absent features are averaged by cover, that is uniformly and independently: the path-dependent game is the marginal one.
    """
    n_bits, n_splits = len(order), len(values) - 1
    node = np.arange(2 * n_splits + 1)
    level = np.frexp(node + 1.0)[1] - 1
    split = node < n_splits
    leaf = np.zeros(1, int)
    for feature in order:
        leaf = np.concatenate(np.stack((leaf, leaf | 1 << feature), axis=1))
    return one_tree(
        np.where(split, np.append(order, -1)[np.minimum(level, n_bits)], -1),
        0.5,
        np.where(split, 2 * node + 1, -1),
        np.where(split, 2 * node + 2, -1),
        np.concatenate((np.zeros(n_splits), np.asarray(values, float)[leaf])),
        2.0 ** (n_bits - level),
        n_bits,
    )


@st.composite
def functions(draw, min_bits=1, monotone=False):
    """Numbers on the hypercube, and an order of its features. ``monotone``: in each feature up or down, whatever the others are."""
    n_bits = draw(st.integers(min_bits, MAX_BITS))
    numbers = np.arange(2**n_bits)
    values = np.array(draw(st.lists(st.integers(-16, 16), min_size=numbers.size, max_size=numbers.size))) / 4
    if monotone:
        for feature in range(n_bits):  # the largest value of all rows below: increasing, and any increasing function is its own
            values = np.maximum(values, values[numbers & ~(1 << feature)])
        values = values[numbers ^ draw(st.integers(0, numbers.size - 1))]
    return values, draw(st.permutations(range(n_bits)))
