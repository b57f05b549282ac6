"""Files while they are written, named, replaced and mapped."""

import errno
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

PAUSE = 0.02  # seconds between attempts: whoever holds a lock, or reads, has a small file
WINDOWS = sys.platform == "win32"  # where what is open or mapped can be neither removed nor replaced
MAPPING: Literal["r"] | None = None if WINDOWS else "r"  # how NumPy reads arrays whose file may be removed meanwhile
NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # Windows has symbolic links for administrators alone


def real_path(path: str) -> str:
    """Find where links lead, with slashes."""
    return os.path.realpath(path).replace(os.sep, "/")


def _open_nameless(folder: Path) -> int:
    if sys.platform != "linux":
        raise OSError(errno.ENOTSUP, "no files without names", str(folder))
    return os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)


@contextmanager
def open_partial(folder: Path) -> Iterator[tuple[Any, Callable[[Path], None]]]:
    """A file to write that has no name, so that nothing of it is left whatever ends its writer, and what gives it one that is not taken; a hidden
    one where the file system knows no such files."""
    try:
        nameless = _open_nameless(folder)
    except (AttributeError, OSError):
        hidden = folder / f".partial-{secrets.token_hex(8)}"
        try:
            with hidden.open("xb") as file:
                yield file, partial(os.link, hidden)
        finally:
            hidden.unlink(missing_ok=True)
    else:
        with os.fdopen(nameless, "wb") as file:
            yield file, partial(os.link, f"/proc/self/fd/{nameless}", src_dir_fd=nameless)  # with a descriptor, links are followed


def keep_names(folder: Path) -> None:
    """Let the names in a folder outlive a loss of power; Windows opens no folder, and writes names down itself."""
    if WINDOWS:
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def replace(source: Path, target: Path, seconds: float) -> None:
    """Exchange a file for another; again and again, for so long, where a reader keeps it open."""
    end = time.monotonic() + seconds
    while True:
        try:
            source.replace(target)
        except PermissionError:
            if not WINDOWS or time.monotonic() > end:
                raise
            time.sleep(PAUSE)
        else:
            return
