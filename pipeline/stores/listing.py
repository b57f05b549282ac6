"""Listing of a data set's Parquet files: all but hidden ones; unreadable folders and lakehouse tables are refused."""

import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..errors import UsageError
from .below import LOGS, WEB, Found, find_below, is_folder, is_hidden, is_of, match_glob
from .filesystem import S3, call_store, is_local, open_filesystem, reported
from .storage import MARKS, TIMES, Object, describe

SUFFIXES = (".parquet", ".pq", ".parq")
MAGIC = b"PAR1"  # what a Parquet file begins with
_ICEBERG = re.compile(r"(^|/)metadata/[^/]*\.metadata\.json(\.gz)?$")
LOOKERS = 16  # folders that are looked into at a time


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


def _sure(known: Found) -> Found:
    """What a store says of a file or folder as it lists it, where that is all that there is to say.

    Of a link some say when it was made, and not when the file that it leads to was; pages of web servers say names alone.
    """
    if known is None:
        return None
    tells = known.get("size") is not None and any(known.get(name) not in (None, "") for name in (*MARKS, *TIMES))
    return known if known.get("type") == "directory" or (known.get("type") == "file" and tells) else None


def _list_folder(filesystem: Any, root: str, uri: str) -> dict[str, Found]:
    """The Parquet files below a folder."""
    every = {name: _sure(known) for name, known in find_below(filesystem, root)}
    root = root.rstrip("/")
    below = {name[len(root) + 1 :]: known for name, known in every.items()}
    table = _name_table([*below])
    if table is not None:
        raise UsageError(
            f"{uri}: is a table of {table}, whose log says which of its files count; explain a copy of its rows, written as Parquet, or name "
            "its own folder if it is of Delta or Iceberg"
        )
    paths = {f"{root}/{name}": known for name, known in below.items() if name and not name.endswith("/") and not is_hidden(name)}
    return {path: known for path, known in paths.items() if _is_parquet(filesystem, path, known)}


