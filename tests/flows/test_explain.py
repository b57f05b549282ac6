"""The flow: the bytes of a plain run, a report of it, its words when it fails, retries for what may pass, and the date it was due."""

import inspect
import json
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import polars
import pytest
import yaml
from prefect.client.schemas.schedules import CronSchedule
from prefect.flow_engine import run_flow
from prefect.states import Scheduled
from prefect.utilities.callables import parameter_schema

import leafledger
import leafledger.flows.stages
from leafledger.flows.explain import HERE, OWN, explain
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.commands import drifting
from leafledger.pipeline.errors import ClusterLost, StorageError
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan import planned_run
from leafledger.pipeline.stores import commit
from tests.earlier.moving import move_run
from tests.flows.reading import contents, stages_of, task_runs

ROOT = Path(__file__).parents[2]
STAGES = ["load", "plan", "broadcast", "map", "aggregate", "publish"]


@pytest.fixture
def impatient(monkeypatch):
    """Retries follow at once."""
    for name in ("load", "plan", "digest", "count", "broadcast", "map_parts", "aggregate", "publish", "commit", "move"):
        monkeypatch.setattr(getattr(leafledger.flows.explain, name), "retry_delay_seconds", [0.01])


def test_a_flow_publishes_the_bytes_of_a_plain_run(finished, example, tmp_path):
    """What the flow publishes equals what ``leafledger.explain`` publishes, file by file, and its state says how much it is."""
    state, out = finished
    leafledger.explain(example.model, example.data, tmp_path / "run", ids=["flight"], scheduler="serial")
    assert contents(out) == contents(tmp_path / "run")
    assert state.is_completed()
    assert state.message == f"{out}: explained (400 rows in 1 part)"
    assert state.result().n_rows == 400


def test_a_run_says_which_flow_run_made_it(finished, client):
    """By the name and the id that the server has; called as a function it has no deployment."""
    state, out = finished
    made = leafledger.read_run(out).provenance()
    found = client.read_flow_run(state.state_details.flow_run_id)
    assert (made.flow.name, made.flow.id, made.flow.deployment) == (found.name, str(found.id), None)
    assert made.parts_made == 1
    assert list(made.seconds) == ["planning", "preparing", "explaining", "merging", "publishing"]


def test_inputs_are_digested_in_a_stage_of_their_own(server, client, example, tmp_path):
    """Where that was asked for; the rest of the run is as without."""
    out = str(tmp_path / "run")
    state = explain(example.model, example.data, out, scheduler="serial", digest_inputs=True, return_state=True)
    assert stages_of(client, state) == [*STAGES[:2], "digest", *STAGES[2:]]
    assert leafledger.check_run(out, deep=True).n_digested > 0


def test_what_a_flow_replaces_is_kept_where_that_is_asked_for(server, example, tmp_path):
    """Until the next one that does not ask for it, whose stage that tidies up removes it."""
    out, again = str(tmp_path / "run"), {"scheduler": "serial", "if_changed": "replace", "method": "banzhaf"}
    before = explain(example.model, example.data, out, scheduler="serial")
    explain(example.model, example.data, out, keep_replaced=True, **again)
    assert leafledger.list_runs(out)[0].n_kept_bytes > 0
    made = leafledger.rollback(out).manifest
    assert [part["sha256"] for part in made.parts] == [part["sha256"] for part in before.parts]
    explain(example.model, example.data, out, keep_replaced=True, **again)
    explain(example.model, example.data, out, scheduler="serial", if_changed="replace", method="beta")
    assert leafledger.list_runs(out)[0].n_kept_bytes == 0
    assert not (tmp_path / "run" / "_kept").exists() or not list((tmp_path / "run" / "_kept").iterdir())


def test_every_parameter_is_described_where_prefect_shows_it():
    """The schema of the flow, from which Prefect's pages make their forms, says of each parameter what the command's option says."""
    told = {name: given.get("description") for name, given in parameter_schema(explain.fn).properties.items()}
    assert list(told) == list(inspect.signature(explain.fn).parameters)
    written = " ".join((inspect.getsource(Options) + inspect.getsource(cli.explain) + inspect.getsource(drifting.drift)).split())
    for name, text in told.items():
        said = (text or "").removesuffix(HERE.get(name, ""))
        assert said, name
        assert said in written or said == OWN.get(name), name
    assert told["date"].endswith("and yesterday the day before; by default it is today.")
    assert told == {name: given["description"] for name, given in explain.parameters.properties.items()}
    assert "Args:" in explain.description
    assert "----\n" not in explain.description.split("Returns")[0]


