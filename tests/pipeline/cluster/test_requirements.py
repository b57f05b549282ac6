"""Workers are taken that would give this process's bits and have room, when work begins and when it goes on; the others are refused in one line."""

import hashlib
import subprocess
import sys
import time

import distributed
import pytest
from distributed.protocol import pickle
from distributed.versions import get_package_info

from leafledger.pipeline.cluster import requirements as workers
from leafledger.pipeline.cluster.requirements import _make_plugin, check_workers, do_checked, need, pack, warm_late
from leafledger.pipeline.cluster.waiting import call_scheduler
from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.errors import UnfitCluster


@pytest.fixture(scope="module")
def client():
    """Of a cluster with one worker, a thread of this process."""
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0", memory_limit="auto") as found,
        distributed.Client(found) as client,
    ):
        yield client


def test_a_worker_like_this_process_is_taken(client):
    """Its tasks are done, with the arguments they are given."""
    check_workers(client, need(1))
    assert client.submit(do_checked, need(1), divmod, 7, 2, pure=False).result() == (3, 1)
    assert client.submit(do_checked, need(1), divmod, pack(7), pack(2), pure=False).result() == (3, 1)


@pytest.mark.parametrize(
    ("package", "theirs", "says"),
    [
        ("numpy", "0.0.7", r"has numpy 0\.0\.7, expected \S+ as here"),
        ("numba", None, r"has numba not at all, expected \S+ as here"),
        ("python", "3.9.1.final.0", r"has Python 3\.9\.1\.final\.0, expected \S+ as here"),
    ],
)
def test_workers_with_other_packages_are_refused(client, monkeypatch, package, theirs, says):
    """Their bits may be others; the micro version of Python does not matter."""

    def changed(*given, **more):
        found = call_scheduler(*given, **more)
        return {name: {**worker, "packages": {**worker["packages"], package: theirs}} for name, worker in found.items()}

    check_workers(client, need(0))
    monkeypatch.setattr(workers, "call_scheduler", changed)
    with pytest.raises(UnfitCluster, match=f": the worker {says}; start workers from the same image or environment$"):
        check_workers(client, need(0))


@pytest.mark.parametrize("package", ["numba", "leafledger", "python"])
@pytest.mark.slow
def test_a_worker_that_comes_late_with_others_is_refused(client, package):
    """By its first task: nobody has looked at it before."""
    mine = {**get_package_info(["numba", "leafledger"]), **need(0).packages}
    needs = type(need(0))(0, mine | {package: "0.0.7"})
    with pytest.raises(UnfitCluster, match=rf"^inproc://\S+: the worker has (Python|{package}) \S+, expected 0\.0\.7 as here; start"):
        client.submit(do_checked, needs, abs, -1, pure=False).result()


def test_room_is_enough_to_the_last_byte():
    """Each thread may take as much as a task needs, and not a byte less; without a limit there is room for anything."""
    needs = need(1 << 30)
    for share in (None, 1 << 30, (1 << 30) + 1):
        needs.check("worker", share, needs.packages)
    with pytest.raises(UnfitCluster, match=r"^worker: a task needs 1024 MiB, the worker has 1023 for each of its threads; "):
        needs.check("worker", (1 << 30) - 1, needs.packages)


def test_a_worker_that_comes_late_without_room_is_refused(client):
    """Its tasks would be ended, and the rows be blamed."""
    with pytest.raises(
        UnfitCluster, match=r": a task needs 1073741824 MiB, the worker has \d+ for each of its threads; give it more, or fewer threads$"
    ):
        client.submit(do_checked, need(1 << 50), abs, -1, pure=False).result()


WARMED = []


def warm(name):
    time.sleep(0.5)
    WARMED.append(name)


def count_warmed(_):
    return len(WARMED)


def addresses(client):
    return set(client.scheduler_info(n_workers=-1)["workers"])


def told(local, client):
    """Plugins of a client's, on a scheduler and its workers."""
    found = [*local.scheduler.plugins, *local.scheduler.worker_plugins, *(name for worker in local.workers.values() for name in worker.plugins)]
    return [name for name in found if client in name]


@pytest.mark.slow
def test_a_worker_that_comes_late_is_warm_before_its_first_task():
    """Those that were there are not asked; nor are those that do not fit, or come when it is over. Of two runs at once each has its own."""
    WARMED.clear()
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", memory_limit="auto") as local,
        distributed.Client(local) as client,
    ):

        def come():
            before = addresses(client)
            local.scale(len(before) + 1)
            client.wait_for_workers(len(before) + 1)
            (late,) = addresses(client) - before
            return client.submit(count_warmed, late, workers=[late], pure=False).result()

        def forget(run):
            run.close()
            until = time.monotonic() + 60
            while told(local, run.id) and time.monotonic() < until:
                time.sleep(0.02)
            assert told(local, run.id) == []

        one, two = (distributed.Client(local.scheduler_address, set_as_default=False) for _ in range(2))
        warm_late(one, addresses(client), need(0), warm, "one")
        assert client.submit(count_warmed, None, pure=False).result() == 0
        assert come() == 1
        assert come() == 2
        warm_late(two, addresses(client), need(1 << 60), warm, "one")
        assert come() == 3
        forget(two)
        assert come() == 4
        forget(one)
        assert come() == 4
    assert WARMED == ["one"] * 4


@pytest.mark.slow
def test_a_worker_of_somebody_else_s_can_start_meanwhile():
    """One without this package: what it is told travels with its code, and it goes on where the kernels are not there."""
    told = pickle.dumps(_make_plugin(frozenset(), pickle.dumps(warm)))
    foreign = "import asyncio, pickle, sys; sys.modules.update(leafledger=None, tests=None); from types import SimpleNamespace as worker;"
    foreign += f"asyncio.run(pickle.loads({told!r}).setup(worker(address='tcp://127.0.0.1:1')))"
    subprocess.run([sys.executable, "-c", foreign], check=True)


def test_what_tasks_are_called_with_is_small():
    """A scheduler holds all tasks of a run: of items of small files less than it takes to name them."""
    names = [f"s3://bucket/scores/date=2026-11-25/part-{k:05d}.parquet" for k in range(64)]
    items = [WorkItem(k, name, hashlib.sha256(name.encode()).hexdigest(), (0,), 0, 20, 0, ()) for k, name in enumerate(names)]
    assert len(pack(items).data) < sum(map(len, names)) + 64 * 64
