"""Far out, of a single background row, and of constant models: parts keep their digits, with the models of every library."""

import itertools
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute
from tests.pipeline.in_memory.by_row import (
    BACKGROUND,
    DOUBLE,
    FRAME,
    HELD,
    LATE,
    LOSSES,
    NUMBERS,
    OTHERS,
    ROWS,
    SCORE,
    N,
    enumerate_coalitions,
    train_lightgbm,
)

FAR = 30.0
LABEL = np.array([1.0, 0.0, 1.0])
SINGLE = 1e-4  # of the largest part; a margin of 30 in single precision is off by 1e-6, so its exponential too
ABOVE = lambda m, y: -1 / (1 + np.exp(m))  # noqa: E731 - the probability less one, without loss of digits


def far_xgboost(shift):
    """A regression on targets far out, which then is a model of two classes."""
    import xgboost

    given = {"objective": "reg:squarederror", "base_score": 0.0, "eta": 1.0, "max_depth": 3}
    stored = json.loads(xgboost.train(given, xgboost.DMatrix(FRAME[NUMBERS], SCORE + shift), 3).save_raw("json"))
    stored["learner"]["objective"] = {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}}
    stored["learner"]["learner_model_param"]["base_score"] = "5E-1"
    model = xgboost.Booster()
    model.load_model(bytearray(json.dumps(stored).encode()))
    return model, lambda frame: model.predict(xgboost.DMatrix(frame), output_margin=True).astype(float)


def far_lightgbm(shift):
    import lightgbm

    data = lightgbm.Dataset(FRAME[NUMBERS], SCORE + shift)
    text = lightgbm.train({"objective": "regression", "num_leaves": 7, "learning_rate": 0.4, "verbose": -1}, data, 4).model_to_string()
    model = lightgbm.Booster(model_str=text.replace("objective=regression\n", "objective=binary sigmoid:1\n"))
    return model, lambda frame: model.predict(frame, raw_score=True)


def far_catboost(shift):
    import catboost

    given = {"loss_function": "Logloss", "depth": 3, "iterations": 5, "learning_rate": 0.4, "allow_writing_files": False, "verbose": False}
    model = catboost.CatBoost(given).fit(FRAME[NUMBERS], LATE)
    model.set_scale_and_bias(1.0, shift)
    return model, lambda frame: model.predict(frame, prediction_type="RawFormulaVal")


def far_sklearn(shift):
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(max_iter=5, max_depth=3, learning_rate=0.4).fit(FRAME[NUMBERS], LATE)
    model._baseline_prediction = model._baseline_prediction + shift
    return model, model.decision_function


MODELS = [far_xgboost, far_lightgbm, far_catboost, far_sklearn]


@pytest.mark.parametrize("shift", [-FAR, FAR])
@pytest.mark.parametrize("make", MODELS)
def test_saturated_probabilities_keep_their_digits(make, shift):
    """Probabilities within 1e-12 of 0 or 1: parts have as many digits as those of others, and losses too."""
    model, margin_of = make(shift)
    assert (np.abs(margin_of(OTHERS)) > FAR - 8).all()
    relative = SINGLE if make is far_xgboost else DOUBLE
    found = attribute(model, HELD, background=OTHERS, space="probability")
    expected, _, _ = enumerate_coalitions(margin_of, HELD, OTHERS, LOSSES["probability"] if shift < 0 else ABOVE, LABEL)
    assert 0 < np.abs(expected).max() < 1e-8
    assert_allclose(found.phi[:, 0], expected, rtol=0, atol=relative * np.abs(expected).max())
    losses = attribute(model, HELD, background=OTHERS, space="loss", label=LABEL)
    expected, totals, bases = enumerate_coalitions(margin_of, HELD, OTHERS, LOSSES["log"], LABEL)
    for row in range(3):
        assert_allclose(losses.phi[row, 0], expected[row], rtol=0, atol=relative * np.abs(expected[row]).max())
    assert_allclose(losses.prediction[:, 0], totals, rtol=relative)
    assert_allclose(losses.base[:, 0], bases, rtol=relative)


