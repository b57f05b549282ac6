"""A week of simulated nights: the shipped deployment on a worker of its own, an S3 store that can be away, and what an operator finds every morning.

``python -m tests.flows.week`` lives it and prints what was seen; docs/week.md shows some of it.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from io import BytesIO, StringIO
from logging import ERROR, WARNING, getLevelName
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

import fsspec
import numpy as np
import pandas as pd
import pytest
import yaml

import leafledger
from tests.docs.reader import Reader
from tests.flows.afterwards import live_afterwards
from tests.flows.by_cron import live_by_cron
from tests.flows.conftest import call_prefect, free_port, run_server, wait_for
from tests.flows.telling import automated, receive, tell

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "week.md"
MONDAY = date(2026, 3, 23)  # of the night to Sunday clocks go forward
ZONE = ZoneInfo("Europe/Berlin")
MODEL, LATEST = "s3://models/arrival-delay.json", "s3://explained/latest.json"
SAME = [MODEL, "s3://flights/date={date-1d}", "--out", "s3://explained/{date-1d}", "--latest", LATEST, "--values", "--id", "flight"]
SAME += ["--max-rejected", "3", "--scheduler", "serial", "--quiet"]  # what the deployment says, as a command
FEATURES = ["distance", "delay", "hour"]
N_ROWS = 3000  # of a night: so many that chance alone moves none of them far
SECONDS = 300  # until what takes five by itself, beside other work
ENDED = ("COMPLETED", "FAILED", "CRASHED")
# Nobody waits for half a minute until a store is taken to be away.
VARIES = {  # from one week to the next, or from machine to machine: left open on the page
    r'endpoint URL: "[^"]*"': 'endpoint URL: "…"',
    r"SHA-256 of manifest.json(:?) \w{64}": r"SHA-256 of manifest.json\1 …",
    r"SHA-256 \w{12} (\(.*?\)), it was \w{12}": r"SHA-256 … \1, it was …",
    r"this is [\d.]+": "this is …",
    r"within [\d.e-]+ of": "within … of",
    r"│ \w{12} │": "│ …            │",
    r"│ +[\d.]+e-\d\d │": "│        … │",
}
PATIENCE = {"config_kwargs": {"connect_timeout": 2, "read_timeout": 5, "retries": {"mode": "legacy", "total_max_attempts": 1}}}
KEYS = {"AWS_ACCESS_KEY_ID": "canary-id", "AWS_SECRET_ACCESS_KEY": "canary-secret", "AWS_DEFAULT_REGION": "us-east-1"}
HURRIED, SOCKET = str(ROOT / "tests" / "flows" / "hurried.py"), "hurried"
SHIPPED = (ROOT / "infra" / "prefect.yaml").read_text()
CREATE, DEPLOY, START, _ = re.findall(r"^#   (prefect .*)$", SHIPPED, re.MULTILINE)  # as it says itself


@dataclass(frozen=True)
class Morning:
    """What an operator finds of a flow run."""

    name: str
    state: str
    message: str
    due: datetime
    scheduled: bool
    log: tuple[str, ...]  # warnings and errors
    infos: tuple[str, ...]  # the flow's other lines
    artifacts: dict
    latest: leafledger.Latest | None
    code: int  # of the same as a command, given afterwards
    error: str  # what that said


class Store:
    """An S3 store that goes away and comes back as it was, at the same address."""

    def __init__(self):
        from moto.server import ThreadedMotoServer

        self._make, self._port = ThreadedMotoServer, 0
        self.come_back()

    def come_back(self):
        self._server = self._make(ip_address="127.0.0.1", port=self._port, verbose=False)
        self._server.start()
        self._port = self._server.get_host_and_port()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    def go_away(self):
        self._server.stop()


def draw(day, seed=0, moved=0.0):
    """The rows of a day."""
    rng = np.random.default_rng([day.toordinal(), seed])
    rows = {"distance": rng.gamma(4, 200, N_ROWS) + moved, "delay": rng.normal(10, 30, N_ROWS), "hour": rng.integers(0, 24, N_ROWS).astype(float)}
    return pd.DataFrame({"flight": np.arange(N_ROWS), **rows})


def train(path, trees):
    """A model of so many trees."""
    import xgboost

    rows = draw(MONDAY - timedelta(days=30))
    target = rows["distance"] / 100 + rows["delay"] * (rows["hour"] > 6)
    xgboost.train({"nthread": 1, "max_depth": 3}, xgboost.DMatrix(rows[FEATURES], target), trees).save_model(path)


class Week:
    """Nights that pass, and what is done in the mornings; ``said`` is what is seen then, for the page."""

    def __init__(self, folder, client, deployment, store, told):
        import s3fs

        self.store, self.client, self.told, self.said = store, client, told, []
        self.mornings, self.brought, self.rows = {}, {}, {}
        self._folder, self.objects, self._reader, self._deployment = folder, s3fs.S3FileSystem(), Reader(folder), deployment
        for bucket in ("models", "flights", "explained", "again", "bycron", "orders"):
            self.objects.mkdir(bucket)

    def bring_model(self, trees, where=MODEL):
        """Put a model where the deployment looks for it, or elsewhere."""
        train(self._folder / "model.json", trees)
        self.objects.put_file(str(self._folder / "model.json"), where)

    def bring(self, day, *frames, cut=None):
        """Put the rows of the day before a night into the store, a file for each frame; all bytes but the first ``cut`` of the last one get lost."""
        self.brought[day] = frames
        for name, frame in zip("abc", frames, strict=False):
            data = frame.to_parquet(None, index=False)
            self.objects.pipe_file(f"s3://flights/date={day - timedelta(days=1)}/{name}.parquet", data[: cut if frame is frames[-1] else None])

    def pass_night(self, day):
        """Let the schedule make its flow run of a night, wait until it ended, and look at it."""
        from prefect.events import emit_event

        due = datetime(day.year, day.month, day.day, 3, tzinfo=ZONE).astimezone(UTC)
        within = {"start_time": str(due - timedelta(hours=1)), "end_time": str(due + timedelta(hours=1)), "min_runs": 1, "max_runs": 1, "min_time": 0}
        self.client.request("POST", "/deployments/{id}/schedule", path_params={"id": self._deployment}, json=within)

        def made():
            found = self.client.read_flow_runs(limit=200)
            return [run for run in found if run.deployment_id == self._deployment and run.expected_start_time == due]

        (run,) = wait_for(made, SECONDS)
        first = min(self.client.read_flow_run_states(run.id), key=lambda state: state.timestamp)
        # A schedule makes its runs days before they are due. Where it was less than five minutes, automations wait for the event of the run's first
        # state, of which the server tells nobody.
        emit_event("prefect.flow-run.Scheduled", {"prefect.resource.id": f"prefect.flow-run.{run.id}"}, id=first.id)
        return self._look(run.id, day)

    def see(self, name, morning):
        """Keep what was found, and what the page shows of it."""
        self.mornings[name] = morning
        self.said.append(f"{morning.name} {morning.state}\n{morning.message}\n")
        if morning.log:
            self.said.append("".join(f"{line}\n" for line in morning.log))

    def type(self, *commands):
        """Type commands, as the page shows them."""
        self.said.append("".join(f"$ {command}\n{self._reader.type(command)}" for command in commands))

    def keep(self, name, run):
        """Keep the rows of a run, as whoever reads its folder finds them."""
        self.objects.invalidate_cache()
        found = [BytesIO(self.objects.cat_file(path)) for path in sorted(self.objects.glob(f"{run}/attributions/*.parquet"))]
        self.rows[name] = pd.concat(map(pd.read_parquet, found), ignore_index=True)

    def write(self, name, text):
        """Write a file, as the page shows it."""
        (self._folder / name).write_text(text)
        self.said.append(f":caption: {name}\n\n{text}")

    def start(self, command, day):
        """Type a command of Prefect's that lets a flow run start, wait until it ended, and look at it."""
        before = {run.id: run.run_count for run in self.client.read_flow_runs(limit=200)}
        call_prefect(command)
        self.said.append(f"$ {command}\n")  # without what it prints: numbers and names that Prefect draws

        def started():
            found = self.client.read_flow_runs(limit=200)
            return [run for run in found if run.run_count > before.get(run.id, 0) and run.deployment_id == self._deployment]

        (run,) = wait_for(started, SECONDS)
        return self._look(run.id, day)

    def _look(self, run_id, day):
        from prefect.client.schemas.filters import LogFilter

        chosen = LogFilter.model_validate({"flow_run_id": {"any_": [run_id]}})

        def ended():
            run = self.client.read_flow_run(run_id)
            return run if run.state.type.value in ENDED else None

        run = wait_for(ended, SECONDS)

        def logged():
            lines = self.client.read_logs(chosen, limit=200)
            own = [line for line in lines if line.name == "prefect.flow_runs"]
            ended = sum("Finished in state" in line.message for line in own) >= run.run_count
            return lines if ended and (any(line.level >= ERROR for line in own) or not run.state.is_failed()) else None

        sent = {(line.timestamp, line.message): line for line in wait_for(logged, SECONDS)}  # again, where the server was slow to answer
        lines = sorted(sent.values(), key=lambda line: line.timestamp)
        began = max(line.timestamp for line in lines if "Beginning flow run" in line.message)
        lines, latest = [line for line in lines if line.timestamp >= began], self.read_latest()
        code, error = self.explain("--date", str(day))
        return Morning(
            name=run.name,
            state=run.state.name,
            message=run.state.message,
            due=run.expected_start_time,
            scheduled=run.auto_scheduled,
            log=tuple(f"{getLevelName(line.level)} {line.message}" for line in lines if line.level >= WARNING),
            infos=tuple(line.message for line in lines if line.level < WARNING),
            artifacts={found.key: found for found in self.client.read_artifacts() if found.flow_run_id == run_id},
            latest=latest,
            code=code,
            error=error,
        )

    def read_latest(self):
        """The run that the latest one is; None while the store is away."""
        try:
            return leafledger.read_latest(LATEST)
        except leafledger.LeafledgerError:
            return None

    def explain(self, *given):
        """The same as a command: its exit code, and its line."""
        from leafledger.pipeline.command.cli import main

        out, errors = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            code = main(["explain", *SAME, *given])
        return code, errors.getvalue()


