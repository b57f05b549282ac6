"""The commit, on this machine and in a bucket: an object appears whole, once, or not at all, and what moves is lost to nobody."""

import errno
import os
import shutil
import subprocess
import sys
import threading

import pytest
import s3fs
from botocore.exceptions import ClientError, EndpointConnectionError
from fsspec.exceptions import FSTimeoutError
from s3fs.errors import translate_boto_error

from leafledger import check_run, explain
from leafledger.pipeline.errors import RunConflict, StorageError, UnusablePlace, UsageError
from leafledger.pipeline.stores import commit, local, storage
from leafledger.pipeline.stores.dialects import s3


@pytest.fixture(params=["bucket", "folder"])
def root(request, tmp_path):
    """The URI of a place that is empty."""
    return request.getfixturevalue("bucket") if request.param == "bucket" else str(tmp_path / "out")


async def see_nothing(*_, **__):
    """What others have written is not there yet for who looks."""
    return False


def at_once(act, n=8):
    """What ``act(k)`` gives in so many threads that start together."""
    together, found = threading.Barrier(n), [None] * n

    def go(k):
        together.wait()
        found[k] = act(k)

    threads = [threading.Thread(target=go, args=(k,)) for k in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


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


def test_the_same_again_is_no_conflict(root, tmp_path):
    """Whoever writes an object another time finds it; other bytes are refused, and nothing changes."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"first")
    second.write_bytes(b"second")
    uri = storage.join(root, "object")
    for _ in range(2):
        commit.create_once(uri, first)
    with pytest.raises(RunConflict, match=r"object: holds another file; choose another name$"):
        commit.create_once(uri, second)
    assert storage.read(uri) == b"first"


def test_a_conditional_put_wins_once(bucket, tmp_path, monkeypatch):
    """Even where the look before the write sees nothing, the store's own condition lets one writer win."""
    local = tmp_path / "object"
    local.write_bytes(b"bytes")
    monkeypatch.setattr(s3fs.S3FileSystem, "_exists", see_nothing)
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
@pytest.mark.slow
def test_nothing_is_left_of_a_writer_that_is_killed(tmp_path):
    """SIGKILL in the middle of a file takes the file along."""
    write = "import sys; from pathlib import Path; from leafledger.pipeline.stores import commit; commit.create(sys.argv[1], Path('/dev/stdin'))"
    with subprocess.Popen([sys.executable, "-c", write, str(tmp_path / "object")], stdin=subprocess.PIPE, env=os.environ) as writer:
        writer.stdin.write(bytes(4 << 20))  # more than a pipe holds: it returns once the file has been begun
        writer.stdin.flush()
        writer.kill()
    assert list(tmp_path.iterdir()) == []


def test_what_a_store_does_not_copy_is_copied_by_its_bytes(root, tmp_path, monkeypatch):
    """As a disk whose file system gives a file no second name, or two disks; and clients that know no copy."""
    (tmp_path / "local").write_bytes(b"bytes" * 100)
    for name in ("a", "c"):
        commit.create(f"{root}/{name}", tmp_path / "local")

    def refuse(*_, **__):
        raise NotImplementedError

    link = os.link

    def link_within(source, target, **given):
        if not str(source).startswith(("/proc", str(tmp_path / ".partial"))) and ".partial" not in str(source):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        link(source, target, **given)

    monkeypatch.setattr(os, "link", link_within)
    monkeypatch.setattr(s3fs.S3FileSystem, "_cp_file", refuse)
    assert commit.copy(f"{root}/a", f"{root}/b")
    assert not commit.copy(f"{root}/c", f"{root}/b")
    assert storage.read(f"{root}/b") == storage.read(f"{root}/a") == b"bytes" * 100


def test_of_many_writers_at_once_one_wins(root, tmp_path):
    """What is there is the winner's, whole."""
    for k in range(8):
        (tmp_path / f"local {k}").write_bytes(bytes([k]) * 100_000)
    uri = storage.join(root, "object")
    won = at_once(lambda k: commit.create(uri, tmp_path / f"local {k}"))
    assert sorted(won) == [False] * 7 + [True]
    assert storage.read(uri) == bytes([won.index(True)]) * 100_000


@pytest.mark.parametrize("nameless", [True, False])
def test_a_write_that_is_interrupted_leaves_nothing(tmp_path, monkeypatch, nameless):
    """Half of the bytes, then an error: no object, no trace of it, and the next attempt succeeds."""
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    (tmp_path / "local").write_bytes(b"whole")
    uri = str(tmp_path / "out" / "object")

    def fail_half_way(read_from, write_to, _):
        write_to.write(read_from.read(2))
        write_to.flush()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", fail_half_way)
        with pytest.raises(StorageError, match=r"object: cannot write: .*No space left on device$"):
            commit.create(uri, tmp_path / "local")
    assert list((tmp_path / "out").iterdir()) == []
    assert commit.create(uri, tmp_path / "local")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"object": b"whole"}


