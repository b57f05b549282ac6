"""A table of all nights: every run's rows once, as DuckDB and Polars read them."""

import json
import shutil
import sys
from contextlib import suppress
from datetime import date
from pathlib import Path

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from leafledger import check_run, explain, list_runs, prune
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, RunConflict, SchemaMismatch, UsageError
from leafledger.pipeline.runs import explain as explaining
from leafledger.pipeline.runs.formats.numbers import FORMAT
from leafledger.pipeline.runs.publish import table_commit as table_commit_
from leafledger.pipeline.runs.records.derived import TABLE, write_derived
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.pipeline.runs.publish.tabling import KINDS, Delta, Iceberg, expected, plain

READERS = pytest.mark.parametrize("read", ["by_duckdb", "by_polars"])


@READERS
@pytest.mark.slow
def test_two_nights_are_read_as_they_were_explained(night, read):
    """Every row of both with its date, and no other; nothing was written beside the runs but the log."""
    run, _, there = night
    run("2026-11-21")
    run("2026-11-22")
    root = Path(there.root)
    assert plain(getattr(there, read)()).equals(expected(root / "date=2026-11-21", root / "date=2026-11-22"))
    assert {path.name for path in root.iterdir()} - {"_delta_log"} == {"date=2026-11-21", "date=2026-11-22"}
    assert check_run(root / "date=2026-11-22", all_rows=True).sound
    assert [each.date for each in list_runs(root)] == ["2026-11-21", "2026-11-22"]


@pytest.mark.slow
def test_the_files_are_the_parts(night):
    """Those that the manifest lists, which `check` finds as they were: none was rewritten."""
    run, _, there = night
    made = run("2026-11-22")
    assert there.list_live() == {f"{there.root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in made.parts}
    assert check_run(f"{there.root}/date=2026-11-22", deep=True).sound


@pytest.mark.slow
def test_one_night_is_found_by_its_date(night):
    """A query for it finds its rows alone."""
    run, _, there = night
    for day in (21, 22):
        run(f"2026-11-{day}")
    lazy = polars.scan_delta(there.root) if isinstance(there, Delta) else polars.scan_iceberg(there.open())
    found = lazy.filter(polars.col("date") == date(2026, 11, 22)).select("flight", "date").collect()
    assert found.height == read_manifest(f"{there.root}/date=2026-11-22").n_rows
    assert found["date"].unique().to_list() == [date(2026, 11, 22)]


def test_again_is_not_twice(night):
    """The table has one commit for each run, however often it is run."""
    run, _, there = night
    made = run("2026-11-22")
    assert run("2026-11-22") == made
    assert there.count_commits() == 1
    record = json.loads(Path(there.root, "date=2026-11-22", TABLE).read_text())
    assert record == {"format_version": FORMAT, "format": there.table.partition(":")[0], "uri": there.uri}


def test_a_run_without_a_table_may_get_one_later(night):
    """The same command with --table commits what is there."""
    run, _, there = night
    made = run("2026-11-22", table=None)
    assert there.list_live() == {}
    assert run("2026-11-22") == made
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))


@READERS
@pytest.mark.slow
def test_a_replaced_run_s_rows_are_exchanged_in_one_commit(night, read):
    """Readers see one run or the other whole; other nights stay."""
    run, late, there = night
    run("2026-11-21")
    before = run("2026-11-22")
    late()
    made = run("2026-11-22", if_changed="replace")
    assert made.n_rows == before.n_rows - 10
    assert there.count_commits() == 3
    assert plain(getattr(there, read)()).equals(expected(f"{there.root}/date=2026-11-21", f"{there.root}/date=2026-11-22"))


