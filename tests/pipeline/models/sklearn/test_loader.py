"""scikit-learn's estimators: margins are theirs, attributions those of the definition, and what is no sum of trees is refused with what to do."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn import calibration, dummy, ensemble, linear_model, model_selection, multioutput, pipeline, preprocessing, tree

from leafledger import attribute, load_ensemble
from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from tests import naive

ROWS = np.random.default_rng(0).normal(size=(300, 4)).round(2)
TARGET = ROWS[:, 0] + np.abs(ROWS[:, 1]) * (ROWS[:, 2] > 0) + np.random.default_rng(1).normal(0, 0.1, 300)
CLASSES = np.digitize(TARGET, [-0.3, 0.9])
BINARY = TARGET > 0.5
WEIGHTS = np.random.default_rng(2).random(300)
TWO = np.stack((TARGET, ROWS[:, 3] - TARGET), axis=1)
SEED = {"random_state": 0}


REGRESSORS = {
    "decision tree": (tree.DecisionTreeRegressor(max_depth=4, **SEED), TARGET),
    "extra tree": (tree.ExtraTreeRegressor(max_depth=4, **SEED), TARGET),
    "several outputs": (tree.DecisionTreeRegressor(max_depth=4, **SEED), TWO),
    "random forest": (ensemble.RandomForestRegressor(5, max_depth=4, **SEED), TARGET),
    "extra trees of several outputs": (ensemble.ExtraTreesRegressor(5, max_depth=4, **SEED), TWO),
    "bagging": (ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=3), 5, max_features=0.5, **SEED), TARGET),
    "gradient boosting": (ensemble.GradientBoostingRegressor(n_estimators=10, **SEED), TARGET),
    "quantiles": (ensemble.GradientBoostingRegressor(n_estimators=10, loss="quantile", **SEED), TARGET),
    "from zero": (ensemble.GradientBoostingRegressor(n_estimators=10, init="zero", **SEED), TARGET),
    "histograms": (ensemble.HistGradientBoostingRegressor(max_iter=10, **SEED), TARGET),
}
PROBABILITIES = {
    "decision tree": (tree.DecisionTreeClassifier(max_depth=4, **SEED), CLASSES),
    "two classes": (tree.DecisionTreeClassifier(max_depth=4, **SEED), BINARY),
    "random forest": (ensemble.RandomForestClassifier(5, max_depth=4, class_weight="balanced", **SEED), CLASSES),
    "extra trees": (ensemble.ExtraTreesClassifier(5, max_depth=4, **SEED), np.array(["low", "mid", "high"])[CLASSES]),
    "bagging": (ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=3), 5, max_features=0.5, max_samples=9, **SEED), CLASSES),
}
SCORES = {
    "gradient boosting": (ensemble.GradientBoostingClassifier(n_estimators=10, **SEED), CLASSES),
    "gradient boosting of two": (ensemble.GradientBoostingClassifier(n_estimators=10, **SEED), BINARY),
    "histograms": (ensemble.HistGradientBoostingClassifier(max_iter=10, **SEED), CLASSES),
    "histograms of two": (ensemble.HistGradientBoostingClassifier(max_iter=10, **SEED), BINARY),
    "adaptive boosting": (ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=5, **SEED), CLASSES),
    "adaptive boosting of two": (ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=5, **SEED), BINARY),
}
PREDICTIONS = [
    *((kind, model, target, "predict") for kind, (model, target) in REGRESSORS.items()),
    *((kind, model, target, "predict_proba") for kind, (model, target) in PROBABILITIES.items()),
    *((kind, model, target, "decision_function") for kind, (model, target) in SCORES.items()),
]


@pytest.mark.parametrize(("kind", "model", "target", "predict"), PREDICTIONS, ids=lambda given: given if isinstance(given, str) else "")
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
def test_margins_are_scikit_learn_s(kind, model, target, predict, weights):
    """To the last digits, of rows that training did not see too; attributions add up to them."""
    model.fit(ROWS, target, sample_weight=weights)
    rows = np.concatenate((ROWS[:50], np.random.default_rng(4).normal(size=(200, 4))))
    found = attribute(model, rows)
    expected = getattr(model, predict)(rows).reshape(len(rows), -1)
    assert_allclose(found.margin, expected, rtol=1e-12, atol=1e-12)
    assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, rtol=0, atol=1e-12)
    assert load_ensemble(model).library == "scikit-learn"


@pytest.mark.parametrize("kind", ["decision tree", "random forest", "gradient boosting", "histograms", "bagging"])
def test_attributions_are_those_of_the_definition(kind):
    """By enumeration in fractions, of the trees that scikit-learn itself predicts with."""
    model = load_ensemble(REGRESSORS[kind][0].fit(ROWS, TARGET))
    found = attribute(model, ROWS[:3])
    for i, row in enumerate(ROWS[:3]):
        assert_allclose(found.phi[i], naive.semivalue(model.ensemble, row, naive.shapley_weight), rtol=0, atol=1e-12)


def test_an_isolation_forest_is_explained_before_its_offset():
    """Its score is minus two to the power of the margin."""
    for given in ({}, {"max_features": 0.5}):
        model = ensemble.IsolationForest(n_estimators=10, **given, **SEED).fit(ROWS)
        found = attribute(model, ROWS)
        assert_allclose(-(2 ** found.margin[:, 0]), model.score_samples(ROWS), rtol=1e-12)
        assert_allclose(found.phi.sum(axis=2) + found.base, found.margin, rtol=0, atol=1e-12)
    with pytest.raises(UnsupportedModel, match=r"^IsolationForest: trees of one row, expected at least two$"):
        load_ensemble(ensemble.IsolationForest(n_estimators=2, max_samples=1).fit(ROWS))


def test_outputs_have_the_names_of_classes():
    """Of each target where there are several; where two classes have one margin it is the second's."""
    names = np.array(["low", "mid", "high"])
    assert load_ensemble(tree.DecisionTreeClassifier().fit(ROWS, names[CLASSES])).outputs == ("high", "low", "mid")
    assert load_ensemble(ensemble.GradientBoostingClassifier(n_estimators=2).fit(ROWS, names[BINARY * 2])).outputs == ("low",)
    both = np.stack((CLASSES, BINARY.astype(int)), axis=1)
    model = ensemble.RandomForestClassifier(3, max_depth=3, **SEED).fit(ROWS, both)
    found = attribute(model, ROWS[:9])
    assert load_ensemble(model).outputs == ("0:0", "0:1", "0:2", "1:0", "1:1")
    assert_allclose(found.margin, np.concatenate(model.predict_proba(ROWS[:9]), axis=1), rtol=0, atol=1e-12)