def test_every_stage_is_one_task(finished, client):
    """A flow run has six task runs, whatever the number of parts, none of which leaves a result behind."""
    state, _ = finished
    found = task_runs(client, state)
    assert [task_run.name.rsplit("-", 1)[0] for task_run in found] == STAGES
    assert all(task_run.state.is_completed() and task_run.state.data is None for task_run in found)


def test_latest_is_moved_in_a_stage_of_its_own(server, client, example, tmp_path, impatient, monkeypatch):
    """Which is tried again while the store is away, and done by a flow run that finds nothing else to do; one of an earlier date leaves it there."""
    moves, tried = commit.update, []

    def away_once(uri, *arguments, **options):
        if uri == latest:
            tried.append(uri)
            if len(tried) == 1:
                raise StorageError(f"{uri}: cannot write: away")
        moves(uri, *arguments, **options)

    monkeypatch.setattr(commit, "update", away_once)
    latest = str(tmp_path / "latest.json")

    def stages(day):
        state = explain(
            example.model, example.data, str(tmp_path / "{date}"), latest=latest, scheduler="serial", date=date(2026, 1, day), return_state=True
        )
        assert state.is_completed()
        return stages_of(client, state), leafledger.read_latest(latest).run

    assert stages(2) == ([*STAGES, "latest"], str(tmp_path / "2026-01-02"))
    assert tried == [latest] * 2
    assert stages(2) == (["load", "plan", "latest"], str(tmp_path / "2026-01-02"))
    assert stages(1) == ([*STAGES, "latest"], str(tmp_path / "2026-01-02"))


def test_a_table_gets_the_night_in_a_stage_of_its_own(server, client, example, tmp_path, impatient, monkeypatch):
    """Which is tried again while the store is away; a flow run that finds nothing else to do commits nothing twice."""
    commits, tried = leafledger.flows.stages.commit_table, []

    def away_once(*given):
        tried.append(given)
        if len(tried) == 1:
            raise StorageError("away")
        commits(*given)

    monkeypatch.setattr(leafledger.flows.stages, "commit_table", away_once)
    out = f"{tmp_path}/nights/date={{date}}"
    for stages in ([*STAGES, "table"], ["load", "plan", "table"]):
        state = explain(example.model, example.data, out, table="delta", scheduler="serial", date=date(2026, 1, 2), return_state=True)
        assert state.is_completed()
        assert stages_of(client, state) == stages
    assert len(tried) == 3
    found = polars.read_delta(f"{tmp_path}/nights")
    assert found["date"].to_list() == [date(2026, 1, 2)] * state.result().n_rows
    assert sum(path.name.endswith(".json") for path in (tmp_path / "nights" / "_delta_log").iterdir()) == 1


def test_a_background_is_counted_in_a_stage_of_its_own(server, client, example, tmp_path):
    """The flow takes a background and a folder for its tables; the night after does not count it again; the bytes are those of a plain run."""
    arguments = {"background": f"{example.data}/a.parquet", "tables": str(tmp_path / "{date}")}
    for night, stages in (("one", [*STAGES[:2], "count", *STAGES[2:]]), ("two", STAGES)):
        state = explain(example.model, example.data, str(tmp_path / night), scheduler="serial", **arguments, date="2013-01-05", return_state=True)
        assert state.is_completed()
        assert stages_of(client, state) == stages
    leafledger.explain(example.model, example.data, tmp_path / "plain", background=arguments["background"], scheduler="serial")
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == contents(tmp_path / "plain")
    assert contents(tmp_path / "2013-01-05") == contents(tmp_path / "_leafledger")


def test_a_finished_run_is_left_alone(finished, example, client):
    """The flow run again does nothing past planning, and says so."""
    _, out = finished
    before = contents(out)
    state = explain(example.model, example.data, str(out), ids=["flight"], scheduler="serial", return_state=True)
    assert state.is_completed()
    assert state.message == f"{out}: finished before, nothing to do (400 rows in 1 part)"
    assert contents(out) == before
    assert stages_of(client, state) == STAGES[:2]


