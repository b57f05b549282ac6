"""Conditional writes on stores other than S3, which ``commit`` handles itself."""

import json
import sys
from pathlib import Path
from typing import Any

from .filesystem import call_store
from .storage import Object

GOOGLE, AZURE = "gs", "abfs"


def has_conditions(filesystem: Any) -> bool:
    """Tell whether there are conditions of a store here."""
    return GOOGLE in filesystem.protocol or AZURE in filesystem.protocol


def put_new(filesystem: Any, path: str, source: Path) -> None:
    """Write a local file where no object is, on a store that can be told so; else wherever it is."""
    condition = {"mode": "create"} if has_conditions(filesystem) else {}
    call_store(filesystem, "put_file", str(source), path, n_bytes=source.stat().st_size, **condition)


def _put_google(filesystem: Any, path: str, generation: str, made: bytes) -> None:
    """One request with name and bytes, if the object has the generation, 0 where there is none: gcsfs itself knows no other."""
    bucket, key, _ = filesystem.split_path(path)
    head = f"--=\r\nContent-Type: application/json\r\n\r\n{json.dumps({'name': key})}\r\n--=\r\nContent-Type: application/octet-stream\r\n\r\n"
    call_store(
        filesystem,
        "call",
        "POST",
        f"{filesystem._location}/upload/storage/v1/b/{bucket}/o",
        uploadType="multipart",
        headers={"Content-Type": 'multipart/related; boundary="="'},
        data=head.encode() + made + b"\r\n--=--",
        ifGenerationMatch=generation,
    )
    filesystem.invalidate_cache()


def _put_azure(filesystem: Any, path: str, etag: str | None, made: bytes) -> None:
    from azure.core import MatchConditions  # of the package that serves the store

    condition = {"mode": "create"} if etag is None else {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}
    call_store(filesystem, "pipe_file", path, made, **condition)


def swap(filesystem: Any, path: str, held: Object | None, made: bytes) -> bool:
    """Write an object if it is still the one that was held."""
    try:
        if GOOGLE in filesystem.protocol:
            _put_google(filesystem, path, "0" if held is None else held.etag, made)
        else:
            _put_azure(filesystem, path, None if held is None else held.etag, made)
    except (FileExistsError, FileNotFoundError):
        return False
    except Exception as error:
        azure = sys.modules.get("azure.core.exceptions")
        if azure is None or not isinstance(error, (azure.ResourceModifiedError, azure.ResourceNotFoundError)):
            raise
        return False
    return True
