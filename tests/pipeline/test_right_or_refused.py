"""Inputs whose meaning is easily lost on the way: margins are the library's own predictions on the rows as they were meant, or the run is refused."""

import re

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xgboost
from numpy.testing import assert_allclose

from leafledger import LeafledgerError, attribute, explain, load_ensemble
from leafledger.pipeline.errors import InvalidColumn, PredictionMismatch, SchemaMismatch, UnsupportedModel, UsageError
from tests.pipeline.running import attributions

N = 400
LIBRARIES = ("xgboost", "lightgbm", "catboost")
FINE = {"min_data_per_group": 1, "cat_smooth": 0.0, "cat_l2": 0.0, "min_data_in_leaf": 1, "verbosity": -1, "num_threads": 1, "seed": 1}


def train(library, frame, label, folder):
    """A file of the library's model, and the function of a frame that are its own margins."""
    if library == "xgboost":
        booster = xgboost.train({"max_depth": 4, "nthread": 1}, xgboost.DMatrix(frame, label, enable_categorical=True), 20)
        booster.save_model(folder / "model.ubj")
        return folder / "model.ubj", lambda rows: booster.predict(xgboost.DMatrix(rows, enable_categorical=True), output_margin=True)
    if library == "lightgbm":
        booster = lightgbm.train(FINE, lightgbm.Dataset(frame, label), 20)
        booster.save_model(folder / "model.txt")
        return folder / "model.txt", lambda rows: booster.predict(rows, raw_score=True)
    categorical = [name for name, kind in frame.dtypes.items() if isinstance(kind, pd.CategoricalDtype)]
    regressor = catboost.CatBoostRegressor(iterations=20, depth=3, verbose=False, allow_writing_files=False, thread_count=1, one_hot_max_size=255)
    regressor.fit(frame, label, cat_features=categorical)
    regressor.save_model(folder / "model.cbm")
    return folder / "model.cbm", regressor.predict


def categories_of(values, known):
    return pd.Series(pd.Categorical(values, categories=known))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.slow
