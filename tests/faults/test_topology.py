"""The topology of `infra/compose.yaml` as processes in network namespaces: a night, a scheduled flow run, and each part killed once."""

import json
import threading
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import psutil
import pytest
import s3fs
import yaml
from botocore.exceptions import BotoCoreError, ClientError

from leafledger import check_run, explain
from tests.faults.compose import Topology
from tests.faults.containers import ROOT, missing
from tests.faults.nights import MODEL, N_ROWS, Server, fill_store, make_demo, share_kernels, wait_until
from tests.faults.preload import SECONDS
from tests.faults.verdict import committed, contents

pytestmark = pytest.mark.long
NIGHT = "s3://explained/2013-02-01"  # what the file's own night makes
LATEST = "explained/latest.json"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "demo", "AWS_SECRET_ACCESS_KEY": "demo", "AWS_DEFAULT_REGION": "us-east-1"}
IMPATIENT = {"connect_timeout": 2, "read_timeout": 2, "retries": {"mode": "legacy", "total_max_attempts": 1}}
RUN_SECONDS = 1200  # that a flow run may take, beside other work
TIMED = {"after.json", "report/index.html"}  # a report says how long the run took, and after.json has its digest
PAGES = {"after.json", "after/drift.json", "report/index.html"}  # which name their own run


