"""Reads of files and objects by URI; ``commit`` writes them."""

import hashlib
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import NotThere, StorageError
from .calls import retry_damaged
from .failures import reported
from .object_store import WHOLE
from .open_store import open_store
from .store import Entry, Folder, Object
from .traffic import count_moved
from .uris import beside, check_below, join

__all__ = ["Object", "beside", "check_below", "join"]  # callers reach them as storage.join and the like


def stat(uri: str) -> Object:
    """Look up a file or object."""
    store, path = open_store(uri)
    with reported("read", uri):
        store.refresh()
        return store.stat(Entry(path))


def stat_if_exists(uri: str) -> Object | None:
    """Look up a file or object; None where there is none."""
    try:
        return stat(uri)
    except NotThere:
        return None


def read(uri: str) -> bytes:
    """Read a file or object whole."""
    store, path = open_store(uri)
    with reported("read", uri):
        data = store.read(path)
    count_moved(read=len(data))
    return data


def read_if_exists(uri: str) -> bytes | None:
    """Read a file or object whole; None where there is none."""
    store, path = open_store(uri)
    with reported("read", uri):
        try:
            data = store.read(path)
        except FileNotFoundError:
            return None
    count_moved(read=len(data))
    return data


def exists(uri: str) -> bool:
    """Tell whether there is a file, an object or a folder."""
    store, path = open_store(uri)
    with reported("look up", uri):
        store.refresh()
        return store.exists(path)


class _Reported:
    """A file whose own errors are StorageErrors, so that whoever reads it can tell them from what is wrong with the bytes."""

    def __init__(self, file: Any, uri: str):
        self._file, self._uri = file, uri

    def read(self, n_bytes: int = -1) -> bytes:
        with reported("read", self._uri):
            try:
                data = retry_damaged(lambda: self._file.read(n_bytes))
            except ValueError as error:  # fsspec's, of a web server that is asked for some bytes and sends all
                raise OSError(WHOLE) from error
            except TypeError as error:  # s3fs looks into the store's message, which some leave out where an object has changed
                raise error.__context__ or error from None
        count_moved(read=len(data))
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def opened(uri: str, ahead: bool = True) -> Iterator[Any]:
    """Open a file or object for reading.

    Parameters
    ----------
    ahead : bool
        Fetch more of an object than is asked for, since most readers go on from there.

    Yields
    ------
    file object
        Binary and seekable. What goes wrong with the store while reading is a StorageError, so that it can be told from bytes that are wrong.
    """
    store, path = open_store(uri)
    with reported("read", uri):
        file = store.open(path, ahead)
    with file:
        yield _Reported(file, uri)


@contextmanager
def opened_for_arrow(uri: str) -> Iterator[tuple[Any, bool]]:
    """Open a file or object for Arrow, which reads here and there.

    Yields
    ------
    file : file object
    pre_buffer : bool
        Whether Arrow had better ask at once for all that it is going to read.
    """
    store, path = open_store(uri)
    with reported("read", uri):
        file = store.arrow_file(path)
    with file:
        yield (file, False) if store.near else (_Reported(file, uri), True)


def download(uri: str, local: Path) -> None:
    """Copy an object to a local file that appears whole or not at all."""
    store, path = open_store(uri)
    partial = local.with_name(f".{local.name}.{secrets.token_hex(8)}")
    with reported("read", uri):
        store.download(path, partial)
        count_moved(read=partial.stat().st_size)
        partial.replace(local)


def list_folder(uri: str) -> Folder:
    """List what lies right below a folder; empty where an object store has nothing of that name."""
    store, path = open_store(uri)
    with reported("list", uri):
        store.refresh()
        return store.list_folder(path)


def is_folder(uri: str) -> bool:
    """Tell whether a place is a folder, where something is there."""
    store, path = open_store(uri)
    with reported("list", uri):
        return store.is_folder(Entry(path))


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a temporary folder on this machine, and remove it afterwards."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:  # stores' own are reported by then
        where = tempfile.tempdir or "temporary files"  # which may have no folder at all
        raise StorageError(f"{where}: cannot write: {' '.join(str(error).split())}") from error


def local_path(uri: str) -> Path | None:
    """Give the path behind a URI of this machine's file system; None for anything else."""
    store, path = open_store(uri)
    return store.local_path(path)


def bars_file(uri: str) -> bool:
    """Tell whether something lies there that is no file, a folder, a pipe, a socket or a device, so that none can be written."""
    store, path = open_store(uri)
    return store.bars_file(path)


def sha256(path: Path) -> str:
    """Digest a local file: SHA-256, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
