"""Where something is done with a finished run."""

import pytest

from leafledger import check_run, compare, drift, explain, report
from leafledger.pipeline.cluster import client as cluster
from leafledger.pipeline.cluster.placement import SERIAL
from leafledger.pipeline.errors import ClusterLost, UsageError
from leafledger.pipeline.runs.job.job import describe_where
from leafledger.pipeline.runs.job.run_job import make_run_job


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
    job = make_run_job("/runs/one", scheduler, workers, False)
    assert (job.out, describe_where(job, 10)) == ("/runs/one", where)
    assert job.worker_memory > 0
    assert job.workers == (workers or job.workers)


def test_what_explain_refuses_is_refused():
    """No workers, and a scheduler elsewhere without TLS, unless that is asked for."""
    with pytest.raises(UsageError, match="workers"):
        make_run_job("/runs/one", None, 0, False)
    with pytest.raises(UsageError, match="tls://"):
        make_run_job("/runs/one", "tcp://10.0.0.1:8786", None, False)
    assert make_run_job("/runs/one", "tcp://10.0.0.1:8786", None, True).options.plain_tcp


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
