"""Snapshots of an Iceberg table: parts where they lie, what is refused, and what others did meanwhile."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, IntegerType, NestedField, StringType

from leafledger.pipeline.errors import SchemaMismatch, StorageError, UsageError
from leafledger.pipeline.tables.pyiceberg_commit import IcebergTable
from leafledger.pipeline.tables.shared_parts import Removal, SharedPart
from leafledger.pipeline.tables.writing import ATTEMPTS, TablePlace
from tests.pipeline.tables.iceberg import NAME, ROWS, flights, read, share


def test_the_table_says_what_was_added(catalog, tmp_path):
    """A property of which manifest, a snapshot that names it too, files with the date, rows and size; and it knows columns by their names."""
    mine = share(tmp_path, folder="/a b%")
    TablePlace("iceberg", NAME).commit(mine)
    table = catalog.load_table("prod.explained")
    assert table.properties[f"leafledger.{mine.run}"] == "0123456789abcdef 1 2026-11-22"
    assert [snapshot.summary["leafledger.manifest"] for snapshot in table.snapshots()] == ["0123456789abcdef"]
    (task,) = table.scan().plan_files()
    assert (task.file.file_path, task.file.record_count, task.file.file_size_in_bytes) == (f"file://{mine.parts[0].uri}", 3, mine.parts[0].size)
    assert table.metadata.format_version == 2
    found = read(catalog)
    assert found["date"].to_pylist() == [date(2026, 11, 22)] * 3
    assert found["flight"].type == pa.int32()


def test_once_whoever_else_commits(catalog, tmp_path):
    """Another run's commit in between changes nothing, nor do snapshots that expire."""
    for mine in (share(tmp_path), share(tmp_path, "2026-11-23")):
        TablePlace("iceberg", NAME).commit(mine)
    table = catalog.load_table("prod.explained")
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    TablePlace("iceberg", NAME).commit(share(tmp_path))
    assert len(catalog.load_table("prod.explained").snapshots()) == 1
    assert flights(catalog) == [1, 1, 2, 2, 3, 3]


def test_an_earlier_manifest_may_come_back(catalog, tmp_path):
    """It is the last that counts, not whether it was there once."""
    for manifest, n_rows in (("a" * 64, 3), ("b" * 64, 2), ("a" * 64, 3)):
        TablePlace("iceberg", NAME).commit(share(tmp_path, manifest=manifest, rows=ROWS.slice(0, n_rows)))
        assert flights(catalog) == [1, 2, 3][:n_rows]


def test_parts_that_stay_are_not_committed_again(catalog, tmp_path):
    """No snapshot deletes them: who cleans up after it, as Spark does where snapshots expire, would remove a file that the table needs."""
    mine = share(tmp_path)
    place = TablePlace("iceberg", NAME)
    place.commit(mine)
    path = Path(mine.run) / "attributions" / "part-00001-x.parquet"
    pq.write_table(ROWS, path)
    place.commit(replace(mine, manifest="b" * 16, parts=(*mine.parts, SharedPart(str(path), path.stat().st_size, ROWS.num_rows))))
    assert flights(catalog) == [1, 1, 2, 2, 3, 3]
    place.commit(replace(mine, manifest="c" * 16))
    place.commit(replace(mine, manifest="d" * 16))
    table = load_catalog("nights").load_table("prod.explained")
    changed = [
        (int(entry.status), entry.data_file.file_path.rpartition("/")[2])
        for snapshot in table.snapshots()
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        if entry.snapshot_id == snapshot.snapshot_id and int(entry.status)
    ]
    assert changed == [(1, "part-00000.parquet"), (1, "part-00001-x.parquet"), (2, "part-00001-x.parquet")]
    assert len(table.snapshots()) == 4
    assert flights(catalog) == [1, 2, 3]
    assert IcebergTable.open(NAME).find_mark(mine.run).mark == "d" * 16


def test_what_is_withdrawn_may_come_back(catalog, tmp_path):
    """Withdrawing twice, or what was never there, does nothing."""
    TablePlace("iceberg", NAME).withdraw(Removal(f"{tmp_path}/runs/2026-11-22"))
    for mine in (share(tmp_path), share(tmp_path, "2026-11-23")):
        TablePlace("iceberg", NAME).commit(mine)
    for _ in range(2):
        TablePlace("iceberg", NAME).withdraw(Removal(f"{tmp_path}/runs/2026-11-22"))
    assert flights(catalog) == [1, 2, 3]
    TablePlace("iceberg", NAME).commit(share(tmp_path))
    assert flights(catalog) == [1, 1, 2, 2, 3, 3]


