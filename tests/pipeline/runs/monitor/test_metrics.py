"""A run's metrics say what its manifest says, from a port while it works and from a file afterwards, which remembers when one last went well."""

import json
import re
import shutil
import socket
import sys
import time
import urllib.request
from datetime import UTC, datetime

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from leafledger import explain
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import Exit, LeafledgerError, PredictionMismatch, StorageError, UsageError
from leafledger.pipeline.runs import explain as runs_explain
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.monitor.attempt import Attempt
from leafledger.pipeline.runs.monitor.metrics import Earlier, RunMetrics
from leafledger.pipeline.runs.plan import planned_run
from leafledger.pipeline.stores.traffic import Moved

PREFIX = "leafledger_run_"


def read(text):
    """From names, and what they are of besides the run, to values; and the one run that they are of."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    (run,) = {sample.labels["run"] for sample in samples}
    found = {}
    for sample in samples:
        name, labels = sample.name.removeprefix(PREFIX), [value for label, value in sample.labels.items() if label != "run"]
        found[(name, *labels) if labels else name] = sample.value
    return run, found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_file_says_what_the_manifest_says(example, tmp_path):
    out, file = tmp_path / "{date}", tmp_path / "flights.prom"
    manifest = explain(example.model, example.data, out, date="2026-03-02", scheduler="serial", metrics_file=file)
    run, found = read(file.read_text())
    assert run == str(out)
    assert (found["rows"], found["rejected_rows"], found["rejected_parts"], found["finished"]) == (manifest.n_rows, 0, 0, 1)
    assert (found["parts", "made"], found["parts", "found"]) == (len(manifest.parts), 0)
    assert found["residual_ratio"] == manifest.residual
    assert abs(found["last_success_timestamp_seconds"] - time.time()) < 60
    assert 0 < found["stage_seconds", "explaining"] < 60
    written = sum(path.stat().st_size for path in (tmp_path / "2026-03-02").rglob("*") if path.is_file())
    assert written <= found["written_bytes"] < written + 1_000_000  # and the tables, which are removed
    assert found["read_bytes"] > 0
    assert found["retries"] == 0
    assert file.stat().st_mode & 0o777 == 0o644
    explain(example.model, example.data, out, date="2026-03-02", scheduler="serial", metrics_file=file)
    again = read(file.read_text())[1]
    assert (again["rows"], again["parts", "made"], again["finished"]) == (manifest.n_rows, 0, 1)
    assert again["last_success_timestamp_seconds"] == found["last_success_timestamp_seconds"]  # nights that are passed over hide none that is missed


def test_a_run_that_fails_leaves_when_one_last_went_well(example, tmp_path):
    """And says what came of it; a file of another run, or of something else, is not believed."""
    data, file, out = tmp_path / "data", tmp_path / "x.prom", tmp_path / "{date}"
    shutil.copytree(example.data, data)
    explain(example.model, data, out, date="2026-03-01", scheduler="serial", metrics_file=file)
    before = read(file.read_text())[1]
    (data / "month=2" / "data.parquet").write_bytes(b"damaged")
    explain(example.model, data, out, date="2026-03-02", scheduler="serial", metrics_file=file)
    partly = read(file.read_text())[1]
    assert (partly["rejected_parts"], partly["finished"]) == (1, 1)
    with pytest.raises(LeafledgerError):
        explain(example.model, data, out, date="2026-03-03", scheduler="serial", metrics_file=file, max_rejected=0)
    failed = read(file.read_text())[1]
    assert failed["finished"] == 0
    assert failed["last_success_timestamp_seconds"] == partly["last_success_timestamp_seconds"] > before["last_success_timestamp_seconds"]
    odd = ("{", "leafledger_run_last_success_timestamp_seconds x\n", 'a{b="c", ="x"} 1\n')
    for text in (file.read_text().replace(str(out), "/other"), *odd):
        file.write_text(text)
        with pytest.raises(LeafledgerError):
            explain(example.model, data, out, date="2026-03-03", scheduler="serial", metrics_file=file, max_rejected=0)
        assert "last_success_timestamp_seconds" not in read(file.read_text())[1]


def forget(file, seconds):
    """Let a file say that a run last went well at another time."""
    file.write_text(re.sub(rf"(?m)^({PREFIX}last_success_timestamp_seconds.* )\S+$", rf"\g<1>{seconds}", file.read_text()))


def test_a_run_that_fails_after_its_manifest_did_not_go_well(example, tmp_path, monkeypatch):
    """As where ``latest`` cannot be moved: nobody was told of the run. The same again, which finds it finished, counts from when it was published."""
    file, told = tmp_path / "x.prom", {"latest": tmp_path / "latest.json", "scheduler": "serial", "metrics_file": tmp_path / "x.prom"}
    explain(example.model, example.data, tmp_path / "{date}", date="2026-03-01", **told)
    forget(file, 1.0)

    def fail(*_):
        raise StorageError("away")

    with monkeypatch.context() as away:
        away.setattr(runs_explain, "update_latest", fail)
        with pytest.raises(StorageError):
            explain(example.model, example.data, tmp_path / "{date}", date="2026-03-02", **told)
    failed = read(file.read_text())[1]
    assert (tmp_path / "2026-03-02" / "manifest.json").exists()
    assert (failed["finished"], failed["last_success_timestamp_seconds"]) == (0, 1)
    explain(example.model, example.data, tmp_path / "{date}", date="2026-03-02", **told)
    again = read(file.read_text())[1]
    made = json.loads((tmp_path / "2026-03-02" / "provenance.json").read_text())["finished"]
    assert again["last_success_timestamp_seconds"] == datetime.fromisoformat(made).timestamp()
    assert again["finished"] == 1


@pytest.mark.parametrize("asked", [{"latest_requires": 0.9}, {"mlflow_run": "0123"}], ids=["latest", "mlflow"])
def test_a_run_that_nobody_was_told_of_did_not_go_well(example, tmp_path, monkeypatch, asked):
    """``latest`` stays, since too few rows are explained, or MLflow takes no link: readers have the night before. Nor does the same again."""
    monkeypatch.setattr(planned_run, "find_run", lambda mlflow_run: None)
    monkeypatch.setattr(runs_explain, "log_run", lambda mlflow_run, out, manifest: None if mlflow_run is None else "no link")
    file, data = tmp_path / "x.prom", tmp_path / "data"
    told = {"latest": tmp_path / "latest.json", "scheduler": "serial", "metrics_file": file}
    shutil.copytree(example.data, data)
    explain(example.model, data, tmp_path / "{date}", date="2026-03-01", **told)
    forget(file, 1.0)
    (data / "month=2" / "data.parquet").write_bytes(b"damaged")
    for _ in range(2):
        explain(example.model, data, tmp_path / "{date}", date="2026-03-02", **told, **asked)
        found = read(file.read_text())[1]
        assert (found["finished"], found["last_success_timestamp_seconds"]) == (1, 1)


def test_a_run_that_was_finished_before_counts_from_then(example, tmp_path):
    """Where the file is a new one, as on another machine: whoever waits for the next night hears of it when it is missed. A record that says nothing
    of it takes nothing from the run."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    record = tmp_path / "run" / "provenance.json"
    record.write_text(record.read_text().replace(json.loads(record.read_text())["finished"], "2026-03-02T01:02:03Z"))
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", metrics_file=tmp_path / "x.prom")
    found = read((tmp_path / "x.prom").read_text())[1]
    assert found["last_success_timestamp_seconds"] == datetime(2026, 3, 2, 1, 2, 3, tzinfo=UTC).timestamp()
    record.write_text(record.read_text().replace("2026-03-02T01:02:03Z", "yesterday"))
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", metrics_file=tmp_path / "x.prom")
    assert read((tmp_path / "x.prom").read_text())[1]["last_success_timestamp_seconds"] == found["last_success_timestamp_seconds"]


