"""Files of this machine: created by hard links, replaced under a lock, listed through symbolic links."""

import errno
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from posixpath import normpath
from stat import S_ISDIR, S_ISREG
from typing import Any

import pyarrow as pa

from .calls import SECONDS
from .failures import NotRegular
from .globs import Steps, match_glob, split_glob, walk_folders
from .store import Change, Entry, Folder, Object
from .system.files import NO_LINK, PAUSE, keep_names, open_partial, real_path, replace
from .system.locks import try_lock

_SLASHES = re.compile(r"/{2,}" if os.sep == "/" else r"(?<!^)/{2,}")  # two in front are a server's on Windows
FILE, FOLDER = {"type": "file"}, {"type": "directory"}  # all that is said of what is listed


def _lock(file: int, path: Path) -> None:
    """Wait for a lock, as long as for any operation: its holder may be stopped, on another host too, and the system's own wait has no end."""
    end = time.monotonic() + SECONDS
    while not try_lock(file):
        if time.monotonic() > end:
            raise TimeoutError(f"{path}: another writer has held this lock for {SECONDS:.0f} seconds; is it stopped?")
        time.sleep(PAUSE)


@contextmanager
def _hold(target: Path) -> Iterator[None]:
    """Lock an empty file beside the target. It stays: who removed it would leave one to lock who waits, and another to who comes next.

    NFS locks files that are open for writing, between all hosts; of a folder it says that it is locked, and tells no other host.
    """
    beside = target.with_name(f".{target.name}.lock")
    lock = os.open(beside, os.O_RDWR | os.O_CREAT | NO_LINK, 0o666)
    try:
        _lock(lock, beside)
        yield
    finally:
        os.close(lock)


def _stat(path: str) -> os.stat_result:
    """Refuse what waits for ever, or has no end, before it is opened."""
    found = os.stat(path)
    if not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)):
        raise NotRegular("is a pipe, a socket or a device, expected a file")
    return found


def _read(target: Path) -> bytes | None:
    try:
        return target.read_bytes()
    except FileNotFoundError:
        return None


def _refuse_loop(entry: Entry, root: str) -> None:
    """A link has to lead somewhere, and not back."""
    if entry.said is not None:
        return
    real, folder = real_path(entry.path), entry.path
    while folder != root:
        folder = os.path.dirname(folder)
        if real_path(folder) == real:
            raise OSError(errno.ELOOP, "a link leads back to a folder that it is in", entry.path)


def _find_size(entry: os.DirEntry) -> tuple[int, float]:
    """Find bytes and time of writing; of a link, of what it leads to; 0 where that is nowhere."""
    if entry.is_symlink() and not os.path.exists(entry.path):
        return 0, 0.0
    said = entry.stat()
    return said.st_size, said.st_mtime


