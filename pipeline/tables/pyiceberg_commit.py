"""Commit of a run's parts to an Iceberg table: added in place, once, in one snapshot.

Parts have no column of dates: the table is partitioned by it as it is, so that readers take it from the log, as of imported Hive folders; and it
knows columns by their names, since parts number none. A property of the table says of every run which manifest was committed last. It changes in the
commit that adds the parts, which the catalog refuses where the table has another snapshot by then.
"""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date as Date
from datetime import timedelta
from typing import Any

import pyarrow as pa

from ..errors import SchemaMismatch, UsageError
from ..stores.uris import CATALOG, normalise, with_scheme
from .lakehouse import Mark, TableVersion
from .pyiceberg_table import EPOCH, FILES, has_rows, list_live, number_columns, refuse_deletes, reported
from .shared_parts import DATE, Share, SharedPart, new_columns, plain_fields, refuse_lacking, within

MAPPING = "schema.name-mapping.default"
FORMAT = {"format-version": "2"}
FIRST = (0, 1)  # number of a table's first snapshot: in version 1 of the format, where it is that of all, and in 2
MANIFEST, RUN = "leafledger.manifest", "leafledger.run"  # properties of a snapshot: which it committed, and of which run
WITHDRAWN = "withdrawn"  # what stands for a manifest where a run was taken out


def _refuse_other(table: Any, uri: str) -> None:
    fields = [(field.name, str(field.transform)) for field in table.spec().fields]
    if fields != [(DATE, "identity")] or table.schema().find_column_name(table.spec().fields[0].source_id) != DATE:
        made = ", ".join(f"{name} ({how})" for name, how in fields) or "nothing"
        raise UsageError(f"{uri}: is partitioned by {made}, expected {DATE}")
    kind = table.schema().find_type(DATE)
    if str(kind) != "date":  # of which the number of a day would be taken for a number of theirs
        raise UsageError(f"{uri}: is partitioned by {DATE!r}, which is a {kind}, expected a date")
    if table.metadata.format_version > 2:
        raise UsageError(f"{uri}: is of version {table.metadata.format_version} of Iceberg's format, expected 1 or 2")


def _data_file(table_metadata: Any, part: SharedPart, date: Date) -> Any:
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=with_scheme(part.uri),
        file_format=FileFormat.PARQUET,
        partition=Record((date - EPOCH).days),
        record_count=part.n_rows,
        file_size_in_bytes=part.size,
        sort_order_id=None,
        spec_id=table_metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
    )


def _list_types(schema: pa.Schema) -> dict[str, str]:
    """Types of columns as Arrow calls them; Iceberg has no whole numbers of 8 and 16 bits."""
    return {field.name: str(field.type).replace("int16", "int32").replace("int8", "int32") for field in plain_fields(schema)}


def _map_names(transaction: Any) -> None:
    transaction.set_properties({MAPPING: transaction.table_metadata.schema().name_mapping.model_dump_json()})


def _property(run: str) -> str:
    return f"leafledger.{run}"


def _change(transaction: Any, share: Share, old: Mapping[str, Any]) -> None:
    """Add parts and delete old ones. What is both is neither: who cleans up old snapshots takes a file for gone that one of them deleted."""
    spec, days = transaction.table_metadata.default_spec_id, (share.date - EPOCH).days
    there = {uri: (each.spec_id, each.partition[0], each.file_size_in_bytes, each.record_count) for uri, each in old.items()}
    kept = {part.uri for part in share.parts if there.get(part.uri) == (spec, days, part.size, part.n_rows)}
    transaction.set_properties({_property(share.run): f"{share.manifest} {len(share.parts)} {share.date}"})
    update = transaction.update_snapshot(snapshot_properties={MANIFEST: share.manifest, RUN: share.run})
    with update.overwrite() if old.keys() - kept else update.fast_append() as snapshot:
        for uri, found in old.items():
            if uri not in kept:
                snapshot.delete_data_file(found)
        for part in share.parts:
            if part.uri not in kept:
                snapshot.append_data_file(_data_file(transaction.table_metadata, part, share.date))


