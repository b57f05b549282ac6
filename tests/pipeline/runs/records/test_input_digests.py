"""Input files by their SHA-256: as any other tool makes it, of every byte, on every store; what differs is found, and named."""

import hashlib
import json
import time
from contextlib import nullcontext
from dataclasses import replace

import fsspec
import pytest

from leafledger.pipeline.errors import InvalidData, InvalidRun, NotThere, RunConflict, StorageError
from leafledger.pipeline.runs.records import input_digests as digests
from leafledger.pipeline.runs.records.input_digests import (
    InputFile,
    Inputs,
    check_inputs,
    digest_file,
    digest_files,
    find_changed,
    read_inputs,
    refuse_changed,
    write_inputs,
)
from leafledger.pipeline.stores import storage

ME, OTHER = "a" * 64, "b" * 64
ONE = Inputs(ME, (InputFile("/data/x", 1, "1" * 64), InputFile("/data/y", 2, "2" * 64)), (InputFile("/background", 3, "3" * 64),))


@pytest.mark.parametrize("size", [0, 1, digests.PIECE, digests.PIECE + 1])
def test_a_file_is_digested_piece_by_piece(tmp_path, size):
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    (tmp_path / "file").write_bytes(data)
    assert digest_file(str(tmp_path / "file")) == InputFile(str(tmp_path / "file"), size, hashlib.sha256(data).hexdigest())


@pytest.mark.slow
def test_files_of_any_store_are_digested_in_their_order(tmp_path, bucket):
    """More files than are read at a time, of this machine, of S3 and of another file system; each is told as it is done."""
    files, expected = [], []
    for k in range(3 * digests.READERS):
        uri = f"{(bucket, 'memory://digests', str(tmp_path))[k % 3]}/{k}"
        with fsspec.open(uri, "wb") as file:
            file.write(bytes([k]) * k * 1000)
        files.append((uri, f"{storage.stat(uri).etag} x y"))
        expected.append(hashlib.sha256(bytes([k]) * k * 1000).hexdigest())
    done = []
    assert [file.sha256 for file in digest_files(files, done.append)] == expected
    assert done == list(range(len(files)))


def test_a_file_that_changes_meanwhile_is_refused(tmp_path):
    uri = str(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"1")
    known = (uri, f"{storage.stat(uri).etag} x y")
    (tmp_path / "file").write_bytes(b"22")
    with pytest.raises(InvalidData, match="file: changed since the run was planned"):
        digest_files([known], lambda k: None)
    with pytest.raises(NotThere):
        digest_files([known, (f"{uri}s", "x y z")][::-1], lambda k: None)


@pytest.mark.slow
def test_a_store_that_fails_ends_it_soon(tmp_path, monkeypatch):
    """What is not begun is not read."""
    read = []

    def fail(uri, stop):
        read.append(uri)
        raise StorageError(f"{uri}: cannot read: away")

    monkeypatch.setattr(digests, "digest_file", fail)
    with pytest.raises(StorageError, match="0: cannot read: away"):
        digest_files([(str(k), "x y z") for k in range(10_000)], lambda k: None)
    assert len(read) < 10_000


@pytest.fixture
def slow(monkeypatch):
    """Which files called "slow", of three seconds, were read to the end. Others are opened while one of those is read, or fail: "away"."""
    read, ended, opened = [], [], storage.opened

    class Slow:
        def __init__(self):
            self.pieces = iter([b"x"] * 300)

        def read(self, _):
            time.sleep(0.01)
            piece = next(self.pieces, b"")
            (read if piece else ended).append(self)
            return piece

    def open_file(uri):
        if uri == "slow":
            return nullcontext(Slow())
        while not read:
            time.sleep(0.01)
        if uri == "away":
            raise StorageError("away: cannot read")
        return opened(uri)

    monkeypatch.setattr(storage, "opened", open_file)
    return ended


