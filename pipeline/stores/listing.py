"""Which files of a place are data: all Parquet files below a folder but hidden ones. What cannot be read, or has a log of its own, is refused."""

import errno
import os
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from stat import S_ISDIR
from typing import Any

from ..errors import UsageError
from .filesystem import call_store, is_local, open_filesystem, reported
from .storage import MARKS, TIMES, Object, describe

HIDDEN = ("_", ".")  # what names of other programs' files begin with
SUFFIXES = (".parquet", ".pq", ".parq")
MAGIC = b"PAR1"  # what a Parquet file begins with
WEB = "http"
LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi"}  # folders that say which files of a table count
_ICEBERG = re.compile(r"(^|/)metadata/[^/]*\.metadata\.json$")
_GLOB = re.compile(r"[*?\[]")
LOOKERS = 16  # folders that are looked into at a time


Found = dict[str, Any] | None  # what a store says of a file as it lists it; None where it has to be asked


def _is_hidden(path: str) -> bool:
    return any(map(_hides, path.split("/")))


def _hides(name: str) -> bool:
    """But ``_key=value`` is a column called ``_key``, as Spark has it."""
    return name.startswith(HIDDEN) and not (name.startswith("_") and "=" in name)


def _refuse(error: OSError) -> None:
    raise error


def _walk(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """A folder of this machine and all below it, but hidden ones, also where links lead; with the names of folders and files in each."""
    for folder, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
        if os.path.islink(folder) and os.path.realpath(folder) in map(os.path.realpath, _parents(folder, root)):
            raise OSError(errno.ELOOP, "a link leads back to a folder that it is in", folder)
        yield folder, folders, names
        folders[:] = [name for name in folders if not _hides(name)]


def _walk_folder(root: str) -> Iterator[str]:
    """All files below a folder of this machine, and in folders that links lead to."""
    for folder, folders, names in _walk(root):
        yield from (f"{folder}/{name}" for name in names)
        yield from (f"{folder}/{name}/" for name in folders if name in LOGS)


def _parents(folder: str, root: str) -> Iterator[str]:
    while folder != root:
        folder = os.path.dirname(folder)
        yield folder


def _name_table(below: list[str]) -> str | None:
    """The format of a table whose own log is among the names below a folder."""
    for name in below:
        for part in name.split("/")[:-1]:
            if part in LOGS:
                return LOGS[part]
        if _ICEBERG.search(name):
            return "Iceberg"
    return None


def _is_parquet(filesystem: Any, path: str, known: Found) -> bool:
    """By its name, or else by how it begins: writers of Hive name files 000000_0."""
    if path.lower().endswith(SUFFIXES):
        return True
    size = (known or call_store(filesystem, "info", path))["size"]
    if size is not None and int(size) < len(MAGIC):
        return False
    return call_store(filesystem, "cat_file", path, start=0, end=len(MAGIC)) == MAGIC


def _sure(known: dict[str, Any]) -> Found:
    """What a store says of a file or folder as it lists it, where that is all that there is to say.

    Of a link some say when it was made, and not when the file that it leads to was; pages of web servers say names alone.
    """
    tells = known.get("size") is not None and any(known.get(name) not in (None, "") for name in (*MARKS, *TIMES))
    return known if known.get("type") == "directory" or (known.get("type") == "file" and tells) else None


def _list_folder(filesystem: Any, root: str, uri: str) -> dict[str, Found]:
    """The Parquet files below a folder."""
    root = root.rstrip("/")
    if is_local(filesystem):
        every: dict[str, Found] = dict.fromkeys(_walk_folder(root))
    else:
        every = {name: _sure(known) for name, known in call_store(filesystem, "find", root, detail=True).items()}
    below = {name[len(root) + 1 :]: known for name, known in every.items()}
    table = _name_table([*below])
    if table is not None:
        raise UsageError(
            f"{uri}: is a table of {table}, whose log says which of its files count; explain a copy of its rows, written as Parquet, or name "
            "its own folder if it is of Delta or Iceberg"
        )
    paths = {f"{root}/{name}": known for name, known in below.items() if name and not name.endswith("/") and not _is_hidden(name)}
    return {path: known for path, known in paths.items() if _is_parquet(filesystem, path, known)}


def _find_part(folder: str, part: str) -> Iterator[str]:
    """What a part of a glob finds in a folder of this machine: ``**`` the folder and those below it; hidden names have to be spelled out."""
    if part == "**":
        yield from (below for below, _, _ in _walk(folder))
    else:
        names = (name for name in os.listdir(folder) if part.startswith(HIDDEN) or not _hides(name))
        yield from (os.path.join(folder, name) for name in names if fnmatchcase(name, part))


def _match_here(pattern: str) -> dict[str, Found]:
    """What a glob finds on this machine. fsspec looks into no folder that a link leads to, and passes over folders that it cannot read."""
    parts = pattern.split("/")
    first = next(k for k, part in enumerate(parts) if _GLOB.search(part))
    found = ["/".join(parts[:first]) or "/"]
    for part in parts[first:]:
        found = [path for folder in found if S_ISDIR(os.stat(folder).st_mode) for path in _find_part(folder, part)]
    if parts[-1] == "**":
        found += [path for folder in found for path in _find_part(folder, "*")]
    return dict.fromkeys(found)


def _match(filesystem: Any, pattern: str) -> dict[str, Found]:
    """What a glob finds, but for hidden names that it does not spell out."""
    if is_local(filesystem):
        return _match_here(pattern)
    spelled = [part for part in pattern.split("/") if part.startswith(HIDDEN)]
    found = call_store(filesystem, "glob", pattern, detail=True)
    is_spelled = {path: all(any(fnmatchcase(part, each) for each in spelled) for part in path.split("/") if _hides(part)) for path in found}
    return {path: _sure(known) for path, known in found.items() if is_spelled[path]}


def _find_log(filesystem: Any, folder: str) -> str | None:
    """The format of the table that a folder is; a list of what is in the folder may be long, so the log alone is looked for."""
    folder = folder.rstrip("/")
    for name, table in LOGS.items():
        if call_store(filesystem, "isdir", f"{folder}/{name}"):
            return table
    inner = f"{folder}/metadata"
    names = call_store(filesystem, "ls", inner, detail=False) if call_store(filesystem, "isdir", inner) else []
    return _name_table([f"metadata/{name.rpartition('/')[2]}" for name in names])


def _lie_in(places: Iterable[str]) -> list[str]:
    """All folders that places lie in, the innermost first."""
    found = set[str]()
    for place in places:
        folder = place.rstrip("/").rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found, key=lambda folder: (-len(folder), folder))


