"""What a margin stands for is known from every library's files, in every format."""

import json

import catboost
import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost
from numpy.testing import assert_allclose
from sklearn._loss.loss import HalfTweedieLoss
from sklearn.ensemble import HistGradientBoostingRegressor

from leafledger import attribute, load_ensemble, save_model
from leafledger.kernels.slices.links import Link, predict
from leafledger.pipeline.errors import UnsupportedModel
from leafledger.pipeline.models import objectives
from leafledger.pipeline.models.objectives import SIGMOID, SOFTMAX, Margin, Objective

VERSION = tuple(map(int, xgboost.__version__.split(".")[:2]))
DRAW = np.random.default_rng(5)
ROWS = DRAW.random((200, 3))
LABEL = 0.1 + 0.8 * ROWS[:, 0]
CLASSES = (LABEL > 0.5).astype(int)
LABELS, CLASS, OTHER = Margin.LABEL, Margin.CLASS, Margin.OTHER
XGBOOST = {
    "reg:squarederror": LABELS,
    "reg:quantileerror": LABELS,
    "reg:absoluteerror": LABELS,
    "reg:pseudohubererror": LABELS,
    "reg:squaredlogerror": LABELS,
    "reg:logistic": OTHER,
    "reg:gamma": OTHER,
    "reg:tweedie": OTHER,
    "count:poisson": OTHER,
    "binary:logistic": CLASS,
}
LIGHTGBM = {
    "regression": LABELS,
    "regression_l1": LABELS,
    "huber": LABELS,
    "quantile": LABELS,
    "fair": LABELS,
    "mape": LABELS,
    "poisson": OTHER,
    "gamma": OTHER,
    "cross_entropy": OTHER,
    "binary": CLASS,
}
CATBOOST = {
    "RMSE": LABELS,
    "MAE": LABELS,
    "Quantile:alpha=0.3": LABELS,
    "Huber:delta=1": LABELS,
    "MAPE": LABELS,
    "Expectile:alpha=0.3": LABELS,
    "Lq:q=1.5": LABELS,
    "LogCosh": LABELS,
    "Poisson": OTHER,
    "Tweedie:variance_power=1.5": OTHER,
    "Logloss": CLASS,
    "CrossEntropy": CLASS,
}


def assert_margin_of(model, name, margin, predicted, raw):
    """The loader's word, and the library's: a margin is a prediction of the label where no link stands between both, and the link makes the other."""
    found = load_ensemble(model).objective
    assert (found.name, found.margin) == (name, margin)
    assert np.allclose(predicted, raw) == (margin is LABELS)
    assert_allclose(predict(found.link, raw[None])[0], predicted, rtol=1e-6)


@pytest.mark.parametrize("name", XGBOOST)
def test_xgboost(name):
    """The objective of its configuration."""
    data = xgboost.DMatrix(ROWS, CLASSES if XGBOOST[name] is CLASS else LABEL)
    model = xgboost.train({"objective": name, "max_depth": 2, "nthread": 1, "quantile_alpha": 0.3}, data, 3)
    assert_margin_of(model, name, XGBOOST[name], model.predict(data), model.predict(data, output_margin=True))


@pytest.mark.parametrize("name", objectives.XGBOOST)
def test_responses_are_xgboosts_predictions(name):
    """Of every objective that is known, or refused; of several classes the predicted one has the largest."""
    if name == "reg:expectileerror" and VERSION < (3, 3):
        pytest.skip("older versions have no expectiles")
    label = CLASSES if name.startswith(("binary:", "multi:")) else LABEL
    data = xgboost.DMatrix(ROWS, label, label_lower_bound=label, label_upper_bound=label)
    given = {"objective": name, "max_depth": 2, "nthread": 1, "quantile_alpha": 0.3, "expectile_alpha": 0.3, "verbosity": 0}
    model = xgboost.train(given | ({"num_class": 2} if name.startswith("multi:") else {}), data, 3)
    if objectives.XGBOOST[name][1] is None:
        with pytest.raises(UnsupportedModel, match="are no known function of its margins"):
            attribute(model, ROWS, space="response")
        return
    found = attribute(model, ROWS, space="response").prediction
    if name == "multi:softmax":
        found = found.argmax(axis=1)
    assert_allclose(found.reshape(model.predict(data).shape), model.predict(data), rtol=2e-5)


