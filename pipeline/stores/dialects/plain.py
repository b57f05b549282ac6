"""The dialect of any other fsspec file system: no conditional writes, and folders listed one by one."""

from collections.abc import Iterator
from glob import has_magic
from pathlib import Path
from typing import Any

from ..calls import call_store
from ..globs import Steps, match_glob, walk_folders
from ..store import Entry
from .dialect import Dialect


def put_new(filesystem: Any, path: str, source: Path, **condition: str) -> None:
    """Write a local file, whatever is there unless a condition says otherwise."""
    call_store(filesystem, "put_file", str(source), path, n_bytes=source.stat().st_size, **condition)


def remove(filesystem: Any, path: str) -> None:
    """Delete a file or an object, or all below a folder."""
    if has_magic(path):  # which ``rm`` takes for a pattern; empty folders stay, where the store has any
        for name in call_store(filesystem, "find", path):
            call_store(filesystem, "rm_file", name)
    else:
        call_store(filesystem, "rm", path, recursive=True)


def list_children(filesystem: Any, folder: str, stem: str = "") -> Iterator[Entry]:
    """All that lies right below a folder."""
    start = folder.rstrip("/")
    yield from (Entry(name, said) for said in call_store(filesystem, "ls", folder, detail=True) if (name := said["name"].rstrip("/")) != start)


def is_folder(filesystem: Any, entry: Entry) -> bool:
    """By what the store says, asked where it did not; most clients' ``isdir`` says of an error that it is none."""
    if entry.kind in ("directory", "file"):
        return entry.kind == "directory"
    return call_store(filesystem, "info", entry.path)["type"] == "directory"


def is_dir(filesystem: Any, entry: Entry) -> bool:
    """By ``isdir``, of clients whose own says what goes wrong."""
    if entry.kind in ("directory", "file"):
        return entry.kind == "directory"
    return call_store(filesystem, "isdir", entry.path)


def _steps(filesystem: Any) -> Steps:
    return Steps(lambda folder, stem: list_children(filesystem, folder, stem), lambda entry: is_folder(filesystem, entry))


def is_there(filesystem: Any, path: str) -> bool:
    """By what the store says of it; an ``exists`` says of an error too that there is nothing."""
    try:
        call_store(filesystem, "info", path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def find_below(filesystem: Any, root: str) -> Iterator[Entry]:
    """All objects below a folder, of a store that lists them at once, or says that it cannot."""
    return (Entry(path, said) for path, said in call_store(filesystem, "find", root.rstrip("/"), detail=True).items())


def find_all(filesystem: Any, root: str, stem: str) -> Iterator[Entry]:
    """Everything below a folder, of what lies right below it what begins with a stem, likewise."""
    found = call_store(filesystem, "find", root, withdirs=True, detail=True, prefix=stem)
    return (Entry(path, said) for path, said in found.items() if path.startswith(f"{root}/") and not path.endswith("/"))


def glob_at_once(filesystem: Any, pattern: str) -> list[Entry]:
    """What a glob means, of a store that lists all objects below a folder at once."""
    return match_glob(_steps(filesystem), pattern, lambda root, stem: find_all(filesystem, root, stem))


PLAIN = Dialect(
    put_new=put_new,
    replace=None,
    remove=remove,
    abort_uploads=lambda filesystem, path: None,
    children=list_children,
    walk=lambda filesystem, root: walk_folders(_steps(filesystem), root),
    glob=lambda filesystem, pattern: match_glob(_steps(filesystem), pattern),
    is_folder=is_folder,
    is_there=is_there,
    holds=lambda filesystem, path: call_store(filesystem, "exists", path),
    read=lambda filesystem, path: call_store(filesystem, "cat_file", path),
    remember=lambda filesystem, entries: None,
    options=lambda uri: {},
)
