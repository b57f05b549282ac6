"""Importances over the nights: shares as the runs' own summaries have them."""

import hashlib
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from leafledger import explain, list_runs, read_run
from leafledger.pipeline.history.importance_shares import read_importances
from leafledger.pipeline.report.overview import save_index
from leafledger.pipeline.runs.records.manifest import read_manifest


@pytest.fixture(scope="module")
def nights(example, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shares")
    explain(example.model, f"{example.data}/month=1", folder / "2026-03-01", scheduler="serial", global_only=True)
    explain(example.model, f"{example.data}/month=1", folder / "2026-03-02", method="banzhaf", scheduler="serial", global_only=True)
    explain(example.model, f"{example.data}/month=2", folder / "2026-03-03", scheduler="serial", global_only=True)
    explain(example.model, example.data, folder / "2026-02-28", method="r2", label="delay", scheduler="serial", global_only=True)
    return folder


@pytest.mark.slow
def test_shares_are_those_of_the_summaries(nights):
    """Of the runs of the last one's method; the others are counted."""
    found = read_importances(list_runs(nights))
    assert [run.date for run in found.runs] == ["2026-03-01", "2026-03-03"]
    assert (found.left_out, found.n_outputs) == (2, 1)
    (output,) = found.outputs
    for i, run in enumerate(found.runs):
        rows = pq.read_table(f"{run.run}/summary/importance.parquet").to_pylist()
        assert {line.feature: line.shares[i] for line in output.lines} == {row["feature"]: row["share"] for row in rows}
    means = [line.mean for line in output.lines]
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"space": "response"}, "of {date}, method shapley, space response, without a background"),
        ({"background": "data"}, "of {date}, method shapley, against a background"),
        (
            {"method": "beta", "parameters": {"alpha": 4, "beta": 1}},
            'of {date}, method beta {"alpha": 4.0, "beta": 1.0}, without a background',
        ),
    ],
)
def test_what_is_of_another_kind_is_left_out(example, nights, tmp_path, asked, told):
    """Though it is of the same model, and so are the runs of the same kind before it."""
    for day in ("2026-03-01", "2026-03-03"):
        shutil.copytree(nights / day, tmp_path / day)
    asked = {name: f"{example.data}/month=2" if value == "data" else value for name, value in asked.items()}
    explain(example.model, f"{example.data}/month=1", tmp_path / "2026-03-04", scheduler="serial", global_only=True, **asked)
    found = read_importances(list_runs(tmp_path))
    assert ([run.date for run in found.runs], found.left_out, str(found.kind)) == (["2026-03-04"], 2, told)


def test_a_night_without_rows_breaks_the_lines(example, nights, tmp_path):
    """Its shares are not known; they were drawn as 0."""
    example.frame.iloc[:0].to_parquet(tmp_path / "none.parquet")
    for day in ("2026-03-01", "2026-03-03"):
        shutil.copytree(nights / day, tmp_path / "runs" / day)
    explain(example.model, tmp_path / "none.parquet", tmp_path / "runs" / "2026-03-02", scheduler="serial", global_only=True)
    found = read_importances(list_runs(tmp_path / "runs"))
    assert [run.date for run in found.runs] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert all([share is None for share in line.shares] == [False, True, False] for line in found.outputs[0].lines)


def test_other_parameters_are_another_kind(example, tmp_path):
    """Of one method."""
    for day, alpha in (("2026-03-01", 4), ("2026-03-02", 2), ("2026-03-03", 4)):
        asked = {"method": "beta", "parameters": {"alpha": alpha, "beta": 1}, "global_only": True}
        explain(example.model, f"{example.data}/month=1", tmp_path / day, scheduler="serial", **asked)
    assert [run.date for run in read_importances(list_runs(tmp_path)).runs] == ["2026-03-01", "2026-03-03"]


@pytest.mark.parametrize(
    ("names", "kept", "job"),
    [
        (("risk/2026-03-01", "delay/2026-03-01", "risk/2026-03-02"), ["risk/2026-03-01", "risk/2026-03-02"], "risk/{date}"),
        (("2026-03-01/delay", "2026-03-01/risk", "2026-03-02/delay"), ["2026-03-01/delay", "2026-03-02/delay"], "{date}/delay"),
        (("delay/2026/02/28", "delay/2026/03/01", "risk/2026/02/28"), ["delay/2026/02/28", "delay/2026/03/01"], "delay/{date}"),
        (("delay/a", "risk/a", "risk/b"), ["risk/a", "risk/b"], "risk"),
    ],
)
def test_jobs_are_told_apart_by_what_their_runs_are_called(nights, tmp_path, names, kept, job):
    """But for the day."""
    for name in names:
        shutil.copytree(nights / "2026-03-01", tmp_path / name)
    found = read_importances(list_runs(tmp_path))
    assert ([run.name for run in found.runs], found.left_out, found.kind.job) == (kept, 1, job)


def test_nothing_to_show(nights, tmp_path):
    """No runs; none with importances."""
    assert read_importances(()).runs == ()
    shutil.copytree(nights / "2026-02-28", tmp_path / "2026-02-28")
    assert read_importances(list_runs(tmp_path)).outputs == ()


def test_damaged_importances_keep_no_page_from_being_written(nights, tmp_path):
    """Their night is damaged, and in no line; sizes alone do not tell."""
    for day in ("2026-03-01", "2026-03-03"):
        shutil.copytree(nights / day, tmp_path / day)
    path = tmp_path / "2026-03-01/summary/importance.json"
    path.write_bytes(b"x" * path.stat().st_size)
    runs = list_runs(tmp_path)
    assert [run.state for run in runs] == ["finished", "finished"]
    found, why = read_importances(runs), "summary/importance.json: is not the one that the manifest lists"
    assert ([run.date for run in found.runs], found.left_out) == (["2026-03-03"], 0)
    assert found.damaged == ((runs[0].run, why),)
    save_index(str(tmp_path / "index.html"), str(tmp_path), runs)
    text = (tmp_path / "index.html").read_text()
    assert "1 finished, 1 damaged" in text
    assert why in text
    shutil.rmtree(tmp_path / "2026-03-01")
    assert read_importances(runs).damaged == ()


def test_a_summary_of_something_else_is_damaged(nights, tmp_path):
    """Though the manifest lists it."""
    run = tmp_path / "2026-03-01"
    shutil.copytree(nights / "2026-03-01", run)
    text = b'[{"output": 1}]'
    (run / "summary/importance.json").write_bytes(text)
    manifest = read_manifest(str(run))
    said = {"size": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    listed = tuple({**entry, **said} if entry["uri"].endswith("importance.json") else entry for entry in manifest.summaries)
    (run / "manifest.json").write_text(replace(manifest, summaries=listed).text)
    found = read_importances(list_runs(tmp_path))
    assert found.runs == ()
    assert "importance.json: not a summary of importances" in found.damaged[0][1]


def test_means_are_those_of_the_predictions(example, tmp_path):
    """Base value and mean attributions, of every run."""
    for month in (1, 2):
        explain(example.model, f"{example.data}/month={month}", tmp_path / f"2026-0{month}-01", scheduler="serial")
    found = read_importances(list_runs(tmp_path))
    means = [float(np.mean(read_run(run.run).attributions(["margin"])["margin"].to_numpy())) for run in found.runs]
    assert found.outputs[0].means == pytest.approx(means, rel=1e-5)
