"""The same run on an object store: same command, same bits; nothing published twice, no secret anywhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import s3fs

from leafledger import check_run, explain
from pipeline.command.cli import main
from pipeline.errors import StorageError
from pipeline.runs import background
from pipeline.stores import commit, storage
from tests.pipeline.runs.test_stages import contents


def upload(folder, uri):
    """Copy a local folder to the bucket."""
    s3fs.S3FileSystem().put(f"{folder}/", f"{uri}/", recursive=True)


def test_a_run_from_and_to_a_bucket(example, bucket, tmp_path, capsys):
    """Model, data and output in a bucket, workers of their own: attributions equal the local run's values; no secret is written or shown."""
    upload(example.data, f"{bucket}/data")
    s3fs.S3FileSystem().put(example.model, f"{bucket}/model.txt")
    assert main(["explain", f"{bucket}/model.txt", f"{bucket}/data", "--out", f"{bucket}/runs/one", "--id", "flight", "--workers", "2"]) == 0
    captured = capsys.readouterr()
    assert check_run(f"{bucket}/runs/one").n_rows == 3000
    explain(example.model, example.data, tmp_path / "local", ids=["flight"], scheduler="serial")
    s3fs.S3FileSystem().get(f"{bucket}/runs/one", str(tmp_path / "remote"), recursive=True)
    local, remote = contents(tmp_path / "local"), contents(tmp_path / "remote")
    assert set(local) == set(remote)
    for name in ("summary/importance.parquet", "summary/importance.json"):
        assert local[name] == remote[name]
    assert not [name for name, data in remote.items() if b"canary" in data]
    assert "canary" not in captured.out + captured.err
    assert main(["explain", f"{bucket}/model.txt", f"{bucket}/data", "--out", f"{bucket}/runs/one", "--id", "flight"]) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_a_background_and_its_tables_in_a_bucket(example, bucket, tmp_path, monkeypatch):
    """Rows are counted by workers that read them from the bucket; tables lie beside the run and found by the next run; values are a local run's."""
    upload(example.data, f"{bucket}/rows")
    given = {"background": f"{bucket}/rows/month=[12]/data.parquet", "precision": "float64"}
    explain(example.model, example.data, f"{bucket}/runs/one", **given, workers=2)
    assert check_run(f"{bucket}/runs/one").n_rows == 3000
    with monkeypatch.context() as patch:
        patch.setattr(background, "measure_background", lambda *_: pytest.fail("counted again"))
        explain(example.model, example.data, f"{bucket}/runs/two", **given, scheduler="serial")
    given["background"] = f"{example.data}/month=[12]/data.parquet"
    explain(example.model, example.data, tmp_path / "runs" / "one", **given, scheduler="serial")
    s3fs.S3FileSystem().get(f"{bucket}/runs", str(tmp_path / "remote"), recursive=True)
    local, one, two = (contents(folder) for folder in (tmp_path / "runs" / "one", tmp_path / "remote" / "one", tmp_path / "remote" / "two"))
    assert one == two
    assert set(local) == set(one)
    assert local["summary/importance.parquet"] == one["summary/importance.parquet"]
    assert len(list((tmp_path / "remote" / "_leafledger").iterdir())) == 1


def test_a_rerun_in_a_bucket_does_what_is_missing(example, bucket):
    """Parts in the bucket are found and kept."""
    out = f"{bucket}/run"
    explain(example.model, example.data, out, scheduler="serial")
    filesystem = s3fs.S3FileSystem()
    filesystem.rm([f"{out}/manifest.json", f"{out}/attributions/part-00003.parquet"])
    made = []
    explain(example.model, example.data, out, scheduler="serial", progress=lambda _: lambda part: made.append(part))
    assert [part.part for part in made if part.seconds] == [3]
    assert check_run(out).parts == 4


