"""Parts of a run as files of an Iceberg table: added where they lie, in one snapshot, once.

Parts have no column of dates: the table is partitioned by it as it is, so that readers take it from the log, as of imported Hive folders; and it
knows columns by their names, since parts number none. A property of the table says of every run which manifest was committed last. It changes in the
commit that adds the parts, which the catalog refuses where the table has another snapshot by then.
"""

from collections.abc import Callable, Collection
from datetime import date as Date
from typing import Any

import pyarrow as pa

from ..errors import SchemaMismatch, UsageError
from ..stores.uris import CATALOG, normalise, with_scheme
from .pyiceberg_table import EPOCH, FILES, has_rows, list_live, number_columns, refuse_deletes, reported
from .share import DATE, Removal, Share, SharedPart, check_all_there, check_alone, new_columns, plain_fields, refuse_lacking, within

ATTEMPTS = 10  # lost to others before a commit is given up
MAPPING = "schema.name-mapping.default"
FORMAT = {"format-version": "2"}
FIRST = (0, 1)  # number of a table's first snapshot: in version 1 of the format, where it is that of all, and in 2
MANIFEST, RUN = "leafledger.manifest", "leafledger.run"  # properties of a snapshot: which it committed, and of which run


def locate_iceberg(name: str, run: str, date: Date) -> str:  # noqa: ARG001 - it may lie under any date
    """Find the table that a run belongs to."""
    if len([part for part in name.split(".") if part]) < 3 or ".." in name:
        raise UsageError(f"table is iceberg:{name}, expected iceberg:CATALOG.NAMESPACE.TABLE")
    if "#" in run or "?" in run:  # one night of it, and no night of the table can be read
        raise UsageError(f"{run}: has '#' or '?', where the library pyiceberg takes the names of files to end; choose another output")
    return f"{CATALOG}{name}"


def _open(uri: str) -> tuple[Any, str, Any]:
    """The catalog, the table's name there, and the table; None where there is none yet."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    called, _, name = uri.removeprefix(CATALOG).partition(".")
    catalog = load_catalog(called, **FILES)
    try:
        return catalog, name, catalog.load_table(name)
    except NoSuchTableError:
        return catalog, name, None


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


def _refuse_columns(table: Any, names: Collection[str], uri: str) -> None:
    """Refuse columns of parts, which number none, that readers of the table would take for another one or for none."""
    refuse_lacking([field.name for field in table.schema().fields if field.required], names, uri)
    if table.name_mapping() is None:
        return
    columns = number_columns(table)
    for name in names:
        if columns.find_other(name, None) is not None:
            called = next((each for each, number in columns.now.items() if number == columns.unnumbered.get(name)), None)
            how = f"is not in the table's {MAPPING}" if called is None else f"is called {called!r} in the table by now"
            raise SchemaMismatch(f"{uri}: column {name!r} {how}, so that readers would not find the values of all nights; commit it to another table")


def check_iceberg(uri: str, names: Collection[str]) -> None:
    """Refuse a table that parts cannot be added to as they are, while nothing is explained yet."""
    with reported("read", uri):
        catalog, name, table = _open(uri)
        if table is None:
            catalog.load_namespace_properties(name.rpartition(".")[0])
    if table is not None:
        _refuse_other(table, uri)
        _refuse_columns(table, names, uri)


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


def _create(catalog: Any, name: str, share: Share) -> None:
    """A table with the run's parts, in one commit that is refused where there is a table by then."""
    with catalog.create_table_transaction(name, share.schema.append(pa.field(DATE, pa.date32())), properties=FORMAT) as transaction:
        with transaction.update_spec() as spec:
            spec.add_identity(DATE)
        _map_names(transaction)
        _change(transaction, share, [])


def _map_names(transaction: Any) -> None:
    transaction.set_properties({MAPPING: transaction.table_metadata.schema().name_mapping.model_dump_json()})


def _property(run: str) -> str:
    return f"leafledger.{run}"


def _change(transaction: Any, share: Share, old: list[Any]) -> None:
    transaction.set_properties({_property(share.run): f"{share.manifest} {len(share.parts)} {share.date}"})
    update = transaction.update_snapshot(snapshot_properties={MANIFEST: share.manifest, RUN: share.run})
    with update.overwrite() if old else update.fast_append() as snapshot:
        for found in old:
            snapshot.delete_data_file(found)
        for part in share.parts:
            snapshot.append_data_file(_data_file(transaction.table_metadata, part, share.date))


def _once(table: Any) -> None:
    """Let the library not try again by itself: it would add parts once more that somebody else has just added."""
    table.metadata.properties["commit.retry.num-retries"] = "0"  # of this object; what is committed are changes