@pytest.mark.slow
def test_what_earlier_nights_of_a_range_rejected_is_told(example, tmp_path):
    """The file is that of the last night, and the only one: what is wrong with one before, which this command made, is in it. A night that is not
    there leaves it unfinished. The next command passes over both, and says nothing of what was told."""
    data, file = tmp_path / "data", tmp_path / "x.prom"
    for day in ("2026-03-01", "2026-03-02"):
        shutil.copytree(example.data, data / day)
    (data / "2026-03-01" / "month=2" / "data.parquet").write_bytes(b"damaged")
    told = ["explain", example.model, str(data / "{date}"), "--out", str(tmp_path / "{date}"), "--scheduler", "serial", "--quiet"]
    told += ["--metrics-file", str(file), "--dates"]
    assert cli.main([*told, "2026-03-01..2026-03-02"]) == Exit.PARTLY
    found = read(file.read_text())[1]
    assert (found["rejected_parts"], found["finished"], found["rows"]) == (1, 1, 3000)
    assert cli.main([*told, "2026-02-28..2026-03-02"]) == Exit.NOT_YET
    found = read(file.read_text())[1]
    assert (found["rejected_parts"], found["finished"]) == (0, 0)


def test_the_largest_residual_and_all_retries_of_a_range_are_told(tmp_path):
    """Of nights that ended without a manifest, too."""
    job, earlier = make_job("model.txt", tmp_path / "data", tmp_path / "run", Options()), Earlier()
    for residual, retried, rejected in ((1e-12, 2, 3), (5e-12, 0, 0), (None, 7, 0), (2e-12, 1, 1)):
        attempt = Attempt()
        attempt.residual, attempt.moved, attempt.rejected = residual, Moved(retried=retried), rejected
        found = RunMetrics(job, attempt, None, earlier)
        told = {family.name.removeprefix(PREFIX): [sample.value for sample in family.samples] for family in found.collect()}
        found.count()
    assert (told["residual_ratio"], told["retries"], told["rejected_parts"]) == ([5e-12], [10], [4])


