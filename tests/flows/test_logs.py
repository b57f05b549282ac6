"""Logs of flow runs: a refusal is its line; what nobody foresaw has its traceback."""

import logging
import os
import subprocess
import sys

import pytest
from prefect.client.schemas.filters import LogFilter
from prefect.types.entrypoint import EntrypointType

import leafledger.flows.stages
from leafledger.flows.explain import explain
from leafledger.flows.logs import LOGGERS
from leafledger.pipeline.errors import StorageError
from tests.flows.conftest import SHOWN_SECONDS, wait_for


def run_deployed(server, client, name, parameters):
    """A flow run of a deployment in a process of its own, as a worker starts it: its state, its log on the server, and what the process says."""
    deployment = explain.to_deployment(name, entrypoint_type=EntrypointType.MODULE_PATH)
    flow_run = client.create_flow_run_from_deployment(deployment.apply(), parameters=parameters)
    settings = {"PREFECT_API_URL": server, "PREFECT_LOGGING_TO_CONSOLE_ENABLED": "true"}
    command = [sys.executable, "-m", "prefect.engine", str(flow_run.id)]
    done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    chosen = LogFilter.model_validate({"flow_run_id": {"any_": [flow_run.id]}})

    def ended():
        lines = client.read_logs(chosen, limit=200)
        return any(line.name == "prefect.flow_runs" and line.level >= logging.ERROR for line in lines) and lines

    return client.read_flow_run(flow_run.id).state, wait_for(ended, SHOWN_SECONDS), done


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "lime"}, "method 'lime' is unknown, expected one of shapley, "),
        pytest.param({"ids": ["nothing"]}, "column 'nothing' missing, got ", marks=pytest.mark.more),
    ],
)
def test_a_refusal_of_a_deployment_is_one_line(server, client, example, tmp_path, given, says):
    """On the server, whose page shows it, as an error; and in the worker's own log. The state is Failed and has the line."""
    parameters = {"model": example.model, "data": example.data, "out": str(tmp_path / "run"), "scheduler": "serial"} | given
    state, lines, done = run_deployed(server, client, "refused", parameters)
    assert (state.type.value, state.name) == ("FAILED", "Failed")
    assert says in state.message
    errors = [line.message for line in lines if line.level >= logging.ERROR]
    assert state.message in errors
    assert all("\n" not in message and says in message for message in errors)
    assert "Traceback" not in done.stdout + done.stderr
    assert state.message in done.stdout + done.stderr


def test_a_store_that_stays_away_is_one_line(server, example, tmp_path, monkeypatch, caplog):
    """After every retry, of which there are as many as before."""
    tries = []

    def publish_run(*_):
        tries.append(1)
        raise StorageError("s3://bucket/run: cannot write: no route to host")

    monkeypatch.setattr(leafledger.flows.explain.publish, "retry_delay_seconds", [0.01])
    monkeypatch.setattr(leafledger.flows.stages.publish, "fn", publish_run)
    state = explain(example.model, example.data, str(tmp_path / "run"), scheduler="serial", return_state=True)
    assert state.message == "s3://bucket/run: cannot write: no route to host"
    assert len(tries) == 1 + len(leafledger.flows.stages.RETRY_SECONDS)
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR and record.name in LOGGERS]
    assert state.message in [record.getMessage() for record in errors]
    assert not any(record.exc_info or "\n" in record.getMessage() for record in errors)


def test_a_mistake_of_ours_keeps_its_traceback(server, example, tmp_path, monkeypatch, caplog):
    """It is no refusal: somebody has to see where it was."""

    def publish_run(*_):
        raise KeyError("unforeseen")

    monkeypatch.setattr(leafledger.flows.stages.publish, "fn", publish_run)
    state = explain(example.model, example.data, str(tmp_path / "run"), scheduler="serial", return_state=True)
    assert state.is_failed()
    assert any(record.exc_info and isinstance(record.exc_info[1], KeyError) for record in caplog.records if record.name in LOGGERS)


def test_what_was_not_told_of_a_run_that_fails_is_a_warning(server, example, tmp_path, caplog):
    """Its metrics have nowhere to go, which would say that it failed."""
    (tmp_path / "x.prom").mkdir()
    given = {"ids": ["nothing"], "metrics_file": str(tmp_path / "x.prom"), "scheduler": "serial"}
    state = explain(example.model, example.data, str(tmp_path / "run"), **given, return_state=True)
    assert state.is_failed()
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert f"{tmp_path}/x.prom: metrics cannot be written: Is a directory" in warned
