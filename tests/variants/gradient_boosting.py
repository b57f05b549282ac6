"""Variants of XGBoost and LightGBM."""

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost

from leafledger import save_model
from tests.variants.variant import BINARY, CATEGORICAL, CLASSES, GROUPS, N_EXPLAINED, NUMBERS, POSITIVE, SEVERAL, TARGET, Case, Variant

ROUNDS = 6
COMMON = {"max_depth": 3, "nthread": 1, "seed": 1, "verbosity": 0}
XGBOOST: dict[str, tuple[dict[str, Any], Any]] = {
    "gbtree": ({}, TARGET),
    "tree_method=exact, pruned": ({"tree_method": "exact", "max_depth": 5, "gamma": 2.0}, TARGET),
    "tree_method=approx, grow_policy=lossguide": ({"tree_method": "approx", "grow_policy": "lossguide", "max_leaves": 6, "max_depth": 0}, TARGET),
    "dart": ({"booster": "dart", "rate_drop": 0.5, "one_drop": 1}, TARGET),
    "random forest": ({"num_parallel_tree": 4, "subsample": 0.5, "colsample_bynode": 0.7, "learning_rate": 1.0}, TARGET),
    "weak regularisation, deep": ({"max_depth": 8, "lambda": 0.0, "min_child_weight": 0.0}, TARGET),
    "monotone and interaction constraints": ({"monotone_constraints": "(1,0,0)", "interaction_constraints": "[[0,1],[2]]"}, TARGET),
    **{f"objective {name}": ({"objective": name}, TARGET) for name in ("reg:absoluteerror", "reg:pseudohubererror")},
    "objective reg:quantileerror, two quantiles": ({"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]}, TARGET),
    **{
        f"objective {name}": ({"objective": name}, POSITIVE) for name in ("reg:gamma", "reg:tweedie", "count:poisson", "survival:cox", "survival:aft")
    },
    **{
        f"objective {name}": ({"objective": name}, BINARY)
        for name in ("binary:logistic", "binary:hinge", "reg:logistic", "rank:ndcg", "rank:pairwise")
    },
    **{f"objective {name}": ({"objective": name, "num_class": 3}, CLASSES) for name in ("multi:softprob", "multi:softmax")},
    "several classes, dart": ({"objective": "multi:softprob", "num_class": 3, "booster": "dart", "rate_drop": 0.5}, CLASSES),
    "several targets": ({}, SEVERAL),
    "several targets, vector leaves": ({"multi_strategy": "multi_output_tree"}, SEVERAL),
    "several classes, vector leaves": ({"objective": "multi:softprob", "num_class": 3, "multi_strategy": "multi_output_tree"}, CLASSES),
}
FORMS = ("JSON", "UBJ", "leafledger.save_model")


def _matrix(rows: Any, target: Any = None, objective: str = "") -> xgboost.DMatrix:
    data = xgboost.DMatrix(rows, target, enable_categorical=True, nthread=1)
    if objective == "survival:aft":
        data.set_float_info("label_lower_bound", target)
        data.set_float_info("label_upper_bound", 2 * target)
    if objective.startswith("rank:"):
        data.set_group(GROUPS)
    return data


def _said_by_xgboost(booster: xgboost.Booster, rows: Any, **asked: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Margins and contributions, those of vector leaves where the version has them."""
    data = _matrix(rows)
    margin = booster.predict(data, output_margin=True, **asked).reshape(len(rows), -1)
    try:
        found = booster.predict(data, pred_contribs=True, **asked)
    except xgboost.core.XGBoostError:
        return margin, None
    return margin, found.reshape(len(rows), margin.shape[1], -1)[:, :, :-1]


def _written(booster: Any, form: str | None, folder: Path) -> Any:
    """The model itself, or a file of it."""
    if form is None:
        return booster
    path = folder / {"JSON": "m.json", "UBJ": "m.ubj", "text": "m.txt"}.get(form, "m.trees")
    if path.suffix == ".trees":
        save_model(booster, path)
    else:
        booster.save_model(path)
    return path


def _xgboost(parameters: dict[str, Any], target: Any, folder: Path, rows: Any = NUMBERS, form: str | None = None) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        booster = xgboost.train(COMMON | parameters, _matrix(rows, target, parameters.get("objective", "")), ROUNDS)
    some = rows.head(N_EXPLAINED)
    return Case(_written(booster, form, folder), some, *_said_by_xgboost(booster, some))


def _stopped(folder: Path) -> Case:
    """Used up to its best iteration."""
    model = xgboost.XGBRegressor(n_estimators=60, max_depth=3, learning_rate=0.9, early_stopping_rounds=3, n_jobs=1, missing=0.0)
    model.fit(NUMBERS[:200], TARGET[:200], eval_set=[(NUMBERS[200:], TARGET[200:])], verbose=False)
    some, used = NUMBERS.head(N_EXPLAINED), (0, model.best_iteration + 1)
    data = xgboost.DMatrix(some, missing=0.0)
    found = model.get_booster().predict(data, pred_contribs=True, iteration_range=used)
    return Case(model, some, model.predict(some, output_margin=True).reshape(-1, 1), found[:, None, :-1])


def of_xgboost() -> Iterator[Variant]:
    """Boosters, objectives, targets, categories, formats."""
    for name, (parameters, target) in XGBOOST.items():
        yield Variant("XGBoost", name, partial(_xgboost, parameters, target))
    for most, name in ((100, "one by one"), (1, "in sets")):
        given = {"max_cat_to_onehot": most, "max_depth": 4}
        yield Variant("XGBoost", f"categories, split {name}", partial(_xgboost, given, TARGET, rows=CATEGORICAL))
    codes = CATEGORICAL.assign(city=CATEGORICAL["city"].cat.codes.astype("category"), job=CATEGORICAL["job"].cat.codes.astype("category"))
    yield Variant("XGBoost", "categories of integers", partial(_xgboost, {"max_cat_to_onehot": 1}, TARGET, rows=codes))
    for form in FORMS:
        yield Variant("XGBoost", f"categories, file: {form}", partial(_xgboost, {"max_cat_to_onehot": 1}, TARGET, rows=CATEGORICAL, form=form))
    yield Variant("XGBoost", "XGBRegressor, stopped early, a number for missing values", _stopped)


SMALL = {
    "num_leaves": 8,
    "min_data_in_leaf": 5,
    "num_threads": 1,
    "verbosity": -1,
    "seed": 1,
    "min_data_per_group": 1,
    "cat_smooth": 0.0,
    "cat_l2": 0.0,
}
LIGHTGBM: dict[str, tuple[dict[str, Any], Any]] = {
    "gbdt": ({}, TARGET),
    "dart": ({"boosting": "dart", "drop_rate": 0.5}, TARGET),
    "goss": ({"data_sample_strategy": "goss", "learning_rate": 0.5}, TARGET),
    "extra_trees": ({"extra_trees": True}, TARGET),
    "bagging": ({"bagging_freq": 1, "bagging_fraction": 0.6, "feature_fraction": 0.7}, TARGET),
    "zero_as_missing": ({"zero_as_missing": True}, TARGET),
    "use_missing=False": ({"use_missing": False}, TARGET),
    **{f"objective {name}": ({"objective": name}, TARGET) for name in ("regression_l1", "huber", "fair", "quantile", "mape")},
    **{f"objective {name}": ({"objective": name}, POSITIVE) for name in ("poisson", "gamma", "tweedie")},
    **{f"objective {name}": ({"objective": name}, BINARY) for name in ("binary", "cross_entropy", "lambdarank", "rank_xendcg")},
    **{f"objective {name}": ({"objective": name, "num_class": 3}, CLASSES) for name in ("multiclass", "multiclassova")},
}


def _lightgbm(parameters: dict[str, Any], target: Any, folder: Path, rows: Any = NUMBERS, form: str | None = None) -> Case:
    group = GROUPS if parameters.get("objective", "") in ("lambdarank", "rank_xendcg") else None
    booster = lightgbm.train(SMALL | parameters, lightgbm.Dataset(rows, target, group=group), ROUNDS)
    some = rows.head(N_EXPLAINED)
    margin = booster.predict(some, raw_score=True).reshape(len(some), -1)
    found = booster.predict(some, pred_contrib=True).reshape(len(some), margin.shape[1], -1)[:, :, :-1]
    return Case(_written(booster, form, folder), some, margin, found)


def _forest(folder: Path) -> Case:
    """The mean over its trees, as predict says it; raw scores and contributions are sums."""
    given = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    case = _lightgbm(given, TARGET, folder)
    return Case(case.model, case.rows, case.model.predict(case.rows).reshape(-1, 1), case.contributions / ROUNDS)


def of_lightgbm() -> Iterator[Variant]:
    """Boosting, missing values, objectives, categories, formats."""
    for name, (parameters, target) in LIGHTGBM.items():
        yield Variant("LightGBM", name, partial(_lightgbm, parameters, target))
    yield Variant("LightGBM", "rf", _forest)
    for most, name in ((100, "one by one"), (1, "in sets")):
        yield Variant("LightGBM", f"categories, split {name}", partial(_lightgbm, {"max_cat_to_onehot": most}, TARGET, rows=CATEGORICAL))
    for form in ("text", "leafledger.save_model"):
        yield Variant("LightGBM", f"categories, file: {form}", partial(_lightgbm, {"max_cat_to_onehot": 1}, TARGET, rows=CATEGORICAL, form=form))
