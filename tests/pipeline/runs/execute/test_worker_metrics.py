"""A process counts what it makes of work items, and says so where somebody serves its metrics."""

import urllib.request

import distributed
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from leafledger import explain
from leafledger.pipeline.runs.execute.worker_metrics import METRICS, count_found, count_made, count_rejected


def totals():
    registry = CollectorRegistry()
    registry.register(METRICS)
    return {sample.name: sample.value for family in registry.collect() for sample in family.samples if sample.name.endswith("_total")}


def test_parts_are_counted():
    before = totals()
    count_made(10, 2.0)
    count_found()
    count_rejected()
    assert {name: value - before[name] for name, value in totals().items() if value != before[name]} == {
        "leafledger_worker_parts_total": 1,
        "leafledger_worker_parts_found_total": 1,
        "leafledger_worker_rows_total": 10,
        "leafledger_worker_parts_rejected_total": 1,
        "leafledger_worker_busy_seconds_total": 2.0,
    }


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_worker_of_dask_serves_them_with_its_own(example, tmp_path):
    """On the port of its dashboard, where it was asked for its own metrics before."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        (worker,) = cluster.scheduler_info["workers"].values()
        url = f"http://127.0.0.1:{worker['services']['dashboard']}/metrics"

        def served():
            with urllib.request.urlopen(url) as answer:
                families = text_string_to_metric_families(answer.read().decode())
                return {sample.name: sample.value for family in families for sample in family.samples}

        assert "dask_worker_threads" in served()
        manifest = explain(example.model, example.data, tmp_path / "run", scheduler=cluster.scheduler_address)
        found = served()
    assert found["leafledger_worker_rows_total"] == manifest.n_rows
    assert found["leafledger_worker_parts_total"] == len(manifest.parts)
    assert found["leafledger_worker_written_bytes_total"] >= sum(entry["size"] for entry in manifest.parts)