def uploads(bucket):
    """Keys of multipart uploads that were begun and neither completed nor aborted."""
    found = s3fs.S3FileSystem().call_s3("list_multipart_uploads", Bucket=bucket.removeprefix("s3://"))
    return sorted(upload["Key"] for upload in found.get("Uploads", []))


@pytest.mark.slow
def test_a_large_file_goes_up_in_pieces(bucket, tmp_path, monkeypatch):
    """It is created once like any other, and no piece is left."""
    monkeypatch.setattr(s3, "SINGLE_PUT", 10 << 20)
    (tmp_path / "large").write_bytes(os.urandom(12 << 20))
    assert [commit.create(f"{bucket}/large", tmp_path / "large") for _ in range(2)] == [True, False]
    assert storage.read(f"{bucket}/large") == (tmp_path / "large").read_bytes()
    monkeypatch.setattr(s3fs.S3FileSystem, "_exists", see_nothing)
    assert not commit.create(f"{bucket}/large", tmp_path / "large")
    assert uploads(bucket) == []


def test_pieces_of_unfinished_uploads_are_removed_below_a_folder(bucket, tmp_path):
    """Those beside it are other writers'; a folder of this machine has none."""
    for key in ("run/parts/a", "run/parts/deep/b", "run/parts-of-others", "other"):
        s3fs.S3FileSystem().call_s3("create_multipart_upload", Bucket=bucket.removeprefix("s3://"), Key=key)
    commit.abort_uploads(f"{bucket}/run/parts")
    assert uploads(bucket) == ["other", "run/parts-of-others"]
    commit.abort_uploads(str(tmp_path))


@pytest.mark.parametrize("gone", [EndpointConnectionError(endpoint_url="http://127.0.0.1:1"), PermissionError("may not be listed"), FSTimeoutError()])
def test_pieces_are_left_to_a_store_that_does_not_list_them(bucket, monkeypatch, gone):
    """All parts of a run are there by then; botocore's errors are no OSError."""

    def call(*_, **given):
        raise gone

    monkeypatch.setattr(s3, "call_store", call)
    commit.abort_uploads(f"{bucket}/run")


@pytest.mark.parametrize("says", [True, False], ids=["markers", "none"])
@pytest.mark.parametrize("heeds", [True, False], ids=["heeded", "passed over"])
def test_pieces_are_found_on_all_pages(bucket, monkeypatch, says, heeds):
    """Some stores do not say where the next page begins, some begin with the first again."""
    pages = {None: ["a", "b"], "b": ["c", "d"], "d": []}
    asked, aborted = [], []

    def call(filesystem, method, operation, **given):
        if operation == "abort_multipart_upload":
            aborted.append((given["Key"], given["UploadId"]))
            return {}
        assert given.get("UploadIdMarker") == (given.get("KeyMarker") and f"id {given['KeyMarker']}")
        asked.append(given.get("KeyMarker"))
        keys = pages[asked[-1] if heeds else None]
        markers = {"NextKeyMarker": keys[-1], "NextUploadIdMarker": f"id {keys[-1]}"} if says and keys else {}
        return {"Uploads": [{"Key": key, "UploadId": f"id {key}"} for key in keys], "IsTruncated": True, **markers}

    monkeypatch.setattr(s3, "call_store", call)
    commit.abort_uploads(f"{bucket}/run")
    assert asked == ([None, "b", "d"] if heeds else [None, "b"])
    assert aborted == [(key, f"id {key}") for key in ("abcd" if heeds else "abab")]


