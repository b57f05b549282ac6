"""The rows of one work item: values of the same rows in memory, however they are cut, and an error that names the row where they do not add up."""

import dataclasses
import shutil
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_array_equal

from leafledger import attribute, explain
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.dataset.files import joined_slices
from leafledger.pipeline.errors import AdditivityBreach, InvalidData, InvalidLabel, PredictionMismatch
from leafledger.pipeline.runs.execute.write_part import write_part
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.model import load_model
from leafledger.pipeline.runs.plan.planned_run import plan_run
from leafledger.pipeline.runs.records.footer import read_footer
from leafledger.pipeline.runs.records.plan import recipe
from leafledger.pipeline.runs.stages import broadcast_run
from tests.pipeline.conftest import FEATURES, train
from tests.pipeline.running import attributions, contents, ready


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
@pytest.mark.slow
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


SIZES = (40, 1, 64, 130, 7, 300)  # rows of files that are explained together
REASONS = {"direction": "raises", "most": 2, "default": {"code": "R", "text": "{feature} is {value}"}}
OF_RUNS = {
    "texts and groups": {"ids": ["flight", "name"], "by": ["carrier"]},
    "R² by group": {"method": "r2", "label": "label", "weight": "weight", "by": ["carrier", "group"], "ids": ["name"]},
    "reasons": {"reasons": REASONS},
    "largest alone": {"top": 2, "columns": "top", "interactions": 1},
    "summaries alone": {"global_only": True, "by": ["group"]},
}
FILES = "data/{:02}.parquet"


@pytest.fixture(scope="module")
def small_files(example, tmp_path_factory):
    """Small files with labels, weights and the model's margins, of which the fourth has another type."""
    folder, rng = tmp_path_factory.mktemp("small"), np.random.default_rng(1)
    frame = example.frame[: sum(SIZES)].assign(weight=1.5, label=lambda rows: rows["delay"], group=rng.integers(0, 3, sum(SIZES)))
    frame["margin"] = example.booster.predict(frame[FEATURES].assign(carrier=pd.Categorical(frame["carrier"], ["AA", "B6", "DL", "UA"])))
    (folder / "data").mkdir()
    first = 0
    for k, size in enumerate(SIZES):
        rows = frame[first : first + size]
        rows.astype({"delay": np.float32} if k == 3 else {}).to_parquet(folder / FILES.format(k), index=False)
        first += size
    return folder


def changed(small_files, folder, k, **columns):
    """The files with other values in the last row of one."""
    shutil.copytree(small_files / "data", folder / "data")
    rows = pd.read_parquet(folder / FILES.format(k))
    for name, value in columns.items():
        rows.loc[len(rows) - 1, name] = value
    rows.to_parquet(folder / FILES.format(k), index=False)
    return folder / "data"


@pytest.mark.parametrize("given", OF_RUNS.values(), ids=OF_RUNS)
def test_a_part_does_not_show_which_files_were_explained_together(example, small_files, tmp_path, monkeypatch, given):
    """Every byte of the run is the same where each file is explained by itself."""
    given = {"scheduler": "serial"} | given
    explain(example.model, small_files / "data", tmp_path / "run", **given)
    together = contents(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    monkeypatch.setattr(joined_slices, "JOINED_BYTES", 0)
    explain(example.model, small_files / "data", tmp_path / "run", **given)
    assert contents(tmp_path / "run") == together


def test_another_output_is_drawn_by_the_row_s_number_in_its_file(small_files, example, tmp_path, monkeypatch):
    """Of a model of three classes."""
    train(example.frame, objective="multiclass", num_class=3).save_model(tmp_path / "model.txt")
    tables = []
    for n_bytes in (joined_slices.JOINED_BYTES, 0):
        monkeypatch.setattr(joined_slices, "JOINED_BYTES", n_bytes)
        explain(tmp_path / "model.txt", small_files / "data", tmp_path / str(n_bytes), output="other:5", scheduler="serial")
        tables.append(attributions(tmp_path / str(n_bytes)))
    assert tables[0].equals(tables[1])
    assert len(set(tables[0]["output"].to_pylist())) == 3


def test_files_are_explained_together(example, small_files, tmp_path, monkeypatch):
    """Those before the one of another type, that one, and those behind it."""
    calls, plain = [], METHODS["shapley"]

    def count(buffers, tables):
        calls.append(buffers.n_rows)
        plain.kernel(buffers, tables)

    monkeypatch.setitem(METHODS, "shapley", dataclasses.replace(plain, kernel=count))
    explain(example.model, small_files / "data", tmp_path / "run", scheduler="serial")
    assert calls == [105, 130, 307]


def test_a_breach_names_the_file_and_its_row(example, small_files, tmp_path, monkeypatch):
    """Though its slice begins with another file: the 42nd row of the slice is the first of the third file."""
    wrong = METHODS["shapley"]

    def off(buffers, tables):
        wrong.kernel(buffers, tables)
        buffers.phi[0, 0, 41] += 1e-3

    monkeypatch.setitem(METHODS, "shapley", dataclasses.replace(wrong, kernel=off))
    with pytest.raises(AdditivityBreach, match=r"data/02\.parquet: row 0: attributions miss margin - base value"):
        explain(example.model, small_files / "data", tmp_path / "run", scheduler="serial")


def test_a_wrong_prediction_names_the_file_and_its_row(example, small_files, tmp_path):
    """And counts the rows of that file alone."""
    data = changed(small_files, tmp_path, 2, margin=1e9)
    with pytest.raises(PredictionMismatch, match=r"data/02\.parquet: row 63: 'margin' is 1e\+09, expected .*; 1 of 64 rows there differ"):
        explain(example.model, data, tmp_path / "run", predictions="margin", scheduler="serial")


def test_a_wrong_weight_names_the_file_and_its_row(example, small_files, tmp_path):
    """By its number in the file."""
    data = changed(small_files, tmp_path, 2, weight=-1.0)
    with pytest.raises(InvalidLabel, match=r"data/02\.parquet: row 63: weight 'weight' is -1\.0, expected"):
        explain(example.model, data, tmp_path / "run", method="r2", label="label", weight="weight", scheduler="serial")


def test_a_file_with_texts_that_are_none_is_rejected_by_its_name(example, small_files, tmp_path):
    """The others of its slice are explained as if it were not there."""
    shutil.copytree(small_files / "data", tmp_path / "data")
    table = pq.read_table(tmp_path / FILES.format(1))
    texts = pa.array([b"\xff"], pa.large_binary()).view(pa.large_string()).cast(table["carrier"].type)
    pq.write_table(table.set_column(table.schema.get_field_index("carrier"), "carrier", texts), tmp_path / FILES.format(1))
    manifest = explain(example.model, tmp_path / "data", tmp_path / "run", scheduler="serial", by=["carrier"])
    (rejected,) = manifest.rejected
    assert rejected.uri.endswith("01.parquet")
    assert "01.parquet: row groups [0]: column 'carrier'" in rejected.reason
    (tmp_path / FILES.format(1)).unlink()
    explain(example.model, tmp_path / "data", tmp_path / "other", scheduler="serial", by=["carrier"])
    assert attributions(tmp_path / "run").equals(attributions(tmp_path / "other"))
