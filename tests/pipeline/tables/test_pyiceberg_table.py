"""Input from Iceberg: the rows of the newest snapshot, whatever lies in its folder, and nothing that would take more than reading files."""

import gzip
import json
import shutil
import sys
from datetime import date
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestWriterV2
from pyiceberg.typedef import Record
from pyiceberg.utils.config import Config

from leafledger import explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import NotThere, SchemaMismatch, StorageError, UsageError
from leafledger.pipeline.runs.plan.existing_run import read_existing_run
from leafledger.pipeline.stores.parquet_files import find_table
from leafledger.pipeline.tables.pyiceberg_table import read_iceberg
from tests.pipeline.conftest import write_data
from tests.pipeline.running import attributions

GIVEN = {"ids": ["flight"], "scheduler": "serial"}
NAME = "iceberg:nights.prod.flights"


def by_flight(run):
    """Attributions in the order of flights: files of a table have random names."""
    return attributions(run).sort_by("flight")


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    """A catalog in SQLite that the environment names."""
    for name, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/warehouse"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__NIGHTS__{name}", value)
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    catalog = load_catalog("nights")
    catalog.create_namespace("prod")
    return catalog


def as_rows(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture
def table(catalog, example):
    """The example's rows as an Iceberg table, by month."""
    rows = as_rows(example.frame)
    table = catalog.create_table("prod.flights", rows.schema)
    with table.update_spec() as spec:
        spec.add_identity("month")
    table.append(rows)
    return table


def check_rows(example, data, frame, tmp_path):
    """A table is explained as the same rows in plain Parquet files are; returns the run's plan."""
    explain(example.model, data, tmp_path / "run", **GIVEN)
    explain(example.model, write_data(frame, tmp_path / "plain"), tmp_path / "expected", **GIVEN)
    assert by_flight(tmp_path / "run").equals(by_flight(tmp_path / "expected"))
    return read_existing_run(str(tmp_path / "run")).plan


@pytest.mark.slow
def test_rows_are_those_of_the_newest_snapshot(example, table, tmp_path):
    """Rows were deleted, a partition dropped, others appended, and files that nobody committed lie around."""
    frame = example.frame
    table.delete("flight < 100")
    table.delete("month == 4")
    more = frame[frame["month"] == 4].head(50).assign(flight=lambda rows: rows["flight"] + 10_000)
    table.append(as_rows(more))
    pq.write_table(as_rows(frame), tmp_path / "warehouse" / "prod" / "flights" / "data" / "uncommitted.parquet")
    kept = frame[(frame["flight"] >= 100) & (frame["month"] != 4)]
    plan = check_rows(example, NAME, pd.concat([kept, more]), tmp_path)
    assert f"file://{plan.data}" == table.metadata_location


@pytest.mark.slow
def test_a_version_is_named_by_its_metadata(example, table, tmp_path):
    """As plans write it down: the table goes on, the run's rows stay."""
    before = table.metadata_location
    table.delete("flight < 100")
    for data in (before, before.removeprefix("file://")):
        (tmp_path / str(len(data))).mkdir()
        plan = check_rows(example, data, example.frame, tmp_path / str(len(data)))
        assert f"file://{plan.data}" == before


@pytest.mark.slow
def test_a_folder_that_is_its_own_catalog(example, table, tmp_path):
    """Its metadata are numbered v1, v2, …; of any other the catalog alone knows which counts."""
    folder = tmp_path / "warehouse" / "prod" / "flights"
    with pytest.raises(UsageError, match=r"flights: is an Iceberg table of which its catalog alone knows what counts; name it as iceberg:CATALOG\."):
        explain(example.model, folder, tmp_path / "run", **GIVEN)
    for number, name in ((9, table.metadata_location), (10, table.delete("flight < 100") or table.metadata_location)):
        shutil.copy(name.removeprefix("file://"), folder / "metadata" / f"v{number}.metadata.json")
    plan = check_rows(example, folder, example.frame[example.frame["flight"] >= 100], tmp_path)
    assert plan.data == str(folder / "metadata" / "v10.metadata.json")
    table.delete("flight < 200")
    (folder / "metadata" / "v11.gz.metadata.json").write_bytes(gzip.compress(Path(table.metadata_location.removeprefix("file://")).read_bytes()))
    assert len(read_iceberg(str(folder)).files) == len(read_iceberg(table.metadata_location).files)
    assert read_iceberg(str(folder)).uri == str(folder / "metadata" / "v11.gz.metadata.json")
    (folder / "metadata" / "v12.metadata.json.gz").touch()
    with pytest.raises(UsageError, match=r"flights: its newest metadata are v12\.metadata\.json\.gz, as old versions of Iceberg called them"):
        read_iceberg(str(folder))
    for file in (folder / "metadata").glob("*.metadata.json"):
        file.unlink()
    assert find_table(str(folder)) == "Iceberg"


def test_imported_files_have_the_partition_s_value(example, catalog, tmp_path):
    """Files of a Hive data set lack the column; the log has it."""
    schema = as_rows(example.frame).schema
    table = catalog.create_table("prod.flights", schema)
    with table.update_spec() as spec:
        spec.add_identity("month")
    with table.transaction() as transaction:
        transaction.set_properties({"schema.name-mapping.default": transaction.table_metadata.schema().name_mapping.model_dump_json()})
        with transaction.update_snapshot().fast_append() as snapshot:
            for number, path in enumerate(sorted(Path(example.data).rglob("*.parquet")), 1):
                shutil.copy(path, copy := tmp_path / f"{number}.parquet")  # whose path says nothing
                snapshot.append_data_file(made_of(copy, Record(number), table))
    check_rows(example, NAME, example.frame, tmp_path)


def made_of(path, values, table, content=DataFileContent.DATA):
    """An entry of a manifest."""
    return DataFile.from_args(
        content=content,
        file_path=str(path),
        file_format=FileFormat.PARQUET,
        partition=values,
        record_count=1,
        file_size_in_bytes=path.stat().st_size,
        sort_order_id=None,
        spec_id=table.metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
    )


def test_values_are_written_as_paths_have_them(catalog, tmp_path):
    """Texts, whole numbers, booleans and dates; a null is one."""
    rows = pa.table({"x": [1.0, 2.0], "city": ["a b%", None], "day": [date(2026, 1, 1), date(1969, 12, 31)], "n": [-1, 2], "is": [True, None]})
    table = catalog.create_table("prod.flights", rows.schema)
    with table.update_spec() as spec:
        for name in ("city", "day", "n", "is"):
            spec.add_identity(name)
    table.append(rows)
    found = {pq.read_table(live.file.uri, partitioning=None)["x"].to_pylist()[0]: live.partition for live in read_iceberg(NAME).files}
    assert found == {
        1.0: (("city", "a b%"), ("day", "2026-01-01"), ("is", "true"), ("n", "-1")),
        2.0: (("city", None), ("day", "1969-12-31"), ("is", None), ("n", "2")),
    }


@pytest.mark.parametrize("content", [DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES])
def test_rows_deleted_by_files_are_refused_by_name(example, table, tmp_path, monkeypatch, content):
    """Manifests list such a file; what it deletes is not read."""
    (tmp_path / "gone.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(ManifestWriterV2, "content", lambda self: ManifestContent.DELETES)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        snapshot.append_data_file(made_of(tmp_path / "gone.parquet", Record(1), table, content))
    said = rf"^{NAME}: gone\.parquet says which rows of its files are deleted \({content.name.lower()}\); have them written anew"
    with pytest.raises(UsageError, match=said):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)


def test_a_dropped_column_is_none_of_the_data(example, table, tmp_path):
    """Files have it still; it may be a secret, or wrong."""
    with table.update_schema() as schema:
        schema.delete_column("flight")
    assert explain(example.model, table.metadata_location, tmp_path / "run", scheduler="serial").n_rows == 3000
    with pytest.raises(SchemaMismatch, match=r"\.parquet: column 'flight' is in the file, but none of the table's: dropped, or never in it$"):
        explain(example.model, table.metadata_location, tmp_path / "other", ids="flight", scheduler="serial")


def test_a_renamed_column_is_refused_by_name(example, table, tmp_path):
    """Files call it as they did; one that has its name now is another."""
    with table.update_schema() as schema:
        schema.rename_column("distance", "miles")
    with pytest.raises(SchemaMismatch, match=r"\.parquet: column 'distance' is called 'miles' in the table by now; explain a copy"):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)
    with table.update_schema() as schema:
        schema.add_column("distance", pyiceberg.types.DoubleType())
    with pytest.raises(SchemaMismatch, match=r"\.parquet: column 'distance' is "):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)