def test_margins_that_are_predicted_have_probabilities_all_the_same(tmp_path):
    """Of ``binary:logitraw`` XGBoost predicts the margin, of which ``binary:logistic``, the same model, predicts the sigmoid; from a file too."""
    data, given = xgboost.DMatrix(ROWS, CLASSES), {"max_depth": 2, "nthread": 1}
    raw = xgboost.train(given | {"objective": "binary:logitraw", "base_score": 0.0}, data, 3)
    same = xgboost.train(given | {"objective": "binary:logistic", "base_score": 0.5}, data, 3)
    save_model(raw, tmp_path / "model.trees")
    for model in (raw, tmp_path / "model.trees"):
        assert_allclose(attribute(model, ROWS, space="probability").prediction[:, 0], same.predict(data), rtol=1e-5)
        assert_allclose(attribute(model, ROWS, space="response").prediction[:, 0], raw.predict(data), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LIGHTGBM)
def test_lightgbm(name):
    """The objective of its header, without the parameters behind it."""
    data = lightgbm.Dataset(ROWS, CLASSES if LIGHTGBM[name] is CLASS else LABEL)
    model = lightgbm.train({"objective": name, "verbosity": -1, "num_threads": 1}, data, 3)
    assert_margin_of(model, name, LIGHTGBM[name], model.predict(ROWS), model.predict(ROWS, raw_score=True))


def test_lightgbm_with_roots_and_with_a_function():
    """``reg_sqrt`` trains on the label's root; a user's own objective is not in the file, so that nothing is known of its margins."""
    model = lightgbm.train({"reg_sqrt": True, "verbosity": -1, "num_threads": 1}, lightgbm.Dataset(ROWS, LABEL), 3)
    assert load_ensemble(model).objective == Objective("regression sqrt", OTHER, None)
    own = {"objective": lambda found, data: (found - data.get_label(), np.ones(200)), "verbosity": -1, "num_threads": 1}
    found = load_ensemble(lightgbm.train(own, lightgbm.Dataset(ROWS, LABEL), 3)).objective
    assert (found.margin, found.link) == (OTHER, None)


@pytest.mark.parametrize("form", ["cbm", "json"])
@pytest.mark.parametrize("name", CATBOOST)
def test_catboost(name, form, tmp_path):
    """The loss function of its parameters, in either format."""
    label = CLASSES if name == "Logloss" else LABEL
    model = catboost.CatBoost({"loss_function": name, "iterations": 3, "verbose": False, "allow_writing_files": False}).fit(ROWS, label)
    model.save_model(tmp_path / "model", format=form)
    kind = {LABELS: "RawFormulaVal", OTHER: "Exponent", CLASS: "Probability"}[CATBOOST[name]]
    predicted, raw = model.predict(ROWS, prediction_type=kind), model.predict(ROWS, prediction_type="RawFormulaVal")
    assert_margin_of(str(tmp_path / "model"), name.partition(":")[0], CATBOOST[name], predicted[..., -1] if kind == "Probability" else predicted, raw)


def test_models_of_many_outputs():
    """A classifier of several classes says so, and one of several labels says something else."""
    model = xgboost.train({"objective": "multi:softprob", "num_class": 2, "nthread": 1}, xgboost.DMatrix(ROWS, CLASSES), 2)
    assert load_ensemble(model).objective == Objective("multi:softprob", Margin.CLASSES, SOFTMAX)
    assert_allclose(model.predict(xgboost.DMatrix(ROWS)).sum(axis=1), 1, rtol=1e-6)
    labels = np.stack((CLASSES, 1 - CLASSES, LABEL > 0.3), axis=1).astype(int)
    several = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(ROWS, labels), 2)
    assert load_ensemble(several).objective == Objective("binary:logistic", CLASS, SIGMOID)
    for name, margin, label in (
        ("MultiClass", (Margin.CLASSES, SOFTMAX), labels.sum(axis=1)),
        ("MultiLogloss", (CLASS, SIGMOID), labels),
    ):
        model = catboost.CatBoost({"loss_function": name, "iterations": 2, "verbose": False, "allow_writing_files": False}).fit(ROWS, label)
        assert load_ensemble(model).objective == Objective(name, *margin)
    for name in ("multiclass", "multiclassova"):
        given = {"objective": name, "num_class": 3, "verbosity": -1, "num_threads": 1}
        assert load_ensemble(lightgbm.train(given, lightgbm.Dataset(ROWS, labels[:, 0] + labels[:, 2]), 2)).objective.margin is Margin.CLASSES


