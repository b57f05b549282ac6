"""Categories of XGBoost's models without lists: their codes, as in training, or one line; never values in their place."""

import json
import logging

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import explain, load_ensemble
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import SchemaMismatch, UnsupportedModel
from tests.pipeline.models.xgboost.training import VERSION
from tests.pipeline.running import attributions

N = 1200
SINGLE = 1e-4  # XGBoost adds up in float32
RNG = np.random.default_rng(0)
MONTH, X = RNG.integers(1, 13, N), RNG.normal(size=N)
LABEL = 5.0 * RNG.permutation(12)[MONTH - 1] + X
SAID = "codes of categories, not values, since the model has no list of them: month\n"
with_lists = pytest.mark.skipif(VERSION < (3, 1), reason="older versions have no lists")
slices_lose_lists = pytest.mark.skipif(VERSION >= (3, 4), reason="newer versions keep the lists in slices")
slices_keep_lists = pytest.mark.skipif(VERSION < (3, 4), reason="older versions lose the lists of slices")


def train_codes(path):
    """A model of codes, as the user made them, or XGBoost before 3.1 of a frame's categories; and its margins."""
    data = xgboost.DMatrix(np.column_stack((MONTH - 1.0, X)), LABEL, feature_names=["month", "x"], feature_types=["c", "q"], enable_categorical=True)
    booster = xgboost.train({"nthread": 1}, data, 20)
    booster.save_model(path)
    return booster.predict(data, output_margin=True)


def write_folders(data, column):
    for value in np.unique(column):
        (data / f"month={value}").mkdir(parents=True)
        rows = np.flatnonzero(column == value)
        pq.write_table(pa.table({"row": rows, "x": X[rows]}), data / f"month={value}" / "part.parquet")


def test_codes_in_files_are_codes_and_that_is_said(tmp_path, capsys, caplog):
    """By plan, by the command, by the log and where a model is inspected."""
    model, out = tmp_path / "model.ubj", tmp_path / "run"
    expected = train_codes(model)
    assert [feature.kind for feature in load_ensemble(model).features] == ["codes of categories, whose list is not there", "numbers"]
    pq.write_table(pa.table({"month": MONTH - 1, "x": X}), tmp_path / "rows.parquet")
    given = [str(model), str(tmp_path / "rows.parquet"), "--out", str(out), "--precision", "float64"]
    assert main(["plan", *given]) == 0
    assert f"columns  {SAID}" in capsys.readouterr().out
    with caplog.at_level(logging.INFO, "leafledger"):
        assert main(["explain", *given, "--scheduler", "serial"]) == 0
    assert capsys.readouterr().out.startswith(f"columns hold {SAID}")
    assert f"{tmp_path}/rows.parquet: columns hold {SAID.strip()}" in caplog.messages
    assert_allclose(attributions(out)["margin"], expected, rtol=SINGLE, atol=SINGLE)


def test_a_path_holds_values_and_no_codes(tmp_path):
    """A frame's months 1 to 12 had the codes 0 to 11; folders are called by months."""
    train_codes(tmp_path / "model.ubj")
    write_folders(tmp_path / "data", MONTH)
    with pytest.raises(
        SchemaMismatch, match=r"month=1/part\.parquet \(its path\): column 'month' is '1', the model was trained on category codes, .*: give"
    ):
        explain(tmp_path / "model.ubj", tmp_path / "data", tmp_path / "run", scheduler="serial")


def test_what_lightgbm_was_trained_on_as_numbers_may_stand_in_a_path(tmp_path):
    """Its categories without a list are the numbers themselves."""
    import lightgbm

    rows = np.column_stack((MONTH, X))
    data = lightgbm.Dataset(rows, LABEL, feature_name=["month", "x"], categorical_feature=[0])
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1, "min_data_per_group": 5}, data, 20)
    booster.save_model(tmp_path / "model.txt")
    write_folders(tmp_path / "data", MONTH)
    explain(tmp_path / "model.txt", tmp_path / "data", tmp_path / "run", ids="row", precision="float64", scheduler="serial")
    found = attributions(tmp_path / "run").sort_by("row")
    assert_allclose(found["margin"], booster.predict(rows, raw_score=True), rtol=1e-9)


def fit(save_best):
    frame = pd.DataFrame({"month": pd.Categorical(MONTH), "x": X})
    stop = xgboost.callback.EarlyStopping(rounds=3, save_best=save_best)
    given = {"n_estimators": 20, "n_jobs": 1, "max_cat_to_onehot": 1, "enable_categorical": True, "callbacks": [stop]}
    model = xgboost.XGBRegressor(**given).fit(frame, LABEL, eval_set=[(frame, LABEL)], verbose=False)
    return model, model.predict(frame, output_margin=True)


@with_lists
@slices_lose_lists
def test_a_slice_of_an_estimator_that_has_lost_its_lists_is_refused(tmp_path):
    """``save_best`` makes one. The whole model knows its categories, in files too."""
    pq.write_table(pa.table({"month": MONTH, "x": X}), tmp_path / "rows.parquet")
    whole, expected = fit(False)
    whole.save_model(tmp_path / "whole.json")
    explain(tmp_path / "whole.json", tmp_path / "rows.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_allclose(attributions(tmp_path / "run")["margin"], expected, rtol=SINGLE, atol=SINGLE)
    fit(True)[0].save_model(tmp_path / "slice.json")
    assert json.loads((tmp_path / "slice.json").read_text())["learner"]["gradient_booster"]["model"]["cats"]["enc"] == []
    with pytest.raises(
        UnsupportedModel, match=r"slice\.json: feature 'month' was a column of categories, whose list is lost, as a slice .*: save the whole"
    ):
        load_ensemble(tmp_path / "slice.json")


@slices_keep_lists
def test_a_slice_of_an_estimator_that_keeps_its_lists_is_explained(tmp_path):
    pq.write_table(pa.table({"month": MONTH, "x": X}), tmp_path / "rows.parquet")
    slice_, expected = fit(True)
    slice_.save_model(tmp_path / "slice.json")
    explain(tmp_path / "slice.json", tmp_path / "rows.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_allclose(attributions(tmp_path / "run")["margin"], expected, rtol=SINGLE, atol=SINGLE)


@with_lists
def test_an_estimator_that_was_told_of_codes_is_none_that_lost_its_lists(tmp_path):
    """Types that the user gave, and data that were codes."""
    rows = np.column_stack((MONTH - 1.0, X))
    model = xgboost.XGBRegressor(n_estimators=5, n_jobs=1, enable_categorical=True, feature_types=["c", "q"]).fit(rows, LABEL)
    model.save_model(tmp_path / "model.json")
    assert [feature.perhaps_codes for feature in load_ensemble(tmp_path / "model.json").features] == [True, False]
