"""Entries of a Delta table's log: parts where they lie, what is refused, and what others did meanwhile."""

import dataclasses
import json
import time
from datetime import UTC, date, datetime
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.table import TableAlterer

from leafledger.pipeline.errors import SchemaMismatch, StorageError, UsageError
from leafledger.pipeline.tables.deltalake_commit import DeltaLakeTable
from leafledger.pipeline.tables.shared_parts import Removal, Share, SharedPart, plain
from leafledger.pipeline.tables.writing import ATTEMPTS, TablePlace

ROWS = pa.table({"flight": [1, 2, 3], "phi a": pa.array([0.1, 0.2, 0.3], pa.float32())})


def share(root, day="2026-11-22", manifest="0123456789abcdef", rows=ROWS, folder="", stands=lambda: True):
    """A run of one part."""
    run = f"{root}/date={day}{folder}"
    path = Path(run) / "attributions" / "part-00000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    columns = {field.name: field.type for field in rows.schema}
    return Share(run, manifest, date.fromisoformat(day), plain(columns, run), (SharedPart(str(path), path.stat().st_size, rows.num_rows),), stands)


def flights(root):
    return sorted(pa.table(DeltaTable(root).scan())["flight"].to_pylist())


def test_the_log_says_what_was_added(tmp_path):
    """By a path below the table, with the date, rows and size; and which manifest, in its own action."""
    mine = share(tmp_path, folder="/a b%")
    TablePlace("delta", str(tmp_path)).commit(mine)
    (log,) = (tmp_path / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (added,) = (action["add"] for action in actions if "add" in action)
    assert added["path"] == "date=2026-11-22/a%20b%25/attributions/part-00000.parquet"
    assert added["partitionValues"] == {"date": "2026-11-22"}
    assert (added["size"], json.loads(added["stats"])) == (mine.parts[0].size, {"numRecords": 3})
    marks = {action["txn"]["appId"]: action["txn"]["version"] for action in actions if "txn" in action}
    assert marks == {"leafledger date=2026-11-22/a b%": int("0123456789abcde", 16) + 1, "leafledger parts of date=2026-11-22/a b%": 1}
    assert flights(tmp_path) == [1, 2, 3]
    assert polars.read_delta(str(tmp_path))["date"].to_list() == [date(2026, 11, 22)] * 3
    TablePlace("delta", str(tmp_path)).commit(share(tmp_path, folder="/a b%", manifest="f" * 64, rows=ROWS.slice(1)))
    assert flights(tmp_path) == [2, 3]
    TablePlace("delta", str(tmp_path)).withdraw(Removal(mine.run))
    assert flights(tmp_path) == []


def test_once_whoever_else_commits(tmp_path):
    """Another run's commit in between changes nothing."""
    for mine in (share(tmp_path), share(tmp_path, "2026-11-23"), share(tmp_path)):
        TablePlace("delta", str(tmp_path)).commit(mine)
    assert DeltaTable(tmp_path).version() == 1
    assert flights(tmp_path) == [1, 1, 2, 2, 3, 3]


def test_an_earlier_manifest_may_come_back(tmp_path):
    """It is the last that counts, not whether it was there once."""
    for manifest, n_rows in (("a" * 64, 3), ("b" * 64, 2), ("a" * 64, 3)):
        TablePlace("delta", str(tmp_path)).commit(share(tmp_path, manifest=manifest, rows=ROWS.slice(0, n_rows)))
        assert flights(tmp_path) == [1, 2, 3][:n_rows]
    assert DeltaTable(tmp_path).version() == 2


def test_what_is_withdrawn_may_come_back(tmp_path):
    """Withdrawing twice, or what was never there, does nothing."""
    TablePlace("delta", str(tmp_path)).withdraw(Removal(f"{tmp_path}/date=2026-11-22"))
    for mine in (share(tmp_path), share(tmp_path, "2026-11-23")):
        TablePlace("delta", str(tmp_path)).commit(mine)
    for _ in range(2):
        TablePlace("delta", str(tmp_path)).withdraw(Removal(f"{tmp_path}/date=2026-11-22"))
    assert DeltaTable(tmp_path).version() == 2
    assert flights(tmp_path) == [1, 2, 3]
    TablePlace("delta", str(tmp_path)).commit(share(tmp_path))
    assert flights(tmp_path) == [1, 1, 2, 2, 3, 3]


def test_columns_are_added_and_missing_ones_stay(tmp_path):
    """A checkpoint in between changes nothing."""
    TablePlace("delta", str(tmp_path)).commit(share(tmp_path))
    DeltaTable(tmp_path).create_checkpoint()
    more = ROWS.append_column("top", pa.array([[{"feature": "x"}]] * 3))
    TablePlace("delta", str(tmp_path)).commit(share(tmp_path, "2026-11-23", rows=more))
    TablePlace("delta", str(tmp_path)).commit(share(tmp_path, "2026-11-24"))
    TablePlace("delta", str(tmp_path)).commit(share(tmp_path))
    found = pa.table(DeltaTable(tmp_path).scan())
    assert found.num_rows == 9
    assert found["top"].null_count == 6


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ({"delta.enableDeletionVectors": "true"}, "asks for deletionVectors"),
        ({"delta.enableChangeDataFeed": "true"}, "asks for version 4 of the protocol"),
    ],
)
def test_tables_that_ask_more_of_a_writer_are_refused(tmp_path, configuration, said):
    """What their readers would then not find."""
    rows = ROWS.append_column("date", pa.array([date(2026, 1, 1)] * 3))
    write_deltalake(tmp_path, rows, partition_by=["date"], configuration=configuration)
    for act in (
        lambda: TablePlace("delta", str(tmp_path)).check(ROWS.column_names),
        lambda: TablePlace("delta", str(tmp_path)).commit(share(tmp_path)),
    ):
        with pytest.raises(UsageError, match=rf"^{tmp_path}: {said}.* of who writes it, which leafledger does not know$"):
            act()


