"""Tables are found by the log in their folder; what has none is no table."""

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.tables.reading import read_snapshot


def test_what_is_no_table(example, tmp_path):
    """A folder, a file, a glob, nothing; a folder whose name ends as a version's does."""
    versioned = shutil.copytree(example.data, tmp_path / "data@v1")
    for uri in (
        example.data,
        f"{example.data}/month=1/data.parquet",
        f"{example.data}/*",
        f"{tmp_path}/nothing",
        str(versioned),
        f"{tmp_path}/nothing@v1",
    ):
        assert read_snapshot(uri) is None


def test_versions_of_a_table(tmp_path):
    """The newest, or the one that is named."""
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"x": [1.0]}))
    write_deltalake(table, pa.table({"x": [2.0]}), mode="append")
    DeltaTable(table).delete("x = 1.0")
    assert [len(read_snapshot(uri).files) for uri in (table, f"{table}@v2", f"{table}@v1", f"{table}@v0")] == [1, 1, 2, 1]
    assert read_snapshot(table).uri == f"{table}@v2"
    assert read_snapshot(f"{table}@v0").uri == f"{table}@v0"


def test_iceberg_is_told_by_its_metadata(tmp_path):
    """A folder with metadata of its own is a table, of which its catalog knows what counts."""
    (tmp_path / "metadata").mkdir()
    assert read_snapshot(str(tmp_path)) is None
    (tmp_path / "metadata" / "00001-0123.metadata.json").write_text("{}")
    with pytest.raises(UsageError, match="its catalog alone knows what counts"):
        read_snapshot(str(tmp_path))
