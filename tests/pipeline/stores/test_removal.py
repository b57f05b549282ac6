"""What is deleted is what a name says, all of it, and nothing beside it; what a store refuses to delete is said."""

import os

import pytest
import s3fs
from fsspec.implementations.memory import MemoryFileSystem

from leafledger.pipeline.errors import StorageError
from leafledger.pipeline.stores import commit
from leafledger.pipeline.stores.dialects import s3
from leafledger.pipeline.stores.open_store import open_filesystem
from tests.pipeline.stores.placing import put

PATTERNS = ("nights[12]", "nights?", "nights*", "night[!x]1")  # each a pattern for nights1


def keys(root):
    """Names of all that there is below a place, by the store's own client."""
    filesystem, path = open_filesystem(root)
    filesystem.invalidate_cache()
    return {name[len(path) + 1 :] for name in filesystem.find(path)}


@pytest.fixture
def memory(monkeypatch):
    """A file system whose own ``rm`` takes patterns, and whose folders are only names."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    return "memory://root"


@pytest.mark.parametrize("where", ["bucket", "tmp_path", "memory"])
@pytest.mark.parametrize("name", [*PATTERNS, "nights"])
@pytest.mark.slow
def test_a_name_is_no_pattern(request, where, name):
    """Runs whose names it would find as a pattern keep all they have, whether a file of it is removed or all."""
    root = str(request.getfixturevalue(where))
    runs = [f"{folder}/2013-01-01" for folder in (name, "nights1", "nights2")]
    every = {f"{run}/{file}" for run in runs for file in ("manifest.json", "plan.json", "attributions/part-00000.parquet")}
    filesystem, path = open_filesystem(root)
    for each in every:
        filesystem.makedirs(f"{path}/{each}".rpartition("/")[0], exist_ok=True)
        filesystem.pipe_file(f"{path}/{each}", b"x")
    assert keys(root) == every
    commit.remove(f"{root}/{runs[0]}/manifest.json")
    assert keys(root) == every - {f"{runs[0]}/manifest.json"}
    for _ in range(2):
        commit.remove(f"{root}/{runs[0]}")
        assert keys(root) == {each for each in every if not each.startswith(f"{name}/")}


def test_what_a_bucket_refuses_to_delete_is_said(bucket, monkeypatch):
    """In its answer of one object among others, whose status is 200."""
    for name in ("a", "b", "c"):
        put(f"{bucket}/run/{name}")
    call = s3fs.S3FileSystem._call_s3

    async def refuse(self, method, *given, **named):
        if method != "delete_objects":
            return await call(self, method, *given, **named)
        asked = {each["Key"] for each in named["Delete"]["Objects"]}
        named["Delete"]["Objects"] = [{"Key": key} for key in sorted(asked - {"run/b"})]
        refused = [{"Key": "run/b", "Code": "AccessDenied", "Message": "Access Denied"}]
        return await call(self, method, *given, **named) | {"Errors": refused}

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", refuse)
    with pytest.raises(StorageError, match=rf"^{bucket}/run: cannot delete: run/b: Access Denied$"):
        commit.remove(f"{bucket}/run")
    monkeypatch.undo()
    assert keys(f"{bucket}/run") == {"b"}


def test_more_objects_than_one_request_takes(bucket, monkeypatch):
    """By several; so is an empty object that shows a folder, as consoles make them."""
    monkeypatch.setattr(s3, "AT_ONCE", 2)
    client, name = s3fs.S3FileSystem(), bucket.removeprefix("s3://")
    for key in ("run/", "run/a", "run/b/", "run/b/c", "run/b/d", "run2"):
        client.call_s3("put_object", Bucket=name, Key=key, Body=b"")
    commit.remove(f"{bucket}/run")
    assert [each["Key"] for each in client.call_s3("list_objects_v2", Bucket=name)["Contents"]] == ["run2"]


def test_what_others_wrote_meanwhile_goes_too(bucket):
    """A client's list of a folder may be older; afterwards it is of what is there."""
    put(f"{bucket}/run/a")
    client, name = open_filesystem(bucket)
    assert client.ls(f"{name}/run") == [f"{name}/run/a"]
    client.call_s3("put_object", Bucket=name, Key="run/b", Body=b"")
    commit.remove(f"{bucket}/run")
    assert "Contents" not in client.call_s3("list_objects_v2", Bucket=name)
    assert not client.exists(f"{name}/run/a")


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    """Be it to a folder, to a file, or to nowhere."""
    put(f"{tmp_path}/there/file")
    for name, target in {"a": tmp_path / "there", "b": tmp_path / "there/file", "c": tmp_path / "nowhere"}.items():
        (tmp_path / name).symlink_to(target)
        commit.remove(f"{tmp_path}/{name}")
    assert keys(str(tmp_path)) == {"there/file"}
    assert sorted(os.listdir(tmp_path)) == ["there"]


def test_the_folder_that_one_works_in_is_removed_too(tmp_path, monkeypatch):
    """Who prunes from within an old run asks for no less."""
    put(f"{tmp_path}/run/file")
    monkeypatch.chdir(tmp_path / "run")
    commit.remove(str(tmp_path / "run"))
    assert os.listdir(tmp_path) == []
