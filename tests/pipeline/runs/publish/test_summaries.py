"""Summaries of all rows: the moments of the rows, however they were cut, and the same bits in whatever order parts are done."""

import numpy as np
import pytest

from leafledger.pipeline.methods import worker_memory as sizes
from leafledger.pipeline.runs.execute import executor as execute
from leafledger.pipeline.runs.execute.bundles import Task, do_bundle, make_bundles
from leafledger.pipeline.runs.stages import aggregate_run, map_run
from tests.pipeline.conftest import write_data
from tests.pipeline.running import ready


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_the_order_in_which_parts_are_done_does_not_show(example, tmp_path, monkeypatch, seed):
    """Twenty parts that arrive in any order give the tables of those that arrive in turn, bit by bit."""
    monkeypatch.setattr(sizes, "ITEM_ROWS", 150)
    run, tables = ready(example, tmp_path / "run", data=f"{tmp_path}/data")
    in_turn = aggregate_run(run, tables, map_run(run, tables))
    task = Task(run.job.out, tables.recipe, tables.uri)
    assert len(run.plan.items) > 9  # more than are merged at a time
    for level in (0, 1):
        done = [do_bundle(task, bundle) for bundle in make_bundles(run.plan.items, {}, level)]
        order = np.random.default_rng(seed).permutation(len(done))
        monkeypatch.setattr(execute, "execute", lambda *_, done=done, order=order: (done[k] for k in order))
        found = aggregate_run(run, tables, map_run(run, tables))
        assert {name: table.equals(in_turn[name], check_metadata=True) for name, table in found.items()} == {"importance": True, "inputs": True}


@pytest.fixture(autouse=True)
def _data(example, tmp_path):
    """The example's rows in smaller row groups."""
    write_data(example.frame, tmp_path / "data", row_group_size=75)
