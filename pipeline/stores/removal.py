"""What is deleted: all below a place, and nothing beside it, also where its name would be a pattern."""

import os
import shutil
from glob import has_magic
from typing import Any

from .filesystem import S3, call_store, is_local

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
    """Delete a file or an object, or all below a folder.

    Parameters
    ----------
    filesystem : fsspec.AbstractFileSystem
    path : str
        The place on that file system. It is taken as it is, though it may have characters of patterns.

    Raises
    ------
    OSError
        The store refuses, be it one object of many; FileNotFoundError where there is nothing.
    """
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
