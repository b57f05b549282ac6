"""The Dialect record: everything that differs between stores reached through fsspec."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..store import Entry, Object


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a store is asked, by its file system of fsspec's and paths there."""

    put_new: Callable[[Any, str, Path], None]  # raises FileExistsError where the store itself refuses, since an object is there
    replace: Callable[[Any, str, Object | None, bytes], bool] | None  # whether the object was the one that was held; None: it knows no conditions
    remove: Callable[[Any, str], None]  # all below a path, be it a pattern or not
    abort_uploads: Callable[[Any, str], None]
    children: Callable[[Any, str, str], Iterator[Entry]]  # of a folder; those that begin with a stem, and maybe others
    walk: Callable[[Any, str], Iterable[Entry]]
    glob: Callable[[Any, str], list[Entry]]
    is_folder: Callable[[Any, Entry], bool]
    is_there: Callable[[Any, str], bool]
    holds: Callable[[Any, str], bool]  # an object of that name; whether a folder too is the store's
    read: Callable[[Any, str], bytes]  # whole
    remember: Callable[[Any, Iterable[Entry]], None]
    options: Callable[[str], dict[str, Any]]  # for the file system that a URI is on; raises ValueError where it is none
    module: str | None = None  # that fsspec needs for it
    proven: bool = True  # its own marks change whenever the bytes do
    copies: bool = True  # an object that it copies itself is whole when it says so
    has_aliases: bool = True  # its schemes are names of one place
    has_logs: bool = True
    read_only: str | None = None  # why nothing can be written