def test_columns_are_added_and_missing_ones_stay(catalog, tmp_path):
    """With what is in them, lists of records too; one of another type is refused."""
    TablePlace("iceberg", NAME).commit(share(tmp_path))
    more = ROWS.append_column("top", pa.array([[{"feature": "x"}]] * 3))
    TablePlace("iceberg", NAME).commit(share(tmp_path, "2026-11-23", rows=more))
    TablePlace("iceberg", NAME).commit(share(tmp_path, "2026-11-24"))
    found = read(catalog)
    assert found.num_rows == 9
    assert found["top"].null_count == 6
    assert found["top"].drop_null()[0].as_py() == [{"feature": "x"}]
    with pytest.raises(SchemaMismatch, match=rf"^{NAME}: column 'flight' is int32, the run's is string; commit it to another table$"):
        TablePlace("iceberg", NAME).commit(share(tmp_path, "2026-11-25", rows=pa.table({"flight": ["a"]})))


def test_what_readers_would_take_for_another_column_is_refused(catalog, tmp_path):
    """Parts number no columns: under a name that the table has for another one, or for none, their values would be lost, or those of other nights."""
    TablePlace("iceberg", NAME).commit(share(tmp_path))
    with catalog.load_table("prod.explained").update_schema() as schema:
        schema.rename_column("phi a", "phi b")
    for act in (
        lambda: TablePlace("iceberg", NAME).check(ROWS.column_names),
        lambda: TablePlace("iceberg", NAME).commit(share(tmp_path, "2026-11-23")),
    ):
        with pytest.raises(SchemaMismatch, match=rf"^{NAME}: column 'phi a' is called 'phi b' in the table by now, [^\n]+ to another table$"):
            act()
    assert read(catalog)["phi b"].to_pylist() == ROWS["phi a"].to_pylist()
    names = '[{"field-id": 1, "names": ["flight"]}, {"field-id": 3, "names": ["date"]}]'
    with catalog.load_table("prod.explained").transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": names})
    with pytest.raises(SchemaMismatch, match=rf"^{NAME}: column 'phi b' is not in the table's schema\.name-mapping\.default, "):
        TablePlace("iceberg", NAME).check(["flight", "phi b"])
    TablePlace("iceberg", NAME).check(ROWS.column_names)


def test_a_column_of_every_row_is_refused_where_the_run_has_none(catalog, tmp_path):
    """Readers refuse all of the table then."""
    every = Schema(NestedField(1, "flight", IntegerType()), NestedField(2, "region", StringType(), required=True), NestedField(3, "date", DateType()))
    with catalog.create_table("prod.explained", every).update_spec() as spec:
        spec.add_identity("date")
    for act in (lambda: TablePlace("iceberg", NAME).check(ROWS.column_names), lambda: TablePlace("iceberg", NAME).commit(share(tmp_path))):
        with pytest.raises(SchemaMismatch, match=rf"^{NAME}: column 'region' may not be null there, and the run has none; commit it"):
            act()
    TablePlace("iceberg", NAME).check(["region", *ROWS.column_names])


@pytest.mark.parametrize("name", ["a#b", "a?b"])
def test_where_the_library_finds_no_files_no_run_lies(name):
    """It takes what follows for another part of a URI."""
    with pytest.raises(UsageError, match=r"^/runs/a[#?]b: has '#' or '\?', where the library pyiceberg takes [^\n]+$"):
        IcebergTable.locate("nights.prod.explained", f"/runs/{name}", date(2026, 11, 22))


def test_a_namespace_has_to_be_there(catalog):
    """A table need not."""
    TablePlace("iceberg", NAME).check(ROWS.column_names)
    says = "^iceberg:nights.other.explained: the catalog has no namespace 'other', expected one that is there; make it first$"
    with pytest.raises(UsageError, match=says.replace(".", r"\.")):  # exit code 2, not one that is tried again
        TablePlace("iceberg", "iceberg:nights.other.explained").check(ROWS.column_names)


def test_tables_of_the_format_s_first_version(catalog, tmp_path):
    """Night after night, and again where others went back to the first."""
    schema = pa.schema([("flight", pa.int32()), ("phi a", pa.float32()), ("date", pa.date32())])
    table = catalog.create_table("prod.explained", schema, properties={"format-version": "1"})
    with table.update_spec() as spec:
        spec.add_identity("date")
    early, late = share(tmp_path, "2026-11-21"), share(tmp_path, rows=ROWS.slice(1))
    for mine in (early, late, late):
        TablePlace("iceberg", NAME).commit(mine)
    table = catalog.load_table("prod.explained")
    assert (table.metadata.format_version, len(table.snapshots())) == (1, 2)
    table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
    assert flights(catalog) == [1, 2, 3]
    TablePlace("iceberg", NAME).commit(late)
    assert flights(catalog) == [1, 2, 2, 3, 3]
    TablePlace("iceberg", NAME).withdraw(Removal(early.run))
    assert flights(catalog) == [2, 3]


