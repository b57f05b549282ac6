"""The same run on an object store: same command, same bits; nothing published twice, no secret anywhere."""

import pytest
import s3fs

from leafledger import check_run, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.methods import background_counts
from leafledger.pipeline.stores import commit, storage
from tests.pipeline.running import contents

pytestmark = pytest.mark.usefixtures("bucket", "forked")


def upload(folder, uri):
    """Copy a local folder to the bucket."""
    s3fs.S3FileSystem().put(f"{folder}/", f"{uri}/", recursive=True)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_background_and_its_tables_in_a_bucket(example, bucket, tmp_path, monkeypatch):
    """Rows are counted by workers that read them from the bucket; tables lie beside the run and found by the next run; values are a local run's."""
    upload(example.data, f"{bucket}/rows")
    given = {"background": f"{bucket}/rows/month=[12]/data.parquet", "precision": "float64"}
    explain(example.model, example.data, f"{bucket}/runs/one", **given, workers=2)
    assert check_run(f"{bucket}/runs/one").n_rows == 3000
    with monkeypatch.context() as patch:
        patch.setattr(background_counts, "measure_background", lambda *_: pytest.fail("counted again"))
        explain(example.model, example.data, f"{bucket}/runs/two", **given, scheduler="serial")
    given["background"] = f"{example.data}/month=[12]/data.parquet"
    explain(example.model, example.data, tmp_path / "runs" / "one", **given, scheduler="serial")
    s3fs.S3FileSystem().get(f"{bucket}/runs", str(tmp_path / "remote"), recursive=True)
    local, one, two = (contents(folder) for folder in (tmp_path / "runs" / "one", tmp_path / "remote" / "one", tmp_path / "remote" / "two"))
    assert one == two
    assert set(local) == set(one)
    assert local["summary/importance.parquet"] == one["summary/importance.parquet"]
    assert len(list((tmp_path / "remote" / "_leafledger").iterdir())) == 1


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_not_there_is_said(example, bucket, capsys):
    """A prefix below which nothing is yet may come; a bucket that does not exist does not."""
    assert main(["explain", example.model, "s3://nightly/missing", "--out", f"{bucket}/run"]) == 6
    assert capsys.readouterr().err == "leafledger: s3://nightly/missing: cannot list: no such file or object\n"
    for data, says in (("s3://lake", "cannot list"), ("s3://lake/night.parquet", "cannot list"), ("s3://lake/*/a.parquet", "cannot list")):
        assert main(["explain", example.model, data, "--out", f"{bucket}/run"]) == 2
        assert capsys.readouterr().err == f"leafledger: {data}: {says}: bucket lake does not exist\n"
    assert main(["explain", "s3://lake/model.txt", example.data, "--out", f"{bucket}/run"]) == 2
    assert capsys.readouterr().err == "leafledger: s3://lake/model.txt: cannot read: bucket lake does not exist\n"


def test_a_bucket_that_is_not_there_fails_before_the_work(example, bucket, capsys):
    """An output that cannot be written fails where its store is tried."""
    assert main(["explain", example.model, example.data, "--out", "s3://lake/runs/a", "--scheduler", "serial"]) == 2
    assert capsys.readouterr().err == "leafledger: s3://lake/runs/a: cannot write: bucket lake does not exist\n"


@pytest.mark.slow
def test_no_list_is_asked_for_where_a_name_is_known(bucket, tmp_path, monkeypatch):
    """They cost more than looks and reads: an object is created in two requests, read in one, and neither needs more where there is none."""
    asked, call = [], s3fs.S3FileSystem._call_s3

    async def counted(self, method, *given, **named):
        asked.append(method)
        return await call(self, method, *given, **named)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    (tmp_path / "made").write_bytes(b"made")
    assert storage.read_if_exists(f"{bucket}/a/b") is None
    assert commit.create(f"{bucket}/a/b", tmp_path / "made")
    assert not commit.create(f"{bucket}/a/b", tmp_path / "made")
    assert storage.read(f"{bucket}/a/b") == b"made"
    assert commit.create(f"{bucket}/a", tmp_path / "made")  # beside what begins with its name
    assert commit.copy(f"{bucket}/a/b", f"{bucket}/a/c")
    created = ["head_object", "put_object"]
    assert asked == ["get_object", *created, "head_object", "get_object", *created, *["head_object"] * 3, "copy_object"]
