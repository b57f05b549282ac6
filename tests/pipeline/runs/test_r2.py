"""R² against a column of labels: shares that add up to what the library's own predictions give, by group, by weight, the same however it runs."""

import json
from dataclasses import replace
from types import SimpleNamespace

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, check_run, explain
from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.labels import MOST_VALUES
from leafledger.pipeline.errors import AdditivityBreach, InvalidData, LeafledgerError, SchemaMismatch, UnsupportedModel, UsageError
from tests.more import more
from tests.pipeline.conftest import FEATURES, write_data
from tests.pipeline.running import attributions, contents

NUMERIC = ["distance", "delay", "month"]


@pytest.fixture(scope="module")
def labelled(example, tmp_path_factory):
    """The example with a label that is missing on some rows, and with weights, 0 among them."""
    folder, draw = tmp_path_factory.mktemp("labelled"), np.random.default_rng(2)
    frame = example.frame.assign(weight=draw.integers(0, 4, len(example.frame)) / 2, none=np.nan, one=1)
    noise = draw.normal(size=len(frame)) * 20
    frame["label"] = frame["delay"].fillna(0) + 70 * (frame["carrier"] == "UA") + frame["month"] * 3 + noise
    frame.loc[draw.random(len(frame)) < 0.1, "label"] = np.nan
    return SimpleNamespace(model=example.model, booster=example.booster, frame=frame, data=write_data(frame, folder / "data"))


def run(labelled, out, **given):
    return explain(labelled.model, labelled.data, out, **({"method": "r2", "label": "label", "scheduler": "serial"} | given))


def in_memory(labelled, frame, **given):
    return attribute(labelled.booster, frame[FEATURES], "r2", label=frame["label"], **given)


def predict(labelled, frame):
    return labelled.booster.predict(frame[FEATURES].assign(carrier=pd.Categorical(frame["carrier"], ["AA", "B6", "DL", "UA"])))


def plain_r2(label, margin, weight):
    """R^2, SST and the sum of squared residuals as they are written in textbooks."""
    mean = np.average(label, weights=weight)
    sst, rest = weight @ (label - mean) ** 2, weight @ (label - margin) ** 2
    return 1 - rest / sst, sst


@pytest.fixture(scope="module")
def serial(labelled, tmp_path_factory):
    """A serial run by month and carrier with weights, and its manifest."""
    out = tmp_path_factory.mktemp("r2") / "run"
    return out, run(labelled, out, weight="weight", by=["month", "carrier"], ids=["flight"], precision="float64")


def test_shares_and_remainder_are_the_librarys_r2(labelled, serial):
    """R^2, SST and counts are those of LightGBM's predictions; shares and remainder add up to R^2; manifest and metadata say the same."""
    out, manifest = serial
    kept = labelled.frame[labelled.frame["label"].notna()]
    r2, sst = plain_r2(kept["label"], predict(labelled, kept), kept["weight"])
    table = pq.read_table(out / "summary" / "r2.parquet")
    assert table.column_names == ["feature", "r2", "standard_error", "rank"]
    assert table["feature"].to_pylist() == FEATURES
    assert json.loads(table.schema.metadata[b"leafledger"]) == manifest.totals["r2"]
    assert_allclose([manifest.totals["r2"]["total_r2"], manifest.totals["r2"]["sst"]], [r2, sst], rtol=1e-12)
    assert_allclose(sum(table["r2"].to_pylist()) + manifest.totals["r2"]["remainder"], r2, rtol=1e-12)
    assert manifest.totals["r2"]["n"] == (kept["weight"] > 0).sum()
    assert manifest.totals["r2"]["n_unlabelled"] == labelled.frame["label"].isna().sum()
    shares = dict(zip(table["rank"].to_pylist(), table["r2"].to_pylist(), strict=True))
    assert [shares[rank] for rank in range(1, 5)] == sorted(shares.values(), reverse=True)
    assert manifest.residual is None
    assert check_run(str(out)).n_rows == len(labelled.frame)


