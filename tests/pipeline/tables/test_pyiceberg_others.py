"""Iceberg tables that others write to as well: what they rewrote, deleted or undid, and folders with files of theirs."""

from datetime import date

import pyarrow as pa
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.typedef import Record

from leafledger.pipeline.errors import SchemaMismatch, UsageError
from leafledger.pipeline.tables.pyiceberg_table import list_live
from leafledger.pipeline.tables.shared_parts import Removal
from leafledger.pipeline.tables.writing import TablePlace
from tests.pipeline.tables.iceberg import NAME, ROWS, flights, read, share


def test_tables_of_others(catalog, tmp_path):
    """Taken where they are partitioned by the date as it is, and know columns by their names or by none."""
    schema = pa.schema([("flight", pa.int32()), ("phi a", pa.float32()), ("date", pa.date32())])
    table = catalog.create_table("prod.explained", schema)
    with pytest.raises(UsageError, match=rf"^{NAME}: is partitioned by nothing, expected date$"):
        TablePlace("iceberg", NAME).check(ROWS.column_names)
    with table.update_spec() as spec:
        spec.add_field("date", "month", "month")
    with pytest.raises(UsageError, match=rf"^{NAME}: is partitioned by month \(month\), expected date$"):
        TablePlace("iceberg", NAME).commit(share(tmp_path))
    catalog.drop_table("prod.explained")
    table = catalog.create_table("prod.explained", schema)
    with table.update_spec() as spec:
        spec.add_identity("date")
    table.append(pa.table({"flight": [7], "phi a": [0.5], "date": [date(2026, 11, 22)]}, schema))
    TablePlace("iceberg", NAME).commit(share(tmp_path))
    assert flights(catalog) == [1, 2, 3, 7]
    TablePlace("iceberg", NAME).withdraw(Removal(f"{tmp_path}/runs/2026-11-22"))
    assert flights(catalog) == [7]


def test_what_others_rewrote_is_not_withdrawn(catalog, tmp_path):
    """The table stays as it is, and the run is said to be in it; also where nothing says any more that its parts were committed."""
    mine = share(tmp_path)
    TablePlace("iceberg", NAME).commit(mine)
    kept = catalog.load_table("prod.explained").current_snapshot().snapshot_id
    catalog.load_table("prod.explained").overwrite(read(catalog))
    for leaving in (Removal(mine.run), Removal(mine.run, whole=True)):
        with pytest.raises(SchemaMismatch, match=rf"^{NAME}: 1 files of a run in {mine.run} were committed, 0 count now: others have rewritten"):
            TablePlace("iceberg", NAME).withdraw(leaving)
    assert flights(catalog) == [1, 2, 3]
    catalog.load_table("prod.explained").manage_snapshots().rollback_to_snapshot(kept).commit()
    with catalog.load_table("prod.explained").transaction() as transaction:
        transaction.remove_properties(f"leafledger.{mine.run}")
    for act in (lambda: TablePlace("iceberg", NAME).withdraw(Removal(mine.run)), lambda: TablePlace("iceberg", NAME).commit(mine)):
        with pytest.raises(SchemaMismatch, match=r"0 files of a run in .* were committed, 1 count now"):
            act()


@pytest.mark.parametrize("content", [DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES])
@pytest.mark.slow
def test_files_that_delete_rows_of_a_night_are_in_no_other_night_s_way(catalog, tmp_path, monkeypatch, content):
    """As others write them who do not write rows anew: later nights are added, and none whose rows they may be of is replaced or withdrawn."""
    mine = share(tmp_path)
    TablePlace("iceberg", NAME).commit(mine)
    table = catalog.load_table("prod.explained")
    (tmp_path / "gone.parquet").write_bytes(b"PAR1")
    gone = DataFile.from_args(
        content=content,
        file_path=f"file://{tmp_path}/gone.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record((mine.date - date(1970, 1, 1)).days),
        record_count=1,
        file_size_in_bytes=4,
        sort_order_id=None,
        spec_id=0,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
        key_metadata=None,
    )
    with monkeypatch.context() as patch, table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        patch.setattr(ManifestWriterV2, "content", lambda self: ManifestContent.DELETES)
        snapshot.append_data_file(gone)
    TablePlace("iceberg", NAME).commit(mine)
    later = share(tmp_path, "2026-11-23")
    TablePlace("iceberg", NAME).commit(later)
    replaced = share(tmp_path, "2026-11-23", manifest="f" * 64, rows=ROWS.slice(1))
    TablePlace("iceberg", NAME).commit(replaced)
    entries = [entry for entry, _ in list_live(catalog.load_table("prod.explained"), NAME)]
    assert sorted(entry.file_path.removeprefix("file://") for entry in entries) == sorted(
        [mine.parts[0].uri, replaced.parts[0].uri, f"{tmp_path}/gone.parquet"]
    )
    TablePlace("iceberg", NAME).withdraw(Removal(later.run))
    again = share(tmp_path, manifest="e" * 64, rows=ROWS.slice(2))
    for act in (lambda: TablePlace("iceberg", NAME).commit(again), lambda: TablePlace("iceberg", NAME).withdraw(Removal(mine.run))):
        with pytest.raises(UsageError, match=r"gone\.parquet says which rows of its files are deleted"):
            act()


@pytest.mark.slow
def test_a_commit_that_others_undid_is_made_again(catalog, tmp_path):
    """They set the table back to a snapshot before it; the table's properties, which say what was committed, do not go back with it."""
    early, mine = share(tmp_path, "2026-11-21"), share(tmp_path, rows=ROWS.slice(1))
    TablePlace("iceberg", NAME).commit(early)
    before = catalog.load_table("prod.explained").current_snapshot().snapshot_id
    TablePlace("iceberg", NAME).commit(mine)
    catalog.load_table("prod.explained").manage_snapshots().rollback_to_snapshot(before).commit()
    assert flights(catalog) == [1, 2, 3]
    TablePlace("iceberg", NAME).withdraw(Removal(mine.run))  # there is nothing to take out
    assert flights(catalog) == [1, 2, 3]
    for _ in range(2):
        TablePlace("iceberg", NAME).commit(mine)
        TablePlace("iceberg", NAME).commit(early)
        assert flights(catalog) == [1, 2, 2, 3, 3]
    catalog.load_table("prod.explained").delete("flight > 0")  # which is no way back
    TablePlace("iceberg", NAME).commit(mine)
    assert flights(catalog) == []


def test_a_folder_with_files_of_others_is_not_left_to_go(catalog, tmp_path):
    """A run in it that is in the same table, of which nobody knows otherwise: the outer one can be taken out, but all of the folder must not go."""
    mine = share(tmp_path)
    for each in (mine, share(tmp_path, folder="/b"), share(tmp_path, manifest="f" * 64, rows=ROWS.slice(2))):
        TablePlace("iceberg", NAME).commit(each)
    assert flights(catalog) == [1, 2, 3, 3]
    with pytest.raises(SchemaMismatch, match=rf"^{NAME}: 1 of its files, as b/attributions/part-00000\.parquet, lie in {mine.run} and are no parts"):
        TablePlace("iceberg", NAME).withdraw(Removal(mine.run, whole=True))
    TablePlace("iceberg", NAME).withdraw(Removal(mine.run))
    assert flights(catalog) == [1, 2, 3]
