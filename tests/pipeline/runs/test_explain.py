"""Runs from model and data to manifest: right values, the same bits however they ran, one commit, honest refusals."""

import json
import logging
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import attribute, check_run, explain
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.records.manifest import read_manifest
from tests.pipeline.conftest import FEATURES, N_ROWS, train, write_data
from tests.pipeline.running import attributions, contents, contributions


def test_a_run_publishes_what_the_library_computes(example, serial):
    """Rows come out in order with their ids; margin and attributions are LightGBM's, rounded once to float32; the manifest counts them."""
    out, manifest = serial
    table = attributions(out)
    assert table.column_names == ["flight", "name", "margin", *(f"phi_{name}" for name in FEATURES)]
    assert table["flight"].to_pylist() == example.frame["flight"].tolist()
    assert table["name"].to_pylist() == example.frame["name"].tolist()
    expected = contributions(example)
    found = np.column_stack([table[f"phi_{name}"].to_numpy() for name in FEATURES])
    assert found.dtype == np.float32
    assert_allclose(found, expected[:, :-1], rtol=2e-7, atol=1e-12)
    assert_allclose(table["margin"].to_numpy(), expected.sum(axis=1), rtol=2e-7)
    assert manifest.n_rows == len(example.frame) == sum(entry["n_rows"] for entry in manifest.parts)
    assert manifest.residual < 1e-13
    assert_allclose(manifest.base, expected[0, -1], rtol=1e-12)


def test_names_of_columns_begin_no_line_of_a_log(tmp_path, caplog):
    """Of a model without names the columns are said, in the log and by Python's warning; theirs may hold anything."""
    rows = np.random.default_rng(0).normal(size=(50, 2))
    xgboost.train({"nthread": 1}, xgboost.DMatrix(rows, rows[:, 0]), 2).save_model(tmp_path / "model.ubj")
    pq.write_table(pa.table({"wind\nINFO all is well": rows[:, 0], "rain\x1b[31m": rows[:, 1]}), tmp_path / "rows.parquet")
    with caplog.at_level(logging.INFO, "leafledger"), pytest.warns(UserWarning, match=r": wind\\nINFO all is well, rain\\x1b\[31m$"):
        explain(tmp_path / "model.ubj", tmp_path / "rows.parquet", tmp_path / "run", scheduler="serial")
    (said,) = [line for line in caplog.messages if "by position" in line]
    assert said.endswith(r": wind\nINFO all is well, rain\x1b[31m")


def test_a_run_summarises_importance(example, serial):
    """The summary is the moments of the attributions in double precision, as Parquet and as JSON."""
    out, _ = serial
    table = pq.read_table(out / "summary" / "importance.parquet")
    assert table.to_pylist() == json.loads((out / "summary" / "importance.json").read_text())
    assert table["feature"].to_pylist() == FEATURES
    phi = contributions(example)[:, :-1]
    assert_allclose(table["mean_abs"], np.abs(phi).mean(axis=0), rtol=1e-9)
    assert_allclose(table["mean"], phi.mean(axis=0), rtol=1e-9, atol=1e-12)
    assert_allclose(table["std"], phi.std(axis=0), rtol=1e-9)
    assert_allclose(table["min"], phi.min(axis=0), rtol=1e-9)
    assert_allclose(table["max"], phi.max(axis=0), rtol=1e-9)
    assert table["rank"].to_pylist() == (np.argsort(np.argsort(-np.abs(phi).mean(axis=0))) + 1).tolist()


@pytest.mark.slow
def test_a_cluster_gives_the_serial_run_s_bits(example, serial, tmp_path):
    """Every file of a run on two worker processes equals the serial run's, byte for byte."""
    explain(example.model, example.data, tmp_path / "run", ids=["flight", "name"], workers=2)
    assert contents(tmp_path / "run") == contents(serial[0])


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_an_existing_cluster_is_used(example, serial, tmp_path):
    """``scheduler=ADDRESS`` runs on the workers that are there; the bits are the same."""
    import distributed

    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        explain(example.model, example.data, tmp_path / "run", ids=["flight", "name"], scheduler=cluster.scheduler_address)
    assert contents(tmp_path / "run") == contents(serial[0])


