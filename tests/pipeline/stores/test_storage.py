"""Files and objects by URI, the same on this machine and in a bucket: where they are, what they hold, and one line where they are not."""

import hashlib
import os
import socket
from pathlib import Path

import pytest
import s3fs
from fsspec.implementations.memory import MemoryFileSystem

from leafledger.pipeline.errors import StorageError
from leafledger.pipeline.stores import object_store, storage
from leafledger.pipeline.stores.calls import call_store
from leafledger.pipeline.stores.dialects.web import WEB
from leafledger.pipeline.stores.open_store import open_store
from leafledger.pipeline.stores.parquet_files import list_parquet
from leafledger.pipeline.stores.store import Entry
from tests.pipeline.stores.placing import put


@pytest.mark.parametrize(
    ("uri", "place"),
    [("s3://b/runs/one", "s3://b/runs/kept"), ("s3://b/one", "s3://b/kept"), ("s3://b", "s3://b/kept"), ("/a/b", "/a/kept"), ("/a", "/a/kept")],
)
def test_what_is_beside_a_root_is_in_it(uri, place):
    """There is nothing next to a bucket or to a folder of the file system's root that a run may write."""
    assert storage.beside(uri, "kept") == place


def test_what_is_there_is_read(root):
    """Its bytes, its size, and a tag that changes with them."""
    uri = f"{root}/deep/object"
    put(uri, b"first")
    was = storage.stat(uri)
    assert (was.uri, was.size, storage.read(uri), storage.read_if_exists(uri), storage.exists(uri)) == (uri, 5, b"first", b"first", True)
    assert storage.exists(f"{root}/deep")
    assert storage.stat(uri) == storage.stat_if_exists(uri) == was
    assert was.proven == root.startswith("s3://")
    put(uri, b"other")
    if not root.startswith("s3://"):  # files are told apart by the time of their change
        os.utime(uri, ns=(1, 1))
    assert storage.stat(uri).etag != was.etag
    if root.startswith("s3://"):
        assert was.etag == hashlib.md5(b"first").hexdigest()


def test_what_is_not_there_is_none_or_one_line(root):
    """By what was asked."""
    uri = f"{root}/nowhere"
    assert (storage.stat_if_exists(uri), storage.read_if_exists(uri), storage.exists(uri)) == (None, None, False)

    def begin_to_read(uri):
        with storage.opened(uri) as file:
            file.read()

    for ask in (storage.stat, storage.read, begin_to_read, lambda uri: storage.download(uri, Path("/nowhere"))):
        with pytest.raises(StorageError, match=f"^{uri}: cannot read: no such file or object$"):
            ask(uri)


def test_an_open_object_is_read_from_anywhere(root):
    """Parquet's readers seek."""
    data = bytes(range(256)) * 100
    put(f"{root}/object", data)
    with storage.opened(f"{root}/object") as file:
        file.seek(-10, 2)
        assert (file.read(), file.tell()) == (data[-10:], len(data))
        file.seek(1000)
        assert file.read(7) == data[1000:1007]


def test_errors_of_the_store_are_told_from_those_of_the_reader(tmp_path):
    """While reading: what the file's own reads raise, and nothing else."""
    put(f"{tmp_path}/object")

    class Broken:
        def read(self, _):
            raise ConnectionResetError("the store went away")

    with pytest.raises(StorageError, match=r"^uri: cannot read: the store went away$"):
        storage._Reported(Broken(), "uri").read(1)

    def misread():
        with storage.opened(f"{tmp_path}/object") as file:
            raise OSError(f"{len(file.read())} bytes are no Parquet file")

    with pytest.raises(OSError, match=r"^1 bytes are no Parquet file$"):
        misread()


def test_a_download_appears_whole(root, tmp_path):
    """Under its own name alone."""
    put(f"{root}/object", b"bytes" * 1000)
    folder = tmp_path / "local"
    folder.mkdir()
    storage.download(f"{root}/object", folder / "copy")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"copy": b"bytes" * 1000}
    assert storage.sha256(folder / "copy") == hashlib.sha256(b"bytes" * 1000).hexdigest()


def test_paths_are_those_of_this_machine(tmp_path):
    """``file://`` is a path; other schemes are none."""
    assert storage.local_path(f"file://{tmp_path}/out") == tmp_path / "out"
    assert storage.local_path("memory://out") is None


