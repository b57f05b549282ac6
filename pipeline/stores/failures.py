"""Translation of the errors of store clients into one-line StorageErrors."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any
from urllib.parse import urlsplit

from ..errors import InvalidRun, NotAFile, NotThere, StorageError, UnusablePlace

WEB = ("http://", "https://")
UNKNOWN = "NotImplemented"  # what some stores answer to every condition, as Alibaba's OSS
BUCKETS = ("s3://", "gs://", "gcs://", "az://", "abfs://")  # where a URI without a path is a bucket's
NO_BUCKET = re.compile(r"specified (bucket|container) does not exist", re.IGNORECASE)  # in the words of Amazon, Google and Azure
GONE = (404, 410)  # what a web server answers where nothing is
# Of stores, whose errors are no OSErrors; known by name, since they need not be imported for local files.
CLIENTS = ("adlfs.", "aiohttp.", "azure.", "ftplib", "gcsfs.", "google.", "paramiko.", "smbprotocol.")


def of_botocore(name: str) -> Any:
    """Find an exception of botocore's to catch."""
    found = sys.modules.get("botocore.exceptions")
    return () if found is None else getattr(found, name)


def find_code(error: OSError) -> str | None:
    """Find what an S3 store called what went wrong."""
    answer = error.__cause__.response if isinstance(error.__cause__, of_botocore("ClientError")) else {}
    return answer.get("Error", {}).get("Code")


def _lacks_bucket(error: Exception, uri: str) -> bool:
    """Tell whether a store said that there is no such bucket, or container, by a code, as S3 and its imitations, or in words."""
    if isinstance(error, FileNotFoundError) and uri.startswith(BUCKETS) and not urlsplit(uri).path.strip("/"):
        return True
    return (isinstance(error, OSError) and find_code(error) == "NoSuchBucket") or NO_BUCKET.search(str(error)) is not None


class NotRegular(OSError):
    """A pipe may wait for ever, and a device has no end."""


def _cause(error: Exception, uri: str) -> Exception:
    """Return the underlying error where the file system hides it."""
    cause = error.__cause__
    if not isinstance(cause, Exception):
        return error
    # fsspec says of a web server that nothing is there, whatever it answers, and if it does not; adlfs packs what goes wrong while it deletes.
    away = isinstance(error, FileNotFoundError) and uri.startswith(WEB) and getattr(cause, "status", None) not in GONE
    return cause if away or isinstance(error, RuntimeError) else error


def _is_of_client(error: Exception) -> bool:
    """Tell whether a store's client raised the error: one of its own, or a plain ValueError, as gcsfs and adlfs do."""
    if type(error).__module__.startswith(CLIENTS):
        return True
    raised_by = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)][-1:]
    return isinstance(error, ValueError) and any(name.startswith(CLIENTS) for name in raised_by)


@contextmanager
def reported(doing: str, uri: str) -> Iterator[None]:
    """Turn errors inside into a StorageError with the operation and the URI.

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
    UnusablePlace
        Its bucket does not exist.
    """
    try:
        yield
    except Exception as error:
        found = _cause(error, uri)
        said = " ".join(str(found).split()) or type(found).__name__
        if _lacks_bucket(error, uri):
            raise UnusablePlace(f"{uri}: cannot {doing}: bucket {urlsplit(uri).netloc.rpartition('@')[2]} does not exist") from error
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
    """Turn NotThere inside into InvalidRun: what a finished run lists must exist."""
    try:
        yield
    except NotThere as error:
        raise InvalidRun(f"{error}, though the run is finished") from error
