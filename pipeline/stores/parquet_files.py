"""Parquet files of a data set: all below a folder except hidden ones; unreadable folders and lakehouse tables are refused."""

import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from ..errors import UnusablePlace, UsageError
from .failures import BUCKETS, reported
from .globs import LOGS, is_hidden
from .open_store import open_store
from .store import Entry, Object, Store

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


def _is_parquet(store: Store, entry: Entry) -> bool:
    """By its name, or else by how it begins: writers of Hive name files 000000_0."""
    if entry.path.lower().endswith(SUFFIXES):
        return True
    size = store.size(entry)
    if size is not None and size < len(MAGIC):
        return False
    return store.read(entry.path, len(MAGIC)) == MAGIC


def _list_folder(store: Store, root: str, uri: str) -> list[Entry]:
    """The Parquet files below a folder."""
    start = len(root.rstrip("/")) + 1
    every = {entry.path[start:]: entry.sure for entry in store.walk(root)}
    table = _name_table([*every])
    if table is not None:
        raise UsageError(
            f"{uri}: is a table of {table}, whose log says which of its files count; explain a copy of its rows, written as Parquet, or name "
            "its own folder if it is of Delta or Iceberg"
        )
    files = (entry for name, entry in every.items() if name and not name.endswith("/") and not is_hidden(name))
    return [entry for entry in files if _is_parquet(store, entry)]


def _has_folder(store: Store, path: str) -> bool:
    try:
        return store.is_folder(Entry(path))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _is_forbidden(error: Exception) -> bool:
    """By the system's error, as most clients have it, the status that Azure's says, or Google's words."""
    return isinstance(error, PermissionError) or getattr(error, "status_code", None) == 403 or str(error).startswith("Forbidden")


def _refuse_no_bucket(store: Store, path: str, uri: str) -> None:
    """Refuse a place in a bucket that does not exist, where nothing is going to come; one that may not be looked at is there."""
    if not uri.startswith(BUCKETS):
        return
    bucket = path.partition("/")[0]
    try:
        there = store.is_there(bucket)
    except Exception as error:
        if not _is_forbidden(error):
            raise
        return
    if not there:
        raise UnusablePlace(f"{uri}: cannot list: bucket {bucket} does not exist")


def _find_log(store: Store, folder: str) -> str | None:
    """The format of the table that a folder is; a list of what is in the folder may be long, so the log alone is looked for."""
    folder = folder.rstrip("/")
    for name, table in LOGS.items():
        if _has_folder(store, f"{folder}/{name}"):
            return table
    inner = f"{folder}/metadata"
    entries = store.children(inner) if _has_folder(store, inner) else ()
    return _name_table([f"metadata/{entry.path.rpartition('/')[2]}" for entry in entries])


def _lie_in(places: Iterable[str]) -> list[str]:
    """All folders that places lie in, the innermost first."""
    found = set[str]()
    for place in places:
        folder = place.rstrip("/").rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found, key=lambda folder: (-len(folder), folder))


def _refuse_doubled(real: Mapping[str, str], uri: str) -> None:
    """Refuse files that are found under two names, of which one goes through a link; hard links are files of their own."""
    found = dict[str, str]()
    for file in sorted(real):
        other = found.setdefault(real[file], file)
        if other != file:
            raise UsageError(f"{uri}: {other} and {file} are one file, by a link, whose rows would count twice; leave one of them out")


def _find_places(store: Store, roots: Iterable[str], real: Mapping[str, str]) -> set[str]:
    """Where data lie by their names, and where links lead there."""
    folders = store.real_paths({*map(os.path.dirname, real)})
    led = {there for file, there in real.items() if os.path.dirname(there) != folders[os.path.dirname(file)]}
    return {*roots, *store.real_paths(roots).values(), *folders.values(), *led}


def _refuse_within(store: Store, places: Iterable[str], uri: str) -> None:
    """Refuse what lies in a table, which a list of what lies below cannot show: a folder of its partitions, one of its files."""

    def look(folder: str) -> str | None:
        try:
            return _find_log(store, folder)
        except Exception as error:
            if _is_forbidden(error):  # credentials may be for a part of a bucket
                return None
            raise

    above = _lie_in(places)
    with ThreadPoolExecutor(LOOKERS) as lookers:
        for folder, table in zip(above, lookers.map(look, above), strict=True):
            if table is not None:
                raise UsageError(
                    f"{uri}: lies in {store.uri(folder)}, which is a table of {table}, whose log says which of its files count; explain the table, "
                    "or a copy of these rows, written as Parquet"
                )


def find_table(uri: str) -> str | None:
    """Tell the kind of a table with a log of its own that a folder is: "Delta", "Iceberg", "Hudi" or "Spark's streaming"; None for anything else."""
    store, path = open_store(uri)
    with reported("list", uri):
        store.refresh()
        return _find_log(store, path) if store.has_logs else None


def _list(store: Store, path: str, uri: str) -> list[Object]:
    roots = [Entry(path)] if store.is_there(path) else [entry.sure for entry in store.glob(path)]
    found = dict[str, Entry]()
    for root in roots:
        files = _list_folder(store, root.path, uri) if store.is_folder(root) else [root]
        found |= {entry.path: entry for entry in files}
    real = store.real_paths(found)
    _refuse_doubled(real, uri)
    if store.has_logs:
        _refuse_within(store, _find_places(store, [root.path for root in roots], real), uri)
    store.remember(found.values())
    return [store.stat(found[path]) for path in sorted(found)]


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
    UnusablePlace
        Its bucket does not exist.
    """
    store, path = open_store(uri)
    with reported("list", uri):
        store.refresh()
        try:
            found = _list(store, path, uri)
        except FileNotFoundError:
            _refuse_no_bucket(store, path, uri)
            raise
        if not found:
            _refuse_no_bucket(store, path, uri)
        return found