def test_an_object_that_moves_is_changed_by_what_it_holds(root):
    """Nothing at first; then what the change before made of it; None leaves it."""
    uri, held = storage.join(root, "deep", "latest"), []

    def change(made):
        def changed(holds):
            held.append(holds)
            return made

        return changed

    for made in (b"one", None, b"two"):
        commit.update(uri, change(made))
    assert held == [None, b"one", b"one"]
    assert storage.read(uri) == b"two"
    commit.update(uri, change(b"three"), single_writer=True)
    assert storage.read(uri) == b"three"


@pytest.mark.slow
def test_no_change_is_lost_in_a_bucket(bucket):
    """Three at once: who is always overtaken is told, and what is counted are the others' changes."""

    def raise_it(_):
        raised = 0
        for _ in range(5):
            try:
                commit.update(f"{bucket}/counter", lambda holds: str(int(holds or b"0") + 1).encode())
            except StorageError as error:
                assert str(error) == f"{bucket}/counter: cannot write: it was changed by others 5 times in a row"  # noqa: PT017 - else it did what it shall
            else:
                raised += 1
        return raised

    raised = at_once(raise_it, 3)
    assert sum(raised) > 0
    assert storage.read(f"{bucket}/counter") == str(sum(raised)).encode()


def test_stores_are_tried_without_a_trace(root):
    """Whether they create once and replace only what is as it was."""
    assert commit.creates_once(storage.join(root, "run"))
    assert commit.swaps(storage.join(root, "latest"))
    left = s3fs.S3FileSystem().find(root) if root.startswith("s3://") else os.path.exists(root)
    assert not left


@pytest.fixture
def unconditional(bucket, monkeypatch):
    """A bucket of a store that answers every condition on what is written as Alibaba's OSS does."""
    call = s3fs.S3FileSystem._call_s3

    async def answer(filesystem, method, *arguments, **given):
        if {"IfNoneMatch", "IfMatch"} & given.keys() and method != "get_object":
            raise translate_boto_error(ClientError({"Error": {"Code": "NotImplemented", "Message": "a header is not implemented"}}, method))
        return await call(filesystem, method, *arguments, **given)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", answer)
    return bucket


@pytest.mark.parametrize("n_bytes", [10, 11 << 20])
@pytest.mark.slow
def test_a_store_that_implements_no_conditions_is_as_one_that_ignores_them(unconditional, tmp_path, monkeypatch, n_bytes):
    """It is found out without a trace, and a single writer writes there, in pieces too; what is there is not written again."""
    monkeypatch.setattr(s3, "SINGLE_PUT", 10 << 20)
    commit.check_writable(unconditional)
    assert not commit.creates_once(unconditional)
    assert not commit.swaps(f"{unconditional}/latest")
    assert s3fs.S3FileSystem().find(unconditional) == []
    (tmp_path / "first").write_bytes(b"x" * n_bytes)
    (tmp_path / "second").write_bytes(b"y")
    assert commit.create(f"{unconditional}/object", tmp_path / "first")
    assert not commit.create(f"{unconditional}/object", tmp_path / "second")
    assert storage.read(f"{unconditional}/object") == b"x" * n_bytes
    commit.update(f"{unconditional}/latest", lambda _: b"1", single_writer=True)
    with pytest.raises(StorageError, match=r"latest: cannot write: .*not implemented"):
        commit.update(f"{unconditional}/latest", lambda _: b"2")
    assert storage.read(f"{unconditional}/latest") == b"1"