@dataclass(frozen=True, slots=True)
class LocalStore:
    """Files of this machine, and of file systems that are mounted here: see ``Store``."""

    filesystem: Any
    near: bool = True
    has_logs: bool = True

    def normalise(self, uri: str, path: str) -> str:
        path = _SLASHES.sub("/", path)
        return real_path(path) if ".." in path.split("/") else normpath(path)

    def uri(self, path: str) -> str:
        return path

    def local_path(self, path: str) -> Path | None:
        return Path(path)

    def real_paths(self, paths: Iterable[str]) -> dict[str, str]:
        """By their folders, of which many files have one."""
        folders, found = dict[str, str](), dict[str, str]()
        for path in paths:
            folder, name = os.path.split(path)
            if name in ("", ".", "..") or os.path.islink(path):
                found[path] = real_path(path)
            else:
                if folder not in folders:
                    folders[folder] = real_path(folder).rstrip("/")
                found[path] = f"{folders[folder]}/{name}"
        return found

    def refresh(self) -> None:
        """Nothing is kept."""

    def stat(self, entry: Entry) -> Object:
        found = _stat(entry.path)
        return Object(entry.path, found.st_size, f"{found.st_size}-{found.st_mtime}", near=True)

    def size(self, entry: Entry) -> int | None:
        return os.stat(entry.path).st_size

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_there(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def is_folder(self, entry: Entry) -> bool:
        return S_ISDIR(os.stat(entry.path).st_mode) if entry.kind is None else entry.kind == "directory"

    def read(self, path: str, end: int | None = None) -> bytes:
        with self.open(path, ahead=False) as file:
            return file.read(end)

    def open(self, path: str, ahead: bool) -> Any:
        _stat(path)
        return open(path, "rb")

    def arrow_file(self, path: str) -> Any:
        return pa.OSFile(path)

    def download(self, path: str, target: Path) -> None:
        _stat(path)
        shutil.copyfile(path, target)

    def children(self, folder: str, stem: str = "") -> Iterator[Entry]:
        start = folder.rstrip("/")
        with os.scandir(folder) as entries:
            for each in entries:
                said = FOLDER if each.is_dir(follow_symlinks=False) else FILE
                yield Entry(f"{start}/{each.name}", None if each.is_symlink() else said)

    def list_folder(self, path: str) -> Folder:
        folders, files, changed = list[str](), dict[str, int](), None
        with suppress(NotADirectoryError), os.scandir(path) as entries:  # entry by entry: all that there is to say of 100,000 parts has 100 MB
            for each in entries:
                if each.is_dir(follow_symlinks=False):
                    folders.append(each.name)
                else:
                    files[each.name], time = _find_size(each)
                    changed = max(time, changed or 0.0)
        return Folder(tuple(sorted(folders)), files, changed)

    def walk(self, root: str) -> Iterator[Entry]:
        return walk_folders(Steps(self.children, self.is_folder, _refuse_loop), root)

    def glob(self, pattern: str) -> list[Entry]:
        if not S_ISDIR(os.stat(split_glob(pattern)[0]).st_mode):
            return []
        return match_glob(Steps(self.children, self.is_folder, _refuse_loop), pattern)

    def remember(self, entries: Iterable[Entry]) -> None:
        """The system itself does."""

    def create(self, path: str, source: Path) -> bool:
        """By a hard link, which fails if the name is taken."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with source.open("rb") as read_from, open_partial(target.parent) as (write_to, give_name):
                shutil.copyfileobj(read_from, write_to, 1 << 20)
                write_to.flush()
                os.fsync(write_to.fileno())
                give_name(target)
        except FileExistsError:
            return False
        keep_names(target.parent)
        return True

    def copy(self, path: str, target: str) -> bool:
        """By one more name of the same file, since nothing is ever written in place; by its bytes where a file system gives no second one."""
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except FileExistsError:
            return False
        except FileNotFoundError:
            raise
        except OSError:
            return self.create(target, Path(path))
        keep_names(Path(target).parent)
        return True

    def update(self, path: str, change: Change, single_writer: bool) -> bool:
        """Exchange a file for another under its name, while nobody else may."""
        target = Path(path)
        if self.bars_file(path) and not target.is_dir():
            raise NotRegular("is a pipe, a socket or a device, expected a file")
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".partial-{secrets.token_hex(8)}")  # of each writer its own, also where a file system only says that it locks
        with nullcontext() if single_writer else _hold(target):
            try:
                with partial.open("xb") as file:  # before the target is read, so that NFS looks at the folder anew
                    made = change(_read(target))
                    if made is None:
                        return True
                    file.write(made)
                    file.flush()
                    os.fsync(file.fileno())
                replace(partial, target, SECONDS)
            finally:
                partial.unlink(missing_ok=True)
            keep_names(target.parent)
        return True

    def remove(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)

    def abort_uploads(self, path: str) -> None:
        """What is not whole has no name here."""

    def check_writable(self, path: str, empty: Path) -> None:
        """By a file without a name, in the folder or the first above it that is there."""
        there = Path(path).parent
        while not there.exists() and there != there.parent:
            there = there.parent
        if not there.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(there))
        with open_partial(there):
            pass

    def keeps_create(self, path: str, empty: Path) -> bool:
        return True  # a link is refused by every file system

    def keeps_update(self, path: str) -> bool:
        return True

    def bars_file(self, path: str) -> bool:
        return os.path.exists(path) and not os.path.isfile(path)
