"""Objects of a comparison: the measures come last, and say what the others are."""

import hashlib
import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import compare
from leafledger.pipeline.comparisons.publish import name_beside, publish_tables
from leafledger.pipeline.comparisons.tables import Tables
from leafledger.pipeline.errors import RunConflict, StorageError, UsageError
from leafledger.pipeline.stores import commit


def tables(number=1):
    return Tables(*(pa.table({name: [number]}) for name in ("measures", "features", "rows")))


@pytest.mark.parametrize("out", ["s3://bucket/x", "s3://bucket/x.parquet"])
def test_names_beside(out):
    """With the same suffix, once."""
    assert name_beside(out) == {"features": "s3://bucket/x.features.parquet", "rows": "s3://bucket/x.rows.parquet"}


def test_the_measures_say_what_is_beside_them(tmp_path):
    """Sizes and digests in their metadata, with the facts; readers of one object read on."""
    out = tmp_path / "x.parquet"
    publish_tables(str(out), tables(), {"model": "m"})
    facts = json.loads(pq.read_schema(out).metadata[b"leafledger"])
    assert facts["model"] == "m"
    for name, uri in name_beside(str(out)).items():
        with open(uri, "rb") as file:
            content = file.read()
        assert facts["tables"][name] == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        assert pq.read_table(uri).to_pydict() == {name: [1]}
    assert pq.read_table(out).to_pydict() == {"measures": [1]}


def test_an_interrupted_comparison_has_no_measures_and_goes_on(tmp_path, monkeypatch):
    """Tables that are there already are found; those of another comparison are not replaced."""
    out, create = str(tmp_path / "x.parquet"), commit.create

    def fail(uri, source):
        if uri == out:
            raise StorageError(f"{uri}: cannot write")
        return create(uri, source)

    monkeypatch.setattr(commit, "create", fail)
    with pytest.raises(StorageError):
        publish_tables(out, tables(), {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.features.parquet", "x.rows.parquet"]
    monkeypatch.setattr(commit, "create", create)
    with pytest.raises(RunConflict, match=r"x\.features\.parquet: exists already and differs from this comparison"):
        publish_tables(out, tables(2), {})
    assert not (tmp_path / "x.parquet").exists()
    for _ in range(2):
        publish_tables(out, tables(), {})
    assert pq.read_table(out).to_pydict() == {"measures": [1]}


def test_a_flipped_bit_of_a_page_is_noticed(tmp_path):
    """Pages have checksums, as those of parts have."""
    numbers = pa.table({"x": list(range(1000))})
    publish_tables(str(tmp_path / "x.parquet"), Tables(numbers, numbers, numbers), {})
    column = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0)
    data = bytearray((tmp_path / "x.parquet").read_bytes())
    data[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 1
    (tmp_path / "x.parquet").write_bytes(data)
    with pytest.raises(OSError, match="could not verify page integrity"):
        pq.read_table(tmp_path / "x.parquet", page_checksum_verification=True)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_before_the_work(example, tmp_path, make):
    """As a store that is away it was, at the end, with two tables beside the folder."""
    make(tmp_path / "out")
    with pytest.raises(UsageError, match="out: is a folder, a pipe, a socket or a device, expected the name of a file that is to be written"):
        compare(example.model, example.data, tmp_path / "out", methods=("shapley",), scales=(), scheduler="serial")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
