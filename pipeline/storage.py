"""Files and objects by URI, through fsspec: the only code that reads and writes them, and the commit that creates an object once.

Nothing is ever written in place: an object appears whole or not at all, and creating one that exists changes nothing. Whatever is tried again below,
an operation on a store that does not answer ends within minutes.
"""

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from botocore.exceptions import BotoCoreError, ClientError, FlexibleChecksumError
from fsspec.asyn import AsyncFileSystem
from fsspec.exceptions import FSTimeoutError

from .errors import StorageError

_GLOB = re.compile(r"[*?\[]")
S3 = "s3"
HTTP = "aiohttp."  # whose errors of answers that break off are no OSErrors; known by name, since it need not be imported for local files
SECONDS, BYTES_PER_SECOND = 120.0, 1 << 20  # an operation may take so long, and longer if it has more to move than that
# Of one request; botocore tries it again three times, after 5xx too and, in this mode alone, after 429, and s3fs the whole once more.
REQUEST = {"connect_timeout": 10, "read_timeout": 30, "retries": {"mode": "legacy", "total_max_attempts": 4}}
ATTEMPTS = 2
SINGLE_PUT = 128 << 20  # bytes; larger files go up in pieces, whose completion some stores do not make conditional
# What S3 and its imitations answer where an object is there already, or is just being created by somebody else.
CONFLICTS = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}


@dataclass(frozen=True, slots=True)
class Object:
    """A file or object as a listing shows it. ``etag`` changes whenever its bytes do."""

    uri: str
    size: int
    etag: str


@contextmanager
def _reported(doing: str, uri: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StorageError(f"{uri}: cannot {doing}: no such file or object") from error
    except Exception as error:  # HTTP libraries have error types of their own; what is none of theirs goes on
        if not (isinstance(error, OSError | BotoCoreError | ImportError) or type(error).__module__.startswith(HTTP)):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StorageError(f"{uri}: cannot {doing}: {reason}") from error


def _limits(uri: str) -> dict[str, Any]:
    """Options for a store; those of fsspec's own configuration win."""
    if not uri.startswith((f"{S3}://", f"{S3}a://")):
        return {}
    return {"config_kwargs": {**REQUEST, **fsspec.config.conf.get(S3, {}).get("config_kwargs", {})}}


def _open_filesystem(uri: str) -> tuple[Any, str]:
    try:
        filesystem, path = fsspec.core.url_to_fs(uri, **_limits(uri))
    except (ValueError, ImportError) as error:
        raise StorageError(f"{uri}: cannot open: {error}") from error
    filesystem.retries = ATTEMPTS
    return filesystem, path


def _ask(filesystem, operation: str, *arguments: Any, n_bytes: int = 0, **given: Any) -> Any:
    """An operation, cut off after its time on file systems that know how to (fsspec's asynchronous ones, such as S3's)."""
    deadline = {"timeout": SECONDS + n_bytes / BYTES_PER_SECOND} if isinstance(filesystem, AsyncFileSystem) else {}
    return _again(lambda: getattr(filesystem, operation)(*arguments, **given, **deadline))


def _again(ask: Callable[[], Any]) -> Any:
    """What comes of asking, once more where the answer was damaged on its way: a client that sees so by the store's checksum does not ask again."""
    try:
        return ask()
    except FlexibleChecksumError:
        return ask()


def _is_local(filesystem) -> bool:
    return "file" in (filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,))


def absolute(uri: str) -> str:
    """The same place whatever the working directory, without a trailing slash: workers may have another one."""
    filesystem, path = _open_filesystem(uri)
    return path.rstrip("/") if _is_local(filesystem) else uri.rstrip("/")


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
    found = _ask(filesystem, "info", path)
    etag = found.get("ETag") or found.get("etag") or f"{found['size']}-{found.get('mtime', '')}"
    return Object(prefix + path, int(found["size"]), str(etag).strip('"'))


def _prefix(filesystem) -> str:
    """What turns the filesystem's paths back into URIs."""
    return "" if _is_local(filesystem) else filesystem.unstrip_protocol("")