def test_links_that_are_scaled_or_none():
    """LightGBM's sigmoid takes a factor; what no link says is none: hinges, rankings, hazards in other units."""
    data = lightgbm.Dataset(ROWS, CLASSES)
    model = lightgbm.train({"objective": "binary", "sigmoid": 0.5, "verbosity": -1, "num_threads": 1}, data, 3)
    found = load_ensemble(model).objective.link
    assert found == Link("sigmoid", 0.5)
    assert_allclose(predict(found, model.predict(ROWS, raw_score=True)), model.predict(ROWS), rtol=1e-14)
    for name in ("binary:hinge", "rank:pairwise"):
        assert load_ensemble(xgboost.train({"objective": name, "nthread": 1}, xgboost.DMatrix(ROWS, CLASSES), 2)).objective.link is None


def test_outputs_of_several_kinds_are_no_predictions_of_the_label(tmp_path):
    """CatBoost's second output is the logarithm of a deviation, XGBoost's are steps between expectiles: neither is what the library predicts."""
    uncertain = catboost.CatBoostRegressor(loss_function="RMSEWithUncertainty", iterations=5, verbose=False, allow_writing_files=False)
    predicted, margin = uncertain.fit(ROWS, LABEL).predict(ROWS), attribute(uncertain, ROWS).margin
    assert_allclose(margin[:, 0], predicted[:, 0], rtol=1e-12)
    assert_allclose(np.exp(2 * margin[:, 1]), predicted[:, 1], rtol=1e-12)
    quantiles = xgboost.train({"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.5, 0.8], "nthread": 1}, xgboost.DMatrix(ROWS, LABEL), 5)
    file = json.loads(quantiles.save_raw("json"))
    file["learner"]["objective"]["name"] = "reg:expectileerror"
    (tmp_path / "steps.json").write_text(json.dumps(file))
    assert load_ensemble(quantiles).objective == Objective("reg:quantileerror")
    for model in (uncertain, str(tmp_path / "steps.json")):
        with pytest.raises(UnsupportedModel, match=r"predictions of objective '\S+' are no known function of its margins"):
            attribute(model, ROWS, space="response")
        for output in (None, 0, 1):
            with pytest.raises(UnsupportedModel, match="the margin is not known to be a prediction of the label"):
                attribute(model, ROWS, "r2", label=LABEL, output=output)


@pytest.mark.skipif(VERSION < (3, 3), reason="older versions have no expectiles")
def test_expectiles_are_sums_of_steps():
    """Of one alone the margin is the prediction."""
    data = xgboost.DMatrix(ROWS, LABEL)
    given = {"objective": "reg:expectileerror", "nthread": 1}
    one, three = (xgboost.train(given | {"expectile_alpha": alpha}, data, 5) for alpha in (0.3, [0.2, 0.5, 0.8]))
    assert_allclose(attribute(one, ROWS, space="response").prediction[:, 0], one.predict(data), rtol=1e-5)
    assert not np.allclose(attribute(three, ROWS).margin[:, 1], three.predict(data)[:, 1], rtol=0.1)
    with pytest.raises(UnsupportedModel, match="are no known function of its margins"):
        attribute(three, ROWS, space="response")


@pytest.mark.parametrize("name", ["MultiQuantile:alpha=0.2,0.8", "MultiRMSE"])
def test_several_outputs_in_the_units_of_labels(name):
    """Which the library predicts as they are."""
    model = catboost.CatBoost({"loss_function": name, "iterations": 5, "verbose": False, "allow_writing_files": False})
    model.fit(ROWS, np.stack((LABEL, 2 * LABEL), axis=1) if name == "MultiRMSE" else LABEL)
    assert_allclose(attribute(model, ROWS, space="response").prediction, model.predict(ROWS), rtol=1e-12)


class _Squares:
    """A loss of a user's own."""

    def calc_ders_range(self, approxes, targets, weights):  # noqa: ARG002 - as CatBoost calls it
        return [(targets[i] - approxes[i], -1.0) for i in range(len(targets))]


def test_losses_that_are_not_known_say_nothing_of_margins():
    """A user's own, in CatBoost's file."""
    model = catboost.CatBoost({"loss_function": _Squares(), "eval_metric": "RMSE", "iterations": 2, "verbose": False, "allow_writing_files": False})
    found = load_ensemble(model.fit(ROWS, LABEL)).objective
    assert (found.margin, found.link) == (OTHER, None)
    assert found.name


def _ratios(label, margin):
    """A function for XGBoost, of labels that are exponentials of margins."""
    return np.exp(margin) - label, np.exp(margin)


def test_an_xgboost_estimator_knows_that_its_objective_is_a_users_own(tmp_path):
    """Its booster says ``reg:squarederror``: a logarithm was taken for the label. A classifier predicts a sigmoid all the same."""
    model = xgboost.XGBRegressor(objective=_ratios, n_estimators=3, n_jobs=1).fit(ROWS, LABEL)
    assert load_ensemble(model.get_booster()).objective.name == "reg:squarederror"
    save_model(model, tmp_path / "model.trees")
    for source in (model, tmp_path / "model.trees"):
        assert load_ensemble(source).objective == Objective("", OTHER, None)
        for asked in ({"method": "r2", "label": LABEL}, {"space": "response"}):
            with pytest.raises(UnsupportedModel, match="objective ''"):
                attribute(source, ROWS, **asked)
    classifier = xgboost.XGBClassifier(objective=_ratios, n_estimators=3, n_jobs=1).fit(ROWS, CLASSES)
    assert_allclose(attribute(classifier, ROWS, space="probability").prediction[:, 0], classifier.predict_proba(ROWS)[:, 1], rtol=1e-5)


def test_a_loss_that_is_an_object_says_nothing_of_margins(tmp_path):
    """Histogram gradient boosting takes one, as Tweedie's, for which it has no name: the logarithm of the label was taken for the label."""
    model = HistGradientBoostingRegressor(loss=HalfTweedieLoss(power=1.5), max_iter=3).fit(ROWS, LABEL)
    assert not np.allclose(attribute(model, ROWS).margin[:, 0], model.predict(ROWS), rtol=0.1)
    skops.io.dump(model, tmp_path / "model.skops")
    for source in (model, tmp_path / "model.skops"):
        assert load_ensemble(source).objective == Objective("HalfTweedieLoss", OTHER, None)
        for asked in ({"method": "r2", "label": LABEL}, {"space": "response"}):
            with pytest.raises(UnsupportedModel, match="objective 'HalfTweedieLoss'"):
                attribute(source, ROWS, **asked)


@pytest.mark.parametrize("form", ["cbm", "json"])
def test_sums_of_models_say_nothing_of_margins(form, tmp_path):
    """CatBoost keeps what each was trained for under its number: a sum of classifiers is no regression."""
    given = {"iterations": 3, "verbose": False, "allow_writing_files": False}
    parts = [catboost.CatBoostClassifier(**given, random_seed=seed).fit(ROWS, CLASSES) for seed in (0, 1)]
    total = catboost.sum_models(parts, weights=[0.5, 0.5])
    total.save_model(tmp_path / "model", format=form)
    for model in (total, str(tmp_path / "model")):
        assert_allclose(attribute(model, ROWS).margin[:, 0], total.predict(ROWS, prediction_type="RawFormulaVal"), rtol=1e-12)
        for asked in ({"method": "r2", "label": CLASSES}, {"space": "response"}, {"space": "probability"}):
            with pytest.raises(UnsupportedModel, match="objective ''"):
                attribute(model, ROWS, **asked)