def _list_files(table: Any, run: str, uri: str) -> tuple[dict[str, Any], list[Any]]:
    """All files that count, and of these the parts of a run, no row of which others may have deleted by files of their own."""
    live, deletes = dict[str, Any](), list[tuple[Any, int]]()
    for found, spec in list_live(table, uri):
        live[normalise(found.file_path)] = found
        if not has_rows(found):
            deletes.append((found, spec))
    mine = [live[each] for each in sorted(within(run, live)) if has_rows(live[each])]
    nights, now = {found.partition[0] for found in mine}, table.spec().spec_id
    for found, spec in deletes:
        if mine and (spec != now or found.partition[0] in nights):
            refuse_deletes(found, uri)
    return live, mine


def _was_undone(table: Any, run: str, manifest: str) -> bool:
    """None of the snapshots that led to the table as it is committed a run's manifest: it was set back to one from before."""
    from pyiceberg.table.snapshots import ancestors_of

    led_here = [*ancestors_of(table.current_snapshot(), table.metadata)]
    for summary in (snapshot.summary for snapshot in led_here if snapshot.summary is not None):
        if summary[MANIFEST] == manifest and summary[RUN] in (run, None):
            return False
    first = led_here[-1] if led_here else None  # else older ones are not kept, and it may be one of them
    return first is None or (first.parent_snapshot_id is None and first.sequence_number in FIRST)


def _find_mark(table: Any, run: str) -> tuple[str, int, str]:
    """Which manifest of a run was committed last, how many parts it had, and under which date, where that is said; none where it was undone."""
    mark, held, day = (*table.properties.get(_property(run), "").split(" "), "", "")[:3]
    return ("", 0, "") if mark and _was_undone(table, run, mark) else (mark, int(held or 0), day)


def _try(uri: str, share: Share) -> None:
    """One attempt, from the newest snapshot."""
    catalog, name, table = _open(uri)
    if table is None:
        if share.stands():
            _create(catalog, name, share)
        return
    _refuse_other(table, uri)
    mark, held, day = _find_mark(table, share.run)
    is_there = mark == share.manifest and day in ("", str(share.date))  # else it is of another day by now, as where a wrong one was given
    if is_there or not share.stands():  # asked once the table is open: who takes its place from now on is noticed
        return
    _, old = _list_files(table, share.run, uri)
    check_all_there(held, len(old), share.run, uri)
    _refuse_columns(table, share.schema.names, uri)
    missing = new_columns(_list_types(table.schema().as_arrow()), _list_types(share.schema), uri)
    _once(table)
    with table.transaction() as transaction:
        if missing:
            with transaction.update_schema() as schema:
                schema.union_by_name(pa.schema([share.schema.field(each) for each in missing]))
        if table.name_mapping() is None:
            _map_names(transaction)
        _change(transaction, share, old)


def _repeat(uri: str, attempt: Callable[[], None]) -> None:
    """Try again where somebody else committed at the same time."""
    with reported("write", uri):
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        for left in reversed(range(ATTEMPTS)):
            try:
                attempt()
                return
            except (CommitFailedException, TableAlreadyExistsError):
                if not left:
                    raise


def commit_iceberg(uri: str, share: Share) -> None:
    """Let a table have a run's parts, in the place of those of an earlier run in the same folder; do nothing where it has them, or where another run
    has taken the run's place.
    """
    _repeat(uri, lambda: _try(uri, share))


def holds_iceberg(uri: str, run: str, manifest: str) -> bool:
    """Tell whether a manifest is the last of a run that was committed to a table."""
    with reported("read", uri):
        _, _, table = _open(uri)
        return table is not None and _find_mark(table, run)[0] == manifest


def withdraw_iceberg(uri: str, leaving: Removal) -> None:
    """Take a run's parts out of a table, before they are removed; do nothing where it has none."""

    def attempt() -> None:
        _, _, table = _open(uri)
        if table is None:
            return
        mark, held, _ = _find_mark(table, leaving.run)
        if leaving.manifest is not None and mark != leaving.manifest:
            return
        if leaving.wanted is not None and not leaving.wanted():
            return
        live, old = _list_files(table, leaving.run, uri)
        check_all_there(held, len(old), leaving.run, uri)
        if leaving.whole:
            check_alone(leaving.run, live, uri)
        if not held:
            return
        _once(table)
        with table.transaction() as transaction:
            transaction.remove_properties(_property(leaving.run))
            with transaction.update_snapshot().overwrite() as snapshot:
                for found in old:
                    snapshot.delete_data_file(found)

    _repeat(uri, attempt)
