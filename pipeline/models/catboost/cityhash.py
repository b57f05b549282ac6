"""CityHash64 of texts in bulk, whose low half is CatBoost's hash of a category."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

HASH_MASK = (1 << 32) - 1  # low 32 bits
K0, K1, K2, K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
MULTIPLIER = 0x9DDFEA08EB382D69
BLOCK = 64  # bytes of a long text mixed at a time


@dataclass(frozen=True, slots=True)
class HashedCategory:
    """A category known by its hash only; column values are compared by ``HashedCategory.of(value)``."""

    code: int  # 0..2**32 - 1

    @classmethod
    def of(cls, value: str | int) -> "HashedCategory":
        """Hash a value as CatBoost does: integers by their decimal text, booleans as 1 or 0."""
        text = value if isinstance(value, str) else str(int(value))
        return cls(city_hash(text.encode()) & HASH_MASK)


NO_CATEGORY = HashedCategory(-1)  # equal to no value
UNASKED = HashedCategory(0)  # stands for all categories of a feature without splits
DIGITS, WORDS = ("0", "1"), ("False", "True")  # spellings of false and true: CatBoost's, and Python's and pandas'


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts of one range of lengths in a byte buffer."""

    data: np.ndarray  # uint8
    start: np.ndarray  # (n,) int64
    size: np.ndarray  # (n,) int64, bytes

    @property
    def n(self) -> np.ndarray:
        """Lengths, as unsigned integers for mixing, ``(n,) uint64``."""
        return self.size.astype(np.uint64)

    def read(self, at: np.ndarray | int, dtype: str = "<u8") -> np.ndarray:
        """Read numbers ``(n,) uint64`` at byte ``at`` of each text."""
        width = np.dtype(dtype).itemsize
        everywhere = np.ndarray((self.data.size - width + 1,), dtype, self.data, strides=(1,))
        return everywhere[self.start + at].astype(np.uint64)


def _rotate(x: np.ndarray, by: int | np.ndarray) -> np.ndarray:
    return x >> by | x << (64 - by)


def _mix(x: np.ndarray) -> np.ndarray:
    return x ^ x >> 47


