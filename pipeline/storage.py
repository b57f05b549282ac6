"""Files and objects by URI, through fsspec: the only code that reads and writes them, and the commit that creates an object once.

Nothing is ever written in place: an object appears whole or not at all, and creating one that exists changes nothing.
"""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fsspec
from botocore.exceptions import BotoCoreError

from .errors import StorageError

_GLOB = re.compile(r"[*?\[]")


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
    except (OSError, BotoCoreError, ImportError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StorageError(f"{uri}: cannot {doing}: {reason}") from error


def _open_filesystem(uri: str) -> tuple[Any, str]:
    try:
        return fsspec.core.url_to_fs(uri)
    except (ValueError, ImportError) as error:
        raise StorageError(f"{uri}: cannot open: {error}") from error


def _is_local(filesystem) -> bool:
    return "file" in (filesystem.protocol if isinstance(filesystem.protocol, tuple) else (filesystem.protocol,))


def absolute(uri: str) -> str:
    """The same place whatever the working directory, without a trailing slash: workers may have another one."""
    filesystem, path = _open_filesystem(uri)
    return path.rstrip("/") if _is_local(filesystem) else uri.rstrip("/")


def join(uri: str, *parts: str) -> str:
    return "/".join((uri.rstrip("/"), *parts))


def beside(uri: str, name: str) -> str:
    """The place of that name next to ``uri``, or below it where it is the root of a file system or a bucket."""
    start, _, last = uri.rpartition("/")
    return join(start if start and last and not start.endswith(("/", ":")) else uri, name)


def _info(filesystem, path: str, prefix: str) -> Object:
    found = filesystem.info(path)
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


def list_parquet(uri: str) -> list[Object]:
    """The Parquet files that ``uri`` names, sorted: itself, a glob's matches, or all below a folder but names that start with ``_`` or ``.``."""
    filesystem, path = _open_filesystem(uri)
    with _reported("list", uri):
        filesystem.invalidate_cache()
        if _GLOB.search(path):
            roots = filesystem.glob(path)
        elif filesystem.exists(path):
            roots = [path]
        else:
            raise FileNotFoundError(path)
        found = []
        for root in roots:
            if filesystem.isdir(root):
                below = (name for name in filesystem.find(root) if name.endswith((".parquet", ".pq")))
                found += [name for name in below if not any(part[0] in "_." for part in name[len(root) :].split("/") if part)]
            else:
                found.append(root)
        return [_info(filesystem, name, _prefix(filesystem)) for name in sorted(set(found))]


def read(uri: str) -> bytes:
    """All bytes of a file or object."""
    filesystem, path = _open_filesystem(uri)
    with _reported("read", uri):
        return filesystem.cat_file(path)


def read_if_exists(uri: str) -> bytes | None:
    """All bytes, or None where there is nothing."""
    filesystem, path = _open_filesystem(uri)
    with _reported("read", uri):
        try:
            return filesystem.cat_file(path)
        except FileNotFoundError:
            return None


def exists(uri: str) -> bool:
    filesystem, path = _open_filesystem(uri)
    with _reported("look up", uri):
        filesystem.invalidate_cache()
        return filesystem.exists(path)


@contextmanager
def opened(uri: str) -> Iterator[Any]:
    """A seekable binary file for reading; errors while it is read are reported with its URI."""
    filesystem, path = _open_filesystem(uri)
    with (
        _reported("read", uri),
        filesystem.open(path, "rb", **({} if _is_local(filesystem) else {"cache_type": "readahead"})) as file,
    ):
        yield file


def download(uri: str, local: Path) -> None:
    """Copy an object to a local file that appears whole."""
    filesystem, path = _open_filesystem(uri)
    partial = local.with_name(f".{local.name}.{secrets.token_hex(8)}")
    with _reported("read", uri):
        filesystem.get_file(path, str(partial))
        partial.replace(local)


def _create_locally(source: Path, path: str) -> bool:
    """Publish a file by a hard link, which fails if the name is taken."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with source.open("rb") as read_from, partial.open("wb") as write_to:
            while chunk := read_from.read(1 << 20):
                write_to.write(chunk)
            write_to.flush()
            os.fsync(write_to.fileno())
        os.link(partial, target)
    except FileExistsError:
        return False
    finally:
        partial.unlink(missing_ok=True)
    return True


def create(uri: str, source: Path) -> bool:
    """Publish a local file's bytes under ``uri``; False, and nothing changed, where an object is there already.

    Object stores get one conditional PUT (``If-None-Match: *``), larger files a multipart upload whose completion is conditional.
    """
    filesystem, path = _open_filesystem(uri)
    with _reported("write", uri):
        if _is_local(filesystem):
            return _create_locally(source, path)
        filesystem.invalidate_cache()
        if filesystem.exists(path):
            return False
        try:
            conditional = {"mode": "create"} if "s3" in filesystem.protocol else {}
            filesystem.put_file(str(source), path, **conditional)
        except FileExistsError:
            return False
        return True


def remove(uri: str) -> None:
    """Delete all below ``uri``; nothing happens where there is nothing."""
    filesystem, path = _open_filesystem(uri)
    with _reported("delete", uri):
        filesystem.invalidate_cache()
        if filesystem.exists(path):
            filesystem.rm(path, recursive=True)


def local_path(uri: str) -> Path | None:
    """The path behind a URI of this machine's file system, None for anything else."""
    filesystem, path = _open_filesystem(uri)
    return Path(path) if _is_local(filesystem) else None
