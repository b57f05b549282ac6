"""What is made of a run afterwards: listed beside the manifest, which stays as it was, told from what is of another run, and checked."""

import hashlib
import json

import pytest

from leafledger import check_run, explain
from leafledger.pipeline.errors import InvalidRun, RunConflict, StorageError
from leafledger.pipeline.runs.records import derived as after
from leafledger.pipeline.runs.records.derived import TABLE, After, check_after, read_after, read_derived, remove_after, write_derived
from leafledger.pipeline.stores import commit

ME, OTHER = "a" * 64, "b" * 64


def test_what_is_made_is_listed_and_read_back(tmp_path):
    """One record for what is made at different times; what is made again takes the place of what was there."""
    run = str(tmp_path)
    assert read_after(run, ME) == After(ME, ())
    check_after(run, ME)
    write_derived(run, ME, {"after/x": b"1", "after/y": b""})
    write_derived(run, ME, {"after/x": b"22"})
    write_derived(run, ME, {"after/x": b"22"})
    assert [(entry["uri"], entry["size"]) for entry in read_after(run, ME).objects] == [("after/x", 2), ("after/y", 0)]
    assert [read_derived(run, ME, f"after/{name}") for name in "xyz"] == [b"22", b"", None]
    check_after(run, ME)


def test_what_is_of_another_run_is_not_read(tmp_path):
    """It is not listed, a check refuses it, and what is made then starts a new record."""
    run = str(tmp_path)
    write_derived(run, OTHER, {"after/x": b"1", "after/y": b"1"})
    assert read_derived(run, ME, "after/x") is None
    with pytest.raises(InvalidRun, match=r"after\.json: is of a manifest with SHA-256 bbbbbbbbbbbb, the run's has aaaaaaaaaaaa"):
        check_after(run, ME)
    write_derived(run, ME, {"after/x": b"2"})
    assert [entry["uri"] for entry in read_after(run, ME).objects] == ["after/x"]


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"2"), lambda path: path.write_bytes(b"123")])
def test_other_bytes_are_not_read(tmp_path, damage):
    """Missing, changed or longer: made again, or refused by a check."""
    write_derived(str(tmp_path), ME, {"after/x": b"1"})
    damage(tmp_path / "after" / "x")
    assert read_derived(str(tmp_path), ME, "after/x") is None
    with pytest.raises(InvalidRun, match="after/x: is missing, or is not what"):
        check_after(str(tmp_path), ME)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"manifest": 1, "objects": []}', json.dumps({"manifest": ME, "objects": [{"uri": "../x", "size": 1, "sha256": ""}]})]
)
def test_a_record_that_is_none_is_refused(tmp_path, text):
    """In one line, whoever wrote it."""
    (tmp_path / "after.json").write_text(text)
    for use in (
        lambda: read_derived(str(tmp_path), ME, "x"),
        lambda: write_derived(str(tmp_path), ME, {"after/x": b""}),
        lambda: check_after(str(tmp_path), ME),
    ):
        with pytest.raises(InvalidRun, match=r"after\.json: not a record of what was made of a run"):
            use()


def test_a_check_of_a_run_verifies_it(example, tmp_path):
    """A sound run with sound objects is sound; its manifest has not changed, and a rerun finds it finished."""
    run = tmp_path / "run"
    manifest = explain(example.model, example.data, run, scheduler="serial")
    write_derived(str(run), manifest.sha256, {"after/x": b"1"})
    assert check_run(run).manifest == manifest.sha256
    assert explain(example.model, example.data, run, scheduler="serial") == manifest
    (run / "after" / "x").write_bytes(b"2")
    with pytest.raises(InvalidRun, match="after/x: is missing"):
        check_run(run)


def test_a_place_that_is_only_read_is_a_storage_error(tmp_path, monkeypatch):
    """As a web server is: one line, no traceback."""

    def refuse(*arguments, **options):
        raise NotImplementedError

    monkeypatch.setattr(commit, "update", refuse)
    with pytest.raises(StorageError, match="after/x: cannot write: nothing can be written there"):
        write_derived(str(tmp_path), ME, {"after/x": b"1"})


def test_objects_of_a_store(bucket):
    """On S3, whose conditions hold, and of another file system."""
    for run in (f"{bucket}/run", "memory://after/run"):
        write_derived(run, ME, {"after/x": b"1"})
        write_derived(run, ME, {"after/y": b"2"})
        assert [read_derived(run, ME, name) for name in ("after/x", "after/y")] == [b"1", b"2"]


def test_what_was_made_of_a_replaced_run_goes(tmp_path):
    """But for the table that the folder's run is in, which whoever took the place has written or removed by then."""
    run = str(tmp_path)
    write_derived(run, OTHER, {"after/x": b"1", TABLE: b"2"})
    remove_after(run, OTHER)
    assert read_derived(run, OTHER, "after/x") == b"1"
    remove_after(run, ME)
    assert sorted(path.name for path in tmp_path.rglob("*.json")) == ["table.json"]
    assert not (tmp_path / "after" / "x").exists()


@pytest.mark.parametrize("late", [False, True])
def test_what_is_made_of_a_run_that_was_replaced_meanwhile_is_not_kept(tmp_path, monkeypatch, late):
    """What was made of the one that took its place stays, and so does its record; also where that came while objects were written."""
    run, text = str(tmp_path), b"{}"
    mine, manifest = hashlib.sha256(text).hexdigest(), tmp_path / "manifest.json"

    def replace():
        manifest.write_bytes(text)
        write_derived(run, mine, {"after/x": b"1", "after/y": b"1"})

    def write_late(uri, data, write=after.write_object):
        write(uri, data)
        monkeypatch.setattr(after, "write_object", write)
        replace()

    if late:
        monkeypatch.setattr(after, "write_object", write_late)
    else:
        replace()
    with pytest.raises(RunConflict, match="the run was replaced meanwhile, and what was made of it is not kept; ask the same again"):
        write_derived(run, OTHER, {"after/x": b"2"})
    assert [read_derived(run, mine, f"after/{name}") for name in "xy"] == [b"1", b"1"]
    check_after(run, mine)