def _once(table: Any) -> None:
    """Let the library not try again by itself: it would add parts once more that somebody else has just added."""
    table.metadata.properties["commit.retry.num-retries"] = "0"  # of this object; what is committed are changes


def _was_undone(table: Any, run: str, manifest: str) -> bool:
    """The last of the snapshots that led to the table as it is and are of a run did not commit its manifest: it was set back to one from before."""
    from pyiceberg.table.snapshots import ancestors_of

    led_here = [*ancestors_of(table.current_snapshot(), table.metadata)]
    for summary in (snapshot.summary for snapshot in led_here if snapshot.summary is not None):
        if summary[RUN] == run or (summary[RUN] is None and summary[MANIFEST] == manifest):
            return summary[MANIFEST] != manifest
    first = led_here[-1] if led_here else None  # else older ones are not kept, and it may be one of them
    return first is None or (first.parent_snapshot_id is None and first.sequence_number in FIRST)


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """The newest snapshot of a table, see `LakehouseTable`."""

    uri: str
    catalog: Any
    name: str  # there
    table: Any  # None where there is none

    @staticmethod
    def locate(name: str, run: str, date: Date) -> str:  # noqa: ARG004 - it may lie under any date
        """Find the table that a run belongs to."""
        if len([part for part in name.split(".") if part]) < 3 or ".." in name:
            raise UsageError(f"table is iceberg:{name}, expected iceberg:CATALOG.NAMESPACE.TABLE")
        if "#" in run or "?" in run:  # one night of it, and no night of the table can be read
            raise UsageError(f"{run}: has '#' or '?', where the library pyiceberg takes the names of files to end; choose another output")
        return f"{CATALOG}{name}"

    @staticmethod
    def reported(doing: str, uri: str) -> AbstractContextManager[None]:
        """Turn what the library raises into one line."""
        return reported(doing, uri)

    @classmethod
    def open(cls, uri: str) -> "IcebergTable":
        """Open the newest snapshot."""
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError

        called, _, name = uri.removeprefix(CATALOG).partition(".")
        catalog = load_catalog(called, **FILES)
        try:
            return cls(uri, catalog, name, catalog.load_table(name))
        except NoSuchTableError:
            return cls(uri, catalog, name, None)

    @property
    def exists(self) -> bool:
        """There is a table."""
        return self.table is not None

    def refuse_new(self) -> None:
        """Refuse a namespace that the catalog does not have."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        namespace = self.name.rpartition(".")[0]
        try:
            self.catalog.load_namespace_properties(namespace)
        except NoSuchNamespaceError:
            raise UsageError(f"{self.uri}: the catalog has no namespace {namespace!r}, expected one that is there; make it first") from None

    def refuse_other(self, removing: bool = False) -> None:
        """Refuse a table by other partitions, or of a newer format; what is in it can be removed."""
        if not removing:
            _refuse_other(self.table, self.uri)

    def refuse_columns(self, names: Collection[str]) -> None:
        """Refuse columns of parts, which number none, that readers of the table would take for another one or for none."""
        refuse_lacking([field.name for field in self.table.schema().fields if field.required], names, self.uri)
        if self.table.name_mapping() is None:
            return
        columns = number_columns(self.table)
        for name in names:
            if columns.find_other(name, None) is not None:
                called = next((each for each, number in columns.now.items() if number == columns.unnumbered.get(name)), None)
                how = f"is not in the table's {MAPPING}" if called is None else f"is called {called!r} in the table by now"
                why = "so that readers would not find the values of all nights; commit it to another table"
                raise SchemaMismatch(f"{self.uri}: column {name!r} {how}, {why}")

    def find_mark(self, run: str) -> Mark:
        """Find what was committed of a run last; nothing where that was undone."""
        mark, held, day = (*self.table.properties.get(_property(run), "").split(" "), "", "")[:3]
        return Mark("", 0) if mark and _was_undone(self.table, run, mark) else Mark(mark, int(held or 0), day)

    def mark_of(self, manifest: str) -> str:
        """Write a manifest as marks have it."""
        return manifest

    def list_files(self, run: str) -> tuple[Collection[str], Mapping[str, Any]]:
        """List all files that count; and of these the parts of a run, no row of which others may have deleted by files of their own."""
        live, deletes = dict[str, Any](), list[tuple[Any, int]]()
        for found, spec in list_live(self.table, self.uri):
            live[normalise(found.file_path)] = found
            if not has_rows(found):
                deletes.append((found, spec))
        mine = {each: live[each] for each in sorted(within(run, live)) if has_rows(live[each])}
        nights, now = {found.partition[0] for found in mine.values()}, self.table.spec().spec_id
        for found, spec in deletes:
            if mine and (spec != now or found.partition[0] in nights):
                refuse_deletes(found, self.uri)
        return live, mine

    def refuse_removal(self, old: Mapping[str, Any]) -> None:
        """Refuse nothing: such tables let go of files."""

    def find_day(self, run: str) -> Date | None:
        """Find the date of a run's files."""
        _, mine = self.list_files(run)
        return next((EPOCH + timedelta(days=found.partition[0]) for found in mine.values()), None)

    def list_older(self) -> list[TableVersion]:
        """List the snapshots that have not expired."""
        found = list[TableVersion]()
        for snapshot in self.table.snapshots():
            if snapshot.snapshot_id != self.table.metadata.current_snapshot_id:
                entries = (each for one in snapshot.manifests(self.table.io) for each in one.fetch_manifest_entry(self.table.io))
                found.append(TableVersion(str(snapshot.snapshot_id), frozenset(normalise(each.data_file.file_path) for each in entries)))
        return found

    @staticmethod
    def say_expiry(uri: str) -> str:
        """Write the command in Python."""
        catalog, _, name = uri.removeprefix(CATALOG).partition(".")
        load = f"t = load_catalog({catalog!r}).load_table({name!r})"
        older = "t.maintenance.expire_snapshots().older_than(datetime.now()).commit()"
        return f"from datetime import datetime; from pyiceberg.catalog import load_catalog; {load}; {older}"

    def create(self, share: Share) -> None:
        """Make the table with a run's parts, in one commit that is refused where there is a table by then."""
        schema = share.schema.append(pa.field(DATE, pa.date32()))
        with self.catalog.create_table_transaction(self.name, schema, properties=FORMAT) as transaction:
            with transaction.update_spec() as spec:
                spec.add_identity(DATE)
            _map_names(transaction)
            _change(transaction, share, {})

    def add(self, share: Share, old: Mapping[str, Any]) -> bool:
        """Let the table have a run's parts in the place of old ones."""
        self.refuse_columns(share.schema.names)
        missing = new_columns(_list_types(self.table.schema().as_arrow()), _list_types(share.schema), self.uri)
        _once(self.table)
        with self.table.transaction() as transaction:
            if missing:
                with transaction.update_schema() as schema:
                    schema.union_by_name(pa.schema([share.schema.field(each) for each in missing]))
            if self.table.name_mapping() is None:
                _map_names(transaction)
            _change(transaction, share, old)
        return True

    def remove(self, run: str, old: Mapping[str, Any]) -> None:
        """Take a run's parts out of the table."""
        _once(self.table)
        with self.table.transaction() as transaction:
            transaction.remove_properties(_property(run))
            with transaction.update_snapshot(snapshot_properties={MANIFEST: WITHDRAWN, RUN: run}).overwrite() as snapshot:
                for found in old.values():
                    snapshot.delete_data_file(found)

    def was_overtaken(self, error: Exception) -> bool:
        """Tell whether somebody else committed, or made the table, at the same time."""
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        return isinstance(error, (CommitFailedException, TableAlreadyExistsError))
