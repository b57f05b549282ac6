"""scikit-learn's trees: values are compared as they are compared there, and missing ones go the same way."""

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn import ensemble, tree

from leafledger import attribute, explain, load_ensemble, prediction_gap, save_model
from leafledger.pipeline.errors import InvalidColumn
from leafledger.pipeline.models.sklearn.trees import single_below

ROWS = np.random.default_rng(0).normal(size=(300, 4)).round(2)
TARGET = ROWS[:, 0] + np.abs(ROWS[:, 1]) * (ROWS[:, 2] > 0) + np.random.default_rng(1).normal(0, 0.1, 300)
SEED = {"random_state": 0}


def missing(rows):
    """Some values missing."""
    return np.where(np.random.default_rng(3).random(rows.shape) < 0.1, np.nan, rows)


@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeRegressor(max_depth=5, **SEED),
        ensemble.RandomForestRegressor(5, max_depth=5, **SEED),
        ensemble.HistGradientBoostingRegressor(max_iter=10, **SEED),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("seen", [True, False])
def test_missing_values_go_where_scikit_learn_sends_them(model, seen):
    """Where training saw some, and where it did not."""
    model.fit(missing(ROWS) if seen else ROWS, TARGET)
    rows = missing(ROWS[::-1])
    assert_allclose(attribute(model, rows).margin[:, 0], model.predict(rows), rtol=1e-12, atol=1e-12)


STUMPS = {"max_depth": 3, "random_state": 0}
CHOSEN = tree.ExtraTreeRegressor(splitter="best", **STUMPS)  # the only tree that takes no missing values
TAKING = {
    "decision tree": (tree.DecisionTreeClassifier(**STUMPS), "predict_proba"),
    "drawn splits": (tree.DecisionTreeRegressor(splitter="random", **STUMPS), "predict"),
    "extra tree": (tree.ExtraTreeRegressor(**STUMPS), "predict"),
    "extra tree of chosen splits": (CHOSEN, "predict"),
    "random forest": (ensemble.RandomForestClassifier(5, **STUMPS), "predict_proba"),
    "extra trees": (ensemble.ExtraTreesRegressor(5, **STUMPS), "predict"),
    "isolation forest": (ensemble.IsolationForest(n_estimators=5, **SEED), "score_samples"),
    "bagging": (ensemble.BaggingRegressor(tree.DecisionTreeRegressor(**STUMPS), 5, max_features=0.5, **SEED), "predict"),
    "bagging of chosen splits": (ensemble.BaggingRegressor(CHOSEN, 5, **SEED), "predict"),
    "gradient boosting": (ensemble.GradientBoostingRegressor(n_estimators=5, **SEED), "predict"),
    "gradient boosting of classes": (ensemble.GradientBoostingClassifier(n_estimators=5, **SEED), "decision_function"),
    "adaptive boosting": (ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(**STUMPS), n_estimators=5, **SEED), "decision_function"),
    "histograms": (ensemble.HistGradientBoostingRegressor(max_iter=5, **SEED), "predict"),
}


@pytest.mark.parametrize("kind", TAKING)
def test_rows_with_missing_values_are_refused_where_scikit_learn_refuses_them(kind, tmp_path):
    """Of every kind of estimator, in memory and of both kinds of files, and nowhere else; where they are not, margins are its own."""
    model, predict = TAKING[kind]
    model.fit(ROWS, np.digitize(TARGET, [-0.3, 0.9]))
    rows = missing(ROWS[:40])
    try:
        expected = getattr(model, predict)(rows).reshape(len(rows), -1)
    except ValueError:
        expected = None
    save_model(model, tmp_path / "model.trees")
    skops.io.dump(model, tmp_path / "model.skops")
    for same in (model, tmp_path / "model.trees", tmp_path / "model.skops"):
        for asked in (rows, pd.DataFrame(rows, columns=list("0123"))):
            if expected is None:
                with pytest.raises(
                    InvalidColumn, match=r"^column '0' has 6 missing values, expected none: the model's library predicts no such row; write "
                ):
                    attribute(same, asked)
            else:
                found = attribute(same, asked).margin
                assert_allclose(-(2.0**found) if predict == "score_samples" else found, expected, rtol=1e-12, atol=1e-12)
    assert any(feature.refuses_missing for feature in load_ensemble(model).features) == (expected is None)


def test_background_and_data_may_have_no_missing_values_either():
    """A model that predicts no row with a missing value predicts none of theirs."""
    model = ensemble.GradientBoostingRegressor(n_estimators=5, **SEED).fit(ROWS, TARGET)
    for refused in (
        lambda: attribute(model, ROWS, background=missing(ROWS)),
        lambda: prediction_gap(model, ROWS, data=missing(ROWS)),
    ):
        with pytest.raises(InvalidColumn, match=r"^column '0' has \d+ missing values, expected none: "):
            refused()


def test_a_run_rejects_the_work_items_that_have_missing_values(tmp_path):
    """With the file and the column; the other items are explained."""
    model = ensemble.GradientBoostingRegressor(n_estimators=5, **SEED).fit(ROWS, TARGET)
    save_model(model, tmp_path / "model.trees")
    (tmp_path / "data").mkdir()
    for name, rows in (("a", ROWS), ("b", missing(ROWS))):
        pd.DataFrame(rows, columns=list("0123")).to_parquet(tmp_path / "data" / f"{name}.parquet")
    manifest = explain(tmp_path / "model.trees", tmp_path / "data", tmp_path / "run", scheduler="serial")
    (rejected,) = manifest.rejected
    assert rejected.reason.startswith(f"{tmp_path}/data/b.parquet: row groups [0]: column '0' has 33 missing values, expected none: ")
    assert manifest.n_rows == len(ROWS)


@pytest.mark.slow
def test_values_are_compared_in_the_library_s_precision():
    """Trees round values to single precision and not their thresholds; histograms round neither."""
    rows = np.linspace(0, 1, 400)[:, None] + 1e-9
    for model in (tree.DecisionTreeRegressor(**SEED), ensemble.HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2, **SEED)):
        model.fit(rows, np.sin(9 * rows[:, 0]))
        thresholds = load_ensemble(model).ensemble.threshold
        asked = np.concatenate([thresholds, *(np.nextafter(thresholds, side) for side in (-9, 9))])[:, None]
        single = np.float32(thresholds)
        asked = np.concatenate((asked, *(np.nextafter(single, np.float32(side)).astype(float)[:, None] for side in (-9, 9))))
        assert_allclose(attribute(model, asked).margin[:, 0], model.predict(asked), rtol=1e-12, atol=1e-12)


@given(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30))
def test_the_same_numbers_in_single_precision_are_below_a_rounded_threshold(threshold, number):
    """Wherever the threshold lies between two of them."""
    for single in (np.float32(number), np.float32(threshold), *(np.nextafter(np.float32(threshold), np.float32(side)) for side in (-1e38, 1e38))):
        assert (float(single) <= threshold) == (float(single) <= single_below(np.array([threshold]))[0])
