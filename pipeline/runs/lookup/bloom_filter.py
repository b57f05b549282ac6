"""Parquet's Bloom filters, which Arrow writes, from PyArrow 24 on, but does not use when reading.

Filters consist of blocks of eight words, in each of which a value sets one bit; see the Parquet format's BloomFilter.md, and xxHash's specification.
"""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

KNOWN = hasattr(pq.ColumnChunkMetaData, "bloom_filter_length")  # to this PyArrow
FALSE_HITS = 0.05  # of row groups that a filter lets pass though they lack the value: a byte for each row
WORDS = 8  # words of a block
BLOCK = 4 * WORDS  # bytes
SALTS = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
MASK = 2**64 - 1
INTEGERS = {"INT32": 4, "INT64": 8}  # sizes of Parquet's types


def _rotate(value: int, bits: int) -> int:
    value &= MASK
    return (value << bits | value >> (64 - bits)) & MASK


def _round(held: int, lane: int) -> int:
    return _rotate(held + lane * PRIMES[1], 31) * PRIMES[0] & MASK


def xxh64(data: bytes) -> int:
    """Hash bytes as Parquet does, with XXH64 of seed 0."""
    first, second, third, fourth, fifth = PRIMES
    at, found = 0, fifth
    if len(data) >= 32:
        lanes = [first + second, second, 0, -first]
        while at + 32 <= len(data):
            lanes = [_round(held, int.from_bytes(data[at + 8 * k : at + 8 * k + 8], "little")) for k, held in enumerate(lanes)]
            at += 32
        found = sum(_rotate(held, bits) for held, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for held in lanes:
            found = ((found ^ _round(0, held)) * first + fourth) & MASK
    found += len(data)
    while at + 8 <= len(data):
        found = _rotate(found ^ _round(0, int.from_bytes(data[at : at + 8], "little")), 27) * first + fourth
        at += 8
    if at + 4 <= len(data):
        found = _rotate(found ^ int.from_bytes(data[at : at + 4], "little") * first, 23) * second + third
        at += 4
    for byte in data[at:]:
        found = _rotate(found ^ byte * fifth, 11) * first
    found &= MASK
    found = (found ^ found >> 33) * second & MASK
    found = (found ^ found >> 29) * third & MASK
    return found ^ found >> 32


def as_stored(value: pa.Scalar, physical: str) -> bytes | None:
    """Encode a value as the column's filter hashes it."""
    if pa.types.is_integer(value.type) and physical in INTEGERS:
        n_bytes = INTEGERS[physical]
        return (value.as_py() % 2 ** (8 * n_bytes)).to_bytes(n_bytes, "little")
    texts = pa.types.is_string(value.type) or pa.types.is_large_string(value.type)
    return value.as_py().encode() if texts and physical == "BYTE_ARRAY" else None


def _bitset(content: bytes) -> bytes:
    """Return the bytes after the header, whose first field is their length; empty if this is no filter."""
    n_bytes, shift = 0, 0
    for byte in content[1:6] if content[:1] == b"\x15" else b"":
        n_bytes |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    n_bytes >>= 1  # zigzag encoding
    return content[-n_bytes:] if 0 < n_bytes < len(content) and n_bytes % BLOCK == 0 else b""


def may_contain(content: bytes, value: bytes) -> bool:
    """Return whether a filter may contain a value."""
    bits = _bitset(content)
    if not bits:
        return True
    hashed = xxh64(value)
    start, key = ((hashed >> 32) * (len(bits) // BLOCK) >> 32) * BLOCK, hashed & 0xFFFFFFFF
    words = (int.from_bytes(bits[start + 4 * k : start + 4 * k + 4], "little") for k in range(WORDS))
    return all(word >> ((key * salt & 0xFFFFFFFF) >> 27) & 1 for word, salt in zip(words, SALTS, strict=True))


def writing(names: Iterable[str], n_rows: int) -> dict[str, Any]:
    """Return a Parquet writer's options for filters of columns; none, so that looking rows up reads more, where PyArrow cannot write them."""
    return {"bloom_filter_options": {name: {"ndv": max(1, n_rows), "fpp": FALSE_HITS} for name in names}} if KNOWN else {}


def size(chunk: pq.ColumnChunkMetaData) -> int:
    """Return the bytes of a column's filter; 0 without one, or where PyArrow does not tell."""
    return (chunk.bloom_filter_length or 0) if KNOWN else 0
