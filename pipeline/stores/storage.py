"""Reads of files and objects by URI. Only ``commit``, which writes, and this module touch stores."""

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from ..errors import NotThere, StorageError
from .counted import count_moved
from .filesystem import NotRegular, call_store, is_local, open_filesystem, reported, retry_damaged

MARKS = ("generation", "ETag", "etag", "Content-MD5")  # made anew by stores with every write, as fsspec calls them
TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "modificationTime", "modify", "created")
WHOLE = "the server sends files from their beginning alone, expected any range of bytes"


@dataclass(frozen=True, slots=True)
class Object:
    """A file or object as a listing shows it.

    Attributes
    ----------
    uri : str
    size : int
        Bytes.
    etag : str
        The store's own mark of the bytes; where it has none, size and time, which a copy may keep; empty where there is no time either.
    proven : bool
        Whether it changes whenever the bytes do, whoever writes them.
    """

    uri: str
    size: int
    etag: str
    proven: bool = False

    @property
    def local(self) -> bool:
        """It is a file of this machine, whose URI is its path."""
        return "://" not in self.uri


def join(uri: str, *parts: str) -> str:
    """Name what is below a folder.

    Parameters
    ----------
    uri : str
        Of the folder.
    """
    return "/".join((uri.rstrip("/"), *parts))


def check_below(key: str) -> None:
    """Refuse a key that would lead out of the folder that it is going to be joined to.

    Parameters
    ----------
    key : str
        Read from a file, so anybody may have written it.

    Raises
    ------
    ValueError
        The key is empty, absolute, a URI, or has "..".
    """
    if not key or key.startswith("/") or "://" in key or ".." in key.split("/"):
        raise ValueError(f"{key!r} leads out of the run's folder")


def beside(uri: str, name: str) -> str:
    """Name a place next to another one.

    Returns
    -------
    str
        In the folder that ``uri`` is in, or below ``uri`` where that is the root of a file system or a bucket.
    """
    start, _, last = uri.rpartition("/")
    return join(start if start and last and not start.endswith(("/", ":")) else uri, name)


def _refuse_endless(filesystem: Any, path: str) -> None:
    """A pipe may wait for ever, and a device has no end."""
    if is_local(filesystem) and not (S_ISREG(mode := os.stat(path).st_mode) or S_ISDIR(mode)):
        raise NotRegular("is a pipe, a socket or a device, expected a file")


def _write_time(time: Any) -> Any:
    """One moment as one text: fsspec's memory lists files with seconds since 1970, and says a date of each."""
    return time.timestamp() if isinstance(time, datetime) and time.tzinfo is not None else time


def describe(filesystem: Any, path: str, known: dict[str, Any] | None = None) -> Object:
    """Look up a file or object of a file system."""
    _refuse_endless(filesystem, path)
    found = known or call_store(filesystem, "info", path)
    if found["size"] is None:
        raise OSError(f"{path}: the server does not say how large it is")
    marks, times = ([found[name] for name in names if found.get(name) not in (None, "")] for names in (MARKS, TIMES))
    uri = path if is_local(filesystem) else filesystem.unstrip_protocol(path)
    if marks:
        return Object(uri, int(found["size"]), str(marks[0]).strip('"'), "http" not in filesystem.protocol)  # of servers that make it of a time
    return Object(uri, int(found["size"]), f"{found['size']}-{_write_time(times[0])}" if times else "")


def stat(uri: str) -> Object:
    """Look up a file or object."""
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        filesystem.invalidate_cache()
        return describe(filesystem, path)


def stat_if_exists(uri: str) -> Object | None:
    """Look up a file or object that may be missing.

    Returns
    -------
    Object or None
        None where there is none.
    """
    try:
        return stat(uri)
    except NotThere:
        return None


def read(uri: str) -> bytes:
    """Read a file or object whole."""
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        _refuse_endless(filesystem, path)
        data = call_store(filesystem, "cat_file", path)
    count_moved(read=len(data))
    return data


def read_if_exists(uri: str) -> bytes | None:
    """Read a file or object that may be missing.

    Returns
    -------
    bytes or None
        None where there is none.
    """
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        try:
            _refuse_endless(filesystem, path)
            data = call_store(filesystem, "cat_file", path)
        except FileNotFoundError:
            return None
    count_moved(read=len(data))
    return data


def exists(uri: str) -> bool:
    """Tell whether there is a file, an object or a folder."""
    filesystem, path = open_filesystem(uri)
    with reported("look up", uri):
        filesystem.invalidate_cache()
        return call_store(filesystem, "exists", path)


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
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        _refuse_endless(filesystem, path)
        file = filesystem.open(path, "rb", **({} if is_local(filesystem) else {"cache_type": "readahead" if ahead else "none"}))
        if getattr(file, "size", 0) is None:  # fsspec's, of a web server that says so, or not how much there is
            file.close()
            raise OSError(WHOLE)
    with file:
        yield _Reported(file, uri)


def download(uri: str, local: Path) -> None:
    """Copy an object to a local file that appears whole or not at all."""
    filesystem, path = open_filesystem(uri)
    partial = local.with_name(f".{local.name}.{secrets.token_hex(8)}")
    with reported("read", uri):
        _refuse_endless(filesystem, path)
        call_store(filesystem, "get_file", path, str(partial), n_bytes=call_store(filesystem, "info", path)["size"] or 0)
        count_moved(read=partial.stat().st_size)
        partial.replace(local)


@contextmanager
def scratch() -> Iterator[Path]:
    """Make a temporary folder on this machine, and remove it afterwards.

    Yields
    ------
    Path
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:  # stores' own are reported by then
        where = tempfile.tempdir or "temporary files"  # which may have no folder at all
        raise StorageError(f"{where}: cannot write: {' '.join(str(error).split())}") from error


def local_path(uri: str) -> Path | None:
    """Give the path behind a URI of this machine's file system.

    Returns
    -------
    Path or None
        None for anything that is not a local file.
    """
    filesystem, path = open_filesystem(uri)
    return Path(path) if is_local(filesystem) else None


def sha256(path: Path) -> str:
    """Digest a local file.

    Returns
    -------
    str
        SHA-256, hexadecimal.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
