"""A store behind a proxy that breaks it, the example and its fault-free run, and the sum of what the suite did."""

import json
import os
import secrets
import subprocess
import sys
from dataclasses import replace

import distributed
import fsspec
import pytest
import s3fs

from leafledger import explain
from leafledger.pipeline.stores import calls
from tests.faults.proxy import Proxy
from tests.faults.radosgw import missing, radosgw
from tests.faults.verdict import ID, Runner, Tally, contents
from tests.moto_store import kept_clients, run_moto
from tests.pipeline.conftest import example, write_data

__all__ = ["example"]  # a fixture

START_SECONDS = 400  # of a scheduler and its workers, beside other work
TALLY = pytest.StashKey[Tally]()
# As in production, but that nobody waits for half a minute.
PATIENCE = {"config_kwargs": {"connect_timeout": 2, "read_timeout": 2, "retries": {"mode": "legacy", "total_max_attempts": 3}}}
RADOSGW = "radosgw"
CANARY = {"AWS_ACCESS_KEY_ID": "canary-id", "AWS_SECRET_ACCESS_KEY": "canary-secret", "AWS_DEFAULT_REGION": "us-east-1"}


def pytest_addoption(parser):
    parser.addoption("--radosgw", action="store_true", help="store faults also in front of a real store, where it is installed")


def pytest_configure(config):
    config.stash[TALLY] = Tally()


def pytest_generate_tests(metafunc):
    """Whatever needs a store is tried in front of each."""
    if "s3_endpoint" in metafunc.fixturenames:
        real = metafunc.config.getoption("--long") or metafunc.config.getoption("--radosgw", False)
        metafunc.parametrize("s3_endpoint", ["moto", RADOSGW] if real else ["moto"], indirect=True, scope="session")


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[TALLY].faults:
        terminalreporter.section("faults")
        for line in config.stash[TALLY].lines():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def tally(request):
    """What the whole session did."""
    return request.config.stash[TALLY]


@pytest.fixture(scope="session")
def s3_endpoint(request):
    """A store of its own."""
    if request.param == RADOSGW:
        if missing():  # Ceph is a package of the system, which pip cannot install; moto stands in everywhere
            pytest.skip(f"{', '.join(missing())} not installed: apt-get install radosgw ceph-mon ceph-osd ceph-mgr ceph-common")
        with radosgw(CANARY["AWS_ACCESS_KEY_ID"], CANARY["AWS_SECRET_ACCESS_KEY"]) as url:
            yield url
    else:
        with run_moto() as url:
            yield url


@pytest.fixture(scope="session")
def proxy(s3_endpoint, tally):
    """In front of a store, as long as that lasts: clients are cached by the address."""
    with Proxy(s3_endpoint) as proxy:
        yield proxy
        tally.faults.update(proxy.injected)
        proxy.shutdown()


@pytest.fixture(scope="session")
def runner(example, tmp_path_factory, tally):
    """The example, and what a fault-free run of it publishes."""
    out = str(tmp_path_factory.mktemp("reference") / "run")
    explain(example.model, example.data, out, ids=[ID], scheduler="serial")
    return Runner(example.model, example.data, contents(out), tally)


@pytest.fixture
def environment(proxy, monkeypatch):
    """Variables that make this process and its children use the proxy, with little patience."""
    variables = {**CANARY, "AWS_ENDPOINT_URL": proxy.url, "FSSPEC_S3": json.dumps(PATIENCE)}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(fsspec.config.conf, "s3", PATIENCE)
    monkeypatch.setattr(calls, "SECONDS", 8.0)
    with kept_clients(proxy.url):
        yield variables


@pytest.fixture
def bucket(environment):
    """An empty bucket's URI."""
    name = f"nightly-{secrets.token_hex(4)}"
    s3fs.S3FileSystem().mkdir(name)
    return f"s3://{name}"


@pytest.fixture(scope="module")
def many(runner, example, tmp_path_factory):
    """A dozen items, so that there is something left to do when workers die."""
    folder = tmp_path_factory.mktemp("many")
    for k in range(3):
        write_data(example.frame[k::3].assign(month=example.frame["month"][k::3] + 10 * k), folder / "data")
    out = folder / "reference"
    explain(runner.model, folder / "data", out, ids=[ID], scheduler="serial")
    return replace(runner, data=str(folder / "data"), reference=contents(str(out)))


@pytest.fixture
def start_cluster(tmp_path):
    """A scheduler and two workers of the command line; started by a call, ended with the test."""
    started = []

    def start(protocol="tcp", options=(), **more):
        file, environment = str(tmp_path / f"scheduler-{len(started)}.json"), {**os.environ, **more}
        shared = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", file]  # in which the scheduler says at which free port it listens
        commands = [["dask_scheduler", "--protocol", protocol, "--port", "0", *shared]]
        commands += [["dask_worker", "--nthreads", "1", "--death-timeout", str(START_SECONDS), *shared, *options]] * 2
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=os.getcwd(),
            )
            for command in commands
        ]
        started.extend(processes)
        with distributed.Client(scheduler_file=file, timeout=START_SECONDS) as client:
            client.wait_for_workers(2, timeout=START_SECONDS)
            return client.scheduler.address, processes

    yield start
    for process in started:
        process.kill()
        process.wait()
