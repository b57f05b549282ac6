"""Probabilities, responses and losses with a background: background row by background row, as each library's own predictions say, and as shap."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger import attribute, prepare
from leafledger.pipeline.errors import InvalidLabel, UnsupportedModel, UsageError
from tests.pipeline.in_memory.by_row import (
    AMOUNT,
    BACKGROUND,
    COUNT,
    DOUBLE,
    LATE,
    LOSSES,
    RNG,
    ROWS,
    SINGLE,
    enumerate_coalitions,
    train_catboost,
    train_lightgbm,
    train_sklearn,
    train_xgboost,
)

CASES = [
    (train_xgboost, "binary:logistic", LATE, "probability"),
    (train_xgboost, "binary:logistic", LATE, "log"),
    (train_xgboost, "count:poisson", COUNT, "response"),
    (train_xgboost, "reg:squarederror", AMOUNT, "squared"),
    (train_xgboost, "reg:gamma", AMOUNT, "gamma"),
    (train_lightgbm, "binary", LATE, "probability"),
    (train_lightgbm, "cross_entropy", LATE, "log"),
    (train_lightgbm, "poisson", COUNT, "poisson"),
    (train_lightgbm, "regression", AMOUNT, "squared"),
    (train_catboost, "Logloss", LATE, "probability"),
    (train_catboost, "Logloss", LATE, "log"),
    (train_catboost, "RMSE", AMOUNT, "squared"),
    (train_catboost, "Poisson", COUNT, "poisson"),
    (train_sklearn, "log_loss", LATE, "log"),
    (train_sklearn, "squared_error", AMOUNT, "squared"),
    (train_sklearn, "gamma", AMOUNT, "response"),
]


@pytest.mark.parametrize(("train", "objective", "label", "quantity"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_values_are_those_of_all_coalitions_by_the_library_itself(train, objective, label, quantity):
    """With categories and missing values: every part, the base value, and what they add up to."""
    model, margin_of = train(objective, label)
    space = quantity if quantity in ("probability", "response") else "loss"
    asked = {"label": label[:3]} if space == "loss" else {}
    found = attribute(model, ROWS, background=BACKGROUND, space=space, **asked)
    expected, totals, bases = enumerate_coalitions(margin_of, ROWS, BACKGROUND, LOSSES[quantity], label[:3])
    allowed = (SINGLE if train is train_xgboost else DOUBLE) * np.maximum(1.0, np.abs(expected).max())
    assert found.by_row
    assert_allclose(found.phi[:, 0], expected, rtol=0, atol=allowed)
    assert_allclose(found.prediction[:, 0], totals, rtol=0, atol=allowed)
    assert_allclose(np.broadcast_to(found.base.reshape(-1), 3), bases, rtol=0, atol=allowed)
    assert_allclose(found.phi[:, 0].sum(axis=1) + found.base.reshape(-1), found.prediction[:, 0], rtol=0, atol=1e-12 * max(1.0, np.abs(totals).max()))


def numbers():
    """A model of numbers, and rows of them."""
    import xgboost

    x = RNG.normal(size=(500, 5))
    y = (x[:, 0] * x[:, 1] + x[:, 2] + RNG.normal(size=500) > 0).astype(int)
    return xgboost.train({"objective": "binary:logistic", "max_depth": 4, "eta": 0.3}, xgboost.DMatrix(x, y), 20), x, y


def test_values_are_shap_s_where_shap_has_them():
    """Probabilities and log losses, interventional, to the rounding of shap's single precision."""
    shap = pytest.importorskip("shap")
    model, x, y = numbers()
    rows, background = x[:30], x[100:150]
    found = attribute(model, rows, background=background, space="probability")
    theirs = shap.TreeExplainer(model, background, model_output="probability")
    assert_allclose(found.phi[:, 0], theirs.shap_values(rows), rtol=0, atol=1e-6)
    assert found.base[0] == pytest.approx(theirs.expected_value, abs=1e-6)
    losses = attribute(model, rows, background=background, space="loss", label=y[:30])
    assert_allclose(losses.phi[:, 0], shap.TreeExplainer(model, background, model_output="log_loss").shap_values(rows, y[:30]), rtol=0, atol=1e-5)


def test_without_rows_of_a_background_it_stays_the_straight_line():
    """By covers, and for a softmax of several classes; a quantity says of itself which one it is."""
    import lightgbm

    model, x, _ = numbers()
    line = attribute(model, x[:5], space="probability")
    assert (line.by_row, attribute(model, x[:5], background=x[9:60]).by_row) == (False, False)
    margins = attribute(model, x[:5])
    assert line.base[0] == pytest.approx(1 / (1 + np.exp(-margins.base[0])))
    assert_allclose(line.phi / line.phi.sum(axis=2, keepdims=True), margins.phi / margins.phi.sum(axis=2, keepdims=True), rtol=1e-9)
    several = lightgbm.train({"objective": "multiclass", "num_class": 3, "verbose": -1}, lightgbm.Dataset(x, RNG.integers(0, 3, 500)), 3)
    assert not attribute(several, x[:5], background=x[9:60], space="probability").by_row
    each = lightgbm.train({"objective": "multiclassova", "num_class": 3, "verbose": -1}, lightgbm.Dataset(x, RNG.integers(0, 3, 500)), 3)
    found = attribute(each, x[:5], background=x[9:60], space="probability")
    raw = each.predict(x, raw_score=True)
    assert found.by_row
    assert_allclose(found.base, (1 / (1 + np.exp(-raw[9:60]))).mean(axis=0), rtol=1e-9)
    assert_allclose(found.phi.sum(axis=2) + found.base, found.prediction, rtol=0, atol=1e-12)
    alone = attribute(each, x[:5], background=x[9:60], space="probability", output="predicted")
    assert_array_equal(alone.phi[:, 0], found.phi[np.arange(5), raw[:5].argmax(axis=1)])