def test_tables_of_others_are_taken(tmp_path):
    """Where they are partitioned by the date; rows of theirs stay, whatever is withdrawn."""
    rows = ROWS.append_column("date", pa.array([date(2026, 11, 22)] * 3))
    write_deltalake(tmp_path, rows, partition_by=["date"])
    TablePlace("delta", str(tmp_path)).check(ROWS.column_names)
    TablePlace("delta", str(tmp_path)).commit(share(tmp_path))
    assert flights(tmp_path) == [1, 1, 2, 2, 3, 3]
    TablePlace("delta", str(tmp_path)).withdraw(Removal(f"{tmp_path}/date=2026-11-22"))
    assert flights(tmp_path) == [1, 2, 3]


def test_a_table_whose_rows_stay_takes_runs_and_loses_none(tmp_path):
    """Nor does it get the columns of the run that cannot replace another."""
    table, rows = str(tmp_path), ROWS.append_column("date", pa.array([date(2026, 11, 21)] * 3))
    write_deltalake(table, rows, partition_by=["date"], configuration={"delta.appendOnly": "true"})
    TablePlace("delta", table).commit(share(tmp_path))
    more = share(tmp_path, manifest="f" * 16, rows=ROWS.append_column("top", pa.array(["x"] * 3)))
    elsewhere = dataclasses.replace(more, parts=tuple(dataclasses.replace(part, uri=f"{part.uri}.new") for part in more.parts))
    said = rf"^{table}: rows of this Delta table stay there for ever \(delta\.appendOnly\), so a run in it cannot be replaced or removed$"
    for act in (lambda: TablePlace("delta", table).commit(elsewhere), lambda: TablePlace("delta", table).withdraw(Removal(more.run))):
        with pytest.raises(UsageError, match=said):
            act()
    assert DeltaTable(table).version() == 1
    assert "top" not in DeltaTable(table).schema().to_arrow().names


