"""A place for a while is on the same disk or in the same bucket, and nothing of it is left, however it ends."""

from pathlib import Path

import fsspec
import pytest

from leafledger.pipeline.stores import commit
from leafledger.pipeline.stores.parquet_files import list_parquet
from leafledger.pipeline.stores.temporary_folder import temporary_folder


def test_nothing_is_left_beside_a_folder_that_is_not_there(tmp_path):
    """Nor is the folder made, or one above it; no listing of data shows the place meanwhile."""
    source, out = tmp_path / "rows.parquet", tmp_path / "nights" / "march" / "run"
    source.touch()
    with temporary_folder(str(out)) as place:
        assert Path(place).parent == tmp_path
        assert commit.create(f"{place}/deep/rows.parquet", source)
        assert [found.uri for found in list_parquet(str(tmp_path))] == [str(source)]
    assert list(tmp_path.iterdir()) == [source]


def use(out, source):
    with temporary_folder(str(out)) as first, temporary_folder(str(out)) as second:
        assert first != second
        for place in (first, second):
            commit.create(f"{place}/rows", source)
        raise ValueError("mine")


def test_nothing_is_left_of_what_failed(tmp_path):
    """The error is the one that was raised; two places have two names."""
    source = tmp_path / "rows"
    source.touch()
    with pytest.raises(ValueError, match="mine"):
        use(tmp_path / "run", source)
    assert list(tmp_path.iterdir()) == [source]


def test_nothing_is_left_in_a_bucket(bucket, tmp_path):
    """Beside the run's folder."""
    source, filesystem = tmp_path / "rows", fsspec.filesystem("s3")
    source.write_text("rows")
    with temporary_folder(f"{bucket}/explained/run") as place:
        assert place.startswith(f"{bucket}/explained/_trial-")
        commit.create(f"{place}/parts/rows", source)
        filesystem.invalidate_cache()
        assert filesystem.find(bucket) == [f"{place.removeprefix('s3://')}/parts/rows"]
    filesystem.invalidate_cache()
    assert filesystem.find(bucket) == []
