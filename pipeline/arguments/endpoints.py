"""Addresses of metrics, metrics files and lineage servers, validated without a connection."""

import os
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from ..errors import UsageError, redact

LOOPBACK = "127.0.0.1"
SUFFIX = ".prom"  # suffix of files that node_exporter reads
WEB = ("http", "https")
READ_FROM = "a file in a folder of this machine, from where node_exporter reads it"
KEY = "OPENLINEAGE_API_KEY"  # variable common to all OpenLineage clients


def read_address(given: str) -> tuple[str, int]:
    """Read the address at which metrics are served.

    Parameters
    ----------
    given : str
        A port, on the loopback address, or HOST:PORT.

    Returns
    -------
    host : str
    port : int

    Raises
    ------
    UsageError
        It is neither.
    """
    host, _, port = given.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"metrics_address is {given!r:.80}, expected a port, or HOST:PORT")
    return host.strip("[]") or LOOPBACK, int(port)


def check_metrics_file(given: str) -> None:
    """Refuse a metrics file that node_exporter would ignore.

    Parameters
    ----------
    given : str
        A path or URI.
    """
    if "{" in given:
        raise UsageError(f"metrics_file is {given!r:.80}, expected the same file every night, or node_exporter would serve one series of several")
    from ..stores.uris import require_local

    if require_local("metrics_file", given, READ_FROM).suffix != SUFFIX:
        raise UsageError(f"metrics_file is {given!r:.80}, expected NAME{SUFFIX}: node_exporter passes over files of other names")


def can_lie(path: Path) -> bool:
    """Return whether a path exists or can be created.

    Returns
    -------
    bool
        False where its folder is not there, or a name is longer than names can be; or a pipe, a socket or a device is there, which may wait for ever.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        return path.parent.is_dir()
    except OSError:
        return False
    return os.path.isdir(path) or os.path.isfile(path) or not os.path.exists(path)  # a dangling link is overwritten, or followed


def split_address(given: str, otherwise: str) -> SplitResult:
    """Split an address into host and port.

    Parameters
    ----------
    given : str
        With a scheme.
    otherwise : str
        What to say where it is none, such as in brackets that do not close, or with a port that is no number: what was got and expected.

    Raises
    ------
    UsageError
        It is none.
    """
    try:
        found = urlsplit(given)
        _ = found.port  # parsed on access
    except ValueError as error:
        raise UsageError(f"{otherwise}; got: {error}") from error
    return found


def is_server(where: str) -> bool:
    """Return whether lineage events go to a server; refuse an invalid destination.

    Parameters
    ----------
    where : str
        A path, or a server's URL.

    Raises
    ------
    UsageError
        It has credentials, or is neither.
    """
    if redact(where) != where:
        raise UsageError(f"{where}: has credentials, which would be written into logs; give a key as {KEY} in the environment")
    otherwise = f"lineage is {where!r:.80}, expected a file, or the URL of a server as http://host:5000"
    found = split_address(where, otherwise)
    if found.scheme in WEB and found.hostname:
        return True
    if found.scheme in WEB or ("://" in where and found.scheme != "file"):
        raise UsageError(otherwise)
    return False
