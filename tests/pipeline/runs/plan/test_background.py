"""Runs against a background: values of the marginal game, the same bits however it was counted, tables that later runs find, honest refusals."""

import json
import os
import shutil
import signal

import catboost
import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute, check_run, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import ClusterLost, InvalidData, SchemaMismatch, UsageError
from leafledger.pipeline.methods import background_counts as background_counts_
from leafledger.pipeline.methods import tables as tables_
from leafledger.pipeline.runs.check.recompute import SAMPLE_ROWS
from leafledger.pipeline.runs.job import job as config
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan import background
from leafledger.pipeline.runs.plan import model as load
from leafledger.pipeline.runs.plan import planned_run as planned_run_
from tests.pipeline.conftest import FEATURES, write_data
from tests.pipeline.running import attributions, contents, read_phi, stored

N_ROWS = 1000


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


def test_however_many_count_the_bits_are_the_same(example, background_uri, against_rows, tmp_path, monkeypatch):
    """Published files and tables of a run whose background was counted in many pieces on a cluster equal those of the serial run, byte for byte."""
    monkeypatch.setattr(background, "ITEM_ROWS", 100)
    counted = []

    def progress(work):
        counted.append(work)
        return lambda done: None

    given = {"background": background_uri, "precision": "float64", "progress": progress}
    explain(example.model, example.data, tmp_path / "two" / "run", **given, workers=2)
    with cluster("", n_workers=4) as workers:
        explain(example.model, example.data, tmp_path / "four" / "run", **given, scheduler=workers.scheduler_address)
    stages = [("counting background", N_ROWS), ("preparing tables", 0), ("explaining", 3000)]
    assert [(work.doing, work.n_rows) for work in counted] == 2 * stages
    assert counted[0].n_items > 8
    assert contents(tmp_path / "two") == contents(tmp_path / "four") == contents(against_rows[0].parent)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 65, 80])
def test_sums_are_made_by_places(monkeypatch, n):
    """Eight neighbours at a time, then eight sums, as on Dask."""
    monkeypatch.setattr(background, "_merge", lambda parts: parts[0] if len(parts) == 1 else list(parts))
    left = list(range(n))
    while len(left) > 1:
        left = [left[i] if i + 1 == len(left) else left[i : i + 8] for i in range(0, len(left), 8)]
    assert background_counts_.merge_in_tree(iter(range(n))) == left[0]


@pytest.mark.parametrize("method", ["shapley", "gap"])
def test_a_background_of_unknown_categories_is_refused(example, tmp_path, method):
    """Of all its files together. Of what is allowed no counts are kept, or a run that does not allow it would find them."""
    rows = example.frame[FEATURES][:300].reset_index(drop=True)
    rows[:5].to_parquet(tmp_path / "rows.parquet", index=False)
    for name, n_known in (("bad", 2), ("good", 150)):
        carrier = np.where(np.arange(300) < n_known, "UA", "ua")
        (tmp_path / name).mkdir()
        for first in range(0, 300, 100):  # most files have no category that the model knows
            rows.assign(carrier=carrier)[first : first + 100].to_parquet(tmp_path / name / f"{first}.parquet", index=False)
    given = {"method": method, "scheduler": "serial", "tables": tmp_path / "counts"}
    says = rf"^{tmp_path}/bad: column 'carrier': 298 of 300 values are no category of the model, expected"
    for out, allowed in (("0", False), ("1", True), ("2", False)):
        if allowed:
            explain(example.model, tmp_path / "rows.parquet", tmp_path / out, background=tmp_path / "bad", allow_unseen=True, **given)
            assert check_run(str(tmp_path / out), deep=True).n_rows == 5
            continue
        with pytest.raises(SchemaMismatch, match=says):
            explain(example.model, tmp_path / "rows.parquet", tmp_path / out, background=tmp_path / "bad", **given)
    explain(example.model, tmp_path / "rows.parquet", tmp_path / "3", background=tmp_path / "good", **given)


