"""Where work is done: what may be asked for, and in which words it is told."""

import asyncio
import json
from types import SimpleNamespace

import distributed
import pytest

from leafledger import check_run, compare, drift, explain, report
from leafledger.pipeline.cluster import cgroups, resources
from leafledger.pipeline.cluster import start_client as cluster
from leafledger.pipeline.cluster.placement import SERIAL, make_placement
from leafledger.pipeline.errors import ClusterLost, UsageError
from tests.pipeline.threads import on_threads


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

    def give_up(address, needs, wait, security):
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


@pytest.fixture(scope="module")
def secured():
    """A cluster that encrypts by certificates of its own, which nobody has but who was given them."""
    with on_threads(n_threads=1, protocol="tls", host="127.0.0.1", security=distributed.Security.temporary()) as found:
        yield found


@pytest.mark.slow
def test_a_client_or_a_cluster_is_taken_for_its_scheduler(secured, example, tmp_path):
    """With its TLS settings, without which nobody comes in; the bytes are those of one thread, and the client is as it was."""
    told = {"ids": ["flight"], "values": True}
    expected = explain(example.model, example.data, tmp_path / "serial", scheduler="serial", **told)
    with pytest.raises(UsageError, match=f"^{secured.scheduler_address}: Dask has no certificate for TLS; its configuration names one in"):
        explain(example.model, example.data, tmp_path / "address", scheduler=secured.scheduler_address, **told)
    with distributed.Client(secured, set_as_default=False) as client:
        for name, given in (("client", client), ("cluster", secured)):
            assert explain(example.model, example.data, tmp_path / name, scheduler=given, **told).sha256 == expected.sha256
            assert json.loads((tmp_path / name / "provenance.json").read_text())["scheduler"] == secured.scheduler_address
            assert check_run(tmp_path / name, scheduler=given).sound
            assert not drift(tmp_path / name, against=tmp_path / "serial", by="carrier", scheduler=given).crossed
            assert report(tmp_path / name, scheduler=given).size > 0
        assert client.submit(sum, [1, 2]).result() == 3
        out = tmp_path / "compared.parquet"
        compared = compare(example.model, example.data, out, methods=["shapley", "banzhaf"], gap_rows=20, scheduler=client)
        assert {row["rows"] for row in compared.to_pylist()} == {20, 3000}


def test_a_scheduler_in_this_process_is_taken(example, tmp_path):
    """Which no network reaches, so that it needs no TLS."""
    with on_threads(n_threads=1) as cluster:
        assert cluster.scheduler_address.startswith("inproc://")
        found = explain(example.model, example.data, tmp_path / "run", scheduler=cluster)
    assert found.sha256 == explain(example.model, example.data, tmp_path / "serial", scheduler="serial").sha256


def test_a_client_that_is_closed_is_refused(example, tmp_path):
    """In one line, before anything is done; so is one that has no scheduler, and what is none."""
    with on_threads(n_threads=1) as cluster:
        client = distributed.Client(cluster, set_as_default=False)
        client.close()
    expected = "expected one that is connected to a scheduler"
    for given, says in (
        (client, f"scheduler is a Client that is closed, {expected}"),
        (cluster, f"scheduler is a LocalCluster that is closed, {expected}"),
        (3, "scheduler is 3, expected an address as tls://host:8786, 'serial', or a Client or a cluster of Dask"),
    ):
        with pytest.raises(UsageError) as error:
            explain(example.model, example.data, tmp_path / "run", scheduler=given)
        assert str(error.value) == says
    assert not (tmp_path / "run").exists()

    async def ask():
        make_placement(distributed.Client("tcp://127.0.0.1:1", asynchronous=True, set_as_default=False))  # nobody waited for it

    with pytest.raises(UsageError, match=f"^scheduler is a Client without an address, {expected}$"):
        asyncio.run(ask())


def test_a_client_elsewhere_needs_tls_too():
    """As an address does: whoever shares the network can run code on its workers."""
    given = SimpleNamespace(scheduler_address="tcp://10.0.0.1:8786", status="running", security=None)
    with pytest.raises(UsageError, match=r"^tcp://10.0.0.1:8786: is another host without TLS; use tls://…, or plain_tcp if the network is your own$"):
        make_placement(given)
    assert make_placement(given, plain_tcp=True).scheduler == "tcp://10.0.0.1:8786"
    with pytest.raises(UsageError, match=r"^workers is 2, which is for this machine, but scheduler is 'tcp://10.0.0.1:8786'; leave out one or"):
        make_placement(given, workers=2)
