"""Clusters that grow and shrink: the first worker is waited for, workers come and leave while a run goes on; its bytes are the serial run's."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack

import dask
import distributed
import pytest

from leafledger.pipeline.errors import UnfitCluster
from tests.faults.interrupting import struck
from tests.faults.preload import COMPILED, SECONDS
from tests.pipeline.forking import forked_workers

START_SECONDS = 400  # of a worker, beside other work
ITEM_SECONDS = 0.5


@pytest.fixture(autouse=True)
def _slowly(monkeypatch):
    """A dozen items take longer than a worker takes to start."""
    monkeypatch.setenv(SECONDS, str(ITEM_SECONDS))
    with dask.config.set({"distributed.worker.preload": ["tests.faults.preload"]}), forked_workers(**{SECONDS: str(ITEM_SECONDS)}):
        yield


@pytest.fixture
def start(request):
    """Make a cluster of so many workers, each a process."""
    with ExitStack() as undo:

        def started(n_workers):
            local = distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
            return undo.enter_context(local)

        yield started


@pytest.fixture
def join():
    """Let one more worker come to a scheduler, as its command line starts it; ended with the test."""
    with ExitStack() as undo:

        def joined(address, **environment):
            worker = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard"],
                env=os.environ | environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            undo.callback(worker.wait)
            undo.callback(worker.kill)
            return worker

        yield joined


@pytest.mark.more
def test_the_first_worker_is_waited_for(many, tally, tmp_path, start):
    """A scheduler that is there before its workers, as on a cluster of machines that are just being started."""
    local = start(0)
    timer = threading.Timer(3, local.scale, (1,))
    timer.start()
    tally.faults["worker late"] += 1
    many.explain(str(tmp_path / "run"), scheduler=local.scheduler_address, wait=START_SECONDS)
    timer.join()
    many.judge(str(tmp_path / "run"))


def test_a_cluster_that_starts_workers_for_work_gets_some(many, tally, tmp_path, start):
    """It has none as long as nobody asks for anything, and ends them again."""
    local = start(0)
    local.adapt(minimum=0, maximum=2, interval="500ms", wait_count=2)
    tally.faults["adaptive cluster"] += 1
    many.explain(str(tmp_path / "run"), scheduler=local.scheduler_address, wait=START_SECONDS)
    many.judge(str(tmp_path / "run"))


@pytest.mark.more
def test_a_cluster_that_grows_and_shrinks_gives_the_same_bytes(many, tally, tmp_path, start):
    """Workers that come are given items, those that are retired give theirs back."""
    local, done = start(1), []

    def change(part):
        done.append(part)
        if len(done) in (1, 6):
            local.scale(2 if len(done) == 1 else 1)
            tally.faults["cluster scaled"] += 1

    many.explain(str(tmp_path / "run"), scheduler=local.scheduler_address, progress=lambda work: change)
    assert len(done) == 12
    many.judge(str(tmp_path / "run"))


def test_a_worker_that_is_told_to_leave_gives_back_what_it_has(many, tally, tmp_path, start, join):
    """SIGTERM, as a pod gets it half a minute before its end: no item is blamed, and it is gone in time."""
    local = start(0)
    leaving = join(local.scheduler_address)

    def leave():
        local.scale(1)
        leaving.send_signal(signal.SIGTERM)
        tally.faults["worker SIGTERM"] += 1

    many.explain(str(tmp_path / "run"), scheduler=local.scheduler_address, wait=START_SECONDS, progress=struck(leave))
    assert leaving.wait(30) is not None
    many.judge(str(tmp_path / "run"))


def test_a_worker_that_comes_late_with_other_packages_is_refused(many, tally, tmp_path, start, join, monkeypatch):
    """Its parts might differ in their bits: the run ends in one line, and another does what is missing."""
    monkeypatch.setenv(SECONDS, "3")
    (tmp_path / "numba-0.0.7.dist-info").mkdir()
    (tmp_path / "numba-0.0.7.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numba\nVersion: 0.0.7\n")
    local, out = start(1), str(tmp_path / "run")

    def come():
        join(local.scheduler_address, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
        tally.faults["late worker with other packages"] += 1

    with pytest.raises(UnfitCluster, match=r"^tcp://\S+: the worker has numba 0\.0\.7, expected \S+ as here; start"):
        many.explain(out, scheduler=local.scheduler_address, progress=struck(come))
    monkeypatch.setenv(SECONDS, "0")
    many.go_on(out)


@pytest.mark.long
def test_a_worker_that_comes_late_compiles_before_its_first_item(many, tally, tmp_path, start, join, monkeypatch):
    """On a host that has no kernels yet: all of them are on its disk when an item begins, and none is added by one."""
    monkeypatch.setenv(SECONDS, "20")
    local, kept = start(1), tmp_path / "kernels"
    other = {SECONDS: "0", COMPILED: str(tmp_path / "compiled"), "NUMBA_CACHE_DIR": str(kept)}

    def come():
        join(local.scheduler_address, DASK_DISTRIBUTED__WORKER__PRELOAD="tests.faults.preload", **other)
        tally.faults["late worker without kernels"] += 1

    many.explain(str(tmp_path / "run"), scheduler=local.scheduler_address, progress=struck(come))
    many.judge(str(tmp_path / "run"))
    found = {int(line) for line in (tmp_path / "compiled").read_text().split()}
    assert found == {len(list(kept.rglob("*.nbc")))}
    assert found != {0}