class Watcher(threading.Thread):
    """Reads what `latest` names, again and again: whatever that is, it has to be there."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over, self.dangling, self.named = threading.Event(), [], set()
        self.store = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True, config_kwargs=IMPATIENT)

    def look(self) -> None:
        """Once."""
        latest = json.loads(self.store.cat_file(LATEST))
        try:
            manifest = self.store.cat_file(f"{latest['run']}/manifest.json")
            listed = [entry["uri"] for entry in json.loads(manifest)["parts"]]
            there = sha256(manifest).hexdigest() == latest["manifest"] and all(self.store.exists(f"{latest['run']}/{part}") for part in listed)
        except FileNotFoundError:
            there = False
        if not there:
            self.dangling.append(latest)
        self.named.add(latest["run"])

    def run(self) -> None:
        """Until it is told to end."""
        while not self.over.wait(0.5):
            with suppress(OSError, ClientError, BotoCoreError):  # the store is away, or names nothing yet
                self.look()


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
    often = {"PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "1", "PREFECT_SERVER_CONCURRENCY_INITIAL_DEPLOYMENT_LEASE_DURATION": "60"}
    lively = {"PREFECT_WORKER_QUERY_SECONDS": "2", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30"}
    environment = {"workers": compiled | slow, "night": compiled, "pool": compiled | lively, "server": often}
    with Topology(folder, shared, environment) as topology, pytest.MonkeyPatch.context() as patch:
        topology.up_and_wait()
        endpoint = f"http://{topology.address('store')}:5000"
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint}.items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        yesterday = str((datetime.now(UTC) - timedelta(days=1)).date())
        days = [yesterday, str(datetime.now(UTC).date())]  # at midnight too
        fill_store(demo, days)
        server, watcher = Server(topology.address("server")), Watcher()
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
    assert f"{NIGHT}: sound, {N_ROWS:,} rows in 1 part," in said
    assert check_run(NIGHT).n_rows == N_ROWS
    with urllib.request.urlopen(stack.server.url.removesuffix("api"), timeout=30) as page:
        assert b"<!DOCTYPE html>" in page.read()


def test_a_scheduled_flow_run_ends_with_a_report(stack, night, tmp_path):
    """On the cluster with TLS, from the store into it: the bytes are those of a serial run here; then `latest` names it."""
    name, day = stack.server.schedule(stack.deployment)
    out = f"s3://explained/{day - timedelta(days=1)}"
    state = stack.server.ended(name, RUN_SECONDS)["state"]
    expected = ("Completed", f"{out}: explained ({N_ROWS:,} rows in 1 part)")
    assert (state["name"], state["message"]) == expected, stack.server.logs(name)
    code, said = stack.topology.run("night", "leafledger", "check", "--latest", f"s3://{LATEST}")
    assert (code, said.startswith(f"{out}: sound, {N_ROWS:,} rows in 1 part")) == (0, True), said
    found = contents(out)
    assert found.keys() >= PAGES
    places = {"model": "s3://models/arrival-delay.json", "data": f"s3://flights/date={day - timedelta(days=1)}"}
    explain(**places, out=tmp_path / "run", ids=["flight"], values=True, max_rejected=3, scheduler="serial")
    expected = contents(str(tmp_path / "run"))
    assert [path for path in expected if path != "after.json" and found.get(path) != expected[path]] == []
    assert stack.watcher.dangling == []
    assert out in stack.watcher.named


@pytest.fixture(scope="module")
def undisturbed(stack, night):
    """What a flow run publishes that nobody disturbs."""
    out = "s3://explained/undisturbed"
    state = stack.server.ended(start(stack, out), RUN_SECONDS)["state"]
    assert state["type"] == "COMPLETED", state
    return {path: without(data, out) for path, data in contents(out).items()}


def start(stack, out):
    """A flow run of the deployment by hand, into a place of its own; its id."""
    return stack.server.start(stack.deployment, out=out, data=f"s3://flights/date={stack.yesterday}", against=NIGHT)


def without(data, out):
    """Bytes that do not say which run they are of."""
    return data.replace(out.encode(), b"RUN").replace(out.rpartition("/")[2].encode(), b"RUN")


def begin(stack, out):
    """A flow run that has published a part, and has others to do; its id."""
    name = start(stack, out)
    wait_until(lambda: committed(out), RUN_SECONDS, lambda: str(stack.server.run(name)["state"]))
    assert "manifest.json" not in contents(out)
    return name


def judge(stack, out, undisturbed, before):
    """Sound, the bytes of the undisturbed run, nothing done again that was there, named by `latest` once it was whole."""
    check_run(out)
    found = {path: without(data, out) for path, data in contents(out).items()}
    assert sorted(found) == sorted(undisturbed)
    assert [path for path in found if path not in TIMED and found[path] != undisturbed[path]] == []
    assert {name: committed(out)[name] for name in before} == before
    stack.watcher.look()
    assert out in stack.watcher.named
    assert stack.watcher.dangling == []


def kill(*names):
    """Containers, started again as the file says."""

    def act(stack):
        for name in names:
            stack.topology.containers[name].kill()

    return act


def cut_store(seconds):
    """Not killed, since moto would forget everything: nobody reaches it for a while."""

    def act(stack):
        stack.topology.network.cut("store-1")
        time.sleep(seconds)
        stack.topology.network.cut("store-1", up=True)

    return act


COSTS_NOTHING = {
    "worker": kill("workers-1"),
    "scheduler": kill("scheduler-1"),
    "server": kill("server-1"),
    "store": cut_store(20),
    "store for minutes": cut_store(150),
}


@pytest.mark.parametrize("part", COSTS_NOTHING)
def test_a_part_that_dies_costs_nothing(stack, undisturbed, tally, part):
    """It is started again, and the flow run completes, to the same bytes."""
    out = f"s3://explained/without-{part.replace(' ', '-')}"
    name = begin(stack, out)
    before = committed(out)
    COSTS_NOTHING[part](stack)
    tally.faults[f"topology without {part}"] += 1
    state = stack.server.ended(name, RUN_SECONDS)["state"]
    assert state["type"] == "COMPLETED", stack.server.logs(name)
    judge(stack, out, undisturbed, before)


def go_on(stack, out, undisturbed, before):
    """The same flow run again completes the run."""
    assert "manifest.json" not in contents(out)
    name = start(stack, out)
    state = stack.server.ended(name, RUN_SECONDS)["state"]
    assert state["type"] == "COMPLETED", stack.server.logs(name)
    judge(stack, out, undisturbed, before)


def test_a_flow_run_whose_process_dies_crashes_in_one_line(stack, undisturbed, tally):
    """The pool's worker says so, and the same run again goes on."""
    out = "s3://explained/without-process"
    name = begin(stack, out)
    (pool,) = psutil.Process(stack.topology.containers["pool-1"].process.pid).children()
    (engine,) = [process for process in pool.children() if "prefect.engine" in process.cmdline()]
    engine.kill()
    tally.faults["topology without flow run"] += 1
    state = stack.server.ended(name, RUN_SECONDS)["state"]
    assert state["type"] == "CRASHED"
    assert state["message"].startswith("Process exited with status code: -9")
    assert "\n" not in state["message"]
    go_on(stack, out, undisturbed, committed(out))


