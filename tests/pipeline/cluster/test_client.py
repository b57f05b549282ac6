"""Dask's part of a run: which clusters are taken, what a dead worker costs, and when a cluster is given up; its deaths are told here, not made."""

import asyncio
import logging
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import dask
import distributed
import pytest
from distributed.comm import CommClosedError
from distributed.scheduler import KilledWorker

from leafledger.pipeline.cluster import client as cluster
from leafledger.pipeline.cluster import tasks as tasks_
from leafledger.pipeline.cluster import waiting as waiting_
from leafledger.pipeline.cluster.placement import Placement
from leafledger.pipeline.cluster.requirements import need
from leafledger.pipeline.dataset.files.listing import Rejected, WorkItem
from leafledger.pipeline.errors import ClusterLost, InvalidLabel, StorageError, UnfitCluster, WorkersDied
from leafledger.pipeline.runs.execute import dask as dask_
from leafledger.pipeline.runs.execute.bundles import BundleResult, Task, make_bundles

ITEMS = tuple(WorkItem(k, f"f{k}.parquet", "", (0, 1), 0, 10, 0, ()) for k in range(6))
STARTED = []


@pytest.fixture(scope="module")
def threads():
    """A cluster whose workers are threads of this process, so that what tests put in the place of work is what is done; it has the whole
    machine's memory, for a worker whose process has used up its own pauses."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=4, processes=False, dashboard_address="127.0.0.1:0", memory_limit="auto") as found:
        yield found


@pytest.fixture
def client(threads):
    STARTED.clear()
    with distributed.Client(threads) as found:
        yield found


def killed(item):
    """What Dask raises of a task whose workers died."""
    return KilledWorker(f"part-{item.part}", SimpleNamespace(address="tcp://127.0.0.1:1"), 3)


class Work:
    """What is done in the place of parts: items that kill their workers so many times, and what they become else."""

    def __init__(self, deaths=(), error=None):
        self.left, self.error, self.tried = dict(deaths), error, []
        self.running, self.lock, self.together = 0, threading.Lock(), []

    def __call__(self, task, bundle):
        (item,) = bundle.items
        with self.lock:
            self.running += 1
            self.tried.append(item.part)
            self.together.append((item.part, self.running))
            dies = self.left.get(item.part, 0) > 0
            self.left[item.part] = self.left.get(item.part, 0) - 1
        time.sleep(0.02)
        with self.lock:
            self.running -= 1
        if dies:
            raise killed(item)
        if self.error and item.part == 2:
            raise self.error
        return f"{task.run} {task.recipe} {task.tables} {item.part}"

    def __reduce__(self):
        return _find, (id(self),)


WORKS = {}


def _find(number):
    """Work travels by name: it is counted here."""
    return WORKS[number]


def run_all(client, monkeypatch, work):
    WORKS[id(work)] = work
    monkeypatch.setattr(cluster, "do_bundle", work)
    return list(dask_.run_dask(client, Task("run", "rec", "tables"), make_bundles(ITEMS, {}, 0), 0))


def test_every_item_becomes_a_part(client, monkeypatch):
    """From the places that it is told."""
    work = Work()
    assert sorted(run_all(client, monkeypatch, work)) == [f"run rec tables {k}" for k in range(6)]
    assert sorted(work.tried) == list(range(6))


@pytest.mark.parametrize("other", [Task("run", "other", "tables"), Task("run", "rec", "others")], ids=["recipe", "tables"])
def test_a_run_in_the_folder_of_another_does_its_own_work(threads, client, monkeypatch, other):
    """The client of the first holds on to what it has; somebody has removed the folder, and what comes next there is of another model or method."""
    work, task, (bundle,) = Work(), Task("run", "rec", "tables"), make_bundles(ITEMS[:1], {}, 0)
    WORKS[id(work)] = work
    monkeypatch.setattr(cluster, "do_bundle", work)
    monkeypatch.setattr(cluster, "cancel", lambda *_: None)
    first = dask_.run_dask(client, task, [bundle], 0)
    held = [next(first), *client.futures]
    with distributed.Client(threads, set_as_default=False) as second:
        assert list(dask_.run_dask(second, other, [bundle], 0)) == [f"run {other.recipe} {other.tables} 0"]
        assert list(dask_.run_dask(second, task, [bundle], 0)) == held[:1]
    assert len(held) == 2
    assert work.tried == [0, 0]


def count(run, recipe, query, item, first_row):
    """Instead of a background's rows, of whichever number the first is."""
    return f"{recipe} {query} {item.part}"