def test_a_part_has_every_rows_losses(labelled, serial):
    """Rows keep their order and ids; losses are those in memory, null where a label is missing, and their weighted sums are the shares."""
    out, manifest = serial
    table = attributions(out)
    assert table.column_names == ["flight", "margin", *(f"loss_{name}" for name in FEATURES), "label"]
    assert_array_equal(table["label"].to_pandas(), labelled.frame["label"])
    assert table["label"].null_count == labelled.frame["label"].isna().sum()
    assert table["flight"].to_pylist() == labelled.frame["flight"].tolist()
    missing = labelled.frame["label"].isna().to_numpy()
    loss = np.column_stack([table[f"loss_{name}"].to_pandas() for name in FEATURES])
    assert_array_equal(np.isnan(loss), np.repeat(missing[:, None], len(FEATURES), axis=1))
    found = in_memory(labelled, labelled.frame, weight=labelled.frame["weight"])
    assert_allclose(loss, found.phi[:, 0], rtol=1e-12, atol=1e-9)
    shares = pq.read_table(out / "summary" / "r2.parquet")["r2"].to_numpy()
    assert_allclose(shares, labelled.frame["weight"][~missing] @ loss[~missing] / manifest.totals["r2"]["sst"], rtol=1e-10, atol=1e-15)
    assert_allclose(shares, found.summaries["r2"]["r2"], rtol=1e-10, atol=1e-15)
    assert found.totals["r2"].keys() == manifest.totals["r2"].keys()
    assert_allclose(list(found.totals["r2"].values()), list(manifest.totals["r2"].values()), rtol=1e-9)


def test_every_group_shares_its_own_r2(labelled, serial):
    """Rows of a month and carrier by themselves have the shares, errors and totals of their group, also rows without a carrier."""
    out, _ = serial
    stored = pq.read_table(out / "summary" / "r2_by.parquet")
    table = stored.to_pandas()
    assert list(table.columns[:6]) == ["month", "carrier", "feature", "r2", "standard_error", "rank"]
    keys = list(dict.fromkeys(zip(stored["month"].to_pylist(), stored["carrier"].to_pylist(), strict=True)))
    assert keys == [(month, carrier) for month in ("1", "2", "3", "4") for carrier in ("AA", "B6", "DL", "UA", None)]
    for month, carrier in (("1", "AA"), ("4", None)):
        same = labelled.frame["carrier"].isna() if carrier is None else labelled.frame["carrier"] == carrier
        mine = labelled.frame[(labelled.frame["month"] == int(month)) & same]
        alone = in_memory(labelled, mine, weight=mine["weight"])
        found = table[(table["month"] == month) & (table["carrier"].isna() if carrier is None else table["carrier"] == carrier)]
        assert_allclose(found["r2"], alone.summaries["r2"]["r2"], rtol=1e-9, atol=1e-14)
        assert_allclose(found["standard_error"], alone.summaries["r2"]["standard_error"], rtol=1e-6, atol=1e-12)
        for name, value in alone.totals["r2"].items():
            assert_allclose(found[name], value, rtol=1e-9)


@pytest.mark.parametrize("workers", [2, *more(1, 4)])
@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_the_bits_do_not_depend_on_the_workers(labelled, serial, tmp_path, workers):
    """Everything that is published, byte by byte."""
    run(labelled, tmp_path / "run", weight="weight", by=["month", "carrier"], ids=["flight"], precision="float64", scheduler=None, workers=workers)
    assert contents(tmp_path / "run") == contents(serial[0])


@pytest.mark.slow
def test_global_only_publishes_the_same_summary_and_no_rows(labelled, serial, tmp_path):
    """Summaries are the same bytes; parts have no rows, and the run is sound. So it is of a method that adds up."""
    out, manifest = serial
    found = run(labelled, tmp_path / "run", weight="weight", by=["month", "carrier"], global_only=True)
    assert found.totals["r2"] == manifest.totals["r2"]
    for name in ("r2.parquet", "r2_by.parquet"):
        assert (tmp_path / "run" / "summary" / name).read_bytes() == (out / "summary" / name).read_bytes()
    assert attributions(tmp_path / "run").num_rows == 0
    assert check_run(str(tmp_path / "run")).n_rows == len(labelled.frame)
    explain(labelled.model, labelled.data, tmp_path / "shapley", global_only=True, scheduler="serial")
    assert check_run(str(tmp_path / "shapley")).residual < 1e-13


