"""Files and objects by URI, through fsspec: where they are and what they hold. With ``commit``, which writes them, the only code that touches them.

Whatever is tried again below, an operation on a store that does not answer ends within minutes.
"""

import hashlib
import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem

from ..errors import StorageError

_GLOB = re.compile(r"[*?\[]")
S3 = "s3"
HTTP = "aiohttp."  # whose errors of answers that break off are no OSErrors; known by name, since it need not be imported for local files
SECONDS, BYTES_PER_SECOND = 120.0, 1 << 20  # an operation may take so long, and longer if it has more to move than that
# Of one request; botocore tries it again three times, after 5xx too and, in this mode alone, after 429, and s3fs the whole once more.
REQUEST = {"connect_timeout": 10, "read_timeout": 30, "retries": {"mode": "legacy", "total_max_attempts": 4}}
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Object:
    """A file or object as a listing shows it. ``etag`` changes whenever its bytes do."""

    uri: str
    size: int
    etag: str


def of_botocore(name: str) -> Any:
    """An exception of botocore's to catch, which is none where nothing imported botocore: it need not be installed for local files."""
    found = sys.modules.get("botocore.exceptions")
    return () if found is None else getattr(found, name)


@contextmanager
def reported(doing: str, uri: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StorageError(f"{uri}: cannot {doing}: no such file or object") from error
    except Exception as error:  # HTTP libraries have error types of their own; what is none of theirs goes on
        known = isinstance(error, (OSError, ImportError, of_botocore("BotoCoreError")))
        if not known and not type(error).__module__.startswith(HTTP):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StorageError(f"{uri}: cannot {doing}: {reason}") from error


def _limits(uri: str) -> dict[str, Any]:
    """Options for a store; those of fsspec's own configuration win."""
    if not uri.startswith((f"{S3}://", f"{S3}a://")):
        return {}
    return {"config_kwargs": {**REQUEST, **fsspec.config.conf.get(S3, {}).get("config_kwargs", {})}}


def open_filesystem(uri: str) -> tuple[Any, str]:
    try:
        filesystem, path = fsspec.core.url_to_fs(uri, **_limits(uri))
    except (ValueError, ImportError) as error:
        raise StorageError(f"{uri}: cannot open: {error}") from error
    filesystem.retries = ATTEMPTS
    return filesystem, path


def call_store(filesystem, operation: str, *arguments: Any, n_bytes: int = 0, **given: Any) -> Any:
    """An operation, cut off after its time on file systems that know how to (fsspec's asynchronous ones, such as S3's)."""
    deadline = {"timeout": SECONDS + n_bytes / BYTES_PER_SECOND} if isinstance(filesystem, AsyncFileSystem) else {}
    return _retry_damaged(lambda: getattr(filesystem, operation)(*arguments, **given, **deadline))


def _retry_damaged(operation: Callable[[], Any]) -> Any:
    """What comes of asking, once more where the answer was damaged on its way: a client that sees so by the store's checksum does not ask again."""
    try:
        return operation()
    except of_botocore("FlexibleChecksumError"):
        return operation()


def is_local(filesystem) -> bool:
    return "file" in (filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,))


def absolute(uri: str) -> str:
    """The same place whatever the working directory, without a trailing slash: workers may have another one."""
    filesystem, path = open_filesystem(uri)
    return path.rstrip("/") if is_local(filesystem) else uri.rstrip("/")


def join(uri: str, *parts: str) -> str:
    return "/".join((uri.rstrip("/"), *parts))


def check_below(key: str) -> None:
    """ValueError unless a key that was read from a file stays below what it will be joined to."""
    if not key or key.startswith("/") or "://" in key or ".." in key.split("/"):
        raise ValueError(f"{key!r} leads out of the run's folder")


def beside(uri: str, name: str) -> str:
    """The place of that name next to ``uri``, or below it where it is the root of a file system or a bucket."""
    start, _, last = uri.rpartition("/")
    return join(start if start and last and not start.endswith(("/", ":")) else uri, name)


def _info(filesystem, path: str, prefix: str) -> Object:
    found = call_store(filesystem, "info", path)
    etag = found.get("ETag") or found.get("etag") or f"{found['size']}-{found.get('mtime', '')}"
    return Object(prefix + path, int(found["size"]), str(etag).strip('"'))


def _prefix(filesystem) -> str:
    """What turns the filesystem's paths back into URIs."""
    return "" if is_local(filesystem) else filesystem.unstrip_protocol("")


def stat(uri: str) -> Object:
    """Size and ETag of one file or object; StorageError if there is none."""
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        filesystem.invalidate_cache()
        return _info(filesystem, path, _prefix(filesystem))


def stat_if_exists(uri: str) -> Object | None:
    """Size and ETag of one file or object, None where there is none."""
    try:
        return stat(uri)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def list_parquet(uri: str) -> list[Object]:
    """The Parquet files that ``uri`` names, sorted: itself, a glob's matches, or all below a folder but names that start with ``_`` or ``.``."""
    filesystem, path = open_filesystem(uri)
    with reported("list", uri):
        filesystem.invalidate_cache()
        if _GLOB.search(path):
            roots = call_store(filesystem, "glob", path)
        elif call_store(filesystem, "exists", path):
            roots = [path]
        else:
            raise FileNotFoundError(path)
        found = []
        for root in roots:
            if call_store(filesystem, "isdir", root):
                below = (name for name in call_store(filesystem, "find", root) if name.endswith((".parquet", ".pq")))
                found += [name for name in below if not any(part[0] in "_." for part in name[len(root) :].split("/") if part)]
            else:
                found.append(root)
        return [_info(filesystem, name, _prefix(filesystem)) for name in sorted(set(found))]


def read(uri: str) -> bytes:
    """All bytes of a file or object."""
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        return call_store(filesystem, "cat_file", path)


def read_if_exists(uri: str) -> bytes | None:
    """All bytes, or None where there is nothing."""
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        try:
            return call_store(filesystem, "cat_file", path)
        except FileNotFoundError:
            return None


def exists(uri: str) -> bool:
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
                return _retry_damaged(lambda: self._file.read(n_bytes))
            except TypeError as error:  # s3fs looks into the store's message, which some leave out where an object has changed
                raise error.__context__ or error from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def opened(uri: str) -> Iterator[Any]:
    """A seekable binary file for reading; what the store answers instead of bytes is a StorageError."""
    filesystem, path = open_filesystem(uri)
    with reported("read", uri):
        file = filesystem.open(path, "rb", **({} if is_local(filesystem) else {"cache_type": "readahead"}))
    with file:
        yield _Reported(file, uri)


def download(uri: str, local: Path) -> None:
    """Copy an object to a local file that appears whole."""
    filesystem, path = open_filesystem(uri)
    partial = local.with_name(f".{local.name}.{secrets.token_hex(8)}")
    with reported("read", uri):
        call_store(filesystem, "get_file", path, str(partial), n_bytes=call_store(filesystem, "size", path) or 0)
        partial.replace(local)


@contextmanager
def scratch() -> Iterator[Path]:
    """A temporary folder on this machine, whose disk may be full too."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:  # stores' own are reported by then
        raise StorageError(f"{tempfile.gettempdir()}: cannot write: {' '.join(str(error).split())}") from error


def local_path(uri: str) -> Path | None:
    """The path behind a URI of this machine's file system, None for anything else."""
    filesystem, path = open_filesystem(uri)
    return Path(path) if is_local(filesystem) else None


def sha256(path: Path) -> str:
    """Hex digest of a local file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
