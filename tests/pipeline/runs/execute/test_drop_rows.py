"""A part without some rows is the same part but for them: types, encodings, filters and footer; and nothing of them is left in its bytes."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.runs.execute.drop_rows import drop_rows
from leafledger.pipeline.runs.lookup import bloom_filter

N, GONE = 1000, (0, 3, 4, 599, 600, 999)


@pytest.fixture
def part(tmp_path):
    """Two row groups with a column of every kind that parts have."""
    names = pa.array([f"person-{i:05d}" for i in range(N)])
    table = pa.table(
        {
            "id": np.arange(N),
            "name": names,
            "view": names.cast(pa.string_view()),
            "kind": names.dictionary_encode().cast(pa.dictionary(pa.int16(), pa.string())),
            "phi": np.random.default_rng(1).normal(size=N).astype(np.float32),
            "half": np.arange(N).astype(np.float16),
            "top": [[{"feature": "a", "value": f"person-{i:05d}"}] for i in range(N)],
        }
    )
    with pq.ParquetWriter(
        tmp_path / "part.parquet",
        table.schema,
        compression="zstd",
        use_dictionary=["kind", "top.list.element.feature"],
        use_byte_stream_split=["phi"],
        write_page_checksum=True,
        store_schema=True,
        **bloom_filter.writing(["id"], N),
    ) as writer:
        writer.write_table(table.slice(0, 600), row_group_size=600)
        writer.write_table(table.slice(600), row_group_size=400)
        writer.add_key_value_metadata({"leafledger": json.dumps({"stored": N, "residual": 1.1e-16, "states": {"importance": "x"}})})
    return tmp_path / "part.parquet", table


def test_all_other_rows_stay(part, tmp_path):
    path, table = part
    made = drop_rows(path, GONE, tmp_path / "made.parquet")
    left = pq.read_table(made)
    kept = [i for i in range(N) if i not in GONE]
    assert left.schema.equals(table.schema)
    assert left.to_pylist() == [row for i, row in enumerate(table.to_pylist()) if i in set(kept)]
    found, before = pq.read_metadata(made), pq.read_metadata(path)
    assert [found.row_group(g).num_rows for g in range(2)] == [596, 398]
    assert json.loads(found.metadata[b"leafledger"]) == {"stored": N - 6, "residual": 1.1e-16, "states": {"importance": "x"}}
    for c in range(before.num_columns):
        mine, theirs = found.row_group(0).column(c), before.row_group(0).column(c)
        assert {*mine.encodings} == {*theirs.encodings}
        assert (mine.compression, bool(bloom_filter.size(mine))) == (theirs.compression, bool(bloom_filter.size(theirs)))


def test_nothing_of_them_is_left(part, tmp_path):
    """In pages, dictionaries and statistics, of which the first and the last of a sorted column name a person."""
    path, _ = part
    made = drop_rows(path, GONE, tmp_path / "made.parquet")
    pq.write_table(pq.read_table(made), tmp_path / "plain.parquet", compression="none")
    for data in (made.read_bytes(), (tmp_path / "plain.parquet").read_bytes()):
        assert not [i for i in GONE if f"person-{i:05d}".encode() in data]
    assert b"person-00001" in (tmp_path / "plain.parquet").read_bytes()
    statistics = pq.read_metadata(made).row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (1, 598)


def test_the_same_rows_make_the_same_bytes(part, tmp_path):
    """Whatever order they are named in, so that who goes on finds what was written."""
    path, _ = part
    first, second = (drop_rows(path, rows, tmp_path / f"{k}.parquet") for k, rows in enumerate((GONE, GONE[::-1])))
    assert first.read_bytes() == second.read_bytes()


def test_a_part_may_lose_all_rows(part, tmp_path):
    """It keeps its columns and its states."""
    path, table = part
    made = drop_rows(path, range(N), tmp_path / "made.parquet")
    assert (pq.read_metadata(made).num_rows, pq.read_schema(made).equals(table.schema)) == (0, True)
    assert json.loads(pq.read_metadata(made).metadata[b"leafledger"])["stored"] == 0