def deploy(folder, patch):
    """The shipped deployment. Its flow runs are hurried, and have one process instead of one per core: minutes less in all."""
    written = yaml.safe_load(SHIPPED)
    (deployment,) = written["deployments"]
    deployment["parameters"]["scheduler"] = "serial"
    deployment["work_pool"]["job_variables"] = {"command": shlex.join([sys.executable, "-S", HURRIED, "run", str(folder / SOCKET)])}
    (folder / "infra").mkdir()
    (folder / "infra" / "prefect.yaml").write_text(yaml.safe_dump(written))
    with patch.context() as here:
        here.chdir(folder)
        call_prefect(DEPLOY)


@contextmanager
def working(folder):
    """A worker of the pool, and the process that its flow runs come from."""
    hurried = [sys.executable, HURRIED, "serve", str(folder / SOCKET)]
    worker = [sys.executable, "-m", "prefect", *shlex.split(START)[1:]]
    settings = {"PREFECT_WORKER_QUERY_SECONDS": "1", "PYTHONPATH": str(ROOT)}
    with ExitStack() as started:
        log = started.enter_context((folder / "worker.log").open("wb"))
        for command in (hurried, worker):
            process = started.enter_context(subprocess.Popen(command, env=os.environ | settings, cwd=folder, stdout=log, stderr=log))
            started.callback(process.terminate)
        wait_for((folder / SOCKET).exists, SECONDS)
        yield


