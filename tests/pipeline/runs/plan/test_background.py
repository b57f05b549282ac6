"""Runs against a background: values of the marginal game, where its counts are kept, and honest refusals before a row is counted."""

import json
import shutil

import catboost
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute, check_run, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import SchemaMismatch, UsageError
from leafledger.pipeline.methods import tables as tables_
from leafledger.pipeline.runs.check.recompute_rows import SAMPLE_ROWS
from leafledger.pipeline.runs.job import job as config
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan import background
from leafledger.pipeline.runs.plan import model as load
from leafledger.pipeline.runs.plan import planned_run as planned_run_
from tests.pipeline.conftest import FEATURES, write_data
from tests.pipeline.running import attributions, contents, read_phi, stored


def test_a_run_publishes_the_marginal_game(example, background_rows, background_uri, against_rows):
    """Attributions equal those in memory; the base is the mean margin of the background's rows, which LightGBM predicts."""
    out, manifest = against_rows
    found = attribute(example.model, example.frame[FEATURES], background=background_rows[FEATURES])
    assert_allclose(read_phi(out), found.phi[:, 0], rtol=1e-12, atol=1e-12)
    predicted = example.booster.predict(background_rows[FEATURES].assign(carrier=background_rows["carrier"].astype("category")))
    assert_allclose(manifest.base, predicted.mean(), rtol=1e-12)
    assert manifest.residual < 1e-13
    assert manifest.background == background_uri == json.loads((out / "plan.json").read_text())["background"]
    assert check_run(str(out)).n_rows == len(example.frame)
    assert not (out / "_tables").exists()


@pytest.mark.parametrize(
    ("method", "parameters", "partition"),
    [
        ("banzhaf", {"p": 0.25}, None),
        ("shapley", {}, {"flight": ["month", "distance"]}),
        ("owen", {"within": "banzhaf"}, {"flight": ["month", "distance"]}),
    ],
)
def test_methods_and_groups_have_a_marginal_game(example, background_rows, background_uri, tmp_path, method, parameters, partition):
    """Parameters and groups reach the tables, and every game has a folder of its own."""
    given, common = {"method": method, "partition": partition}, {"background": background_uri, "precision": "float64", "scheduler": "serial"}
    explain(example.model, example.data, tmp_path / "0", **given, parameters=parameters, **common)
    explain(example.model, example.data, tmp_path / "1", **common)
    found = attribute(example.model, example.frame[FEATURES], background=background_rows[FEATURES], **given, parameters=parameters)
    assert_allclose(read_phi(tmp_path / "0"), found.phi[:, 0], rtol=1e-12, atol=1e-12)
    assert len(list((tmp_path / "_leafledger").iterdir())) == 2


def test_the_model_itself_is_a_background(example, tmp_path):
    """Symmetric trees are explained against their own leaf weights, without a row of a background."""
    numbers = example.frame[["distance", "delay", "month"]]
    model = catboost.CatBoostRegressor(iterations=10, depth=4, random_seed=1, thread_count=1, verbose=False, allow_writing_files=False)
    model.fit(numbers, example.frame["delay"].fillna(0) + example.frame["month"]).save_model(tmp_path / "model.cbm")
    manifest = explain(tmp_path / "model.cbm", example.data, tmp_path / "run", background="model", precision="float64", scheduler="serial")
    found = attribute(tmp_path / "model.cbm", numbers, background="model")
    assert_allclose(read_phi(tmp_path / "run"), found.phi[:, 0], rtol=1e-12, atol=1e-12)
    assert manifest.background == "model"
    assert_allclose(manifest.base, found.base)
    assert check_run(tmp_path / "run", deep=True).n_again == 4 * SAMPLE_ROWS
    assert not (tmp_path / "_leafledger").exists()


def test_the_data_may_be_the_background(example, tmp_path):
    """The base is then the mean of the margins of the run itself."""
    manifest = explain(example.model, example.data, tmp_path / "run", background=example.data, precision="float64", scheduler="serial")
    assert_allclose(manifest.base, attributions(tmp_path / "run")["margin"].to_numpy().mean(), rtol=1e-12)


