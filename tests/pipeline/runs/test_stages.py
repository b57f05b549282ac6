"""The stages of a run: pieces of work that fit, what is missing is done again, and what changed in between is refused."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import check_run, explain
from leafledger.pipeline.dataset.files.identity import is_still
from leafledger.pipeline.errors import InvalidData, RunConflict
from leafledger.pipeline.methods import worker_memory as sizes
from leafledger.pipeline.runs.records.plan_file import from_json
from leafledger.pipeline.stores import storage
from tests.pipeline.conftest import write_data
from tests.pipeline.running import attributions, contents, contributions


@pytest.mark.slow
def test_giant_row_groups_become_several_items(example, tmp_path, monkeypatch):
    """A row group of more rows than two work items is cut; values and ids are those of the whole."""
    path = tmp_path / "data.parquet"
    pq.write_table(pa.Table.from_pandas(example.frame, preserve_index=False), path)
    for rows, out in ((1 << 18, "whole"), (700, "cut")):
        monkeypatch.setattr(sizes, "ITEM_ROWS", rows)
        monkeypatch.setattr(sizes, "SLICE_ROWS", 256)
        explain(example.model, path, tmp_path / out, ids=["flight"], scheduler="serial")
    parts = sorted((tmp_path / "cut" / "attributions").glob("*.parquet"))
    assert [pq.read_metadata(part).num_rows for part in parts] == [700, 700, 700, 700, 200]
    whole, cut = (pq.read_table(tmp_path / out / "attributions") for out in ("whole", "cut"))
    assert whole.equals(cut)
    assert check_run(tmp_path / "cut", deep=True).n_again == 5 * 64


def test_a_rerun_does_what_is_missing(example, serial, tmp_path):
    """Parts that exist are kept, the others made, and the result is the same bits; a rerun of that does nothing."""
    run = tmp_path / "run"
    shutil.copytree(serial[0], run)
    (run / "manifest.json").unlink()
    shutil.rmtree(run / "summary")
    (run / "attributions" / "part-00002.parquet").unlink()
    kept = {path.name: path.stat().st_mtime_ns for path in (run / "attributions").iterdir()}
    made = []
    explain(example.model, example.data, run, ids=["flight", "name"], scheduler="serial", progress=lambda _: lambda done: made.append(done))
    assert [done.part for done in made if done.seconds] == [2]
    assert {path.name: path.stat().st_mtime_ns for path in (run / "attributions").iterdir() if path.name in kept} == kept
    assert contents(run) == contents(serial[0])
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    explain(example.model, example.data, run, ids=["flight", "name"], scheduler="serial", progress=lambda _: pytest.fail("ran again"))
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ids": ["flight"]}, r"different in ids \(was \('flight', 'name'\), is \('flight',\)\)"),
        ({"method": "banzhaf"}, "different in method .*parameters"),
        ({"precision": "float64"}, "different in precision"),
        ({"partition": {"flight": ["delay"]}}, "different in groups"),
        ({"interactions": 3}, r"different in interactions \(was None, is 3\)"),
    ],
)
def test_another_run_s_output_is_refused(example, serial, changes, says):
    """A run of other arguments does not touch what is there, and says what differs."""
    before = contents(serial[0])
    arguments = {"ids": ["flight", "name"], "scheduler": "serial"} | changes
    with pytest.raises(RunConflict, match=says):
        explain(example.model, example.data, serial[0], **arguments)
    assert contents(serial[0]) == before


def test_changed_input_is_refused(example, tmp_path):
    """Input that changed under a planned run is named, before and after the plan."""
    data, run = tmp_path / "data", tmp_path / "run"
    shutil.copytree(example.data, data)
    explain(example.model, data, run, scheduler="serial")
    write_data(example.frame.assign(distance=1.0), data)
    with pytest.raises(RunConflict, match=r"different in input files \(.*month=1/data\.parquet"):
        explain(example.model, data, run, scheduler="serial")
    (run / "manifest.json").unlink()
    shutil.rmtree(run / "attributions")
    item = from_json((run / "plan.json").read_text(), "plan.json").items[0]
    assert not is_still(item.etag, storage.stat(item.uri))


def test_input_that_changes_while_the_run_works_stops_it(example, tmp_path):
    """A file replaced between plan and read is an error that names it, not a silent mix of two nights."""
    data = tmp_path / "data"
    shutil.copytree(example.data, data)

    def replace_input(_):
        write_data(example.frame.assign(distance=1.0), data)
        return lambda done: None

    with pytest.raises(InvalidData, match=r"month=1/data\.parquet: changed since the run was planned"):
        explain(example.model, data, tmp_path / "run", scheduler="serial", progress=replace_input)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_large_files_become_several_items(example, tmp_path, monkeypatch):
    """Row groups are grouped into work items; slices and items do not show in the values."""
    monkeypatch.setattr(sizes, "ITEM_ROWS", 600)
    monkeypatch.setattr(sizes, "SLICE_ROWS", 128)
    manifest = explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    assert len(manifest.parts) > 4
    found = attributions(tmp_path / "run")["phi_delay"].to_numpy()
    assert_allclose(found, contributions(example)[:, 1], rtol=2e-7, atol=1e-12)
    assert check_run(str(tmp_path / "run")).n_rows == len(example.frame)