@pytest.mark.parametrize(("recipe", "query"), [("other", "query"), ("rec", "another")])
def test_a_background_of_another_run_in_the_folder_is_counted(threads, client, monkeypatch, recipe, query):
    """What is counted is kept for all later runs."""
    monkeypatch.setattr(cluster, "count_item", count)
    monkeypatch.setattr(cluster, "merge_counts", lambda *counted: ", ".join(counted))
    monkeypatch.setattr(cluster, "cancel", lambda client, futures: held.extend(futures))
    held, given = [], (ITEMS[:2], 0, lambda _: None)
    assert dask_.count_dask(client, "run", "rec", "query", *given) == "rec query 0, rec query 1"
    with distributed.Client(threads, set_as_default=False) as second:
        assert dask_.count_dask(second, "run", recipe, query, *given) == f"{recipe} {query} 0, {recipe} {query} 1"
    held.clear()


def test_a_suspect_is_tried_again_alone(client, monkeypatch):
    """Items whose workers died wait until all others are done; one that was there by chance becomes a part, one that kills again is rejected."""
    work = Work({1: 1, 4: 2})
    found = run_all(client, monkeypatch, work)
    (done,) = (each for each in found if isinstance(each, BundleResult))
    says = "f4.parquet: row groups [0, 1]: the workers that it was given to died, every time"
    assert done == BundleResult(0, 4, (Rejected(4, "f4.parquet", (0, 1), 10, says),), None)
    assert sorted(each for each in found if isinstance(each, str)) == [f"run rec tables {k}" for k in (0, 1, 2, 3, 5)]
    assert sorted(work.tried[:6]) == list(range(6))
    assert sorted(work.tried[6:]) == [1, 4]
    assert all(running == 1 for _, running in work.together[6:])


@pytest.mark.parametrize("error", [InvalidLabel("f2.parquet: row 3"), StorageError("f2.parquet: cannot read")])
def test_an_error_of_the_work_ends_the_run_as_it_is(client, monkeypatch, error):
    """Tasks that have not begun are cancelled."""
    with pytest.raises(type(error), match=str(error)):
        run_all(client, monkeypatch, Work(error=error))


def dies(task, item):
    raise killed(item)


def test_workers_that_die_of_other_work_end_it(client):
    """With the item that they were given."""
    with pytest.raises(WorkersDied, match=r"^f\d\.parquet: row groups \[0, 1\]: the workers that it was given to died$"):
        list(tasks_.map_dask(client, dies, None, ITEMS, 0))


def test_a_cluster_that_goes_away_is_said(client):
    """With how much was left to do."""
    with (
        pytest.raises(ClusterLost, match=r"^the Dask cluster went away with 7 parts to do; run again to go on from there$"),
        waiting_._reported("x", 7),
    ):
        raise distributed.client.FuturesCancelledError([])
    with pytest.raises(KeyError), waiting_._reported("x", 7):
        raise KeyError("other errors go on")


def test_many_results_are_one_question(client, monkeypatch):
    """What is not there, or failed, is asked for alone, and says so then."""
    asked, gather = [], client.gather
    monkeypatch.setattr(client, "gather", lambda futures, **given: asked.append(len(futures)) or gather(futures, **given))
    futures = [client.submit(abs, -k, pure=False) for k in range(3)]
    failed = client.submit(int, "x", pure=False)
    distributed.wait([*futures, failed])
    assert dask_._gather(client, [*futures, failed]) == {future.key: k for k, future in enumerate(futures)}
    assert asked == [3]


def test_a_result_that_was_lost_leaves_the_others_to_be_asked_alone(client, monkeypatch):
    """A worker may die between the end of a task and the question for its result."""
    gather = client.gather

    def lose(asked, **given):
        if isinstance(asked, dict):
            raise killed(ITEMS[0])
        return gather(asked, **given)

    monkeypatch.setattr(client, "gather", lose)
    work = Work()
    assert dask_._gather(client, []) == {}
    assert sorted(run_all(client, monkeypatch, work)) == [f"run rec tables {k}" for k in range(6)]
    assert sorted(work.tried) == list(range(6))


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
    job = SimpleNamespace(options=SimpleNamespace(scheduler=threads.scheduler_address, wait=5))
    STARTED.clear()
    with cluster.warm_client(job, 1, 0, warm, "tables") as client:
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
    """A cluster of one worker over TCP, for tests that break it, and the job that is done there."""
    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": "auto"}
    brief = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with brief, distributed.LocalCluster(n_workers=1, threads_per_worker=1, **options) as found:
        yield found, SimpleNamespace(options=SimpleNamespace(scheduler=found.scheduler_address, wait=5))


@pytest.mark.parametrize("step", ["check_workers", "find_workers", "warm_late"])
def test_a_scheduler_that_goes_away_before_the_first_part_is_said(own, monkeypatch, step):
    """While workers are asked what they are and where, and while it is told what those that come late have to do."""
    (local, job), whole = own, getattr(cluster, step)

    def last(*arguments, **given):
        local.sync(local.scheduler.close)
        return whole(*arguments, **given)

    monkeypatch.setattr(cluster, step, last)
    with pytest.raises(ClusterLost, match=AWAY), cluster.warm_client(job, 1, 0, warm, 1):
        pytest.fail("it is gone")


