"""Variants of CatBoost and of scikit-learn's estimators."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import catboost
import numpy as np
from sklearn import ensemble, tree

from leafledger import save_model
from tests.variants.variant import BINARY, CLASSES, FRAME, N_EXPLAINED, NUMBERS, POSITIVE, SEVERAL, TARGET, Case, Variant

POLICIES = ("SymmetricTree", "Depthwise", "Lossguide")
COMMON = {"iterations": 8, "depth": 4, "verbose": 0, "allow_writing_files": False, "random_seed": 1, "thread_count": 1}
TEXTS = ["city", "job"]
LOSSES: dict[str, tuple[dict[str, Any], Any]] = {
    **{name: ({}, TARGET) for name in ("RMSE", "MAE", "Quantile:alpha=0.7", "Huber:delta=1", "RMSEWithUncertainty")},
    **{name: ({}, POSITIVE) for name in ("Poisson", "Tweedie:variance_power=1.5")},
    **{name: ({}, BINARY) for name in ("Logloss", "CrossEntropy")},
    **{name: ({}, CLASSES) for name in ("MultiClass", "MultiClassOneVsAll")},
    "MultiRMSE": ({}, SEVERAL),
}
STATISTICS: dict[str, tuple[dict[str, Any], Any]] = {
    "target statistics, by default": ({"iterations": 60}, TARGET),
    "target statistics of one feature": ({"max_ctr_complexity": 1, "iterations": 20}, TARGET),
    "target statistics of several features": ({"max_ctr_complexity": 4, "model_size_reg": 0, "iterations": 30}, TARGET),
    "target statistics, two classes": ({"loss_function": "Logloss", "iterations": 30, "model_size_reg": 0}, BINARY),
    "target statistics, several classes": ({"loss_function": "MultiClass", "iterations": 20, "model_size_reg": 0}, CLASSES),
    "target statistics, several targets": ({"loss_function": "MultiRMSE", "iterations": 20, "model_size_reg": 0}, SEVERAL),
    "target statistics beside one-hot splits": ({"one_hot_max_size": 4, "iterations": 30, "model_size_reg": 0}, TARGET),
    **{
        f"target statistics, {kind}": ({"simple_ctr": kind, "combinations_ctr": kind, "iterations": 20, "model_size_reg": 0}, TARGET)
        for kind in ("Borders", "Buckets", "BinarizedTargetMeanValue", "Counter")
    },
}


def _saved(model: Any, form: str | None, folder: Path) -> Any:
    if form is None:
        return model
    path = folder / f"m.{form}"
    if form == "trees":
        save_model(model, path)
    else:
        model.save_model(str(path), format=form)
    return path


def _contributions(model: Any, pool: catboost.Pool, n: int, outputs: int) -> np.ndarray | None:
    """Its ShapValues, where it has them of every output."""
    found = np.asarray(model.get_feature_importance(pool, type="ShapValues", thread_count=1))
    return found.reshape(n, outputs, -1)[:, :, :-1] if found.size == n * outputs * (pool.num_col() + 1) else None


def _catboost(parameters: dict[str, Any], target: Any, folder: Path, rows: Any = NUMBERS, form: str | None = None) -> Case:
    names = [name for name in TEXTS if name in rows]
    model = catboost.CatBoost(COMMON | parameters).fit(rows, target, cat_features=names)
    some = rows.head(N_EXPLAINED)
    pool = catboost.Pool(some, np.zeros(len(some)), cat_features=names)
    margin = np.asarray(model.predict(some, prediction_type="RawFormulaVal", thread_count=1)).reshape(len(some), -1)
    return Case(_saved(model, form, folder), some, margin, _said_by_catboost(model, pool, margin.shape, parameters))


def _said_by_catboost(model: Any, pool: catboost.Pool, shape: tuple[int, int], parameters: dict[str, Any]) -> np.ndarray | None:
    """Its own values do not add up for other trees than symmetric ones; going through JSON puts that right, which is not there with statistics."""
    if parameters.get("grow_policy", POLICIES[0]) == POLICIES[0]:
        return _contributions(model, pool, *shape)
    if pool.get_cat_feature_indices():
        return None
    with tempfile.TemporaryDirectory() as folder:
        model.save_model(f"{folder}/m", format="json")
        return _contributions(catboost.CatBoost().load_model(f"{folder}/m", format="json"), pool, *shape)


def of_catboost() -> Iterator[Variant]:
    """Grow policies, losses, missing values, categories, formats."""
    for policy in POLICIES:
        for mode in ("Min", "Max"):
            given = {"grow_policy": policy, "nan_mode": mode}
            yield Variant("CatBoost", f"grow_policy={policy}, nan_mode={mode}", partial(_catboost, given, TARGET))
        for form in ("cbm", "json"):
            yield Variant("CatBoost", f"grow_policy={policy}, file: {form}", partial(_catboost, {"grow_policy": policy}, TARGET, form=form))
    for name, (parameters, target) in LOSSES.items():
        yield Variant("CatBoost", f"loss {name}", partial(_catboost, parameters | {"loss_function": name}, target))
    yield Variant("CatBoost", "boosting_type=Ordered", partial(_catboost, {"boosting_type": "Ordered"}, TARGET))
    for form in (None, "cbm", "json", "trees"):
        named = {None: "", "trees": ", file: leafledger.save_model"}.get(form, f", file: {form}")
        yield Variant("CatBoost", f"categories, one-hot{named}", partial(_catboost, {"one_hot_max_size": 10}, TARGET, rows=FRAME, form=form))
    for name, (parameters, target) in STATISTICS.items():
        yield Variant("CatBoost", name, partial(_catboost, parameters, target, rows=FRAME))
    for form in ("cbm", "json"):
        given = {"max_ctr_complexity": 3, "model_size_reg": 0, "iterations": 20}
        yield Variant("CatBoost", f"target statistics of several features, file: {form}", partial(_catboost, given, TARGET, rows=FRAME, form=form))
    for policy in POLICIES[1:]:
        given = {"grow_policy": policy, "iterations": 20, "model_size_reg": 0}
        yield Variant("CatBoost", f"target statistics, grow_policy={policy}", partial(_catboost, given, TARGET, rows=FRAME))


SEED = {"random_state": 0}
STUMPS = tree.DecisionTreeClassifier(max_depth=2)
PREDICT, PROBABILITY, DECISION = "predict", "predict_proba", "decision_function"
ESTIMATORS: dict[str, tuple[Any, Any, str]] = {
    "DecisionTreeRegressor": (tree.DecisionTreeRegressor(max_depth=4, **SEED), TARGET, PREDICT),
    "DecisionTreeClassifier": (tree.DecisionTreeClassifier(max_depth=4, **SEED), CLASSES, PROBABILITY),
    "ExtraTreeRegressor, several targets": (tree.ExtraTreeRegressor(max_depth=4, **SEED), SEVERAL, PREDICT),
    "RandomForestRegressor": (ensemble.RandomForestRegressor(6, max_depth=4, **SEED), TARGET, PREDICT),
    "RandomForestRegressor, several targets": (ensemble.RandomForestRegressor(6, max_depth=4, **SEED), SEVERAL, PREDICT),
    "RandomForestClassifier": (ensemble.RandomForestClassifier(6, max_depth=4, class_weight="balanced", **SEED), CLASSES, PROBABILITY),
    "ExtraTreesRegressor": (ensemble.ExtraTreesRegressor(6, max_depth=4, **SEED), TARGET, PREDICT),
    "ExtraTreesClassifier": (ensemble.ExtraTreesClassifier(6, max_depth=4, **SEED), CLASSES, PROBABILITY),
    "BaggingRegressor of trees": (ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=3), 5, max_features=0.7, **SEED), TARGET, PREDICT),
    "BaggingClassifier of trees": (ensemble.BaggingClassifier(STUMPS, 5, max_features=0.7, **SEED), CLASSES, PROBABILITY),
    "GradientBoostingRegressor": (ensemble.GradientBoostingRegressor(n_estimators=8, **SEED), TARGET, PREDICT),
    "GradientBoostingClassifier, two classes": (ensemble.GradientBoostingClassifier(n_estimators=8, **SEED), BINARY, DECISION),
    "GradientBoostingClassifier, three classes": (ensemble.GradientBoostingClassifier(n_estimators=8, **SEED), CLASSES, DECISION),
    "HistGradientBoostingRegressor": (ensemble.HistGradientBoostingRegressor(max_iter=8, **SEED), TARGET, PREDICT),
    "HistGradientBoostingClassifier, two classes": (ensemble.HistGradientBoostingClassifier(max_iter=8, **SEED), BINARY, DECISION),
    "HistGradientBoostingClassifier, three classes": (ensemble.HistGradientBoostingClassifier(max_iter=8, **SEED), CLASSES, DECISION),
    "AdaBoostClassifier of trees": (ensemble.AdaBoostClassifier(STUMPS, n_estimators=5, **SEED), CLASSES, DECISION),
}


def _sklearn(model: Any, target: Any, predict: str, folder: Path, form: str | None = None) -> Case:
    rows = NUMBERS.fillna(-1.0)
    model.fit(rows, target)
    some = rows.head(N_EXPLAINED)
    return Case(_saved(model, form, folder), some, np.asarray(getattr(model, predict)(some)).reshape(len(some), -1), None)


def _isolation(folder: Path) -> Case:
    """Its score is minus two to the power of the margin."""
    rows = NUMBERS.fillna(-1.0)
    model = ensemble.IsolationForest(n_estimators=8, **SEED).fit(rows.to_numpy())
    some = rows.head(N_EXPLAINED).to_numpy()
    return Case(model, some, np.log2(-model.score_samples(some)).reshape(-1, 1), None)


def _missing_and_categories(folder: Path) -> Case:
    rows = FRAME.astype(dict.fromkeys(TEXTS, "category"))
    model = ensemble.HistGradientBoostingRegressor(max_iter=8, categorical_features="from_dtype", **SEED).fit(rows, TARGET)
    some = rows.head(N_EXPLAINED)
    return Case(model, some, model.predict(some).reshape(-1, 1), None)


def of_sklearn() -> Iterator[Variant]:
    """Trees, forests, boosting, bagging, of numbers, outputs and classes."""
    for name, (model, target, predict) in ESTIMATORS.items():
        yield Variant("scikit-learn", name, partial(_sklearn, model, target, predict))
    yield Variant("scikit-learn", "HistGradientBoostingRegressor, missing values and categories", _missing_and_categories)
    yield Variant("scikit-learn", "IsolationForest", _isolation)
    forest = ensemble.RandomForestClassifier(6, max_depth=4, **SEED)
    yield Variant(
        "scikit-learn", "RandomForestClassifier, file: leafledger.save_model", partial(_sklearn, forest, CLASSES, PROBABILITY, form="trees")
    )
