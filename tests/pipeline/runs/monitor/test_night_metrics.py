"""Gauges of a night are what its rows say: their mean prediction, shares of importance, and how many alarms drift has."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from leafledger import check_run, drift, explain, read_manifest
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import Exit, InvalidRun
from leafledger.pipeline.runs.monitor import night_metrics
from leafledger.pipeline.runs.monitor.night_metrics import Night, read_night
from tests.pipeline.conftest import FEATURES, train, write_nights
from tests.pipeline.running import attributions

ALARMS, MEAN, SHARE = "leafledger_drift_alarms", "leafledger_mean_prediction", "leafledger_importance_share"


def read(file):
    """From names and labels besides the run to values; and the runs that they are of."""
    samples = [sample for family in text_string_to_metric_families(Path(file).read_text()) for sample in family.samples]
    found = {(sample.name, *(value for label, value in sample.labels.items() if label != "run")): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found, {sample.labels["run"] for sample in samples}


def of_the_night(found):
    return {name: value for name, value in found.items() if name[0] in (ALARMS, MEAN, SHARE)}


@pytest.fixture
def nights(example, tmp_path):
    """What explains a night in Python, with a file of metrics; the third of three drifted from the second."""
    write_nights(example.frame, tmp_path / "data")

    def night(day, **given):
        told = {"date": f"2026-01-0{day}", "scheduler": "serial", "metrics_file": tmp_path / "x.prom"} | given
        explain(example.model, tmp_path / "data/{date}", tmp_path / "{date}", **told)
        return read(tmp_path / "x.prom")[0]

    return night


def test_they_are_what_the_rows_say(example, tmp_path):
    """As read from the parts, which have every row: the mean margin, and each feature's share of mean magnitudes."""
    explain(
        example.model, example.data, tmp_path / "{date}", date="2026-01-01", scheduler="serial", metrics_file=tmp_path / "x.prom", precision="float64"
    )
    found, runs = read(tmp_path / "x.prom")
    rows = attributions(tmp_path / "2026-01-01")
    sizes = np.array([np.abs(rows[f"phi_{name}"].to_numpy()).mean() for name in FEATURES])
    assert runs == {f"{tmp_path}/{{date}}"}
    assert set(of_the_night(found)) == {(MEAN, "0", "margin"), *((SHARE, name, "0") for name in FEATURES)}
    assert found[MEAN, "0", "margin"] == pytest.approx(rows["margin"].to_numpy().mean(), rel=1e-12)
    assert [found[SHARE, name, "0"] for name in FEATURES] == pytest.approx(sizes / sizes.sum(), rel=1e-12)


def test_alarms_are_those_of_the_comparison(nights, tmp_path):
    """Where there was one: no series is no comparison, and 0 is no alarm. Of a range they are those of all its nights."""
    told = {"latest": tmp_path / "latest.json", "against": tmp_path / "latest.json"}
    assert (ALARMS,) not in nights(1, **told)
    few = {"distance": 0.2, "share": 0.5}
    assert nights(2, **told, thresholds=few)[(ALARMS,)] == 0
    n_alarms = nights(3, **told)[(ALARMS,)]
    assert n_alarms == len(json.loads((tmp_path / "2026-01-03/after/drift.json").read_text())["alarms"]) >= 2
    assert nights(3, **told)[(ALARMS,)] == n_alarms  # finished before, and latest names it
    assert (ALARMS,) not in nights(3)


@pytest.mark.slow
def test_a_second_try_leaves_what_the_first_compared(example, tmp_path):
    """It passes over the night that drifted, and waits for one whose data have not come: the alarms stand until something is compared again."""
    write_nights(example.frame, tmp_path / "data")
    told = ["explain", example.model, f"{tmp_path}/data/{{date}}", "--out", f"{tmp_path}/{{date}}", "--scheduler", "serial", "--quiet"]
    told += ["--metrics-file", f"{tmp_path}/x.prom", "--against", f"{tmp_path}/{{date-1d}}", "--dates", "2026-01-02..2026-01-04"]
    found = []
    for _ in range(2):
        assert cli.main(told) == Exit.NOT_YET
        found.append(read(tmp_path / "x.prom")[0][(ALARMS,)])
    assert found[0] == found[1] >= 2


