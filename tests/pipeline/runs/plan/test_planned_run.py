"""A run that is planned: stores are tried beforehand, little work stays in this process, and of a finished run nothing is asked."""

import json
from dataclasses import replace

import pytest

from leafledger import explain
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import StorageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan import choose_placement as choice
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import plan_run


@pytest.mark.parametrize(("name", "place"), [("out", "s3://nowhere/run"), ("tables", "s3://nowhere/kept"), ("latest", "s3://nowhere/latest.json")])
def test_a_plan_tries_what_will_be_written(example, tmp_path, bucket, name, place):
    """A bucket that is not there is found while planning, and not after hours of work; a finished run is found all the same."""

    def plan(out=tmp_path / "run", **given):
        job = make_job(example.model, example.data, out, Options(background=example.data, scheduler="serial", date="2026-01-01", **given))
        return plan_run(job, load_model(job))

    assert plan().finished is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match=r"^s3://nowhere(/run/_tables|/kept|/): cannot write: "):
        plan(**{name: place})
    explain(example.model, example.data, tmp_path / "run", background=example.data, scheduler="serial")
    assert plan().finished is not None


def test_few_rows_are_explained_in_this_process(example, tmp_path, monkeypatch):
    """The background's count as well; what was chosen is said, and recorded."""
    n_rows, said = len(example.frame), []

    def where(**options):
        job = make_job(example.model, example.data, tmp_path / "run", Options(**options))
        return plan_run(job, load_model(job)).where

    monkeypatch.setattr(choice, "START_SECONDS", 0.0)
    monkeypatch.setattr(choice, "FEW_ROWS", n_rows - 1)
    assert where().startswith("on a local cluster of ")
    monkeypatch.setattr(choice, "FEW_ROWS", n_rows)
    assert where() == "in this process"
    assert where(background=example.data).startswith("on a local cluster of ")
    explain(example.model, example.data, tmp_path / "run", progress=lambda work: said.append(work.said) or (lambda done: None))
    assert said == ["explaining in this process"]
    assert json.loads((tmp_path / "run" / "provenance.json").read_text())["scheduler"] == "serial"


def test_nobody_asks_how_long_a_finished_run_would_take(example, tmp_path, monkeypatch):
    """No kernel is compiled or called for it, while planning or after; and it works nowhere."""
    shapley, calls = METHODS["shapley"], []
    job = make_job(example.model, example.data, tmp_path / "run", Options())
    monkeypatch.setattr(choice, "FEW_ROWS", 0)
    monkeypatch.setitem(METHODS, "shapley", replace(shapley, kernel=lambda *given: calls.append(given) or shapley.kernel(*given)))
    assert plan_run(job, load_model(job)).where
    assert calls
    made = explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    calls.clear()
    run = plan_run(job, load_model(job))
    assert explain(example.model, example.data, tmp_path / "run") == run.finished == made
    assert calls == []
    assert run.where == ""
