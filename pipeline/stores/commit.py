"""Writes to files and objects: created once, or replaced conditionally. Only ``storage`` and this module touch stores.

Nothing is ever written in place: an object appears whole or not at all, creating one that exists changes nothing, and replacing one takes that nobody
else did in the meantime.
"""

import errno
import secrets
from contextlib import suppress
from pathlib import Path

from ..errors import RunConflict, StorageError, UnusablePlace
from .failures import reported
from .object_store import SWAPS
from .open_store import open_store
from .storage import read, scratch
from .store import Change
from .traffic import count_moved
from .uris import beside, join

NEVER = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR)  # what trying again does not change


def create(uri: str, source: Path) -> bool:
    """Publish a local file's bytes under a name that nothing has yet.

    A store may have created the object and lost the answer, so what is there may be one's own: look before calling it somebody else's.

    Returns
    -------
    bool
        False, and nothing changed, where an object is there already.
    """
    store, path = open_store(uri)
    with reported("write", uri):
        made = store.create(path, source)
    count_moved(written=source.stat().st_size if made else 0)
    return made


def copy(uri: str, target: str) -> bool:
    """Publish the bytes of an object under another name on the same store, which nothing has yet, by the store itself where it can.

    Returns
    -------
    bool
        False, and nothing changed, where an object of that name is there already.

    Raises
    ------
    NotThere
        There is no such object.
    """
    store, path = open_store(uri)
    with reported("copy", uri):
        return store.copy(path, open_store(target)[1])


def create_once(uri: str, source: Path) -> None:
    """Publish a local file's bytes under a name that nothing has yet, or find them there; other bytes are a RunConflict."""
    if not create(uri, source) and read(uri) != source.read_bytes():
        raise RunConflict(f"{uri}: holds another file; choose another name")


def _name_probe() -> str:
    return f"_probe-{secrets.token_hex(8)}"


def check_writable(folder: str, place: str | None = None) -> None:
    """Refuse a folder that cannot be written, before hours of work are to be written there; a bucket has to be there. Leaves nothing behind.

    Parameters
    ----------
    place : str, optional
        What was asked for, to be named in its place in messages.

    Raises
    ------
    UnusablePlace
        There is no such bucket; or this user may not write into the folder of this machine, or no folder can be made there.
    """
    store, path = open_store(join(folder, _name_probe()))
    with scratch() as local, reported("write", place or folder):
        (local / "probe").touch()
        try:
            store.check_writable(path, local / "probe")
        except OSError as error:
            if not store.near or error.errno not in NEVER:
                raise
            raise UnusablePlace(f"{place or folder}: cannot write: {error.strerror}; choose another place, or make it writable") from error


def creates_once(folder: str) -> bool:
    """Try below a folder whether a store refuses to create what is there already, as some do not, or know no conditions. Leaves nothing behind."""
    store, path = open_store(join(folder, _name_probe()))
    with scratch() as local, reported("write", folder):
        (local / "probe").touch()
        return store.keeps_create(path, local / "probe")


def update(uri: str, change: Change, single_writer: bool = False) -> None:
    """Replace what an object holds, unless somebody else has replaced it in the meantime (compare and swap).

    Parameters
    ----------
    change : callable
        From what the object holds, None where there is none, to what it shall hold, None to leave it. Called again where somebody else was faster,
        and possibly with its own result, where the store lost an answer.
    single_writer : bool
        Nobody else writes the object, so nothing is compared.
    """
    store, path = open_store(uri)

    def counted(held: bytes | None) -> bytes | None:
        made = change(held)
        count_moved(read=len(held or b""), written=len(made or b""))
        return made

    with reported("write", uri):
        done = store.update(path, counted, single_writer)
    if not done:
        raise StorageError(f"{uri}: cannot write: it was changed by others {SWAPS} times in a row")


def swaps(uri: str) -> bool:
    """Try beside a place whether a store replaces an object that is as it was, and refuses to where it is not, as some do not. Nothing is left."""
    uri = beside(uri, _name_probe())
    store, path = open_store(uri)
    with reported("write", uri):
        return store.keeps_update(path)


def remove(uri: str) -> None:
    """Delete all below a URI; do nothing where there is nothing. A name that would be a pattern is taken as it is."""
    store, path = open_store(uri)
    with reported("delete", uri), suppress(FileNotFoundError):  # also where somebody else deletes it at the same time
        store.remove(path)


def abort_uploads(uri: str) -> None:
    """Abort unfinished multipart uploads below a folder in which nobody is creating objects that are needed.

    A writer that was killed leaves the pieces that it had sent: no listing shows them, and they are paid for. Where uploads may not be listed, or the
    store does not answer, they are left to the store: nothing of a run depends on them, and what does says so itself.
    """
    store, path = open_store(uri)
    with suppress(StorageError), reported("list unfinished uploads of", uri):
        store.abort_uploads(path)