@pytest.mark.slow
def test_a_range_tells_of_a_night_that_drifted_before_its_last(example, tmp_path, capsys):
    write_nights(example.frame, tmp_path / "data")
    (tmp_path / "data/2026-01-04").symlink_to(tmp_path / "data/2026-01-03")
    told = ["explain", example.model, f"{tmp_path}/data/{{date}}", "--out", f"{tmp_path}/{{date}}", "--scheduler", "serial", "--quiet"]
    told += ["--metrics-file", f"{tmp_path}/x.prom", "--against", f"{tmp_path}/{{date-1d}}", "--dates"]
    assert cli.main([*told, "2026-01-02..2026-01-04"]) == Exit.PARTLY  # the first has none before it
    alarms = {day: json.loads((tmp_path / f"2026-01-0{day}/after/drift.json").read_text())["alarms"] for day in (3, 4)}
    assert (len(alarms[3]) >= 2, alarms[4]) == (True, [])
    assert read(tmp_path / "x.prom")[0][(ALARMS,)] == len(alarms[3])


@pytest.mark.slow
def test_drift_writes_into_the_file_of_the_run(example, nights, tmp_path, capsys):
    """What explain said of the run stays; of the night there is the same as with --against, in a file of its own too."""
    nights(2)
    before = nights(3)
    told = ["drift", f"{tmp_path}/{{date}}", "--against", f"{tmp_path}/{{date-1d}}", "--date", "2026-01-03", "--quiet", "--metrics-file"]
    assert cli.main([*told, f"{tmp_path}/x.prom"]) == Exit.DRIFT
    after, runs = read(tmp_path / "x.prom")
    assert runs == {f"{tmp_path}/{{date}}"}
    n_alarms = len(drift(tmp_path / "2026-01-03", against=tmp_path / "2026-01-02").alarms)
    assert after == before | {(ALARMS,): n_alarms}
    assert (tmp_path / "x.prom").stat().st_mode & 0o777 == 0o644
    assert cli.main([*told, f"{tmp_path}/y.prom"]) == Exit.DRIFT
    assert read(tmp_path / "y.prom") == (of_the_night(after), runs)
    assert cli.main([*told, f"{tmp_path}/x.prom"]) == Exit.DRIFT
    assert read(tmp_path / "x.prom")[0] == after
    assert (ALARMS,) not in nights(3)  # what explain writes is of the night that it made, which it compared with nothing


def test_what_drift_cannot_write_is_refused_before_it_compares(nights, tmp_path, capsys, monkeypatch):
    """A file of another run, whose last success would be lost; one that nobody reads; and one that cannot be there."""
    nights(2)
    nights(3)
    told = ["drift", f"{tmp_path}/2026-01-03", "--against", f"{tmp_path}/2026-01-02", "--quiet", "--metrics-file"]
    expected = "expected a file in a folder of this machine, from where node_exporter reads it"
    for file, says in (  # of a value 80 characters are shown
        ("x.prom", f"{tmp_path}/x.prom: has metrics of {tmp_path}/{{date}}, expected those of {tmp_path}/2026-01-03, or a file of its own"),
        ("x.txt", f"metrics_file is {f'{tmp_path}/x.txt'!r:.80}, expected NAME.prom: node_exporter passes over files of other names"),
        ("no/x.prom", f"metrics_file is {f'{tmp_path}/no/x.prom'!r:.80}, {expected}"),
    ):
        assert cli.main([*told, f"{tmp_path}/{file}"]) == Exit.USAGE
        assert capsys.readouterr().err == f"leafledger: {says}\n"
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    assert cli.main([*told, f"{tmp_path}/y.prom"]) == Exit.USAGE
    assert capsys.readouterr().err == "leafledger: metrics_file needs prometheus_client: pip install 'leafledger[metrics]'\n"
    assert not (tmp_path / "2026-01-03/after").exists()


