"""Rows are found by values of every type, as a plain reading finds them; few bytes are read for it; what is wrong with parts is said in one line."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_run
from leafledger.pipeline.errors import InvalidRun, NoSuchRow, UsageError
from leafledger.pipeline.runs.check.verify_rows import verify_rows
from leafledger.pipeline.runs.lookup import row_lookup as lookup
from leafledger.pipeline.runs.lookup.bloom_filter import KNOWN, writing
from leafledger.pipeline.runs.lookup.row_lookup import find_rows, read_condition
from tests.pipeline.conftest import FEATURES

N, PARTS, GROUP = 120, 3, 17
RNG = np.random.default_rng(5)
NUMBERS = RNG.permutation(N)


def nulled(values, every):
    return [None if i % every == 3 else value for i, value in enumerate(values)]


TABLE = pa.table(
    {
        "sorted": pa.array(range(N)),
        "int": pa.array(nulled(NUMBERS.tolist(), 11)),
        "big": pa.array([2**64 - 1 - i for i in NUMBERS.tolist()], pa.uint64()),
        "single": pa.array(nulled([float("nan") if i % 13 == 5 else i / 10 - 3 for i in NUMBERS.tolist()], 7), pa.float32()),
        "double": pa.array([i / 10 for i in NUMBERS.tolist()]),
        "text": pa.array(nulled([f"Ä{i:03d}\x07" for i in NUMBERS.tolist()], 9)),
        "large": pa.array([f"{i}" for i in NUMBERS.tolist()], pa.large_string()),
        "kind": pa.array(nulled(["a", "b", "c"] * (N // 3), 10)).dictionary_encode(),
        "flag": pa.array(nulled([i % 2 == 0 for i in NUMBERS.tolist()], 8)),
        "day": pa.array(nulled([date(2020, 1, 1) + timedelta(int(i)) for i in NUMBERS], 12)),
        "time": pa.array([datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=int(i)) for i in NUMBERS], pa.timestamp("us", "UTC")),
        "money": pa.array([Decimal(int(i)) / 4 for i in NUMBERS], pa.decimal128(9, 2)),
        "bytes": pa.array([bytes([i]) for i in NUMBERS.tolist()]),
        "nothing": pa.nulls(N, pa.string()),
        "a.b": pa.array([i % 5 for i in range(N)]),
        "list": pa.array([[i] for i in range(N)]),
    }
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Parts of several row groups; what makes them a run is not looked at here."""
    folder = tmp_path_factory.mktemp("lookup")
    for part in range(PARTS):
        filtered = writing(("sorted", "int", "big", "text", "large", "kind"), 50 * GROUP)  # hardly any false hits
        rows = TABLE.slice(part * N // PARTS, N // PARTS)
        pq.write_table(rows, folder / f"{part}.parquet", row_group_size=GROUP, **filtered)
    return str(folder)


def find(run, most=None, **where):
    return find_rows(run, [(part, f"{part}.parquet") for part in range(PARTS)], ("sorted", "int"), where, most)


def same(one, other):
    """Values as they are, of which NaN and null are one."""
    return one == other or all(each is None or each != each for each in (one, other))


@pytest.mark.parametrize("name", [name for name in TABLE.column_names if name != "list"])
@pytest.mark.slow
def test_rows_are_those_of_a_plain_reading(run, name):
    """Every value that there is, nulls and NaN among them, in the order of the data."""
    held = TABLE[name].to_pylist()
    for value in held[::13] + held[3:6:2]:
        rows = [i for i, each in enumerate(held) if same(each, value)]
        found = find(run, **{name: value})
        assert found.n_found == len(rows)
        assert found.table["sorted"].to_pylist() == rows
        assert [(place.part, place.row) for place in found.places] == [divmod(row, N // PARTS) for row in rows]
        assert found.places[0].uri == f"{run}/{rows[0] // (N // PARTS)}.parquet"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("int", "42", 42),
        ("big", str(2**64 - 43), 2**64 - 43),
        ("single", "1.1", float(np.float32(4.1 - 3))),
        ("double", "4.2", 4.2),
        ("kind", "b", "b"),
        ("flag", "true", True),
        ("day", "2020-02-12", date(2020, 2, 12)),
        ("time", "2020-01-01T00:00:42Z", datetime(2020, 1, 1, 0, 0, 42, tzinfo=UTC)),
        ("money", "10.5", Decimal("10.50")),
        ("large", "042", None),
        ("text", "", None),
    ],
)
def test_texts_are_read_by_the_column_s_type(run, name, text, value):
    """An empty text is no missing value, and texts are no numbers."""
    rows = [i for i, each in enumerate(TABLE[name].to_pylist()) if value is not None and each == value]
    if rows:
        assert find(run, **{name: text}).table["sorted"].to_pylist() == rows
    else:
        with pytest.raises(NoSuchRow):
            find(run, **{name: text})


def test_all_of_several_conditions_hold(run):
    found = find(run, kind="b", flag=False)
    held = zip(TABLE["kind"].to_pylist(), TABLE["flag"].to_pylist(), strict=True)
    assert found.table["sorted"].to_pylist() == [i for i, each in enumerate(held) if each == ("b", False)]
    assert found.table.column_names == TABLE.column_names


def test_all_are_counted_and_the_first_are_read(run):
    rows = [i for i, each in enumerate(TABLE["kind"].to_pylist()) if each == "a"]
    for most in (1, 5, 20, 1000):
        found = find(run, most, kind="a")
        assert found.n_found == len(rows)
        assert found.table["sorted"].to_pylist() == rows[:most]
        assert len(found.places) == found.table.num_rows


def test_a_footer_is_read_once(run, monkeypatch):
    """However many of a part's row groups have such rows; the first part's once more, for the columns that there are."""
    known, opened = [], pq.ParquetFile.__init__

    def count(parquet, source, *, metadata=None, **given):
        known.append(metadata is not None)
        opened(parquet, source, metadata=metadata, **given)

    monkeypatch.setattr(pq.ParquetFile, "__init__", count)
    find(run, kind="a")
    assert known.count(False) == PARTS + 1
    assert known.count(True) > 2 * PARTS


def test_no_more_is_read_than_what_may_hold_the_row(run, monkeypatch):
    """Of sorted ids one row group, in one column; then that row group in all columns."""
    read, plain = [], pq.ParquetFile.read_row_group

    def count(self, group, columns=None, **given):
        read.append((group, columns))
        return plain(self, group, columns, **given)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", count)
    assert find(run, sorted=58).places[0].row == 18
    assert read == [(1, ["sorted"]), (1, None)]
    read.clear()
    with pytest.raises(NoSuchRow):
        find(run, sorted=-1)
    assert read == []
    if KNOWN:
        find(run, text=TABLE["text"][58].as_py())  # in no order: by their Bloom filters
        assert read == [(1, ["text"]), (1, None)]


def test_names_of_columns_are_told_from_fields_of_others(tmp_path):
    """What has a column's name in Parquet need not be the column: its smallest and largest values say nothing then."""
    table = pa.table({"n": range(4), "a": [{"b": 100 + i} for i in range(4)], "a.b": range(4)})
    pq.write_table(table, tmp_path / "0.parquet")
    try:
        found = find_rows(str(tmp_path), [(0, "0.parquet")], (), {"a.b": 2})
    except InvalidRun:  # pyarrow cannot tell them apart either
        return
    assert found.table["n"].to_pylist() == [2]


@pytest.mark.slow
def test_rows_of_a_store_are_found(run, bucket):
    import s3fs

    for part in range(PARTS):
        s3fs.S3FileSystem().put(f"{run}/{part}.parquet", f"{bucket}/run/{part}.parquet")
    assert find(f"{bucket}/run", int=42).table.equals(find(run, int=42).table)
    with pytest.raises(InvalidRun, match=r"3\.parquet: cannot read: no such file or object, though the run is finished$"):
        find_rows(f"{bucket}/run", [(3, "3.parquet")], (), {"int": 1})


@pytest.mark.parametrize(
    ("where", "error", "says"),
    [
        ({"int": -1}, NoSuchRow, r": no such row: int=-1$"),
        ({"int": "7", "text": "x"}, NoSuchRow, r": no such row: int=7, text='x'$"),
        ({"customer": 1}, UsageError, r": has no column 'customer'; its id columns are sorted, int$"),
        ({"int": "7.5"}, UsageError, r": column 'int' is int64, got '7\.5'$"),
        ({"int": 7.5}, UsageError, r": column 'int' is int64, got 7\.5$"),
        ({"day": datetime(2020, 1, 1, 3)}, UsageError, r": column 'day' is date32\[day\], got datetime"),
        ({"day": "12.2.2020"}, UsageError, r": column 'day' is date32\[day\], got '12\.2\.2020'$"),
        ({"time": "2020-01-01"}, UsageError, r": column 'time' is timestamp\[us, tz=UTC\], got '2020-01-01'$"),
        ({"list": 1}, UsageError, r": column 'list' is list<.*>, got 1$"),
        ({"list": None}, UsageError, r": column 'list' is list<.*>, got None$"),
        ({"int": 10**30}, UsageError, r": column 'int' is int64, got 10+$"),
    ],
)
def test_what_is_not_there_is_said(run, where, error, says):
    with pytest.raises(error, match=says):
        find(run, **where)


def test_damaged_parts_are_said(run, tmp_path):
    """One that is gone, one that is no Parquet, a page with a flipped bit, one without the column."""
    for part in range(PARTS):
        (tmp_path / f"{part}.parquet").write_bytes((lookup.storage.local_path(f"{run}/{part}.parquet")).read_bytes())
    pq.write_table(TABLE.select(["sorted"]), tmp_path / "1.parquet")
    with pytest.raises(InvalidRun, match=r"1\.parquet: has no column 'int', which the run's parts have$"):
        find(str(tmp_path), int=1)
    (tmp_path / "1.parquet").write_bytes(b"PAR1 something else PAR1")
    with pytest.raises(InvalidRun, match=r"1\.parquet: damaged, or no part of a run: [^\n]*$"):
        find(str(tmp_path), int=1)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(InvalidRun, match=r"1\.parquet: cannot read: no such file or object, though the run is finished$"):
        find(str(tmp_path), int=1)
    pq.write_table(TABLE, tmp_path / "0.parquet", write_page_checksum=True)
    content = bytearray((tmp_path / "0.parquet").read_bytes())
    content[200] ^= 1
    (tmp_path / "0.parquet").write_bytes(content)
    with pytest.raises(InvalidRun, match=r"0\.parquet: damaged"):
        find_rows(str(tmp_path), [(0, "0.parquet")], (), {"sorted": 1})


def test_a_missing_value_is_none_or_nan():
    schema = pa.schema([("x", pa.float64())])
    assert [read_condition("run", schema, "x", given).missing for given in (None, float("nan"), "nan", 0.0)] == [True, True, True, False]


def test_ids_of_odd_types_are_found_or_refused(example, tmp_path):
    """Views of texts, half floats; a date beyond what Python has is written as Arrow does."""
    frame = example.frame[FEATURES][:60]
    table = pa.Table.from_pandas(frame, preserve_index=False).append_column("k", pa.array(np.arange(60)))
    table = table.append_column("viewed", pa.array([f"row {i}" for i in range(60)], pa.string_view()))
    table = table.append_column("half", pa.array((np.arange(60) / 4).astype(np.float16)))
    table = table.append_column("far", pa.array([2**58 + i if i % 2 else i for i in range(60)]).cast(pa.timestamp("us")))
    table = table.append_column("pair", pa.array(np.arange(60) // 2))
    pq.write_table(table, tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["k", "viewed", "half"], scheduler="serial")
    run = read_run(tmp_path / "run")
    for where in ({"viewed": "row 7"}, {"half": 1.75}, {"half": "1.75"}):
        assert run.row(**where).index[0][0] == 7
        assert run.show(where).rows[0].ids["k"] == 7
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "far", ids=["pair", "far"], scheduler="serial")
    near, far = read_run(tmp_path / "far").show({"pair": 1}).rows
    assert near.ids["far"] == datetime(1970, 1, 1, microsecond=2)
    assert far.ids["far"] == str(np.datetime64(2**58 + 3, "us")).replace("T", " ")


@pytest.fixture
def differing(example, tmp_path):
    """Runs two files of 60 rows with columns of their own, of which the second may lie in a folder that carries one; ids are k and the others."""

    def run(folder, first, second, **given):
        rows = pa.Table.from_pandas(example.frame[FEATURES][:60], preserve_index=False).append_column("k", pa.array(range(60)))
        (tmp_path / "data" / folder).mkdir(parents=True)
        for path, columns in (("a.parquet", first), (f"{folder}/b.parquet", second)):
            table = rows
            for field, values in columns:
                table = table.append_column(field, values)
            pq.write_table(table, tmp_path / "data" / path)
        ids = ["k", *{field if isinstance(field, str) else field.name for field, _ in first}]
        explain(example.model, tmp_path / "data", tmp_path / "run", ids=ids, scheduler="serial", **given)
        return read_run(tmp_path / "run")

    return run


def test_parts_may_differ_in_whether_a_column_has_nulls(differing):
    """As files of two writers do."""
    numbers = pa.array(range(60))
    found = differing(".", [(pa.field("n", pa.int64(), nullable=False), numbers)], [(pa.field("n", pa.int64()), numbers)])
    assert [found.find({"n": given}).n_found for given in (7, "7")] == [2, 2]
    assert found.show({"k": 3}).n_found == 2
    assert found.find({"n": 7}).table["n"].to_pylist() == [7, 7]


@pytest.mark.parametrize(
    ("values", "asked", "n_found", "held"),
    [
        (pa.array([2] * 60), "2", 120, ["2"] * 2),
        (pa.array([2] * 60), 2, 120, ["2"] * 2),
        (pa.array(["2"] * 60).dictionary_encode(), "2", 120, ["2"] * 2),
        (pa.array([2.5] * 60), "2", 60, ["2.5", "2"]),
    ],
)
def test_a_column_may_be_carried_by_paths_too(differing, values, asked, n_found, held):
    """What is asked for is of each part's own type, and no row of a part that has no such value; rows together are texts."""
    found = differing("day=2", [("day", values)], [])
    assert found.find({"day": asked}).n_found == n_found
    assert found.find({"k": 3}).table["day"].to_pylist() == held
    with pytest.raises(NoSuchRow, match="no such row: day='x'"):
        found.find({"day": "x"})


def test_half_floats_are_found_by_what_they_were_rounded_from(example, tmp_path):
    """By number and text, in dictionaries too, where a run is searched and where all of it is read."""
    halves = pa.array((np.arange(60) / 10).astype(np.float16))
    table = pa.Table.from_pandas(example.frame[FEATURES][:60], preserve_index=False).append_column("half", halves)
    pq.write_table(table, tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["half"], scheduler="serial")
    run = read_run(tmp_path / "run")
    for given in (0.1, "0.1"):
        assert run.find({"half": given}).n_found == 1
        assert run.attributions(where={"half": given}).num_rows == 1
    with pytest.raises(NoSuchRow):
        run.find({"half": None})


def test_uuids_and_json_are_found_by_what_they_are_written_as(example, tmp_path):
    """Types that are made of others, which Arrow cannot compare, as DuckDB and Spark write them."""
    ids = [UUID(int=10**30 * i + 7) for i in range(60)]
    table = pa.Table.from_pandas(example.frame[FEATURES][:60], preserve_index=False)
    stored = pa.array([*(each.bytes for each in ids[:-1]), None], pa.binary(16))
    table = table.append_column("uuid", pa.ExtensionArray.from_storage(pa.uuid(), stored))
    table = table.append_column("json", pa.ExtensionArray.from_storage(pa.json_(), pa.array([f'{{"k": {i}}}' for i in range(60)])))
    pq.write_table(table, tmp_path / "rows.parquet")
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "run", ids=["uuid", "json"], scheduler="serial")
    run = read_run(tmp_path / "run")
    for where in ({"uuid": ids[5]}, {"uuid": str(ids[5])}, {"uuid": ids[5].bytes.hex()}, {"json": '{"k": 5}'}):
        (row,) = run.show(where).rows
        assert row.ids == {"uuid": ids[5], "json": '{"k": 5}'}
        assert run.attributions(["json"], where).to_pydict() == {"json": ['{"k": 5}']}
        verify_rows(run.uri, run.manifest, run.plan, run.find(where))
    assert run.find({"uuid": None}).places[0].row == 59
    with pytest.raises(NoSuchRow, match=f"uuid='{UUID(int=1)}'"):
        run.find({"uuid": str(UUID(int=1))})
    with pytest.raises(UsageError, match=r"column 'uuid' is extension<arrow\.uuid>, got 'x'"):
        run.find({"uuid": "x"})


@pytest.mark.parametrize("unit", ["time32[s]", "time32[ms]", "time64[us]", "time64[ns]"])
def test_a_time_of_day_is_found_by_its_text(unit):
    """As it is shown, in the column's unit; what is finer, or no time, is refused by what was got."""
    kind = {"s": pa.time32, "ms": pa.time32, "us": pa.time64, "ns": pa.time64}[unit[7:-1]](unit[7:-1])
    schema = pa.schema([("at", kind)])
    for at in (time(0, 0, 3), time(23, 59, 59)):
        assert read_condition("run", schema, "at", str(at)).value.equals(pa.scalar(at, kind))
    assert read_condition("run", schema, "at", "7:05").value.equals(pa.scalar(time(7, 5), kind))
    if unit == "time64[ns]":
        assert read_condition("run", schema, "at", "00:00:00.000003001").value.equals(pa.scalar(3001, kind))
    if unit == "time64[us]":
        assert read_condition("run", schema, "at", "00:00:00.003000").value.equals(pa.scalar(time(0, 0, 0, 3000), kind))
    for wrong in ("24:00", "12:60", "noon", "12", "", *([] if unit == "time64[ns]" else ["00:00:00.0000003"])):
        with pytest.raises(UsageError) as refusal:
            read_condition("run", schema, "at", wrong)
        assert str(refusal.value) == f"run: column 'at' is {unit}, got {wrong!r}"


def test_rows_are_found_by_times_and_by_numbers_in_text(example, tmp_path):
    """Of whole runs: by the text that the command takes, and by a whole number where a part holds it as text, as others may hold numbers."""
    rows = example.frame[FEATURES][:40]
    times = [time(1, 2, i, 7 * i) for i in range(40)]
    data = tmp_path / "data"
    data.mkdir()
    written = pa.Table.from_pandas(rows, preserve_index=False).append_column("at", pa.array(times)).append_column("id", pa.array(map(str, range(40))))
    pq.write_table(written, data / "a.parquet")
    explain(example.model, data, tmp_path / "run", ids=["at", "id"], scheduler="serial")
    run = read_run(tmp_path / "run")
    for where in ({"at": "01:02:05.000035"}, {"at": times[5]}, {"id": "5"}, {"id": 5}, {"id": np.int64(5)}, {"id": 5, "at": "01:02:05.000035"}):
        found = run.find(where)
        assert found.n_found == 1
        assert found.table["id"].to_pylist() == ["5"]
        assert run.attributions(where=where)["id"].to_pylist() == ["5"]
    for strange in (5.0, True):
        with pytest.raises(UsageError, match=rf"column 'id' is string, got {strange}$"):
            run.find({"id": strange})