def test_a_refusal_fails_in_the_command_line_s_words_and_is_not_tried_again(server, client, example, tmp_path, capsys, impatient):
    """The state's message is what the command line prints, and the stage that refused ran once; called directly the flow raises the refusal."""
    out = str(tmp_path / "run")
    state = explain(example.model, example.data, out, ids=["nothing"], scheduler="serial", return_state=True)
    assert state.is_failed()
    assert cli.main(["explain", example.model, example.data, "--out", out, "--id", "nothing"]) == 8
    assert capsys.readouterr().err == f"leafledger: {state.message}\n"
    *_, refused = task_runs(client, state)
    assert (refused.name.rsplit("-", 1)[0], refused.run_count, refused.state.type.value) == ("plan", 1, "FAILED")
    assert refused.state.message.endswith(state.message)
    with pytest.raises(leafledger.LeafledgerError, match="nothing"):
        explain(example.model, example.data, out, ids=["nothing"], scheduler="serial")


def test_a_wrong_argument_fails_in_the_command_line_s_words(server, example, tmp_path):
    """Arguments are refused before any task runs."""
    state = explain(example.model, example.data, str(tmp_path), method="lime", return_state=True)
    assert state.is_failed()
    assert state.message == f"method 'lime' is unknown, expected one of {', '.join(METHODS)}"


@pytest.mark.parametrize("error", [StorageError("s3://bucket: cannot write: try later"), ClusterLost("tcp://10.0.0.1: no answer")])
def test_what_may_pass_is_tried_again(server, client, example, tmp_path, monkeypatch, impatient, error):
    """A stage that fails twice for want of storage or of a cluster succeeds the third time, and so does the run."""
    tries, broadcast_run = [], leafledger.flows.stages.broadcast_run

    def fail_twice(*planned):
        tries.append(planned)
        if len(tries) < 3:
            raise error
        return broadcast_run(*planned)

    monkeypatch.setattr(leafledger.flows.stages.broadcast, "fn", fail_twice)
    state = explain(example.model, example.data, str(tmp_path / "run"), scheduler="serial", return_state=True)
    assert state.is_completed()
    assert [task_run.run_count for task_run in task_runs(client, state)] == [1, 1, 3, 1, 1, 1]


def test_a_store_that_stays_away_fails_the_flow_in_its_words(server, example, tmp_path, monkeypatch, impatient):
    """After the last retry the message is the store's, in one line."""

    def publish_run(*_):
        raise StorageError("s3://bucket/run: cannot write: no route to host")

    monkeypatch.setattr(leafledger.flows.stages.publish, "fn", publish_run)
    state = explain(example.model, example.data, str(tmp_path / "run"), scheduler="serial", return_state=True)
    assert state.is_failed()
    assert state.message == "s3://bucket/run: cannot write: no route to host"


@pytest.mark.parametrize(
    ("zone", "asked", "expected"),
    [
        ("Europe/Berlin", None, "2013-01-06"),
        pytest.param(None, None, "2013-01-05", marks=pytest.mark.more),
        pytest.param("Europe/Berlin", "today", "2013-01-06", marks=pytest.mark.more),
        ("Europe/Berlin", "yesterday", "2013-01-05"),
    ],
)
def test_the_date_is_the_one_the_run_was_due_on(server, client, example, tmp_path, zone, asked, expected):
    """A run that starts years late fills in the date of its schedule, in the schedule's time zone, UTC where it has none; so are today and yesterday
    meant, and so it is called."""
    deployment = explain.to_deployment(f"late in {zone or 'UTC'}".replace("/", " "), schedules=[CronSchedule(cron="30 23 * * *", timezone=zone)])
    due = Scheduled(scheduled_time=datetime(2013, 1, 5, 23, 30, tzinfo=UTC))
    parameters = {"model": example.model, "data": example.data, "out": str(tmp_path / "{date}"), "scheduler": "serial", "date": asked}
    made = deployment.apply()
    flow_run = client.create_flow_run_from_deployment(made, parameters=parameters, state=due)
    run_flow(explain, flow_run=flow_run, parameters=parameters)
    assert [path.name for path in tmp_path.iterdir()] == [expected]
    found = client.read_flow_run(flow_run.id)
    assert (found.name, found.state.is_completed()) == (expected, True)
    client.delete_deployment(made)  # or the server makes runs of it, for as long as there are tests


def test_a_date_that_is_given_wins(server, example, tmp_path):
    """``date`` fills {date}, so that a night can be made up for by hand."""
    explain(example.model, example.data, str(tmp_path / "{date:%Y/%m}"), date="2012-02-29", scheduler="serial")
    assert (tmp_path / "2012" / "02" / "manifest.json").exists()