def test_what_is_not_known_is_not_said(example, tmp_path):
    """Of attributions that do not add up there is no mean; of predictions it is theirs; of a run without rows nothing is said."""
    explain(example.model, example.data, tmp_path / "banzhaf", scheduler="serial", method="banzhaf")
    found = read_night(f"{tmp_path}/banzhaf", read_manifest(f"{tmp_path}/banzhaf"), None)
    assert (found.means, len(found.shares), found.alarms) == ((), 4, None)
    explain(example.model, example.data, tmp_path / "space", scheduler="serial", space="response")
    ((labels, mean),) = read_night(f"{tmp_path}/space", read_manifest(f"{tmp_path}/space"), 0).means
    prediction = attributions(tmp_path / "space")["prediction"].to_numpy()
    assert labels == ("0", "response")
    assert mean == pytest.approx(prediction.mean(), rel=1e-6)
    empty = tmp_path / "data/month=1"
    empty.mkdir(parents=True)
    example.frame.drop(columns="month").head(0).to_parquet(empty / "a.parquet")
    explain(example.model, tmp_path / "data", tmp_path / "empty", scheduler="serial")
    assert read_night(f"{tmp_path}/empty", read_manifest(f"{tmp_path}/empty"), None) == Night()


def test_every_class_has_a_mean(example, tmp_path):
    """Its margins', of rows that are not those of the training; of the predicted class, which differs by row, none is said."""
    write_nights(example.frame, tmp_path / "data")
    train(example.frame, objective="multiclass", num_class=3).save_model(tmp_path / "model.txt")
    for out, told in (("every", {}), ("predicted", {"output": "predicted"})):
        given = {"scheduler": "serial", "precision": "float64", **told}
        explain(tmp_path / "model.txt", tmp_path / "data/2026-01-03", tmp_path / out, **given)
    means = dict(read_night(f"{tmp_path}/every", read_manifest(f"{tmp_path}/every"), None).means)
    rows = attributions(tmp_path / "every")
    assert means == {(k, "margin"): pytest.approx(rows[f"margin_{k}"].to_numpy().mean(), rel=1e-12) for k in "012"}
    found = read_night(f"{tmp_path}/predicted", read_manifest(f"{tmp_path}/predicted"), None)
    assert (found.means, len(found.shares)) == ((), 4)


def test_series_are_not_without_number(example, tmp_path, monkeypatch):
    """Of each output those of the largest features alone, the first by their names where they are equal."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    manifest = read_manifest(f"{tmp_path}/run")
    every = dict(read_night(f"{tmp_path}/run", manifest, None).shares)
    monkeypatch.setattr(night_metrics, "FEATURES", 2)
    found = dict(read_night(f"{tmp_path}/run", manifest, None).shares)
    assert found == dict(sorted(every.items(), key=lambda each: -each[1])[:2])
    monkeypatch.setattr(night_metrics, "OUTPUTS", 0)
    assert read_night(f"{tmp_path}/run", manifest, None).shares == ()


def test_a_summary_that_was_changed_costs_a_warning(example, tmp_path, caplog):
    """The run is finished, and its own metrics are written."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    (tmp_path / "run/summary/importance.json").write_text('[{"output": "0"}]')
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", metrics_file=tmp_path / "x.prom")
    (said,) = [entry.getMessage() for entry in caplog.records]
    assert said == f"metrics of the night cannot be read: {tmp_path}/run: summary/importance.json: not a summary of importances: 'share'"
    found = read(tmp_path / "x.prom")[0]
    assert (found[("leafledger_run_finished",)], of_the_night(found)) == (1, {})
    with pytest.raises(InvalidRun):
        read_night(f"{tmp_path}/run", read_manifest(f"{tmp_path}/run"), None)


PROGRAM = """
import signal, sys
from leafledger import explain

def progress(work):
    return lambda done: signal.raise_signal(signal.SIGTERM)

model, data, out, file = sys.argv[1:]
explain(model, data, out, scheduler="serial", metrics_file=file, progress=progress)
"""


@pytest.mark.slow
def test_a_program_that_is_terminated_writes_them_too(example, tmp_path):
    """One that calls Python and has no way of its own with SIGTERM: it ends by the signal, as ever, and the file says that it is not finished."""
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", metrics_file=tmp_path / "x.prom", max_rejected=0)
    assert read(tmp_path / "x.prom")[0][("leafledger_run_finished",)] == 1
    told = [sys.executable, "-c", PROGRAM, example.model, example.data, tmp_path / "other", tmp_path / "x.prom"]
    done = subprocess.run(list(map(str, told)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
    found, runs = read(tmp_path / "x.prom")
    assert (runs, found[("leafledger_run_finished",)], found[("leafledger_run_rows",)] > 0) == ({f"{tmp_path}/other"}, 0, True)
    explain(example.model, example.data, tmp_path / "other", scheduler="serial", metrics_file=tmp_path / "x.prom")
    assert check_run(tmp_path / "other").sound