def test_a_weight_is_so_many_rows(labelled):
    """Shares with whole weights are those of rows repeated."""
    times = np.random.default_rng(3).integers(0, 4, len(labelled.frame))
    weighted = in_memory(labelled, labelled.frame, weight=times)
    repeated = in_memory(labelled, labelled.frame.loc[labelled.frame.index.repeat(times)])
    assert_allclose(weighted.summaries["r2"]["r2"], repeated.summaries["r2"]["r2"], rtol=1e-10, atol=1e-15)
    for name in ("total_r2", "sst", "remainder"):
        assert_allclose(weighted.totals["r2"][name], repeated.totals["r2"][name], rtol=1e-9)


@pytest.mark.slow
def test_a_constant_label_has_no_r2(labelled, tmp_path):
    """Null everywhere, not infinity; so has a label that is always missing. Neither stops the run."""
    for label, n in (("one", len(labelled.frame)), ("none", 0)):
        manifest = run(labelled, tmp_path / label, label=label, by=["month"])
        assert (manifest.totals["r2"]["n"], manifest.totals["r2"]["total_r2"], manifest.totals["r2"]["remainder"]) == (n, None, None)
        for name in ("r2", "r2_by"):
            table = pq.read_table(tmp_path / label / "summary" / f"{name}.parquet")
            assert table["r2"].null_count == table["standard_error"].null_count == table.num_rows > 0
        assert check_run(str(tmp_path / label)).n_rows == len(labelled.frame)


def test_the_largest_labels_and_weights_have_finite_shares(example):
    """Labels up to 1e60 and weights up to 1e30 overflow nowhere, and leave the model nothing to explain; larger ones are refused."""
    n = len(example.frame)
    labels, weights = np.where(np.arange(n) % 2, 1e60, -1e60), np.full(n, 1e30)
    found = attribute(example.booster, example.frame[FEATURES], "r2", label=labels, weight=weights)
    shares = found.summaries["r2"]
    assert np.isfinite([*found.totals["r2"].values(), *shares["r2"].to_numpy(), *shares["standard_error"].to_numpy()]).all()
    assert_allclose(found.totals["r2"]["total_r2"], 0, atol=1e-12)
    with pytest.raises(InvalidData, match=r"the label is -2e\+60"):
        attribute(example.booster, example.frame[FEATURES], "r2", label=2 * labels)


def test_no_rows_have_no_r2(labelled, tmp_path):
    """An empty data set has a summary, without shares and without groups."""
    labelled.frame[:0].to_parquet(tmp_path / "data.parquet")
    found = explain(labelled.model, tmp_path / "data.parquet", tmp_path / "run", method="r2", label="label", by=["carrier"], scheduler="serial")
    assert (found.totals["r2"]["n"], found.totals["r2"]["total_r2"]) == (0, None)
    assert pq.read_table(tmp_path / "run" / "summary" / "r2_by.parquet").num_rows == 0


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost", "dart", "partition"])
def test_every_library_adds_up_to_its_own_r2(example, library):
    """Losses sum to what the squared error of the library's own predictions loses: R^2 less the remainder; with DART's weights and groups too."""
    frame = example.frame[NUMERIC].fillna(0.0)
    label = frame["delay"] + frame["distance"] / 20 + np.random.default_rng(4).normal(size=len(frame)) * 30 + 1e4
    if library in ("xgboost", "dart"):
        given = {"max_depth": 4, "nthread": 1} | ({"booster": "dart", "rate_drop": 0.5} if library == "dart" else {})
        model = xgboost.train(given, xgboost.DMatrix(frame, label), 20)
        margin = model.predict(xgboost.DMatrix(frame))
    elif library == "catboost":
        model = catboost.CatBoostRegressor(iterations=20, depth=4, verbose=False, allow_writing_files=False).fit(frame, label)
        margin = model.predict(frame)
    else:
        model = lightgbm.train({"verbosity": -1, "num_threads": 1, "seed": 1}, lightgbm.Dataset(frame, label), 20)
        margin = model.predict(frame)
    partition = {"both": ["distance", "month"]} if library == "partition" else None
    found = attribute(model, frame, "r2", label=label, partition=partition)
    r2, sst = plain_r2(label, margin, np.ones(len(label)))
    totals, shares = found.totals["r2"], found.summaries["r2"]["r2"].to_numpy()
    assert_allclose(totals["total_r2"], r2, rtol=1e-5)  # XGBoost predicts in float32
    assert_allclose(totals["sst"], sst, rtol=1e-12)
    assert_allclose(shares.sum() + totals["remainder"], totals["total_r2"], rtol=1e-12)
    assert_allclose(found.phi.sum(axis=(0, 1)) / sst, shares, rtol=1e-10)
    assert abs(totals["remainder"]) < 0.05


