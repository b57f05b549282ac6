"""Atomic replacement of local files under a lock, also between machines that share a file system."""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from .filesystem import SECONDS, NotRegular

PAUSE = 0.02  # seconds between attempts: whoever holds the lock has a small file to write


def _lock(file: int, path: Path) -> None:
    """Wait for a lock, as long as for any operation: its holder may be stopped, on another host too, and the system's own wait has no end."""
    end = time.monotonic() + SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back with the descriptor, whatever ends this process
        except BlockingIOError as error:
            if time.monotonic() > end:
                raise TimeoutError(f"{path}: another writer has held this lock for {SECONDS:.0f} seconds; is it stopped?") from error
            time.sleep(PAUSE)
        else:
            return


@contextmanager
def _hold(target: Path) -> Iterator[None]:
    """Lock an empty file beside the target. It stays: who removed it would leave one to lock who waits, and another to who comes next.

    NFS locks files that are open for writing, between all hosts; of a folder it says that it is locked, and tells no other host.
    """
    beside = target.with_name(f".{target.name}.lock")
    lock = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        _lock(lock, beside)
        yield
    finally:
        os.close(lock)


def _read(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def exchange(path: str, change: Callable[[bytes | None], bytes | None], single_writer: bool = False) -> None:
    """Exchange a file for another under its name, while nobody else may."""
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise NotRegular("is a pipe, a socket or a device, expected a file")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".partial-{secrets.token_hex(8)}")  # of each writer its own, also where a file system only says that it locks
    with nullcontext() if single_writer else _hold(target):
        try:
            with partial.open("xb") as file:  # before the target is read, so that NFS looks at the folder anew
                made = change(_read(target))
                if made is None:
                    return
                file.write(made)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # so that the name outlives a loss of power
        finally:
            os.close(folder)
