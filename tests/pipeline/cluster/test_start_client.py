"""Clusters that work is done on: which are taken, what is compiled there before anything else, and when one is given up before it has begun."""

import asyncio
import logging
import subprocess
import sys
import time
from contextlib import suppress

import dask
import distributed
import pytest
from distributed.comm import CommClosedError

from leafledger.pipeline.cluster import start_client as cluster
from leafledger.pipeline.cluster.placement import Placement
from leafledger.pipeline.cluster.requirements import need
from leafledger.pipeline.errors import ClusterLost, UnfitCluster
from tests.pipeline.threads import on_threads, over_tcp

STARTED = []


@pytest.fixture(scope="module")
def threads():
    """A cluster for the whole module."""
    with on_threads() as found:
        yield found


def on(cluster):
    """Work that is done there."""
    return Placement(cluster.scheduler_address, None, None, 1, 0, 5)


def test_a_scheduler_that_does_not_answer_is_one_line():
    """Nobody listens there, or it is no address."""
    for address in ("tcp://127.0.0.1:9", "nope://x"):
        with pytest.raises(ClusterLost, match=f"^{address}: no Dask scheduler answers there: [^\n]+$"), cluster.remote_client(address, need(0), 1):
            pytest.fail("there is none")


def test_a_worker_without_room_is_refused(threads):
    """A task's share is the worker's memory over its threads; what fits is taken."""
    address, share = threads.scheduler_address, threads.workers[0].memory_manager.memory_limit // 4
    has = share >> 20
    with (
        pytest.raises(UnfitCluster, match=rf": a task needs {has + 1} MiB, the worker has {has} for each of its threads; give it more"),
        cluster.remote_client(address, need((has + 1) << 20), 1),
    ):
        pytest.fail("it has no room")
    with cluster.remote_client(address, need(has << 20), 1) as client:
        assert client.scheduler.address == address


def test_every_host_compiles_once(threads):
    """Before anything else is done there, by one of its workers."""
    STARTED.clear()
    with cluster.warm_client(on(threads), 1, 0, warm, "tables") as client:
        assert STARTED == ["tables"]
        assert client.submit(abs, -3).result() == 3


def warm(tables):
    STARTED.append(tables)


GROWING = []


def warm_slowly(tables):
    """Kernels take so long to compile that another worker comes meanwhile."""
    STARTED.append(tables)
    if len(STARTED) == 1:
        GROWING[0].scale(2)
        while len(GROWING[0].scheduler.workers) < 2:
            time.sleep(0.02)


AWAY = r"^the Dask cluster went away \([^\n]+\); run again to go on from there$"


@pytest.fixture
def own():
    """A cluster that a test breaks."""
    with over_tcp() as found:
        yield found


@pytest.mark.parametrize("step", ["check_workers", "find_workers", "warm_late"])
@pytest.mark.slow
def test_a_scheduler_that_goes_away_before_the_first_part_is_said(own, monkeypatch, step):
    """While workers are asked what they are and where, and while it is told what those that come late have to do."""
    whole = getattr(cluster, step)

    def last(*arguments, **given):
        own.sync(own.scheduler.close)
        return whole(*arguments, **given)

    monkeypatch.setattr(cluster, step, last)
    with pytest.raises(ClusterLost, match=AWAY), cluster.warm_client(on(own), 1, 0, warm, 1):
        pytest.fail("it is gone")


def test_a_worker_that_goes_away_before_the_first_part_leaves_nothing_on_the_scheduler(own):
    """It is told what workers have to do that come late, and so is every other one, until it is taken back."""

    async def go(**_):
        raise CommClosedError("gone")

    own.workers[0].handlers["plugin-add"] = go
    with pytest.raises(ClusterLost, match=AWAY), cluster.warm_client(on(own), 1, 0, warm, 1):
        pytest.fail("it is gone")
    until = time.monotonic() + 60
    while own.scheduler.clients.keys() - {"fire-and-forget"} and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(name.startswith("leafledger") for name in [*own.scheduler.worker_plugins, *own.scheduler.plugins])