@pytest.mark.slow
def test_a_replaced_run_leaves_a_table_that_is_not_asked_for(night):
    """Its files go, so that no table may name them."""
    run, late, there = night
    run("2026-11-21")
    run("2026-11-22")
    late()
    run("2026-11-22", if_changed="replace", table=None)
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-21"))
    run("2026-11-22", if_changed="replace")
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-21", f"{there.root}/date=2026-11-22"))


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.slow
def test_a_replaced_run_leaves_the_table_to_one_without_rows(night, example, tmp_path, recorded):
    """A night that is delivered again, empty: the table has the other nights alone, and all of it can be read; also where the run before was ended
    when it was in the table and had not written that down."""
    run, _, there = night
    run("2026-11-21")
    run("2026-11-22")
    if not recorded:
        Path(there.root, "date=2026-11-22", "after.json").unlink()
    empty = tmp_path / "empty"
    (empty / "month=1").mkdir(parents=True)
    pq.write_table(pq.read_table(Path(example.data) / "month=1" / "data.parquet", partitioning=None).slice(0, 0), empty / "month=1" / "data.parquet")
    for _ in range(2):  # the second finds it finished
        assert run("2026-11-22", data=empty, if_changed="replace").parts == ()
        assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-21"))
    assert [*Path(there.root, "date=2026-11-22", "attributions").iterdir()] == []


@READERS
@pytest.mark.slow
def test_a_run_that_was_removed_and_made_anew(night, read):
    """By hand, with the same names of parts: what the log says of them is said anew."""
    run, late, there = night
    run("2026-11-22")
    shutil.rmtree(f"{there.root}/date=2026-11-22")
    late()
    made = run("2026-11-22")
    assert plain(getattr(there, read)()).equals(expected(f"{there.root}/date=2026-11-22"))
    assert sum(there.list_live().values()) == made.n_rows


@pytest.mark.slow
def test_a_model_of_other_features_adds_columns(night, example, tmp_path):
    """Earlier nights have none in them; a night that lacks a column has none in it."""
    run, _, there = night
    run("2026-11-21")
    made = run("2026-11-22", values=True)
    found = there.by_duckdb().to_pandas().set_index("date")
    assert found["value_delay"].notna().sum() == example.frame["delay"].notna().sum()
    assert len(found) == 2 * made.n_rows
    run("2026-11-23")
    assert there.by_polars().num_rows == 3 * made.n_rows


def test_a_column_of_another_type_is_refused(night):
    """The run is finished, and the table as it was."""
    run, _, there = night
    made = run("2026-11-21")
    with pytest.raises(SchemaMismatch, match=r"explained: column 'margin' is float, the run's is double; commit it to another table$"):
        run("2026-11-22", precision="float64")
    assert read_manifest(f"{there.root}/date=2026-11-22") is not None
    assert sum(there.list_live().values()) == made.n_rows


