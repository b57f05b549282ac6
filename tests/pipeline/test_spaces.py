"""Attributions of probabilities and of predictions in the label's units: of every library, in memory and in runs, checked, and what is refused."""

import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn import ensemble

from leafledger import attribute, check_run, compare, explain, read_manifest, save_model
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import InvalidRun, PredictionMismatch, UnsupportedModel, UsageError
from tests.pipeline.running import attributions

RNG = np.random.default_rng(8)
ROWS = RNG.normal(size=(300, 4)).round(2)
SCORE = ROWS[:, 0] + ROWS[:, 1] * ROWS[:, 2]
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-0.5, 0.7])
COUNT, AMOUNT = RNG.poisson(np.exp(SCORE / 2)), np.exp(SCORE / 2) * RNG.gamma(2, 0.5, 300) + 1e-3
LIGHT = {"verbosity": -1, "n_estimators": 10, "n_jobs": 1}
CAT = {"iterations": 10, "verbose": False, "thread_count": 1, "allow_writing_files": False}
XGB = {"n_estimators": 10, "n_jobs": 1}
FEW = {"n_estimators": 5, "random_state": 0}
CLASSIFIERS = {
    "XGBoost, two": (xgboost.XGBClassifier(**XGB), TWO),
    "XGBoost, three": (xgboost.XGBClassifier(**XGB), THREE),
    "LightGBM, two": (lightgbm.LGBMClassifier(**LIGHT), TWO),
    "LightGBM, scaled": (lightgbm.LGBMClassifier(sigmoid=0.5, **LIGHT), TWO),
    "LightGBM, three": (lightgbm.LGBMClassifier(**LIGHT), THREE),
    "LightGBM, each": (lightgbm.LGBMClassifier(objective="multiclassova", **LIGHT), THREE),
    "LightGBM, forest": (lightgbm.LGBMClassifier(boosting_type="rf", subsample=0.5, subsample_freq=1, **LIGHT), TWO),
    "CatBoost, two": (catboost.CatBoostClassifier(**CAT), TWO),
    "CatBoost, three": (catboost.CatBoostClassifier(**CAT), THREE),
    "CatBoost, each": (catboost.CatBoostClassifier(loss_function="MultiClassOneVsAll", **CAT), THREE),
    "CatBoost, labels": (catboost.CatBoostClassifier(loss_function="MultiLogloss", **CAT), np.stack((TWO, THREE > 0), axis=1)),
    "CatBoost, focal": (catboost.CatBoostClassifier(loss_function="Focal:focal_alpha=0.5;focal_gamma=2", **CAT), TWO),
    "gradient boosting, two": (ensemble.GradientBoostingClassifier(**FEW), TWO),
    "gradient boosting, exponential": (ensemble.GradientBoostingClassifier(loss="exponential", **FEW), TWO),
    "gradient boosting, three": (ensemble.GradientBoostingClassifier(**FEW), THREE),
    "histograms, two": (ensemble.HistGradientBoostingClassifier(max_iter=5), TWO),
    "histograms, three": (ensemble.HistGradientBoostingClassifier(max_iter=5), THREE),
    "forest": (ensemble.RandomForestClassifier(max_depth=4, **FEW), THREE),
    "adaptive boosting, two": (ensemble.AdaBoostClassifier(**FEW), TWO),
    "adaptive boosting, three": (ensemble.AdaBoostClassifier(**FEW), THREE),
}
REGRESSORS = {
    "XGBoost, squares": (xgboost.XGBRegressor(**XGB), SCORE),
    "XGBoost, counts": (xgboost.XGBRegressor(objective="count:poisson", **XGB), COUNT),
    "XGBoost, gamma": (xgboost.XGBRegressor(objective="reg:gamma", **XGB), AMOUNT),
    "XGBoost, Tweedie": (xgboost.XGBRegressor(objective="reg:tweedie", **XGB), COUNT),
    "XGBoost, shares": (xgboost.XGBRegressor(objective="reg:logistic", **XGB), TWO),
    "XGBoost, hazards": (xgboost.XGBRegressor(objective="survival:cox", **XGB), AMOUNT),
    "LightGBM, counts": (lightgbm.LGBMRegressor(objective="poisson", **LIGHT), COUNT),
    "LightGBM, gamma": (lightgbm.LGBMRegressor(objective="gamma", **LIGHT), AMOUNT),
    "LightGBM, Tweedie": (lightgbm.LGBMRegressor(objective="tweedie", **LIGHT), COUNT),
    "LightGBM, shares": (lightgbm.LGBMRegressor(objective="cross_entropy", **LIGHT), TWO),
    "CatBoost, counts": (catboost.CatBoostRegressor(loss_function="Poisson", **CAT), COUNT),
    "CatBoost, Tweedie": (catboost.CatBoostRegressor(loss_function="Tweedie:variance_power=1.5", **CAT), COUNT),
    "histograms, counts": (ensemble.HistGradientBoostingRegressor(loss="poisson", max_iter=5), COUNT),
    "histograms, gamma": (ensemble.HistGradientBoostingRegressor(loss="gamma", max_iter=5), AMOUNT),
}