def _is_there(filesystem: Any, path: str) -> bool:
    """Whether a store says that there is something; what else it says, or that it does not answer, is raised."""
    try:
        if is_of(filesystem, WEB):
            return call_store(filesystem, "exists", path, strict=True)
        call_store(filesystem, "info", path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _has_folder(filesystem: Any, path: str) -> bool:
    try:
        return is_folder(filesystem, path)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _is_forbidden(error: Exception) -> bool:
    """By the system's error, as most clients have it, the status that Azure's says, or Google's words."""
    return isinstance(error, PermissionError) or getattr(error, "status_code", None) == 403 or str(error).startswith("Forbidden")


def _find_log(filesystem: Any, folder: str) -> str | None:
    """The format of the table that a folder is; a list of what is in the folder may be long, so the log alone is looked for."""
    folder = folder.rstrip("/")
    for name, table in LOGS.items():
        if _has_folder(filesystem, f"{folder}/{name}"):
            return table
    inner = f"{folder}/metadata"
    names = call_store(filesystem, "ls", inner, detail=False) if _has_folder(filesystem, inner) else []
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


def _refuse_doubled(files: Iterable[str], links: set[str], uri: str) -> None:
    """Refuse files of this machine that are found under two names, of which one goes through a link; hard links are files of their own."""
    folders = {folder: os.path.realpath(folder) for folder in set(map(os.path.dirname, files))}
    found = dict[str, str]()
    for file in sorted(files):
        folder, name = os.path.split(file)
        other = found.setdefault(os.path.realpath(file) if file in links else f"{folders[folder]}/{name}", file)
        if other != file:
            raise UsageError(f"{uri}: {other} and {file} are one file, by a link, whose rows would count twice; leave one of them out")


def _refuse_within(filesystem: Any, roots: Iterable[str], files: Iterable[str], links: set[str], uri: str, as_uri: Callable[[str], str]) -> None:
    """Refuse what lies in a table, which a list of what lies below cannot show: a folder of its partitions, one of its files."""
    places = {*roots}
    if is_local(filesystem):  # also where links lead
        places |= {os.path.realpath(place) for place in (*roots, *{os.path.dirname(file) for file in files}, *links)}

    def look(folder: str) -> str | None:
        try:
            return _find_log(filesystem, folder)
        except Exception as error:
            if _is_forbidden(error):  # credentials may be for a part of a bucket
                return None
            raise

    above = _lie_in(places)
    with ThreadPoolExecutor(LOOKERS) as lookers:
        for folder, table in zip(above, lookers.map(look, above), strict=True):
            if table is not None:
                raise UsageError(
                    f"{uri}: lies in {as_uri(folder)}, which is a table of {table}, whose log says which of its files count; explain the table, or "
                    "a copy of these rows, written as Parquet"
                )


def _naming(filesystem: Any, uri: str, path: str) -> Callable[[str], str]:
    """What makes URIs of places. The names of some file systems do not say of which host or account they are: then it is that of the given URI."""
    if is_local(filesystem):
        return str
    asked = type(filesystem)._get_kwargs_from_urls
    if asked(filesystem.unstrip_protocol(path)) == asked(uri):
        return filesystem.unstrip_protocol
    ours, theirs = uri.rstrip("/").split("/"), path.rstrip("/").split("/")
    while len(ours) > 3 and theirs and ours[-1] == theirs[-1]:  # down to scheme and host
        ours, theirs = ours[:-1], theirs[:-1]
    start, n_dropped = "/".join(ours), len("/".join(theirs))
    return lambda place: start + place[n_dropped:]


def find_table(uri: str) -> str | None:
    """Tell whether a folder is a table with a log of its own.

    Returns
    -------
    str or None
        "Delta", "Iceberg", "Hudi" or "Spark's streaming"; None for anything else, also where there is nothing.
    """
    filesystem, path = open_filesystem(uri)
    with reported("list", uri):
        filesystem.invalidate_cache()
        return None if is_of(filesystem, WEB) else _find_log(filesystem, path)  # to look into a page takes reading all of it


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
        It is a table of Delta, Iceberg, Hudi or Spark's streaming, has one below it or lies in one: such have files whose rows do not count. A log
        that may not be looked at is not seen. Or a file of this machine is found under two names, of which one goes through a link.
    NotThere
        There is nothing, by what the store says; or a link leads there.
    """
    filesystem, path = open_filesystem(uri)
    as_uri = _naming(filesystem, uri, path)
    with reported("list", uri):
        filesystem.invalidate_cache()
        if _is_there(filesystem, path):
            roots: list[tuple[str, Found]] = [(path, None)]
        else:
            roots = [(root, _sure(known)) for root, known in match_glob(filesystem, path)]
        found = dict[str, Found]()
        for root, known in roots:
            found |= _list_folder(filesystem, root, uri) if is_folder(filesystem, root, known) else {root: known}
        links = {*filter(os.path.islink, found)} if is_local(filesystem) else set[str]()
        if is_local(filesystem):
            _refuse_doubled(found, links, uri)
        if not is_of(filesystem, WEB):
            _refuse_within(filesystem, [root for root, _ in roots], found, links, uri, as_uri)
        filesystem.invalidate_cache()  # S3's list of a folder is gone through whole for each file of it that is opened; so keep what it says by name
        if is_of(filesystem, S3):
            for name, known in found.items():
                if known is not None:
                    filesystem.dircache[name] = [known]
        return [replace(describe(filesystem, name, found[name]), uri=as_uri(name)) for name in sorted(found)]


@dataclass(frozen=True, slots=True)
class Folder:
    """What lies right below a folder."""

    folders: tuple[str, ...]  # names, sorted
    files: dict[str, int]  # bytes, by name


def _find_size(entry: os.DirEntry) -> int:
    """Of a link, of what it leads to; 0 where that is nowhere."""
    return entry.stat().st_size if not entry.is_symlink() or os.path.exists(entry.path) else 0


def list_folder(uri: str) -> Folder:
    """List what lies right below a folder.

    Returns
    -------
    Folder
        Empty where an object store has nothing of that name.

    Raises
    ------
    NotThere
        There is no such folder.
    """
    filesystem, path = open_filesystem(uri)
    folders, files = list[str](), dict[str, int]()
    if is_local(filesystem):  # entry by entry: a list of all that there is to say of 100,000 parts has 100 MB
        with reported("list", uri), suppress(NotADirectoryError), os.scandir(path) as entries:
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    folders.append(each.name)
                else:
                    files[each.name] = _find_size(each)
        return Folder(tuple(sorted(folders)), files)
    with reported("list", uri):
        filesystem.invalidate_cache()
        found = call_store(filesystem, "ls", path, detail=True)
    for entry in found:
        name = entry["name"].rstrip("/").rpartition("/")[2]
        if entry["name"].rstrip("/") == path.rstrip("/"):  # an object store's mark of the folder itself, or a file
            continue
        if entry["type"] == "directory":
            folders.append(name)
        else:
            files[name] = int(entry["size"] or 0)
    return Folder(tuple(sorted(folders)), files)