def _pair(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return _mix((high ^ _mix((low ^ high) * MULTIPLIER)) * MULTIPLIER) * MULTIPLIER


def _of_nothing(texts: _Texts) -> np.ndarray:
    return np.full(texts.size.size, K2, np.uint64)


def _up_to_3(texts: _Texts) -> np.ndarray:
    first, middle, last = (texts.read(at, "u1") for at in (0, texts.size >> 1, texts.size - 1))
    y, z = first + (middle << 8), texts.n + (last << 2)
    return _mix(y * K2 ^ z * K3) * K2


def _up_to_8(texts: _Texts) -> np.ndarray:
    return _pair(texts.n + (texts.read(0, "<u4") << 3), texts.read(texts.size - 4, "<u4"))


def _up_to_16(texts: _Texts) -> np.ndarray:
    a, b, n = texts.read(0), texts.read(texts.size - 8), texts.n
    return _pair(a, _rotate(b + n, n)) ^ b


def _up_to_32(texts: _Texts) -> np.ndarray:
    a, b, c, d = texts.read(0) * K1, texts.read(8), texts.read(texts.size - 8) * K2, texts.read(texts.size - 16) * K0
    return _pair(_rotate(a - b, 43) + _rotate(c, 30) + d, a + _rotate(b ^ K3, 20) - c + texts.n)


def _quarters(z: np.ndarray, a: np.ndarray, i: np.ndarray | int, j: np.ndarray | int, texts: _Texts) -> tuple[np.ndarray, np.ndarray]:
    """Mix half of 33 to 64 bytes, starting from ``z`` and ``a``, with 16 bytes at ``i`` and ``j``."""
    b, c = _rotate(a + z, 52), _rotate(a, 37)
    a = a + texts.read(i)
    c += _rotate(a, 7)
    a += texts.read(j)
    return a + z, b + _rotate(a, 31) + c


def _up_to_64(texts: _Texts) -> np.ndarray:
    n = texts.size
    first, second = _quarters(texts.read(24), texts.read(0) + (texts.n + texts.read(n - 16)) * K0, 8, 16, texts)
    third, fourth = _quarters(texts.read(n - 8), texts.read(16) + texts.read(n - 32), n - 24, n - 16, texts)
    r = _mix((first + fourth) * K2 + (third + second) * K0)
    return _mix(r * K0 + second) * K2


def _weak_32(i: np.ndarray | int, a: np.ndarray, b: np.ndarray, texts: _Texts) -> tuple[np.ndarray, np.ndarray]:
    w, x, y, z = (texts.read(i + 8 * k) for k in range(4))
    a = a + w
    b = _rotate(b + a + z, 21)
    c = a + x + y
    return c + z, b + _rotate(c, 44) + a


def _over_64(texts: _Texts) -> np.ndarray:
    """Hash texts of more than 64 bytes, sorted by number of blocks, the longest first."""
    n_blocks = (texts.size - 1) // BLOCK
    order = np.argsort(-n_blocks, kind="stable")
    texts, n_blocks = _Texts(texts.data, texts.start[order], texts.size[order]), n_blocks[order]
    x, y, z = texts.read(0), texts.read(texts.size - 16) ^ K1, texts.read(texts.size - 56) ^ K0
    v = _weak_32(texts.size - 64, texts.n, y, texts)
    w = _weak_32(texts.size - 32, texts.n * K1, np.full(order.size, K0, np.uint64), texts)
    z += _mix(v[1]) * K1
    x = _rotate(z + x, 39) * K1
    y = _rotate(y, 33) * K1
    state = np.stack((x, y, z, *v, *w))
    for block in range(int(n_blocks[0])):
        n = int(np.searchsorted(-n_blocks, -block))
        state[:, :n] = _mix_block(block * BLOCK, state[:, :n], _Texts(texts.data, texts.start[:n], texts.size[:n]))
    x, y, z, v0, v1, w0, w1 = state
    found = np.empty(order.size, np.uint64)
    found[order] = _pair(_pair(v0, w0) + _mix(y) * K1 + z, _pair(v1, w1) + x)
    return found


def _mix_block(i: int, state: np.ndarray, texts: _Texts) -> np.ndarray:
    """Mix bytes ``i`` to ``i + 63`` of every text into its state ``(7, n)``."""
    x, y, z, v0, v1, w0, w1 = state
    x = _rotate(x + y + v0 + texts.read(i + 16), 37) * K1
    y = _rotate(y + v1 + texts.read(i + 48), 42) * K1
    x = x ^ w1
    y = y ^ v0
    z = _rotate(z ^ w0, 33)
    v = _weak_32(i, v1 * K1, x + w0, texts)
    w = _weak_32(i + 32, z + w1, y, texts)
    return np.stack((z, y, x, *v, *w))


CLASSES: tuple[tuple[int, Callable[[_Texts], np.ndarray]], ...] = (  # hash functions with the longest text of each, in bytes
    (0, _of_nothing),
    (3, _up_to_3),
    (8, _up_to_8),
    (16, _up_to_16),
    (32, _up_to_32),
    (64, _up_to_64),
)


def _hash(data: np.ndarray, start: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Hash texts in a buffer by CityHash64, first version, ``(n,) uint64``."""
    found = np.empty(size.size, np.uint64)
    of_class = np.searchsorted([most for most, _ in CLASSES], size)
    for number in np.unique(of_class).tolist():
        chosen = np.flatnonzero(of_class == number)
        compute = CLASSES[number][1] if number < len(CLASSES) else _over_64
        found[chosen] = compute(_Texts(data, start[chosen], size[chosen]))
    return found


def city_hash(s: bytes) -> int:
    """Hash bytes by CityHash64 in its first version (Pike and Alakuijala 2011, CityHash 1.0), the one in CatBoost's ``util/digest/city``."""
    return int(_hash(np.frombuffer(s, np.uint8), np.zeros(1, np.int64), np.array([len(s)], np.int64))[0])


def find_booleans(known: Collection[int]) -> tuple[str, ...]:
    """Return how categories spell false and true.

    Parameters
    ----------
    known : collection of int
        Hashes of categories that the model knows.

    Returns
    -------
    tuple of str
        False and true; none where the model knows neither, or both ways.
    """
    written = [each for each in (DIGITS, WORDS) if any(HashedCategory.of(text).code in known for text in each)]
    return written[0] if len(written) == 1 else ()


def hash_texts(values: pa.Array) -> np.ndarray:
    """Hash texts as CatBoost does.

    Parameters
    ----------
    values : pa.Array
        n texts, of type string or large_string.

    Returns
    -------
    (n,) uint32
        What stands for null is no hash of anything.
    """
    n = len(values)
    kind = np.dtype(np.int64 if pa.types.is_large_string(values.type) else np.int32)
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, kind, values.offset + n + 1 if n else 0)[values.offset :].astype(np.int64)
    return _hash(np.frombuffer(data or b"", np.uint8), ends[:-1], np.diff(ends)).astype(np.uint32)