def test_losses_that_do_not_add_up_stop_the_run(labelled, tmp_path, monkeypatch):
    """A kernel that is off on one row is caught on that row."""
    right = METHODS["r2"].kernel

    def off_on_one_row(buffers, tables):
        right(buffers, tables)
        buffers.phi[0, 0, 17] += 1.0

    monkeypatch.setitem(METHODS, "r2", replace(METHODS["r2"], kernel=off_on_one_row))
    with pytest.raises(AdditivityBreach, match=r"month=1/data\.parquet: row 17: losses miss what trees take off the squared error by"):
        run(labelled, tmp_path / "run")


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"label": None}, UsageError, "method 'r2' needs labels; name their column with --label"),
        ({"label": "no"}, SchemaMismatch, "column 'no' missing"),
        ({"weight": "no"}, SchemaMismatch, "column 'no' missing"),
        ({"by": ["no"]}, SchemaMismatch, "column 'no' missing"),
        ({"label": "name"}, SchemaMismatch, r"column 'name' is .*string, expected numbers"),
        ({"weight": "carrier"}, SchemaMismatch, r"column 'carrier' is .*string, expected numbers"),
        ({"by": ["distance"]}, SchemaMismatch, "column 'distance' is double, expected texts, integers or dates to group rows by"),
        ({"by": ["month", "month"]}, UsageError, "by has 'month' twice, expected once"),
        ({"by": ["n"]}, UsageError, "by has 'n', as a column of the summary is called; rename it"),
        ({"missing_labels": "refuse"}, InvalidData, r"row \d+: label 'label' is missing, expected a number, or --missing-labels count"),
        ({"missing_labels": "drop"}, UsageError, "missing_labels is 'drop', expected 'count' or 'refuse'"),
        ({"weight": "delay"}, InvalidData, r"row \d+: weight 'delay' is (nan|-\d+\.0), expected a number between 0 and 1e\+30"),
        ({"global_only": True, "ids": ["flight"]}, UsageError, "ids are flight, but with global_only no rows are written"),
        ({"method": "shapley"}, UsageError, "method 'shapley' takes no labels and weights; method 'r2' does"),
        ({"interactions": 3}, UsageError, "method 'r2' has no interactions"),
        ({"background": "model"}, UsageError, "method 'r2' has no marginal game"),
    ],
)
def test_refusals_are_one_line(labelled, tmp_path, given, error, says):
    """What was got, what was expected, where."""
    with pytest.raises(error, match=says) as raised:
        run(labelled, tmp_path / "run", **given)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_more_groups_than_a_table_is_worth_are_refused(labelled, tmp_path, monkeypatch):
    """A column that tells every row apart is no grouping."""
    monkeypatch.setattr("leafledger.kernels.slices.labels.MOST_VALUES", 100)
    with pytest.raises(UsageError, match=r"'flight' make .* groups of 4 values each, expected at most 100 values in all"):
        run(labelled, tmp_path / "run", by=["flight"])
    assert MOST_VALUES > 100_000


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        (
            {"objective": "binary"},
            "method 'r2' measures .* not meaningful for a classifier .objective 'binary'., whose margin is the score",
        ),
        ({"objective": "multiclass", "num_class": 3}, "which is not meaningful for a classifier .objective 'multiclass'."),
        ({"objective": "poisson"}, "which is not meaningful where the margin is not known to be a prediction of the label .objective 'poisson'."),
    ],
)
def test_models_whose_margin_is_no_prediction_are_refused(example, parameters, says):
    """A classifier's score and a logarithm have no residual in the label's units."""
    frame = example.frame[NUMERIC].fillna(0.0)
    model = lightgbm.train(
        {"verbosity": -1, "num_threads": 1} | parameters, lightgbm.Dataset(frame, frame["month"] % parameters.get("num_class", 2)), 2
    )
    with pytest.raises(UnsupportedModel, match=says):
        attribute(model, frame, "r2", label=frame["month"])


