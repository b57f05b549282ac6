"""Input from Delta Lake: the rows that its log has, whatever lies in its folder, and nothing that would take more than reading files."""

import json
import re
import shutil
import sys
from datetime import date
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from numpy.testing import assert_array_equal

from leafledger import explain
from leafledger.pipeline.errors import NotThere, RunConflict, SchemaMismatch, StorageError, UsageError
from leafledger.pipeline.runs.plan.existing_run import read_existing_run
from leafledger.pipeline.runs.records.manifest import read_manifest
from leafledger.pipeline.tables import deltalake_table
from leafledger.pipeline.tables.deltalake_table import options_for, place_of, read_delta, reported
from leafledger.pipeline.tables.writing import TablePlace
from tests.pipeline.conftest import write_data
from tests.pipeline.running import attributions

GIVEN = {"ids": ["flight"], "scheduler": "serial"}


def by_flight(run):
    """Attributions in the order of flights: files of a table have random names."""
    return attributions(run).sort_by("flight")


@pytest.fixture
def table(example, tmp_path):
    """The example's rows as a Delta table, by month."""
    write_deltalake(tmp_path / "table", pa.Table.from_pandas(example.frame, preserve_index=False), partition_by=["month"])
    return tmp_path / "table"


def check_rows(example, table, frame, tmp_path, data=None):
    """A table is explained as the same rows in plain Parquet files are; returns the run's plan."""
    explain(example.model, data or table, tmp_path / "run", **GIVEN)
    explain(example.model, write_data(frame, tmp_path / "plain"), tmp_path / "expected", **GIVEN)
    assert by_flight(tmp_path / "run").equals(by_flight(tmp_path / "expected"))
    return read_existing_run(str(tmp_path / "run")).plan


def test_rows_are_those_of_the_log(example, table, tmp_path):
    """Rows were deleted, a partition dropped, others appended, and files that nobody committed lie around."""
    frame = example.frame
    DeltaTable(table).delete("flight % 7 = 0 and month < 3")
    DeltaTable(table).delete("month = 4")
    more = frame[frame["month"] == 4].head(50).assign(flight=lambda rows: rows["flight"] + 10_000)
    write_deltalake(table, pa.Table.from_pandas(more, preserve_index=False), mode="append")
    pq.write_table(pa.Table.from_pandas(frame.drop(columns="month")), table / "month=1" / "uncommitted.parquet")
    kept = frame[~((frame["flight"] % 7 == 0) & (frame["month"] < 3)) & (frame["month"] != 4)]
    plan = check_rows(example, table, pd.concat([kept, more]), tmp_path)
    assert plan.data == f"{table}@v3"


def test_compacted_rows_are_the_same(example, table, tmp_path):
    """What was put together by OPTIMIZE counts once."""
    write_deltalake(table, pa.Table.from_pandas(example.frame.assign(flight=example.frame["flight"] + 10_000), preserve_index=False), mode="append")
    assert DeltaTable(table).optimize.compact()["numFilesRemoved"] == 8
    check_rows(example, table, pd.concat([example.frame, example.frame.assign(flight=example.frame["flight"] + 10_000)]), tmp_path)


def test_a_checkpoint_is_read(example, table, tmp_path):
    """The log before it may be gone."""
    DeltaTable(table).delete("flight < 100")
    DeltaTable(table).create_checkpoint()
    for entry in (table / "_delta_log").glob("*.json"):
        entry.unlink()
    check_rows(example, table, example.frame[example.frame["flight"] >= 100], tmp_path)


def test_an_earlier_version_is_named(example, table, tmp_path):
    """TABLE@v0 is the table as it was; a run is frozen at the version that it was planned with."""
    DeltaTable(table).delete("flight < 100")
    plan = check_rows(example, table, example.frame, tmp_path, f"{table}@v0")
    assert plan.data == f"{table}@v0"
    first = read_manifest(str(tmp_path / "run"))
    assert explain(example.model, f"{table}@v0", tmp_path / "run", **GIVEN) == first
    with pytest.raises(RunConflict, match="different in data"):
        explain(example.model, table, tmp_path / "run", **GIVEN)
    for version in (2, 10**18 - 1):  # for which the library would look at all versions before
        with pytest.raises(NotThere, match=rf"^{table}: has no version {version}, its newest is 1$"):
            explain(example.model, f"{table}@v{version}", tmp_path / "other", **GIVEN)


def test_partition_values_are_those_of_the_log(tmp_path):
    """Whatever the folders are called; an empty text is a null, as Delta has it."""
    texts, days = ["a b%c/d=é", "plain", None, ""], [date(2026, 1, 1)] * 4
    rows = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "city": texts, "day": days, "n": [1, 2, 3, 4], "is": [True, False, True, None]})
    write_deltalake(tmp_path / "table", rows, partition_by=["city", "day", "n", "is"])
    found = {}
    for live in read_delta(str(tmp_path / "table")).files:
        (x,) = pq.read_table(live.file.uri, columns=["x"], partitioning=None)["x"].to_pylist()
        found[x] = live.partition
    assert found == {
        1.0: (("city", "a b%c/d=é"), ("day", "2026-01-01"), ("is", "true"), ("n", "1")),
        2.0: (("city", "plain"), ("day", "2026-01-01"), ("is", "false"), ("n", "2")),
        3.0: (("city", None), ("day", "2026-01-01"), ("is", "true"), ("n", "3")),
        4.0: (("city", None), ("day", "2026-01-01"), ("is", None), ("n", "4")),
    }


