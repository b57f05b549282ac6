"""Recursive listing and globbing of folders; a folder that cannot be listed is an error, unlike in fsspec."""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache, reduce
from stat import S_ISDIR
from typing import Any

from .conditions import AZURE, GOOGLE
from .filesystem import S3, call_store, is_local

HIDDEN = ("_", ".")  # what names of other programs' files begin with
LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi", "_spark_metadata": "Spark's streaming"}  # folders that say which files of a table count
WEB = "http"
FLAT = (S3, GOOGLE, AZURE)  # stores that list all that lies below a folder at once, or say that they cannot
EVERY = "**"  # the part of a glob that stands for any folders
SCHEME = 3  # parts of a URL that are no names of its server's: scheme, nothing, host
_GLOB = re.compile(r"[*?\[]")
_QUERY = re.compile(r"[?#]")

Found = dict[str, Any] | None  # what a store says of a file as it lists it; None where it has to be asked


def is_hidden(path: str) -> bool:
    """Tell whether a file lies in a folder of other programs, or is called as theirs are."""
    return any(map(_hides, path.split("/")))


def _hides(name: str) -> bool:
    """But ``_key=value`` is a column called ``_key``, as Spark has it."""
    return name.startswith(HIDDEN) and not (name.startswith("_") and "=" in name)


def is_of(filesystem: Any, *stores: str) -> bool:
    """Tell whether a file system is one of some stores."""
    names = (filesystem.protocol,) if isinstance(filesystem.protocol, str) else filesystem.protocol
    return any(store in names for store in stores)


def is_folder(filesystem: Any, path: str, known: Found = None) -> bool:
    """Tell whether a place is a folder.

    Parameters
    ----------
    path : str
        Something is there.
    known : dict, optional
        What the file system says of it, where it has been asked already.

    Raises
    ------
    OSError
        The store does not say so; or an error of the client's own.
    """
    if known is not None and known["type"] in ("directory", "file"):
        return known["type"] == "directory"
    if is_of(filesystem, WEB, S3):  # whose isdir says what goes wrong; to others that is no folder
        return call_store(filesystem, "isdir", path)
    return call_store(filesystem, "info", path)["type"] == "directory"


def _below(path: str, folder: str) -> str:
    return path[len(folder.rstrip("/")) + 1 :].rstrip("/")


def _look_at_page(filesystem: Any, page: str) -> Iterator[tuple[str, Found]]:
    """What a web server's page leads to below itself, by the page's own scheme and without "." in between."""
    start = page.rstrip("/")
    for entry in call_store(filesystem, "ls", page, detail=True):
        below = entry["name"].partition("://")[2][len(start.partition("://")[2]) + 1 :]
        parts = [part for part in below.split("/") if part != "."]
        if any(parts) and ".." not in parts:
            yield "/".join((start, *parts)), entry


def _look(filesystem: Any, folder: str, stem: str = "") -> Iterator[tuple[str, Found]]:
    """What lies right below a folder, and what is said of it, of a link nothing. S3 is asked for names that begin with a stem alone."""
    start = folder.rstrip("/")
    if is_local(filesystem):
        with os.scandir(folder) as entries:
            for each in entries:
                kind = "directory" if each.is_dir(follow_symlinks=False) else "file"
                yield f"{start}/{each.name}", None if each.is_symlink() else {"type": kind}
    elif is_of(filesystem, WEB):
        yield from _look_at_page(filesystem, folder)
    else:
        if stem and is_of(filesystem, S3):
            listed = call_store(filesystem, "find", folder, maxdepth=1, withdirs=True, detail=True, prefix=stem).values()
        else:
            listed = call_store(filesystem, "ls", folder, detail=True)
        yield from ((name, entry) for entry in listed if (name := entry["name"].rstrip("/")) != start)


def _parents(folder: str, root: str) -> Iterator[str]:
    while folder != root:
        folder = os.path.dirname(folder)
        yield folder


def _goes_into(filesystem: Any, path: str, known: Found, root: str) -> bool:
    """Whether a place below a root is a folder; a link has to lead somewhere, and not back."""
    if not is_folder(filesystem, path, known):
        return False
    if known is None and is_local(filesystem) and os.path.realpath(path) in map(os.path.realpath, _parents(path, root)):
        raise OSError(errno.ELOOP, "a link leads back to a folder that it is in", path)
    return True


