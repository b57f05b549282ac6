"""A trial does with a few rows what the run would do with all of them, and nothing of it is left."""

import threading
import time
from dataclasses import replace

import distributed
import fsspec
import pytest

from leafledger.pipeline.errors import InvalidData, PredictionMismatch
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.execute import make_part as part
from leafledger.pipeline.runs.execute import write_part as write_part_
from leafledger.pipeline.runs.forecast import trial_run as trial
from leafledger.pipeline.runs.forecast.trial_run import try_run
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.planned_run import plan_run
from tests.pipeline.conftest import write_data


def plan(example, out, data=None, **arguments):
    options = Options(**({"scheduler": "serial", "ids": "flight"} | arguments))
    return plan_run(make_job(example.model, data or example.data, str(out), options), load_ensemble(example.model))


def everything(folder):
    return sorted(folder.rglob("*"))


@pytest.mark.parametrize("arguments", [{}, {"global_only": True, "ids": ()}, {"method": "banzhaf", "by": "carrier"}, {"interactions": 2, "top": 2}])
def test_nothing_is_left(example, tmp_path, arguments):
    """Neither where the run will be nor beside it; the rows are the data's, of no more than there are."""
    run = plan(example, tmp_path / "nights" / "run", **arguments)
    tried = try_run(run, 1)
    assert everything(tmp_path) == []
    assert 0 < sum(tried.rows) <= run.plan.n_rows
    assert all(tried.n_rows <= trial.GROUPS * run.plan.group_rows for tried in tried.parts)
    assert sum(n for n, _ in tried.reading) <= run.plan.n_rows


def test_a_background_is_counted_and_its_counts_are_not_kept(example, tmp_path):
    """The folder of counts stays as it is: the run will count all of the rows."""
    background = write_data(example.frame[::3], tmp_path / "background", row_group_size=60)
    run, before = plan(example, tmp_path / "run", background=background), everything(tmp_path)
    tried = try_run(run, 1)
    assert tried.counted_rows == 1000
    assert everything(tmp_path) == before
    assert plan(example, tmp_path / "run", background=background).uncounted


@pytest.mark.slow
def test_nothing_is_left_in_a_bucket(example, bucket, tmp_path):
    """Whose objects are listed by somebody else."""
    run = plan(example, f"{bucket}/explained/run", f"{example.data}/month=[12]/*.parquet")
    tried = try_run(run, 1)
    filesystem = fsspec.filesystem("s3")
    filesystem.invalidate_cache()
    assert filesystem.find(bucket) == []
    assert all(tried.size > 0 for tried in tried.parts)
    assert tried.preparing.written == 0


def damage(folder, n_files):
    """Overwrite the pages of some files, and leave their footers."""
    for path in sorted(folder.rglob("*.parquet"))[:n_files]:
        data = path.read_bytes()
        path.write_bytes(data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])


def test_rows_that_cannot_be_read_are_left_out_as_long_as_others_can(example, tmp_path):
    """One file of four that can be read is enough; with none, the reason of the first is said, and nothing is left."""
    data = tmp_path / "data"
    write_data(example.frame, data)
    damage(data, 3)
    run = plan(example, tmp_path / "run", str(data))
    tried = try_run(run, 1)
    assert sum(tried.n_rows for tried in tried.parts) < sum(tried.rows)
    damage(data, 4)
    before = everything(tmp_path)
    with pytest.raises(InvalidData, match=r"month=1.*cannot read"):
        try_run(plan(example, tmp_path / "run", str(data)), 1)
    assert everything(tmp_path) == before


def test_what_would_end_the_run_ends_the_trial(example, tmp_path):
    """Predictions that are another model's; nothing is left."""
    run = plan(example, tmp_path / "run", predictions="distance")
    with pytest.raises(PredictionMismatch, match="expected the model's margin"):
        try_run(run, 1)
    assert everything(tmp_path) == []


def test_the_first_part_of_a_worker_does_not_count(example, tmp_path, monkeypatch):
    """It loads kernels and tables; where every worker has but one part, all count."""
    run = plan(example, tmp_path / "run")
    tried = try_run(run, 1)
    assert len(tried.parts) == len(tried.rows) - 1
    monkeypatch.setattr(trial, "SMALL", 0)
    monkeypatch.setattr(trial, "LARGE", 1)
    assert len(try_run(run, 1).parts) == len(try_run(run, 1).rows) == 1


def test_a_row_group_is_read_at_least(example, tmp_path, monkeypatch):
    """However long it takes: its first rows may take as long as all of it, and would say that all of them do."""
    monkeypatch.setattr(trial, "READ_SECONDS", 0.0)
    run = plan(example, tmp_path / "run", write_data(example.frame, tmp_path / "data", row_group_size=250))
    ((n_rows, _),) = try_run(replace(run, plan=replace(run.plan, slice_rows=128)), 1).reading
    assert 250 <= n_rows < min(item.n_rows for item in run.plan.items)


def test_few_rows_are_tried_whole(example, tmp_path):
    """Which costs no more than pieces of them, and leaves nothing to be told from these."""
    run = plan(example, tmp_path / "run", write_data(example.frame[:500], tmp_path / "data"))
    assert try_run(run, 1).rows == tuple(item.n_rows for item in run.plan.items)


def test_pieces_are_of_one_item_where_there_is_no_other(example, tmp_path, monkeypatch):
    """Of two sizes, at different places of it."""
    monkeypatch.setattr(trial, "SECONDS", 0.0)
    example.frame.to_parquet(tmp_path / "rows.parquet")
    tried = try_run(plan(example, tmp_path / "run", str(tmp_path / "rows.parquet")), 1)
    assert sorted(tried.rows) == [32] * trial.SMALL + [128] * trial.LARGE


def test_data_without_rows_can_be_tried(example, tmp_path):
    """There is nothing to measure but what is fixed."""
    data = write_data(example.frame, tmp_path / "data")
    run = plan(example, tmp_path / "run", data)
    run = replace(run, plan=replace(run.plan, items=()))
    tried = try_run(run, 1)
    assert (tried.rows, tried.parts, tried.reading) == ((), (), ())
    assert tried.n_objects > 3


@pytest.mark.slow
def test_nothing_is_left_of_what_others_workers_had_begun(example, tmp_path, monkeypatch):
    """One of several items ends the trial while the others are being explained: no scheduler can end these."""
    begun, write_part = threading.Event(), write_part_.write_part

    def explain_slowly(plan, made_by, item, *rest):
        if item.part == 2:
            assert begun.wait(60)
            raise PredictionMismatch("the trial ends here")
        if item.part > 2:
            begun.set()
            time.sleep(1.5)
        return write_part(plan, made_by, item, *rest)

    monkeypatch.setattr(part, "write_part", explain_slowly)
    monkeypatch.setattr(trial, "END_SECONDS", 4.0)
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": "auto"}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=4, **options) as local:
        with pytest.raises(PredictionMismatch, match="the trial ends here"):
            try_run(plan(example, tmp_path / "run", scheduler=local.scheduler_address), 1)
        time.sleep(3)
    assert everything(tmp_path) == []