def rewrite_log(table, change, version=0):
    """Change an entry of a log by hand, action by action."""
    log = Path(table) / "_delta_log" / f"{version:020}.json"
    log.write_text("".join(json.dumps(change(json.loads(line))) + "\n" for line in log.read_text().splitlines()))


def test_files_elsewhere_are_found(example, table, tmp_path):
    """As in a shallow clone, whose log has whole URIs."""

    def absolute(action):
        if "add" in action:
            action["add"]["path"] = f"file://{table}/{action['add']['path']}"
        return action

    (tmp_path / "clone" / "_delta_log").mkdir(parents=True)
    name = "_delta_log/00000000000000000000.json"
    (tmp_path / "clone" / name).write_text((table / name).read_text())
    rewrite_log(tmp_path / "clone", absolute)
    check_rows(example, tmp_path / "clone", example.frame, tmp_path)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("s3://me:secret@bucket/a.parquet", r"^s3://\*\*\*@bucket/a\.parquet: has credentials"),
        (None, r"names .*\.parquet twice, expected every file once"),
    ],
    ids=["credentials", "twice"],
)
def test_logs_that_name_files_in_doubtful_ways(example, table, tmp_path, path, said):
    """Credentials would be written into the plan; rows that readers of the table see twice would be explained once."""
    log = table / "_delta_log" / "00000000000000000000.json"
    (added, *_) = [json.loads(line)["add"] for line in log.read_text().splitlines() if '"add"' in line]
    again = json.dumps({"add": added | {"path": path or f"file://{table}/{added['path']}"}})
    log.write_text(f"{log.read_text()}{again}\n")
    with pytest.raises(UsageError, match=said):
        explain(example.model, table, tmp_path / "run", **GIVEN)
    assert not (tmp_path / "run").exists()


def test_places_of_files():
    """Below the table, or absolute; percent signs are the log's."""
    assert place_of("a%20b/c%2525.parquet", "s3://nightly/table/") == "s3://nightly/table/a b/c%25.parquet"
    assert place_of("s3://other/a.parquet", "s3://nightly/table") == "s3://other/a.parquet"
    assert place_of("/data/a.parquet", "/table") == "/data/a.parquet"


def test_plain_http_has_to_be_allowed(monkeypatch):
    """As boto's variable has it; to any other endpoint nothing is said."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:5000")
    assert options_for("s3://nightly/table") == {"aws_endpoint": "http://127.0.0.1:5000", "aws_allow_http": "true"}
    assert options_for("/table") == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://store")
    assert options_for("s3://nightly/table") == {}


@pytest.mark.slow
def test_a_bucket_s_table(example, bucket, tmp_path):
    """Credentials come from the environment, as for all else."""
    options = options_for(bucket)
    rows = pa.Table.from_pandas(example.frame, preserve_index=False)
    write_deltalake(f"{bucket}/table", rows, partition_by=["month"], storage_options=options)
    DeltaTable(f"{bucket}/table", storage_options=options).delete("flight < 100")
    check_rows(example, f"{bucket}/table", example.frame[example.frame["flight"] >= 100], tmp_path)


def delete_by_vector(table):
    """Delete the first row of the first file by a deletion vector in the log, written by hand after Delta's protocol."""
    from pyroaring import BitMap64

    data = (1681511377).to_bytes(4, "little") + BitMap64([0]).serialize()
    data += b"\0" * (-len(data) % 4)
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"  # of Z85
    words = [int.from_bytes(data[i : i + 4], "big") for i in range(0, len(data), 4)]
    text = "".join(digits[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0))
    marked = []

    def mark(action):
        if "add" in action and not marked:
            marked.append(action["add"]["path"])
            action["add"]["deletionVector"] = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": 1}
        return action

    rewrite_log(table, mark)
    return marked[0]


def test_deletion_vectors_are_refused_by_name(example, tmp_path):
    """Some rows of such a file are gone; where there is the feature and none of them, the table is read."""
    table, rows = tmp_path / "table", pa.Table.from_pandas(example.frame, preserve_index=False)
    write_deltalake(table, rows, partition_by=["month"], configuration={"delta.enableDeletionVectors": "true"})
    check_rows(example, table, example.frame, tmp_path)
    name = delete_by_vector(table).rpartition("/")[2]
    assert pa.table(DeltaTable(table).scan()).num_rows == len(example.frame) - 1
    with pytest.raises(UsageError, match=rf"^{table}: 1 of its files have deletion vectors, as {re.escape(name)}: some of their rows are deleted"):
        explain(example.model, table, tmp_path / "refused", **GIVEN)