def test_features_by_position_are_said_once(server, tmp_path, monkeypatch):
    """In the log, where the model has no names; positions name features in groups, and a truth value does not."""
    import logging

    import numpy as np
    import pandas as pd
    import xgboost

    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["wind", "rain"])
    xgboost.train({"nthread": 1}, xgboost.DMatrix(rows.to_numpy(), rows["wind"]), 2).save_model(tmp_path / "model.ubj")
    rows.to_parquet(tmp_path / "rows.parquet")
    said = []
    log = logging.Logger("flow")
    log.addFilter(lambda record: said.append(record.getMessage()))
    monkeypatch.setattr(leafledger.flows.explain, "get_run_logger", lambda: log)
    arguments = [str(tmp_path / name) for name in ("model.ubj", "rows.parquet", "run")]
    assert explain(*arguments, partition={"sky": [0, 1]}, scheduler="serial", return_state=True).is_completed()
    assert said[0] == "features by position, since the model has no names: wind, rain"
    assert not any("by position" in line for line in said[1:])
    refused = explain(*arguments[:2], str(tmp_path / "other"), partition={"sky": [True]}, scheduler="serial", return_state=True)
    assert not refused.is_completed()


def test_advisories_of_a_finished_night_are_in_the_log(server, tmp_path, monkeypatch):
    """A line each, as a warning; the state is that of a finished run."""
    import logging

    run, night, said = move_run("0.2.0/classes", tmp_path), tmp_path / "night", []
    log = logging.Logger("flow")
    log.addFilter(lambda record: said.append((record.levelname, record.getMessage())))
    monkeypatch.setattr(leafledger.flows.explain, "get_run_logger", lambda: log)
    state = explain(str(night / "classes.ubj"), str(night / "data"), str(run), ids=["id"], scheduler="serial", return_state=True)
    assert state.is_completed()
    advised = [line for level, line in said if level == "WARNING" and "advisory" in line]
    assert [line.partition(" may concern it (xgboost: ")[0] for line in advised] == [f"{run}: advisory 2026-19", f"{run}: advisory 2026-20"]


def test_a_link_that_mlflow_did_not_take_is_said(server, example, tmp_path, monkeypatch):
    """The run is published all the same, in a state of its own; metrics do not say that it went well."""
    monkeypatch.setattr(planned_run, "find_run", lambda mlflow_run: None)
    monkeypatch.setattr(leafledger.flows.explain, "log_run", lambda mlflow_run, out, manifest: f"{out}: no link in {mlflow_run}")
    file = tmp_path / "x.prom"
    asked = {"mlflow_run": "0123", "metrics_file": str(file), "scheduler": "serial"}
    state = explain(example.model, example.data, str(tmp_path / "run"), **asked, return_state=True)
    assert "last_success_timestamp_seconds{" not in file.read_text()
    assert (state.name, state.is_completed()) == ("PartlyDone", True)
    assert state.message == f"{tmp_path}/run: explained (400 rows in 1 part); {tmp_path}/run: no link in 0123"


def test_lineage_of_a_run_that_is_kept_is_its_own(server, example, tmp_path):
    """Not of the data that were asked for in its place."""
    asked, out = {"scheduler": "serial", "if_changed": "keep"}, str(tmp_path / "run")
    shutil.copytree(example.data, tmp_path / "data")
    leafledger.explain(example.model, example.data, out, **asked)
    explain(example.model, str(tmp_path / "data"), out, lineage=str(tmp_path / "events"), **asked)
    start, complete = (json.loads(line) for line in (tmp_path / "events").read_text().splitlines())
    assert [each["inputs"][0]["name"] for each in (start, complete)] == [str(tmp_path / "data"), example.data]


def test_the_shipped_deployment_fails_where_too_much_cannot_be_read(server, example, tmp_path):
    """Up to its number of pieces a night is published without them, and named for it; one more, and it fails, with nothing published."""
    most = yaml.safe_load((ROOT / "infra" / "prefect.yaml").read_text())["deployments"][0]["parameters"]["max_rejected"]
    shutil.copytree(example.data, tmp_path / "data")
    arguments = [example.model, str(tmp_path / "data")]
    for n_damaged in range(1, most + 2):
        shutil.copy(example.model, tmp_path / "data" / f"damaged-{n_damaged}.parquet")
        if n_damaged >= most:
            out = tmp_path / f"run-{n_damaged}"
            state = explain(*arguments, str(out), max_rejected=most, scheduler="serial", return_state=True)
            assert (state.name, (out / "manifest.json").exists()) == (("PartlyRejected", True) if n_damaged == most else ("Failed", False))
    assert state.message.endswith(f"({most + 1} of {most + 3} pieces of the data rejected, at most {most} may be)")
