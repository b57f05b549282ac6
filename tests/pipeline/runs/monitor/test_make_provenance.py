"""How a run was made is kept beside it: truly, once, whole or not at all, and it costs no run; what is published is the same without it."""

import json
import os
import platform
import socket
from datetime import datetime
from importlib.metadata import version

import numpy
import pytest

from leafledger import check_run, explain, read_run
from leafledger.pipeline.cluster.worker_identity import Machine, Worker
from leafledger.pipeline.errors import StorageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.monitor.attempt import Attempt
from leafledger.pipeline.runs.monitor.make_provenance import make_provenance
from leafledger.pipeline.runs.records.manifest import read_manifest
from leafledger.pipeline.runs.records.part import Part
from leafledger.pipeline.runs.records.provenance import FlowRun, Workers
from leafledger.pipeline.stores import commit
from leafledger.pipeline.stores.traffic import Moved
from tests.pipeline.running import contents

HERE = Machine("here", "a cpu")


def test_a_run_says_how_it_was_made(serial, example):
    """Times around it, versions that others say too, this machine, this process, every part made."""
    out, manifest = serial
    found = json.loads((out / "provenance.json").read_text())
    assert found["manifest"] == manifest.sha256
    assert [found["packages"][name] for name in ("leafledger", "numpy")] == [version("leafledger"), numpy.__version__]
    assert (found["python"], found["scheduler"], found["flow"]) == (platform.python_version(), "serial", None)
    assert found["client"]["host"] == socket.gethostname()
    assert found["workers"] == [{"machine": found["client"], "processes": 1}]
    assert list(found["seconds"]) == ["planning", "preparing", "explaining", "merging", "publishing"]
    assert (found["parts_made"], found["parts_found"]) == (len(manifest.parts), 0)
    started, finished = (datetime.fromisoformat(found[name]).timestamp() for name in ("started", "finished"))
    written = os.stat(out / "manifest.json").st_mtime
    assert started - 1 <= written <= finished + 1
    assert 0 <= sum(found["seconds"].values()) <= finished - started + 1
    assert read_run(out).provenance().text == (out / "provenance.json").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_a_cluster_is_told_by_its_processes(example, serial, tmp_path):
    """Two made the parts, or one did before the other was there; what is published is the serial run's, byte for byte."""
    explain(example.model, example.data, tmp_path / "run", ids=["flight", "name"], workers=2)
    found = read_run(tmp_path / "run").provenance()
    assert (found.scheduler, found.parts_made) == (None, len(read_manifest(str(tmp_path / "run")).parts))
    assert [each.machine.host for each in found.workers] == [socket.gethostname()]
    assert 1 <= found.workers[0].processes <= 2
    assert {"dask", "distributed"} <= set(found.packages)
    assert contents(tmp_path / "run") == contents(serial[0])


def test_what_was_done_before_is_told_from_what_was_made(example, tmp_path):
    """A run that is finished is left alone; one that is gone on with found all parts but one, and has a record of its own."""
    out = tmp_path / "run"
    manifest = explain(example.model, example.data, out, scheduler="serial")
    before = (out / "provenance.json").read_bytes()
    explain(example.model, example.data, out, scheduler="serial")
    assert (out / "provenance.json").read_bytes() == before
    for name in ("manifest.json", "attributions/part-00000.parquet", "provenance.json"):
        (out / name).unlink()
    assert explain(example.model, example.data, out, scheduler="serial") == manifest
    found = read_run(out).provenance()
    assert (found.parts_made, found.parts_found) == (1, len(manifest.parts) - 1)
    assert check_run(out).sound


def test_hosts_and_processes_are_counted(example, tmp_path):
    """Whoever found a part made nothing; an address is kept without its password, and a flow run by its name."""
    there = Machine("there", "b cpu")
    workers = [(Worker(HERE, 1), 1.0), (Worker(HERE, 1), 2.0), (Worker(HERE, 2), 1.0), (Worker(there, 1), 1.0), (Worker(there, 2), 0.0)]
    parts = [Part(k, 1, 1, "", None, seconds, {}, worker, Moved()) for k, (worker, seconds) in enumerate(workers)]
    job = make_job(example.model, example.data, tmp_path / "run", Options(scheduler="tls://me:canary@host:8786"))
    manifest = explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    flow = FlowRun("2026-03-02", "id", "nightly")
    found = make_provenance(job, Attempt(flow), parts, manifest)
    assert found.workers == (Workers(HERE, 2), Workers(there, 1))
    assert (found.parts_made, found.parts_found, found.flow) == (4, 1, flow)
    assert "canary" not in found.text


def test_a_record_that_cannot_be_written_costs_a_warning(example, tmp_path, monkeypatch, caplog):
    """The run is published, and nothing of a record is there."""
    whole = commit.update

    def refuse(uri, *arguments, **options):
        if uri.endswith("provenance.json"):
            raise StorageError(f"{uri}: cannot write: the disk is full")
        whole(uri, *arguments, **options)

    monkeypatch.setattr(commit, "update", refuse)
    out = tmp_path / "run"
    explain(example.model, example.data, out, scheduler="serial")
    assert [entry.getMessage() for entry in caplog.records] == [
        f"{out}: is published, but how it was made is not kept: {out}/provenance.json: cannot write: the disk is full"
    ]
    assert not (out / "provenance.json").exists()
    assert check_run(out).sound
    assert read_run(out).provenance() is None