def test_a_table_set_back_to_where_a_run_was_withdrawn_does_not_have_it(catalog, tmp_path):
    """Though the same manifest was committed before that, and after: it is committed again."""
    mine, place = share(tmp_path), TablePlace("iceberg", NAME)
    place.commit(mine)
    place.withdraw(Removal(mine.run))
    without = catalog.load_table("prod.explained").current_snapshot().snapshot_id
    place.commit(mine)
    assert flights(catalog) == [1, 2, 3]
    catalog.load_table("prod.explained").manage_snapshots().rollback_to_snapshot(without).commit()
    assert flights(catalog) == []
    assert not place.holds(mine.run, mine.manifest)
    place.commit(mine)
    assert flights(catalog) == [1, 2, 3]
    assert place.holds(mine.run, mine.manifest)


@pytest.mark.parametrize("kind", [pa.int32(), pa.timestamp("us"), pa.string()], ids=str)
def test_tables_by_dates_of_another_type_are_refused(catalog, tmp_path, kind):
    """A day is written as its number: 20779, or 20,779 microseconds after 1970."""
    table = catalog.create_table("prod.explained", pa.schema([("flight", pa.int64()), ("date", kind)]))
    with table.update_spec() as spec:
        spec.add_identity("date")
    for act in (lambda: TablePlace("iceberg", NAME).check(ROWS.column_names), lambda: TablePlace("iceberg", NAME).commit(share(tmp_path))):
        with pytest.raises(UsageError, match=rf"^{NAME}: is partitioned by 'date', which is a (int|timestamp|string), expected a date$"):
            act()


def test_a_run_of_another_day(catalog, tmp_path):
    """Where the wrong one was given at first; a table of which no day is said, as earlier ones are, has the run as it is."""
    mine = share(tmp_path)
    for day in (date(2026, 11, 21), date(2026, 11, 22), date(2026, 11, 22)):
        TablePlace("iceberg", NAME).commit(replace(mine, date=day))
        assert catalog.load_table("prod.explained").scan().to_arrow()["date"].to_pylist() == [day] * 3
    assert len(catalog.load_table("prod.explained").snapshots()) == 2
    with catalog.load_table("prod.explained").transaction() as transaction:
        transaction.set_properties({f"leafledger.{mine.run}": f"{mine.manifest} 1"})
    TablePlace("iceberg", NAME).commit(replace(mine, date=date(2026, 11, 23)))
    assert len(catalog.load_table("prod.explained").snapshots()) == 2
    TablePlace("iceberg", NAME).withdraw(Removal(mine.run))
    assert flights(catalog) == []


def test_the_library_does_not_try_again_by_itself(catalog, tmp_path, monkeypatch):
    """It would add the same parts to a snapshot that it has not seen; whoever lost looks first."""
    TablePlace("iceberg", NAME).commit(share(tmp_path))
    wrapped, commits = type(catalog).commit_table, []

    def overtaken(self, *given):
        commits.append(True)
        if len(commits) == 1:
            TablePlace("iceberg", NAME).commit(share(tmp_path, "2026-11-23"))
        return wrapped(self, *given)

    monkeypatch.setattr(type(catalog), "commit_table", overtaken)
    TablePlace("iceberg", NAME).commit(share(tmp_path, "2026-11-23"))
    assert len(commits) == 2
    assert flights(catalog) == [1, 1, 2, 2, 3, 3]


def test_who_always_loses_gives_up(catalog, monkeypatch, tmp_path):
    """After some attempts, in one line."""
    tried = []

    def lose(*_):
        tried.append(True)
        raise CommitFailedException("others were faster")

    monkeypatch.setattr(IcebergTable, "create", lose)
    with pytest.raises(StorageError, match=rf"^{NAME}: cannot write: others were faster$"):
        TablePlace("iceberg", NAME).commit(share(tmp_path))
    assert len(tried) == ATTEMPTS


def test_a_run_that_does_not_stand_any_more_is_left_alone(catalog, tmp_path):
    """Asked once the table is open: what was committed meanwhile stays, and there is nothing to withdraw."""
    asked = []

    def overtaken():
        asked.append(True)
        if len(asked) == 1:
            TablePlace("iceberg", NAME).commit(share(tmp_path, manifest="f" * 64, rows=ROWS.slice(1)))
        return False

    late = share(tmp_path, stands=overtaken)
    for _ in range(2):  # where there is no table, and where there is one
        TablePlace("iceberg", NAME).commit(late)
        assert flights(catalog) == [2, 3]
    TablePlace("iceberg", NAME).withdraw(Removal(late.run, wanted=overtaken))
    TablePlace("iceberg", NAME).withdraw(Removal(late.run, manifest=late.manifest))
    assert flights(catalog) == [2, 3]
    TablePlace("iceberg", NAME).withdraw(Removal(late.run, manifest="f" * 64, wanted=lambda: True))
    assert flights(catalog) == []
    assert len(asked) == 3