@pytest.mark.slow
def test_a_run_that_was_replaced_meanwhile_leaves_the_table_as_it_is(night, monkeypatch):
    """Another takes its place between its manifest and its commit: the table has that one's files, and no others."""
    run, late, there = night
    run("2026-11-22")
    late()
    run("2026-11-22", if_changed="replace")
    commit_table, made = table_commit_.commit_table, []

    def overtaken(*given):
        if not made:
            made.append(None)
            made[0] = run("2026-11-22", if_changed="replace", values=True)
        commit_table(*given)

    monkeypatch.setattr(explaining, "commit_table", overtaken)
    run("2026-11-22")
    assert read_manifest(f"{there.root}/date=2026-11-22") == made[0]
    assert there.list_live() == {f"{there.root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in made[0].parts}


def find_other(kind, there):
    """The table of the other format, of the same runs."""
    (other,) = (each for each in KINDS.values() if each is not kind)
    return other(there.root)


@pytest.mark.parametrize("afterwards", ["again", "pruned", "replaced"])
@pytest.mark.slow
def test_a_run_is_in_one_table(night, kind, afterwards):
    """Repeated with another table, it leaves the first; so it is also in none once it is pruned, or replaced by a run without one."""
    run, late, there = night
    other = find_other(kind, there)
    made = run("2026-01-01")
    assert run("2026-01-01", table=other.table) == made
    assert there.list_live() == {}
    assert other.list_live() == {f"{there.root}/date=2026-01-01/{part['uri']}": part["n_rows"] for part in made.parts}
    assert check_run(f"{there.root}/date=2026-01-01").sound
    if afterwards == "again":
        assert run("2026-01-01") == made
        assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-01-01"))
    if afterwards == "pruned":
        run("2026-11-22", table=None)
        assert [each.name for each in prune(there.root, keep="30d", date="2026-11-23").removed] == ["date=2026-01-01"]
    if afterwards == "replaced":
        late()
        run("2026-01-01", if_changed="replace", table=None)
        assert not Path(there.root, "date=2026-01-01", TABLE).exists()
    assert other.list_live() == {}


@pytest.mark.slow
def test_a_run_without_a_table_leaves_it_where_it_is(night):
    """The same command without --table has nothing to do; also for a run that took another's place."""
    run, late, there = night
    run("2026-11-22")
    late()
    made = run("2026-11-22", if_changed="replace")
    for _ in range(2):
        assert run("2026-11-22", table=None) == made
        assert there.list_live() == {f"{there.root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in made.parts}


def test_a_run_that_is_kept_stays_under_its_date(example, tmp_path, kind):
    """Its rows are none of the night for which another one was asked. In Delta's folders a run has the date of its place."""
    if kind is Delta:
        pytest.skip("a run lies below its date")
    there, given = kind(tmp_path / "explained"), {"scheduler": "serial", "table": kind.table, "if_changed": "keep"}
    for month, day in ((2, "2026-01-01"), (3, "2026-01-02")):
        explain(example.model, f"{example.data}/month={month}", tmp_path / "explained" / "run", date=day, **given)
    assert set(there.by_polars()["date"].to_pylist()) == {date(2026, 1, 1)}


@pytest.mark.slow
def test_a_record_that_somebody_removed_leaves_a_replaced_run_in_its_table(night):
    """As ``check`` asks for where the record is damaged."""
    run, late, there = night
    run("2026-11-22")
    late()
    made = run("2026-11-22", if_changed="replace")
    Path(there.root, "date=2026-11-22", "after.json").unlink()
    for _ in range(2):
        assert run("2026-11-22", table=None) == made
        assert there.list_live() == {f"{there.root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in made.parts}


@pytest.mark.slow
def test_what_ends_late_leaves_a_replaced_run_in_its_table(night):
    """As a drift of the run before: the run in its place goes on being in its table."""
    run, late, there = night
    before = run("2026-11-22")
    late()
    made = run("2026-11-22", if_changed="replace")
    with suppress(RunConflict):
        write_derived(f"{there.root}/date=2026-11-22", before.sha256, {"after/drift.json": b"{}"})
    assert run("2026-11-22", table=None) == made
    assert there.list_live() == {f"{there.root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in made.parts}


@pytest.mark.parametrize(("damage", "said"), [(lambda path: path.unlink(), "is missing"), (lambda path: path.write_bytes(b"PAR1"), "has 4 bytes")])
def test_a_run_without_all_of_its_parts_is_not_committed(night, damage, said):
    """Readers of the table would fail at it; the table is as it was."""
    run, _, there = night
    run("2026-11-21")
    made, before = run("2026-11-22", table=None), there.list_live()
    uri = Path(there.root, "date=2026-11-22", made.parts[-1]["uri"])
    damage(uri)
    with pytest.raises(InvalidRun, match=rf"^{uri}: {said}, the manifest says [\d,]+ bytes; the run is not committed$"):
        run("2026-11-22")
    assert there.list_live() == before


@pytest.mark.slow
def test_a_pruned_run_leaves_the_table_first(night):
    """And comes back where it is explained again."""
    run, _, there = night
    for day in ("2026-01-01", "2026-11-22"):
        run(day)
    assert [each.name for each in prune(there.root, keep="30d", date="2026-11-23").removed] == ["date=2026-01-01"]
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))
    run("2026-01-01")
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-01-01", f"{there.root}/date=2026-11-22"))


@pytest.mark.slow
def test_a_pruned_run_takes_what_it_replaced_out_of_the_table(night):
    """It was not taken into the table itself, so that the files of the run before stayed, and stayed in the table."""
    run, _, there = night
    for day in ("2026-01-01", "2026-11-22"):
        run(day)
    with pytest.raises(SchemaMismatch, match="column 'margin' is float, the run's is double"):
        run("2026-01-01", precision="float64", if_changed="replace")
    assert read_manifest(f"{there.root}/date=2026-01-01").place
    assert [each.name for each in prune(there.root, keep="30d", date="2026-11-23").removed] == ["date=2026-01-01"]
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))


