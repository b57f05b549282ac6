"""Lakehouse tables as data sets: found by the log in their folder, and read at one version."""

import re
from collections.abc import Callable

from ..stores.parquet_files import find_table
from ..stores.uris import CATALOG
from .deltalake_table import read_delta
from .live_files import Snapshot
from .pyiceberg_table import METADATA, read_iceberg

_VERSION = re.compile(r"(.+)@v(\d{1,18})")  # as Delta's own tools write it
READERS: dict[str | None, Callable[[str], Snapshot]] = {"Delta": read_delta, "Iceberg": read_iceberg}


def read_snapshot(uri: str) -> Snapshot | None:
    """List the files of a table that count, as its log has them.

    Parameters
    ----------
    uri : str
        Of its folder; TABLE@v12 is version 12 of a Delta table. An Iceberg table is named as iceberg:CATALOG.NAMESPACE.TABLE, and a version of it by
        its file metadata/….metadata.json.

    Returns
    -------
    Snapshot or None
        None where there is no such table: files count by their names then.

    Raises
    ------
    UsageError
        The library that reads it is not installed, or the table asks more of a reader than to read files.
    """
    versioned = _VERSION.fullmatch(uri)
    if versioned is not None and find_table(versioned[1]) == "Delta":
        return read_delta(versioned[1], int(versioned[2]))
    if uri.startswith(CATALOG) or METADATA.search(uri):
        return read_iceberg(uri)
    read = READERS.get(find_table(uri))
    return None if read is None else read(uri)