def stat(uri: str) -> Object:
    """Size and ETag of one file or object; StorageError if there is none."""
    filesystem, path = _open_filesystem(uri)
    with _reported("read", uri):
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
    filesystem, path = _open_filesystem(uri)
    with _reported("list", uri):
        filesystem.invalidate_cache()
        if _GLOB.search(path):
            roots = _ask(filesystem, "glob", path)
        elif _ask(filesystem, "exists", path):
            roots = [path]
        else:
            raise FileNotFoundError(path)
        found = []
        for root in roots:
            if _ask(filesystem, "isdir", root):
                below = (name for name in _ask(filesystem, "find", root) if name.endswith((".parquet", ".pq")))
                found += [name for name in below if not any(part[0] in "_." for part in name[len(root) :].split("/") if part)]
            else:
                found.append(root)
        return [_info(filesystem, name, _prefix(filesystem)) for name in sorted(set(found))]


def read(uri: str) -> bytes:
    """All bytes of a file or object."""
    filesystem, path = _open_filesystem(uri)
    with _reported("read", uri):
        return _ask(filesystem, "cat_file", path)


def read_if_exists(uri: str) -> bytes | None:
    """All bytes, or None where there is nothing."""
    filesystem, path = _open_filesystem(uri)
    with _reported("read", uri):
        try:
            return _ask(filesystem, "cat_file", path)
        except FileNotFoundError:
            return None


def exists(uri: str) -> bool:
    filesystem, path = _open_filesystem(uri)
    with _reported("look up", uri):
        filesystem.invalidate_cache()
        return _ask(filesystem, "exists", path)


class _Reported:
    """A file whose own errors are StorageErrors, so that whoever reads it can tell them from what is wrong with the bytes."""

    def __init__(self, file: Any, uri: str):
        self._file, self._uri = file, uri

    def read(self, n_bytes: int = -1) -> bytes:
        with _reported("read", self._uri):
            try:
                return _again(lambda: self._file.read(n_bytes))
            except TypeError as error:  # s3fs looks into the store's message, which some leave out where an object has changed
                raise error.__context__ or error from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def opened(uri: str) -> Iterator[Any]:
    """A seekable binary file for reading; what the store answers instead of bytes is a StorageError."""
    filesystem, path = _open_filesystem(uri)
    with _reported("read", uri):
        file = filesystem.open(path, "rb", **({} if _is_local(filesystem) else {"cache_type": "readahead"}))
    with file:
        yield _Reported(file, uri)


def download(uri: str, local: Path) -> None:
    """Copy an object to a local file that appears whole."""
    filesystem, path = _open_filesystem(uri)
    partial = local.with_name(f".{local.name}.{secrets.token_hex(8)}")
    with _reported("read", uri):
        _ask(filesystem, "get_file", path, str(partial), n_bytes=_ask(filesystem, "size", path) or 0)
        partial.replace(local)


