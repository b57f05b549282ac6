"""Stores by URI: opening, and the only place that distinguishes their kinds."""

import os
import re
from functools import cache
from typing import Any

import fsspec

from ..errors import StorageError, UnknownStore
from ..extras import say_missing
from .calls import ATTEMPTS
from .dialects.azure import AZURE
from .dialects.dialect import Dialect
from .dialects.google import GOOGLE
from .dialects.plain import PLAIN
from .dialects.s3 import S3
from .dialects.web import WEB
from .local import LocalStore
from .object_store import ObjectStore, find_schemes, naming
from .store import Store

DIALECTS = {"s3": S3, "s3a": S3, "gs": GOOGLE, "gcs": GOOGLE, "abfs": AZURE, "az": AZURE, "http": WEB, "https": WEB}


_BEYOND_PATHS = re.compile(r"://|::|\0")  # what a plain path, which needs no look at fsspec's rules, has not


def find_dialect(scheme: str) -> Dialect:
    """Find the dialect of a scheme."""
    return DIALECTS.get(scheme, PLAIN)


def open_filesystem(uri: str) -> tuple[Any, str]:
    """Open the fsspec file system of a URI, and return it with the path there."""
    if "\0" in uri:
        raise UnknownStore(f"{uri!r}: cannot open: has the character of code 0, which no name has")
    if "::" in uri:
        raise UnknownStore(f"{uri}: cannot open: what lies within another file is not supported, expected one URI without '::'")
    scheme, separator, _ = uri.partition("://")
    dialect = find_dialect(scheme if separator else "")
    try:
        filesystem, path = fsspec.core.url_to_fs(uri, **dialect.options(uri))
    except (ValueError, TypeError, ImportError) as error:
        if dialect.module is not None and isinstance(error, ImportError):
            raise UnknownStore(say_missing(uri, dialect.module, error.__cause__)) from error  # which fsspec has other words for
        raise UnknownStore(f"{uri}: cannot open: {' '.join(str(error).split())}") from error
    except OSError as error:  # some connect as soon as they are made
        raise StorageError(f"{uri}: cannot open: {' '.join(str(error).split())}") from error
    filesystem.retries = ATTEMPTS
    return filesystem, path


@cache
def _open_local() -> LocalStore:
    return LocalStore(open_filesystem("/")[0])


def open_store(uri: str) -> tuple[Store, str]:
    """Open the store of a URI or local path, and return it with the path there; an unknown scheme is an UnknownStore."""
    if os.sep == "/" and uri.startswith("/") and not _BEYOND_PATHS.search(uri):
        return _open_local(), uri.rstrip("/") or "/"
    filesystem, path = open_filesystem(uri)
    scheme = find_schemes(filesystem)[0]
    if scheme == "file":
        return LocalStore(filesystem), path
    return ObjectStore(filesystem, find_dialect(scheme), naming(filesystem, uri, path)), path
