"""A table of all nights: every run's rows once, as DuckDB and Polars read them, whatever ended a run in between."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from datetime import date
from importlib.util import find_spec
from pathlib import Path

import deltalake.transaction
import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config

from leafledger import check_run, explain, list_runs, prune, read_run
from pipeline.command.cli import main
from pipeline.errors import InvalidRun, SchemaMismatch, StorageError, UsageError
from pipeline.runs.after import write_made
from pipeline.runs.publish import read_manifest
from pipeline.runs.table import RECORD
from pipeline.stores import commit, storage
from pipeline.tables.deltalake_table import options_for

LATE = 2  # the file of this month comes late


class Delta:
    """The table of a folder of runs, as other programs see it."""

    table, log = "delta", ((deltalake.transaction, "create_table_with_add_actions"), (DeltaTable, "create_write_transaction"))

    def __init__(self, root):
        self.root = str(root)
        self.uri = self.root

    def open(self):
        options = options_for(self.root)
        return DeltaTable(self.root, storage_options=options) if DeltaTable.is_deltatable(self.root, options) else None

    def by_duckdb(self):
        """All rows, as DuckDB reads them."""
        return ask_duckdb(f"SELECT * FROM delta_scan('{self.root}')", "delta")

    def by_polars(self):
        """All rows, as Polars reads them."""
        return polars.read_delta(self.root).to_arrow()

    def list_live(self):
        """Paths and rows of the files that count; nothing where there is no table."""
        table = self.open()
        actions = {} if table is None else pa.table(table.get_add_actions()).select(["path", "num_records"]).to_pydict()
        return {f"{self.root}/{path}": n_rows for path, n_rows in zip(*actions.values(), strict=True)} if actions else {}

    def count_commits(self):
        """Entries of the log."""
        return self.open().version() + 1


class Iceberg:
    """The same in a catalog."""

    table, log = "iceberg:nights.prod.explained", ((SqlCatalog, "commit_table"),)

    def __init__(self, root):
        self.root, self.uri = str(root), self.table
        self.catalog = load_catalog("nights")
        self.catalog.create_namespace_if_not_exists("prod")

    def open(self):
        return self.catalog.load_table("prod.explained") if self.catalog.table_exists("prod.explained") else None

    def by_duckdb(self):
        """All rows, as DuckDB reads them."""
        return ask_duckdb(f"SELECT * FROM iceberg_scan('{self.open().metadata_location}')", "avro", "iceberg")

    def by_polars(self):
        """All rows, as Polars reads them."""
        return polars.scan_iceberg(self.open()).collect().to_arrow()

    def list_live(self):
        """Paths and rows of the files that count; nothing where there is no table."""
        table = self.open()
        files = [] if table is None else [task.file for task in table.scan().plan_files()]
        return {
            file.file_path.removeprefix("file://"): file.record_count
            for file in files
            if file.file_path.startswith((self.root, f"file://{self.root}"))
        }

    def count_commits(self):
        """Snapshots."""
        return len(self.open().snapshots())


def ask_duckdb(query, *extensions):
    """What DuckDB answers, with extensions that are installed as packages, for else it downloads them."""
    with duckdb.connect() as connection:
        for name in extensions:
            (found,) = Path(find_spec(f"duckdb_extension_{name}").origin).parent.rglob("*.duckdb_extension")
            connection.execute(f"LOAD '{found}'")
        return connection.execute(query).to_arrow_table()


READERS = pytest.mark.parametrize("read", ["by_duckdb", "by_polars"])


@pytest.fixture(params=[Delta, Iceberg], ids=["delta", "iceberg"])
def kind(request, tmp_path, monkeypatch):
    """A format of tables; what names Iceberg's catalog is in the environment."""
    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/warehouse"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__NIGHTS__{name}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    return request.param


def plain(table):
    """Rows in one order, in types that all readers have."""
    names = sorted(table.column_names)
    kinds = {"string": pa.string(), "large_string": pa.string(), "string_view": pa.string()}
    fields = [pa.field(name, kinds.get(str(table.schema.field(name).type), table.schema.field(name).type)) for name in names]
    return table.select(names).cast(pa.schema(fields)).sort_by([("date", "ascending"), ("flight", "ascending")]).combine_chunks()


def expected(*nights):
    """Rows of runs with their dates, read as the runs' own files."""
    tables = [read_run(run).attributions() for run in nights]
    dates = [date.fromisoformat(str(run).rpartition("date=")[2][:10]) for run in nights]
    return plain(
        pa.concat_tables([table.append_column("date", pa.repeat(pa.scalar(day), len(table))) for table, day in zip(tables, dates, strict=True)])
    )


