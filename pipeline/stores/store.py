"""The Store interface, and its records of files and folders."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

MARKS = ("generation", "ETag", "etag", "Content-MD5")  # made anew by stores with every write, as fsspec calls them
TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "modificationTime", "modify", "created")

Change = Callable[[bytes | None], bytes | None]  # from what an object holds, None where there is none, to what it shall hold, None to leave it


@dataclass(frozen=True, slots=True)
class Object:
    """A file or object as a listing shows it.

    Attributes
    ----------
    uri : str
    size : int
        Bytes.
    etag : str
        The store's own mark of the bytes; where it has none, size and time, which a copy may keep; empty where there is no time either.
    proven : bool
        Whether it changes whenever the bytes do, whoever writes them.
    near : bool
        Whether it is a file of this machine, which is read without a request.
    """

    uri: str
    size: int
    etag: str
    proven: bool = False
    near: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A place as a store lists it."""

    path: str  # as its store has it
    said: dict[str, Any] | None = None  # what the store says of it, as fsspec has it; None where it has to be asked, as of a link

    @property
    def kind(self) -> str | None:
        """ "directory" or "file", or anything else where it has to be asked."""
        return None if self.said is None else self.said.get("type")

    @property
    def sure(self) -> "Entry":
        """What is said of it where that is all that there is to say.

        Of a link some say when it was made, and not when the file that it leads to was; pages of web servers say names alone.
        """
        if self.kind == "directory" or (self.kind == "file" and self.said is not None and self.said.get("size") is not None and find_mark(self.said)):
            return self
        return Entry(self.path)


@dataclass(frozen=True, slots=True)
class Folder:
    """What lies right below a folder."""

    folders: tuple[str, ...]  # names, sorted
    files: dict[str, int]  # bytes, by name
    changed: float | None = None  # when the newest of the files was written, in seconds since 1970; None where the store says no times


def _write_time(time: Any) -> Any:
    """One moment as one text: fsspec's memory lists files with seconds since 1970, and says a date of each."""
    return time.timestamp() if isinstance(time, datetime) and time.tzinfo is not None else time


def find_time(said: dict[str, Any]) -> float | None:
    """Return when a file was written, in seconds since 1970; None where the store does not say it so."""
    time = next((_write_time(said[name]) for name in TIMES if said.get(name) not in (None, "")), None)
    return float(time) if isinstance(time, int | float) else None


def find_mark(said: dict[str, Any]) -> tuple[str, bool] | None:
    """Return a file's version mark and whether the store made it; None without mark and time."""
    marks, times = ([said[name] for name in names if said.get(name) not in (None, "")] for names in (MARKS, TIMES))
    if marks:
        return str(marks[0]).strip('"'), True
    return (f"{said['size']}-{_write_time(times[0])}", False) if times else None


class Store(Protocol):
    """A store of files, by paths from `open_store`. Errors are the client's own; ``failures`` translates them."""

    @property
    def near(self) -> bool: ...  # it is this machine's own, and answers at once
    @property
    def has_logs(self) -> bool: ...  # folders may be tables with a log of their own, which can be looked for
    def normalise(self, uri: str, path: str) -> str: ...  # write a place as it is written down
    def uri(self, path: str) -> str: ...  # name what lies on the store
    def local_path(self, path: str) -> Path | None: ...  # the file of this machine, if it is one
    def real_paths(self, paths: Iterable[str]) -> dict[str, str]: ...  # where links lead; empty for a store that follows none
    def refresh(self) -> None: ...  # forget what the store said before, since others may have written there
    def stat(self, entry: Entry) -> Object: ...  # look up a file or object
    def size(self, entry: Entry) -> int | None: ...  # bytes; None where the store does not say
    def exists(self, path: str) -> bool: ...  # whether something is there
    def is_there(self, path: str) -> bool: ...  # whether the store says so; what else it says is raised
    def is_folder(self, entry: Entry) -> bool: ...  # of what is there; raises where the store does not say so
    def read(self, path: str, end: int | None = None) -> bytes: ...  # read a file or object, or its beginning
    def open(self, path: str, ahead: bool) -> Any: ...  # open a file or object for reading
    def arrow_file(self, path: str) -> Any: ...  # open it for Arrow, which reads here and there
    def download(self, path: str, target: Path) -> None: ...  # copy a file or object to a file of this machine
    def children(self, folder: str, stem: str = "") -> Iterator[Entry]: ...  # right below; at some stores only what begins with a stem
    def list_folder(self, path: str) -> Folder: ...  # what lies right below a folder, with sizes; empty below a file
    def walk(self, root: str) -> Iterable[Entry]: ...  # all files, and logs of tables; raises where a folder cannot be listed
    def glob(self, pattern: str) -> list[Entry]: ...  # what a glob means
    def remember(self, entries: Iterable[Entry]) -> None: ...  # keep what was listed for whoever opens one of these files next
    def create(self, path: str, source: Path) -> bool: ...  # under a name that nothing has yet; False where it is taken
    def copy(self, path: str, target: str) -> bool: ...  # under a name that nothing has yet, within the store; False where it is taken
    def update(self, path: str, change: Change, single_writer: bool) -> bool: ...  # False where others were faster each time
    def remove(self, path: str) -> None: ...  # delete all below a path
    def abort_uploads(self, path: str) -> None: ...  # abort unfinished uploads below a folder
    def check_writable(self, path: str, empty: Path) -> None: ...  # an empty file of that name; nothing is left
    def keeps_create(self, path: str, empty: Path) -> bool: ...  # whether what is there is refused; nothing is left
    def keeps_update(self, path: str) -> bool: ...  # whether what has changed is refused; nothing is left
    def bars_file(self, path: str) -> bool: ...  # whether what is there is no file, so that none can be put in its place
