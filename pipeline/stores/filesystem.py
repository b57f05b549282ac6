"""File systems by URI through fsspec: opening, deadlines, and translation of errors.

Whatever is tried again below, an operation on a store that does not answer ends within minutes.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any
from urllib.parse import urlsplit

import fsspec
from fsspec.asyn import AsyncFileSystem, sync

from ..errors import InvalidRun, NotAFile, NotThere, StorageError, UnknownStore
from ..extras import say_missing
from .counted import count_moved

S3 = "s3"
WEB = ("http://", "https://")
GONE = (404, 410)  # what a web server answers where nothing is
# Of stores, whose errors are no OSErrors; known by name, since they need not be imported for local files.
CLIENTS = ("adlfs.", "aiohttp.", "azure.", "ftplib", "gcsfs.", "google.", "paramiko.", "smbprotocol.")
SECONDS, BYTES_PER_SECOND = 120.0, 1 << 20  # an operation may take so long, and longer if it has more to move than that
# Of one request; botocore tries it again five times, after 5xx too and, in this mode alone, after 429, and waits up to 1, 2, 4, 8, 16 seconds, at
# random, since many would come back at once; s3fs does the whole once more where the store says "SlowDown".
REQUEST = {"connect_timeout": 10, "read_timeout": 30, "retries": {"mode": "legacy", "total_max_attempts": 6}}
ATTEMPTS = 2
# By scheme, the module that fsspec needs for it.
SERVED_BY = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs", "http": "aiohttp", "https": "aiohttp"}


def of_botocore(name: str) -> Any:
    """Find an exception of botocore's to catch."""
    found = sys.modules.get("botocore.exceptions")
    return () if found is None else getattr(found, name)


def find_code(error: OSError) -> str | None:
    """Find what an S3 store called what went wrong."""
    answer = error.__cause__.response if isinstance(error.__cause__, of_botocore("ClientError")) else {}
    return answer.get("Error", {}).get("Code")


class NotRegular(OSError):
    """A pipe may wait for ever, and a device has no end."""


def _cause(error: Exception, uri: str) -> Exception:
    """What went wrong, where a file system has only other words for it."""
    cause = error.__cause__
    if not isinstance(cause, Exception):
        return error
    # fsspec says of a web server that nothing is there, whatever it answers, and if it does not; adlfs packs what goes wrong while it deletes.
    away = isinstance(error, FileNotFoundError) and uri.startswith(WEB) and getattr(cause, "status", None) not in GONE
    return cause if away or isinstance(error, RuntimeError) else error


def _is_of_client(error: Exception) -> bool:
    """Whether a store's client says so: by an error of its own, or by a plain ValueError, as gcsfs of some refusals and adlfs of some names."""
    if type(error).__module__.startswith(CLIENTS):
        return True
    raised_by = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)][-1:]
    return isinstance(error, ValueError) and any(name.startswith(CLIENTS) for name in raised_by)


@contextmanager
def reported(doing: str, uri: str) -> Iterator[None]:
    """Turn what goes wrong inside into a StorageError that says what was tried, and where.

    Parameters
    ----------
    doing : str
        What is tried, as in "cannot read": "read", "write", "list".

    Raises
    ------
    NotThere
        The file is missing.
    NotAFile
        It is a folder, a pipe, a socket or a device.
    """
    try:
        yield
    except Exception as error:
        found = _cause(error, uri)
        said = " ".join(str(found).split()) or type(found).__name__
        if isinstance(found, FileNotFoundError):
            raise (StorageError if doing == "write" else NotThere)(f"{uri}: cannot {doing}: no such file or object") from error
        if isinstance(found, (NotRegular, IsADirectoryError)):
            raise NotAFile(f"{uri}: cannot {doing}: {said}") from error
        known = isinstance(error, (OSError, ImportError, UnicodeEncodeError, of_botocore("BotoCoreError")))
        if not known and not _is_of_client(found):
            raise
        raise StorageError(f"{uri}: cannot {doing}: {said}") from error


@contextmanager
def published() -> Iterator[None]:
    """Take what is missing inside for damage: a finished run lists it, so it is not yet to come."""
    try:
        yield
    except NotThere as error:
        raise InvalidRun(f"{error}, though the run is finished") from error


def _limits(uri: str) -> dict[str, Any]:
    """Options for a store; those of fsspec's own configuration win."""
    if not uri.startswith((f"{S3}://", f"{S3}a://")):
        return {}
    return {"config_kwargs": {**REQUEST, **fsspec.config.conf.get(S3, {}).get("config_kwargs", {})}}


def open_filesystem(uri: str) -> tuple[Any, str]:
    """Open the file system that a URI is on.

    Parameters
    ----------
    uri : str
        A URI, or a path of this machine.

    Returns
    -------
    filesystem : fsspec.AbstractFileSystem
    path : str
        The place on that file system.

    Raises
    ------
    UnknownStore
        The URI's scheme is unknown, or the package that serves it is missing; or it is none.
    """
    if "\0" in uri:
        raise UnknownStore(f"{uri!r}: cannot open: has the character of code 0, which no name has")
    if "::" in uri:
        raise UnknownStore(f"{uri}: cannot open: what lies within another file is not supported, expected one URI without '::'")
    try:
        if uri.startswith(WEB):
            _ = urlsplit(uri).port  # or else its client says that it is none, wherever it is asked first
        filesystem, path = fsspec.core.url_to_fs(uri, **_limits(uri))
    except (ValueError, TypeError, ImportError) as error:
        module = SERVED_BY.get(uri.partition("://")[0]) if isinstance(error, ImportError) else None
        if module is not None:
            raise UnknownStore(say_missing(uri, module, error.__cause__)) from error  # which fsspec has other words for
        raise UnknownStore(f"{uri}: cannot open: {' '.join(str(error).split())}") from error
    except OSError as error:  # some connect as soon as they are made
        raise StorageError(f"{uri}: cannot open: {' '.join(str(error).split())}") from error
    filesystem.retries = ATTEMPTS
    return filesystem, path


def call_store(filesystem: Any, operation: str, *arguments: Any, n_bytes: int = 0, **given: Any) -> Any:
    """Call an operation of a file system, with a deadline where the file system knows deadlines."""
    if not isinstance(filesystem, AsyncFileSystem):
        return retry_damaged(lambda: getattr(filesystem, operation)(*arguments, **given))
    method, deadline = getattr(filesystem, f"_{operation}"), SECONDS + n_bytes / BYTES_PER_SECOND  # not every method that waits for it takes one
    return retry_damaged(lambda: sync(filesystem.loop, method, *arguments, **given, timeout=deadline))


def retry_damaged(operation: Callable[[], Any]) -> Any:
    """Call an operation once more where its answer arrived damaged: a client that finds so by the store's checksum does not ask again by itself."""
    try:
        return operation()
    except of_botocore("FlexibleChecksumError"):
        count_moved(retried=1)
        return operation()


def is_local(filesystem: Any) -> bool:
    """Tell whether a file system is this machine's own."""
    return "file" in (filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,))
