"""Where work is done: what may be asked for, and in which words it is told."""

import pytest

from leafledger import check_run, compare, drift, explain, report
from leafledger.pipeline.cluster import cgroups, resources
from leafledger.pipeline.cluster import start_client as cluster
from leafledger.pipeline.cluster.placement import SERIAL, make_placement
from leafledger.pipeline.errors import ClusterLost, UsageError


@pytest.fixture
def machine(monkeypatch):
    """Four cores, and a TiB of memory."""
    monkeypatch.setattr(resources, "find_memory", lambda: 1 << 40)
    monkeypatch.setattr(cgroups, "OWN", "nowhere")
    monkeypatch.setattr(resources.os, "sched_getaffinity", lambda _: {0, 3, 5, 7}, raising=False)


@pytest.mark.parametrize(
    ("scheduler", "workers", "where"),
    [
        (SERIAL, None, "in this process"),
        (None, None, "on 4 threads"),
        (None, 3, "on a local cluster of 3 workers"),
        ("tcp://127.0.0.1:8786", None, "on tcp://127.0.0.1:8786"),
    ],
)
def test_it_is_where_it_was_asked_for(machine, scheduler, workers, where):
    """As for ``explain``, with a worker's share of the machine's memory."""
    placement = make_placement(scheduler, None, workers)
    assert placement.describe(10) == where
    assert placement.worker_memory == (1 << 40) // (workers or 1)


def test_what_explain_refuses_is_refused():
    """No workers or threads, both of them, and a scheduler elsewhere without TLS, unless that is asked for."""
    with pytest.raises(UsageError, match="workers"):
        make_placement(None, None, 0)
    with pytest.raises(UsageError, match=r"^threads is 0, expected"):
        make_placement(threads=0)
    with pytest.raises(UsageError, match=r"^threads is 2 and workers is 3: threads are of this process, "):
        make_placement(None, 2, 3)
    with pytest.raises(UsageError, match=r"^threads is 2, which is for this machine, but scheduler is 'serial'"):
        make_placement(SERIAL, 2)
    with pytest.raises(UsageError, match="tls://"):
        make_placement("tcp://10.0.0.1:8786")
    assert make_placement("tcp://10.0.0.1:8786", plain_tcp=True).scheduler == "tcp://10.0.0.1:8786"


@pytest.mark.parametrize(
    "work",
    [
        lambda example, runs, **where: check_run(runs[0], **where),
        lambda example, runs, **where: drift(runs[0], against=runs[1], **where),
        lambda example, runs, **where: report(runs[0], **where),
        lambda example, runs, **where: compare(example.model, example.data, runs[0].with_name("x.parquet"), methods=("shapley",), **where),
    ],
)
def test_a_scheduler_is_waited_for_as_long_as_is_asked(example, tmp_path, monkeypatch, work):
    """A cluster that starts workers as there is work has none left for who looks at a run."""
    runs = tmp_path / "one", tmp_path / "two"
    for run in runs:
        explain(example.model, example.data, run, scheduler="serial")

    def give_up(address, needs, wait):
        raise ClusterLost(f"{address}: waited for {wait:g} seconds")

    monkeypatch.setattr(cluster, "remote_client", give_up)
    with pytest.raises(ClusterLost, match="waited for 600 seconds"):
        work(example, runs, scheduler="tcp://127.0.0.1:1", wait=600)


@pytest.mark.parametrize(
    ("least", "shared", "threads"), [(1 << 30, 0, 4), (1 << 38, 0, 2), (1 << 41, 0, 1), (3 << 37, 1 << 38, 4), (1 << 41, 1 << 41, 1)]
)
def test_where_memory_is_short_there_are_fewer_threads(machine, least, shared, threads):
    """Two items are ahead of them, and they share what the process takes anyway; one is left, or as many as were asked for, if they were."""
    assert make_placement().with_room(least, shared).threads == threads
    assert make_placement(threads=8).with_room(least, shared).threads == 8
    assert make_placement(workers=3).with_room(least, shared) == make_placement(workers=3)
    assert make_placement(SERIAL).with_room(least, shared).threads == 1
