"""The libraries that trained the models: their own predictions, which are the floor, and their own contributions."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.models import CATBOOST, LIGHTGBM, XGBOOST, feature_names


@dataclass(frozen=True, slots=True)
class Vendor:
    """A library at work: ``load(path)`` is its model, ``wrap(rows)`` what it wants rows in, neither of them timed.

    With both and a number of threads ``predict`` gives margins, ``contributions`` ``(n, features + 1)`` per output, the base value last.
    """

    package: str
    load: Callable[[Path], Any]
    wrap: Callable[[np.ndarray], Any]
    predict: Callable[[Any, Any, int], Any]
    contributions: Callable[[Any, Any, int], Any]


def _load_xgboost(path):
    import xgboost

    return xgboost.Booster(model_file=path)


def _wrap_xgboost(rows):
    import xgboost

    return rows, xgboost.DMatrix(rows, feature_names=feature_names(rows.shape[1]))


def _on(model, threads):
    model.set_param({"nthread": threads})
    return model


def _load_lightgbm(path):
    import lightgbm

    return lightgbm.Booster(model_file=path)


def _load_catboost(path):
    import catboost

    return catboost.CatBoostRegressor().load_model(str(path))


def _wrap_catboost(rows):
    import catboost

    return catboost.Pool(rows, feature_names=feature_names(rows.shape[1]))


VENDORS = {
    XGBOOST: Vendor(
        package="xgboost",
        load=_load_xgboost,
        wrap=_wrap_xgboost,
        # In place: predicting a DMatrix again would be answered from the booster's cache.
        predict=lambda model, rows, threads: _on(model, threads).inplace_predict(rows[0], predict_type="margin", validate_features=False),
        contributions=lambda model, rows, threads: _on(model, threads).predict(rows[1], pred_contribs=True),
    ),
    LIGHTGBM: Vendor(
        package="lightgbm",
        load=_load_lightgbm,
        wrap=lambda rows: rows,
        predict=lambda model, rows, threads: model.predict(rows, raw_score=True, num_threads=threads),
        contributions=lambda model, rows, threads: model.predict(rows, pred_contrib=True, num_threads=threads),
    ),
    CATBOOST: Vendor(
        package="catboost",
        load=_load_catboost,
        wrap=_wrap_catboost,
        predict=lambda model, pool, threads: model.predict(pool, prediction_type="RawFormulaVal", thread_count=threads),
        contributions=lambda model, pool, threads: model.get_feature_importance(
            pool, type="ShapValues", shap_calc_type="Regular", thread_count=threads
        ),
    ),
}
