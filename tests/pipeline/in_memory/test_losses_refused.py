"""Objectives whose loss is not carried are refused by their names, with the models of every library; of forests, it is their trees' criterion."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leafledger import attribute
from leafledger.pipeline.errors import UnsupportedModel
from tests.pipeline.in_memory.test_by_row import AMOUNT, FRAME, LATE, LOSSES, enumerate_coalitions, train_lightgbm, train_xgboost
from tests.pipeline.in_memory.test_by_row_edges import DOUBLE, HELD, NUMBERS, OTHERS

POSITIVE, GIVEN = FRAME[NUMBERS].fillna(0.0), {"allow_writing_files": False, "verbose": False, "iterations": 2}


def catboost(objective, label=AMOUNT):
    from catboost import CatBoost

    return CatBoost({"loss_function": objective, **GIVEN}).fit(POSITIVE, label)


def sklearn(kind, label=AMOUNT, **parameters):
    from sklearn import ensemble

    few = {"max_iter": 2} if kind.startswith("Hist") else {"n_estimators": 2}
    return getattr(ensemble, kind)(**few, **parameters).fit(POSITIVE, label)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((lambda each=each: train_xgboost(each, AMOUNT)[0], each) for each in ("reg:tweedie", "reg:absoluteerror", "reg:squaredlogerror")),
        *((lambda each=each: train_lightgbm(each, AMOUNT)[0], each) for each in ("tweedie", "regression_l1", "huber", "mape")),
        (lambda: catboost("Tweedie:variance_power=1.5"), "Tweedie"),
        *((lambda each=each: catboost(each), each.partition(":")[0]) for each in ("MAE", "Quantile:alpha=0.3", "Huber:delta=1")),
        (lambda: catboost("MultiClass", LATE), "MultiClass"),
        (lambda: sklearn("HistGradientBoostingRegressor", loss="absolute_error"), "absolute_error"),
        (lambda: sklearn("GradientBoostingRegressor", loss="huber"), "huber"),
        (lambda: sklearn("GradientBoostingClassifier", LATE, loss="exponential"), "exponential"),
        (lambda: sklearn("RandomForestRegressor", criterion="absolute_error"), "criterion absolute_error"),
        (lambda: sklearn("RandomForestRegressor", criterion="poisson"), "criterion poisson"),
        (lambda: sklearn("RandomForestClassifier", LATE), "classification"),
        (lambda: sklearn("AdaBoostClassifier", LATE), "classification"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_losses_that_are_not_known_are_refused_by_name(make, name):
    """In one line, which says what there is."""
    expected = "is no known function of one margin; expected a squared error, a log loss of two classes, or a Poisson or gamma deviance"
    with pytest.raises(UnsupportedModel, match=f"^space 'loss': the loss of objective '{name}' {expected}$"):
        attribute(make(), HELD, background=OTHERS, space="loss", label=np.ones(3))


@pytest.mark.parametrize("kind", ["RandomForestRegressor", "ExtraTreesRegressor", "BaggingRegressor", "DecisionTreeRegressor"])
def test_forests_of_numbers_have_a_squared_error(kind):
    """As their trees' criterion is: by all coalitions, with the forest's own predictions."""
    from sklearn import tree

    rows, background, label = HELD.fillna(0.0), OTHERS.fillna(0.0), AMOUNT[:3]
    model = tree.DecisionTreeRegressor(max_depth=4).fit(POSITIVE, AMOUNT) if kind.startswith("Decision") else sklearn(kind)
    found = attribute(model, rows, background=background, space="loss", label=label)
    expected, totals, bases = enumerate_coalitions(model.predict, rows, background, LOSSES["squared"], label)
    allowed = DOUBLE * np.abs(expected).max()
    assert_allclose(found.phi[:, 0], expected, rtol=0, atol=allowed)
    assert_allclose(found.prediction[:, 0], totals, rtol=0, atol=allowed)
    assert_allclose(found.base[:, 0], bases, rtol=0, atol=allowed)
    if kind == "DecisionTreeRegressor":
        model.criterion = "friedman_mse"  # the same error, by another name, of which training now warns
        assert_allclose(attribute(model, rows, background=background, space="loss", label=label).phi, found.phi, rtol=0, atol=0)