def test_banzhaf_runs_without_an_additivity_check(example, tmp_path):
    """A value that is not additive has no residual; parameters reach the kernel."""
    manifest = explain(example.model, example.data, tmp_path / "run", method="banzhaf", parameters={"p": "0.25"}, scheduler="serial")
    assert manifest.residual is None
    assert manifest.parameters == {"p": 0.25}
    assert check_run(str(tmp_path / "run")).residual is None


@pytest.mark.slow
def test_groups_have_columns_and_importance(example, tmp_path):
    """With a partition the columns, the summary and the sums of a run are the groups'; Owen values are the features'."""
    partition, out = {"flight": ["month", "distance"]}, tmp_path / "groups"
    manifest = explain(example.model, example.data, out, partition=partition, scheduler="serial")
    table = attributions(out)
    assert table.column_names == ["margin", "phi_flight", "phi_delay", "phi_carrier"]
    found = attribute(example.model, example.frame[FEATURES], partition=partition)
    stored = np.column_stack([table[f"phi_{name}"].to_numpy() for name in found.players])
    assert_allclose(stored, found.phi[:, 0], rtol=2e-7, atol=1e-12)
    assert manifest.residual < 1e-13
    assert pq.read_table(out / "summary" / "importance.parquet")["feature"].to_pylist() == ["flight", "delay", "carrier"]
    assert check_run(str(out)).residual < 1e-6

    explain(example.model, example.data, tmp_path / "owen", method="owen", partition=partition, scheduler="serial")
    assert attributions(tmp_path / "owen").column_names == ["margin", *(f"phi_{name}" for name in FEATURES)]
    assert pq.read_table(tmp_path / "owen" / "summary" / "importance.parquet")["feature"].to_pylist() == FEATURES
    assert check_run(str(tmp_path / "owen")).residual < 1e-6


def test_lists_of_numbers_reach_the_kernel(example, tmp_path):
    """Parameters as text, as lists and in memory are the same values; the manifest reads back as it was written."""
    parameters = {"sizes": "0.5,0.25,0.25,0"}
    written = explain(example.model, example.data, tmp_path / "run", method="probabilistic", parameters=parameters, scheduler="serial")
    assert written.parameters == {"sizes": (0.5, 0.25, 0.25, 0.0), "weights": ()}
    assert read_manifest(str(tmp_path / "run")) == written
    found = attribute(example.model, example.frame[FEATURES], "probabilistic", parameters={"sizes": [0.5, 0.25, 0.25, 0]})
    assert_allclose(attributions(tmp_path / "run")["phi_delay"].to_numpy(), found.phi[:, 0, 1], rtol=2e-7, atol=1e-12)


def test_columns_that_no_split_asks_for_are_not_read(example, tmp_path):
    """They must be there, but a model without a split reads none of them and explains every row all the same."""
    frame = example.frame.assign(delay=0.0, carrier="UA", month=1)
    train(frame, num_leaves=2, min_data_in_leaf=N_ROWS).save_model(tmp_path / "model.txt")
    manifest = explain(tmp_path / "model.txt", example.data, tmp_path / "run", interactions="all", scheduler="serial")
    assert (manifest.n_rows, manifest.players, manifest.pairs) == (N_ROWS, (), ())
    table = attributions(tmp_path / "run")
    assert set(table["phi_delay"].to_pylist()) == {0.0}
    assert table["interactions"].to_pylist() == [[]] * N_ROWS
    assert check_run(str(tmp_path / "run")).n_rows == N_ROWS
    assert attribute(tmp_path / "model.txt", example.frame[FEATURES]).phi.shape == (N_ROWS, 1, 4)