def test_features_have_the_names_of_a_data_frame():
    """Or their numbers, where training saw none."""
    frame = pd.DataFrame(ROWS, columns=list("dcba"))
    model = tree.DecisionTreeRegressor(max_depth=2).fit(frame, TARGET)
    assert attribute(model, frame[list("abcd")]).players == tuple("dcba")
    assert attribute(tree.DecisionTreeRegressor(max_depth=2).fit(ROWS, TARGET), ROWS).players == ("0", "1", "2", "3")


def test_a_search_is_what_it_found():
    """One without a best estimator is refused."""
    search = model_selection.GridSearchCV(tree.DecisionTreeRegressor(**SEED), {"max_depth": [2, 3]}, cv=2).fit(ROWS, TARGET)
    assert_allclose(attribute(search, ROWS).margin[:, 0], search.predict(ROWS), rtol=1e-12)
    with pytest.raises(InvalidModel, match=r"^GridSearchCV object: has no best estimator, expected one that was fitted with refit=True$"):
        load_ensemble(model_selection.GridSearchCV(tree.DecisionTreeRegressor(), {"max_depth": [2]}))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (
            pipeline.make_pipeline(preprocessing.StandardScaler(), tree.DecisionTreeRegressor()),
            r"^Pipeline is no sum of trees: leafledger.attribute\(model, rows\) and leafledger.prepare\(model\) take the object and transform rows",
        ),
        (calibration.CalibratedClassifierCV(tree.DecisionTreeClassifier()), r"explain the classifier that it calibrates"),
        (multioutput.MultiOutputRegressor(tree.DecisionTreeRegressor()), r"explain each output's estimator by itself: model.estimators_\[0\]$"),
        (ensemble.VotingRegressor([("a", tree.DecisionTreeRegressor())]), r"explain each estimator by itself"),
        (ensemble.AdaBoostRegressor(), r"^AdaBoostRegressor is no sum of trees: its prediction is a weighted median of trees, not a sum"),
        (linear_model.LinearRegression(), r"^LinearRegression is no sum of trees, expected a decision tree, a forest, boosted or bagged trees"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_no_sum_of_trees_is_refused(model, says):
    """With the line to write instead."""
    with pytest.raises(UnsupportedModel, match=says):
        load_ensemble(model)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (ensemble.BaggingRegressor(linear_model.LinearRegression(), 2), r"^BaggingRegressor of LinearRegression, expected decision trees$"),
        (ensemble.AdaBoostClassifier(linear_model.LogisticRegression(), n_estimators=2), r"^AdaBoostClassifier of LogisticRegression, expected"),
        (
            ensemble.GradientBoostingRegressor(n_estimators=2, init=linear_model.LinearRegression()),
            r"^GradientBoostingRegressor starts from a LinearRegression, expected a constant: train it without init$",
        ),
    ],
    ids=lambda given: type(given).__name__,
)
def test_other_parts_than_trees_are_refused(model, says):
    """And no constant start is one too."""
    model.fit(ROWS, BINARY)
    with pytest.raises(UnsupportedModel, match=says):
        load_ensemble(model)