@pytest.mark.parametrize(("uri", "parts", "joined"), [("s3://b/", ("a", "b"), "s3://b/a/b"), ("/x", ("y",), "/x/y"), ("x/", (), "x")])
def test_places_are_joined_by_one_slash(uri, parts, joined):
    """However the folder is written."""
    assert storage.join(uri, *parts) == joined


def test_keys_that_lead_out_of_a_folder_are_refused():
    """Two dots are, a name that has them is none of them."""
    for key in ("a", "a/b", "a..b/..c", "summary/importance.json"):
        storage.check_below(key)
    for key in ("", "/a", "..", "../a", "a/../../b", "a/..", "s3://b/a"):
        with pytest.raises(ValueError, match=r"leads out of the run's folder$"):
            storage.check_below(key)


def test_a_temporary_folder_is_gone_afterwards(tmp_path, monkeypatch):
    """Also where its user fails; a full disk is one line."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with storage.scratch() as folder:
        (folder / "file").write_bytes(b"x")
        assert folder.parent == tmp_path

    def fail(error):
        with storage.scratch() as folder:
            (folder / "file").write_bytes(b"x")
            raise error

    with pytest.raises(KeyError):
        fail(KeyError("mine"))
    with pytest.raises(StorageError, match=rf"^{tmp_path}: cannot write: .*No space left on device$"):
        fail(OSError(28, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "link to a device"])
def test_what_has_no_end_is_not_read(tmp_path, kind):
    """Whoever opens a pipe may wait for ever: refused by what it is, before it is opened."""
    path = tmp_path / "input"
    with socket.socket(socket.AF_UNIX) as listening:
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "socket":
            listening.bind(str(path))
        elif kind == "device":
            path = Path("/dev/zero")
        else:
            path.symlink_to("/dev/zero")

        def begin_to_read(uri):
            with storage.opened(uri) as file:
                file.read()

        for ask in (storage.stat, storage.read, storage.read_if_exists, begin_to_read, lambda uri: storage.download(uri, tmp_path / "copy")):
            with pytest.raises(StorageError, match=rf"^{path}: cannot read: .*is a pipe, a socket or a device, expected a file"):
                ask(str(path))


class Web:
    """Servers that make marks as they like."""

    protocol = ("http", "https")

    def info(self, path):
        return {"name": path, "size": 3, "ETag": '"a mark"', "mtime": 5}

    def unstrip_protocol(self, path):
        return path


def test_a_mark_of_a_web_server_proves_nothing():
    """Some make it of a time, which a copy may keep; it counts all the same, before any time."""
    assert object_store.ObjectStore(Web(), WEB, str).stat(Entry("http://h/a")) == storage.Object("http://h/a", 3, "a mark", proven=False)


def test_what_has_not_changed_is_the_same_listed_and_looked_up(root):
    """fsspec's memory says when a file was made in two ways."""
    memory = MemoryFileSystem()
    memory.pipe_file("/listed/a.parquet", b"PAR1")
    put(f"{root}/here/a.parquet")
    for place in (f"{root}/here", "memory://listed"):
        (listed,) = list_parquet(place)
        assert listed.etag
        assert listed == storage.stat(listed.uri)
    memory.rm("/listed", recursive=True)


def test_what_others_did_since_a_listing_is_seen(bucket):
    """A client keeps listings; what is asked now is asked of the store."""
    uri = f"{bucket}/data/object"
    put(uri, b"first")
    others = open_store(uri)[0].filesystem
    assert len(others.ls(f"{bucket}/data", detail=True)) == 1
    put(uri, b"second")
    assert storage.stat(uri).size == 6
    assert len(others.ls(f"{bucket}/data", detail=True)) == 1
    s3fs.S3FileSystem().rm(uri)
    assert not storage.exists(uri)


def test_a_large_download_has_more_time(root, tmp_path, monkeypatch):
    """Its deadline grows with the bytes that there are; this machine has none."""
    put(f"{root}/object", b"bytes")
    given = {}

    def call(filesystem, operation, *arguments, n_bytes=0, **named):
        given[operation] = n_bytes
        return call_store(filesystem, operation, *arguments, n_bytes=n_bytes, **named)

    monkeypatch.setattr(object_store, "call_store", call)
    storage.download(f"{root}/object", tmp_path / "copy")
    assert given == ({"info": 0, "get_file": 5} if root.startswith("s3://") else {})
