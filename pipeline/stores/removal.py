"""Deletion of everything below a place, with literal names, and of abandoned uploads."""

import os
import shutil
from contextlib import suppress
from glob import has_magic
from typing import Any

from ..errors import StorageError
from .filesystem import S3, call_store, is_local, open_filesystem, reported

AT_ONCE = 1000  # objects that S3 deletes by one request


def _delete_here(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.remove(path)


def _delete_keys(filesystem: Any, names: list[str]) -> None:
    """Delete objects of a bucket. The answer has what the store refused, which s3fs passes over."""
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        bucket = filesystem.split_path(some[0])[0]
        keys = [{"Key": name[len(bucket) + 1 :]} for name in some]
        answer = call_store(filesystem, "call_s3", "delete_objects", Bucket=bucket, Delete={"Objects": keys, "Quiet": True})
        for refused in answer.get("Errors", ()):
            raise OSError(f"{refused['Key']}: {refused.get('Message') or refused['Code']}")


def delete_below(filesystem: Any, path: str) -> None:
    """Delete a file or an object, or all below a folder."""
    if is_local(filesystem):
        _delete_here(path)
        return
    filesystem.invalidate_cache()
    if S3 in filesystem.protocol:
        _delete_keys(filesystem, call_store(filesystem, "find", path))
        filesystem.invalidate_cache()
    elif has_magic(path):  # which ``rm`` takes for a pattern; empty folders stay, where the store has any
        for name in call_store(filesystem, "find", path):
            call_store(filesystem, "rm_file", name)
    else:
        call_store(filesystem, "rm", path, recursive=True)


def _after(found: dict[str, Any]) -> dict[str, Any]:
    """Where a listing of uploads goes on, also of stores that do not say it; empty at its end."""
    last = found.get("Uploads", ())[-1:]
    if not found.get("IsTruncated") or not last:
        return {}
    return {"KeyMarker": found.get("NextKeyMarker") or last[0]["Key"], "UploadIdMarker": found.get("NextUploadIdMarker") or last[0]["UploadId"]}


def abort_uploads(uri: str) -> None:
    """Abort unfinished multipart uploads below a folder.

    A writer that was killed leaves the pieces that it had sent: no listing shows them, and they are paid for. Where uploads may not be listed, or the
    store does not answer, they are left to the store: nothing of a run depends on them, and what does says so itself.

    Parameters
    ----------
    uri : str
        Of a folder in which nobody is creating objects that are needed.
    """
    filesystem, path = open_filesystem(uri)
    if S3 not in filesystem.protocol:
        return
    bucket, key, _ = filesystem.split_path(path)
    before, more = dict[str, Any](), dict[str, Any]()
    with suppress(StorageError), reported("list unfinished uploads of", uri):
        while True:
            found = call_store(filesystem, "call_s3", "list_multipart_uploads", Bucket=bucket, Prefix=f"{key}/", **more)
            for upload in found.get("Uploads", ()):
                call_store(filesystem, "call_s3", "abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
            before, more = more, _after(found)
            if not more or more == before:  # a store that begins anew each time
                return
