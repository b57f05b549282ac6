"""Deployments: a served schedule fires and is explained, survives a stop, and refuses mistakes; infra/prefect.yaml says what the flow takes."""

import inspect
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from prefect.client.schemas.actions import DeploymentScheduleCreate, WorkPoolCreate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey, DeploymentFilter, DeploymentFilterId, FlowRunFilter
from prefect.client.schemas.schedules import CronSchedule
from prefect.flows import load_flow_from_entrypoint
from prefect.settings import PREFECT_API_URL, temporary_settings

from leafledger.flows import serve
from leafledger.flows.explain import explain
from leafledger.pipeline.command.cli import main
from tests.flows.conftest import call_prefect, wait_for

ROOT = Path(__file__).parents[2]
FIRE_SECONDS = 600  # until what takes ten seconds by itself, beside other work


def test_a_schedule_fires_and_the_night_is_explained(server, client, example, tmp_path):
    """Serving runs what the server's scheduler schedules, under the date of the schedule's own time zone; SIGTERM leaves the schedule active. A
    schedule that the deployment had before is there no more."""
    before = DeploymentScheduleCreate(schedule=CronSchedule(cron="0 0 1 1 *"), slug="before")
    explain.to_deployment("seconds", schedules=[before]).apply()
    zone = "Pacific/Kiritimati" if datetime.now(UTC).hour >= 10 else "Pacific/Pago_Pago"  # UTC+14 and UTC-11: another day, an hour later too
    command = [sys.executable, "-m", "leafledger.flows.serve", example.model, example.data, "--out", str(tmp_path / "{date}")]
    command += [
        "--scheduler",
        "serial",
        "--id",
        "flight",
        "--cron",
        "* * * * * */5",
        "--time-zone",
        zone,
        "--name",
        "seconds",
    ]  # the sixth field: every 5 seconds
    settings = {"PREFECT_API_URL": server, "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, env=os.environ | settings, cwd=tmp_path, stdout=log, stderr=log) as process:
        try:

            def deployed():
                found = client.read_deployment_by_name("explain/seconds")
                return [found] if [each.slug for each in found.schedules] == ["seconds"] else []

            (deployment,) = wait_for(deployed, FIRE_SECONDS)
            of_it = DeploymentFilter(id=DeploymentFilterId(any_=[deployment.id]))
            ended = FlowRunFilter.model_validate({"state": {"type": {"any_": ["COMPLETED", "FAILED", "CRASHED"]}}})
            links = ArtifactFilter(key=ArtifactFilterKey(any_=["leafledger-seconds-outputs"]))

            def finished():
                shown = {found.flow_run_id for found in client.read_artifacts(artifact_filter=links)}  # a server that is slow costs a run its own
                return [
                    run
                    for run in client.read_flow_runs(flow_run_filter=ended, deployment_filter=of_it)
                    if run.id in shown or run.state.type.value != "COMPLETED"
                ]

            flow_run, *_ = wait_for(finished, FIRE_SECONDS)
        finally:
            process.send_signal(signal.SIGTERM)
    assert flow_run.state.type.value == "COMPLETED", flow_run.state.message
    assert flow_run.auto_scheduled
    date = flow_run.expected_start_time.astimezone(ZoneInfo(zone)).date()
    assert date != flow_run.expected_start_time.date()
    assert (tmp_path / str(date) / "manifest.json").exists()
    assert flow_run.name == str(date)
    left = client.read_deployment(deployment.id)
    assert not left.paused
    assert all(schedule.active for schedule in left.schedules)
    client.delete_deployment(deployment.id)  # or the server makes runs of it, for as long as there are tests


MODEL_AND_DATA = ["model.txt", "data", "--out", "out/{date}"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--cron", "0 33 * * *"], 2, "--cron is '0 33 * * *', expected minute, hour, day of month, month and day of week, as in '0 3 * * *'"),
        (["--cron", "0 3 * * *", "--time-zone", "Mars/X"], 2, "--time-zone is 'Mars/X', expected a name such as Europe/Berlin"),
        (["--cron", "0 3 * * *", "--method", "lime"], 2, "method 'lime' is unknown"),
        (["--cron", "0 3 * * *", "--interactions", "0"], 2, "interactions is '0', expected a number of at least 1, or 'all'"),
        (["--cron", "0 3 * * *", "--background", "sftp://me:s3cret@host/rows"], 2, "sftp://***@host/rows: has credentials"),
        (["--cron", "0 3 * * *", "--against", "explained/{day}"], 2, "explained/{day}: "),
        (["--cron", "0 3 * * *", "--thresholds", "none.toml"], 6, "none.toml: cannot read"),
        (["--cron", "0 3 * * *", "--workers", "0"], 2, "workers is 0, expected a number of at least 1"),
        (["--cron", "0 3 * * *"], 2, "PREFECT_API_URL is http://127.0.0.1:1/api, no Prefect server answers there"),
        ([], 2, "--cron"),
    ],
)
def test_a_mistake_is_refused_at_once_in_one_line(arguments, code, message, capsys):
    """What could only fail at night is refused when it is served."""
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        assert main([*MODEL_AND_DATA, *arguments], serve.app) == code
    said = capsys.readouterr().err
    assert said.startswith("leafledger: ")
    assert message in said
    assert said.count("\n") == 1


def test_serving_needs_a_server_that_runs_schedules(capsys):
    """Without a server's address Prefect starts one that never fires a schedule: refused."""
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        assert main([*MODEL_AND_DATA, "--cron", "0 3 * * *"], serve.app) == 2
    assert "PREFECT_API_URL is not set" in capsys.readouterr().err


def test_the_deployment_file_deploys(server, client, monkeypatch):
    """``prefect deploy`` takes infra/prefect.yaml: one run at a time of the flow, on a cron schedule in a time zone, with parameters that fit."""
    client.create_work_pool(WorkPoolCreate(name="leafledger", type="process"))
    monkeypatch.chdir(ROOT)
    call_prefect("prefect --no-prompt deploy --prefect-file infra/prefect.yaml --all")
    deployment = client.read_deployment_by_name("explain/nightly")
    client.delete_deployment(deployment.id)
    assert deployment.entrypoint == "leafledger.flows.explain.explain"
    flow = load_flow_from_entrypoint(deployment.entrypoint)
    assert set(deployment.parameters) <= set(inspect.signature(flow.fn).parameters)
    flow.validate_parameters(deployment.parameters)
    assert "{date-1d}" in deployment.parameters["data"]
    assert "{date-1d}" in deployment.parameters["out"]
    (schedule,) = deployment.schedules
    assert (schedule.schedule.cron, schedule.schedule.timezone, schedule.active) == ("0 3 * * *", "Europe/Berlin", True)
    assert deployment.global_concurrency_limit.limit == 1
    assert deployment.concurrency_options.collision_strategy.value == "ENQUEUE"
