"""Workers that die, freeze or wake up: Dask does their work again, and what is published is published once."""

import os
import random
import shutil
import signal
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import dask
import distributed
import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from leafledger import check_run, drift, explain
from leafledger.pipeline.cluster import start_client as cluster
from leafledger.pipeline.cluster import waiting as patience
from leafledger.pipeline.errors import ClusterLost, UnfitCluster, UsageError
from leafledger.pipeline.runs.execute import dask as dask_
from tests.faults.interrupting import struck
from tests.faults.preload import DEADLY, DEADLY_FILE, GREEDY, SECONDS
from tests.faults.proxy import Rule, afterwards
from tests.faults.verdict import ID, committed, contents
from tests.pipeline.conftest import SMALL, damage, write_small
from tests.pipeline.forking import forked_workers
from tests.pipeline.running import attributions

SEEDS, KILLS = 20, 8


@pytest.fixture(autouse=True)
def slow_workers(monkeypatch):
    """Work lasts long enough to be interrupted; workers start in no time."""
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__PRELOAD", '["tests.faults.preload"]')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv(SECONDS, "0.3")
    with dask.config.set({"distributed.worker.preload": ["tests.faults.preload"]}), forked_workers(**{SECONDS: "0", DEADLY: "", DEADLY_FILE: ""}):
        yield


def workers():
    """Processes of Dask's workers, children of the one that they are forked of, which is this one's."""
    found, here = [], os.getpid()
    for process in psutil.Process().children(recursive=True):
        try:
            if "forkserver" in " ".join(process.cmdline()) and process.ppid() != here and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


def strike(tally, number, chosen):
    """Send a signal to processes that may be gone by then."""
    for process in chosen:
        try:
            process.send_signal(number)
            tally.faults[f"worker {signal.Signals(number).name}"] += 1
        except psutil.NoSuchProcess:
            continue


def thaw(tally, frozen):
    strike(tally, signal.SIGCONT, frozen)


@pytest.mark.parametrize("case", ["frozen", *(pytest.param(case, marks=pytest.mark.long) for case in ("one", "all", "terminated"))])
def test_workers_that_die_or_freeze_cost_nothing(many, tally, tmp_path, case):
    """The bytes are those of the serial run; one that wakes up finds its work done."""
    timers = []

    def act():
        found = workers()
        assert found
        if case == "frozen":
            strike(tally, signal.SIGSTOP, found[:1])
            timers.append(threading.Timer(8, thaw, (tally, found[:1])))
            timers[-1].start()
        else:
            strike(tally, signal.SIGTERM if case == "terminated" else signal.SIGKILL, found if case == "all" else found[:1])

    with dask.config.set({"distributed.scheduler.worker-ttl": "3s"}):
        many.explain(str(tmp_path / "run"), scheduler=None, workers=2, progress=struck(act))
    for timer in timers:
        timer.join()
    many.judge(str(tmp_path / "run"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, SEEDS))])
def test_chaos(many, tally, tmp_path, seed):
    """Workers are killed at random times: the result is the fault-free one, at the latest of the run after one that lost its cluster."""
    rng, over, out = random.Random(seed), threading.Event(), str(tmp_path / "run")

    def kill():
        for k in range(KILLS):
            if k and over.wait(rng.uniform(0.2, 3.0)):
                return
            found = workers()
            if found:
                strike(tally, signal.SIGKILL, [rng.choice(found)])

    killer = threading.Thread(target=kill)
    try:
        with dask.config.set({"distributed.scheduler.allowed-failures": 30}):
            many.explain(out, scheduler=None, workers=2, progress=struck(killer.start))
    except ClusterLost:
        over.set()
        many.go_on(out)
    else:
        many.judge(out)
    finally:
        over.set()
        if killer.ident is not None:
            killer.join()


@pytest.mark.more
def test_drift_survives_its_workers(many, tally, tmp_path, monkeypatch):
    """One is killed while a run is measured: what is counted and compared is the same, byte by byte."""
    for name, rows in (("night", many.data), ("before", f"{many.data}/month=1")):
        explain(many.model, rows, tmp_path / name, ids=[ID], scheduler="serial")
    drift(tmp_path / "night", against=tmp_path / "before", scheduler="serial")
    expected, killed = contents(str(tmp_path / "night")), []
    shutil.rmtree(tmp_path / "night" / "after")
    (tmp_path / "night" / "after.json").unlink()

    def kill():
        killed.extend(workers()[:1])
        strike(tally, signal.SIGKILL, killed)

    drift(tmp_path / "night", against=tmp_path / "before", workers=2, progress=struck(kill))
    assert killed
    assert not any(process.is_running() for process in killed)
    assert contents(str(tmp_path / "night")) == expected