def test_what_cannot_be_in_a_table_is_refused_before_the_work(example, night, kind, tmp_path):
    """A type that such tables do not have; a table that is partitioned otherwise."""
    run, _, there = night
    rows = example.frame.assign(code=example.frame["flight"].astype("uint16"))
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), tmp_path / "data.parquet")
    with pytest.raises(SchemaMismatch, match=r"data\.parquet: column 'code' is uint16, which tables of Delta Lake and Iceberg do not have"):
        run("2026-11-22", data=tmp_path / "data.parquet", ids=["code"])
    assert not Path(there.root).exists()
    schema = pa.schema([("flight", pa.int64())])
    if kind is Delta:
        DeltaTable.create(there.root, schema)
    else:
        there.catalog.create_table("prod.explained", schema)
    with pytest.raises(UsageError, match=rf"^{there.uri}: is .*partitioned by nothing, expected date$"):
        run("2026-11-22", progress=lambda work: pytest.fail(f"started {work.doing}"))


def test_columns_that_are_passed_through_are_looked_at_before_the_work(example, night, tmp_path):
    """Values of features too; what the path alone has; and a column of two types, by which readers would find no night at all."""
    run, _, there = night

    def write(frame, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
        return path.parent

    rows = example.frame.assign(month=example.frame["month"].astype("uint16"), Margin=1)
    values = write(rows, tmp_path / "values" / "data.parquet")
    named = write(rows, tmp_path / "named" / "date=2026-11-22" / "data.parquet").parent
    write(rows.assign(code=7), tmp_path / "mixed" / "all" / "data.parquet")
    mixed = write(rows, tmp_path / "mixed" / "code=7" / "data.parquet").parent
    for data, given, said in (
        (values, {"values": True, "ids": []}, "column 'value_month' is uint16, which tables"),
        (named, {"ids": ["date"]}, "has a column 'date', which is what the table is partitioned by"),
        (values, {"ids": ["Margin"]}, "columns 'Margin' and 'margin' differ in case alone"),
        (mixed, {"ids": ["code"]}, "column 'code' is int64 in some files, and text in the paths of others; a table has it in one type"),
    ):
        with pytest.raises(SchemaMismatch, match=f"^{data}: {said}"):
            run("2026-11-22", data=data, progress=lambda work: pytest.fail(f"started {work.doing}"), **given)
    assert not Path(there.root).exists()


@pytest.mark.slow
def test_the_command_says_which_table(example, night, capsys):
    """Where it says what was written."""
    _, _, there = night
    arguments = ["explain", example.model, example.data, "--out", f"{there.root}/date={{date}}", "--date", "2026-11-22", "--table", there.table]
    assert main([*arguments, "--scheduler", "serial"]) == 0
    assert f"table:        {there.uri}\n" in capsys.readouterr().out
    assert there.count_commits() == 1
    assert main([*arguments[:-1], "hudi"]) == 2
    assert "table is 'hudi', expected delta, or iceberg:CATALOG.NAMESPACE.TABLE" in capsys.readouterr().err


def test_without_the_library_one_line_says_what_to_install(night, kind, monkeypatch):
    """Before the work."""
    run, _, _ = night
    extra, module = {Delta: ("delta", "deltalake.exceptions"), Iceberg: ("iceberg", "pyiceberg.table")}[kind]
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf"pip install 'leafledger\[{extra}\]'"):
        run("2026-11-22", progress=lambda work: pytest.fail(f"started {work.doing}"))