def test_both_classes_have_opposite_parts():
    """Of a model with one margin: leaf values of two columns, each with backgrounds of its own."""
    model, x, _ = numbers()
    second = attribute(model, x[:20], background=x[100:140], space="probability")
    chosen = attribute(model, x[:20], background=x[100:140], space="probability", output="predicted")
    sign = np.where(second.prediction[:, 0] >= 0.5, 1.0, -1.0)
    assert_allclose(chosen.phi[:, 0], sign[:, None] * second.phi[:, 0], rtol=0, atol=1e-9)
    assert_allclose(chosen.prediction[:, 0], np.maximum(second.prediction[:, 0], 1 - second.prediction[:, 0]), rtol=0, atol=1e-12)


def test_rows_without_a_label_have_no_loss():
    """NaN in memory, null in a table; other rows are as they are alone, and summaries count them alone, by their weights."""
    model, x, y = numbers()
    label, weight = y[:40].astype(float), RNG.integers(1, 4, 40).astype(float)
    label[::5] = np.nan
    asked = {"background": x[100:150], "space": "loss"}
    found = attribute(model, x[:40], label=label, weight=weight, **asked)
    some = ~np.isnan(label)
    alone = attribute(model, x[:40][some], label=label[some], **asked)
    assert_array_equal(found.phi[some], alone.phi)
    assert np.isnan(found.phi[~some]).all()
    assert np.isnan(found.base[~some]).all()
    assert np.isnan(found.prediction[~some]).all()
    assert found.base.shape == (40, 1)
    table = found.to_arrow()
    assert table.column_names[:2] == ["loss", "base"]
    assert table["base"].null_count == table["loss"].null_count == table["phi_f0"].null_count == 8
    summary, mean = found.summaries["loss"].to_pandas(), np.average(alone.phi[:, 0], axis=0, weights=weight[some])
    assert_allclose(summary["mean"], mean, rtol=1e-9)
    totals = found.totals["loss"]
    assert totals["mean_loss"] == pytest.approx(np.average(alone.prediction[:, 0], weights=weight[some]))
    assert totals["mean_loss"] == pytest.approx(totals["mean_base"] + mean.sum())
    assert (totals["n"], totals["n_unlabelled"]) == (32, 8)
    shown = found.waterfall(1)
    assert "loss" in str(shown)
    assert found[some].base.shape == (32, 1)


@pytest.mark.slow
def test_standard_errors_are_of_the_quantity():
    """From the values without each lot; the summary counts rows by their weights."""
    model, x, y = numbers()
    label = y[:10].astype(float)
    label[3] = np.nan
    found = attribute(model, x[:10], background=x[100:200], space="loss", label=label, background_errors=True)
    assert found.errors[[0, 1]].max() > 1e-4
    summary = found.summaries["background_errors"].to_pandas()
    assert_allclose(summary["mean"], np.nanmean(found.phi[:, 0], axis=0), rtol=1e-9)
    odds = attribute(model, x[:10], background=x[100:200], space="probability", background_errors=True)
    assert_allclose(odds.phi, attribute(model, x[:10], background=x[100:200], space="probability").phi, rtol=0, atol=1e-13)
    assert 1e-4 < odds.errors.max() < 0.1


@pytest.mark.slow
def test_prepared_explainers_carry_row_by_row(tmp_path):
    """From tables in memory, in a pickle and in a folder, the same bits."""
    model, x, y = numbers()
    explainer = prepare(model, background=x[100:150], space="loss")
    first = explainer(x[:9], label=y[:9])
    for again in (pickle.loads(pickle.dumps(explainer)), prepare(model, background=x[100:150], space="loss", tables=tmp_path)):
        assert_array_equal(again(x[:9], label=y[:9]).phi, first.phi)
    assert "space loss" in repr(explainer)
    assert_array_equal(attribute(model, x[:9], background=x[100:150], space="loss", label=y[:9]).phi, first.phi)


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"space": "loss"}, UsageError, "give a background of rows"),
        ({"space": "loss", "background": "rows"}, UsageError, "space 'loss' needs labels"),
        (
            {"space": "loss", "background": "rows", "label": 2.0},
            InvalidLabel,
            "the label is 2, expected a number from 0 to 1, as the model's loss",
        ),
        ({"space": "probability", "background": "rows", "label": 1.0}, UsageError, "takes no labels and weights; method 'r2' does, and space 'loss'"),
        (
            {"space": "loss", "background": "rows", "label": 1.0, "method": "banzhaf"},
            UsageError,
            "shares out losses, but what method 'banzhaf'",
        ),
        ({"space": "loss", "background": "rows", "label": 1.0, "output": "predicted"}, UnsupportedModel, "is of models of one output"),
    ],
)
def test_what_has_no_loss_is_refused(asked, error, says):
    """In one line, before anything is computed."""
    model, x, _ = numbers()
    asked = asked | ({"background": x[9:60]} if asked.get("background") == "rows" else {})
    asked = asked | ({"label": np.full(5, asked["label"])} if "label" in asked else {})
    with pytest.raises(error, match=says):
        attribute(model, x[:5], **asked)