@pytest.mark.parametrize("make", MODELS)
def test_a_single_background_row_is_a_background(make):
    """Its prediction is the base value; and a row against itself has parts of zero."""
    model, margin_of = make(0.5)
    one = OTHERS[:1]
    found = attribute(model, HELD, background=one, space="probability")
    expected, totals, bases = enumerate_coalitions(margin_of, HELD, one, LOSSES["probability"], LABEL)
    relative = SINGLE if make is far_xgboost else DOUBLE
    assert_allclose(found.phi[:, 0], expected, rtol=0, atol=relative)
    assert_allclose(found.prediction[:, 0], totals, rtol=0, atol=relative)
    assert_allclose(found.base, bases[:1], rtol=0, atol=relative)
    same = attribute(model, one, background=one, space="loss", label=LABEL[:1])
    assert_array_equal(same.phi, np.zeros(same.phi.shape))
    assert_allclose(same.base[:, 0], same.prediction[:, 0], rtol=0, atol=DOUBLE)


def constant_xgboost():
    import xgboost

    return xgboost.train({"objective": "binary:logistic", "base_score": 0.7, "gamma": 1e9}, xgboost.DMatrix(FRAME[NUMBERS], LATE), 2)


def constant_lightgbm():
    import lightgbm

    return lightgbm.train({"objective": "binary", "min_data_in_leaf": N, "verbose": -1}, lightgbm.Dataset(FRAME[NUMBERS], LATE), 1)


def constant_catboost():
    import catboost

    given = {"loss_function": "Logloss", "iterations": 1, "l2_leaf_reg": 1e30, "allow_writing_files": False, "verbose": False}
    return catboost.CatBoost(given).fit(FRAME[NUMBERS], LATE)


def constant_sklearn():
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(n_estimators=1, min_samples_leaf=N).fit(FRAME[NUMBERS].fillna(0.0), LATE)


@pytest.mark.parametrize("make", [constant_xgboost, constant_lightgbm, constant_catboost, constant_sklearn])
def test_of_a_constant_model_nothing_is_worse_or_better(make):
    """No part of a probability nor of a loss; the base value is the prediction."""
    model, rows, background = make(), HELD.fillna(0.0), OTHERS.fillna(0.0)
    for asked in ({"space": "probability"}, {"space": "loss", "label": LABEL}):
        found = attribute(model, rows, background=background, **asked)
        assert_allclose(found.phi, 0.0, rtol=0, atol=1e-15)
        assert_allclose(np.broadcast_to(found.base.reshape(-1), 3), found.prediction[:, 0], rtol=0, atol=1e-15)
    chance = attribute(model, rows, background=background, space="probability").base[0]
    assert_allclose(found.base[:, 0], -np.log([chance, 1 - chance, chance]), rtol=1e-9)


def test_where_margins_are_equal_the_slope_is_the_loss_s_own():
    """x0 + x1 of (1, -1) against (-1, 1): both margins are 0, parts of the margin are 2 and -2, and (3 - m)^2 falls by 6 there."""
    from sklearn.ensemble import RandomForestRegressor

    corners = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    model = RandomForestRegressor(1, bootstrap=False, random_state=0).fit(corners, corners.sum(axis=1))
    found = attribute(model, np.array([[1.0, -1.0]]), background=np.array([[-1.0, 1.0]]), space="loss", label=np.array([3.0]))
    assert_allclose(found.phi[0, 0], [-12.0, 12.0], rtol=1e-12)
    assert found.base.item() == pytest.approx(9.0, rel=1e-12)


@pytest.mark.parametrize("quantity", ["probability", "log"])
def test_groups_in_a_sequence_are_told_row_by_row_too(quantity):
    """Means over the orders in which delay and hour come before wind and carrier."""
    model, margin_of = train_lightgbm("binary", LATE)
    orders = [(*first, *then) for first in itertools.permutations((0, 1)) for then in itertools.permutations((2, 3))]
    expected, totals, _ = enumerate_coalitions(margin_of, ROWS, BACKGROUND, LOSSES[quantity], LABEL, orders)
    asked = {"space": "probability"} if quantity == "probability" else {"space": "loss", "label": LABEL}
    partition = {"known": ["delay", "hour"], "told": ["wind", "carrier"]}
    found = attribute(model, ROWS, "asymmetric", background=BACKGROUND, partition=partition, parameters={"sequence": ["known", "told"]}, **asked)
    assert_allclose(found.phi[:, 0], expected, rtol=0, atol=DOUBLE)
    assert_allclose(found.prediction[:, 0], totals, rtol=0, atol=DOUBLE)
