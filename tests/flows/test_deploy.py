"""``leafledger deploy``: what it prints is what ``prefect deploy`` takes, what ``--apply`` makes, and the example that is shipped."""

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.deployments.runner import DeploymentApplyError, RunnerDeployment
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from leafledger.flows import serve
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.command.terminal.documents import SCHEMAS
from tests.flows.conftest import call_prefect
from tests.more import diagonal

ROOT = Path(__file__).parents[2]
SHIPPED = ["s3://models/arrival-delay.json", "s3://flights/date={date-1d}", "--out", "s3://explained/{date-1d}"]
SHIPPED += ["--latest", "s3://explained/latest.json", "--against", "s3://explained/latest.json", "--report", "--values", "--id", "flight"]
SHIPPED += ["--max-rejected", "3", "--time-zone", "Europe/Berlin"]
NIGHTLY = ["--cron", "0 3 * * *"]
OF_THE_SERVER = {
    "id",
    "created",
    "updated",
    "last_polled",
    "status",
    "schedules",
    "version",
    "version_id",
    "version_info",
    "global_concurrency_limit",
}


def said(capsys, *arguments):
    """Exit code, standard output and standard error of ``leafledger deploy``."""
    capsys.readouterr()
    code = main(["deploy", *arguments])
    found = capsys.readouterr()
    return code, found.out, found.err


def deployed(client, name):
    """What the server knows of a deployment, but for what it chose itself."""
    found = client.read_deployment_by_name(name)
    schedules = sorted((each.schedule.cron, each.schedule.timezone, each.active, each.slug) for each in found.schedules)
    return found.model_dump(mode="json", exclude=OF_THE_SERVER) | {"schedules": schedules, "limit": found.global_concurrency_limit.limit}


@pytest.fixture
def pool(client):
    """A work pool of its own."""
    client.create_work_pool(WorkPoolCreate(name="nights", type="process"))
    yield "nights"
    client.delete_work_pool("nights")


def test_the_shipped_file_is_what_is_printed(capsys):
    """For its own arguments, word for word but for comments and how it is indented."""
    code, printed, error = said(capsys, *SHIPPED, *NIGHTLY)
    assert (code, error) == (0, "")
    assert yaml.safe_load(printed) == yaml.safe_load((ROOT / "infra" / "prefect.yaml").read_text())


def test_what_is_printed_and_what_is_applied_are_the_same(server, client, pool, example, tmp_path, capsys, monkeypatch):
    """``prefect deploy`` takes the file; ``--apply`` makes the same, or makes it anew. A folder ``flows`` of the worker's hides nothing of it."""
    given = [example.model, example.data, "--out", str(tmp_path / "{date}"), "--scheduler", "serial", "--pool", pool, "--id", "flight"]
    given += ["--cron", "0 3 * * 1-5", "--cron", "0 6 * * 6,7"]
    _, printed, _ = said(capsys, *given)
    (tmp_path / "printed.yaml").write_text(printed)
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        call_prefect("prefect --no-prompt deploy --prefect-file printed.yaml --all")
    by_file = deployed(client, "explain/nightly")
    client.delete_deployment(client.read_deployment_by_name("explain/nightly").id)
    code, line, error = said(capsys, *given, "--apply")
    found = client.read_deployment_by_name("explain/nightly")
    assert (code, line, error) == (0, f"explain/nightly: deployed to nights, {found.id}\n", "")
    assert deployed(client, "explain/nightly") == by_file
    assert by_file["schedules"] == [("0 3 * * 1-5", "UTC", True, "nightly"), ("0 6 * * 6,7", "UTC", True, "nightly-2")]
    assert said(capsys, *given[:-2], "--top", "3", "--apply")[0] == 0
    anew = client.read_deployment_by_name("explain/nightly")
    assert (anew.id, anew.parameters["top"], [each.schedule.cron for each in anew.schedules]) == (found.id, 3, ["0 3 * * 1-5"])

    (tmp_path / "flows").mkdir()
    (tmp_path / "flows" / "__init__.py").write_text("raise RuntimeError('not these')")
    flow_run = client.create_flow_run_from_deployment(anew.id)
    done = subprocess.run(
        [sys.executable, "-m", "prefect.engine", str(flow_run.id)],
        env=os.environ | {"PREFECT_API_URL": server},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert client.read_flow_run(flow_run.id).state.name == "Completed", done.stderr
    (manifest,) = tmp_path.glob("*/manifest.json")
    assert json.loads(manifest.read_text())["n_rows"] == 400
    client.delete_deployment(anew.id)


def test_it_is_a_document_too(capsys):
    """With the fields that the documentation has; nothing is made."""
    code, document, error = said(capsys, *SHIPPED, *NIGHTLY, "--name", "eu", "--json")
    found = json.loads(document)
    assert (code, error) == (0, "")
    assert list(found) == [entry.name for entry in SCHEMAS["deploy"]]
    assert (found["deployment"], found["id"]) == ("explain/eu", None)
    assert found["schedules"] == [{"cron": "0 3 * * *", "timezone": "Europe/Berlin", "slug": "eu"}]
    assert found["parameters"] == yaml.safe_load((ROOT / "infra" / "prefect.yaml").read_text())["deployments"][0]["parameters"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([*SHIPPED], 2, "--cron"),
        ([*SHIPPED, "--cron", "0 33 * * *"], 2, "--cron is '0 33 * * *', expected minute, hour, day of month"),
        ([*SHIPPED, *NIGHTLY, "--cron", "0 */3 * * *"], 2, "expected times that never coincide"),
        ([*SHIPPED, *NIGHTLY, "--method", "lime"], 2, "method 'lime' is unknown"),
        ([*SHIPPED, *NIGHTLY, "--thresholds", "none.toml"], 6, "none.toml: cannot read"),
        ([*SHIPPED[:3], "s3://explained", *NIGHTLY], 2, "s3://explained: is the same place for every night"),
        (
            [*SHIPPED, *NIGHTLY, "--name", "eu/nightly"],
            2,
            "--name is 'eu/nightly', expected a name from a letter or digit to a letter or digit",
        ),
        ([*SHIPPED, *NIGHTLY, "--name", "nightly_"], 2, "--name is 'nightly_', expected a name from a letter"),
        ([*SHIPPED, *NIGHTLY, "--pool", " "], 2, "--pool is ' ', expected a name from a letter"),
        ([*SHIPPED, *NIGHTLY, "--metrics-address", "host:metrics"], 2, "metrics_address is 'host:metrics', expected a port, or HOST:PORT"),
        ([*SHIPPED, *NIGHTLY, "--metrics-file", "/textfiles/x.txt"], 2, "expected NAME.prom"),
        ([*SHIPPED, *NIGHTLY, "--lineage", "ftp://host/events"], 2, "lineage is 'ftp://host/events', expected a file, or the URL of a server"),
        ([*SHIPPED[:3], "s3://explained/{{x}}/{date}", *NIGHTLY], 2, "which Prefect would fill in as a template"),
        ([*SHIPPED, *NIGHTLY, "--apply"], 2, "PREFECT_API_URL is http://127.0.0.1:1/api, no Prefect server answers there"),
    ],
)
def test_a_mistake_is_refused_in_one_line(arguments, code, message, capsys):
    """Nothing is printed that could only fail at night."""
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:1/api"}):
        found, printed, error = said(capsys, *arguments)
    assert (found, printed) == (code, "")
    assert error.startswith("leafledger: ")
    assert message in error
    assert error.count("\n") == 1