STARTS = [
    *(dummy.DummyRegressor(strategy=name) for name in ("mean", "median")),
    *(dummy.DummyRegressor(strategy="quantile", quantile=0.9), dummy.DummyRegressor(strategy="constant", constant=3.0)),
    *(dummy.DummyClassifier(strategy=name) for name in ("prior", "most_frequent", "uniform")),
    dummy.DummyClassifier(strategy="constant", constant=1),
]


@pytest.mark.parametrize("start", STARTS, ids=lambda start: f"{type(start).__name__}, {start.strategy}")
def test_constant_starts_are_base_values(start):
    """Whatever the constant: margins are scikit-learn's, before the link."""
    if isinstance(start, dummy.DummyRegressor):
        model = ensemble.GradientBoostingRegressor(n_estimators=3, init=start, **SEED).fit(ROWS, TARGET)
        expected = model.predict(ROWS)
    else:
        model = ensemble.GradientBoostingClassifier(n_estimators=3, init=start, **SEED).fit(ROWS, CLASSES)
        expected = model.decision_function(ROWS)
    assert_allclose(attribute(model, ROWS).margin, expected.reshape(len(ROWS), -1), rtol=1e-12, atol=1e-12)


class DummySlope(linear_model.LinearRegression):
    """Called as if it were a constant."""


class Drawn(dummy.DummyRegressor):
    """Of another package, which may say anything of a row."""

    def predict(self, X, return_std=False):
        return super().predict(X, return_std) + X[:, 0]


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (dummy.DummyClassifier(strategy="stratified"), "a DummyClassifier of strategy 'stratified', which is drawn, expected a constant"),
        (DummySlope(), "a DummySlope, expected a constant: train it without init"),
        (Drawn(), "a Drawn, expected a constant: train it without init"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_starts_that_differ_from_row_to_row_are_refused(start, says):
    """Whatever they are called."""
    kind = ensemble.GradientBoostingClassifier if isinstance(start, dummy.DummyClassifier) else ensemble.GradientBoostingRegressor
    model = kind(n_estimators=2, init=start, **SEED).fit(ROWS, BINARY.astype(int))
    with pytest.raises(UnsupportedModel, match=rf"^{kind.__name__} starts from {says}$"):
        load_ensemble(model)


class Halved(ensemble.RandomForestRegressor):
    """Of another package, which predicts in its own way."""

    def predict(self, X):
        return super().predict(X) / 2


class Renamed(ensemble.RandomForestRegressor):
    """Of another package, which predicts as scikit-learn does."""


def test_other_packages_estimators_must_predict_as_scikit_learn_s():
    """What they are made from is not what they say."""
    with pytest.raises(UnsupportedModel, match=rf"^Halved has a predict of its own \({re.escape(__name__)}\), expected sklearn's$"):
        load_ensemble(Halved(3, max_depth=2).fit(ROWS, TARGET))
    model = Renamed(3, max_depth=2).fit(ROWS, TARGET)
    assert_allclose(attribute(model, ROWS).margin[:, 0], model.predict(ROWS), rtol=1e-12, atol=1e-12)


def test_votes_and_single_classes_are_refused():
    """Neither is a sum of what trees predict."""
    with pytest.raises(UnsupportedModel, match=r"^BaggingClassifier lets regressors vote, expected classifiers$"):
        load_ensemble(ensemble.BaggingClassifier(tree.DecisionTreeRegressor(max_depth=2), 3).fit(ROWS, CLASSES))
    with pytest.raises(UnsupportedModel, match=r"^AdaBoostClassifier of 1 class, expected at least two$"):
        load_ensemble(ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=1), n_estimators=2).fit(ROWS, np.zeros(300)))


def test_a_model_that_was_not_fitted_is_refused():
    """Rather than explained as one without trees; a constant is no tree."""
    with pytest.raises(InvalidModel, match=r"^RandomForestRegressor object: not fitted$"):
        load_ensemble(ensemble.RandomForestRegressor())
    with pytest.raises(UnsupportedModel, match=r"^DummyRegressor is no sum of trees"):
        load_ensemble(dummy.DummyRegressor())