@pytest.fixture
def night(example, tmp_path, kind):
    """``(run, late, there)``: what explains a copy of the data for a day, what makes a file of it another, and the table."""
    data = tmp_path / "data"
    shutil.copytree(example.data, data)
    root = tmp_path / "explained"

    def run(day, place=root, **arguments):
        given = {"scheduler": "serial", "ids": ["flight", "name"], "table": kind.table, "date": day} | arguments
        return explain(example.model, given.pop("data", data), f"{place}/date={{date}}", **given)

    def late():
        path = data / f"month={LATE}" / "data.parquet"
        pq.write_table(pq.read_table(path, partitioning=None).slice(10), path)

    return run, late, kind(root)


@READERS
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


def test_the_files_are_the_parts(night):
    """Those that the manifest lists, which `check` finds as they were: none was rewritten."""
    run, _, there = night
    made = run("2026-11-22")
    assert there.list_live() == {f"{there.root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in made.parts}
    assert check_run(f"{there.root}/date=2026-11-22", deep=True).sound


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
    record = json.loads(Path(there.root, "date=2026-11-22", RECORD).read_text())
    assert record == {"format": there.table.partition(":")[0], "uri": there.uri}


def test_a_run_without_a_table_may_get_one_later(night):
    """The same command with --table commits what is there."""
    run, _, there = night
    made = run("2026-11-22", table=None)
    assert there.list_live() == {}
    assert run("2026-11-22") == made
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))


@READERS
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


@READERS
def test_a_run_that_was_removed_and_made_anew(night, read):
    """By hand, with the same names of parts: what the log says of them is said anew."""
    run, late, there = night
    run("2026-11-22")
    shutil.rmtree(f"{there.root}/date=2026-11-22")
    late()
    made = run("2026-11-22")
    assert plain(getattr(there, read)()).equals(expected(f"{there.root}/date=2026-11-22"))
    assert sum(there.list_live().values()) == made.n_rows


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


def test_a_pruned_run_leaves_the_table_first(night):
    """And comes back where it is explained again."""
    run, _, there = night
    for day in ("2026-01-01", "2026-11-22"):
        run(day)
    assert [each.name for each in prune(there.root, keep="30d", date="2026-11-23").removed] == ["date=2026-01-01"]
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))
    run("2026-01-01")
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-01-01", f"{there.root}/date=2026-11-22"))


class KilledError(BaseException):
    """No error handler stops it, as none stops SIGKILL."""


@pytest.fixture
def killing(kind, monkeypatch):
    """``(left, steps)``: after how many steps, before or after any write, what runs is killed; and at which it was."""
    left, steps = [10**6], []

    def die(name):
        if not left[0]:
            steps.append(name)
            raise KilledError
        left[0] -= 1

    def wrap(owner, name, called):
        function = getattr(owner, name)

        def step(*given, **named):
            die(called)
            found = function(*given, **named)
            die(called)
            return found

        monkeypatch.setattr(owner, name, step)

    for name in ("create", "update", "remove"):
        wrap(commit, name, name)
    for owner, name in kind.log:
        wrap(owner, name, "log")
    return left, steps


@pytest.fixture(scope="module")
def s3_endpoint():
    """A moto server in a process of its own: a library that writes a log lets no other thread of this one work meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as tried:
                if not tried.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def list_parts(root):
    """The parts of the run that is there, as its manifest has them, and their rows."""
    manifest = read_manifest(f"{root}/date=2026-11-22")
    return {} if manifest is None else {f"{root}/date=2026-11-22/{part['uri']}": part["n_rows"] for part in manifest.parts}


@pytest.mark.parametrize(
    ("place", "replaced"),
    [("folder", False), ("folder", True), ("bucket", False), pytest.param("bucket", True, marks=pytest.mark.long)],
)
def test_killed_at_every_step_rows_are_there_once(example, night, kind, tmp_path, killing, place, replaced, request):
    """Where there is no table yet, and where a run takes another's place: readers see one run whole; the next attempt ends with its rows."""
    (run, _, _), (left, steps), data = night, killing, f"{example.data}/month=[23]"
    place = str(tmp_path / "runs") if place == "folder" else f"{request.getfixturevalue('bucket')}/runs"
    for n in range(300):
        there, killed = kind(f"{place}/{n}"), False
        if replaced:
            run("2026-11-22", there.root, data=f"{example.data}/month=1")
        before, commits = there.list_live(), there.count_commits() if replaced or (n and kind is Iceberg) else 0
        left[0] = n
        try:
            run("2026-11-22", there.root, if_changed="replace", data=data)
        except KilledError:
            killed = True
        left[0] = 10**6
        live = there.list_live()
        assert live in (before, list_parts(there.root))
        assert all(storage.exists(path) for path in live)
        run("2026-11-22", there.root, if_changed="replace", data=data)
        assert there.list_live() == list_parts(there.root)
        assert there.count_commits() == commits + 1
        if not killed:
            break
    assert {*steps} == {"create", "update", "remove", "log"}


