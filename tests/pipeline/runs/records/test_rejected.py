"""Rows that cannot be read are said, counted and left out; the rest of the run is what it would have been."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain, load_ensemble, read_run
from leafledger.pipeline import errors as errors_
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidData, InvalidRun
from leafledger.pipeline.runs.execute import make_part as part
from leafledger.pipeline.runs.execute import write_part as write_part_
from leafledger.pipeline.runs.records.manifest import read_manifest
from leafledger.pipeline.stores import storage
from tests.pipeline.running import contents

DAMAGED = "month=2/data.parquet"


@pytest.fixture
def data(example, tmp_path):
    """A copy of the example's data to damage."""
    shutil.copytree(example.data, tmp_path / "data")
    return tmp_path / "data"


def flip(path, column, row_group=0):
    """Another byte in the middle of a column chunk, which its page's checksum tells."""
    chunk = next(
        chunk
        for chunk in map(pq.read_metadata(path).row_group(row_group).column, range(pq.read_metadata(path).num_columns))
        if chunk.path_in_schema == column
    )
    damaged = bytearray(path.read_bytes())
    damaged[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size // 2] ^= 0x5A
    path.write_bytes(damaged)


def rewrite(path):
    """The same rows, with page checksums."""
    table = pq.read_table(path, partitioning=None)
    pq.write_table(table, path, write_page_checksum=True, row_group_size=-(-table.num_rows // 2), compression="zstd")


def rows_of(run):
    return sum(pq.read_metadata(path).num_rows for path in (run / "attributions").glob("*.parquet"))


@pytest.mark.parametrize("given", [{"scheduler": "serial"}, {"workers": 2}])
@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_damaged_column_chunk_costs_its_work_item(example, data, tmp_path, given):
    """File, row group and column are named, rows in are rows out and rows rejected, and the other parts are those of a sound run."""
    for path in data.rglob("*.parquet"):
        rewrite(path)
    explain(example.model, data, tmp_path / "sound", ids=["flight"], scheduler="serial")
    flip(data / DAMAGED, "delay", 1)
    manifest = explain(example.model, data, tmp_path / "run", ids=["flight"], **given)
    (rejected,) = manifest.rejected
    assert rejected.uri.endswith(DAMAGED)
    assert f"{DAMAGED}: row group 1: column 'delay': cannot read: " in rejected.reason
    assert manifest.n_rows + rejected.n_rows == len(example.frame)
    assert rows_of(tmp_path / "run") == manifest.n_rows
    assert json.loads((tmp_path / "run" / "rejected.json").read_text())[0]["reason"] == rejected.reason
    report = check_run(tmp_path / "run")
    assert (report.n_rows, report.n_rejected) == (manifest.n_rows, 1)
    for entry in manifest.parts:  # footers carry the plan's digest, and ETags differ
        assert pq.read_table(tmp_path / "run" / entry["uri"]).equals(pq.read_table(tmp_path / "sound" / entry["uri"]))


@pytest.mark.parametrize("damage", [b"", b"PAR1", b"a,b\n1,2\n" * 100, b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7fPARE"])
@pytest.mark.slow
def test_a_file_that_is_no_parquet_file_is_left_out(example, data, tmp_path, damage, capsys):
    """While planning; the command line says so and has an exit code for it, also when there is nothing left to do."""
    (data / DAMAGED).write_bytes(damage)
    command = ["explain", example.model, str(data), "--out", str(tmp_path / "run"), "--scheduler", "serial"]
    for _ in range(2):
        assert main(command) == 3
        assert f"leafledger: rejected: {data}/{DAMAGED}: not a Parquet file: " in capsys.readouterr().err
    assert main(["check", str(tmp_path / "run")]) == 0
    assert "1 piece of the data rejected" in capsys.readouterr().out
    assert main([*command[:-3], str(tmp_path / "strict"), "--scheduler", "serial", "--max-rejected", "0"]) == 8
    said = capsys.readouterr().err
    assert f"{DAMAGED}: not a Parquet file" in said
    assert "(1 of 4 pieces of the data rejected, at most 0 may be)" in said
    assert not (tmp_path / "strict").exists()


def test_text_that_is_no_text_is_a_column_that_cannot_be_read(example, data, tmp_path):
    """A string column of other bytes than UTF-8's."""
    path = data / DAMAGED
    table = pq.read_table(path, partitioning=None)
    name = next(feature.name for feature in load_ensemble(example.model).features if feature.categories)
    place = table.schema.get_field_index(name)
    bytes_ = pa.array([b"\xff\xfe"] * table.num_rows, pa.binary())
    broken = pa.StringArray.from_buffers(len(bytes_), *bytes_.buffers()[1:])
    pq.write_table(table.set_column(place, name, broken), path)
    manifest = explain(example.model, data, tmp_path / "run", scheduler="serial")
    assert [entry.uri for entry in manifest.rejected] in ([], [str(path)])  # an unknown category, or a value that cannot be read
    check_run(tmp_path / "run")


def test_input_that_goes_while_the_run_works_is_left_out(example, data, tmp_path):
    """Whatever was removed or written anew since the plan is rejected with that reason."""

    def meddle(_):
        (data / DAMAGED).unlink()
        rewrite(data / "month=1" / "data.parquet")
        return lambda done: None

    manifest = explain(example.model, data, tmp_path / "run", scheduler="serial", progress=meddle)
    reasons = [entry.reason for entry in manifest.rejected]
    assert [reason.split(": ", 1)[1] for reason in reasons] == ["changed since the run was planned", "removed since the run was planned"]
    check_run(tmp_path / "run")


def test_nothing_is_published_where_nothing_is_left(example, data, tmp_path):
    """A run of rejected rows alone fails with the first reason."""
    shutil.rmtree(data / "month=1")

    def meddle(_):
        shutil.rmtree(data)
        return lambda done: None

    with pytest.raises(InvalidData, match=r"removed since the run was planned \((\d) of \1 pieces of the data rejected, at most \d may be\)"):
        explain(example.model, data, tmp_path / "run", scheduler="serial", progress=meddle, max_rejected=100)
    assert not (tmp_path / "run" / "manifest.json").exists()


@pytest.mark.slow
def test_what_was_rejected_stays_rejected(example, data, tmp_path, monkeypatch):
    """A run that ends between its decision and its manifest is finished as it was decided, also where the data can be read by then."""
    sound = (data / DAMAGED).read_bytes()
    explain(example.model, data, tmp_path / "whole", scheduler="serial")
    moved = tmp_path / "moved"

    def remove(_):
        (data / DAMAGED).rename(moved)
        return lambda done: None

    with monkeypatch.context() as patch:
        patch.setattr("leafledger.pipeline.runs.stages.publish", lambda *_: (_ for _ in ()).throw(InvalidRun("killed")))
        with pytest.raises(InvalidRun, match="killed"):
            explain(example.model, data, tmp_path / "run", scheduler="serial", progress=remove)
    assert (tmp_path / "run" / "rejected.json").exists()
    moved.rename(data / DAMAGED)
    assert (data / DAMAGED).read_bytes() == sound
    manifest = explain(example.model, data, tmp_path / "run", scheduler="serial")
    assert [entry.reason.endswith("removed since the run was planned") for entry in manifest.rejected] == [True]
    check_run(tmp_path / "run")
    assert set(contents(tmp_path / "run")) < set(contents(tmp_path / "whole")) | {"rejected.json"}


def test_what_another_attempt_rejected_is_no_list_of_this_one(example, data, tmp_path):
    """It could not read what this one can, and says so before this one is done: nothing is published beside its list."""
    shutil.copytree(data, tmp_path / "other")
    (tmp_path / "other" / DAMAGED).write_bytes(b"")
    explain(example.model, tmp_path / "other", tmp_path / "away", scheduler="serial")
    run = tmp_path / "run"

    def attempt(_):
        shutil.copy(tmp_path / "away" / "rejected.json", run)
        return lambda done: None

    with pytest.raises(InvalidRun, match=r"rejected\.json: exists already and differs from what this attempt rejected, .*; remove it when no other"):
        explain(example.model, data, run, scheduler="serial", progress=attempt)
    assert not (run / "manifest.json").exists()
    (run / "rejected.json").unlink()
    explain(example.model, data, run, scheduler="serial")
    assert check_run(run).sound


@pytest.mark.slow
def test_what_was_rejected_for_a_passing_reason_is_explained_when_it_is_replaced(example, data, tmp_path, monkeypatch, capsys):
    """One item's workers died, as for want of memory: the same command has nothing to do, and with ``replace`` that item alone is explained."""
    out, write_part, done, failing = tmp_path / "run", write_part_.write_part, [], [True]

    def explain_some(plan, made_by, item, *rest):
        done.append(item.part)
        if item.part == 1 and failing:
            raise InvalidData(f"{item.uri}: killed every worker that it was given to")
        return write_part(plan, made_by, item, *rest)

    monkeypatch.setattr(part, "write_part", explain_some)
    command = ["explain", example.model, str(data), "--out", str(out), "--scheduler", "serial", "--id", "flight"]
    assert main(command) == 3
    failing.clear()
    done.clear()
    assert main(command) == 3
    assert done == []
    assert main(["plan", *command[1:], "--if-changed", "replace"]) == 0
    assert "(takes the place of the same run, which is made anew)" in capsys.readouterr().out
    assert main([*command, "--replace"]) == 0
    assert done == [1]
    fresh = explain(example.model, data, tmp_path / "fresh", ids=["flight"], scheduler="serial")
    assert read_run(out).attributions().equals(read_run(tmp_path / "fresh").attributions())
    assert [entry["sha256"] for entry in read_manifest(str(out)).parts] == [entry["sha256"] for entry in fresh.parts]
    assert check_run(out).sound
    done.clear()
    assert main([*command, "--replace"]) == 0
    assert done == []


@pytest.mark.parametrize("text", ["[", "[1]", '[{"part": 1}]'])
def test_a_damaged_list_of_rejected_work_is_named(example, data, tmp_path, text):
    """Not a traceback."""
    (data / DAMAGED).write_bytes(b"")
    explain(example.model, data, tmp_path / "run", scheduler="serial")
    (tmp_path / "run" / "rejected.json").write_text(text)
    with pytest.raises(InvalidRun, match=r"rejected\.json: not a list of rejected work"):
        check_run(tmp_path / "run")


def test_a_store_that_is_away_rejects_nothing(example, data, tmp_path, monkeypatch):
    """What the store answers instead of bytes is no fault of the data."""
    opened = storage._Reported.read

    def fail(file, n_bytes=-1):
        if file._uri.endswith(DAMAGED) and armed:
            raise errors_.StorageError(f"{file._uri}: cannot read: try later")
        return opened(file, n_bytes)

    armed = []
    monkeypatch.setattr(storage._Reported, "read", fail)

    def arm(_):
        armed.append(True)
        return lambda done: None

    with pytest.raises(errors_.StorageError, match="try later"):
        explain(example.model, data, tmp_path / "run", scheduler="serial", progress=arm)
    assert not (tmp_path / "run" / "rejected.json").exists()