@contextmanager
def beginning(server, client, folder):
    """A week that is about to begin."""
    import s3fs
    from prefect.exceptions import ObjectNotFound

    with ExitStack() as world:
        patch, store = world.enter_context(pytest.MonkeyPatch.context()), Store()
        world.callback(store.go_away)
        for name, value in {
            **KEYS,
            "AWS_ENDPOINT_URL": store.url,
            "FSSPEC_S3": json.dumps(PATIENCE),
            "PREFECT_API_URL": server,
            "COLUMNS": "150",
        }.items():
            patch.setenv(name, value)
        patch.setitem(fsspec.config.conf, "s3", PATIENCE)
        s3fs.S3FileSystem.clear_instance_cache()
        world.callback(s3fs.S3FileSystem.clear_instance_cache)
        with suppress(ObjectNotFound):
            client.delete_work_pool("leafledger")  # of another test's
        call_prefect(CREATE)
        world.callback(client.delete_work_pool, "leafledger")
        world.enter_context(working(folder))
        url, told = world.enter_context(receive())
        world.enter_context(automated(client, folder, tell(url)))
        deploy(folder, patch)
        deployment = client.read_deployment_by_name("explain/nightly").id
        world.callback(client.delete_deployment, deployment)
        yield Week(folder, client, deployment, store, told)