@pytest.mark.parametrize("where", ["bucket", "folder"])
def test_an_object_is_created_once(bucket, tmp_path, where):
    """The second writer changes nothing and is told so; what was written appears whole."""
    root = bucket if where == "bucket" else str(tmp_path / "out")
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"first" * 1000)
    second.write_bytes(b"second")
    uri = storage.join(root, "deep", "object")
    assert commit.create(uri, first)
    assert not commit.create(uri, second)
    assert storage.read(uri) == first.read_bytes()
    assert storage.exists(uri)
    commit.remove(storage.join(root, "deep"))
    assert not storage.exists(uri)
    assert storage.read_if_exists(uri) is None


def test_a_conditional_put_wins_once(bucket, tmp_path, monkeypatch):
    """Even where the look before the write sees nothing, the store's own condition lets one writer win."""
    local = tmp_path / "object"
    local.write_bytes(b"bytes")
    monkeypatch.setattr(s3fs.S3FileSystem, "exists", lambda *_, **__: False)
    assert [commit.create(f"{bucket}/object", local) for _ in range(3)] == [True, False, False]


def test_folders_hold_no_traces_of_partial_writes(tmp_path):
    """A failed write leaves neither the object nor a temporary file."""
    with pytest.raises(StorageError, match="cannot write"):
        commit.create(str(tmp_path / "object"), tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_nameless_files_will_do(tmp_path, monkeypatch):
    """The hidden name that a file has there until it is whole is gone afterwards, also where the file was there already."""
    monkeypatch.delattr(os, "O_TMPFILE")
    local = tmp_path / "local"
    local.write_bytes(b"bytes")
    uri = str(tmp_path / "out" / "object")
    assert [commit.create(uri, local) for _ in range(2)] == [True, False]
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"object": b"bytes"}


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="no nameless files on this system")
def test_nothing_is_left_of_a_writer_that_is_killed(tmp_path):
    """SIGKILL in the middle of a file takes the file along."""
    write = "import sys; from pathlib import Path; from pipeline.stores import commit; commit.create(sys.argv[1], Path('/dev/stdin'))"
    with subprocess.Popen([sys.executable, "-c", write, str(tmp_path / "object")], stdin=subprocess.PIPE, env=os.environ) as writer:
        writer.stdin.write(bytes(4 << 20))  # more than a pipe holds: it returns once the file has been begun
        writer.stdin.flush()
        writer.kill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["missing-bucket", "nightly/missing"])
def test_what_is_not_there_is_said(example, bucket, capsys, name):
    """A bucket or a prefix that does not exist is one line."""
    assert main(["explain", example.model, f"s3://{name}", "--out", f"{bucket}/run"]) == 1
    assert re.fullmatch(rf"leafledger: s3://{name}: cannot list: .*\n", capsys.readouterr().err)


def test_a_bucket_that_is_not_there_fails_before_the_work(example, bucket, capsys):
    """An output that cannot be written fails where its store is tried."""
    assert main(["explain", example.model, example.data, "--out", "s3://missing-bucket/run", "--scheduler", "serial"]) == 1
    assert "s3://missing-bucket/run/_tables: cannot write" in capsys.readouterr().err


def test_listing_passes_over_hidden_names(tmp_path):
    """Files and folders that start with ``_`` or ``.`` are other programs' business."""
    for name in ("a.parquet", "month=1/b.parquet", "_tables/c.parquet", ".d.parquet", "e.csv", "month=1/_f.pq"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    assert [Path(found.uri).name for found in storage.list_parquet(str(tmp_path))] == ["a.parquet", "b.parquet"]


@pytest.mark.parametrize(
    ("uri", "place"),
    [("s3://b/runs/one", "s3://b/runs/kept"), ("s3://b/one", "s3://b/kept"), ("s3://b", "s3://b/kept"), ("/a/b", "/a/kept"), ("/a", "/a/kept")],
)
def test_what_is_beside_a_root_is_in_it(uri, place):
    """There is nothing next to a bucket or to a folder of the file system's root that a run may write."""
    assert storage.beside(uri, "kept") == place
