"""Writes to files and objects: created once, or replaced conditionally. Only ``storage`` and this module touch stores.

Nothing is ever written in place: an object appears whole or not at all, creating one that exists changes nothing, and replacing one takes that nobody
else did in the meantime.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fsspec.exceptions import FSTimeoutError

from ..errors import RunConflict, StorageError
from . import conditions
from .counted import count_moved
from .filesystem import ATTEMPTS, S3, call_store, find_code, is_local, open_filesystem, reported
from .locked import exchange
from .removal import delete_below
from .storage import Object, beside, join, read, scratch, stat, stat_if_exists

SINGLE_PUT = 128 << 20  # bytes; larger files go up in pieces, whose completion some stores do not make conditional
# What S3 and its imitations answer where an object is not as the condition says, or is just being written by somebody else.
CONFLICTS = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
UNKNOWN = "NotImplemented"  # what some answer to every condition, as Alibaba's OSS
READ_ONLY = "http"
SWAPS = 5  # lost to others before an object that moves is given up

Change = Callable[[bytes | None], bytes | None]  # from what an object holds, None where there is none, to what it shall hold, None to leave it


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
    return isinstance(error, FileExistsError) or find_code(error) in CONFLICTS


def _put_new(put: Callable[..., Any], **condition: str) -> None:
    """Write on a condition; on a store that knows none, as on one that ignores it: of runs, `creates_once` lets a single writer do so alone."""
    try:
        put(**condition)
    except OSError as error:
        if find_code(error) != UNKNOWN:
            raise
        put()


def _put_pieces(filesystem: Any, path: str, source: Path) -> None:
    """A multipart upload whose completion is conditional, aborted where it fails: at a deadline too, at which s3fs's own leaves its pieces behind."""
    bucket, key, _ = filesystem.split_path(path)

    def call_upload(operation: str, n_bytes: int = 0, **given: Any) -> dict[str, Any]:
        return call_store(filesystem, "call_s3", operation, n_bytes=n_bytes, Bucket=bucket, Key=key, **given)

    upload = call_upload("create_multipart_upload")["UploadId"]
    pieces: list[dict[str, Any]] = []
    try:
        with source.open("rb") as file:
            while piece := file.read(SINGLE_PUT // 2):
                number = len(pieces) + 1
                etag = call_upload("upload_part", len(piece), UploadId=upload, PartNumber=number, Body=piece)["ETag"]
                pieces.append({"PartNumber": number, "ETag": etag})
        done = {"UploadId": upload, "MultipartUpload": {"Parts": pieces}}
        _put_new(lambda **condition: call_upload("complete_multipart_upload", **done, **condition), IfNoneMatch="*")
    except BaseException:
        with suppress(OSError):  # where it is complete, and only the answer was lost
            call_upload("abort_multipart_upload", UploadId=upload)
        raise


def _put_once(filesystem: Any, path: str, source: Path) -> None:
    n_bytes = source.stat().st_size
    if S3 not in filesystem.protocol:
        conditions.put_new(filesystem, path, source)
    elif n_bytes <= SINGLE_PUT:
        given = {"n_bytes": n_bytes, "chunksize": SINGLE_PUT}
        _put_new(lambda **condition: call_store(filesystem, "put_file", str(source), path, **given, **condition), mode="create")
    else:
        _put_pieces(filesystem, path, source)


def _put(filesystem: Any, path: str, source: Path) -> bool:
    """One conditional PUT, in pieces where it is large; False where an object is there then, maybe one's own whose acknowledgement was lost."""
    for left in reversed(range(ATTEMPTS)):
        try:
            _put_once(filesystem, path, source)
            return True
        except OSError as error:
            if _is_conflict(error) or call_store(filesystem, "exists", path):
                return False
            if not (left and isinstance(error, FSTimeoutError)):  # else it hung, which a client that awaits "100 Continue" does without limit
                raise
            count_moved(retried=1)
    return False


def create(uri: str, source: Path) -> bool:
    """Publish a local file's bytes under a name that nothing has yet.

    A store may have created the object and lost the answer, so what is there may be one's own: look before calling it somebody else's.

    Parameters
    ----------
    source : Path
        The local file.

    Returns
    -------
    bool
        False, and nothing changed, where an object is there already.
    """
    filesystem, path = open_filesystem(uri)
    with reported("write", uri):
        if is_local(filesystem):
            made = _create_locally(source, path)
        else:
            filesystem.invalidate_cache()
            made = not call_store(filesystem, "exists", path) and _put(filesystem, path, source)
    count_moved(written=source.stat().st_size if made else 0)
    return made


def create_once(uri: str, source: Path) -> None:
    """Publish a local file's bytes under a name that nothing has yet, or find them there.

    Parameters
    ----------
    source : Path
        The local file.

    Raises
    ------
    RunConflict
        There is another file.
    """
    if not create(uri, source) and read(uri) != source.read_bytes():
        raise RunConflict(f"{uri}: holds another file; choose another name")


def _check_local(folder: str) -> None:
    """A file without a name, in the folder or the first above it that is there."""
    there = Path(folder)
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(there))
    with _open_partial(there):
        pass


