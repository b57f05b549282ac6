"""Delta Lake tables through the library ``deltalake``: opening, and listing of live files."""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ..errors import LeafledgerError, NotThere, StorageError, UsageError
from ..extras import needing
from ..stores import storage
from ..stores.uris import normalise
from .live_files import Hive, LiveFile, Snapshot, list_once, write_value

_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")
LOOKERS = 16  # files that are looked up at a time
# What a table may ask of its readers. Of these, deletion vectors and mapped columns are looked for; the others change no row of a file.
KNOWN = {"deletionVectors", "columnMapping", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview"}


@contextmanager
def reported(doing: str, uri: str) -> Iterator[None]:
    """Turn what the library raises inside into one line."""
    if _ENCODED.search(uri):
        raise UsageError(f"{uri}: has '%' before two digits, which the library deltalake takes for another character; call its folder otherwise")
    with needing(f"{uri}: a Delta table", "deltalake"):
        import deltalake.exceptions  # noqa: F401 - whether it is there
    try:
        yield
    except LeafledgerError:
        raise
    except Exception as error:  # what the library's own libraries say has no other class; followed by where in the library it was
        raise StorageError(f"{uri}: cannot {doing}: {str(error).strip().partition(chr(10))[0]}") from error


def options_for(uri: str) -> dict[str, str]:
    """Say how a store is reached. Credentials are the library's to find, in the environment."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    plain = uri.startswith("s3://") and endpoint.startswith("http://")
    return {"aws_endpoint": endpoint, "aws_allow_http": "true"} if plain else {}


def open_table(uri: str, version: int | None = None) -> Any:
    """Open a table."""
    with reported("read", uri):
        from deltalake import DeltaTable

        if version is not None:
            newest = DeltaTable(uri, storage_options=options_for(uri)).version()
            if version > newest:  # for which the library would look at all versions in between
                raise NotThere(f"{uri}: has no version {version}, its newest is {newest}")
        return DeltaTable(uri, version=version, storage_options=options_for(uri))


def _refuse_unread(table: Any, uri: str) -> None:
    """What its reader would have to do besides reading files."""
    unknown = sorted(set(table.protocol().reader_features or ()) - KNOWN)
    if unknown:
        raise UsageError(f"{uri}: asks its readers for {', '.join(unknown)}, which leafledger does not know; explain a copy of its rows")
    mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mode != "none":
        raise UsageError(
            f"{uri}: its columns are mapped by {mode} (delta.columnMapping.mode), so that files call them otherwise; explain a copy of its rows"
        )
    if "deletionVectors" in (table.protocol().reader_features or ()):
        with_deleted = pa.table(table.deletion_vectors().read_all())["filepath"].to_pylist()
        if with_deleted:
            raise UsageError(
                f"{uri}: {len(with_deleted)} of its files have deletion vectors, as {with_deleted[0].rpartition('/')[2]}: some of their rows are "
                "deleted; have them written anew, as by REORG TABLE … APPLY (PURGE)"
            )


def _values(partition: dict[str, Any] | None, uri: str) -> Hive:
    found = []
    for name, value in sorted((partition or {}).items()):
        try:
            found.append((name, write_value(value)))
        except ValueError as error:
            raise UsageError(f"{uri}: is partitioned by {name!r}, which {error}; explain a copy of its rows") from None
    return tuple(found)


def place_of(path: str, uri: str) -> str:
    """Find a file that a log names."""
    path = unquote(path)
    return path if "://" in path or path.startswith("/") else storage.join(uri, path)


def read_delta(uri: str, version: int | None = None) -> Snapshot:
    """List the files of a table that count."""
    table = open_table(uri, version)
    with reported("read", uri):
        _refuse_unread(table, uri)
        listed = pa.table(table.get_add_actions()).to_pylist()
    places = list_once([(normalise(place_of(entry["path"], uri)), _values(entry.get("partition"), uri)) for entry in listed], uri)
    with ThreadPoolExecutor(LOOKERS) as lookers:
        found = list(lookers.map(storage.stat, places))
    files = (LiveFile(file, values) for file, values in zip(found, places.values(), strict=True))
    return Snapshot(f"{uri}@v{table.version()}", tuple(files))
