"""Stores reached through fsspec, each in its dialect."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fsspec.exceptions import FSTimeoutError

from ..errors import NotThere, UsageError
from .calls import ATTEMPTS, call_store
from .dialects.dialect import Dialect
from .failures import UNKNOWN, find_code, reported
from .store import Change, Entry, Folder, Object, find_mark, find_time
from .traffic import count_moved

SWAPS = 5  # lost to others before an object that moves is given up
WHOLE = "the server sends files from their beginning alone, expected any range of bytes"


def find_schemes(filesystem: Any) -> tuple[str, ...]:
    """Return the schemes of a file system, the canonical one first."""
    return (filesystem.protocol,) if isinstance(filesystem.protocol, str) else tuple(filesystem.protocol)


def naming(filesystem: Any, uri: str, path: str) -> Callable[[str], str]:
    """Return a function from paths to URIs; host or account are the given URI's where the client drops them."""
    asked = type(filesystem)._get_kwargs_from_urls
    if asked(filesystem.unstrip_protocol(path)) == asked(uri):
        return filesystem.unstrip_protocol
    ours, theirs = uri.rstrip("/").split("/"), path.rstrip("/").split("/")
    while len(ours) > 3 and theirs and ours[-1] == theirs[-1]:  # down to scheme and host
        ours, theirs = ours[:-1], theirs[:-1]
    start, n_dropped = "/".join(ours), len("/".join(theirs))
    return lambda place: start + place[n_dropped:]


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """A store reached through fsspec, see ``Store``; folders are prefixes of names."""

    filesystem: Any
    dialect: Dialect
    name: Callable[[str], str]  # from paths to URIs
    near: bool = False

    @property
    def has_logs(self) -> bool:
        return self.dialect.has_logs

    def _call(self, operation: str, *arguments: Any, **given: Any) -> Any:
        return call_store(self.filesystem, operation, *arguments, **given)

    def normalise(self, uri: str, path: str) -> str:
        scheme, _, rest = uri.rstrip("/").partition("://")
        if {".", ".."} & set(rest.split("/")):
            raise UsageError(f"{uri}: has '.' or '..', which a store takes for names; write the place out")
        names = find_schemes(self.filesystem)
        return f"{names[0] if scheme in names and self.dialect.has_aliases else scheme}://{rest}"

    def uri(self, path: str) -> str:
        return self.name(path)

    def local_path(self, path: str) -> Path | None:
        return None

    def real_paths(self, paths: Iterable[str]) -> dict[str, str]:
        return {}

    def refresh(self) -> None:
        self.filesystem.invalidate_cache()

    def stat(self, entry: Entry) -> Object:
        said = entry.said or self._call("info", entry.path)
        if said["size"] is None:
            raise OSError(f"{entry.path}: the server does not say how large it is")
        etag, is_own = find_mark(said) or ("", False)
        return Object(self.name(entry.path), int(said["size"]), etag, is_own and self.dialect.proven)

    def size(self, entry: Entry) -> int | None:
        found = (entry.said or self._call("info", entry.path))["size"]
        return None if found is None else int(found)

    def exists(self, path: str) -> bool:
        return self._call("exists", path)

    def is_there(self, path: str) -> bool:
        return self.dialect.is_there(self.filesystem, path)

    def is_folder(self, entry: Entry) -> bool:
        return self.dialect.is_folder(self.filesystem, entry)

    def read(self, path: str, end: int | None = None) -> bytes:
        return self.dialect.read(self.filesystem, path) if end is None else self._call("cat_file", path, start=0, end=end)

    def open(self, path: str, ahead: bool) -> Any:
        file = self.filesystem.open(path, "rb", cache_type="readahead" if ahead else "none")
        if getattr(file, "size", 0) is None:  # fsspec's, of a web server that says so, or not how much there is
            file.close()
            raise OSError(WHOLE)
        return file

    def arrow_file(self, path: str) -> Any:
        return self.open(path, ahead=False)

    def download(self, path: str, target: Path) -> None:
        self._call("get_file", path, str(target), n_bytes=self._call("info", path)["size"] or 0)

    def children(self, folder: str, stem: str = "") -> Iterator[Entry]:
        return self.dialect.children(self.filesystem, folder, stem)

    def list_folder(self, path: str) -> Folder:
        folders, files, times = list[str](), dict[str, int](), list[float | None]()
        for said in self._call("ls", path, detail=True):
            name = said["name"].rstrip("/").rpartition("/")[2]
            if said["name"].rstrip("/") == path.rstrip("/"):  # an object store's mark of the folder itself, or a file
                continue
            if said["type"] == "directory":
                folders.append(name)
            else:
                files[name] = int(said["size"] or 0)
                times.append(find_time(said))
        return Folder(tuple(sorted(folders)), files, max((time for time in times if time is not None), default=None))

    def walk(self, root: str) -> Iterable[Entry]:
        return self.dialect.walk(self.filesystem, root)

    def glob(self, pattern: str) -> list[Entry]:
        return self.dialect.glob(self.filesystem, pattern)

    def remember(self, entries: Iterable[Entry]) -> None:
        self.refresh()
        self.dialect.remember(self.filesystem, entries)

    def _put(self, path: str, source: Path) -> bool:
        """One conditional PUT; False where an object is there then, maybe one's own whose acknowledgement was lost."""
        for left in reversed(range(ATTEMPTS)):
            try:
                self.dialect.put_new(self.filesystem, path, source)
                return True
            except OSError as error:
                if isinstance(error, FileExistsError) or self.dialect.holds(self.filesystem, path):
                    return False
                if not (left and isinstance(error, FSTimeoutError)):  # else it hung, which a client that awaits "100 Continue" does without limit
                    raise
                count_moved(retried=1)
        return False

    def create(self, path: str, source: Path) -> bool:
        self.refresh()
        return not self.dialect.holds(self.filesystem, path) and self._put(path, source)

    def copy(self, path: str, target: str) -> bool:
        """By the store itself, without a byte through this machine, where it can and has done it when it answers; else by its bytes."""
        self.refresh()
        if self.dialect.holds(self.filesystem, target):
            return False
        with suppress(NotImplementedError):  # fsspec's word for a file system that copies nothing by itself
            if self.dialect.copies:
                self._call("cp_file", path, target, n_bytes=self._call("info", path)["size"] or 0)
                return True
        with TemporaryDirectory() as folder:
            local = Path(folder) / "copied"
            self.download(path, local)
            return self._put(target, local)

    def _look(self, path: str) -> Object:
        with reported("read", self.name(path)):
            self.refresh()
            return self.stat(Entry(path))

    def _replace(self, path: str, held: Object | None, made: bytes) -> bool:
        """One conditional PUT; False where the object is not, or is no longer, the one that was held."""
        if self.dialect.replace is None:
            raise OSError("the store replaces no object on the condition that it has not changed")
        return self.dialect.replace(self.filesystem, path, held, made)

    def update(self, path: str, change: Change, single_writer: bool) -> bool:
        for left in reversed(range(SWAPS)):
            try:
                held = self._look(path)
            except NotThere:
                held = None
            made = change(None if held is None else self.read(path))
            if made is None:
                return True
            if single_writer:
                self._call("pipe_file", path, made)
                return True
            try:
                if self._replace(path, held, made):
                    return True
            except FSTimeoutError:  # the bytes may have been written all the same
                if not left:
                    raise
        return False

    def remove(self, path: str) -> None:
        self.refresh()
        self.dialect.remove(self.filesystem, path)

    def abort_uploads(self, path: str) -> None:
        self.dialect.abort_uploads(self.filesystem, path)

    def check_writable(self, path: str, empty: Path) -> None:
        if self.dialect.read_only:
            raise OSError(self.dialect.read_only)
        try:
            self._put(path, empty)
            self._call("rm_file", path)
        except NotImplementedError as error:  # fsspec's word for a file system that is only read
            raise OSError("nothing can be written there") from error

    def keeps_create(self, path: str, empty: Path) -> bool:
        _, twice = (self._put(path, empty) for _ in range(2))
        self._call("rm_file", path)
        return not twice

    def keeps_update(self, path: str) -> bool:
        if self.dialect.replace is None:
            return False
        found = None
        try:
            self._replace(path, None, b"0")
            held = self._look(path)
            for made in (b"1", b"2"):
                self._replace(path, held, made)
            found = self.read(path)  # not what was answered, which may be lost
        except OSError as error:
            if find_code(error) != UNKNOWN:
                raise
        with suppress(FileNotFoundError):  # of a store that knows no condition
            self._call("rm_file", path)
        return found == b"1"

    def bars_file(self, path: str) -> bool:
        return False
