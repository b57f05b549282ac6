"""S3 and compatible stores: conditional writes by ETag, multipart uploads, and lists by prefix."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec

from ..calls import call_store
from ..failures import UNKNOWN, find_code
from ..globs import EVERY, Steps, match_glob
from ..store import Entry, Object
from .plain import PLAIN, find_all, find_below, is_dir, list_children

SINGLE_PUT = 128 << 20  # bytes; larger files go up in pieces, whose completion some stores do not make conditional
# What S3 and its imitations answer where an object is not as the condition says, or is just being written by somebody else.
CONFLICTS = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
AT_ONCE = 1000  # objects that are deleted by one request
# Of one request; botocore tries it again five times, after 5xx too and, in this mode alone, after 429, and waits up to 1, 2, 4, 8, 16 seconds, at
# random, since many would come back at once; s3fs does the whole once more where the store says "SlowDown".
REQUEST = {"connect_timeout": 10, "read_timeout": 30, "retries": {"mode": "legacy", "total_max_attempts": 6}}


def _options(uri: str) -> dict[str, Any]:
    """Those of fsspec's own configuration win."""
    return {"config_kwargs": {**REQUEST, **fsspec.config.conf.get("s3", {}).get("config_kwargs", {})}}


def _is_conflict(error: OSError) -> bool:
    """Whether a conditional PUT was refused since the object is there, in whatever words."""
    return isinstance(error, FileExistsError) or find_code(error) in CONFLICTS


def _put_if_new(put: Callable[..., Any], **condition: str) -> None:
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
        _put_if_new(lambda **condition: call_upload("complete_multipart_upload", **done, **condition), IfNoneMatch="*")
    except BaseException:
        with suppress(OSError):  # where it is complete, and only the answer was lost
            call_upload("abort_multipart_upload", UploadId=upload)
        raise


def _put_new(filesystem: Any, path: str, source: Path) -> None:
    n_bytes = source.stat().st_size
    try:
        if n_bytes <= SINGLE_PUT:
            given = {"n_bytes": n_bytes, "chunksize": SINGLE_PUT}
            _put_if_new(lambda **condition: call_store(filesystem, "put_file", str(source), path, **given, **condition), mode="create")
        else:
            _put_pieces(filesystem, path, source)
    except OSError as error:
        if not _is_conflict(error):
            raise
        raise FileExistsError(path) from error


def _replace(filesystem: Any, path: str, held: Object | None, made: bytes) -> bool:
    """One conditional PUT."""
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


def _remove(filesystem: Any, path: str) -> None:
    """Delete objects. The answer has what the store refused, which s3fs passes over."""
    names = call_store(filesystem, "find", path)
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        bucket = filesystem.split_path(some[0])[0]
        keys = [{"Key": name[len(bucket) + 1 :]} for name in some]
        answer = call_store(filesystem, "call_s3", "delete_objects", Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
        for refused in answer.get("Errors", ()):
            raise OSError(f"{refused['Key']}: {refused.get('Message') or refused['Code']}")
    filesystem.invalidate_cache()


def _after(found: dict[str, Any]) -> dict[str, Any]:
    """Where a listing of uploads goes on, also of stores that do not say it; empty at its end."""
    last = found.get("Uploads", ())[-1:]
    if not found.get("IsTruncated") or not last:
        return {}
    return {"KeyMarker": found.get("NextKeyMarker") or last[0]["Key"], "UploadIdMarker": found.get("NextUploadIdMarker") or last[0]["UploadId"]}


def _abort_uploads(filesystem: Any, path: str) -> None:
    bucket, key, _ = filesystem.split_path(path)
    before, more = dict[str, Any](), dict[str, Any]()
    while True:
        found = call_store(filesystem, "call_s3", "list_multipart_uploads", Bucket=bucket, Prefix=f"{key}/", **more)
        for upload in found.get("Uploads", ()):
            call_store(filesystem, "call_s3", "abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
        before, more = more, _after(found)
        if not more or more == before:  # a store that begins anew each time
            return


def _list_children(filesystem: Any, folder: str, stem: str = "") -> Iterator[Entry]:
    """What lies right below a folder and begins with a stem."""
    if not stem:
        yield from list_children(filesystem, folder)
        return
    found = call_store(filesystem, "find", folder, maxdepth=1, withdirs=True, detail=True, prefix=stem).values()
    yield from (Entry(name, said) for said in found if (name := said["name"].rstrip("/")) != folder.rstrip("/"))


def _glob(filesystem: Any, pattern: str) -> list[Entry]:
    """Folder by folder, which goes through few of them, but for any folders, which are listed at once."""
    steps = Steps(lambda folder, stem: _list_children(filesystem, folder, stem), lambda entry: is_dir(filesystem, entry))
    at_once = (lambda root, stem: find_all(filesystem, root, stem)) if EVERY in pattern.rstrip("/").split("/") else None
    return match_glob(steps, pattern, at_once)


def _holds(filesystem: Any, path: str) -> bool:
    """By one request; s3fs lists what is below the name where there is no object."""
    bucket, key, _ = filesystem.split_path(path)
    try:
        call_store(filesystem, "call_s3", "head_object", filesystem.kwargs, Bucket=bucket, Key=key)
    except FileNotFoundError:
        return False
    return True


def _read(filesystem: Any, path: str) -> bytes:
    """By one request; s3fs of 2026 asks first for the size, and fetches what is large in pieces, which may be of two versions of the object."""
    given = {"max_concurrency": 1} if "max_concurrency" in inspect.signature(filesystem._cat_file).parameters else {}
    return call_store(filesystem, "cat_file", path, **given)


def _remember(filesystem: Any, entries: Iterable[Entry]) -> None:
    """By name: a list of a folder is gone through whole for each file of it that is opened."""
    for entry in entries:
        if entry.said is not None:
            filesystem.dircache[entry.path] = [entry.said]


S3 = replace(
    PLAIN,
    put_new=_put_new,
    replace=_replace,
    remove=_remove,
    abort_uploads=_abort_uploads,
    children=_list_children,
    walk=find_below,
    glob=_glob,
    is_folder=is_dir,
    holds=_holds,
    read=_read,
    remember=_remember,
    options=_options,
    module="s3fs",
)