def test_a_model_of_several_targets_is_refused(example):
    """R^2 is that of one output."""
    frame = example.frame[NUMERIC].fillna(0.0)
    model = xgboost.train({"max_depth": 2, "nthread": 1}, xgboost.DMatrix(frame, frame[["delay", "distance"]]), 2)
    with pytest.raises(UsageError, match="method 'r2' needs a model of one output, got 2"):
        attribute(model, frame, "r2", label=frame["delay"])


@pytest.mark.parametrize(
    ("method", "given", "says"),
    [
        ("r2", {}, "method 'r2' needs labels"),
        ("shapley", {"label": [1.0]}, "method 'shapley' takes no labels and weights"),
        ("r2", {"label": [1.0]}, r"label has shape \(1,\), expected one number for each of 3000 rows"),
        ("r2", {"label": ["a"] * 3000}, "label has 'a', expected numbers, or the name of a column; two classes are 0 and 1"),
        ("r2", {"label": np.full(3000, np.inf)}, r"rows: row 0: the label is inf, expected a number between -1e\+60 and 1e\+60"),
        ("r2", {"label": np.ones(3000), "weight": -np.ones(3000)}, r"rows: row 0: the weight is -1.0, expected a number between 0 and 1e\+30"),
    ],
)
def test_labels_in_memory_are_checked(example, method, given, says):
    """The same refusals as of a column."""
    with pytest.raises(LeafledgerError, match=says):
        attribute(example.booster, example.frame[FEATURES], method, **given)


@pytest.mark.parametrize("numbers", [[2**64 - 1, 2**63, None], [0, 2**63, 2**64 - 1]])
def test_groups_may_be_integers_of_any_size(labelled, tmp_path, numbers):
    """Hashes, for example, which have 64 bits and no sign; a group is the rows that have its number."""
    table = pa.Table.from_pandas(labelled.frame, preserve_index=False)
    column = pa.array([numbers[i % 3] for i in range(table.num_rows)], pa.uint64())
    pq.write_table(table.append_column("hash", column), tmp_path / "data.parquet")
    explain(labelled.model, tmp_path / "data.parquet", tmp_path / "run", method="r2", label="label", by=["hash"], scheduler="serial")
    found = pq.read_table(tmp_path / "run" / "summary" / "r2_by.parquet")
    assert found.schema.field("hash").type == pa.uint64()
    assert set(found["hash"].to_pylist()) == set(numbers)
    assert check_run(tmp_path / "run", all_rows=True).sound


def test_groups_by_text_that_is_none_cost_their_rows(labelled, tmp_path):
    """As other values that cannot be read; it is said before any summary is made, and nothing is left where all rows have such."""
    table = pa.Table.from_pandas(labelled.frame, preserve_index=False)
    offsets = pa.py_buffer(np.arange(table.num_rows + 1, dtype=np.int32).tobytes())
    column = pa.StringArray.from_buffers(table.num_rows, offsets, pa.py_buffer(b"\xff" * table.num_rows))
    pq.write_table(table.append_column("called", column), tmp_path / "data.parquet")
    with pytest.raises(InvalidData, match=r"data\.parquet: row groups \[0\]: column 'called' has text that is not UTF-8"):
        explain(labelled.model, tmp_path / "data.parquet", tmp_path / "run", method="r2", label="label", by=["called"], scheduler="serial")
