"""A run measured: equal to NumPy on its columns, the same bytes on a cluster, read back without its parts, and made again where it is not sound."""

import logging
import os

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose

from leafledger import explain
from leafledger.pipeline.drift.measure import measured_run as measured
from leafledger.pipeline.drift.measure.measured_run import measure_run
from leafledger.pipeline.errors import InvalidRun, NotFinished, StorageError, UsageError
from tests.pipeline.conftest import FEATURES, train, write_data
from tests.pipeline.running import attributions


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("measured") / "run"
    explain(example.model, example.data, out, values=True, scheduler="serial")
    return out


def test_distributions_are_those_of_the_columns(run, example):
    """Moments, counts and extremes of every column as NumPy and pandas have them; attributions add up to margins."""
    found, table = measure_run(run), attributions(run).to_pandas()
    for name in FEATURES:
        phi, column = found.phi("0", name), table[f"phi_{name}"].to_numpy(np.float64)
        assert_allclose([phi.mean, phi.std, phi.mean_abs], [column.mean(), column.std(), np.abs(column).mean()], rtol=1e-10)
        assert (phi.rows, phi.low, phi.high, phi.counts.sum()) == (3000, column.min(), column.max(), 3000)
    margin = table["margin"].to_numpy(np.float64)
    assert_allclose(found.total("0").mean, margin.mean(), rtol=1e-12)
    delay = found.value("delay")
    assert delay.missing == example.frame["delay"].isna().sum()
    assert_allclose(delay.mean, example.frame["delay"].mean(), rtol=1e-12)
    assert found.value("month").counts.tolist() == example.frame["month"].value_counts().sort_index().tolist()
    carriers = example.frame["carrier"].value_counts()
    assert dict(found.value("carrier").counts) == carriers.to_dict()
    assert found.value("carrier").missing == example.frame["carrier"].isna().sum()
    base = found.manifest.base[0]
    assert_allclose(base + sum(found.phi("0", name).mean for name in FEATURES), margin.mean(), rtol=1e-6)
    assert found.value("nobody") is found.phi("0", "nobody") is None
    with pytest.raises(KeyError):
        found.total("1")


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes(example, tmp_path, two_workers):
    """And so does the next night, which reads what was kept, and not one part."""
    train(example.frame, objective="multiclass", num_class=3).save_model(tmp_path / "model.txt")
    data = write_data(example.frame, tmp_path / "data", row_group_size=100)
    for name in ("serial", "two"):
        explain(tmp_path / "model.txt", data, tmp_path / name, values=True, scheduler="serial")
    one, two = measure_run(tmp_path / "serial", scheduler="serial"), measure_run(tmp_path / "two", scheduler=two_workers)
    assert repr(one.found) == repr(two.found)
    kept = [(tmp_path / name / "after" / "distributions.parquet").read_bytes() for name in ("serial", "two")]
    assert kept[0] == kept[1]
    for part in (tmp_path / "serial" / "attributions").iterdir():
        part.unlink()
    assert repr(measure_run(tmp_path / "serial").found) == repr(one.found)


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_threads_and_workers_measure_the_same(run, monkeypatch):
    """To the last bit, as one thread does."""
    monkeypatch.setattr(measured, "read_derived", lambda *_: None)
    alone = repr(measure_run(run, scheduler="serial").found)
    assert repr(measure_run(run, threads=3).found) == alone
    assert repr(measure_run(run, workers=1).found) == alone


def test_what_is_not_sound_is_made_again(run):
    """Of other bytes, or of a version that writes it otherwise."""
    first, kept = measure_run(run), run / "after" / "distributions.parquet"
    data = kept.read_bytes()
    kept.write_bytes(data[:-1] + b"?")
    assert repr(measure_run(run).found) == repr(first.found)
    assert kept.read_bytes() == data


def test_a_run_that_cannot_be_written_is_measured_all_the_same(run, monkeypatch, caplog):
    """A warning says that it is kept nowhere."""

    def refuse(*arguments):
        raise StorageError("x: cannot write: no")

    monkeypatch.setattr(measured, "read_derived", lambda *_: None)
    monkeypatch.setattr(measured, "write_derived", refuse)
    with caplog.at_level(logging.WARNING, "leafledger"):
        assert measure_run(run).total("0").rows == 3000
    assert "what was measured is not kept: x: cannot write" in caplog.text


def test_what_cannot_be_measured_is_refused(example, tmp_path):
    """No run, an unfinished one, one of summaries alone, a damaged part: one line each."""
    with pytest.raises(NotFinished, match=r"nothing: no manifest\.json there: not a finished run"):
        measure_run(tmp_path / "nothing")
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    part = tmp_path / "run" / "attributions" / "part-00002.parquet"
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(InvalidRun, match=r"part-00002\.parquet: "):
        measure_run(tmp_path / "run")
    part.unlink()
    with pytest.raises(InvalidRun, match=r"part-00002\.parquet: cannot read: no such file"):
        measure_run(tmp_path / "run")
    with pytest.raises(UsageError, match="without TLS"):
        measure_run(tmp_path / "run", scheduler="tcp://elsewhere:8786")
    os.unlink(tmp_path / "run" / "manifest.json")
    with pytest.raises(NotFinished, match="not a finished run"):
        measure_run(tmp_path / "run")
    explain(example.model, example.data, tmp_path / "summaries", global_only=True, scheduler="serial")
    assert measure_run(tmp_path / "summaries").columns == ()


@pytest.mark.parametrize("n_rows", [0, 1])
def test_hardly_any_rows(example, tmp_path, n_rows):
    """None, or one: counts, and no errors of means."""
    write_data(example.frame.iloc[:1], tmp_path / "data")
    if n_rows == 0:
        path = next((tmp_path / "data").rglob("*.parquet"))
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    explain(example.model, tmp_path / "data", tmp_path / "run", values=True, scheduler="serial")
    found = measure_run(tmp_path / "run")
    assert found.total("0").rows == found.value("carrier").rows == n_rows
    assert np.isnan(found.total("0").standard_error)
    assert repr(measure_run(tmp_path / "run").found) == repr(found.found)


def test_hostile_values(tmp_path, example):
    """All missing, infinite ones and a single category are measured as they are."""
    frame = example.frame.assign(delay=np.nan, carrier=pd.Series(["UA"] * 3000, dtype=object))
    frame.loc[:9, "distance"] = np.inf
    write_data(frame, tmp_path / "data")
    explain(example.model, tmp_path / "data", tmp_path / "run", values=True, scheduler="serial")
    found = measure_run(tmp_path / "run")
    assert (found.value("delay").missing, found.value("distance").infinite) == (3000, 10)
    assert found.value("carrier").counts == (("UA", 3000),)
