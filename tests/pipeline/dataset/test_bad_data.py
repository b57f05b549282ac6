"""Hostile and odd Parquet: refused while planning, left out with a reason, or explained as the library itself predicts; never a traceback."""

import os
import shutil
import struct
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import check_run, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidData, SchemaMismatch, StorageError
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.planned_run import plan_run
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions, planned

FOOTER_LENGTH = slice(-8, -4)


@pytest.fixture(scope="module")
def table(example):
    """The example's rows as a table, the month a column."""
    return pa.Table.from_pandas(example.frame, preserve_index=False)


@pytest.fixture
def data(table, tmp_path):
    """A folder with a sound file and the place of a damaged one."""
    (tmp_path / "data").mkdir()
    pq.write_table(table, tmp_path / "data" / "a.parquet", write_page_checksum=True)
    return tmp_path / "data"


def with_footer_length(data, length):
    return data[:-8] + struct.pack("<I", length) + data[-4:]


DAMAGES = {
    "nothing": lambda data: b"",
    "magic": lambda data: b"PAR1",
    "magic twice": lambda data: b"PAR1PAR1",
    "cut in the footer": lambda data: data[:-100],
    "cut in the pages": lambda data: data[: len(data) // 2],
    "without its head": lambda data: data[len(data) - 300 :],
    "footer of 2 GiB": lambda data: with_footer_length(data, 0x7FFFFFFF),
    "footer of nothing": lambda data: with_footer_length(data, 0),
    "encrypted": lambda data: b"PARE" + data[4:-4] + b"PARE",
    "text": lambda data: b"flight,delay\n1,2\n" * 1000,
    "zeros": lambda data: bytes(len(data)),
    "a footer of noise": lambda data: data[:-408] + np.random.default_rng(1).bytes(400) + data[-8:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_files_that_are_none_are_left_out(example, data, tmp_path, damage):
    """Whatever stands where a footer should."""
    (data / "b.parquet").write_bytes(DAMAGES[damage]((data / "a.parquet").read_bytes()))
    manifest = explain(example.model, data, tmp_path / "run", scheduler="serial")
    (rejected,) = manifest.rejected
    assert rejected.reason.startswith(f"{data}/b.parquet: not a Parquet file: ")
    assert "\n" not in rejected.reason
    assert (manifest.n_rows, rejected.n_rows) == (3000, None)
    check_run(tmp_path / "run", deep=True)


@pytest.fixture(scope="module")
def sound(example, table, tmp_path_factory):
    """What is published of its rows."""
    folder = tmp_path_factory.mktemp("sound")
    pq.write_table(table, folder / "a.parquet")
    explain(example.model, folder / "a.parquet", folder / "run", ids=["flight"], scheduler="serial")
    return attributions(folder / "run")


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bits_never_change_a_value(example, data, sound, tmp_path, seed):
    """Files with page checksums, a byte anywhere but in the footer: the work item is left out, or the byte did not matter."""
    generator = np.random.default_rng(seed)
    damaged = bytearray((data / "a.parquet").read_bytes())
    end = len(damaged) - 8 - struct.unpack("<I", damaged[FOOTER_LENGTH])[0]
    damaged[generator.integers(4, end)] ^= 1 << generator.integers(8)
    (data / "b.parquet").write_bytes((data / "a.parquet").read_bytes())
    (data / "a.parquet").write_bytes(damaged)
    manifest = explain(example.model, data, tmp_path / "run", ids=["flight"], scheduler="serial", item_rows="file")
    assert len(manifest.parts) + len(manifest.rejected) == 2
    for entry in manifest.parts:
        assert pq.read_table(tmp_path / "run" / entry["uri"]).equals(sound)


def test_a_folder_may_be_called_like_a_file(example, data, tmp_path):
    """What is in it is data."""
    folder = data / "c.parquet"
    folder.mkdir()
    (data / "a.parquet").rename(folder / "part.parquet")
    assert explain(example.model, data, tmp_path / "run", scheduler="serial").n_rows == 3000


@pytest.mark.slow
def test_many_small_row_groups(example, table, tmp_path):
    """Three thousand of them are one work item."""
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=1)
    manifest = explain(example.model, tmp_path / "data.parquet", tmp_path / "run", scheduler="serial")
    assert (manifest.n_rows, len(manifest.parts)) == (3000, 1)


@pytest.mark.slow
def test_many_other_columns(example, table, tmp_path):
    """Ten thousand columns that no feature is called like are passed over."""
    others = {f"other {i}": pa.nulls(table.num_rows, pa.int8()) for i in range(10_000)}
    pq.write_table(pa.table(dict(zip(table.column_names, table.columns, strict=True)) | others), tmp_path / "data.parquet")
    assert explain(example.model, tmp_path / "data.parquet", tmp_path / "run", scheduler="serial").n_rows == 3000


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "../../etc/passwd", "", "delay ", "DELAY", "é" * 300])
def test_hostile_names_of_other_columns(example, table, tmp_path, name):
    """They are no features, and nothing is called after them; a feature in another case is another column."""
    pq.write_table(table.append_column(name, pa.array([1.0] * table.num_rows)), tmp_path / "data.parquet")
    assert explain(example.model, tmp_path / "data.parquet", tmp_path / "run", scheduler="serial").n_rows == 3000


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "../up", "a/b"])
def test_hostile_names_of_id_columns(example, table, tmp_path, name):
    """Ids keep their names, and nothing leaves the run's folder."""
    pq.write_table(table.append_column(name, pa.array(range(table.num_rows))), tmp_path / "data.parquet")
    explain(example.model, tmp_path / "data.parquet", tmp_path / "out" / "run", ids=[name], scheduler="serial")
    assert attributions(tmp_path / "out" / "run")[name].to_pylist() == list(range(table.num_rows))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["run"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "out"]