def test_a_column_of_every_row_is_refused_where_the_run_has_none(tmp_path):
    """Nulls would be in it, which the table excludes."""
    every = pa.schema([pa.field("flight", pa.int16()), pa.field("region", pa.string(), nullable=False), pa.field("date", pa.date32())])
    DeltaTable.create(str(tmp_path), every, partition_by=["date"])
    for act in (
        lambda: TablePlace("delta", str(tmp_path)).check(ROWS.column_names),
        lambda: TablePlace("delta", str(tmp_path)).commit(share(tmp_path)),
    ):
        with pytest.raises(SchemaMismatch, match=rf"^{tmp_path}: column 'region' may not be null there, and the run has none; commit it"):
            act()
    TablePlace("delta", str(tmp_path)).check(["region", *ROWS.column_names])


def test_tables_by_dates_of_another_type_are_refused(tmp_path):
    """Before there is anything to commit."""
    write_deltalake(tmp_path, ROWS.append_column("date", pa.array(["2026-11-22"] * 3)), partition_by=["date"])
    with pytest.raises(UsageError, match=rf"^{tmp_path}: is a Delta table partitioned by 'date', which is a string, expected a date$"):
        TablePlace("delta", str(tmp_path)).check(ROWS.column_names)


def test_who_always_loses_gives_up(tmp_path, monkeypatch):
    """After some attempts, in one line."""
    tried = []

    def lose(*_):
        tried.append(True)
        raise CommitFailedError("Failed to commit transaction: others were faster")

    monkeypatch.setattr(DeltaLakeTable, "create", lose)
    with pytest.raises(StorageError, match=rf"^{tmp_path}: cannot write: Failed to commit transaction: others were faster$"):
        TablePlace("delta", str(tmp_path)).commit(share(tmp_path))
    assert len(tried) == ATTEMPTS


@pytest.mark.parametrize("by_time", [False, True])
def test_a_commit_that_others_undid_is_made_again(tmp_path, by_time):
    """They restored the table to a version before it, whose log says still what was committed; restored to a version with it, it is there."""
    early, mine, uri = share(tmp_path, "2026-11-21"), share(tmp_path, rows=ROWS.slice(1)), str(tmp_path)
    TablePlace("delta", uri).commit(early)
    before = DeltaTable(uri).history()[0]["timestamp"]
    time.sleep(0.01)
    TablePlace("delta", uri).commit(mine)
    DeltaTable(uri).restore(datetime.fromtimestamp(before / 1000, UTC) if by_time else 0)
    assert flights(uri) == [1, 2, 3]
    TablePlace("delta", uri).withdraw(Removal(mine.run))  # there is nothing to take out
    assert DeltaTable(uri).version() == 2
    for _ in range(2):
        TablePlace("delta", uri).commit(mine)
        TablePlace("delta", uri).commit(early)
        assert flights(uri) == [1, 2, 2, 3, 3]
    for target in (2, 3):  # without it, and with it again
        DeltaTable(uri).restore(target)
    TablePlace("delta", uri).commit(mine)
    assert DeltaTable(uri).version() == 5
    DeltaTable(uri).delete("flight > 0")  # which is no way back
    TablePlace("delta", uri).commit(mine)
    assert flights(uri) == []


def test_a_table_restored_to_where_a_run_was_withdrawn_does_not_have_it(tmp_path):
    """Though the same manifest was committed before that, and after: it is committed again; restored to where it was committed, it is there."""
    mine, uri = share(tmp_path), str(tmp_path)
    place = TablePlace("delta", uri)
    place.commit(mine)
    place.withdraw(Removal(mine.run))
    place.commit(mine)
    assert DeltaTable(uri).version() == 2
    DeltaTable(uri).restore(1)
    assert flights(uri) == []
    assert not place.holds(mine.run, mine.manifest)
    place.commit(mine)
    assert flights(uri) == [1, 2, 3]
    assert place.holds(mine.run, mine.manifest)
    for target in (0, 2):
        DeltaTable(uri).restore(target)
        version = DeltaTable(uri).version()
        assert place.holds(mine.run, mine.manifest)
        place.commit(mine)
        assert DeltaTable(uri).version() == version


