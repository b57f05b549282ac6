"""Files that move on this machine: no change is lost, and nothing is written but the file."""

import errno
import fcntl
import os
import re
import threading

import pytest

from leafledger.pipeline.errors import NotAFile, StorageError
from leafledger.pipeline.stores import commit, local, storage

LOCK = ".latest.lock"


def raise_it(holds):
    """A counter, one higher."""
    return str(int(holds or b"0") + 1).encode()


def test_no_change_is_lost(tmp_path):
    """A counter that eight raise at once, twenty times each; nothing but it is left, and the empty file that was locked."""
    uri, together = str(tmp_path / "out" / "latest"), threading.Barrier(8)

    def go():
        together.wait()
        for _ in range(20):
            commit.update(uri, raise_it)

    threads = [threading.Thread(target=go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == {"latest": b"160", LOCK: b""}


def test_an_update_waits_for_whoever_holds_the_lock(tmp_path):
    """And a change that fails gives it back with the file as it was, and nothing beside it."""
    uri = str(tmp_path / "latest")
    commit.update(uri, lambda _: b"first")
    with pytest.raises(ZeroDivisionError):
        commit.update(uri, lambda _: b"second"[1 // 0])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"latest": b"first", LOCK: b""}
    lock = os.open(tmp_path / LOCK, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=commit.update, args=(uri, lambda holds: holds + b" second"))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        (tmp_path / "latest").write_bytes(b"other")
    finally:
        os.close(lock)
    waiting.join()
    assert storage.read(uri) == b"other second"


def test_a_writer_that_is_stopped_holds_nobody_up_for_ever(tmp_path, monkeypatch):
    """After some time others say which lock they waited for, and the file is as it was."""
    monkeypatch.setattr(local, "SECONDS", 0.2)
    uri = str(tmp_path / "latest")
    commit.update(uri, raise_it)
    lock = os.open(tmp_path / LOCK, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match=rf"latest: cannot write: {re.escape(str(tmp_path / LOCK))}: another writer has held this lock"):
            commit.update(uri, raise_it)
    finally:
        os.close(lock)
    commit.update(uri, raise_it)
    assert storage.read(uri) == b"2"


def flock_of_nfs(monkeypatch, seen):
    """The rules by which NFS locks: a file for whoever has it open for writing, and of a folder nothing, without a word."""
    flock = fcntl.flock

    def locks(file, how):
        seen.append(os.readlink(f"/proc/self/fd/{file}"))
        if os.path.isdir(seen[-1]):
            return
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", locks)


def test_what_is_locked_is_locked_by_nfs_too(tmp_path, monkeypatch):
    """A file open for writing, not a folder: who comes while another one changes the file waits."""
    seen, uri = [], str(tmp_path / "latest")
    flock_of_nfs(monkeypatch, seen)
    others = []

    def change(holds):
        if not others:
            others.append(threading.Thread(target=commit.update, args=(uri, raise_it)))
            others[0].start()
            others[0].join(0.2)
        return raise_it(holds)

    commit.update(uri, change)
    others[0].join()
    assert storage.read(uri) == b"2"
    assert set(seen) == {str(tmp_path / LOCK)}


def test_a_file_system_that_does_not_lock_is_refused(tmp_path, monkeypatch):
    """In one line; with a single writer it will do."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    uri = str(tmp_path / "latest")
    with pytest.raises(StorageError, match=rf"^{re.escape(uri)}: cannot write: .*No locks available$"):
        commit.update(uri, raise_it)
    commit.update(uri, raise_it, single_writer=True)
    assert storage.read(uri) == b"1"


def test_writers_have_temporary_files_of_their_own(tmp_path):
    """Where nothing is locked, as for a single writer that is two all the same, one of them wins with all of its bytes."""
    uri = str(tmp_path / "latest")

    def change(_):
        commit.update(uri, lambda _: b"short", single_writer=True)
        return b"longer"

    commit.update(uri, change, single_writer=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"latest": b"longer"}


@pytest.mark.parametrize("single_writer", [False, True])
def test_what_is_no_file_stays(tmp_path, single_writer):
    """A pipe or a device would be gone, `/dev/null` of whole machines; as it is, or by a link. Whoever reads a pipe waits besides."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(NotAFile, match=rf"/{name}: cannot write: is a pipe, a socket or a device, expected a file$"):
            commit.update(str(tmp_path / name), raise_it, single_writer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", [".latest.partial", ".latest.lock"])
def test_an_update_writes_through_no_link(tmp_path, name):
    """Whoever may write in the folder could else have another file overwritten."""
    (tmp_path / "others").write_bytes(b"precious")
    (tmp_path / name).symlink_to(tmp_path / "others")
    uri = str(tmp_path / "latest")
    if name == LOCK:
        with pytest.raises(StorageError, match=r"latest: cannot write: .*\.latest\.lock"):
            commit.update(uri, raise_it)
    else:
        commit.update(uri, raise_it)
        assert not (tmp_path / "latest").is_symlink()
    assert (tmp_path / "others").read_bytes() == b"precious"
