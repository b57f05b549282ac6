"""What is waited for comes as it is done, or the wait is over once there were no workers, or no answer, for a while: it never lasts for good."""

import asyncio
import threading
import time
from contextlib import contextmanager
from functools import partial

import distributed
import pytest

from leafledger.pipeline.cluster import waiting as patience
from leafledger.pipeline.cluster.waiting import WorkerTimeout, as_completed, call_scheduler, fetch_result, find_workers, reported
from leafledger.pipeline.errors import ClusterLost
from leafledger.pipeline.runs.execute import dask as dask_
from tests.pipeline.threads import on_threads

SECONDS = 0.5
LOST = r"^the Dask cluster has had no workers for 0\.5 seconds; run again to go on from there$"
SILENT = r"^the Dask cluster has not answered for 0\.5 seconds; run again to go on from there$"


@contextmanager
def threads(n_workers):
    """A cluster whose workers are threads of this process, and its client."""
    with on_threads(n_workers) as found, distributed.Client(found) as client:
        yield found, client


@pytest.fixture(scope="module")
def client():
    with threads(1) as (_, found):
        yield found


@pytest.fixture
def given_up(monkeypatch):
    """Soon; a wait that lasts longer than the block may is a failure."""
    monkeypatch.setattr(patience, "REPLACE_SECONDS", SECONDS)

    @contextmanager
    def given_up(says=LOST):
        started = time.monotonic()
        with pytest.raises(ClusterLost, match=says):
            yield
        assert 0.9 * SECONDS < time.monotonic() - started < 30

    return given_up


def test_a_cluster_without_workers_is_given_up(given_up):
    """After a while, and not before: new ones may be starting."""
    with threads(0) as (_, client):
        futures = [client.submit(abs, -1)]
        with given_up():
            list(as_completed(client, futures))


def test_results_come_as_they_are_done(client):
    """Not in the order in which they were asked for."""
    futures = [client.submit(time.sleep, seconds, pure=False) for seconds in (0.6, 0.0, 0.3)]
    assert [futures.index(future) for (future,) in as_completed(client, futures)] == [1, 2, 0]


def test_results_that_are_there_come_together(client):
    """At most so many at a time, every one once."""
    futures = [client.submit(abs, k, pure=False) for k in range(5)]
    distributed.wait(futures)
    found = []
    for some in as_completed(client, futures, 2):
        found.append(some)
        time.sleep(0.2)  # what is done is there by then
    assert max(map(len, found)) == 2
    assert sorted(futures.index(future) for some in found for future in some) == list(range(5))


def test_what_a_task_returned_or_raised_is_fetched(client):
    """Of one, or of several by their keys."""
    made, failed = client.submit(abs, -3, pure=False), client.submit(int, "x", pure=False)
    assert fetch_result(client, made) == 3
    assert fetch_result(client, {"a": made}) == {"a": 3}
    with pytest.raises(ValueError, match="'x'"):
        fetch_result(client, failed)


async def close(local):
    """Let all workers go at once, and nothing come in their place."""
    await asyncio.gather(*(worker.close() for worker in list(local.workers.values())))


def test_results_whose_workers_are_gone_are_given_up(given_up):
    """What is done and not fetched yet went with them."""
    with threads(2) as (local, client):
        future = client.submit(abs, -1, pure=False)
        distributed.wait([future])
        local.sync(close, local)
        with given_up():
            fetch_result(client, future)


def echo(bundle):
    return bundle


class Bundle:
    """Of one item."""

    items, name = ("item",), "only"


def test_a_run_whose_workers_go_before_its_results_are_fetched_is_given_up(given_up, monkeypatch):
    """When its tasks are done, and the client knows by the time it asks that the results are lost."""
    with threads(2) as (local, client):

        def lost(*given):
            for ready in as_completed(*given):
                local.sync(close, local)
                while any(future.status == "finished" for future in ready):
                    time.sleep(0.02)
                yield ready

        monkeypatch.setattr(dask_, "as_completed", lost)
        with given_up():
            list(dask_._run_tasks(client, partial(client.submit, echo, pure=False), [Bundle()], "part", pytest.fail))


def test_a_run_whose_workers_go_while_its_results_are_fetched_is_given_up(given_up, monkeypatch):
    """When the client has asked for them."""
    with threads(2) as (local, client):
        call_scheduler = client._gather_remote

        async def lose(*given):
            await close(local)
            return await call_scheduler(*given)

        monkeypatch.setattr(client, "_gather_remote", lose)
        with given_up():
            list(dask_._run_tasks(client, partial(client.submit, echo, pure=False), [Bundle()], "part", pytest.fail))


OVER = threading.Event()


def last():
    """As long as the test does."""
    OVER.wait(60)


@pytest.fixture
def frozen():
    """A cluster whose scheduler keeps its connections and answers nobody, as one that is stopped does, and its client."""
    OVER.clear()
    with threads(1) as (local, client):
        handlers, over = local.scheduler.handlers, asyncio.Event()

        async def wait(**_):
            await over.wait()

        handlers.update(dict.fromkeys({*handlers} & {"identity", "gather", "broadcast", "register_worker_plugin"}, wait))
        yield client
        OVER.set()
        client.loop.add_callback(over.set)


@pytest.mark.parametrize(
    "wait",
    [
        lambda client: list(as_completed(client, [client.submit(last, pure=False)])),
        lambda client: fetch_result(client, client.submit(abs, -1, pure=False)),
        lambda client: call_scheduler(client, "broadcast", msg={"op": "versions"}),
        find_workers,
    ],
)
def test_a_scheduler_that_does_not_answer_is_given_up(frozen, given_up, wait):
    """Whatever it was asked for: it had workers before, which nobody knows of by now."""
    with given_up(SILENT):
        wait(frozen)


def test_a_scheduler_that_answers_late_is_waited_for(client, monkeypatch):
    """It may be busy, or not take a new connection at once; what it says then counts."""
    monkeypatch.setattr(patience, "LOOK_SECONDS", 0)
    failed, identify = [], patience._identify

    def late(*given):
        if len(failed) < 2:
            failed.append(time.sleep(0.1))
            raise OSError("timed out")
        return identify(*given)

    monkeypatch.setattr(patience, "_identify", late)
    left = WorkerTimeout(client)
    for _ in range(3):
        began = left._seen
        left.look()
        time.sleep(0.01)
    assert len(failed) == 2
    assert left._seen > began


def test_a_client_that_gave_up_is_said():
    """It has forgotten its scheduler by then."""
    with threads(1) as (_, client):
        client.close()
        with pytest.raises(ClusterLost, match=r"^the Dask cluster went away; run again to go on from there$"):
            find_workers(client)


def test_a_cluster_that_goes_away_is_said():
    """With how much was left to do."""
    with (
        pytest.raises(ClusterLost, match=r"^the Dask cluster went away with 7 parts to do; run again to go on from there$"),
        reported("x", 7),
    ):
        raise distributed.client.FuturesCancelledError([])
    with pytest.raises(KeyError), reported("x", 7):
        raise KeyError("other errors go on")