def live(week):
    """Seven nights and mornings."""
    monday, tuesday, wednesday, thursday, friday, saturday, sunday = (MONDAY + timedelta(days=k) for k in range(7))
    again = "prefect deployment run explain/nightly --param date=2026-03-{}"
    replace = "--param if_changed=replace"

    week.bring_model(20)
    week.bring(monday, draw(monday))
    week.see("monday", week.pass_night(monday))
    week.type("leafledger check --latest s3://explained/latest.json")

    week.see("tuesday", week.pass_night(tuesday))
    week.bring(tuesday, draw(tuesday))
    week.see("tuesday again", week.start("prefect flow-run retry 2026-03-24", tuesday))

    week.bring(wednesday, draw(wednesday))
    week.see("wednesday", week.pass_night(wednesday))
    week.bring(tuesday, draw(tuesday), draw(tuesday, seed=1))
    week.see("tuesday refused", week.start(again.format(24), tuesday))
    week.see("tuesday replaced", week.start(f"{again.format(24)} {replace}", tuesday))
    week.type("leafledger check s3://explained/2026-03-23")

    week.bring_model(5)
    week.bring(thursday, draw(thursday))
    week.see("thursday", week.pass_night(thursday))

    week.bring(friday, draw(friday))
    week.store.go_away()
    week.see("friday", week.pass_night(friday))
    week.type("leafledger check --latest s3://explained/latest.json", "echo $?")
    week.store.come_back()
    week.see("friday again", week.start("prefect flow-run retry 2026-03-27", friday))

    week.bring(saturday, draw(saturday), draw(saturday, seed=1), cut=5000)
    week.see("saturday", week.pass_night(saturday))
    week.bring(saturday, draw(saturday), draw(saturday, seed=1))
    week.see("saturday replaced", week.start(f"{again.format(28)} {replace} --param 'against=s3://explained/{{date-2d}}'", saturday))

    week.bring(sunday, draw(sunday, moved=200.0))
    week.see("sunday", week.pass_night(sunday))
    week.type("leafledger drift s3://explained/2026-03-28 --against s3://explained/2026-03-27 --quiet", "echo $?")
    week.type("leafledger runs s3://explained")

    live_afterwards(week, sunday)
    live_by_cron(week)


def settle(said):
    """What was seen, as the page has it."""
    for pattern, settled in VARIES.items():
        said = re.sub(pattern, settled, said)
    return "".join(f"{line.rstrip()}\n" for line in said.splitlines())


def main():
    """Live a week, and print what was seen."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background, where a Prefect worker would never end then
    from prefect import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with (
        TemporaryDirectory() as folder,
        run_server(free_port()) as (url, _),
        temporary_settings({PREFECT_API_URL: url}),
        get_client(sync_client=True) as client,
        beginning(url, client, Path(folder)) as week,
    ):
        live(week)
    print("\n".join(map(settle, week.said)))


if __name__ == "__main__":
    main()
