"""The topology of `infra/compose.yaml` as processes in network namespaces: a night, a scheduled flow run, and each part killed once."""

import json
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import pytest
import s3fs

from leafledger import check_run, explain
from tests.faults.compose import Topology
from tests.faults.containers import ROOT, missing
from tests.faults.nights import MODEL, N_FILES, N_ROWS, Server, fill_store, make_demo, share_kernels
from tests.faults.preload import SECONDS
from tests.faults.verdict import contents

NIGHT = "s3://explained/2013-02-01"  # what the file's own night makes
LATEST = "explained/latest.json"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo", "AWS_DEFAULT_REGION": "us-east-1"}
pytestmark = pytest.mark.long
RUN_SECONDS = 900  # that a flow run may take, beside other work
PAGES = {"after.json", "after/drift.json", "report/index.html"}  # which name their own run


class Watcher(threading.Thread):
    """Reads what `latest` names, again and again: whatever that is, it has to be there."""

    def __init__(self, endpoint: str):
        super().__init__(daemon=True)
        self.endpoint, self.over, self.dangling, self.named = endpoint, threading.Event(), [], set()

    def read(self, path: str) -> bytes | None:
        """An object, None where there is none; the store may be away."""
        try:
            with urllib.request.urlopen(f"{self.endpoint}/{path}", timeout=2) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def look(self) -> None:
        """Once."""
        held = self.read(LATEST)
        if held is None:
            return
        latest = json.loads(held)
        run = latest["run"].removeprefix("s3://")
        manifest = self.read(f"{run}/manifest.json")
        if manifest is None or sha256(manifest).hexdigest() != latest["manifest"] or self.read(f"{run}/attributions/part-00000.parquet") is None:
            self.dangling.append(latest)
        self.named.add(latest["run"])

    def run(self) -> None:
        """Until it is told to end."""
        while not self.over.wait(0.3):
            try:
                self.look()
            except OSError:
                continue


@dataclass(frozen=True)
class Stack:
    """The services, all up, and what a test needs of them."""

    topology: Topology
    server: Server
    watcher: Watcher
    deployment: str
    yesterday: str


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    """As the file's first lines say, with a deployment of `infra/prefect.yaml`."""
    if missing():
        pytest.skip(f"containers need {', '.join(missing())}")
    folder = tmp_path_factory.mktemp("topology")
    demo, kernels = folder / "demo", folder / "kernels"
    for each in (demo, kernels):
        each.mkdir()
    make_demo(demo)
    explain(str(demo / "models" / MODEL), str(demo / "flights" / "month=2"), str(folder / "run"), scheduler="serial")  # compiles what is not yet
    share_kernels(kernels)
    shared = {"../build/demo": str(demo), "+/kernels": str(kernels)}
    compiled = {"NUMBA_CACHE_DIR": "/kernels"}
    slow = {"DASK_DISTRIBUTED__WORKER__PRELOAD": '["tests.faults.preload"]', "PYTHONPATH": str(ROOT), SECONDS: "1"}
    often = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "1"}
    environment = {"workers": compiled | slow, "night": compiled, "pool": compiled | {"PREFECT_WORKER_QUERY_SECONDS": "2"}, "server": often}
    with Topology(folder, shared, environment) as topology, pytest.MonkeyPatch.context() as patch:
        topology.up("store", "workers", "pool")
        endpoint = f"http://{topology.address('store')}:5000"
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint}.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        topology.wait_healthy("store")
        yesterday = str((datetime.now(UTC) - timedelta(days=1)).date())
        days = [yesterday, str(datetime.now(UTC).date())]  # at midnight too
        fill_store(demo, days)
        server, watcher = Server(topology.address("server")), Watcher(endpoint)
        watcher.start()
        yield Stack(topology, server, watcher, server.deploy(folder), yesterday)
        watcher.over.set()
        watcher.join()
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def night(stack):
    """Exit code of the file's night, and what it says; it is what the next one is compared with."""
    return stack.topology.run("night")


def test_the_night_of_the_file(stack, night):
    """It ends with what the page says, and Prefect's page is served."""
    code, said = night
    assert code == 0, said
    assert f"{NIGHT}: sound, {N_ROWS:,} rows in 1 parts" in said
    assert check_run(NIGHT).n_rows == N_ROWS
    with urllib.request.urlopen(stack.server.url.removesuffix("api"), timeout=30) as page:
        assert b"<!DOCTYPE html>" in page.read()


def test_a_scheduled_flow_run_ends_with_a_report(stack, night, tmp_path):
    """On the cluster with TLS, from the store into it: the bytes are those of a serial run here; then `latest` names it."""
    name, day = stack.server.schedule(stack.deployment)
    out = f"s3://explained/{day - timedelta(days=1)}"
    state = stack.server.ended(name, RUN_SECONDS)["state"]
    expected = ("Completed", f"{out}: explained ({N_ROWS:,} rows in {N_FILES} parts)")
    assert (state["name"], state["message"]) == expected, stack.server.logs(name)
    code, said = stack.topology.run("night", "leafledger", "check", "--latest", f"s3://{LATEST}")
    assert (code, said.startswith(f"{out}: sound, {N_ROWS:,} rows in {N_FILES} parts")) == (0, True), said
    found = contents(out)
    assert found.keys() >= PAGES
    places = {"model": "s3://models/arrival-delay.json", "data": f"s3://flights/date={day - timedelta(days=1)}"}
    explain(**places, out=tmp_path / "run", ids=["flight"], values=True, max_rejected=3, scheduler="serial")
    expected = contents(str(tmp_path / "run"))
    assert [path for path in expected if path != "after.json" and found.get(path) != expected[path]] == []
    assert stack.watcher.dangling == []
    assert out in stack.watcher.named
