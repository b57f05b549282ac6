"""What a forecast says of bytes and objects is what the run then has; what it puts together adds up."""

from pathlib import Path
from types import SimpleNamespace

import distributed
import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from leafledger import explain
from leafledger.pipeline.cluster.resource_usage import measure_usage
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.forecast import trial_run as trial
from leafledger.pipeline.runs.forecast.forecast import Cost, fit, forecast_run, last_end
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.planned_run import plan_run
from leafledger.pipeline.stores.traffic import find_moved
from tests.pipeline.conftest import write_data

ROUGH = 0.2  # what forecasts shall be within of runs
CLOSE = 0.02  # bytes of parts: what a row takes when it is compressed differs from row to row


def foresee(example, data, out, **arguments):
    planning = []
    with measure_usage(planning):
        run = plan_run(make_job(example.model, data, str(out), Options(**arguments)), load_ensemble(example.model))
    return forecast_run(run, *planning)


def sizes(out):
    """Of every file of a run."""
    return [path.stat().st_size for path in Path(out).rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def many_rows(example, tmp_path_factory):
    """The example's rows, twenty times, with other numbers."""
    rng, frame = np.random.default_rng(5), example.frame
    frames = [frame.assign(distance=frame["distance"] + rng.normal(0, 50, len(frame))) for _ in range(20)]
    return write_data(pd.concat(frames), tmp_path_factory.mktemp("many"), row_group_size=5000)


@pytest.mark.parametrize(
    "arguments",
    [{}, {"ids": "flight", "values": True}, {"global_only": True}, {"method": "banzhaf", "top": 2}, {"by": "carrier", "precision": "float64"}],
)
@pytest.mark.slow
def test_bytes_and_objects_are_those_of_the_run(example, many_rows, tmp_path, arguments):
    """Of 60,000 rows, by what a few of them took."""
    out, arguments = tmp_path / "run", {"scheduler": "serial"} | arguments
    forecast, before = foresee(example, many_rows, out, **arguments), find_moved()
    explain(example.model, many_rows, out, **arguments)
    written = sizes(out)
    assert forecast.objects == len(written)
    assert forecast.written_bytes == pytest.approx(sum(written), rel=CLOSE)
    assert forecast.read_bytes == pytest.approx(find_moved().read - before.read, rel=CLOSE)
    assert forecast.workers == 1
    assert forecast.tried_rows > 0


def test_bytes_are_told_from_rows_that_take_long(tmp_path, monkeypatch):
    """No more of these are tried at a time than a kernel works on, and here all are of one item: what a part has whatever its rows is told from what
    a row has, and not taken for it."""
    monkeypatch.setattr(trial, "SECONDS", 0.0)
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(5000, 8)), columns=[f"f{j}" for j in range(8)])
    slow = SimpleNamespace(model=str(tmp_path / "model.txt"), data=str(tmp_path / "rows.parquet"))
    rows.to_parquet(slow.data)
    lightgbm.train({"verbose": -1, "num_threads": 1}, lightgbm.Dataset(rows, rows.sum(axis=1)), 20).save_model(slow.model)
    forecast = foresee(slow, slow.data, tmp_path / "run", scheduler="serial")
    explain(slow.model, slow.data, tmp_path / "run", scheduler="serial")
    assert forecast.written_bytes == pytest.approx(sum(sizes(tmp_path / "run")), rel=ROUGH)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_local_cluster_is_tried_as_it_will_be(example, many_rows, tmp_path):
    """With as many workers; its start is a stage, and stages add up."""
    forecast = foresee(example, many_rows, tmp_path / "run", workers=2)
    assert forecast.workers == 2
    assert forecast.seconds == pytest.approx(sum(forecast.stages.values()))
    assert forecast.stages["starting"] > 0
    assert forecast.memory > 2 * (64 << 20)  # two workers, each with Python and its packages
    assert set(forecast.row) == {"reading", "kernel", "writing"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_scheduler_is_asked_for_its_workers(example, many_rows, tmp_path):
    """Each thread works on an item of its own, of which there are four; nothing is left of what they did."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=3, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        forecast = foresee(example, many_rows, tmp_path / "run", scheduler=cluster.scheduler_address)
    assert forecast.workers == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.more
@pytest.mark.usefixtures("forked")
def test_no_more_workers_are_counted_than_there_are_tasks(example, tmp_path):
    """One file of few rows is one task."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pq.read_table(example.data), path)
    assert foresee(example, str(path), tmp_path / "run", workers=2).workers == 1


def test_a_run_without_rows_has_a_forecast(example, tmp_path):
    """Its objects are those of the run."""
    data, out = tmp_path / "rows.parquet", tmp_path / "run"
    pq.write_table(pq.read_table(example.data)[:0], data)
    forecast = foresee(example, str(data), out, scheduler="serial")
    explain(example.model, data, out, scheduler="serial")
    assert forecast.objects == len(sizes(out))
    assert forecast.written_bytes == pytest.approx(sum(sizes(out)), rel=CLOSE)


def test_a_background_is_counted_in_full(example, tmp_path):
    """All of its bytes are read, though some of its rows were counted."""
    background = write_data(example.frame, tmp_path / "background")
    arguments = {"background": background, "scheduler": "serial"}
    forecast, before = foresee(example, example.data, tmp_path / "run", **arguments), find_moved()
    explain(example.model, example.data, tmp_path / "run", **arguments)
    assert forecast.read_bytes == pytest.approx(find_moved().read - before.read, rel=0.1)
    assert forecast.objects == len(sizes(tmp_path / "run"))


@pytest.mark.parametrize(("item", "row"), [(3.0, 0.5), (0.0, 2.0), (7.0, 0.0)])
def test_a_line_is_found(item, row):
    """Exactly, where items took what a line says."""
    rows = [10, 20, 40, 80]
    found = fit(rows, [item + row * n for n in rows])
    assert (found.item, found.row) == (pytest.approx(item, abs=1e-9), pytest.approx(row, abs=1e-9))


def test_nothing_takes_less_than_nothing():
    """Where a line would say so, all is the rows' or all is the items'; of items of one size it is the rows'."""
    assert fit([10, 100], [1.0, 100.0]).item == 0.0
    assert fit([10, 100], [5.0, 4.0]).row == 0.0
    assert fit([10, 10, 10], [4.0, 5.0, 6.0]) == Cost(0.0, 0.5)
    assert fit([], []) == fit([0], [9.0]) == Cost(0.0, 0.0)
    assert Cost(3.0, 0.5).of(4) == 5.0


def test_the_last_worker_ends_when_all_is_done():
    """Against tasks given away by hand, and against sums."""
    assert last_end([3.0, 1.0, 1.0, 1.0, 2.0], 2) == 5.0  # 3 and 2; 1, 1 and 1
    assert last_end([1.0] * 7, 3) == 3.0
    assert last_end([1.0, 2.0, 4.0], 1) == 7.0
    assert last_end([], 4) == 0.0
