"""Schedulers that die, freeze or have nobody to do the work, and what a killed client leaves on one: runs end in a line and are gone on with."""

import os
import signal
import time

import distributed
import pytest

from leafledger.pipeline.cluster import waiting as patience
from leafledger.pipeline.errors import ClusterLost, Exit
from tests.faults.clients import Client
from tests.faults.interrupting import struck
from tests.faults.preload import SECONDS
from tests.faults.verdict import ID, committed


@pytest.fixture(autouse=True)
def _slowly(monkeypatch):
    """Work lasts long enough for something to happen meanwhile."""
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__PRELOAD", '["tests.faults.preload"]')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv(SECONDS, "0.3")


def test_a_run_outlives_its_scheduler(many, tally, tmp_path, start_cluster):
    """It says that it can be gone on with, and another cluster does what is missing."""
    out = str(tmp_path / "run")
    address, (scheduler, *_) = start_cluster(options=["--no-nanny"])

    def end():
        scheduler.kill()
        tally.faults["scheduler SIGKILL"] += 1

    error = many.fails(out, scheduler=address, progress=struck(end))
    assert isinstance(error, ClusterLost)
    assert str(error).endswith("run again to go on from there")
    time.sleep(2)  # a worker may be finishing its item
    assert committed(out)
    address, _ = start_cluster(options=["--no-nanny"])
    many.go_on(out, scheduler=address)


def test_a_scheduler_without_workers_is_said(many, tmp_path):
    """They may still be starting, and are waited for; then the run can be gone on with."""
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as local:
        error = many.fails(str(tmp_path / "run"), scheduler=local.scheduler_address, wait=5)
    assert isinstance(error, ClusterLost)
    assert "has no workers, expected at least one within 5 seconds; see why none starts" in str(error)


def test_a_scheduler_that_freezes_is_given_up(many, tally, tmp_path, start_cluster, monkeypatch):
    """It answers nobody, and its connections stay: the run ends in bounded time, and once it thaws the next run does what is missing."""
    monkeypatch.setattr(patience, "REPLACE_SECONDS", 5)
    out = str(tmp_path / "run")
    address, (scheduler, *_) = start_cluster(options=["--no-nanny"])

    def freeze():
        scheduler.send_signal(signal.SIGSTOP)
        tally.faults["scheduler SIGSTOP"] += 1
        frozen.append(time.monotonic())

    frozen = []
    error = many.fails(out, scheduler=address, progress=struck(freeze))
    assert time.monotonic() - frozen[0] < 60
    assert str(error) == "the Dask cluster has not answered for 5 seconds; run again to go on from there"
    assert error.exit_code == Exit.AWAY
    scheduler.send_signal(signal.SIGCONT)
    time.sleep(2)  # a worker may be finishing its item
    many.go_on(out, scheduler=address)


def wait_until(true):
    """For a minute; then it is a failure."""
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_killed_client_leaves_nothing_on_its_scheduler(many, tally, tmp_path, start_cluster, monkeypatch):
    """What workers that come late have to do for its run, anybody's workers, goes with it; nobody has to finish the run for that."""
    monkeypatch.setenv(SECONDS, "10")
    address, _ = start_cluster(options=["--no-nanny"])
    client = Client({}, ["explain", many.model, many.data, "--out", str(tmp_path / "run"), "--id", ID, "--scheduler", address])
    with distributed.Client(address) as other:

        def left():
            on_workers = other.run(lambda dask_worker: [*dask_worker.plugins])
            found = other.run_on_scheduler(lambda dask_scheduler: [*dask_scheduler.plugins, *dask_scheduler.worker_plugins])
            return [name for name in [*found, *(name for each in on_workers.values() for name in each)] if name.startswith("leafledger")]

        wait_until(lambda: len(left()) == 4)  # two on the scheduler, one on each worker
        client.kill()
        tally.faults["client SIGKILL"] += 1
        assert client.wait() == -signal.SIGKILL
        wait_until(lambda: not left())