def assert_adds_up_to(found, predicted, rtol):
    """On every row, and the margin stays what it was."""
    predicted = predicted.reshape(len(predicted), -1)[:, -found.prediction.shape[1] :]  # of two classes the second
    assert_allclose(found.prediction, predicted, rtol=rtol)
    assert_allclose(found.phi.sum(axis=2) + found.base, found.prediction, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_probabilities_are_the_library_s(kind):
    """Of all classes at once; XGBoost adds up in single precision."""
    model, classes = CLASSIFIERS[kind]
    model.fit(ROWS, classes)
    found = attribute(model, ROWS, space="probability")
    assert_adds_up_to(found, model.predict_proba(ROWS), 2e-5 if "XGBoost" in kind else 1e-12)
    assert_allclose(found.margin, attribute(model, ROWS).margin, rtol=0, atol=0)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_responses_are_the_library_s(kind):
    """Counts, amounts, shares and plain numbers."""
    model, label = REGRESSORS[kind]
    assert_adds_up_to(attribute(model.fit(ROWS, label), ROWS, space="response"), model.predict(ROWS), 2e-5 if "XGBoost" in kind else 1e-12)


def test_survival_times_are_the_library_s():
    """And what CatBoost predicts otherwise than in the label's units is refused."""
    data = xgboost.DMatrix(ROWS)
    data.set_float_info("label_lower_bound", AMOUNT)
    data.set_float_info("label_upper_bound", AMOUNT)
    model = xgboost.train({"objective": "survival:aft", "nthread": 1}, data, 10)
    assert_adds_up_to(attribute(model, ROWS, space="response"), model.predict(data), 2e-5)
    doubtful = catboost.CatBoostRegressor(loss_function="LogLinQuantile", **CAT).fit(ROWS, AMOUNT)
    with pytest.raises(UnsupportedModel, match="predictions of objective 'LogLinQuantile' are no known function of its margins"):
        attribute(doubtful, ROWS, space="response")


def test_a_single_probability_scales_a_row_s_attributions():
    """By the same number for every feature, so that their order and signs stay."""
    model = CLASSIFIERS["LightGBM, two"][0].fit(ROWS, TWO)
    margin, odds = attribute(model, ROWS), attribute(model, ROWS, space="probability")
    factor = (odds.prediction[:, 0] - odds.base[0]) / (margin.margin[:, 0] - margin.base[0])
    assert_allclose(odds.phi, margin.phi * factor[:, None, None], rtol=1e-9, atol=1e-15)
    assert (factor > 0).all()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A model of three classes and its rows, with what it predicted."""
    folder = tmp_path_factory.mktemp("spaces")
    model = lightgbm.LGBMClassifier(**LIGHT).fit(pd.DataFrame(ROWS, columns=list("abcd")), np.array(["low", "mid", "high"])[THREE])
    save_model(model, folder / "model.trees")
    frame = pd.DataFrame(ROWS, columns=list("abcd"))
    odds = pd.DataFrame(model.predict_proba(frame), columns=[f"p_{name}" for name in model.classes_])
    frame.join(odds).assign(row=range(300)).to_parquet(folder / "rows.parquet", row_group_size=64)
    return folder, model, frame


@pytest.mark.slow
def test_a_run_has_predictions_in_the_place_of_margins(data, tmp_path, capsys):
    """Columns, base values, summaries; what the data say that was predicted is compared with; a deep check adds up, and makes it all again."""
    folder, model, frame = data
    given = ["--space", "probability", "--precision", "float64", "--scheduler", "serial", "--prediction", "p_high", "--prediction", "p_low"]
    given += ["--prediction", "p_mid", "--background", str(folder / "rows.parquet"), "--background-errors"]
    assert main(["explain", str(folder / "model.trees"), str(folder / "rows.parquet"), "--out", str(tmp_path / "run"), *given]) == 0
    said = capsys.readouterr().out
    assert "attributions add up to prediction - base value within " in said
    assert "of the prediction's bound" in said
    found, table = attribute(model, frame, background=frame, background_errors=True, space="probability"), attributions(tmp_path / "run")
    for k, name in enumerate(model.classes_):
        assert_allclose(table[f"prediction_{name}"].to_numpy(), model.predict_proba(frame)[:, k], rtol=1e-12)
        for j, feature in enumerate("abcd"):
            assert_allclose(table[f"phi_{name}_{feature}"].to_numpy(), found.phi[:, k, j], rtol=1e-9, atol=1e-15)
            assert_allclose(table[f"error_{name}_{feature}"].to_numpy(), found.errors[:, k, j], rtol=1e-6, atol=1e-13)
    assert not any(name.startswith("margin") for name in table.column_names)
    manifest = read_manifest(str(tmp_path / "run"))
    assert manifest.space == "probability"
    assert sum(manifest.base) == pytest.approx(1)
    means = {(row["output"], row["feature"]): row["mean_abs"] for row in json.loads((tmp_path / "run/summary/importance.json").read_text())}
    assert means["mid", "a"] == pytest.approx(np.abs(found.phi[:, list(model.classes_).index("mid"), 0]).mean())
    report = check_run(tmp_path / "run", all_rows=True)
    assert report.sound
    assert (report.total, report.n_again) == ("prediction", 300)
    assert report.residual < 1e-14
    assert main(["check", str(tmp_path / "run"), "--deep"]) == 0
    assert "attributions add up within " in capsys.readouterr().out
    assert main(["plan", str(folder / "model.trees"), str(folder / "rows.parquet"), "--out", str(tmp_path / "other"), "--space", "probability"]) == 0
    assert "probability, by softmax of the margin" in capsys.readouterr().out


def test_counts_in_single_precision_are_sound(tmp_path):
    """What a prediction may miss grows with it: a row that is e^20 times another one is stored as finely."""
    rows = np.arange(200.0)[:, None] % 20
    model = lightgbm.LGBMRegressor(objective="poisson", min_child_samples=1, learning_rate=1.0, poisson_max_delta_step=0.01, **LIGHT)
    model.fit(rows, np.exp(rows[:, 0]))
    model.booster_.save_model(tmp_path / "model.txt")
    pd.DataFrame(rows, columns=["Column_0"]).to_parquet(tmp_path / "rows.parquet")
    explain(tmp_path / "model.txt", tmp_path / "rows.parquet", tmp_path / "run", space="response", scheduler="serial")
    assert check_run(tmp_path / "run", deep=True).sound
    assert_allclose(attributions(tmp_path / "run")["prediction"].to_numpy(), model.predict(rows), rtol=1e-6)


def test_each_row_s_own_class_has_its_probability(data, tmp_path):
    """With the base value of that class."""
    folder, model, frame = data
    explain(folder / "model.trees", folder / "rows.parquet", tmp_path / "run", space="probability", output="predicted", scheduler="serial")
    table = attributions(tmp_path / "run").to_pandas()
    assert table["output"].tolist() == model.predict(frame).tolist()
    assert_allclose(table["prediction"], model.predict_proba(frame).max(axis=1), rtol=1e-6)
    assert check_run(tmp_path / "run", deep=True).sound
    two = lightgbm.LGBMClassifier(**LIGHT).fit(ROWS, TWO)
    found = attribute(two, ROWS, space="probability", output="predicted")
    assert_allclose(found.prediction[:, 0], two.predict_proba(ROWS).max(axis=1), rtol=1e-12)
    assert_allclose(found.phi.sum(axis=2) + found.base, found.prediction, rtol=1e-12)


def test_other_predictions_are_refused(data, tmp_path):
    """A column of another class, with the row."""
    folder, _, _ = data
    columns, says = ["p_low", "p_high", "p_mid"], r"row 0: 'p_low' is [0-9.]+, expected the model's prediction, .*another model, .* or no prediction"
    with pytest.raises(PredictionMismatch, match=says):
        explain(folder / "model.trees", folder / "rows.parquet", tmp_path / "run", space="probability", predictions=columns, scheduler="serial")


def test_what_somebody_changed_is_found(data, tmp_path):
    """A plan of another link, which is the model's no more; a run of predictions is no ranking of margins."""
    folder, _, _ = data
    arguments = folder / "model.trees", folder / "rows.parquet"
    explain(*arguments, tmp_path / "run", space="probability", scheduler="serial", ids="row")
    with pytest.raises(UsageError, match="shares out predictions, not a margin"):
        compare(*arguments, tmp_path / "table", methods=["shapley", f"run:{tmp_path}/run"])
    plan = json.loads((tmp_path / "run/plan.json").read_text())
    for change in ({"link": None}, {"space": "margin"}, {"link": {"name": "softmax", "scale": 0.0}}, {"link": {"name": "cube", "scale": 1.0}}):
        (tmp_path / "run/plan.json").write_text(json.dumps(plan | change, indent=1, sort_keys=True))
        with pytest.raises(InvalidRun, match="link"):
            explain(*arguments, tmp_path / "run", space="probability", scheduler="serial", ids="row")
