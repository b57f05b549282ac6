"""Iceberg tables through the library ``pyiceberg``: opening, and listing of live files."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date as Date
from datetime import timedelta
from typing import Any

from ..errors import LeafledgerError, NotThere, StorageError, UsageError
from ..extras import EXTRAS, needing, say_missing
from ..stores import storage
from ..stores.storage import list_folder
from ..stores.uris import CATALOG, normalise
from .live_files import Columns, Hive, LiveFile, Snapshot, list_once, write_value

LOOKERS = 16  # files that are looked up at a time
METADATA = re.compile(r"(?:^|/)metadata/[^/]+\.metadata\.json$")
_NUMBERED = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json(\.gz)?")  # by tables whose folder is their only catalog; some compress newer ones
FILES = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}  # stores are reached as all others are
WRITTEN = ("string", "int", "long", "boolean", "date")  # types of values of which each is written in one way
EPOCH = Date(1970, 1, 1)


@contextmanager
def reported(doing: str, uri: str) -> Iterator[None]:
    """Turn what the library raises inside into one line."""
    with needing(f"{uri}: an Iceberg table", "pyiceberg"):
        import pyiceberg.table  # noqa: F401 - whether it is there
        from pyiceberg.exceptions import NoSuchTableError
    try:
        yield
    except LeafledgerError:
        raise
    except Exception as error:  # the library and its own have no base, and of damaged files it says whatever it stumbles over
        if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:  # of the store that its files are in
            raise UsageError(say_missing(uri, error.name, error)) from error
        is_missing = doing == "read" and isinstance(error, (NoSuchTableError, FileNotFoundError))
        raise (NotThere if is_missing else StorageError)(f"{uri}: cannot {doing}: {' '.join(str(error).split()) or type(error).__name__}") from error


def load_named(name: str) -> Any:
    """Load a table by its name in a catalog, which the library's own configuration knows."""
    catalog, _, table = name.removeprefix(CATALOG).partition(".")
    with reported("read", name):
        from pyiceberg.catalog import load_catalog

        return load_catalog(catalog, **FILES).load_table(table)


def _find_metadata(uri: str) -> str:
    """The metadata file of a folder that is its own catalog."""
    if METADATA.search(uri):
        return uri
    found = [each for name in list_folder(storage.join(uri, "metadata")).files if (each := _NUMBERED.fullmatch(name))]
    if not found:
        raise UsageError(
            f"{uri}: is an Iceberg table of which its catalog alone knows what counts; name it as {CATALOG}CATALOG.NAMESPACE.TABLE, or name "
            "the file, metadata/….metadata.json"
        )
    newest = max(found, key=lambda each: int(each[1]))
    if newest[2]:
        raise UsageError(f"{uri}: its newest metadata are {newest[0]}, as old versions of Iceberg called them, which pyiceberg does not read")
    return storage.join(uri, "metadata", newest[0])


def _values(spec: Any, schema: Any, record: Any, uri: str) -> Hive:
    """What the log carries for a whole file of the columns that the table is partitioned by as they are, which need not be in the file."""
    found = []
    for position, field in enumerate(spec.fields):
        name = schema.find_column_name(field.source_id)
        if name is None or str(field.transform) != "identity":
            continue
        value, kind = record[position], str(schema.find_type(field.source_id))
        if kind not in WRITTEN:
            raise UsageError(
                f"{uri}: is partitioned by {name!r}, which is a {kind}, expected one of {', '.join(WRITTEN)}; explain a copy of its rows"
            )
        found.append((name, write_value(EPOCH + timedelta(days=value) if kind == "date" and value is not None else value)))
    return tuple(sorted(found))


def number_columns(table: Any) -> Columns:
    """Find the numbers of a table's columns, and what these are called in files that have no numbers."""
    mapping, now = table.name_mapping(), {field.name: field.field_id for field in table.schema().fields}
    unnumbered = {} if mapping is None else {name: field.field_id for field in mapping.root for name in field.names if field.field_id is not None}
    return Columns(now, unnumbered)


def list_live(table: Any, uri: str) -> Iterator[tuple[Any, int]]:
    """List all files of a table that count, those that say which rows are deleted with them."""
    snapshot = table.current_snapshot()
    if snapshot is None and table.metadata.current_snapshot_id is not None:
        raise UsageError(f"{uri}: has no snapshot {table.metadata.current_snapshot_id}, which is its newest; its metadata are damaged")
    for manifest in () if snapshot is None else snapshot.manifests(table.io):
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.data_file, manifest.partition_spec_id


def has_rows(found: Any) -> bool:
    """Tell a file of rows from one that says which rows of others are deleted."""
    return int(found.content) == 0


def refuse_deletes(found: Any, uri: str) -> None:
    """Refuse a file that says which rows of others are deleted."""
    if not has_rows(found):
        raise UsageError(
            f"{uri}: {found.file_path.rpartition('/')[2]} says which rows of its files are deleted ({found.content.name.lower()}); have them written "
            "anew, as by rewrite_data_files"
        )


def list_entries(table: Any, uri: str) -> Iterator[tuple[Any, Hive]]:
    """List the files of a table that count."""
    for found, spec in list_live(table, uri):
        refuse_deletes(found, uri)
        if found.file_format.name != "PARQUET":
            raise UsageError(f"{uri}: {found.file_path.rpartition('/')[2]} is a file of {found.file_format.name}, expected Parquet")
        yield found, _values(table.specs()[spec], table.schema(), found.partition, uri)


def read_iceberg(uri: str) -> Snapshot:
    """List the files of a table that count."""
    if uri.startswith(CATALOG):
        table = load_named(uri)
    else:
        place = _find_metadata(uri)
        with reported("read", uri):
            from pyiceberg.table import StaticTable

            table = StaticTable.from_metadata(place, FILES)
    with reported("read", uri):
        places = list_once([(normalise(found.file_path), values) for found, values in list_entries(table, uri)], uri)
        columns = number_columns(table)
    with ThreadPoolExecutor(LOOKERS) as lookers:
        found = list(lookers.map(storage.stat, places))
    files = (LiveFile(file, values, columns) for file, values in zip(found, places.values(), strict=True))
    return Snapshot(normalise(table.metadata_location), tuple(files))