def judge_without(many, tally, out, manifest, part):
    """All is published but one item, which is named."""
    tally.finished += 1
    assert [entry.part for entry in manifest.rejected] == [part]
    assert "the processes that it was given to died" in manifest.rejected[0].reason
    assert len(manifest.parts) == 11
    assert manifest.n_rows + manifest.n_rejected == 3000
    check_run(out)
    found = contents(str(out))
    assert [name for name in found if name.startswith("attributions/") and found[name] != many.reference[name]] == []


def test_an_item_that_ends_its_worker_is_rejected(many, tally, tmp_path, monkeypatch):
    """A segmentation fault is tried again a few times, elsewhere and alone; all the rest is published."""
    monkeypatch.setenv(DEADLY, "5")
    monkeypatch.setenv(SECONDS, "0")
    out = tmp_path / "run"
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        manifest = explain(many.model, many.data, out, ids=[ID], workers=2)
    tally.faults["segmentation fault"] += 1
    judge_without(many, tally, out, manifest, 5)


@pytest.mark.parametrize("repeats", [1, pytest.param(50, marks=pytest.mark.long)])
def test_items_that_shared_a_worker_with_a_deadly_one_are_published(many, tally, tmp_path, monkeypatch, repeats):
    """All twelve run on one worker when one of them ends it: each is tried again alone, and the deadly one alone is rejected, every time."""
    monkeypatch.setenv(DEADLY, "5")
    monkeypatch.setenv(SECONDS, "1")  # all have started when the deadly one ends them
    suspects, retry_isolated = [], dask_.retry_isolated

    def spy(do, attempt, suspect):
        suspects.append(suspect)
        return retry_isolated(do, attempt, suspect)

    monkeypatch.setattr(dask_, "retry_isolated", spy)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0, **cluster.KEEP_WORKERS}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=12, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0) as local,
    ):
        for k in range(repeats):
            suspects.clear()
            out = tmp_path / f"run-{k}"
            manifest = explain(many.model, many.data, out, ids=[ID], scheduler=local.scheduler_address)
            tally.faults["segmentation fault"] += 2
            assert len(suspects) > 10
            judge_without(many, tally, out, manifest, 5)


def test_a_file_that_ends_its_worker_takes_no_others_with_it(example, tally, tmp_path, monkeypatch):
    """Of a part of several files one is a segmentation fault and one is damaged: both are rejected, and all else is as where both are damaged."""
    data, asked = write_small(example.frame, tmp_path / "data"), {"ids": ["flight"], "item_rows": 100}
    deadly, damaged = data / "month=1" / "04.parquet", data / "month=1" / "03.parquet"
    damage(damaged)
    monkeypatch.setenv(DEADLY_FILE, str(deadly))
    monkeypatch.setenv(SECONDS, "0")
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        manifest = explain(example.model, data, tmp_path / "run", workers=2, **asked)
    tally.faults["segmentation fault"] += 2
    tally.finished += 1
    assert [(entry.part, entry.uri, entry.n_rows) for entry in manifest.rejected] == [(0, str(damaged), 44), (1, str(deadly), 60)]
    assert "cannot read" in manifest.rejected[0].reason
    assert manifest.rejected[1].reason == f"{deadly}: row groups [0]: the processes that it was given to died, every time"
    assert check_run(tmp_path / "run", deep=True, all_rows=True).n_again == manifest.n_rows == 2 * sum(SMALL) - 104
    damage(deadly)
    explain(example.model, data, tmp_path / "whole", scheduler="serial", **asked)
    assert attributions(tmp_path / "run").equals(attributions(tmp_path / "whole"))
    parts = [{path.name: path.read_bytes() for path in (tmp_path / run / "attributions").iterdir()} for run in ("run", "whole")]
    assert {name for name in parts[0] if parts[0][name] != parts[1][name]} == {"part-00001.parquet"}  # whose footer says why


def test_a_cluster_that_loses_its_workers_for_good_is_given_up(many, tally, tmp_path, monkeypatch):
    """None takes their place: the run ends in bounded time, and another cluster does what is missing."""
    monkeypatch.setattr(patience, "REPLACE_SECONDS", 2)
    out = str(tmp_path / "run")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as local:

        def end():
            local.scale(0)
            tally.faults["all workers retired"] += 1

        started = time.monotonic()
        error = many.fails(out, scheduler=local.scheduler_address, progress=struck(end))
    assert str(error) == "the Dask cluster has had no workers for 2 seconds; run again to go on from there"
    assert time.monotonic() - started < 60
    many.go_on(out)