def test_double_precision_is_kept(example, tmp_path):
    """``precision="float64"`` stores what was computed."""
    explain(example.model, example.data, tmp_path / "run", precision="float64", scheduler="serial")
    found = attributions(tmp_path / "run")["phi_delay"].to_numpy()
    assert_allclose(found, contributions(example)[:, 1], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_files_folders_and_globs_are_data(example, tmp_path):
    """A file, a glob of folders and a folder hold the rows they name; ``{date}`` is filled in."""
    counts = example.frame["month"].value_counts()
    cases = {
        f"{example.data}/month=2/data.parquet": counts[2],
        f"{example.data}/month=[13]": counts[1] + counts[3],
        f"{example.data}/*/data.parquet": len(example.frame),
        example.data: len(example.frame),
        example.data[:-4] + "{date:%d}ata": len(example.frame),
    }
    (Path(example.data).parent / "07ata").symlink_to(example.data)
    for i, (data, n_rows) in enumerate(cases.items()):
        manifest = explain(example.model, data, tmp_path / str(i), scheduler="serial", date="2013-01-07")
        assert manifest.n_rows == n_rows


def test_a_night_is_filled_in(example, tmp_path):
    """``{date}`` in data and output names one night; without a date it is refused."""
    shutil.copytree(Path(example.data) / "month=2", tmp_path / "month=2" / "night=2013-02-01")
    data, out = str(tmp_path / "month=2" / "night={date}"), str(tmp_path / "run-{date}")
    explain(example.model, data, out, ids=["night"], scheduler="serial", date="2013-02-01")
    assert set(attributions(tmp_path / "run-2013-02-01")["night"].to_pylist()) == {"2013-02-01"}
    with pytest.raises(UsageError, match=r"has a \{date\} to fill in"):
        explain(example.model, data, out, scheduler="serial")
    with pytest.raises(UsageError, match=r"only \{date\}, a day around it"):
        explain(example.model, "{data}", out, scheduler="serial", date="2013-02-01")


def test_a_partition_without_a_value_is_null(example, tmp_path):
    """Hive's name for null is a missing value: NaN to the model, null among the ids, which are texts."""
    shutil.copytree(example.data, tmp_path / "data")
    (tmp_path / "data" / "month=4").rename(tmp_path / "data" / "month=__HIVE_DEFAULT_PARTITION__")
    explain(example.model, tmp_path / "data", tmp_path / "run", ids=["month", "flight"], scheduler="serial")
    table = attributions(tmp_path / "run").sort_by("flight")
    assert table.schema.field("month").type == pa.string()
    frame = example.frame.sort_values("flight")
    assert table["month"].to_pylist() == [None if month == 4 else str(month) for month in frame["month"]]
    frame = frame.assign(month=frame["month"].where(frame["month"] < 4, np.nan))
    assert_allclose(table["phi_month"].to_numpy(), contributions(example, frame)[:, 3], rtol=2e-7, atol=1e-12)


@pytest.mark.slow
def test_several_outputs_are_told_apart(example, tmp_path):
    """A multi-class model has a margin and attributions per class, and an importance per class."""
    frame = example.frame
    booster = train(frame, objective="multiclass", num_class=3)
    booster.save_model(tmp_path / "model.txt")
    explain(tmp_path / "model.txt", example.data, tmp_path / "run", scheduler="serial")
    table = attributions(tmp_path / "run")
    assert table.column_names[:3] == [f"margin_{k}" for k in range(3)]
    expected = booster.predict(frame[FEATURES].assign(carrier=frame["carrier"].astype("category")), pred_contrib=True)
    assert_allclose(table["phi_2_month"].to_numpy(), expected.reshape(len(frame), 3, -1)[:, 2, 3], rtol=2e-7, atol=1e-9)
    assert pq.read_table(tmp_path / "run" / "summary" / "importance.parquet").num_rows == 3 * 4


def test_an_empty_data_set_is_a_run_without_parts(example, tmp_path):
    """Zero rows in, zero rows out, a manifest all the same."""
    write_data(example.frame, tmp_path / "data")
    for path in (tmp_path / "data").rglob("*.parquet"):
        pq.write_table(pq.read_table(path, partitioning=None).slice(0, 0), path)
    manifest = explain(example.model, tmp_path / "data", tmp_path / "run", workers=1)
    assert (manifest.n_rows, manifest.parts) == (0, ())
    assert check_run(str(tmp_path / "run")).n_rows == 0
