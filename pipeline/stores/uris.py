"""URIs: joining, one normal form, containment, and refusal of credentials."""

import os
import posixpath
import re
from pathlib import Path
from urllib.parse import quote, unquote

from fsspec.utils import glob_translate

from ..errors import UsageError, redact
from .failures import WEB
from .globs import WILDCARD
from .open_store import open_store

CATALOG = "iceberg:"  # before the name of a table in a catalog, which is no place
_SLASHES = re.compile(r"(?<!:)/{2,}")


def join(uri: str, *parts: str) -> str:
    """Name what is below a folder."""
    return "/".join((uri.rstrip("/"), *parts))


def link_to(page: str, target: str) -> str:
    """Return the link from a page to an object, relative where it can be."""
    (here, _, from_path), (there, _, to_path) = (uri.rpartition("://") for uri in (page, target))
    if here != there or (here and from_path.split("/")[0] != to_path.split("/")[0]):
        return quote(target, safe=":/", errors="surrogateescape")
    way = posixpath.relpath("/" + to_path.lstrip("/"), posixpath.dirname("/" + from_path.lstrip("/")))
    return quote(f"./{way}", errors="surrogateescape")


def check_below(key: str) -> None:
    """Refuse a key, which anybody may have written, that would lead out of the folder that it is going to be joined to: by a ValueError."""
    leads_out = key.startswith("/") or "://" in key or ".." in key.split("/")
    if not key or leads_out or (os.sep != "/" and (os.sep in key or ":" in key)):  # another disk, on Windows
        raise ValueError(f"{key!r} leads out of the run's folder")


def beside(uri: str, name: str) -> str:
    """Name a place next to another one, or in it where that is the root of a file system or a bucket."""
    start, _, last = uri.rpartition("/")
    return join(start if start and last and not start.endswith(("/", ":")) else uri, name)


def folders_of(uri: str) -> list[str]:
    """List the names of the folders that a file lies in, from the outermost on; a web server's URI writes their characters as it writes any."""
    folders = uri.split("/")[:-1]
    return [*map(unquote, folders)] if uri.startswith(WEB) else folders


def split_root(uri: str) -> tuple[str, str]:
    """Split a place into its store, with scheme and host or bucket, empty for a path of this machine, and the path there."""
    scheme, separator, rest = uri.partition("://")
    root, _, path = rest.partition("/")
    return (f"{scheme}://{root}", path) if separator else ("", uri)


def with_scheme(uri: str) -> str:
    """Write a place with its scheme, which a path of this machine has not."""
    return uri if split_root(uri)[0] else f"file://{'' if uri.startswith('/') else '/'}{uri}"  # of Windows: file:///C:/data


def normalise(uri: str) -> str:
    """Write a place as it is written down: the same whatever the working directory, which workers may have another one of.

    Parameters
    ----------
    uri : str
        A URI, or a path, possibly relative; or a table's name in a catalog, which stays as it is.

    Returns
    -------
    str
        Without a trailing slash. A local path has no "..", no "." and single slashes; links stay, unless ".." leads out of one. A store's scheme is
        the first of its names: s3 for s3a.

    Raises
    ------
    UsageError
        It has credentials, which would be written into plans and logs; or a store's place has "..", which it would take for a name.
    """
    if redact(uri) != uri:
        raise UsageError(
            f"{uri}: has credentials, which would be written into the plan and into logs; give them in the environment or in fsspec's configuration"
        )
    if uri.startswith(CATALOG):
        return uri
    store, path = open_store(uri)
    return store.normalise(uri, path)


def require_local(name: str, given: str, what: str) -> Path:
    """Find the path of what has to lie on this machine.

    Parameters
    ----------
    name : str
        What was given, as an argument is called.
    given : str
        A path or URI.
    what : str
        What was expected.

    Raises
    ------
    UsageError
        It lies elsewhere.
    """
    store, path = open_store(normalise(given))
    local = store.local_path(path)
    if local is None:
        raise UsageError(f"{name} is {given!r:.80}, expected {what}")
    return local


def resolve(uri: str) -> str:
    """Find where links lead; a place elsewhere stays as it is."""
    store, path = open_store(uri)
    return store.real_paths([path]).get(path, uri)


def _as_compared(uri: str) -> str:
    """Where links lead, and with single slashes, so that a place that may be another one's is taken for it."""
    return _SLASHES.sub("/", resolve(uri))


def _compare_glob(pattern: str) -> str:
    """A glob whose folders before its first wildcard are as they are compared."""
    parts = pattern.split("/")
    fixed = next(i for i, part in enumerate(parts) if WILDCARD.search(part))
    return "/".join((_as_compared("/".join(parts[:fixed]) or "/").rstrip("/"), *parts[fixed:]))


def is_within(place: str, folder: str, below: tuple[str, ...] = ()) -> bool:
    """Tell whether a place is another one or lies below it, also where links lead there.

    Parameters
    ----------
    place : str
        As `normalise` writes it.
    folder : str
        Likewise, or a glob.
    below : tuple of str
        Names that will be there below ``place``, which a glob may find.

    Raises
    ------
    UsageError
        The glob has "**" within a name.
    """
    inner = _as_compared(place).rstrip("/")
    if f"{inner}/".startswith(f"{_as_compared(folder).rstrip('/')}/"):
        return True
    if not WILDCARD.search(folder):
        return False
    if any("**" in part and part != "**" for part in folder.split("/")):
        raise UsageError(f"{folder}: has '**' beside other characters, expected it alone between slashes, where it stands for folders")
    found = re.compile(glob_translate(_compare_glob(folder)))
    parts = inner.split("/")
    names = [f"{inner}/{name}" for name in below] + ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return any(found.match(name) for name in names)