def test_partitions_and_nulls_are_read_as_in_data(example, background_rows, background_uri, tmp_path):
    """Hive's null in a background's path is a missing value; a column may be missing in the file if the path carries it."""
    shutil.copytree(background_uri, tmp_path / "rows")
    (tmp_path / "rows" / "month=4").rename(tmp_path / "rows" / "month=__HIVE_DEFAULT_PARTITION__")
    explain(example.model, example.data, tmp_path / "run", background=tmp_path / "rows", precision="float64", scheduler="serial")
    frame = background_rows.assign(month=background_rows["month"].where(background_rows["month"] < 4, np.nan))
    found = attribute(example.model, example.frame[FEATURES], background=frame[FEATURES])
    assert_allclose(read_phi(tmp_path / "run"), found.phi[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("room", [8 << 30, 1 << 40])
def test_the_room_of_a_worker_does_not_show(example, background_uri, tmp_path, monkeypatch, room):
    """Tables are made for the least of a row of budgets that suffices, the same on every machine; its memory decides only where to give up."""
    ask, budgets = tables_.ask_model, []

    def ask_within(*given, **options):
        budgets.append(given[4])
        if budgets[-1] < 3 << 30:
            raise UsageError("tables of the marginal game would have 3000 MiB")
        return ask(*given, **options)

    monkeypatch.setattr(background, "ask_model", ask_within)
    for memory in (room, 7 << 30):
        monkeypatch.setattr("leafledger.pipeline.cluster.resources.find_memory", lambda memory=memory: memory)
        job = config.make_job(example.model, example.data, tmp_path / "run", Options(background=background_uri, workers=1))
        if memory == room:
            planned_run_.plan_run(job, load.load_model(job))
            assert budgets == [1 << 30, 2 << 30, 4 << 30]
        else:
            with pytest.raises(UsageError, match="would have 3000 MiB"):
                planned_run_.plan_run(job, load.load_model(job))


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"background": "nowhere"}, Exception, "nowhere: cannot list: no such file or object"),
        ({"background": ""}, UsageError, "background is '', expected a path or URI"),
        ({"tables": ""}, UsageError, "tables is '', expected a path or URI"),
        ({"background": None, "tables": "here"}, UsageError, "here: tables are kept for backgrounds of rows, but none was given"),
        ({"background": "{uri}/empty"}, UsageError, "empty: the background has no rows, expected at least one"),
        ({"background": "{uri}/narrow.parquet"}, SchemaMismatch, "narrow.parquet: column 'delay' missing"),
        ({"background": "{uri}/text.parquet"}, SchemaMismatch, "text.parquet: column 'delay' is string, the model was trained on numbers"),
        ({"background": "{uri}", "out": "{uri}/run"}, UsageError, "lies within the background, whose next run would read it"),
        ({"background": "model"}, UsageError, "a background of rows is needed"),
        ({"method": "r2", "label": "delay"}, UsageError, "method 'r2' has no marginal game"),
        ({"method": "owen"}, UsageError, "method 'owen' needs a partition of the features"),
    ],
)
def test_mistakes_are_refused_while_planning(example, background_uri, tmp_path, monkeypatch, arguments, error, says):
    """In one line, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    table = pq.read_table(f"{background_uri}/month=1/data.parquet", partitioning=None)
    table = table.append_column("month", [[1] * table.num_rows])
    (tmp_path / "rows" / "empty").mkdir(parents=True)
    pq.write_table(table.slice(0, 0), tmp_path / "rows" / "empty" / "data.parquet")
    pq.write_table(table.drop_columns("delay"), tmp_path / "rows" / "narrow.parquet")
    pq.write_table(table.set_column(table.column_names.index("delay"), "delay", table["delay"].cast("string")), tmp_path / "rows" / "text.parquet")
    given = {"out": str(tmp_path / "out" / "run"), "background": background_uri} | arguments
    given = {name: value.replace("{uri}", str(tmp_path / "rows")) if isinstance(value, str) else value for name, value in given.items()}
    before = contents(tmp_path)
    with pytest.raises(error, match=says) as refusal:
        explain(example.model, example.data, scheduler="serial", **given)
    assert "\n" not in str(refusal.value)
    assert contents(tmp_path) == before


def test_tables_beyond_the_budget_are_refused_with_the_number(example, background_uri, tmp_path, monkeypatch):
    """How much they would take, and how much they may."""
    monkeypatch.setattr(background, "TABLE_BYTES", 1 << 12)
    monkeypatch.setattr("leafledger.pipeline.cluster.resources.find_memory", lambda: 1 << 12)
    with pytest.raises(UsageError, match=r"^tables of the marginal game would have [\d.]+ MiB, [\d.]+ MiB are allowed; "):
        explain(example.model, example.data, tmp_path / "run", background=background_uri, scheduler="serial")


def test_the_plan_shows_the_background(example, background_uri, against_rows, tmp_path, capsys):
    """Rows, files, size of the tables and where they are, or will be; nothing is written."""
    arguments = ["plan", example.model, example.data, "--out", str(tmp_path / "run"), "--background", background_uri]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "\nbackground  1,000 rows in 4 files, at most 0." in said
    assert f" MiB of tables, counts will be in {tmp_path}/_leafledger/" in said
    assert main([*arguments, "--tables", str(against_rows[0].parent / "_leafledger")]) == 0
    said = capsys.readouterr().out
    assert f" MiB of tables, counted before in {stored(against_rows[0].parent / '_leafledger')}\n" in said
    assert not list(tmp_path.iterdir())


def test_dates_are_filled_in(example, background_rows, tmp_path):
    """In the background and in the folder of tables as everywhere."""
    uri = write_data(background_rows, tmp_path / "rows-2013")
    given = {"background": uri.replace("2013", "{date:%Y}"), "tables": str(tmp_path / "tables-{date}")}
    explain(example.model, example.data, tmp_path / "run-{date}", **given, scheduler="serial", date="2013-01-07")
    assert stored(tmp_path / "tables-2013-01-07")
