"""Numbers and categories of a matrix are what the model's own library takes them for: margins are its own, of the same matrix."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor

from leafledger import attribute, curves, load_ensemble, prediction_gap, prepare, save_model
from leafledger.pipeline.errors import SchemaMismatch

DRAW = np.random.default_rng(3)
MONTH = DRAW.integers(1, 13, 400)
ROWS = np.column_stack((MONTH, DRAW.integers(0, 2, 400), DRAW.integers(-40, 40, 400)))
SCORE = np.cos(MONTH) * 3 + ROWS[:, 1] * ROWS[:, 2] / 10
CAT = {"iterations": 15, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture(scope="module")
def histograms():
    """A regression on months, which are categories."""
    model = HistGradientBoostingRegressor(categorical_features=[0, 1], max_iter=20, min_samples_leaf=5, random_state=0)
    return model.fit(ROWS.astype(float), SCORE)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8", "object"])
def test_scikit_learn_looks_values_up(histograms, dtype):
    """In every type; those that training did not see, and missing ones, as it treats them."""
    rows = np.abs(ROWS)
    rows[:40, 0] = [0, 13, 14, 99] * 10
    rows = rows.astype(dtype)
    if rows.dtype.kind not in "iu":
        rows[60:80, 0] = np.nan
        rows[70:90, 2] = np.nan
    assert_allclose(attribute(histograms, rows).margin[:, 0], histograms.predict(rows), **EXACT)


def test_scikit_learns_classes_of_a_matrix():
    """Which is what a fitted pipeline of numbers hands over."""
    model = HistGradientBoostingClassifier(categorical_features=[0], max_iter=10, random_state=0).fit(ROWS, SCORE > 0)
    assert_allclose(attribute(model, ROWS).margin[:, 0], model.decision_function(ROWS), **EXACT)


def test_whoever_takes_rows_takes_the_same_matrix(histograms, tmp_path):
    """An explainer, a background, a stored model, perturbations and curves: as of a frame, which has the values by name."""
    frame = pd.DataFrame(ROWS, columns=list("012"))
    expected = attribute(histograms, frame, background=frame[:30])
    assert_array_equal(attribute(histograms, ROWS, background=ROWS[:30]).phi, expected.phi)
    assert_array_equal(attribute(histograms, frame, background=ROWS[:30]).phi, expected.phi)
    assert_array_equal(prepare(histograms, background=ROWS[:30])(ROWS).phi, expected.phi)
    save_model(histograms, tmp_path / "model.trees")
    stored = load_ensemble(tmp_path / "model.trees")
    assert stored.features == load_ensemble(histograms).features
    assert_allclose(attribute(stored, ROWS).margin[:, 0], histograms.predict(ROWS), **EXACT)
    assert_array_equal(prediction_gap(histograms, ROWS[:9], features=["2"]), prediction_gap(histograms, frame[:9], features=["2"]))
    drawn = [curves(histograms, some, expected.phi[:9]).insertion for some in (ROWS[:9], frame[:9])]
    assert_array_equal(*drawn)


def test_catboost_looks_booleans_up():
    """As the texts of 0 and 1."""
    rows = ROWS % 2 == 1
    model = catboost.CatBoostRegressor(**CAT, cat_features=[0, 1], one_hot_max_size=20).fit(rows, SCORE)
    assert_allclose(attribute(model, rows).margin[:, 0], model.predict(rows), **EXACT)


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint64", "object"])
@pytest.mark.parametrize("one_hot", [20, 1], ids=["one-hot", "statistics"])
def test_catboost_looks_the_texts_of_integers_up(one_hot, dtype):
    """As splits or as statistics; those that training did not see are none."""
    rows = np.add(ROWS, [0, 0, 40]).astype(dtype)
    model = catboost.CatBoostClassifier(**CAT, cat_features=[0, 1], one_hot_max_size=one_hot).fit(rows, SCORE > 0)
    probes = rows.copy()
    probes[:40, 0] = [0, 13, 14, 99] * 10
    for some in (rows, probes):
        found = attribute(model, some)
        assert_allclose(found.margin[:, 0], model.predict(some, prediction_type="RawFormulaVal"), **EXACT)
        own = model.get_feature_importance(catboost.Pool(some, cat_features=[0, 1]), type="ShapValues")
        assert_allclose(found.phi[:, 0], own[:, :-1], rtol=0, atol=1e-11)


BEYOND = 2**60 + np.array([2**36 + 1, 2**36, 2**36 - 1, 0, 2**37])  # the first is above the middle of two float32, and in float64 it is the middle
LARGE = np.column_stack((np.repeat(BEYOND, 80), np.arange(400) % 7))
MODELS = {
    "xgboost": xgboost.XGBRegressor(n_estimators=10, n_jobs=1),
    "catboost": catboost.CatBoostRegressor(**CAT),
    "scikit-learn": RandomForestRegressor(10, random_state=0),
}


@pytest.mark.parametrize("library", MODELS)
@pytest.mark.parametrize("dtype", ["int64", "uint64", "object"])
def test_integers_beyond_float64_fall_on_the_library_s_side(library, dtype):
    """Rounded once where they are integers, and twice where they are Python's, which the libraries make doubles first; of a background too."""
    model = MODELS[library].fit(LARGE, np.repeat([1.0, 0.0, 0.0, 0.0, 1.0], 80))
    rows = LARGE.astype(dtype)
    expected = model.predict(rows)
    assert np.ptp(expected) > 0.5
    found = attribute(model, rows)
    assert_allclose(found.margin[:, 0], expected, rtol=1e-5, atol=1e-6)
    assert_allclose(attribute(model, rows, background=rows).base[0], expected.mean(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame], ids=["matrix", "frame"])
