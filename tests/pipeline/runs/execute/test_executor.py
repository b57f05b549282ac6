"""Work items done in turn, on threads, and on Dask: each once, with the same results; the first failure ends the work."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from numpy.testing import assert_array_equal

from leafledger.pipeline.cluster.placement import make_placement
from leafledger.pipeline.dataset.files.listing import Rejected, WorkItem
from leafledger.pipeline.errors import InvalidRun
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.execute import dask as dask_
from leafledger.pipeline.runs.execute import executor as execute
from leafledger.pipeline.runs.execute.bundles import BundleResult, Task
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.planned_run import plan_run
from leafledger.pipeline.runs.records.part import Part
from leafledger.pipeline.runs.stages import count_run
from tests.kernels.attributing import leaves
from tests.pipeline.conftest import write_data
from tests.pipeline.running import ready

ITEMS = tuple(WorkItem(k, f"f{k}.parquet", "", (0,), 0, 10, 0, ()) for k in range(12))
DASK = SimpleNamespace(options=SimpleNamespace(method="shapley"), placement=make_placement(workers=2))
MEMORY = 1 << 30


def test_what_was_done_for_another_run_is_refused(in_process, monkeypatch):
    """Whatever cluster says that it was done for this one; what workers died of was done for none."""
    task, given = Task("a/run", "r" * 64, "tables"), (DASK, Task("a/run", "r" * 64, "tables"), ITEMS, {}, MEMORY)
    monkeypatch.setattr(execute.part, "warm", no_warming_of)
    for recipe in (task.recipe, None):
        monkeypatch.setattr(dask_, "run_dask", lambda *_, recipe=recipe: iter([BundleResult(0, 0, (), None, recipe)]))
        assert list(execute.execute(*given)) == [BundleResult(0, 0, (), None, recipe)]
    monkeypatch.setattr(dask_, "run_dask", lambda *_: iter([BundleResult(0, 0, (), None, "s" * 64)]))
    with pytest.raises(InvalidRun, match=r"^a/run: the cluster has the results of another run, got s{12}, expected r{12}; run again$"):
        list(execute.execute(*given))


def no_warming_of(tables, method):
    """Nothing to compile."""


def test_no_items_need_no_cluster(monkeypatch, tmp_path):
    """Nothing is imported or started for nothing."""
    monkeypatch.setitem(sys.modules, "leafledger.pipeline.cluster.start_client", None)
    monkeypatch.delattr("leafledger.pipeline.cluster.start_client", raising=False)
    task = Task(str(tmp_path / "run"), "", "nowhere")
    assert list(execute.execute(DASK, task, (), {}, MEMORY)) == []
    with pytest.raises(ImportError):
        list(execute.execute(DASK, task, ITEMS, {}, MEMORY))


def pieces(done):
    """Parts and what was rejected, in the order in which they came."""
    return [piece for each in done for piece in each.pieces]


def damage(uri):
    """No file's bytes any more."""
    with open(uri, "r+b") as file:
        file.truncate(100)


@pytest.fixture
def run(example, tmp_path):
    """A run whose second file was overwritten since it was planned."""
    write_data(example.frame, tmp_path / "data")
    found, tables = ready(example, tmp_path / "run", data=f"{tmp_path}/data", scheduler=None, workers=1)
    damage(found.plan.items[1].uri)
    return found, tables


def test_what_is_rejected_comes_in_its_turn(run):
    """Serially: parts and refusals in the order of the items."""
    found, tables = run
    done = pieces(execute.run_here(Task(found.job.out, tables.recipe, tables.uri), found.plan.items, {}, 1, "shapley"))
    assert [(type(each), each.part) for each in done] == [(Part, 0), (Rejected, 1), (Part, 2), (Part, 3)]
    assert [each.n_rows for each in done] == [item.n_rows for item in found.plan.items]
    assert done[1].reason == f"{found.plan.items[1].uri}: changed since the run was planned"


@pytest.mark.parametrize("n_threads", [1, 3])
def test_dask_makes_and_rejects_what_this_process_does(in_process, run, n_threads):
    """The second finds the parts of the first."""
    found, tables = run
    task = Task(found.job.out, tables.recipe, tables.uri)
    done = {each.part: each for each in pieces(execute.execute(found.job, task, found.plan.items, {}, MEMORY))}
    again = {each.part: each for each in pieces(execute.run_here(task, found.plan.items, {}, n_threads, "shapley"))}
    assert done[1] == again[1]
    assert {part: each.sha256 for part, each in done.items() if part != 1} == {part: each.sha256 for part, each in again.items() if part != 1}
    assert [each.seconds for each in again.values() if isinstance(each, Part)] == [0.0] * 3


def test_a_background_is_counted_to_the_same_bits(in_process, example, tmp_path):
    """Serially, on threads and on Dask, and each piece is told once."""
    write_data(example.frame, tmp_path / "data", row_group_size=150)
    job = make_job(example.model, f"{tmp_path}/data", tmp_path / "run", Options(background=f"{tmp_path}/data"))
    planned_run = plan_run(job, load_ensemble(example.model))
    counted, told = [], []
    count = execute.count

    def count_and_tell(job, *given):
        return count(job, *given[:-1], told.append)

    for where in ({"threads": 1}, {"threads": 3}, {"workers": 2}):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(execute, "count", count_and_tell)
            counted.append(count_run(replace(planned_run, job=replace(job, placement=make_placement(**where)))))
    for one, several, there in zip(*map(leaves, counted), strict=True):
        assert_array_equal(one, several)
        assert_array_equal(one, there)
    assert sorted(item.part for item in told) == sorted(3 * [item.part for item in planned_run.game.items])