def test_a_dropped_column_that_came_back_is_refused_by_name(example, table, tmp_path):
    """Rows from before have no value in it, though their files do."""
    with table.update_schema() as schema:
        schema.delete_column("distance")
    with table.update_schema() as schema:
        schema.add_column("distance", pyiceberg.types.DoubleType())
    with pytest.raises(SchemaMismatch, match=r"\.parquet: column 'distance' is another column than the table's of that name"):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)


def test_files_without_a_column_of_the_table_are_refused(example, catalog, tmp_path):
    """The schema has evolved since."""
    frame = example.frame.drop(columns="distance")
    table = catalog.create_table("prod.flights", as_rows(frame).schema)
    table.append(as_rows(frame))
    with table.update_schema() as schema:
        schema.union_by_name(as_rows(example.frame).schema)
    table.append(as_rows(example.frame))
    with pytest.raises(SchemaMismatch, match=r"\.parquet: .*'distance'"):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)


def test_a_table_by_moments_is_refused(catalog, tmp_path):
    """Several texts may stand for one; one by their days is not: files have the column."""
    pq.write_table(pa.table({"x": [1.0], "at": pa.array([0], pa.timestamp("us"))}), path := tmp_path / "data.parquet")
    for name, transform in (("whole", "identity"), ("days", "day")):
        table = catalog.create_table(f"prod.{name}", pq.read_schema(path))
        with table.update_spec() as spec:
            spec.add_field("at", transform)
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
            snapshot.append_data_file(made_of(path, Record(0), table))
    with pytest.raises(UsageError, match=r"whole: is partitioned by 'at', which is a timestamp, expected one of string, int, long, boolean, date;"):
        read_iceberg("iceberg:nights.prod.whole")
    (live,) = read_iceberg("iceberg:nights.prod.days").files
    assert live.partition == ()


