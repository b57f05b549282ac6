"""The hash by which CatBoost knows a category: the low half of CityHash64 of its text."""

from collections.abc import Callable
from dataclasses import dataclass

MASK = (1 << 64) - 1
HASH_MASK = (1 << 32) - 1  # of a category
K0, K1, K2, K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
MULTIPLIER = 0x9DDFEA08EB382D69


@dataclass(frozen=True, slots=True)
class HashedCategory:
    """A category of which the model stores no text, only the hash: column values are compared by ``HashedCategory.of(value)``."""

    code: int  # 0..2**32 - 1

    @classmethod
    def of(cls, value: str | int) -> "HashedCategory":
        """Hash a value as CatBoost does: an integer by its decimal text, a boolean as 1 or 0.

        Parameters
        ----------
        value : str or int

        Returns
        -------
        HashedCategory
        """
        text = value if isinstance(value, str) else str(int(value))
        return cls(city_hash(text.encode()) & HASH_MASK)


NO_CATEGORY = HashedCategory(-1)  # what no value is


def _rotate(x: int, by: int) -> int:
    return (x >> by | x << 64 - by) & MASK if by else x


def _mix(x: int) -> int:
    return x ^ x >> 47


def _pair(low: int, high: int) -> int:
    a = _mix((low ^ high) * MULTIPLIER & MASK)
    b = _mix((high ^ a) * MULTIPLIER & MASK)
    return b * MULTIPLIER & MASK


def _up_to_16(s: bytes, at: Callable[[int], int]) -> int:
    n = len(s)
    if n > 8:
        a, b = at(0), at(n - 8)
        return _pair(a, _rotate(b + n & MASK, n)) ^ b
    if n >= 4:
        a, b = (int.from_bytes(s[i : i + 4], "little") for i in (0, n - 4))
        return _pair(n + (a << 3), b)
    if n == 0:
        return K2
    y, z = s[0] + (s[n >> 1] << 8), n + (s[-1] << 2)
    return _mix(y * K2 & MASK ^ z * K3 & MASK) * K2 & MASK


def _up_to_32(n: int, at: Callable[[int], int]) -> int:
    a, b, c, d = at(0) * K1, at(8), at(n - 8) * K2, at(n - 16) * K0
    low = _rotate(a - b & MASK, 43) + _rotate(c & MASK, 30) + d
    return _pair(low & MASK, a + _rotate(b ^ K3, 20) - c + n & MASK)


def _quarters(z: int, a: int, i: int, j: int, at: Callable[[int], int]) -> tuple[int, int]:
    """Half of the mix of 33 to 64 bytes: 32 bytes from ``i``; ``z`` and ``a`` are what they start from."""
    b, c = _rotate(a + z & MASK, 52), _rotate(a & MASK, 37)
    a += at(i)
    c += _rotate(a & MASK, 7)
    a += at(j)
    return a + z & MASK, b + _rotate(a & MASK, 31) + c & MASK


def _up_to_64(n: int, at: Callable[[int], int]) -> int:
    first, second = _quarters(at(24), at(0) + (n + at(n - 16)) * K0, 8, 16, at)
    third, fourth = _quarters(at(n - 8), at(16) + at(n - 32), n - 24, n - 16, at)
    r = _mix((first + fourth) * K2 + (third + second) * K0 & MASK)
    return _mix(r * K0 + second & MASK) * K2 & MASK


def _weak_32(i: int, a: int, b: int, at: Callable[[int], int]) -> tuple[int, int]:
    w, x, y, z = at(i), at(i + 8), at(i + 16), at(i + 24)
    a += w
    b = _rotate(b + a + z & MASK, 21)
    c = a
    a += x + y
    b += _rotate(a & MASK, 44)
    return a + z & MASK, b + c & MASK


def _over_64(n: int, at: Callable[[int], int]) -> int:
    x, y = at(0), at(n - 16) ^ K1
    z = at(n - 56) ^ K0
    v = _weak_32(n - 64, n, y, at)
    w = _weak_32(n - 32, n * K1 & MASK, K0, at)
    z = z + _mix(v[1]) * K1 & MASK
    x = _rotate(z + x & MASK, 39) * K1 & MASK
    y = _rotate(y, 33) * K1 & MASK
    for i in range(0, (n - 1) & ~63, 64):
        x = _rotate(x + y + v[0] + at(i + 16) & MASK, 37) * K1 & MASK
        y = _rotate(y + v[1] + at(i + 48) & MASK, 42) * K1 & MASK
        x ^= w[1]
        y ^= v[0]
        z = _rotate(z ^ w[0], 33)
        v = _weak_32(i, v[1] * K1 & MASK, x + w[0], at)
        w = _weak_32(i + 32, z + w[1], y, at)
        z, x = x, z
    low = _pair(v[0], w[0]) + _mix(y) * K1 + z
    return _pair(low & MASK, _pair(v[1], w[1]) + x & MASK)


def city_hash(s: bytes) -> int:
    """Hash bytes by CityHash64 in its first version (Pike and Alakuijala 2011, CityHash 1.0), the one in CatBoost's ``util/digest/city``.

    Parameters
    ----------
    s : bytes

    Returns
    -------
    int
        0..2**64 - 1.
    """

    def at(i: int) -> int:
        return int.from_bytes(s[i : i + 8], "little")

    n = len(s)
    if n <= 16:
        return _up_to_16(s, at)
    return _up_to_32(n, at) if n <= 32 else _up_to_64(n, at) if n <= 64 else _over_64(n, at)


def hash_texts(values):
    import numpy as np

    return np.array([city_hash((value or "").encode()) & HASH_MASK for value in values.to_pylist()], np.uint64)