@contextmanager
def _open_partial(folder: Path) -> Iterator[tuple[Any, str]]:
    """A file to write that has no name, so that nothing of it is left whatever ends its writer, and where to link it from; a hidden one where the
    file system knows no such files."""
    try:
        file = os.fdopen(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
    except (AttributeError, OSError):
        partial = folder / f".partial-{secrets.token_hex(8)}"
        try:
            with partial.open("xb") as file:
                yield file, str(partial)
        finally:
            partial.unlink(missing_ok=True)
    else:
        with file:
            yield file, f"/proc/self/fd/{file.fileno()}"


def _create_locally(source: Path, path: str) -> bool:
    """Publish a file by a hard link, which fails if the name is taken."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        with source.open("rb") as read_from, _open_partial(target.parent) as (write_to, partial):
            shutil.copyfileobj(read_from, write_to, 1 << 20)
            write_to.flush()
            os.fsync(write_to.fileno())
            os.link(partial, target, src_dir_fd=folder)  # with a descriptor, links are followed
        os.fsync(folder)  # so that the name outlives a loss of power
    except FileExistsError:
        return False
    finally:
        os.close(folder)
    return True


def _is_conflict(error: OSError) -> bool:
    """Whether a conditional PUT was refused since the object is there, in whatever words."""
    answer = error.__cause__.response if isinstance(error.__cause__, ClientError) else {}
    return isinstance(error, FileExistsError) or answer.get("Error", {}).get("Code") in CONFLICTS


def _put_pieces(filesystem, path: str, source: Path) -> None:
    """A multipart upload whose completion is conditional, aborted where it fails: at a deadline too, at which s3fs's own leaves its pieces behind."""
    bucket, key, _ = filesystem.split_path(path)

    def call(operation: str, n_bytes: int = 0, **given: Any) -> dict[str, Any]:
        return _ask(filesystem, "call_s3", operation, n_bytes=n_bytes, Bucket=bucket, Key=key, **given)

    upload = call("create_multipart_upload")["UploadId"]
    pieces: list[dict[str, Any]] = []
    try:
        with source.open("rb") as file:
            while piece := file.read(SINGLE_PUT // 2):
                number = len(pieces) + 1
                etag = call("upload_part", len(piece), UploadId=upload, PartNumber=number, Body=piece)["ETag"]
                pieces.append({"PartNumber": number, "ETag": etag})
        call("complete_multipart_upload", UploadId=upload, MultipartUpload={"Parts": pieces}, IfNoneMatch="*")
    except BaseException:
        with suppress(OSError):  # where it is complete, and only the answer was lost
            call("abort_multipart_upload", UploadId=upload)
        raise


def _put_once(filesystem, path: str, source: Path) -> None:
    n_bytes = source.stat().st_size
    if S3 not in filesystem.protocol:
        _ask(filesystem, "put_file", str(source), path, n_bytes=n_bytes)
    elif n_bytes <= SINGLE_PUT:
        _ask(filesystem, "put_file", str(source), path, n_bytes=n_bytes, mode="create", chunksize=SINGLE_PUT)
    else:
        _put_pieces(filesystem, path, source)


def _put(filesystem, path: str, source: Path) -> bool:
    """One conditional PUT, in pieces where it is large; False where an object is there then, maybe one's own whose acknowledgement was lost."""
    for left in reversed(range(ATTEMPTS)):
        try:
            _put_once(filesystem, path, source)
            return True
        except OSError as error:
            if _is_conflict(error) or _ask(filesystem, "exists", path):
                return False
            if not (left and isinstance(error, FSTimeoutError)):  # else it hung, which a client that awaits "100 Continue" does without limit
                raise
    return False


def create(uri: str, source: Path) -> bool:
    """Publish a local file's bytes under ``uri``; False, and nothing changed, where an object is there already.

    A store may have created the object and lost the answer: what is there may be one's own, so look before calling it somebody else's.
    """
    filesystem, path = _open_filesystem(uri)
    with _reported("write", uri):
        if _is_local(filesystem):
            return _create_locally(source, path)
        filesystem.invalidate_cache()
        return not _ask(filesystem, "exists", path) and _put(filesystem, path, source)


def creates_once(folder: str) -> bool:
    """Whether the store refuses to create below ``folder`` what is there already, which some do not; leaves nothing behind."""
    uri = join(folder, f"_probe-{secrets.token_hex(8)}")
    filesystem, path = _open_filesystem(uri)
    if _is_local(filesystem):
        return True  # a link is refused by every file system
    with scratch() as local, _reported("write", folder):
        (local / "probe").touch()
        _, again = (_put(filesystem, path, local / "probe") for _ in range(2))
        _ask(filesystem, "rm_file", path)
    return not again


def remove(uri: str) -> None:
    """Delete all below ``uri``; nothing happens where there is nothing."""
    filesystem, path = _open_filesystem(uri)
    with _reported("delete", uri), suppress(FileNotFoundError):  # also where somebody else deletes it at the same time
        filesystem.invalidate_cache()
        _ask(filesystem, "rm", path, recursive=True)


def abort_uploads(uri: str) -> None:
    """Abort uploads in pieces of objects below the folder ``uri``: a writer that was killed leaves what it had sent, which no listing shows. Nobody
    may be creating objects there that are needed. Whoever may not look for uploads leaves them to the store."""
    filesystem, path = _open_filesystem(uri)
    if S3 not in filesystem.protocol:
        return
    bucket, key, _ = filesystem.split_path(path)
    more: dict[str, Any] = {}
    with suppress(OSError):
        while True:
            found = _ask(filesystem, "call_s3", "list_multipart_uploads", Bucket=bucket, Prefix=f"{key}/", **more)
            for upload in found.get("Uploads", ()):
                _ask(filesystem, "call_s3", "abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
            if not found.get("IsTruncated"):
                return
            more = {"KeyMarker": found["NextKeyMarker"], "UploadIdMarker": found["NextUploadIdMarker"]}


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
    filesystem, path = _open_filesystem(uri)
    return Path(path) if _is_local(filesystem) else None