def test_two_at_once_commit_once(night, kind, monkeypatch):
    """Both have looked when the first commits; the second is refused by the log, looks again and finds it done."""
    run, _, there = night
    run("2026-11-21")
    run("2026-11-22", table=None)
    owner, name = kind.log[-1]
    together, wrapped, met = threading.Barrier(2), getattr(owner, name), []

    def meet(*given, **named):
        if len(met) < 2:
            met.append(True)
            together.wait(30)
        return wrapped(*given, **named)

    monkeypatch.setattr(owner, name, meet)
    runs = [threading.Thread(target=run, args=("2026-11-22",)) for _ in range(2)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert len(met) == 2
    assert there.count_commits() == 2
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-21", f"{there.root}/date=2026-11-22"))


def test_two_at_once_make_one_table(night, kind, monkeypatch):
    """Neither has found one; the second is refused, looks again and adds its own night."""
    run, _, there = night
    days = ("2026-11-21", "2026-11-22")
    for day in days:
        run(day, table=None)
    owner, name = kind.log[0]
    together, wrapped, met = threading.Barrier(2), getattr(owner, name), []

    def meet(*given, **named):
        if len(met) < 2:
            met.append(True)
            together.wait(30)
        return wrapped(*given, **named)

    monkeypatch.setattr(owner, name, meet)
    runs = [threading.Thread(target=run, args=(day,)) for day in days]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    assert plain(there.by_polars()).equals(expected(*(f"{there.root}/date={day}" for day in days)))


@pytest.mark.parametrize("kind", [Delta], indirect=True)
def test_others_that_clean_the_folder_take_nothing(night):
    """Delta's own cleaning removes all that its log does not name, as manifests; not before a hundred years here."""
    run, late, there = night
    run("2026-11-22")
    late()
    run("2026-11-22", if_changed="replace")
    left = {path for path in Path(there.root).rglob("*") if path.is_file()}
    for path in left:
        os.utime(path, (0, time.time() - 60 * 86_400))  # older than what Delta keeps by default
    assert there.open().vacuum(dry_run=False, full=True) == []
    with pytest.raises(Exception, match="Invalid retention period"):
        there.open().vacuum(retention_hours=0, dry_run=False, full=True)
    assert left <= {path for path in Path(there.root).rglob("*") if path.is_file()}


def test_a_store_that_fails_leaves_a_finished_run(night, kind, monkeypatch):
    """In one line; the next attempt commits it."""
    run, _, there = night

    def fail(*_, **__):
        raise OSError("away\n   0: <unknown>")

    with monkeypatch.context() as patch:
        patch.setattr(*kind.log[0], fail)
        with pytest.raises(StorageError, match=rf"^{there.uri}: cannot write: away[^\n]*$"):
            run("2026-11-22")
    assert read_manifest(f"{there.root}/date=2026-11-22") is not None
    run("2026-11-22")
    assert plain(there.by_polars()).equals(expected(f"{there.root}/date=2026-11-22"))


def test_rows_that_others_rewrote_are_not_replaced(night, kind):
    """They are in files that are none of the run's; again is still nothing to do."""
    run, late, there = night
    made = run("2026-11-22")
    if kind is Delta:
        assert there.open().optimize.compact()["numFilesRemoved"] == len(made.parts)
    else:
        there.open().overwrite(there.open().scan().to_arrow())
    assert run("2026-11-22") == made
    late()
    said = rf"^{there.uri}: {len(made.parts)} files of an earlier run in {there.root}/date=2026-11-22 were committed, of which 0 count now"
    with pytest.raises(SchemaMismatch, match=said):
        run("2026-11-22", if_changed="replace")


def test_a_damaged_record_is_told_when_the_run_is_removed(night):
    """Rather than a table left with files that are gone."""
    run, _, there = night
    for day in ("2026-01-01", "2026-11-22"):
        run(day)
    old = f"{there.root}/date=2026-01-01"
    write_made(old, read_manifest(old).sha256, {RECORD: b'{"format": "delta"}'})
    with pytest.raises(InvalidRun, match=r"after/table\.json: does not name a table: it has no 'uri'$"):
        prune(there.root, keep="30d", date="2026-11-23")
    assert read_manifest(old) is not None


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