def test_slices_of_a_background_do_not_show(example, background_uri, against_rows, tmp_path, monkeypatch):
    """Rows are counted a slice at a time."""
    monkeypatch.setattr(background, "max_slice_rows", lambda _: 128)
    explain(example.model, example.data, tmp_path / "run", background=background_uri, precision="float64", scheduler="serial")
    assert contents(tmp_path / "run") == contents(against_rows[0])


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
        monkeypatch.setattr("leafledger.pipeline.cluster.resources._find_memory", lambda memory=memory: memory)
        job = config.make_job(example.model, example.data, tmp_path / "run", Options(background=background_uri, workers=1))
        if memory == room:
            planned_run_.plan_run(job, load.load_model(job))
            assert budgets == [1 << 30, 2 << 30, 4 << 30]
        else:
            with pytest.raises(UsageError, match="would have 3000 MiB"):
                planned_run_.plan_run(job, load.load_model(job))


def test_a_background_that_changes_while_it_is_counted_stops_the_run(example, background_rows, background_uri, tmp_path):
    """A file replaced between plan and count is an error that names it."""
    shutil.copytree(background_uri, tmp_path / "rows")

    def replace_rows(work):
        write_data(background_rows.assign(delay=0.0), tmp_path / "rows")
        return lambda done: None

    with pytest.raises(InvalidData, match=r"rows/month=1/data\.parquet: changed since the run was planned"):
        explain(example.model, example.data, tmp_path / "run", background=tmp_path / "rows", scheduler="serial", progress=replace_rows)
    assert not (tmp_path / "_leafledger").exists()


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
    monkeypatch.setattr("leafledger.pipeline.cluster.resources._find_memory", lambda: 1 << 12)
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


def test_the_log_has_a_line_per_piece(example, background_uri, tmp_path, capsys):
    """While counting too, and where tables are prepared."""
    assert (
        main(["explain", example.model, example.data, "--out", str(tmp_path / "run"), "--background", background_uri, "--scheduler", "serial"]) == 0
    )
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["counting background"] * 4 + ["preparing tables", "explaining in this process"] + [
        "explaining"
    ] * 4
    assert lines[3] == "counting background: part 3: 251 rows; 4 of 4 parts, 1000 of 1000 rows"


def cluster(preload, n_workers=2):
    """Worker processes that run a few lines first."""
    import distributed

    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", preload=[preload] if preload else []
    )


SLOW = """
import time, leafledger.pipeline.runs.plan.background, leafledger.pipeline.dataset.files.rows
leafledger.pipeline.runs.plan.background.read_slices = lambda *given: time.sleep(0.2) or leafledger.pipeline.dataset.files.rows.read_slices(*given)
"""
DEADLY = """
import os, signal, leafledger.pipeline.runs.plan.background
leafledger.pipeline.runs.plan.background.read_slices = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_killed_while_counting_does_not_show(example, background_uri, against_rows, tmp_path, monkeypatch):
    """What it had counted is counted again, and the bits are the same."""
    import distributed

    monkeypatch.setattr(background, "ITEM_ROWS", 100)
    with cluster(SLOW) as workers, distributed.Client(workers) as client:
        pids = list(client.run(os.getpid).values())

        def kill_one(work):
            return lambda done: os.kill(pids.pop(), signal.SIGKILL) if work.doing == "counting background" and len(pids) > 1 else None

        address = workers.scheduler_address
        explain(example.model, example.data, tmp_path / "run", background=background_uri, precision="float64", scheduler=address, progress=kill_one)
    assert len(pids) == 1
    assert contents(tmp_path / "run") == contents(against_rows[0])


def test_workers_that_die_of_counting_are_one_line(example, background_uri, tmp_path):
    """It names the file."""
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        cluster(DEADLY) as workers,
        pytest.raises(ClusterLost, match=r"month=\d/data\.parquet: row groups \[.*\]: the workers that it was given to died") as lost,
    ):
        explain(example.model, example.data, tmp_path / "run", background=background_uri, scheduler=workers.scheduler_address)
    assert "\n" not in str(lost.value)


def test_a_scheduler_lost_while_counting_is_one_line(example, background_uri, against_rows, tmp_path, monkeypatch):
    """A rerun starts over and publishes the same."""
    monkeypatch.setattr(background, "ITEM_ROWS", 100)
    given = {"background": background_uri, "precision": "float64"}
    with cluster(SLOW) as workers:
        there = {"scheduler": workers.scheduler_address, "progress": lambda _: lambda done: workers.close()}
        with pytest.raises(ClusterLost, match=r"the Dask cluster went away with \d+ parts to do; run again to go on from there"):
            explain(example.model, example.data, tmp_path / "run", **given, **there)
    explain(example.model, example.data, tmp_path / "run", **given, scheduler="serial")
    assert contents(tmp_path / "run") == contents(against_rows[0])