def test_what_others_rewrote_is_not_withdrawn(tmp_path):
    """The table stays as it is, and the run is said to be in it; also where its parts came back with an older version."""
    mine, root = share(tmp_path), str(tmp_path)
    TablePlace("delta", root).commit(mine)
    DeltaTable(root).delete("flight = 2")
    for leaving in (Removal(mine.run), Removal(mine.run, whole=True)):
        with pytest.raises(SchemaMismatch, match=rf"^{root}: 1 files of a run in {mine.run} were committed, 0 count now: others have rewritten"):
            TablePlace("delta", root).withdraw(leaving)
    assert DeltaTable(root).version() == 1
    DeltaTable(root).restore(0)
    TablePlace("delta", root).withdraw(Removal(mine.run))
    DeltaTable(root).restore(0)
    for act in (lambda: TablePlace("delta", root).withdraw(Removal(mine.run)), lambda: TablePlace("delta", root).commit(mine)):
        with pytest.raises(SchemaMismatch, match=r"0 files of a run in .* were committed, 1 count now"):
            act()


def test_a_folder_with_files_of_others_is_not_left_to_go(tmp_path):
    """The library writes rows of that date into it: the run's can be taken out of the table, but all of the folder must not go."""
    mine, root = share(tmp_path), str(tmp_path)
    TablePlace("delta", root).commit(mine)
    write_deltalake(root, ROWS.append_column("date", pa.array([date(2026, 11, 22)] * 3)), mode="append")
    with pytest.raises(SchemaMismatch, match=rf"^{root}: 1 of its files, as part-\S+\.parquet, lie in {mine.run} and are no parts of the run"):
        TablePlace("delta", root).withdraw(Removal(mine.run, whole=True))
    assert flights(root) == [1, 1, 2, 2, 3, 3]
    TablePlace("delta", root).withdraw(Removal(mine.run))
    assert flights(root) == [1, 2, 3]
    with pytest.raises(SchemaMismatch, match="1 of its files"):
        TablePlace("delta", root).withdraw(Removal(mine.run, whole=True))


def test_a_run_in_a_run_is_another(tmp_path):
    """Both may be in the table, and each is replaced and withdrawn alone."""
    root = str(tmp_path)
    for mine in (share(tmp_path), share(tmp_path, folder="/b"), share(tmp_path, manifest="f" * 64, rows=ROWS.slice(2))):
        TablePlace("delta", root).commit(mine)
    assert flights(root) == [1, 2, 3, 3]
    TablePlace("delta", root).withdraw(Removal(f"{root}/date=2026-11-22"))
    assert flights(root) == [1, 2, 3]


def test_a_run_that_does_not_stand_any_more_is_left_alone(tmp_path):
    """Asked once the table is open: what was committed meanwhile stays, and there is nothing to withdraw."""
    root, asked = str(tmp_path), []

    def overtaken():
        asked.append(True)
        if len(asked) == 1:
            TablePlace("delta", root).commit(share(tmp_path, manifest="f" * 64, rows=ROWS.slice(1)))
        return False

    late = share(tmp_path, stands=overtaken)
    for _ in range(2):  # where there is no table, and where there is one
        TablePlace("delta", root).commit(late)
        assert flights(root) == [2, 3]
    TablePlace("delta", root).withdraw(Removal(late.run, wanted=overtaken))
    TablePlace("delta", root).withdraw(Removal(late.run, manifest=late.manifest))
    assert flights(root) == [2, 3]
    TablePlace("delta", root).withdraw(Removal(late.run, manifest="f" * 64, wanted=lambda: True))
    assert flights(root) == []
    assert len(asked) == 3


def test_who_is_overtaken_while_it_adds_columns_looks_again(tmp_path, monkeypatch):
    """They take a commit of their own, after which another run may have come: the table is as that left it."""
    root, stands, add_columns = str(tmp_path), [True], TableAlterer.add_columns
    TablePlace("delta", root).commit(share(tmp_path))
    more = ROWS.append_column("top", pa.array([1, 2, 3]))

    def overtaken(self, fields):
        add_columns(self, fields)
        stands[:] = [False]
        TablePlace("delta", root).commit(share(tmp_path, manifest="f" * 64, rows=ROWS.slice(1)))

    monkeypatch.setattr(TableAlterer, "add_columns", overtaken)
    TablePlace("delta", root).commit(share(tmp_path, manifest="e" * 64, rows=more, stands=lambda: stands[0]))
    assert flights(root) == [2, 3]