def test_mapped_columns_are_refused_by_name(example, tmp_path):
    """Files call them otherwise."""
    table = tmp_path / "table"
    write_deltalake(table, pa.Table.from_pandas(example.frame, preserve_index=False))

    def mapped(action):
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"], 1):
                field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
            action["metaData"]["schemaString"] = json.dumps(schema)
        return action

    rewrite_log(table, mapped)
    with pytest.raises(UsageError, match=r"table: its columns are mapped by name \(delta\.columnMapping\.mode\), so that files call them otherwise"):
        explain(example.model, table, tmp_path / "run", **GIVEN)


def test_what_is_not_known_is_refused_by_name(example, table, tmp_path, monkeypatch):
    """A feature that asks something of readers may change what rows there are."""
    write_deltalake(tmp_path / "other", pa.table({"x": [1.0]}), configuration={"delta.enableDeletionVectors": "true"})
    monkeypatch.setattr(deltalake_table, "KNOWN", {"variantType"})
    with pytest.raises(UsageError, match="other: asks its readers for deletionVectors, which leafledger does not know"):
        read_delta(str(tmp_path / "other"))


def test_a_table_by_moments_is_refused(tmp_path):
    """Several texts may stand for one."""
    moments = pa.array([0], pa.timestamp("us", "UTC"))
    write_deltalake(tmp_path / "table", pa.table({"x": [1.0], "at": moments}), partition_by=["at"])
    with pytest.raises(UsageError, match="table: is partitioned by 'at', which is a datetime, expected a text, a whole number, a boolean or a date"):
        read_delta(str(tmp_path / "table"))


def test_files_without_a_column_of_the_table_are_refused(example, tmp_path):
    """The schema has evolved since; what such rows have there is not in the file."""
    for name, mode in (("distance", None), ("nothing", "merge")):
        rows = pa.Table.from_pandas(example.frame.drop(columns=name, errors="ignore"), preserve_index=False)
        write_deltalake(tmp_path / "table", rows, mode="append", schema_mode=mode)
    with pytest.raises(SchemaMismatch, match=r"\.parquet: .*'distance'"):
        explain(example.model, tmp_path / "table", tmp_path / "run", **GIVEN)


def test_a_file_that_is_gone_or_a_log_that_is_broken(example, table, tmp_path):
    """Both are told in one line."""
    gone = next(table.glob("month=1/*.parquet"))
    gone.unlink()
    with pytest.raises(NotThere, match=rf"^{gone}: cannot read: no such file or object$"):
        explain(example.model, table, tmp_path / "run", **GIVEN)
    (table / "_delta_log" / "00000000000000000001.json").write_text("rubbish")
    with pytest.raises(StorageError, match=r"^\S+table: cannot read: [^\n]+$"):
        explain(example.model, table, tmp_path / "run", **GIVEN)


def test_whatever_the_library_says_is_one_line():
    """Some of it has no class of its own; where in the library it was follows. What others refuse inside is passed on."""
    with pytest.raises(StorageError, match=r"^table: cannot write: External error: duplicate field$"), reported("write", "table"):
        raise Exception("External error: duplicate field\n  at src/lib.rs")
    with pytest.raises(UsageError, match=r"^no$"), reported("write", "table"):
        raise UsageError("no")


def test_a_place_that_the_library_takes_for_another_is_refused(example, table, tmp_path):
    """Of "a%20b" it reads the log of "a b", which other rows may lie in; with one digit it reads what it is asked for."""
    shutil.copytree(table, tmp_path / "a b")
    table.rename(tmp_path / "a%20b")
    with pytest.raises(UsageError, match=r"^\S+/a%20b: has '%' before two digits, which the library deltalake takes for another character; call its"):
        read_delta(str(tmp_path / "a%20b"))
    with pytest.raises(UsageError, match=r"/a%20b: has '%' before"):
        TablePlace("delta", str(tmp_path / "a%20b")).check([])
    (tmp_path / "a%20b").rename(tmp_path / "5%off")
    for name in ("5%off", "a b"):
        assert read_delta(str(tmp_path / name)).uri == f"{tmp_path}/{name}@v0"


def test_without_the_library_one_line_says_what_to_install(example, table, tmp_path, monkeypatch):
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "deltalake.exceptions", None)
    with pytest.raises(UsageError, match=r"table: a Delta table needs deltalake: pip install 'leafledger\[delta\]'$"):
        explain(example.model, table, tmp_path / "run", **GIVEN)


def test_a_background_may_be_a_table(example, table, tmp_path):
    """The same rows, the same values."""
    one = explain(example.model, example.data, tmp_path / "one", background=example.data, **GIVEN)
    other = explain(example.model, example.data, tmp_path / "other", background=table, **GIVEN)
    assert one.base == pytest.approx(other.base, rel=1e-12)
    phi = [by_flight(tmp_path / name)["phi_distance"].to_numpy() for name in ("one", "other")]
    assert_array_equal(*phi)
