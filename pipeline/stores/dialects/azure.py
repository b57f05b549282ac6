"""Azure Blob Storage: conditional writes by ETag."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..calls import call_store
from ..store import Object
from .plain import PLAIN, find_below, glob_at_once, put_new


def _put_new(filesystem: Any, path: str, source: Path) -> None:
    put_new(filesystem, path, source, mode="create")


def _put(filesystem: Any, path: str, etag: str | None, made: bytes) -> None:
    from azure.core import MatchConditions  # of the package that serves the store

    condition = {"mode": "create"} if etag is None else {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}
    call_store(filesystem, "pipe_file", path, made, **condition)


def _replace(filesystem: Any, path: str, held: Object | None, made: bytes) -> bool:
    try:
        _put(filesystem, path, None if held is None else held.etag, made)
    except (FileExistsError, FileNotFoundError):
        return False
    except Exception as error:
        azure = sys.modules.get("azure.core.exceptions")
        if azure is None or not isinstance(error, (azure.ResourceModifiedError, azure.ResourceNotFoundError)):
            raise
        return False
    return True


AZURE = replace(
    PLAIN,
    put_new=_put_new,
    replace=_replace,
    walk=find_below,
    glob=glob_at_once,
    module="adlfs",
    copies=False,  # Azure copies on after it has answered, and gives up where what it copies is removed meanwhile; adlfs does not wait
)
