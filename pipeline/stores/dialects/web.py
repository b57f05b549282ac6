"""Web servers: read only, with index pages as folders."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ..calls import call_store
from ..globs import Steps, match_glob, walk_folders
from ..store import Entry
from .plain import PLAIN, is_dir

SCHEME = 3  # parts of a URL that are no names of its server's: scheme, nothing, host


def _list_page(filesystem: Any, page: str, stem: str = "") -> Iterator[Entry]:
    """What a page leads to below itself, by the page's own scheme and without "." in between."""
    start = page.rstrip("/")
    for said in call_store(filesystem, "ls", page, detail=True):
        below = said["name"].partition("://")[2][len(start.partition("://")[2]) + 1 :]
        parts = [part for part in below.split("/") if part != "."]
        if any(parts) and ".." not in parts:
            yield Entry("/".join((start, *parts)), said)


def _steps(filesystem: Any) -> Steps:
    return Steps(lambda page, stem: _list_page(filesystem, page, stem), lambda entry: is_dir(filesystem, entry), fixed=SCHEME, has_queries=True)


def _is_there(filesystem: Any, path: str) -> bool:
    try:
        return call_store(filesystem, "exists", path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _options(uri: str) -> dict[str, Any]:
    _ = urlsplit(uri).port  # or else its client says that it is none, wherever it is asked first
    return {}


WEB = replace(
    PLAIN,
    children=_list_page,
    walk=lambda filesystem, root: walk_folders(_steps(filesystem), root),
    glob=lambda filesystem, pattern: match_glob(_steps(filesystem), pattern),
    is_folder=is_dir,
    is_there=_is_there,
    options=_options,
    module="aiohttp",
    proven=False,  # servers make marks of a time
    has_aliases=False,
    has_logs=False,  # to look into a page takes reading all of it
    read_only="what is on a web server is only read",
)
