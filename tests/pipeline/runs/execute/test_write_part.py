"""The rows of one work item: values of the same rows in memory, however they are cut, and an error that names the row where they do not add up."""

import dataclasses
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_array_equal

from leafledger import attribute
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.errors import AdditivityBreach, InvalidData
from leafledger.pipeline.runs.execute.write_part import write_part
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import plan_run
from leafledger.pipeline.runs.records.footer import read_footer
from leafledger.pipeline.runs.records.plan import recipe
from leafledger.pipeline.runs.stages import broadcast_run
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import ready


@pytest.fixture(scope="module")
def planned_run(example, tmp_path_factory):
    """A run in double precision, and its tables."""
    return ready(example, tmp_path_factory.mktemp("item") / "run", ids=["flight"], precision="float64")


def made(planned_run, local, item, **changes):
    """What is made of an item: the part's rows, and its footer."""
    run, tables = planned_run
    plan = dataclasses.replace(run.plan, **changes)
    write_part(plan, recipe(run.plan), item, tables.prepared, local)
    return pq.read_table(local), read_footer("part", local, recipe(run.plan), item)


@pytest.mark.parametrize(("skip", "n_rows"), [(0, 600), (0, 1), (300, 64), (299, 303)])
def test_a_part_holds_the_values_of_its_rows(example, planned_run, tmp_path, skip, n_rows):
    """Those of attribute in memory, bit by bit, for these rows and no others."""
    item = dataclasses.replace(planned_run[0].plan.items[1], skip=skip, n_rows=n_rows)
    table, footer = made(planned_run, tmp_path / "part", item)
    rows = example.frame[example.frame["month"] == 2].iloc[skip : skip + n_rows]
    assert table["flight"].to_pylist() == rows["flight"].tolist()
    expected = attribute(example.model, rows[FEATURES].assign(month=2))
    assert_array_equal(table["margin"], expected.margin[:, 0])
    for j, name in enumerate(FEATURES):
        assert_array_equal(table[f"phi_{name}"], expected.phi[:, 0, j])
    assert footer.n_rows == n_rows
    assert 0 <= footer.residual < 1e-13
    assert list(footer.states) == ["importance", "inputs"]


def test_slices_do_not_show_in_rows(planned_run, tmp_path):
    """Ten rows at a time, and all of them: the same bits."""
    item = planned_run[0].plan.items[0]
    (whole, _), (cut, footer) = made(planned_run, tmp_path / "a", item), made(planned_run, tmp_path / "b", item, slice_rows=10)
    assert whole.equals(cut)
    assert footer.n_rows == item.n_rows


def test_summaries_alone_have_the_same_states(planned_run, tmp_path):
    """A part without rows says of how many it is."""
    item = planned_run[0].plan.items[0]
    (_, whole), (table, footer) = made(planned_run, tmp_path / "a", item), made(planned_run, tmp_path / "b", item, global_only=True)
    assert table.num_rows == 0
    assert footer == dataclasses.replace(whole, stored=0)


def test_other_rows_than_were_planned_are_refused(planned_run, tmp_path):
    """An item whose row groups have fewer rows than its footer said."""
    item = dataclasses.replace(planned_run[0].plan.items[0], n_rows=10_000)
    with pytest.raises(InvalidData, match=r"month=1/data\.parquet: row groups .*: got \d+ rows, the footer says 10000$"):
        made(planned_run, tmp_path / "part", item)


def test_a_breach_in_the_middle_of_a_file_names_the_file_s_row(planned_run, tmp_path, monkeypatch):
    """Counted from its beginning, whatever the item skips and however its slices are cut."""
    wrong = METHODS["shapley"]

    def off(buffers, tables):
        wrong.kernel(buffers, tables)
        buffers.phi[0, 0, 3] += 1e-3

    item = dataclasses.replace(planned_run[0].plan.items[0], skip=100, n_rows=50, first_row=100)
    monkeypatch.setitem(METHODS, "shapley", dataclasses.replace(wrong, kernel=off))
    with pytest.raises(
        AdditivityBreach, match=r"month=1/data\.parquet: row 103: attributions miss margin - base value by .*, expected at most 1e-09$"
    ):
        made(planned_run, tmp_path / "part", item, slice_rows=20)


def test_the_residual_is_the_largest_of_all_slices(planned_run, tmp_path, monkeypatch):
    """As a fraction of the margin's bound; one slice alone is off, by less than is refused."""
    wrong, calls = METHODS["shapley"], []
    bound = float(planned_run[1].prepared.bound[0])

    def off_once(buffers, tables):
        wrong.kernel(buffers, tables)
        buffers.phi[0, 0, 3] += bound * 1e-11 * (len(calls) == 1)
        calls.append(None)

    monkeypatch.setitem(METHODS, "shapley", dataclasses.replace(wrong, kernel=off_once))
    _, footer = made(planned_run, tmp_path / "part", planned_run[0].plan.items[0], slice_rows=64)
    assert len(calls) > 3
    assert np.isclose(footer.residual, 1e-11, rtol=1e-3)


@pytest.fixture(scope="module")
def many_classes(tmp_path_factory):
    """A model whose attributions of one slice are larger than a slice aims at, since a row has 48,000 of them."""
    folder, rng = tmp_path_factory.mktemp("classes"), np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(800, 120)), columns=[f"f{j}" for j in range(120)])
    given = {"objective": "multi:softprob", "num_class": 400, "max_depth": 3, "max_bin": 4, "min_child_weight": 0, "base_score": 0.5}
    xgboost.train(given, xgboost.DMatrix(rows, np.arange(800) % 400), 1).save_model(folder / "model.ubj")
    rows[:256].to_parquet(folder / "data.parquet")
    return folder


@pytest.mark.parametrize(
    "options",
    [{"output": "predicted"}, {"top": 5, "columns": "top", "output": "predicted"}, {"global_only": True}],
    ids=str,
)
def test_a_slice_takes_what_was_foreseen_of_it(many_classes, tmp_path, options):
    """Hardly less, or workers die of it; and not twice as much, or plans are refused that would do. Columns that nobody asked for take nothing."""
    job = make_job(str(many_classes / "model.ubj"), str(many_classes / "data.parquet"), str(tmp_path / "run"), Options(scheduler="serial", **options))
    run = plan_run(job, load_model(job))
    tables = broadcast_run(run)
    write_part(run.plan, recipe(run.plan), run.plan.items[0], tables.prepared, tmp_path / "first")  # compiles
    tracemalloc.start()
    write_part(run.plan, recipe(run.plan), run.plan.items[0], tables.prepared, tmp_path / "part")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak / 1.1 <= run.memory.slice <= 2 * peak