TYPES = {
    "text": pa.array(["1"] * 3000),
    "lists": pa.array([[1.0]] * 3000),
    "records": pa.array([{"x": 1.0}] * 3000),
    "times": pa.array([0] * 3000, pa.timestamp("us")),
    "dates": pa.array([0] * 3000, pa.date32()),
    "durations": pa.array([0] * 3000, pa.duration("s")),
    "bytes": pa.array([b"1"] * 3000),
    "maps": pa.array([[("a", 1.0)]] * 3000, pa.map_(pa.string(), pa.float64())),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_that_are_no_numbers_are_refused(example, table, tmp_path, kind):
    """While planning, with the column and both types."""
    at = table.schema.get_field_index("delay")
    pq.write_table(table.set_column(at, "delay", TYPES[kind]), tmp_path / "data.parquet")
    with pytest.raises(SchemaMismatch, match=r"data\.parquet: column 'delay' is .*, the model was trained on numbers"):
        explain(example.model, tmp_path / "data.parquet", tmp_path / "run", scheduler="serial")


NUMBERS = {
    "float16": lambda values: pa.array(values.astype(np.float16)),
    "float32": lambda values: pa.array(values.astype(np.float32)),
    "int64": lambda values: pa.array(values.astype(np.int64) + (1 << 53)),
    "bool": lambda values: pa.array(values > 0),
    "decimal": lambda values: pa.array(values.astype(int)).cast(pa.decimal128(30, 3)),
    "null": lambda values: pa.nulls(len(values)),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_any_type_are_their_values(example, table, tmp_path, kind):
    """The margin is the library's prediction for the same values in double precision."""
    column = NUMBERS[kind](example.frame["delay"].to_numpy())
    pq.write_table(table.set_column(table.schema.get_field_index("delay"), "delay", column), tmp_path / "data.parquet")
    explain(example.model, tmp_path / "data.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    expected = example.frame.assign(delay=np.array(column.to_pylist(), float))
    assert_allclose(attributions(tmp_path / "run")["margin"], margins(example, expected), rtol=1e-12)


def margins(example, frame):
    return example.booster.predict(frame[FEATURES].assign(carrier=frame["carrier"].astype("category")), raw_score=True)


def test_odd_values_are_those_of_the_library(example, tmp_path):
    """NaN, null, infinite, huge, subnormal, signed zero, and every threshold with its neighbours; categories never seen."""
    ensemble = load_ensemble(example.model).ensemble
    thresholds = ensemble.threshold[(ensemble.feature >= 0) & (ensemble.category_set < 0)]
    odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -5e-324, 0.0, -0.0, 1e-35, -1e-35]
    values = np.concatenate([odd, thresholds, np.nextafter(thresholds, np.inf), np.nextafter(thresholds, -np.inf)])
    frame = example.frame.iloc[np.arange(len(values)) % len(example.frame)].reset_index(drop=True).assign(delay=values)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, tmp_path / "data.parquet")
    explain(example.model, tmp_path / "data.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_allclose(attributions(tmp_path / "run")["margin"], margins(example, frame), rtol=1e-12)
    holes = pa.array(values, mask=np.isnan(values))
    pq.write_table(table.set_column(table.schema.get_field_index("delay"), "delay", holes), tmp_path / "null.parquet")
    explain(example.model, tmp_path / "null.parquet", tmp_path / "null", precision="float64", scheduler="serial")
    assert attributions(tmp_path / "null").equals(attributions(tmp_path / "run"))


def test_categories_in_any_order(example, table, tmp_path):
    """A dictionary in another order, with entries that no row has, is the same column."""
    at = table.schema.get_field_index("carrier")
    names = [*sorted(set(example.frame["carrier"].dropna()), reverse=True), "never"]
    place = {name: i for i, name in enumerate(names)}
    indices = pa.array([place.get(name) for name in table["carrier"].to_pylist()], pa.int16())
    pq.write_table(table, tmp_path / "plain.parquet")
    pq.write_table(table.set_column(at, "carrier", pa.DictionaryArray.from_arrays(indices, names)), tmp_path / "other.parquet")
    for name in ("plain", "other"):
        explain(example.model, tmp_path / f"{name}.parquet", tmp_path / name, scheduler="serial")
    assert attributions(tmp_path / "plain").equals(attributions(tmp_path / "other"))


@pytest.mark.parametrize("n_rows", [0, 1])
def test_hardly_any_rows(example, table, tmp_path, n_rows):
    """None, and one."""
    pq.write_table(table.slice(0, n_rows), tmp_path / "data.parquet")
    assert explain(example.model, tmp_path / "data.parquet", tmp_path / "run", scheduler="serial").n_rows == n_rows
    check_run(tmp_path / "run", deep=True)


def test_no_columns_at_all(example, tmp_path):
    """Rows of nothing lack every feature."""
    pq.write_table(pa.table({}), tmp_path / "data.parquet")
    with pytest.raises(SchemaMismatch, match="missing, got no columns"):
        explain(example.model, tmp_path / "data.parquet", tmp_path / "run", scheduler="serial")


# The kernel's own count of the process; getrusage's starts with what the parent had.
PEAK = """
import re, sys
from pathlib import Path
from leafledger import explain
explain(*sys.argv[1:4], scheduler="serial")
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) << 10)
"""


@pytest.mark.parametrize(
    ("n_rows", "row_group", "compression"), [(2_000_000, 2_000_000, "zstd"), pytest.param(400_000, 1_000, "none", marks=pytest.mark.more)]
)
@pytest.mark.slow
def test_a_worker_takes_no_more_memory_than_projected(example, table, tmp_path, n_rows, row_group, compression):
    """One row group of two million rows that a file of a few hundred kilobytes holds, and many of a thousand, against what the plan says."""
    repeated = pa.concat_tables([table.combine_chunks()] * (n_rows // 3000 + 1)).slice(0, n_rows)
    path = tmp_path / "data.parquet"
    pq.write_table(repeated.sort_by("delay"), path, row_group_size=row_group, compression=compression)
    memory = plan_run(make_job(example.model, path, tmp_path / "run", Options()), load_ensemble(example.model)).memory
    done = subprocess.run([sys.executable, "-c", PEAK, example.model, path, tmp_path / "run"], capture_output=True, text=True, check=True)
    assert int(done.stdout) <= memory.total
    assert check_run(tmp_path / "run").n_rows == n_rows


@pytest.mark.slow
def test_an_unknown_codec_is_a_reason(example, data, tmp_path):
    """A codec's number in the footer that nobody knows."""
    sound = (data / "a.parquet").read_bytes()
    tried = 0
    for at in range(len(sound) - 8 - struct.unpack("<I", sound[FOOTER_LENGTH])[0], len(sound) - 8):
        if sound[at : at + 2] == b"\x15\x02":  # SNAPPY, as a compact Thrift integer, among others
            (data / "a.parquet").write_bytes(sound[: at + 1] + b"\x7e" + sound[at + 2 :])
            tried += 1
            with suppress(InvalidData, SchemaMismatch):
                explain(example.model, data, tmp_path / f"run {at}", scheduler="serial")
    assert tried


@pytest.mark.parametrize("name", ["model", "data", "background", "partition"])
@pytest.mark.parametrize("place", ["pipe", "folder/pipe.parquet", "/dev/zero", "empty"])
def test_an_input_that_is_no_file_is_refused_in_one_line(example, tmp_path, capsys, name, place):
    """Pipes and devices would be read for ever; a folder is no model, and without files no data."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "folder" / "pipe.parquet")
    given = {"model": example.model, "data": example.data} | {name: str(tmp_path / place)}
    flags = [f"--{flag}={given[flag]}" for flag in ("background", "partition") if flag in given]
    assert main(["plan", given["model"], given["data"], "--out", str(tmp_path / "run"), *flags]) in (2, 6)
    said = capsys.readouterr().err
    assert said.startswith("leafledger: /")
    assert said.count("\n") == 1


def test_a_pipe_among_files_is_refused(example, tmp_path):
    """Whatever it is called as: without it rows would be missing."""
    shutil.copytree(example.data, tmp_path / "data")
    os.mkfifo(tmp_path / "data" / "month=5.parquet")
    with pytest.raises(StorageError, match=r"cannot list: .*is a pipe, a socket or a device, expected a file"):
        planned(example, tmp_path / "data")