def test_a_port_says_it_while_the_run_works(example, tmp_path):
    """To this machine alone; it is free again afterwards."""
    port, seen = free_port(), []

    def progress(work):
        def done(part):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                seen.append(read(answer.read().decode())[1])
            listening = [each.laddr for each in psutil.Process().net_connections("tcp") if each.status == "LISTEN" and each.laddr.port == port]
            assert [address.ip for address in listening] == ["127.0.0.1"]

        return done

    manifest = explain(example.model, example.data, tmp_path / "run", scheduler="serial", metrics_address=port, progress=progress)
    assert [found["parts", "made"] for found in seen] == [1, 2, 3, 4]
    assert [found["finished"] for found in seen] == [0] * 4
    assert seen[-1]["rows"] == manifest.n_rows
    assert seen[-1]["residual_ratio"] == manifest.residual
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics")


def test_what_cannot_be_done_is_refused_before_anything_is(example, tmp_path, monkeypatch):
    def refused(message, **options):
        with pytest.raises(UsageError, match=message):
            explain(example.model, example.data, tmp_path / "run", scheduler="serial", **options)
        assert not (tmp_path / "run").exists()

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused("which cannot be listened on: Address already in use", metrics_address=taken.getsockname()[1])
    refused("expected a file in a folder of this machine", metrics_file=tmp_path / "missing" / "x.prom")
    refused("which cannot be listened on: encoding with 'idna' codec failed", metrics_address="0.0.0..0:9464")
    refused("expected a file in a folder of this machine", metrics_file=f"/tmp/{'a' * 300}/x.prom")
    refused("expected a file in a folder of this machine", metrics_file="memory://x.prom")
    refused(r"expected NAME\.prom: node_exporter passes over files of other names", metrics_file=tmp_path / "x.txt")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    refused(r"^metrics_file needs prometheus_client: pip install 'leafledger\[metrics\]'$", metrics_file=tmp_path / "x.prom")


def test_a_file_that_cannot_be_written_costs_a_warning(example, tmp_path, caplog):
    (tmp_path / "x.prom").mkdir()
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", metrics_file=tmp_path / "x.prom")
    assert [entry.getMessage() for entry in caplog.records] == [f"{tmp_path}/x.prom: metrics cannot be written: Is a directory"]


def test_a_name_that_is_not_utf8_costs_a_warning(example, tmp_path, caplog):
    """A file of metrics is UTF-8, names of folders are bytes. The run is published."""
    explain(example.model, example.data, tmp_path / "run\udcff", scheduler="serial", metrics_file=tmp_path / "x.prom")
    (said,) = [entry.getMessage() for entry in caplog.records]
    assert said.startswith(f"{tmp_path}/x.prom: metrics cannot be written: 'utf-8' codec can't encode character")
    assert not (tmp_path / "x.prom").exists()


def test_a_file_that_cannot_be_written_of_a_run_that_fails_is_said_too(example, tmp_path, caplog, capsys):
    """Or nobody hears that monitoring was not told of it: in Python's log, and on standard error before what ended the run."""
    (tmp_path / "x.prom").mkdir()
    said = f"{tmp_path}/x.prom: metrics cannot be written: Is a directory"
    with pytest.raises(PredictionMismatch):
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", metrics_file=tmp_path / "x.prom", predictions="distance")
    assert [entry.getMessage() for entry in caplog.records] == [said]
    told = ["explain", example.model, example.data, "--out", str(tmp_path / "run"), "--prediction", "distance", "--scheduler", "serial", "--quiet"]
    assert cli.main([*told, "--metrics-file", str(tmp_path / "x.prom")]) == Exit.REFUSED
    first, last = capsys.readouterr().err.splitlines()
    assert first == f"leafledger: {said}"
    assert "expected the model's margin" in last
