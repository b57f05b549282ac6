"""URIs in one normal form, without credentials: comparison, containment and display."""

import os
import re
from posixpath import normpath

from fsspec.utils import glob_translate

from ..errors import UsageError, redact
from .filesystem import is_local, open_filesystem

ONE_BY_ONE = ("http", "https")  # schemes of one file system that are not two names of one place
CATALOG = "iceberg:"  # before the name of a table in a catalog, which is no place
_GLOB = re.compile(r"[*?\[]")
_SLASHES = re.compile(r"(?<!:)/{2,}")


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
    filesystem, path = open_filesystem(uri)
    if is_local(filesystem):
        path = _SLASHES.sub("/", path)
        return os.path.realpath(path) if ".." in path.split("/") else normpath(path)
    scheme, _, rest = uri.rstrip("/").partition("://")
    if {".", ".."} & set(rest.split("/")):
        raise UsageError(f"{uri}: has '.' or '..', which a store takes for names; write the place out")
    names = (filesystem.protocol,) if isinstance(filesystem.protocol, str) else filesystem.protocol
    return f"{names[0] if scheme in names and scheme not in ONE_BY_ONE else scheme}://{rest}"


def _as_compared(uri: str) -> str:
    """Where links lead, and with single slashes, so that a place that may be another one's is taken for it."""
    filesystem, path = open_filesystem(uri)
    return os.path.realpath(path) if is_local(filesystem) else _SLASHES.sub("/", uri)


def _compare_glob(pattern: str) -> str:
    """A glob whose folders before its first wildcard are as they are compared."""
    parts = pattern.split("/")
    fixed = next(i for i, part in enumerate(parts) if _GLOB.search(part))
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
    if not _GLOB.search(folder):
        return False
    if any("**" in part and part != "**" for part in folder.split("/")):
        raise UsageError(f"{folder}: has '**' beside other characters, expected it alone between slashes, where it stands for folders")
    found = re.compile(glob_translate(_compare_glob(folder)))
    parts = inner.split("/")
    names = [f"{inner}/{name}" for name in below] + ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return any(found.match(name) for name in names)
