"""Bloom filters that Arrow wrote know every value that is there, and hardly any other; the hash is xxHash's own on its vectors."""

import io
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.runs.lookup.bloom_filter import KNOWN, as_stored, may_contain, writing, xxh64

RNG = np.random.default_rng(1)
N = 500


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash_is_xxhash_s(data, expected):
    assert xxh64(data) == expected


def write(values):
    """The filter of a column, its type in Parquet, and the column."""
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, pa.schema([("x", values.type)]), **writing(["x"], N)) as writer:
        writer.write_table(pa.table({"x": values}))
    chunk = pq.read_metadata(buffer).row_group(0).column(0)
    start = chunk.bloom_filter_offset
    return buffer.getvalue()[start : start + chunk.bloom_filter_length], chunk.physical_type


@pytest.mark.skipif(not KNOWN, reason="this PyArrow writes none")
@pytest.mark.parametrize(
    "values",
    [
        *(pa.array(RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, N, dtype=kind)) for kind in ("int64", "uint64", "int32", "uint32")),
        pa.array(RNG.integers(-100, 100, N), pa.int8()),
        pa.array([uuid.UUID(bytes=RNG.bytes(16)).hex for _ in range(N)]),
        pa.array(["Ä" * int(n) + str(n) for n in RNG.integers(0, 90, N)]),
        pa.array([f"{n}" for n in RNG.integers(0, 10**9, N)], pa.large_string()),
    ],
    ids=lambda values: str(values.type),
)
def test_what_is_there_is_known_and_little_else(values):
    """Of texts of all lengths, and integers of all widths and signs."""
    content, physical = write(values)
    assert all(may_contain(content, as_stored(value, physical)) for value in values)
    others = [as_stored(value, physical) for value in pa.array(RNG.integers(10**6, 10**7, 2000)).cast(values.type, safe=False)]
    held = {as_stored(value, physical) for value in values}
    strange = [other for other in others if other not in held]
    assert sum(may_contain(content, other) for other in strange) < 0.12 * len(strange) or len(strange) < 100


def test_what_is_no_filter_rules_nothing_out():
    for content in (b"", b"\x15", b"\x15\x40", b"\x15\xff\xff\xff\xff\xff" * 9, bytes(100)):
        assert may_contain(content, b"x")


def test_other_types_are_not_asked_for():
    assert as_stored(pa.scalar(1.5), "DOUBLE") is None
    assert as_stored(pa.scalar(b"x"), "BYTE_ARRAY") is None
    assert as_stored(pa.scalar(7, pa.int64()), "FIXED_LEN_BYTE_ARRAY") is None