def _refuse_within(filesystem: Any, roots: Iterable[str], files: Iterable[str], uri: str) -> None:
    """Refuse what lies in a table, which a list of what lies below cannot show: a folder of its partitions, one of its files."""
    places = {*roots}
    if is_local(filesystem):  # also where links lead
        places |= {os.path.realpath(place) for place in (*roots, *{os.path.dirname(file) for file in files}, *filter(os.path.islink, files))}

    def look(folder: str) -> str | None:
        try:
            return _find_log(filesystem, folder)
        except PermissionError:  # credentials may be for a part of a bucket
            return None

    above = _lie_in(places)
    with ThreadPoolExecutor(LOOKERS) as lookers:
        for folder, table in zip(above, lookers.map(look, above), strict=True):
            if table is not None:
                place = folder if is_local(filesystem) else filesystem.unstrip_protocol(folder)
                raise UsageError(
                    f"{uri}: lies in {place}, which is a table of {table}, whose log says which of its files count; explain the table, or a copy "
                    "of these rows, written as Parquet"
                )


def find_table(uri: str) -> str | None:
    """Tell whether a folder is a table with a log of its own.

    Parameters
    ----------
    uri : str

    Returns
    -------
    str or None
        "Delta", "Iceberg" or "Hudi"; None for anything else, also where there is nothing.

    Raises
    ------
    StorageError
        The store does not answer.
    """
    filesystem, path = open_filesystem(uri)
    with reported("list", uri):
        filesystem.invalidate_cache()
        return None if WEB in filesystem.protocol else _find_log(filesystem, path)  # to look into a page takes reading all of it


def list_parquet(uri: str) -> list[Object]:
    """List the Parquet files that a URI names.

    Parameters
    ----------
    uri : str
        A file; a folder, below which all files count that are Parquet by their name or by how they begin, and have no folder or name that starts
        with "_" or ".", but for folders such as _key=value; or a glob, where nothing has just that name.

    Returns
    -------
    list of Object
        Sorted by path.

    Raises
    ------
    UsageError
        It is a table of Delta, Iceberg or Hudi, has one below it or lies in one: such have files whose rows were deleted. A log that may not be
        looked at is not seen.
    StorageError
        There is nothing, a folder cannot be read, links lead in a circle, or the store does not answer.
    """
    filesystem, path = open_filesystem(uri)
    with reported("list", uri):
        filesystem.invalidate_cache()
        if call_store(filesystem, "exists", path):
            roots: dict[str, Found] = {path: None}
        elif _GLOB.search(path):
            roots = _match(filesystem, path)
        else:
            raise FileNotFoundError(path)
        found = dict[str, Found]()
        for root, known in roots.items():
            is_folder = known["type"] == "directory" if known else call_store(filesystem, "isdir", root)
            found |= _list_folder(filesystem, root, uri) if is_folder else {root: known}
        if WEB not in filesystem.protocol:
            _refuse_within(filesystem, roots, found, uri)
        filesystem.invalidate_cache()  # its list of a folder is gone through whole for each file of it that is opened; so keep what it says by name
        for name, known in found.items():
            if known is not None:
                filesystem.dircache[name] = [known]
        return [describe(filesystem, name, found[name]) for name in sorted(found)]


@dataclass(frozen=True, slots=True)
class Folder:
    """What lies right below a folder."""

    folders: tuple[str, ...]  # names, sorted
    files: dict[str, int]  # bytes, by name


def list_folder(uri: str) -> Folder:
    """List what lies right below a folder.

    Parameters
    ----------
    uri : str

    Returns
    -------
    Folder
        Empty where an object store has nothing of that name.

    Raises
    ------
    NotThere
        There is no such folder.
    StorageError
        It cannot be read, or the store does not answer.
    """
    filesystem, path = open_filesystem(uri)
    with reported("list", uri):
        filesystem.invalidate_cache()
        found = call_store(filesystem, "ls", path, detail=True)
    folders, files = list[str](), dict[str, int]()
    for entry in found:
        name = entry["name"].rstrip("/").rpartition("/")[2]
        if entry["name"].rstrip("/") == path.rstrip("/"):  # an object store's mark of the folder itself, or a file
            continue
        if entry["type"] == "directory":
            folders.append(name)
        else:
            files[name] = int(entry["size"] or 0)
    return Folder(tuple(sorted(folders)), files)