@pytest.mark.long
def test_an_item_that_takes_all_memory_is_rejected(many, tally, tmp_path, start_cluster):
    """Its worker is ended at its limit, and so is the next; all the rest is published, within the limit that the plan says."""
    address, _ = start_cluster(
        options=("--memory-limit", "1GiB"), **{GREEDY: "7", SECONDS: "0", "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    )
    out = tmp_path / "run"
    manifest = explain(many.model, many.data, out, ids=[ID], scheduler=address)
    tally.faults["memory limit"] += 1
    judge_without(many, tally, out, manifest, 7)


STEPS = ["_tables/.*npy", "part-00000", "part-00003", "summary", "manifest"]


@pytest.mark.long
@pytest.mark.parametrize("victim", ["scheduler", "workers"])
@pytest.mark.parametrize("step", STEPS)
def test_a_cluster_killed_at_a_step_of_the_commit(runner, proxy, bucket, start_cluster, monkeypatch, step, victim):
    """Its scheduler, or all its workers, at once after the store has something new, twice in a row: the next run does what is missing."""
    monkeypatch.setenv(SECONDS, "0")
    out, left = f"{bucket}/run", {}
    for pattern in (step, "(part|summary|manifest)"):
        address, (scheduler, *nannies) = start_cluster()

        def kill(scheduler=scheduler, nannies=nannies):
            """A worker is what its nanny has started, and starts again."""
            chosen = [scheduler] if victim == "scheduler" else [process for nanny in nannies for process in psutil.Process(nanny.pid).children()]
            for process in chosen:
                process.kill()

        fault = afterwards(kill)
        fault.__name__ = f"{victim} SIGKILL afterwards"
        with proxy.broken(Rule(f"PUT .*{pattern}", fault)), suppress(ClusterLost):
            runner.explain(out, left, scheduler=address)
        left = committed(out)
    if "manifest.json" in contents(out):
        runner.judge(out, left)
    else:
        address, _ = start_cluster()
        runner.go_on(out, scheduler=address)


@pytest.mark.parametrize("package", ["numba", pytest.param("leafledger", marks=pytest.mark.long)])
def test_workers_with_other_packages_are_refused(many, tally, tmp_path, start_cluster, package):
    """Before anything is explained: what they would publish might differ in its bits."""
    (tmp_path / f"{package}-0.0.7.dist-info").mkdir()
    (tmp_path / f"{package}-0.0.7.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.7\n")
    address, _ = start_cluster(PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    tally.faults["workers with other packages"] += 1
    with pytest.raises(UnfitCluster, match=f"the worker has {package} 0.0.7, expected .* as here"):
        many.explain(str(tmp_path / "run"), scheduler=address)
    assert committed(str(tmp_path / "run")) == {}


@pytest.fixture
def certificate(tmp_path):
    """Names of a certificate that signs itself and of its key, in Dask's configuration."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leafledger")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - timedelta(1), now + timedelta(1))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(key, hashes.SHA256())
    files = {"ca-file": tmp_path / "certificate.pem", "key": tmp_path / "key.pem"}
    files["ca-file"].write_bytes(made.public_bytes(Encoding.PEM))
    files["key"].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    own = {f"{who}.{what}": files[name] for who in ("client", "worker", "scheduler") for what, name in (("cert", "ca-file"), ("key", "key"))}
    return {f"distributed.comm.tls.{name}": str(path) for name, path in ({"ca-file": files["ca-file"]} | own).items()}


@pytest.mark.long
def test_a_scheduler_with_tls_serves_who_has_its_certificate(many, tmp_path, start_cluster, certificate, monkeypatch):
    """With it a run is the serial one; without it, or without TLS, nothing is done there."""
    for name, path in certificate.items():
        monkeypatch.setenv("DASK_" + name.replace(".", "__").replace("-", "_").upper(), path)
    with dask.config.set(certificate):
        address, _ = start_cluster("tls")
        many.explain(str(tmp_path / "run"), scheduler=address)
        many.judge(str(tmp_path / "run"))
        error = many.fails(str(tmp_path / "other"), scheduler=address.replace("tls", "tcp"))
        assert "no Dask scheduler answers there" in str(error)
    with pytest.raises(UsageError, match=r"Dask has no certificate for TLS; its configuration names one in distributed\.comm\.tls"):
        many.explain(str(tmp_path / "other"), scheduler=address)
    assert committed(str(tmp_path / "other")) == {}


def test_a_local_cluster_listens_on_the_loopback_address_alone(many, tmp_path):
    """An open scheduler would run anybody's code."""
    listening = []

    def look():
        for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
            listening.extend(entry.laddr.ip for entry in process.net_connections("inet") if entry.status == psutil.CONN_LISTEN)

    many.explain(str(tmp_path / "run"), scheduler=None, workers=2, progress=struck(look))
    assert len(listening) > 3
    assert set(listening) <= {"127.0.0.1", "::1"}