def test_text_in_a_path_keeps_its_zeros(library, tmp_path):
    """A category "01" is not the number 1; and what other folders there are changes nothing."""
    rng = np.random.default_rng(0)
    months = [f"{month:02}" for month in range(1, 13)]
    month = np.repeat(months, N // 12 + 1)[:N]
    frame = pd.DataFrame({"month": categories_of(month, months), "x": rng.normal(size=N)})
    model, margin = train(library, frame, frame["x"] + 5 * rng.permutation(12)[frame["month"].cat.codes], tmp_path)
    for value, rows in frame.assign(row=np.arange(N)).groupby("month", observed=True):
        (tmp_path / "data" / f"month={value}").mkdir(parents=True)
        pq.write_table(pa.table({"row": rows["row"], "x": rows["x"]}), tmp_path / "data" / f"month={value}" / "f.parquet")
    explain(model, tmp_path / "data", tmp_path / "run", ids=["row", "month"], precision="float64", scheduler="serial")
    found = attributions(tmp_path / "run").to_pandas().sort_values("row", ignore_index=True)
    assert found["month"].tolist() == month.tolist()
    assert_allclose(found["margin"], margin(frame), rtol=1e-5, atol=1e-5)

    (tmp_path / "data" / "month=other").mkdir()
    pq.write_table(pa.table({"row": [N], "x": [0.0]}), tmp_path / "data" / "month=other" / "f.parquet")
    explain(model, tmp_path / "data", tmp_path / "more", ids=["row", "month"], precision="float64", scheduler="serial")
    more = attributions(tmp_path / "more").to_pandas().sort_values("row", ignore_index=True)
    pd.testing.assert_frame_equal(more[:N], found)


def test_a_number_in_a_path_is_one_however_it_is_written(tmp_path):
    """The model's own type decides: month=01 is the number 1."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"month": rng.integers(1, 4, N), "x": rng.normal(size=N)})
    model, margin = train("xgboost", frame, frame["x"] + 5 * frame["month"], tmp_path)
    (tmp_path / "data" / "month=03").mkdir(parents=True)
    pq.write_table(pa.table({"x": frame["x"]}), tmp_path / "data" / "month=03" / "f.parquet")
    explain(model, tmp_path / "data", tmp_path / "run", ids=["month"], precision="float64", scheduler="serial")
    found = attributions(tmp_path / "run").to_pandas()
    assert set(found["month"]) == {"03"}
    assert_allclose(found["margin"], margin(frame.assign(month=3)), rtol=1e-5, atol=1e-5)


def test_zeros_that_the_model_s_category_has_not_are_refused(tmp_path):
    """It knows "1", the path says "01": perhaps the same, perhaps not."""
    frame = pd.DataFrame({"month": categories_of(np.repeat(["1", "2"], N // 2), ["1", "2"]), "x": np.arange(N) % 7.0})
    model, _ = train("lightgbm", frame, frame["month"].cat.codes, tmp_path)
    (tmp_path / "data" / "month=01").mkdir(parents=True)
    pq.write_table(pa.table({"x": frame["x"]}), tmp_path / "data" / "month=01" / "f.parquet")
    with pytest.raises(SchemaMismatch, match=r"f\.parquet \(its path\): column 'month' is '01', the model has category '1'; name the folder so$"):
        explain(model, tmp_path / "data", tmp_path / "run", scheduler="serial")


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_integer_categories_beyond_float64_are_told_apart(library, tmp_path):
    """In memory and in a run."""
    rng = np.random.default_rng(0)
    known = 2**53 + np.arange(4)
    code = rng.integers(0, 4, N)
    frame = pd.DataFrame({"a": categories_of(known[code], known), "x": rng.normal(size=N)})
    model, margin = train(library, frame, np.array([0.0, 10.0, -5.0, 3.0])[code] + frame["x"], tmp_path)
    expected = margin(frame)
    assert np.ptp([expected[code == c].mean() for c in range(4)]) > 10
    assert_allclose(attribute(str(model), frame).margin[:, 0], expected, rtol=1e-5, atol=1e-5)
    pq.write_table(pa.table({"a": known[code], "x": frame["x"]}), tmp_path / "f.parquet")
    explain(model, tmp_path / "f.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_allclose(attributions(tmp_path / "run")["margin"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("library", "known"),
    [("xgboost", [0, 1, 2]), ("lightgbm", [0, 1, 2]), ("lightgbm", [0.0, 1.0, 2.5]), ("lightgbm", [-0.0, 1.0, 2.5])],
    ids=str,
)
def test_a_category_0_may_have_a_minus(library, known, tmp_path):
    """Which a column of floating point has after a multiplication: margins are those of the category 0."""
    known = np.array(known)
    code = np.random.default_rng(0).integers(0, 3, N)
    frame = pd.DataFrame({"a": categories_of(known[code], known), "x": np.arange(N) % 7.0})
    model, margin = train(library, frame, np.array([90.0, 0.0, 1.0])[code] + frame["x"], tmp_path)
    expected = margin(frame)
    assert expected[code == 0].min() > expected[code != 0].max()
    for zero in (0.0, -0.0):
        rows = frame.assign(a=np.where(code == 0, zero, known[code]))
        assert_allclose(attribute(str(model), rows).margin[:, 0], expected, rtol=1e-5, atol=1e-5)
    rows.to_parquet(tmp_path / "f.parquet")
    explain(model, tmp_path / "f.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_allclose(attributions(tmp_path / "run")["margin"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_codes_are_cut_as_the_library_cuts_them(library, tmp_path):
    """Whole, with fractions, too large and below 0, in a matrix and a column; between -1 and 0, where libraries differ, they are refused."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 5, N)
    rows, label = np.column_stack((code, rng.normal(size=N))).astype(float), np.array([9.0, -5.0, 3.0, 0.0, 1.0])[code]
    if library == "xgboost":
        given = {"feature_names": ["a", "x"], "feature_types": ["c", "q"], "enable_categorical": True}
        model = xgboost.train({"max_depth": 4, "nthread": 1, "max_cat_to_onehot": 1}, xgboost.DMatrix(rows, label, **given), 20)
        model.save_model(tmp_path / "model.ubj")
        path = tmp_path / "model.ubj"
    else:
        given = {"feature_name": ["a", "x"], "categorical_feature": [0]}
        model = lightgbm.train(FINE, lightgbm.Dataset(rows, label, **given), 20)
        model.save_model(tmp_path / "model.txt")
        path = tmp_path / "model.txt"

    def margin(some):
        return model.predict(xgboost.DMatrix(some, **given) if library == "xgboost" else some)

    odd = rows.copy()
    odd[:60, 0] = [0.0, -0.0, 0.5, 1.9, 4.999, 5.0, 77.0, -1.0, -1.5, -20.0] * 6
    for some in (odd, pd.DataFrame(odd, columns=["a", "x"])):
        assert_allclose(attribute(path, some).margin[:, 0], margin(odd), rtol=1e-5, atol=1e-5)
    fractions = odd.copy()
    fractions[3, 0] = -0.25
    pd.DataFrame(fractions, columns=["a", "x"]).to_parquet(tmp_path / "f.parquet")
    for some in (fractions, pd.DataFrame(fractions, columns=["a", "x"])):
        with pytest.raises(InvalidColumn, match=r"^column 'a': code -0\.25 of a category, expected a whole number$"):
            attribute(path, some)
    with pytest.raises(LeafledgerError, match=r"column 'a': code -0\.25 of a category, expected a whole number"):
        explain(path, tmp_path / "f.parquet", tmp_path / "run", scheduler="serial")


@pytest.mark.parametrize("library", LIBRARIES)
def test_integers_beyond_float64_fall_on_the_library_s_side(library, tmp_path):
    """Rounded to float32 once where the library compares float32, and to float64 where it does not."""
    values = np.repeat(2**60 + np.array([2**36 + 1, 2**36, 2**36 - 1, 0, 2**37]), N // 5)
    frame = pd.DataFrame({"a": values, "x": np.arange(N) % 7.0})
    model, margin = train(library, frame, np.repeat([1.0, 0.0, 0.0, 0.0, 1.0], N // 5), tmp_path)
    assert np.ptp(margin(frame)) > 0.5
    assert_allclose(attribute(str(model), frame).margin[:, 0], margin(frame), rtol=1e-5, atol=1e-5)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "f.parquet")
    explain(model, tmp_path / "f.parquet", tmp_path / "run", precision="float64", scheduler="serial")
    assert_allclose(attributions(tmp_path / "run")["margin"], margin(frame), rtol=1e-5, atol=1e-5)


def test_an_estimator_s_own_missing_value_is_missing(tmp_path):
    """Only the estimator knows that -999 is: of its file it has to be said."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    x[::3, 0] = -999.0
    label = np.where(x[:, 0] == -999, 5.0, x[:, 0])
    estimator = xgboost.XGBRegressor(n_estimators=10, missing=-999.0, n_jobs=1).fit(x, label)
    assert_allclose(attribute(estimator, x).margin[:, 0], estimator.predict(x, output_margin=True), rtol=1e-5, atol=1e-5)
    estimator.save_model(tmp_path / "model.ubj")
    pd.DataFrame(x, columns=["f0", "f1"]).to_parquet(tmp_path / "rows.parquet")
    explain(tmp_path / "model.ubj", tmp_path / "rows.parquet", tmp_path / "run", missing=-999, precision="float64", scheduler="serial")
    found = attributions(tmp_path / "run")["margin"].to_numpy()
    assert_allclose(found, estimator.predict(x, output_margin=True), rtol=1e-5, atol=1e-5)
    as_nan = np.where(x == -999, np.nan, x)
    assert_allclose(attribute(estimator.get_booster(), as_nan).margin[:, 0], estimator.predict(x, output_margin=True), rtol=1e-5, atol=1e-5)
    unmarked = xgboost.XGBRegressor(n_estimators=10, n_jobs=1).fit(as_nan, label)
    assert_allclose(attribute(unmarked, as_nan).margin[:, 0], unmarked.predict(as_nan, output_margin=True), rtol=1e-5, atol=1e-5)


def test_a_number_for_missing_values_that_is_a_category_s_code_is_refused(tmp_path):
    """XGBoost takes the first category for missing where 0 is, in training too; of numbers alone, and of other libraries, it may be any number."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 4, N)
    frame = pd.DataFrame({"c": categories_of(np.array(list("abcd"))[code], list("abcd")), "x": rng.integers(0, 5, N).astype(float)})
    label = np.array([10.0, -7.0, 2.0, 4.0])[code] + frame["x"]
    given = {"n_estimators": 10, "n_jobs": 1, "enable_categorical": True}
    for missing, category in ((0, "a"), (3.0, "d")):
        estimator = xgboost.XGBRegressor(missing=missing, **given).fit(frame, label)
        estimator.save_model(tmp_path / "model.ubj")
        says = (
            f": {missing:g} stands for missing values, and is the code of category '{category}' of feature 'c', which XGBoost takes for missing then"
        )
        for refused in (lambda: attribute(estimator, frame), lambda: load_ensemble(tmp_path / "model.ubj", missing=missing)):  # noqa: B023 - called at once
            with pytest.raises(UnsupportedModel, match=says):
                refused()
    for missing in (4, -1, -999, 0.5):
        estimator = xgboost.XGBRegressor(missing=missing, **given).fit(frame, label)
        expected = estimator.predict(frame, output_margin=True)
        assert_allclose(attribute(estimator, frame).margin[:, 0], expected, rtol=1e-5, atol=1e-5)
    numbers = frame[["x"]]
    estimator = xgboost.XGBRegressor(missing=0, n_estimators=10, n_jobs=1).fit(numbers, label)
    assert_allclose(attribute(estimator, numbers).margin[:, 0], estimator.predict(numbers, output_margin=True), rtol=1e-5, atol=1e-5)
    booster = lightgbm.train(FINE, lightgbm.Dataset(frame.assign(x=frame["x"].replace(0, np.nan)), label), 10)
    expected = booster.predict(frame.assign(x=frame["x"].replace(0, np.nan)), raw_score=True)
    assert_allclose(attribute(load_ensemble(booster, missing=0), frame).margin[:, 0], expected, rtol=1e-9, atol=1e-9)


def test_a_category_column_that_lightgbm_took_for_numbers_is_refused():
    """Beside one that was listed as categorical its categories are in the model file all the same, and would be taken for the other's."""
    rng = np.random.default_rng(0)
    known = np.array([10, 20, 30, 40, 50, 60])
    listed, unlisted = rng.integers(0, 5, N), rng.integers(0, 6, N)
    frame = pd.DataFrame({"b": categories_of(known[unlisted], known), "a": listed, "x": rng.normal(size=N)})
    label = np.array([0.0, 10.0, -20.0, 5.0, 8.0])[listed] + unlisted
    booster = lightgbm.train(FINE, lightgbm.Dataset(frame, label, categorical_feature=["a"]), 20)
    with pytest.raises(SchemaMismatch, match=r"^rows: column 'b' is dictionary<.*, the model was trained on numbers or on a category"):
        attribute(booster, frame)
    as_numbers = pd.concat([frame.assign(b=frame["b"].astype(int))] * 5)
    with pytest.raises(SchemaMismatch, match=r"^rows: column 'a' is int64, the model was trained on categories or on their codes, and cannot tell"):
        attribute(booster, as_numbers)


def test_a_numeric_column_that_comes_as_categories_is_its_values():
    """As pandas reads a column of a path; the model's only categories are texts, so that these cannot have been among them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"month": rng.choice([1, 7, 12], N), "carrier": pd.Categorical(rng.choice(["b", "a"], N))})
    booster = lightgbm.train(FINE, lightgbm.Dataset(frame, frame["month"] * 10.0 + frame["carrier"].cat.codes), 20)
    read = frame.assign(month=pd.Categorical(frame["month"]))
    assert_allclose(attribute(booster, read).margin[:, 0], booster.predict(frame, raw_score=True), rtol=1e-12)


def test_booleans_that_catboost_stored_as_numbers_are_refused(tmp_path):
    """In JSON that was saved with a pool; as integers they are the categories that it stores, and in its other files they are known."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"b": rng.random(N) < 0.5, "x": rng.normal(size=N)})
    pool = catboost.Pool(frame, np.where(frame["b"], 10.0, -10.0) + frame["x"], cat_features=["b"])
    regressor = catboost.CatBoostRegressor(iterations=10, depth=2, verbose=False, one_hot_max_size=10, allow_writing_files=False, thread_count=1)
    regressor.fit(pool)
    regressor.save_model(tmp_path / "pool.json", format="json", pool=pool)
    regressor.save_model(tmp_path / "model.cbm")
    with pytest.raises(SchemaMismatch, match=r"^rows: column 'b' is bool, the model was trained on categories that are strings$"):
        attribute(str(tmp_path / "pool.json"), frame)
    for name, rows in (("pool.json", frame.astype({"b": int})), ("model.cbm", frame)):
        assert_allclose(attribute(str(tmp_path / name), rows).margin[:, 0], regressor.predict(frame), rtol=1e-12)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.slow
def test_rows_that_another_model_scored_are_refused(library, tmp_path):
    """Where the data hold the margin, it is compared row by row: with what the library predicted on these rows, and with nothing else."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"carrier": categories_of(rng.choice(["b", "a"], N), ["b", "a"]), "x": rng.normal(size=N)})
    model, margin = train(library, frame, frame["x"] * 3 + 5 * frame["carrier"].cat.codes, tmp_path)
    scored = frame.assign(margin=margin(frame), carrier=frame["carrier"].astype(str))
    scored.to_parquet(tmp_path / "rows.parquet")
    explain(model, tmp_path / "rows.parquet", tmp_path / "right", predictions="margin", scheduler="serial")
    wrong = {
        "swapped": (scored.assign(carrier=scored["carrier"].where(scored.index != 7, "b" if scored["carrier"][7] == "a" else "a")), 1),
        "moved": (scored.assign(x=np.where(scored.index >= 7, scored["x"] + 10, scored["x"])), N - 7),
        "missing": (scored.assign(margin=scored["margin"].where(scored.index != 7)), 1),
    }
    for name, (rows, most) in wrong.items():
        rows.to_parquet(tmp_path / f"{name}.parquet")
        explain(model, tmp_path / f"{name}.parquet", tmp_path / f"{name} unseen", scheduler="serial")
        with pytest.raises(PredictionMismatch, match=r"parquet: row 7: 'margin' is .*, expected the model's margin, .*; (\d+) of 400 rows") as error:
            explain(model, tmp_path / f"{name}.parquet", tmp_path / name, predictions="margin", scheduler="serial")
        assert 1 <= int(re.search(r"; (\d+) of 400", str(error.value))[1]) <= most
        assert not (tmp_path / name / "manifest.json").exists()
    with pytest.raises(UsageError, match=r"^predictions are margin, x, expected a column for each of the model's 1 outputs$"):
        explain(model, tmp_path / "rows.parquet", tmp_path / "two", predictions=["margin", "x"], scheduler="serial")
    with pytest.raises(SchemaMismatch, match=r"column 'carrier' is .*string, expected numbers$"):
        explain(model, tmp_path / "rows.parquet", tmp_path / "text", predictions="carrier", scheduler="serial")