def _walk(filesystem: Any, root: str) -> Iterator[tuple[str, Found]]:
    """All files below a folder, folder by folder."""
    pending = [root]
    while pending:
        folder = pending.pop()
        for path, known in _look(filesystem, folder):
            below = _below(path, folder)
            if below in LOGS and is_folder(filesystem, path, known):
                yield f"{path.rstrip('/')}/", known
            if is_hidden(below) or (is_of(filesystem, WEB) and _QUERY.search(below)):
                continue
            if _goes_into(filesystem, path, known, root):
                pending.append(path)
            else:
                yield path, known


def find_below(filesystem: Any, root: str) -> Iterable[tuple[str, Found]]:
    """Find all files below a folder, and in folders that links lead to."""
    if is_of(filesystem, *FLAT):
        return call_store(filesystem, "find", root.rstrip("/"), detail=True).items()
    return _walk(filesystem, root)


def _reach(parts: list[str], places: Iterable[int]) -> frozenset[int]:
    """Places in a glob, with those behind a ``**``, which stands for no folder too."""
    reached = set[int]()
    for place in places:
        reached.add(place)
        while place < len(parts) and parts[place] == EVERY:
            place += 1
            reached.add(place)
    return frozenset(reached)


def _fits(name: str, part: str, web: bool) -> bool:
    """Whether a part of a glob finds a name: hidden ones, and on the web those with a query, have to be spelled out."""
    if (_hides(name) and not part.startswith(HIDDEN)) or (web and _QUERY.search(name) and not _QUERY.search(part)):
        return False
    return part == EVERY or fnmatchcase(name, part)


def _stepping(parts: list[str], web: bool) -> Callable[[frozenset[int], str], frozenset[int]]:
    """What says where one is in a glob after one more name, from all the places where one may be before it."""

    @cache  # a folder's name comes with each of its files
    def step(places: frozenset[int], name: str) -> frozenset[int]:
        return _reach(parts, [place + (parts[place] != EVERY) for place in places if place < len(parts) and _fits(name, parts[place], web)])

    return step


def _find_all(filesystem: Any, root: str, stem: str) -> Iterator[tuple[str, Found]]:
    """Everything below a folder, of what lies right below it what begins with a stem, by one list."""
    found = call_store(filesystem, "find", root, withdirs=True, detail=True, prefix=stem)
    yield from ((path, known) for path, known in found.items() if path.startswith(f"{root}/") and not path.endswith("/"))


def match_glob(filesystem: Any, pattern: str) -> list[tuple[str, Found]]:
    """Find what a glob means: files and folders, also behind links."""
    web = is_of(filesystem, WEB)
    parts = pattern.rstrip("/").split("/")
    first = next((k for k, part in enumerate(parts) if _GLOB.search(part) and not (web and k < SCHEME)), None)
    if first is None:
        raise FileNotFoundError(pattern)
    root, parts = "/".join(parts[:first]) or "/", parts[first:]
    if is_local(filesystem) and not S_ISDIR(os.stat(root).st_mode):
        return []
    flat = is_of(filesystem, *FLAT) and (EVERY in parts or not is_of(filesystem, S3))  # S3 lists folder by folder what goes through few of them
    step, pending = _stepping(parts, web), [(root, _reach(parts, [0]))]
    found = dict[tuple[str, str | None], Found]()  # an object may be called as a folder is
    if len(parts) in pending[0][1]:
        found[root, "directory"] = {"type": "directory"}
    while pending:
        folder, places = pending.pop()
        stem = _GLOB.split(parts[min(places)])[0]
        for path, known in (_find_all if flat else _look)(filesystem, folder, stem):
            after = reduce(step, _below(path, folder).split("/"), places)
            if not flat and after - {len(parts)} and _goes_into(filesystem, path, known, root):
                pending.append((path, after))
            if len(parts) in after:
                found[path, None if known is None else known["type"]] = known
    return [(path, known) for (path, _), known in found.items()]
