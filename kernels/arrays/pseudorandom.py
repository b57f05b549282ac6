"""Pseudorandom bits and permutations that depend on a row's number alone: the same on every machine."""

import math

import numpy as np

GAMMA, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ROUNDS = 6  # four rounds make a random permutation if each round is a random function (Luby and Rackoff 1988)


def mix(numbers: np.ndarray) -> np.ndarray:
    """Hash integers to pseudorandom bits (SplitMix64; Steele, Lea and Flood 2014).

    Parameters
    ----------
    numbers : (n,) uint64

    Returns
    -------
    (n,) uint64
    """
    mixed = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def _shuffle(numbers: np.ndarray, side: np.uint64, key: np.ndarray) -> np.ndarray:
    """Permute the numbers below ``side²`` by a Feistel network on their two digits."""
    low: np.ndarray = numbers % side
    high: np.ndarray = numbers // side
    for turn in range(_ROUNDS):
        drawn = mix((high * np.uint64(_ROUNDS) + np.uint64(turn + 1)) * GAMMA + key)
        low, high = high, (low + drawn % side) % side
    return high * side + low


def permute(numbers: np.ndarray, n: int) -> np.ndarray:
    """Evaluate a pseudorandom permutation of ``range(n)`` at the given numbers, without building it (Black and Rogaway 2002).

    Parameters
    ----------
    numbers : (m,) uint64
        below n; a larger one goes on from the first
    n : int
        at least 1, at most 2^62

    Returns
    -------
    (m,) uint64
        below n, different ones for different numbers
    """
    side, found = np.uint64(math.isqrt(n - 1) + 1), numbers % np.uint64(n)
    key, outside = mix(np.array([n], np.uint64)), np.ones(found.shape, bool)
    while outside.any():  # cycle walking: repeat until the result is below n
        found[outside] = _shuffle(found[outside], side, key)
        outside = found >= np.uint64(n)
    return found