def test_a_worker_that_goes_away_before_the_first_part_leaves_nothing_on_the_scheduler(own):
    """It is told what workers have to do that come late, and so is every other one, until it is taken back."""
    local, job = own

    async def go(**_):
        raise CommClosedError("gone")

    local.workers[0].handlers["plugin-add"] = go
    with pytest.raises(ClusterLost, match=AWAY), cluster.warm_client(job, 1, 0, warm, 1):
        pytest.fail("it is gone")
    until = time.monotonic() + 60
    while local.scheduler.clients.keys() - {"fire-and-forget"} and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(name.startswith("leafledger") for name in [*local.scheduler.worker_plugins, *local.scheduler.plugins])


def test_a_scheduler_that_goes_away_while_a_result_is_fetched_is_said(own):
    """Its tasks were done."""
    local, job = own

    async def go(**_):
        raise CommClosedError("gone")

    local.scheduler.handlers["gather"] = go
    with (
        pytest.raises(ClusterLost, match=r"^the Dask cluster went away with 6 parts to do; run again to go on from there$"),
        cluster.remote_client(job.options.scheduler, need(0), 5) as client,
    ):
        list(tasks_.map_dask(client, describe, None, ITEMS, 0))


def describe(task, item):
    return item.uri


def test_a_run_whose_client_gave_up_ends_in_one_line(own):
    """When it looked in vain for a scheduler, nobody can be told that the tasks are not wanted any more."""
    address = own[1].options.scheduler

    def give_up():
        with cluster.remote_client(address, need(0), 5) as client:
            for _ in tasks_.map_dask(client, describe, None, ITEMS, 0):
                client.sync(client._close)

    with pytest.raises(ClusterLost, match=r"^the Dask cluster went away with \d parts to do; run again to go on from there$"):
        give_up()


def test_a_scheduler_that_freezes_when_a_client_has_connected_is_given_up(own, monkeypatch):
    """In a line that says what was waited for, not that there are no workers."""
    (local, job), connect, over = own, distributed.Client, asyncio.Event()

    async def freeze(**_):
        await over.wait()

    def connected(*given, **more):
        client = connect(*given, **more)
        local.scheduler.handlers["identity"] = freeze
        return client

    monkeypatch.setattr(distributed, "Client", connected)
    says = "the Dask scheduler does not answer when it is asked for workers, expected at least one within 5 seconds"
    with pytest.raises(ClusterLost, match=f"^{job.options.scheduler}: {says}$"), cluster.warm_client(job, 1, 0, warm, 1):
        pytest.fail("it is frozen")
    local.loop.add_callback(over.set)


def test_a_worker_that_comes_while_others_compile_compiles_too(own):
    """Before it is given a part: nobody has asked it to when the others were."""
    local, job = own
    STARTED.clear()
    GROWING[:] = [local]
    with cluster.warm_client(job, 1, 0, warm_slowly, "tables") as client:
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


def test_nobody_else_gets_into_the_local_cluster(tmp_path):
    """Whoever may submit a task runs code as the cluster's user: without its certificate there is no way in, with one's own there is none either."""
    mark = tmp_path / "mark"
    with cluster.local_client(Placement(None, 1, 1, 1 << 30), 1) as client:
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


def test_a_script_that_is_not_guarded_is_told_so(example, tmp_path):
    """Its workers import it and would explain again, each with workers of its own; both refuse in a line, which Prefect does not try again."""
    script = tmp_path / "script.py"
    script.write_text(f"import leafledger\n\nleafledger.explain({example.model!r}, {example.data!r}, {str(tmp_path / 'out')!r}, workers=1)\n")
    said = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240, check=False)
    assert said.returncode == 1
    lines = said.stderr.splitlines()
    guard = "a script that calls Leafledger must do so under if __name__ == '__main__'"
    assert f"leafledger.pipeline.errors.UsageError: a worker imports the script that started it, which calls Leafledger again; {guard}" in lines
    assert lines[-1].startswith("leafledger.pipeline.errors.UnfitCluster: the local cluster's workers do not start (")
    assert lines[-1].endswith(f"; {guard}, since every worker imports it")
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_script_from_standard_input_is_told_so(example, tmp_path):
    """Python's workers would look for a file of that name; what is not a script at all, as with -c or in a notebook, is not imported."""
    script = f"import leafledger\nleafledger.explain({example.model!r}, {example.data!r}, {str(tmp_path / 'out')!r}, workers=1)\n"
    said = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, timeout=240, check=False)
    assert said.returncode == 1
    assert said.stderr.splitlines()[-1] == (
        "leafledger.pipeline.errors.UsageError: the script is read from <stdin>, and a local cluster's workers import it: write it to a file, or "
        "give scheduler='serial'"
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=240, check=True)
    assert (tmp_path / "out" / "manifest.json").exists()
