"""Calls of fsspec operations with deadlines, and one retry of damaged answers."""

from collections.abc import Callable
from typing import Any

from fsspec.asyn import AsyncFileSystem, sync

from .failures import of_botocore
from .traffic import count_moved

SECONDS, BYTES_PER_SECOND = 120.0, 1 << 20  # an operation may take so long, and longer if it has more to move than that
ATTEMPTS = 2


def call_store(filesystem: Any, operation: str, *arguments: Any, n_bytes: int = 0, **given: Any) -> Any:
    """Call an operation of a file system, with a deadline where the file system knows deadlines."""
    if not isinstance(filesystem, AsyncFileSystem):
        return retry_damaged(lambda: getattr(filesystem, operation)(*arguments, **given))
    method, deadline = getattr(filesystem, f"_{operation}"), SECONDS + n_bytes / BYTES_PER_SECOND  # not every method that waits for it takes one
    return retry_damaged(lambda: sync(filesystem.loop, method, *arguments, **given, timeout=deadline))


def retry_damaged(operation: Callable[[], Any]) -> Any:
    """Repeat an operation whose answer fails the store's checksum, which clients do not do by themselves."""
    try:
        return operation()
    except of_botocore("FlexibleChecksumError"):
        count_moved(retried=1)
        return operation()