def check_writable(folder: str) -> None:
    """Refuse a folder that cannot be written, before hours of work are to be written there. Leaves nothing behind.

    Parameters
    ----------
    folder : str
        URI. It need not be there yet, but a bucket has to be.
    """
    filesystem, path = open_filesystem(join(folder, f"_probe-{secrets.token_hex(8)}"))
    with scratch() as local, reported("write", folder):
        if is_local(filesystem):
            _check_local(os.path.dirname(path))
            return
        if READ_ONLY in filesystem.protocol:
            raise OSError("what is on a web server is only read")
        (local / "probe").touch()
        try:
            _put(filesystem, path, local / "probe")
            call_store(filesystem, "rm_file", path)
        except NotImplementedError as error:  # fsspec's word for a file system that is only read
            raise OSError("nothing can be written there") from error


def creates_once(folder: str) -> bool:
    """Try whether a store refuses to create what is there already, as some do not, or know no conditions. Leaves nothing behind.

    Parameters
    ----------
    folder : str
        URI; the attempt is made below it.
    """
    uri = join(folder, f"_probe-{secrets.token_hex(8)}")
    filesystem, path = open_filesystem(uri)
    if is_local(filesystem):
        return True  # a link is refused by every file system
    with scratch() as local, reported("write", folder):
        (local / "probe").touch()
        _, twice = (_put(filesystem, path, local / "probe") for _ in range(2))
        call_store(filesystem, "rm_file", path)
    return not twice


def _swap(filesystem: Any, path: str, held: Object | None, made: bytes) -> bool:
    """One conditional PUT; False where the object is not, or is no longer, the one that was held."""
    if conditions.has_conditions(filesystem):
        return conditions.swap(filesystem, path, held, made)
    bucket, key, _ = filesystem.split_path(path)
    # Ceph compares with the ETag as it keeps it, without the quotes that HTTP has.
    marks: list[dict[str, Any]] = [{"IfNoneMatch": "*"}] if held is None else [{"IfMatch": f'"{held.etag}"'}, {"IfMatch": held.etag}]
    for condition in marks:
        try:
            call_store(filesystem, "call_s3", "put_object", Bucket=bucket, Key=key, Body=made, **condition)
        except OSError as error:
            if not (_is_conflict(error) or (held and isinstance(error, FileNotFoundError))):
                raise
        else:
            return True
    return False


def update(uri: str, change: Change, single_writer: bool = False) -> None:
    """Replace what an object holds, unless somebody else has replaced it in the meantime (compare and swap).

    Parameters
    ----------
    change : callable
        From what the object holds, None where there is none, to what it shall hold, None to leave it. Called again where somebody else was faster,
        and possibly with its own result, where the store lost an answer.
    single_writer : bool
        Nobody else writes the object, so nothing is compared.
    """
    filesystem, path = open_filesystem(uri)

    def counted(held: bytes | None) -> bytes | None:
        made = change(held)
        count_moved(read=len(held or b""), written=len(made or b""))
        return made

    with reported("write", uri):
        if is_local(filesystem):
            exchange(path, counted, single_writer)
            return
        for left in reversed(range(SWAPS)):
            held = stat_if_exists(uri)
            made = counted(None if held is None else call_store(filesystem, "cat_file", path))
            if made is None:
                return
            if single_writer:
                call_store(filesystem, "pipe_file", path, made)
                return
            try:
                if _swap(filesystem, path, held, made):
                    return
            except FSTimeoutError:  # the bytes may have been written all the same
                if not left:
                    raise
    raise StorageError(f"{uri}: cannot write: it was changed by others {SWAPS} times in a row")


def swaps(uri: str) -> bool:
    """Try whether a store replaces an object that is as it was, and refuses to where it is not, as some do not. Leaves nothing behind.

    Parameters
    ----------
    uri : str
        The attempt is made beside it.
    """
    uri = beside(uri, f"_probe-{secrets.token_hex(8)}")
    filesystem, path = open_filesystem(uri)
    if is_local(filesystem) or not (S3 in filesystem.protocol or conditions.has_conditions(filesystem)):
        return is_local(filesystem)
    found = None
    with reported("write", uri):
        try:
            _swap(filesystem, path, None, b"0")
            held = stat(uri)
            for made in (b"1", b"2"):
                _swap(filesystem, path, held, made)
            found = call_store(filesystem, "cat_file", path)  # not what was answered, which may be lost
        except OSError as error:
            if find_code(error) != UNKNOWN:
                raise
        with suppress(FileNotFoundError):  # of a store that knows no condition
            call_store(filesystem, "rm_file", path)
    return found == b"1"


def remove(uri: str) -> None:
    """Delete all below a URI; do nothing where there is nothing. A name that would be a pattern is taken as it is."""
    filesystem, path = open_filesystem(uri)
    with reported("delete", uri), suppress(FileNotFoundError):  # also where somebody else deletes it at the same time
        delete_below(filesystem, path)