@pytest.mark.slow
def test_a_run_is_written_to_such_a_store_by_a_single_writer_alone(example, unconditional):
    """Anybody else is refused while planning, as where conditions are ignored."""
    given = {"scheduler": "serial", "date": "2026-03-01", "latest": f"{unconditional}/latest.json"}
    with pytest.raises(UsageError, match=r"ignores conditions .* or knows none, .* --single-writer"):
        explain(example.model, example.data, f"{unconditional}/run", **given)
    assert s3fs.S3FileSystem().find(unconditional) == []
    explain(example.model, example.data, f"{unconditional}/run", single_writer=True, **given)
    assert check_run(f"{unconditional}/run").sound
    assert storage.exists(f"{unconditional}/latest.json")


def test_a_folder_is_removed_with_all_below_it(root, tmp_path):
    """What is beside it stays; where nothing is, nothing is done."""
    (tmp_path / "local").write_bytes(b"x")
    for name in ("run/a", "run/deep/b", "run2/c"):
        commit.create(storage.join(root, *name.split("/")), tmp_path / "local")
    for _ in range(2):
        commit.remove(storage.join(root, "run"))
    assert [storage.exists(storage.join(root, name)) for name in ("run", "run2/c")] == [False, True]


def test_what_can_be_written_is_tried_without_a_trace(root):
    """A folder that is there, and one that is not yet."""
    for folder in (root, f"{root}/deep/down"):
        commit.check_writable(folder)
        assert not storage.exists(f"{root}/deep")


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("{root}/file/run", "not a folder"),
        ("{root}/file", "not a folder"),
        ("/proc/run", "No such file or directory; choose another place, or make it writable$"),
        ("s3://nowhere/run", "bucket nowhere does not exist$"),
        ("https://127.0.0.1:1/run", "what is on a web server is only read"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, bucket, folder, says):
    """A file in the way, a file system that takes nothing (from its owner neither), a bucket that is not there, a web server."""
    (tmp_path / "file").touch()
    folder = folder.format(root=tmp_path)
    with pytest.raises(StorageError, match=f"^{folder}: cannot write: .*{says}"):
        commit.check_writable(folder)


def test_a_store_that_takes_nothing_is_refused(monkeypatch):
    """Some file systems know no writing at all."""
    from fsspec.implementations.memory import MemoryFileSystem

    def refuse(*_, **__):
        raise NotImplementedError

    monkeypatch.setattr(MemoryFileSystem, "put_file", refuse)
    with pytest.raises(StorageError, match=r"^memory://a: cannot write: nothing can be written there$"):
        commit.check_writable("memory://a")


def test_a_folder_that_may_not_be_written_is_named_as_it_was_asked_for(monkeypatch, tmp_path):
    """Not by a folder of ours in it; that a disk is full may change by itself, so it is another error."""

    def refuse(number):
        def opened(there):
            raise OSError(number, os.strerror(number), str(there))

        monkeypatch.setattr(local, "open_partial", opened)

    for number in (errno.EACCES, errno.EROFS):
        refuse(number)
        with pytest.raises(UnusablePlace) as refusal:
            commit.check_writable(f"{tmp_path}/run/_tables", f"{tmp_path}/run")
        assert str(refusal.value) == f"{tmp_path}/run: cannot write: {os.strerror(number)}; choose another place, or make it writable"
    refuse(errno.ENOSPC)
    with pytest.raises(StorageError) as raised:
        commit.check_writable(f"{tmp_path}/run/_tables", f"{tmp_path}/run")
    assert not isinstance(raised.value, UnusablePlace)
    assert str(raised.value).startswith(f"{tmp_path}/run: cannot write: ")