@pytest.mark.slow
def test_a_scheduler_that_freezes_when_a_client_has_connected_is_given_up(own, monkeypatch):
    """In a line that says what was waited for, not that there are no workers."""
    connect, over = distributed.Client, asyncio.Event()

    async def freeze(**_):
        await over.wait()

    def connected(*given, **more):
        client = connect(*given, **more)
        own.scheduler.handlers["identity"] = freeze
        return client

    monkeypatch.setattr(distributed, "Client", connected)
    says = "the Dask scheduler does not answer when it is asked for workers, expected at least one within 5 seconds"
    with pytest.raises(ClusterLost, match=f"^{own.scheduler_address}: {says}$"), cluster.warm_client(on(own), 1, 0, warm, 1):
        pytest.fail("it is frozen")
    own.loop.add_callback(over.set)


def test_a_worker_that_comes_while_others_compile_compiles_too(own):
    """Before it is given a part: nobody has asked it to when the others were."""
    STARTED.clear()
    GROWING[:] = [own]
    with cluster.warm_client(on(own), 1, 0, warm_slowly, "tables") as client:
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 2
        assert STARTED == ["tables", "tables"]


def test_other_programs_logs_are_left_as_they_were():
    """Dask's is silent meanwhile."""
    logger = logging.getLogger("distributed")
    before = logger.level
    with suppress(KeyError), cluster._silenced():
        silent = not logger.isEnabledFor(logging.ERROR)
        raise KeyError
    assert silent
    assert logger.level == before


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_nobody_else_gets_into_the_local_cluster(tmp_path):
    """Whoever may submit a task runs code as the cluster's user: without its certificate there is no way in, with one's own there is none either."""
    mark = tmp_path / "mark"
    with cluster.local_client(Placement(None, None, 1, 1, 1 << 30), 1) as client:
        address = client.scheduler.address
        assert client.submit(abs, -3).result() == 3
        host = address.partition("://")[2]
        with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
            for scheme, security in (("tcp", None), ("tls", distributed.Security.temporary())):
                with pytest.raises((OSError, TimeoutError)):
                    distributed.Client(f"{scheme}://{host}", security=security, timeout=1, set_as_default=False).submit(mark.touch).result()
        workers = list(client.scheduler_info()["workers"])
    assert address.startswith("tls://127.0.0.1:")
    assert all(worker.startswith("tls://127.0.0.1:") for worker in workers)
    assert not mark.exists()


@pytest.mark.slow
def test_a_script_that_is_not_guarded_is_told_so(example, tmp_path):
    """Its workers import it and would explain again, each with workers of its own; both refuse in a line, which Prefect does not try again."""
    script = tmp_path / "script.py"
    script.write_text(f"import leafledger\n\nleafledger.explain({example.model!r}, {example.data!r}, {str(tmp_path / 'out')!r}, workers=1)\n")
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240, check=False)
    assert said.returncode == 1
    lines = said.stderr.splitlines()
    guard = "a script that calls Leafledger must do so under if __name__ == '__main__'"
    assert f"leafledger.UsageError: a worker imports the script that started it, which calls Leafledger again; {guard}" in lines
    assert lines[-1].startswith("leafledger.UnfitCluster: the local cluster's workers do not start (")
    assert lines[-1].endswith(f"; {guard}, since every worker imports it")
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.slow
def test_a_script_from_standard_input_is_told_so(example, tmp_path):
    """Python's workers would look for a file of that name; what is not a script at all, as with -c or in a notebook, is not imported."""
    script = f"import leafledger\nleafledger.explain({example.model!r}, {example.data!r}, {str(tmp_path / 'out')!r}, workers=1)\n"
    said = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, timeout=240, check=False)
    assert said.returncode == 1
    assert said.stderr.splitlines()[-1] == (
        "leafledger.UsageError: the script is read from <stdin>, and a local cluster's workers import it: write it to a file, or leave out workers"
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=240, check=True)
    assert (tmp_path / "out" / "manifest.json").exists()
