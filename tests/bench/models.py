"""The models that are measured, trained once on synthetic rows and kept, and each library's own predictions and contributions."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TRAINING_ROWS, FEATURES = 50_000, 20
NAMES = [f"x{j:02d}" for j in range(FEATURES)]
MISSING = 0.02


@dataclass(frozen=True, slots=True)
class Peer:
    """A library's model at work: each call takes rows and a number of threads. Contributions are ``(n, features + 1)``, the base value last.

    ``predict`` gives margins. What the library wants rows wrapped in is made beforehand by ``wrap``, and not timed.
    """

    wrap: Callable[[np.ndarray], Any]
    predict: Callable[[Any, int], Any]
    contributions: Callable[[Any, int], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A model to measure. ``contribution_rows`` take the library a second or a few on one thread: CatBoost prepares for most of one in every call."""

    name: str
    file: str
    train: Callable[[np.ndarray, np.ndarray, Path], object]
    load: Callable[[Path], Peer]
    contribution_rows: int


def make_rows(n: int, seed: int) -> np.ndarray:
    """``(n, FEATURES) float32``, normal, some missing."""
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, FEATURES), np.float32)
    rows[draw.random(rows.shape, np.float32) < MISSING] = np.nan
    return rows


def make_target(rows: np.ndarray) -> np.ndarray:
    """Interactions of every feature with its neighbour, and noise: trees stay deep and use all features."""
    x = np.nan_to_num(rows)
    weight = 1 / np.sqrt(1 + np.arange(FEATURES - 1))
    return np.sin(2 * x[:, 0]) + (x[:, :-1] * x[:, 1:]) @ weight + 0.3 * np.random.default_rng(1).standard_normal(len(x))


def _train_xgboost(n_trees: int, depth: int):
    def train(rows, target, path):
        import xgboost

        data = xgboost.QuantileDMatrix(rows, target, feature_names=NAMES)
        xgboost.train({"max_depth": depth, "eta": 0.1, "seed": 1}, data, n_trees).save_model(path)

    return train


def _load_xgboost(path: Path) -> Peer:
    import xgboost

    model = xgboost.Booster(model_file=path)

    def on(threads):
        model.set_param({"nthread": threads})
        return model

    return Peer(
        lambda rows: (rows, xgboost.DMatrix(rows, feature_names=NAMES)),
        # In place: predicting a DMatrix again would be answered from the booster's cache.
        lambda wrapped, threads: on(threads).inplace_predict(wrapped[0], predict_type="margin", validate_features=False),
        lambda wrapped, threads: on(threads).predict(wrapped[1], pred_contribs=True),
    )


def _train_lightgbm(rows, target, path):
    import lightgbm

    data = lightgbm.Dataset(rows, target, feature_name=NAMES)
    lightgbm.train({"objective": "regression", "num_leaves": 1024, "verbose": -1, "seed": 1}, data, 100).save_model(path)


def _load_lightgbm(path: Path) -> Peer:
    import lightgbm

    model = lightgbm.Booster(model_file=path)
    return Peer(
        lambda rows: rows,
        lambda rows, threads: model.predict(rows, raw_score=True, num_threads=threads),
        lambda rows, threads: model.predict(rows, pred_contrib=True, num_threads=threads),
    )


def _train_catboost(rows, target, path):
    import catboost

    model = catboost.CatBoostRegressor(iterations=500, depth=6, random_seed=1, allow_writing_files=False, verbose=False)
    model.fit(catboost.Pool(rows, target, feature_names=NAMES)).save_model(str(path))


def _load_catboost(path: Path) -> Peer:
    import catboost

    model = catboost.CatBoostRegressor().load_model(str(path))
    return Peer(
        lambda rows: catboost.Pool(rows, feature_names=NAMES),
        lambda pool, threads: model.predict(pool, prediction_type="RawFormulaVal", thread_count=threads),
        lambda pool, threads: model.get_feature_importance(pool, type="ShapValues", shap_calc_type="Regular", thread_count=threads),
    )


CASES = (
    Case("XGBoost, 100 trees, depth 6", "xgboost-100x6.ubj", _train_xgboost(100, 6), _load_xgboost, 1024),
    Case("XGBoost, 500 trees, depth 8", "xgboost-500x8.ubj", _train_xgboost(500, 8), _load_xgboost, 128),
    Case("LightGBM, 100 trees, 1024 leaves", "lightgbm-100x1024.txt", _train_lightgbm, _load_lightgbm, 128),
    Case("CatBoost, 500 trees, depth 6", "catboost-500x6.cbm", _train_catboost, _load_catboost, 8192),
)


def trained(case: Case, folder: Path) -> Path:
    """The case's model file, trained where it is not there yet."""
    path = folder / case.file
    if not path.exists():
        rows = make_rows(TRAINING_ROWS, seed=0)
        growing = path.with_name(f".{path.name}")
        case.train(rows, make_target(rows), growing)
        growing.replace(path)
    return path