@contextmanager
def answering(code, said):
    """A server that is healthy, and answers anything else with ``code``; its API, and the methods of what it was asked."""

    class Proxy(BaseHTTPRequestHandler):
        def answer(self):
            asked.append(self.command)
            healthy = self.path.endswith("/health")
            self.send_response(200 if healthy else code)
            self.send_header("Content-Type", "application/json" if healthy else "text/html")
            self.end_headers()
            self.wfile.write(b"true" if healthy else said)

        def __getattr__(self, name):
            if not name.startswith("do_"):
                raise AttributeError(name)
            return self.answer

        def log_message(self, *_):
            pass

    asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/api", asked
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("how", "answer"),
    diagonal(["deploy", "serve"], [(401, b'{"exception_message": "Unauthorized"}'), (502, b"<html>Bad\nGateway</html>"), (200, b"<html>")]),
)
def test_a_server_that_answers_something_else_is_one_line(how, answer, tmp_path, capsys):
    """As one that asks for a password, or a proxy's page. Nothing is removed there before the deployment is made."""
    given = ["m", "d", "--out", str(tmp_path / "{date}"), *NIGHTLY]
    with answering(*answer) as (url, asked), temporary_settings({PREFECT_API_URL: url, PREFECT_CLIENT_MAX_RETRIES: 0}):
        assert (main(["deploy", *given, "--apply"]) if how == "deploy" else main(given, serve.app)) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"leafledger: {url}: ")
    assert error.endswith("; expected a Prefect server that takes the deployment\n")
    assert error.count("\n") == 1
    assert len(asked) > 1
    assert "DELETE" not in asked


def test_a_deployment_that_is_refused_leaves_the_one_before(server, client, pool, tmp_path, capsys, monkeypatch):
    """With all its schedules, of which one less is asked for."""
    given = ["m", "d", "--out", str(tmp_path / "{date}"), "--pool", pool, "--name", "kept", *NIGHTLY]
    assert said(capsys, *given, "--cron", "0 6 * * *", "--apply")[0] == 0

    def refuse(*_, **__):
        raise DeploymentApplyError("no room")

    monkeypatch.setattr(RunnerDeployment, "apply", refuse)
    assert said(capsys, *given, "--apply") == (2, "", f"leafledger: {server}: refuses the deployment: no room\n")
    before = client.read_deployment_by_name("explain/kept")
    client.delete_deployment(before.id)
    assert sorted(each.schedule.cron for each in before.schedules) == ["0 3 * * *", "0 6 * * *"]


def test_a_work_pool_that_is_not_there_is_refused(server, capsys):
    """No worker would ever run it."""
    code, printed, error = said(capsys, *SHIPPED, *NIGHTLY, "--pool", "none", "--apply")
    assert (code, printed, error.count("\n")) == (2, "", 1)
    assert f"--pool is 'none', which {server} does not have; `prefect work-pool create none --type process` makes one" in error


WITHOUT_PREFECT = f"""
import contextlib, io, sys
sys.modules["prefect"] = None
from leafledger.pipeline.command.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    assert (main(["completion", "bash"]), main(["deploy", "--help"])) == (0, 0)
sys.exit(main(["deploy", *{[*SHIPPED, *NIGHTLY]}]))
"""


def test_a_machine_without_prefect_has_all_commands():
    """Help and completion need none of it, and who deploys is told what to install."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_PREFECT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "leafledger: deploy needs prefect: pip install 'leafledger[flows]'\n")


def test_thresholds_of_nothing_are_refused(tmp_path, capsys):
    """They would be passed over every night."""
    (tmp_path / "thresholds.toml").write_text("psi = 0.2\n")
    asked = [*SHIPPED[:4], *NIGHTLY, "--thresholds", str(tmp_path / "thresholds.toml")]
    code, printed, error = said(capsys, *asked)
    assert (code, printed) == (2, "")
    assert "thresholds are of what is compared, but nothing is: against was not given" in error
    assert said(capsys, *asked, "--against", "s3://explained/latest.json")[0] == 0