def test_a_table_of_the_format_s_first_version(example, catalog, tmp_path):
    """As many are that began some years ago."""
    table = catalog.create_table("prod.flights", as_rows(example.frame).schema, properties={"format-version": "1"})
    for rows in (example.frame.head(70), example.frame.tail(30)):
        table.append(as_rows(rows))
    assert table.metadata.format_version == 1
    check_rows(example, NAME, pd.concat([example.frame.head(70), example.frame.tail(30)]), tmp_path)


def test_an_empty_table_has_no_files(example, catalog, tmp_path):
    """As a folder without any."""
    catalog.create_table("prod.flights", as_rows(example.frame).schema)
    with pytest.raises(NotThere, match=f"^{NAME}: no Parquet files there$"):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)


@pytest.mark.parametrize("name", ["iceberg:nights.prod.nothing", "iceberg:nights", "iceberg:others.prod.flights"])
def test_a_table_that_is_not_there(example, catalog, tmp_path, name):
    """One line."""
    with pytest.raises(StorageError, match=rf"^{name}: cannot read: [^\n]+$"):
        explain(example.model, name, tmp_path / "run", **GIVEN)


def test_a_night_whose_table_has_not_come_yet(example, table, tmp_path, capsys):
    """As of a file or a Delta table: it keeps no other night from being explained, and the command says that its data are not there."""
    data = "iceberg:nights.prod.{date:%d}"
    table.catalog.rename_table("prod.flights", "prod.02")
    arguments = ["explain", example.model, data, "--out", f"{tmp_path}/{{date}}", "--dates", "2026-01-01..2026-01-02", "--scheduler", "serial"]
    assert main([*arguments, "--quiet"]) == NotThere.exit_code
    assert capsys.readouterr().err.startswith("leafledger: iceberg:nights.prod.01: cannot read: ")
    assert read_existing_run(f"{tmp_path}/2026-01-02").manifest is not None
    with pytest.raises(NotThere, match=f"^{tmp_path}/metadata/v1.metadata.json: cannot read: "):
        read_iceberg(f"{tmp_path}/metadata/v1.metadata.json")


