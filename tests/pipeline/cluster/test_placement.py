"""Where work is done: what may be asked for, and in which words it is told."""

import pytest

from leafledger import check_run, compare, drift, explain, report
from leafledger.pipeline.cluster import cgroups, resources
from leafledger.pipeline.cluster import start_client as cluster
from leafledger.pipeline.cluster.placement import SERIAL, make_placement
from leafledger.pipeline.errors import ClusterLost, UsageError


@pytest.mark.parametrize(
    ("scheduler", "workers", "where"),
    [
        (SERIAL, None, "in this process"),
        (None, 3, "on a local cluster of 3 workers"),
        ("tcp://127.0.0.1:8786", None, "on tcp://127.0.0.1:8786"),
    ],
)
def test_it_is_where_it_was_asked_for(scheduler, workers, where):
    """As for ``explain``, with a worker's share of the machine's memory."""
    placement = make_placement(scheduler, workers, False)
    assert placement.describe(10) == where
    assert placement.worker_memory > 0
    assert placement.workers == (workers or placement.workers)


def test_what_explain_refuses_is_refused():
    """No workers, and a scheduler elsewhere without TLS, unless that is asked for."""
    with pytest.raises(UsageError, match="workers"):
        make_placement(None, 0, False)
    with pytest.raises(UsageError, match="tls://"):
        make_placement("tcp://10.0.0.1:8786", None, False)
    assert make_placement("tcp://10.0.0.1:8786", None, True).scheduler == "tcp://10.0.0.1:8786"


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
    ("asked", "small", "where"),
    [
        ({}, True, "in this process"),
        ({}, False, "on a local cluster of 3 workers"),
        ({"workers": 2}, True, "on a local cluster of 2 workers"),
        ({"workers": 1}, False, "on a local cluster of 1 worker"),
        ({"scheduler": "serial"}, False, "in this process"),
        ({"scheduler": "tls://host:8786"}, True, "on tls://host:8786"),
    ],
)
def test_little_work_stays_in_this_process_unless_asked_otherwise(monkeypatch, asked, small, where):
    """No more workers are named than there are tasks, here three."""
    monkeypatch.setattr(resources, "_find_memory", lambda: 1 << 40)
    monkeypatch.setattr(cgroups, "OWN", "nowhere")
    monkeypatch.setattr(resources.os, "sched_getaffinity", lambda _: {0, 3, 5, 7}, raising=False)
    placement = make_placement(asked.get("scheduler"), asked.get("workers"), False)
    assert placement.here_if(small).describe(3) == where
