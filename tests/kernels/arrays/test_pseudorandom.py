"""Numbers that look random: bits against Python's own integers, orders by counting them out."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from leafledger.kernels.arrays.pseudorandom import mix, permute


def numbers(n, first=0):
    return np.arange(first, first + n, dtype=np.uint64)


def splitmix(state: int) -> int:
    """The finaliser of SplitMix64 as Vigna prints it, in Python's own integers."""
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def test_bits_are_those_of_splitmix():
    some = np.random.default_rng(0).integers(0, 2**64, 100, dtype=np.uint64)
    assert mix(some).tolist() == [splitmix(each) for each in some.tolist()]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 40, 49, 50, 53, 1000, 65_537])
def test_every_place_is_taken_once(n):
    """Whether the numbers come at once or a few at a time."""
    places = permute(numbers(n), n)
    assert sorted(places.tolist()) == list(range(n))
    assert_array_equal(np.concatenate([permute(numbers(n // 2), n), permute(numbers(n - n // 2, n // 2), n)]), places)


def test_large_numbers_have_places_too():
    n = (1 << 61) + 12_345
    places = permute(numbers(10_000, n - 10_000), n)
    assert np.unique(places).size == 10_000
    assert places.max() < n
    assert stats.kstest(places.astype(float) / n, "uniform").pvalue > 1e-3


def test_places_tell_nothing_of_numbers():
    """Whatever numbers leave when they are divided by another one, and where they lie, places are spread alike (chi²)."""
    n = 30_000
    places = permute(numbers(n), n).astype(int)
    for by, of in itertools.product((2, 7, 20, 173), (2, 20)):  # 173² is about n
        for rest in (np.arange(n) % by, np.arange(n) * by // n):
            table = np.zeros((by, of))
            np.add.at(table, (rest, places % of), 1)
            assert stats.chi2_contingency(table).pvalue > 1e-4
