"""A run that is planned: stores are tried beforehand, threads are chosen, and of a finished run nothing is asked."""

import json
from dataclasses import replace

import pytest

from leafledger import explain
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import UnusablePlace
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
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
    with pytest.raises(UnusablePlace, match=rf"^{place}: cannot (write|read): bucket nowhere does not exist$"):
        plan(**{name: place})
    explain(example.model, example.data, tmp_path / "run", background=example.data, scheduler="serial")
    assert plan().finished is not None


def test_rows_are_explained_on_threads(example, tmp_path):
    """As many as there are cores; what was chosen is said, and recorded."""
    said = []
    explain(example.model, example.data, tmp_path / "run", threads=3, progress=lambda work: said.append(work.said) or (lambda done: None))
    assert said == ["explaining on 3 threads"]
    assert json.loads((tmp_path / "run" / "provenance.json").read_text())["scheduler"] is None


def test_nothing_is_computed_for_a_finished_run(example, tmp_path, monkeypatch):
    """No kernel is compiled or called for it, while planning or after; and it works nowhere."""
    shapley, calls = METHODS["shapley"], []
    job = make_job(example.model, example.data, tmp_path / "run", Options())
    monkeypatch.setitem(METHODS, "shapley", replace(shapley, kernel=lambda *given: calls.append(given) or shapley.kernel(*given)))
    assert plan_run(job, load_model(job)).where
    made = explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    assert calls
    calls.clear()
    run = plan_run(job, load_model(job))
    assert explain(example.model, example.data, tmp_path / "run") == run.finished == made
    assert calls == []
    assert run.where == ""