def test_a_number_for_missing_values_is_what_the_rows_hold_of_it(make, dtype):
    """As in a run: -99.9 is another number in float32. Half floats, which round it further, are refused."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2)).round(2)
    rows[::5, 0] = np.nan
    booster = lightgbm.train({"verbosity": -1, "min_data_in_leaf": 5}, lightgbm.Dataset(rows, np.nan_to_num(rows, nan=3).sum(axis=1)), 3)
    model = load_ensemble(booster, missing=-99.9)
    given = np.where(np.isnan(rows), -99.9, rows).astype(dtype)
    found = attribute(model, make(given))
    assert_allclose(found.margin[:, 0], booster.predict(np.where(np.isnan(rows), np.nan, given).astype(float)), rtol=1e-12)
    assert found.summaries["inputs"].to_pylist()[0]["missing"] == 40
    with pytest.raises(SchemaMismatch, match=r"is halffloat, which rounds -99\.9, the number for missing values"):
        attribute(model, make(given.astype(np.float16)))


def test_categories_that_a_matrix_does_not_hold_are_refused(histograms):
    """Numbers where CatBoost has texts, which it refuses itself, and where scikit-learn has texts."""
    model = catboost.CatBoostRegressor(**CAT, cat_features=[0]).fit(ROWS, SCORE)
    with pytest.raises(catboost.CatBoostError):
        model.predict(catboost.Pool(ROWS.astype(float), cat_features=[0]))
    frame = pd.DataFrame({"month": pd.Categorical(MONTH.astype(str)), "x": ROWS[:, 2]})
    texts = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=5).fit(frame, SCORE)
    for refusing, name in ((model, "0"), (texts, "month")):
        says = rf"^rows, an array: column '{name}' is double, the model was trained on categories that are strings$"
        with pytest.raises(SchemaMismatch, match=says):
            attribute(refusing, np.full((2, len(load_ensemble(refusing).features)), 1.0))
    with pytest.raises(SchemaMismatch, match=r"^rows: column '0' of the array: [^\n]*$"):
        attribute(histograms, np.array([[2**70, 1, 0], [1.5, 1, 0]], object))
