"""Google's and Azure's stores, by their emulators: created once, replaced by who knows what was there, refused to whoever does not."""

from pathlib import Path

import fsspec
import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain
from leafledger.pipeline.errors import NotThere
from leafledger.pipeline.stores import commit, storage
from leafledger.pipeline.stores.open_store import open_store
from leafledger.pipeline.stores.parquet_files import list_parquet
from tests.pipeline.stores.emulators import CLOUDS


@pytest.fixture(params=["google", "azure"])
def place(request, monkeypatch):
    """An empty bucket's URI."""
    uri = CLOUDS[request.param](request, monkeypatch)
    filesystem, path = fsspec.core.url_to_fs(uri)
    if filesystem.exists(path):
        filesystem.rm(path, recursive=True)
    filesystem.mkdir(path)
    yield uri
    type(filesystem).clear_instance_cache()


def test_objects_are_created_once(place, tmp_path):
    """The second is refused by the store itself, and what the first wrote stays."""
    assert commit.creates_once(place)
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "two").write_bytes(b"two")
    store, path = open_store(f"{place}/object")
    assert [store._put(path, tmp_path / name) for name in ("one", "two")] == [True, False]
    assert storage.read(f"{place}/object") == b"one"


def test_an_object_moves_for_who_has_seen_it(place):
    """Who is overtaken between look and write is refused, and looks again."""
    assert commit.swaps(f"{place}/latest.json")
    seen = []

    def append(held):
        seen.append(held)
        if len(seen) == 1:  # somebody else, in between
            commit.update(f"{place}/latest.json", lambda other: (other or b"") + b"theirs ")
        return (held or b"") + b"ours"

    commit.update(f"{place}/latest.json", append)
    assert seen == [None, b"theirs "]
    assert storage.read(f"{place}/latest.json") == b"theirs ours"
    assert [held.name for held in [*fsspec.core.url_to_fs(place)[0].glob(f"{place}/_probe*")]] == []


def test_a_name_that_is_a_pattern_is_removed_alone(place):
    """And one that is none, with all below it; where nothing is, nothing is done."""
    filesystem, path = fsspec.core.url_to_fs(place)
    every = {f"{run}/2013-01-01/{name}" for run in ("nights*", "nights1", "nights2") for name in ("manifest.json", "attributions/part-00000.parquet")}
    for name in every:
        filesystem.pipe_file(f"{path}/{name}", b"x")
    for removed in ("nights*/2013-01-01/manifest.json", "nights*", "nights1/2013-01-01/attributions", "nights1", "nights2"):
        every = {name for name in every if not f"{name}/".startswith(f"{removed}/")}
        for _ in range(2):
            commit.remove(f"{place}/{removed}")
            filesystem.invalidate_cache()
            assert {name[len(path) + 1 :] for name in filesystem.find(path)} == every


def test_a_run_is_published_and_found(place, example):
    """As to any store, without a word of a single writer; once more, nothing is to be done."""
    explain(example.model, example.data, f"{place}/run", latest=f"{place}/latest.json", date="2026-01-02", scheduler="serial")
    assert check_run(f"{place}/run", deep=True).n_rows == 3000
    before = storage.stat(f"{place}/run/manifest.json").etag
    explain(example.model, example.data, f"{place}/run", latest=f"{place}/latest.json", date="2026-01-02", scheduler="serial")
    assert storage.stat(f"{place}/run/manifest.json").etag == before


def test_data_there_are_listed_and_read(place, example, tmp_path):
    """A folder, globs and a file, by the store's own marks; a run of them is that of the same files here."""
    filesystem, path = fsspec.core.url_to_fs(f"{place}/data")
    files = sorted(each.relative_to(example.data) for each in Path(example.data).rglob("*.parquet"))
    for each in files:
        filesystem.pipe_file(f"{path}/{each}", (Path(example.data) / each).read_bytes())
    for below in ("", "/*", "/month=*/*.parquet", "/**/*.parquet"):
        found = list_parquet(f"{place}/data{below}")
        assert [each.uri for each in found] == [f"{place}/data/{each}" for each in files]
        assert found == [storage.stat(each.uri) for each in found]
        assert all(each.proven for each in found)
    assert list_parquet(f"{place}/data/{files[0]}") == found[:1]
    with pytest.raises(NotThere):
        list_parquet(f"{place}/nowhere")
    explain(example.model, f"{place}/data", str(tmp_path / "there"), scheduler="serial")
    explain(example.model, example.data, str(tmp_path / "here"), scheduler="serial")
    there, here = (pq.read_table(tmp_path / run / "attributions") for run in ("there", "here"))
    assert there.equals(here)
