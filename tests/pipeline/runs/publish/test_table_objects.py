"""A table as objects that are created once: the same table is found whoever wrote it, another one is told."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.runs.publish.table_objects import create_rows, create_table, write_rows

TABLE = pa.table({"feature": ["a", "b"], "mean": [0.5, -1.25]}).replace_schema_metadata({b"leafledger": b"{}"})


@pytest.fixture
def local(tmp_path):
    return tmp_path / "local"


def test_what_is_created_is_found(tmp_path, local):
    """With the very bytes that the object has."""
    uri = tmp_path / "out" / "x.parquet"
    for _ in range(2):
        assert create_table(str(uri), TABLE, local)
        assert local.read_bytes() == uri.read_bytes()
    assert pq.read_table(uri).equals(TABLE, check_metadata=True)


@pytest.mark.parametrize("other", [{"compression": "snappy"}, {"use_dictionary": False}, {"version": "1.0"}])
def test_the_same_table_in_other_bytes_is_found(tmp_path, local, other):
    """As another version of pyarrow would write it; what is there stays, and is what is listed."""
    create_table(str(tmp_path / "mine.parquet"), TABLE, local)
    uri = tmp_path / "x.parquet"
    pq.write_table(TABLE, uri, **other)
    before = uri.read_bytes()
    assert before != local.read_bytes()
    assert create_table(str(uri), TABLE, local)
    assert uri.read_bytes() == before == local.read_bytes()


def test_another_table_is_told(tmp_path, local):
    """Other rows, other metadata, a flipped bit, or no table; it stays."""
    uri = tmp_path / "x.parquet"
    pq.write_table(TABLE, uri, write_page_checksum=True)
    damaged = bytearray(uri.read_bytes())
    column = pq.read_metadata(uri).row_group(0).column(0)
    damaged[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1
    for write in (
        lambda: pq.write_table(TABLE.slice(1), uri),
        lambda: pq.write_table(TABLE.replace_schema_metadata(None), uri),
        lambda: uri.write_bytes(damaged),
        lambda: uri.write_bytes(b"PAR1"),
    ):
        write()
        before = uri.read_bytes()
        assert not create_table(str(uri), TABLE, local)
        assert uri.read_bytes() == before


def test_rows_as_json(tmp_path, local):
    """A row to a line; found again, and other bytes are told."""
    uri = tmp_path / "x.json"
    for _ in range(2):
        assert create_rows(str(uri), TABLE, local)
    assert local.read_bytes() == uri.read_bytes()
    assert json.loads(uri.read_text()) == TABLE.to_pylist()
    assert uri.read_text() == "".join(write_rows(TABLE))
    assert uri.read_text().count("\n") == 4
    assert not create_rows(str(uri), TABLE.slice(1), local)
