"""Google Cloud Storage: conditional writes by generation."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..calls import call_store
from ..store import Object
from .plain import PLAIN, find_below, glob_at_once, put_new


def _put_new(filesystem: Any, path: str, source: Path) -> None:
    put_new(filesystem, path, source, mode="create")


def _put(filesystem: Any, path: str, generation: str, made: bytes) -> None:
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


def _replace(filesystem: Any, path: str, held: Object | None, made: bytes) -> bool:
    try:
        _put(filesystem, path, "0" if held is None else held.etag, made)
    except (FileExistsError, FileNotFoundError):
        return False
    return True


GOOGLE = replace(PLAIN, put_new=_put_new, replace=_replace, walk=find_below, glob=glob_at_once, module="gcsfs")