SERVICES = ("server-1", "pool-1", "scheduler-1", "workers-1", "workers-2")


def test_the_machine_that_starts_again_holds_up_nobody(stack, undisturbed, tally):
    """All but the store dies at once: the flow run is taken for running, but the same one again gets its place once nobody renews its lease."""
    out = "s3://explained/without-machine"
    name = begin(stack, out)
    kill(*SERVICES)(stack)
    tally.faults["topology without machine"] += 1
    go_on(stack, out, undisturbed, committed(out))
    assert stack.server.run(name)["state"]["type"] == "RUNNING"  # what infra/automations.yaml is for


@pytest.fixture
def automations(stack, tmp_path):
    """The page's second automation, with less patience."""
    written = yaml.safe_load((ROOT / "infra" / "automations.yaml").read_text())
    written["automations"] = [each for each in written["automations"] if each["name"] == "leafledger-silent"]
    written["automations"][0]["trigger"]["within"] = 90
    (tmp_path / "automations.yaml").write_text(yaml.safe_dump(written))
    stack.server.call(tmp_path, "automation", "create", "--from-file", str(tmp_path / "automations.yaml"))
    yield written["automations"][0]["actions"][0]["message"]
    for each in stack.server.ask("/automations/filter", {}):
        stack.server.ask(f"/automations/{each['id']}", method="DELETE")


def test_a_flow_run_that_dies_with_its_pool_is_told(stack, undisturbed, tally, automations):
    """Nobody hears of it any more: the automation says that it crashed, and the same run again goes on."""
    out = "s3://explained/without-pool"
    name = begin(stack, out)
    kill("pool-1")(stack)
    tally.faults["topology without pool"] += 1
    state = stack.server.ended(name, RUN_SECONDS)["state"]
    assert (state["type"], state["message"]) == ("CRASHED", automations)
    go_on(stack, out, undisturbed, committed(out))


MAKE_EXPIRED = """
from datetime import datetime, timedelta
from leafledger.pipeline.cluster import certificates

class Earlier(datetime):
    @classmethod
    def now(cls, zone):
        return datetime.now(zone) - timedelta(days=2)

certificates.datetime = Earlier
certificates.make_certificates("/certificates", ["scheduler"], days=1)
"""


def test_certificates_that_expired_are_said_and_made_anew(stack, undisturbed, tally):
    """In one line, by the night and by the flow run; without the volume new ones are made, and the same run completes."""
    volume, out = stack.topology.folder / "volumes" / "certificates", "s3://explained/with-certificates"

    def replace(*command):
        for path in volume.iterdir():
            path.unlink()
        assert stack.topology.run("certificates", *command)[0] == 0
        kill("scheduler-1", "workers-1", "workers-2", "pool-1")(stack)

    replace("python", "-c", MAKE_EXPIRED)
    tally.faults["topology with expired certificates"] += 1
    line = "/certificates/client.pem: this certificate expired on "
    another = [word.replace("2013-02-01", "2013-02-02") for word in stack.topology.services["night"]["command"]]  # that one is finished
    code, said = stack.topology.run("night", *another)
    *before, last = said.splitlines()
    assert (code, before) == (10, ["explaining on tls://scheduler:8786"]), said
    assert last.startswith(f"leafledger: {line}")
    name = start(stack, out)
    state = stack.server.ended(name, RUN_SECONDS)["state"]
    assert state["type"] == "FAILED"
    assert state["message"].startswith(line)
    assert "\n" not in state["message"]
    replace()
    go_on(stack, out, undisturbed, {})
