"""Texts are decoded as the file has them, and never more of them at a time than fits."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafledger import explain
from leafledger.pipeline.dataset.files import texts
from leafledger.pipeline.dataset.files.texts import FEW_ROWS, decode, find_texts
from tests.pipeline.running import attributions

LONG = "é" * 10_000  # of two bytes each


def read(path, slice_rows, columns=None):
    """Batches as rows of an item are read."""
    parquet = pq.ParquetFile(path)
    dictionaries, others = find_texts(parquet, parquet.schema_arrow, range(parquet.num_row_groups), parquet.schema_arrow.names)
    encoded, n_rows = pq.ParquetFile(path, read_dictionary=dictionaries), min(slice_rows, FEW_ROWS) if others else slice_rows
    return list(decode(encoded.iter_batches(n_rows, columns=columns, use_threads=False), parquet.schema_arrow, slice_rows))


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), group=st.integers(1, 40), slice_rows=st.integers(1, 60), limit=st.integers(1, 400))
@pytest.mark.slow
def test_rows_are_those_of_the_file(tmp_path, data, group, slice_rows, limit):
    """Whatever is cut where: types, order, nulls and texts of no length."""
    words = data.draw(st.lists(st.one_of(st.none(), st.sampled_from(["", "a", "b" * 30, "é" * 50])), min_size=1, max_size=100))
    binary = [None if word is None else word.encode() for word in words]
    columns = {
        "s": pa.array(words, pa.string()),
        "large": pa.array(words, pa.large_string()),
        "view": pa.array(words, pa.string_view()),
        "binary": pa.array(binary, pa.binary()),
        "i": np.arange(len(words)),
        "list": pa.array([[word] for word in words], pa.list_(pa.string())),
    }
    if data.draw(st.booleans()):
        columns["d"] = pa.array(words, pa.string()).dictionary_encode()
    table = pa.table(columns)
    stored = data.draw(st.sampled_from(["dictionaries", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"]))
    differing = dict.fromkeys(data.draw(st.lists(st.sampled_from(["s", "large", "view", "binary"]))), stored) if stored != "dictionaries" else {}
    plain = {"use_dictionary": ["d"], "column_encoding": differing} if differing else {}
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=group, **plain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "TEXT_BYTES", limit)
        batches = read(tmp_path / "t.parquet", slice_rows)
    assert all(0 < batch.num_rows <= slice_rows for batch in batches)
    found = pa.Table.from_batches(batches)
    assert found.schema.types == table.schema.types
    assert found.to_pylist() == table.to_pylist()


def test_slices_do_not_end_with_row_groups(tmp_path):
    """As without texts: what a run writes does not depend on how its input is cut."""
    pq.write_table(pa.table({"s": [f"{i % 9}" for i in range(100)]}), tmp_path / "t.parquet", row_group_size=7)
    assert [batch.num_rows for batch in read(tmp_path / "t.parquet", 40)] == [40, 40, 20]


@pytest.mark.slow
def test_a_value_that_stands_once_does_not_fill_the_memory(tmp_path, monkeypatch):
    """A file of some kilobytes whose texts would take 100 MB: at most a megabyte is decoded at a time."""
    monkeypatch.setattr(texts, "TEXT_BYTES", 1 << 20)
    column = pa.DictionaryArray.from_arrays(np.zeros(5000, np.int32), pa.array([LONG]))
    pq.write_table(pa.table({"s": column, "x": np.arange(5000)}), tmp_path / "t.parquet", store_schema=False)
    assert (tmp_path / "t.parquet").stat().st_size < 100_000
    batches = read(tmp_path / "t.parquet", 5000)
    assert sum(batch.num_rows for batch in batches) == 5000
    assert max(batch.num_rows for batch in batches) == (1 << 20) // 20_000
    assert all(batch.column("s")[-1].as_py() == LONG for batch in batches)


def test_texts_that_are_stored_as_differences_are_read(tmp_path, monkeypatch):
    """By writers of Parquet's second version; a few rows at a time, and no more of them together than fit."""
    monkeypatch.setattr(texts, "TEXT_BYTES", 1 << 20)
    table = pa.table({"s": [LONG] * 1000, "t": [f"{i}" for i in range(1000)]})
    for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"):
        pq.write_table(table, tmp_path / "t.parquet", use_dictionary=["t"], column_encoding={"s": encoding})
        parquet = pq.ParquetFile(tmp_path / "t.parquet")
        assert find_texts(parquet, parquet.schema_arrow, [0], ["s", "t"]) == (["t"], ["s"])
        batches = read(tmp_path / "t.parquet", 1000)
        assert pa.Table.from_batches(batches).equals(table)
        assert max(batch.num_rows for batch in batches) == (1 << 20) // 20_000


def test_a_run_has_texts_that_are_stored_as_differences(example, tmp_path):
    """Its work items were rejected, one and all."""
    table = pa.Table.from_pandas(example.frame[:600], preserve_index=False).append_column("s", pa.array([f"row {i}" for i in range(600)]))
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False, column_encoding={"s": "DELTA_BYTE_ARRAY"})
    explain(example.model, tmp_path / "t.parquet", tmp_path / "run", ids="s", scheduler="serial")
    assert attributions(tmp_path / "run")["s"].to_pylist() == table["s"].to_pylist()


def test_a_row_is_never_cut(tmp_path, monkeypatch):
    """However long its texts are."""
    monkeypatch.setattr(texts, "TEXT_BYTES", 10)
    pq.write_table(pa.table({"s": [LONG, "a", LONG]}), tmp_path / "t.parquet")
    assert [batch.column("s").to_pylist() for batch in read(tmp_path / "t.parquet", 9)] == [[LONG], ["a"], [LONG]]


def test_as_many_bytes_are_decoded_together_as_may_be(tmp_path, monkeypatch):
    """No byte more and none less, whether row groups are larger or smaller; missing texts take none."""
    monkeypatch.setattr(texts, "TEXT_BYTES", 4)
    table = pa.table({"s": ["a", None, "b", "c", "d"] * 2})
    for group in (1, 5, 6, 10):
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=group)
        assert [batch.num_rows for batch in read(tmp_path / "t.parquet", 99)] == [5, 5]