def test_metadata_that_are_none(example, tmp_path):
    """One line."""
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text(json.dumps({"format-version": 2}))
    with pytest.raises(StorageError, match=rf"^{tmp_path}: cannot read: [^\n]+$"):
        explain(example.model, tmp_path, f"{tmp_path}-run", **GIVEN)


def test_damaged_metadata_are_one_line(catalog, example, tmp_path):
    """Whatever the library stumbles over: properties that are none, a snapshot that is not there, a manifest of other bytes."""
    table = catalog.create_table("prod.flights", as_rows(example.frame).schema)
    table.append(as_rows(example.frame))
    metadata = Path(table.metadata_location.removeprefix("file://"))
    sound = json.loads(metadata.read_text())
    said = {
        r"cannot read: [^\n]+": {"properties": 1},
        "has no snapshot 2, which is its newest; its metadata are damaged": {"current-snapshot-id": 2, "refs": {}},
    }
    for expected, change in said.items():
        metadata.write_text(json.dumps(sound | change))
        with pytest.raises((StorageError, UsageError), match=f"^{metadata}: {expected}$"):
            explain(example.model, metadata, tmp_path / "run", **GIVEN)
    metadata.write_text(json.dumps(sound))
    (entries,) = metadata.parent.glob("*-m0.avro")
    entries.write_bytes(entries.read_bytes().replace(b"avro.codec", b"avro.codex"))
    with pytest.raises(StorageError, match=rf"^{metadata}: cannot read: [^\n]+$"):
        explain(example.model, metadata, tmp_path / "run", **GIVEN)


def test_a_file_that_is_named_twice_is_refused(catalog, example, tmp_path):
    """Readers of the table see its rows twice; a run would explain them once, and say nothing."""
    rows = as_rows(example.frame)
    table = catalog.create_table("prod.flights", rows.schema)
    pq.write_table(rows, path := tmp_path / "flights.parquet")
    for _ in range(2):
        table.add_files([f"file://{path}"], check_duplicate_files=False)
    assert table.scan().to_arrow().num_rows == 2 * len(rows)
    with pytest.raises(UsageError, match=f"^{NAME}: names flights.parquet twice, expected every file once; explain a copy of its rows$"):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)


@pytest.mark.slow
def test_a_bucket_s_table(example, catalog, bucket, tmp_path):
    """Files are reached as all others are, with credentials from the environment."""
    rows = as_rows(example.frame)
    files = {"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"}
    table = load_catalog("nights", **files).create_table("prod.flights", rows.schema, location=f"{bucket}/flights")
    table.append(rows)
    table.delete("flight < 100")
    plan = check_rows(example, NAME, example.frame[example.frame["flight"] >= 100], tmp_path)
    assert plan.data == table.metadata_location
    assert plan.items[0].uri.startswith(f"{bucket}/flights/data/")


def test_without_the_library_one_line_says_what_to_install(example, table, tmp_path, monkeypatch):
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    with pytest.raises(UsageError, match=r"^iceberg:.*: an Iceberg table needs pyiceberg: pip install 'leafledger\[iceberg\]'$"):
        explain(example.model, NAME, tmp_path / "run", **GIVEN)