def interrupt(k):
    """As the user does."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("digest", "error"),
    [
        (lambda uri, others: digest_files([("away", "x y z"), *others], lambda k: None), StorageError),
        (lambda uri, others: digest_files([(uri, "other x y"), *others], lambda k: None), InvalidData),
        (lambda uri, others: digest_files([(uri, f"{storage.stat(uri).etag} x y"), *others], interrupt), KeyboardInterrupt),
        (lambda uri, others: find_changed([InputFile(each, 1, ME) for each, _ in (("away", ""), *others)]), StorageError),
    ],
    ids=["fails", "refused", "interrupted", "checked"],
)
def test_files_that_are_not_wanted_any_more_are_not_read_to_their_end(tmp_path, slow, digest, error):
    """Where a store fails, a file has changed or the user interrupts: of eight large files that would take hours."""
    (tmp_path / "file").write_bytes(b"1")
    with pytest.raises(error):
        digest(str(tmp_path / "file"), [("slow", "x y z")] * 3)
    assert not slow


def test_a_record_is_written_once_and_read_back(tmp_path, bucket):
    for run in (str(tmp_path), f"{bucket}/run", "memory://digests/run"):
        assert read_inputs(run) is None
        write_inputs(run, ONE)
        write_inputs(run, ONE)
        assert read_inputs(run) == ONE
        with pytest.raises(RunConflict, match="/data/y: SHA-256 is 444444444444, when the run was begun it was 222222222222"):
            write_inputs(run, replace(ONE, data=(ONE.data[0], InputFile("/data/y", 2, "4" * 64))))
    assert hashlib.sha256((tmp_path / "inputs.json").read_bytes()).hexdigest() == ONE.sha256


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (
            replace(ONE, background=(InputFile("/background", 4, "3" * 64),)),
            "/background: SHA-256 is 3{12}, when the run was begun it was 3{12}",
        ),
        (
            replace(ONE, data=(*ONE.data, InputFile("/data/z", 0, "0" * 64))),
            "/data/z: SHA-256 is 0{12}, when the run was begun it was none of",
        ),
        (replace(ONE, data=ONE.data[:1]), "the run was begun with other inputs: 3 files, expected 2"),
    ],
)
def test_other_files_are_refused(now, message):
    refuse_changed(ONE, ONE)
    with pytest.raises(RunConflict, match=message):
        refuse_changed(ONE, now)


def test_a_record_of_something_else_is_refused():
    check_inputs("run", ONE, ME, ["/data/x", "/data/y"])
    with pytest.raises(InvalidRun, match=r"inputs\.json: is of a plan with SHA-256 aaaaaaaaaaaa, the run's has bbbbbbbbbbbb; remove it"):
        check_inputs("run", ONE, OTHER, ["/data/x", "/data/y"])
    with pytest.raises(InvalidRun, match=r"inputs\.json: lists 2 files, which are not the 1 of the plan"):
        check_inputs("run", ONE, ME, ["/data/x"])


@pytest.mark.parametrize("text", ["", "{}", "[]", json.dumps({"plan": ME, "data": [], "background": []}), ONE.text + " "])
def test_a_record_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "inputs.json").write_text(text)
    with pytest.raises(InvalidRun, match=r"inputs\.json: not a record of a run's inputs"):
        read_inputs(str(tmp_path))


def test_what_changed_is_found(tmp_path):
    """Other bytes and a missing file, each in words; the others are as they were."""
    for name in "xyz":
        (tmp_path / name).write_bytes(name.encode())
    was = [digest_file(str(tmp_path / name)) for name in "xyz"]
    assert find_changed(was) == {}
    (tmp_path / "y").write_bytes(b"Y")
    (tmp_path / "z").unlink()
    found = find_changed(was)
    assert list(found) == [was[1].uri, was[2].uri]
    assert found[was[1].uri] == (
        f"{was[1].uri}: SHA-256 is {hashlib.sha256(b'Y').hexdigest()[:12]}, when the run was made it was {was[1].sha256[:12]}"
    )
    assert "no such file" in found[was[2].uri]
