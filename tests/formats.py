"""Formats of model files: a sound one of each, and what its library, or a reader written from the documentation, predicts of another."""

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from leafledger.pipeline.models import parse_model
from leafledger.pipeline.models.model import Model
from leafledger.pipeline.models.portable_format import write_trees

N_ROWS, N_FEATURES = 64, 4
TYPES = ("<i4", "<f8", "u1", "<i4", "<i4", "<i4", "<f8", "<f8", "<i4", "<i4", "<f8", "<i4", "u1", "<i8", "<u4", "<i4")  # of neutral files


def make_rows() -> np.ndarray:
    """Values of the size of the training's, some missing, and whole numbers in the last column, which are codes where a model has categories."""
    draw = np.random.default_rng(1)
    rows = draw.normal(size=(N_ROWS, N_FEATURES)).round(1)
    rows[draw.random(rows.shape) < 0.1] = np.nan
    rows[:, -1] = draw.integers(0, 4, N_ROWS)
    return rows


def _training() -> tuple[np.ndarray, np.ndarray]:
    rows = np.tile(make_rows(), (4, 1))
    return rows, np.nan_to_num(rows[:, 0]) + np.nan_to_num(rows[:, 1]) * (rows[:, -1] == 2) + np.random.default_rng(2).normal(0, 0.1, len(rows))


def _xgboost(suffix: str) -> bytes:
    import xgboost

    rows, target = _training()
    data = xgboost.DMatrix(rows, target, feature_types=["q"] * (N_FEATURES - 1) + ["c"], enable_categorical=True)
    return bytes(xgboost.train({"max_depth": 3, "max_cat_to_onehot": 1, "nthread": 1}, data, 3).save_raw(suffix))


def _predict_xgboost(data: bytes, rows: np.ndarray) -> np.ndarray:
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    matrix = xgboost.DMatrix(rows, feature_types=["q"] * (N_FEATURES - 1) + ["c"], enable_categorical=True, nthread=1)
    return booster.predict(matrix, output_margin=True, validate_features=False)


def _lightgbm() -> bytes:
    import lightgbm

    rows, target = _training()
    given = {"num_leaves": 6, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1, "max_cat_to_onehot": 1, "cat_smooth": 1}
    return lightgbm.train(given, lightgbm.Dataset(rows, target, categorical_feature=[N_FEATURES - 1]), 3).model_to_string().encode()


def _predict_lightgbm(data: bytes, rows: np.ndarray) -> np.ndarray:
    import lightgbm

    return lightgbm.Booster(model_str=data.decode("latin-1")).predict(rows, raw_score=True, num_threads=1)


def _saved(model: Any, form: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        model.save_model(f"{folder}/model", format=form)
        return Path(folder, "model").read_bytes()


def _catboost(policy: str, form: str) -> bytes:
    import catboost

    rows, target = _training()
    given = {"iterations": 3, "depth": 3, "grow_policy": policy, "allow_writing_files": False, "verbose": False, "thread_count": 1}
    return _saved(catboost.CatBoostRegressor(**given).fit(rows, target), form)


def with_texts(rows: np.ndarray) -> pd.DataFrame:
    """The last two columns as categories, many and few."""
    texts = {j: ["none" if np.isnan(value) else f"{10 * value:.0f}" for value in rows[:, j]] for j in (N_FEATURES - 2, N_FEATURES - 1)}
    return pd.DataFrame({j: texts.get(j, rows[:, j]) for j in range(N_FEATURES)})


def _catboost_statistics(form: str) -> bytes:
    """A model that looks up statistics of its categories, together with bits of numbers."""
    import catboost

    rows, target = _training()
    given = {"iterations": 8, "depth": 3, "allow_writing_files": False, "verbose": False, "thread_count": 1, "max_ctr_complexity": 3}
    frame = with_texts(rows)
    return _saved(catboost.CatBoostRegressor(**given, model_size_reg=0, cat_features=list(frame.columns[-2:])).fit(frame, target), form)


def _predict_statistics(data: bytes, rows: np.ndarray) -> np.ndarray:
    import catboost

    return _predict_catboost(data, catboost.Pool(with_texts(rows).to_numpy().tolist(), cat_features=[N_FEATURES - 2, N_FEATURES - 1]))


def _predict_catboost(data: bytes, rows: Any) -> np.ndarray:
    import catboost

    model = catboost.CatBoost()
    with tempfile.NamedTemporaryFile() as file:  # a blob is taken for cbm, whatever its format is said to be
        file.write(data)
        file.flush()
        model.load_model(file.name, format="cbm" if data.startswith(b"CBM1") else "json")
    return model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)


def load(data: bytes) -> Model:
    """A model as its loader reads it; LeafledgerError where the file is refused."""
    return parse_model(data, "model")


def _neutral() -> bytes:
    return write_trees(load(_lightgbm()))


def _predict_neutral(data: bytes, rows: np.ndarray) -> np.ndarray:
    """By what the documentation says of the format, row by row."""
    size = int.from_bytes(data[12:20], "little")
    header, at, arrays = json.loads(data[20 : 20 + size]), 20 + size, {}
    for name, dtype in zip(header["arrays"], TYPES, strict=True):
        shape = header["arrays"][name]
        arrays[name] = np.frombuffer(data, dtype, math.prod(shape), at).reshape(shape)
        at += arrays[name].nbytes
    trees, margin = SimpleNamespace(**arrays), np.tile(arrays["base"], (len(rows), 1))
    for i, row in enumerate(rows):
        for tree, node in enumerate(trees.root):
            while trees.feature[node] >= 0:
                node = (trees.left if _goes_left(trees, header, node, row[trees.feature[node]]) else trees.right)[node]
            width = trees.value.shape[1]
            margin[i, trees.output[tree] : trees.output[tree] + width] += trees.value[node]
    return margin


def _goes_left(trees: Any, header: Any, node: int, value: float) -> bool:
    j = trees.feature[node]
    missing = np.isnan(value) or value == header["features"][j]["missing"] or (trees.zero_missing[j] and abs(value) <= np.float32(1e-35))
    if missing:
        return bool(trees.missing_left[node])
    if trees.category_set[node] < 0:
        return bool((np.float32(value) if header["single_precision"] else value) <= trees.threshold[node])
    n, start = trees.n_categories[j], trees.set_start[trees.category_set[node]]
    code = int(value) if 0 <= value < n else n
    return bool(trees.set_words[start + code // 32] >> code % 32 & 1)


def _skops(model: Any) -> bytes:
    import skops.io

    return skops.io.dumps(model.fit(*_training()))


def _forest() -> bytes:
    from sklearn.ensemble import RandomForestRegressor

    return _skops(RandomForestRegressor(3, max_depth=3, random_state=0))


def _histograms() -> bytes:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _skops(HistGradientBoostingRegressor(max_iter=3, max_depth=3, categorical_features=[N_FEATURES - 1]))


def _estimator() -> bytes:
    from lightgbm import LGBMRegressor

    return _skops(LGBMRegressor(n_estimators=3, max_depth=3, verbosity=-1, n_jobs=1))


def _predict_skops(data: bytes, rows: np.ndarray) -> np.ndarray:
    import skops.io

    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data)).predict(rows)


@dataclass(frozen=True, slots=True)
class Format:
    """A format of model files: a sound one, what the library itself predicts of another, and whether it is a zip."""

    train: Callable[[], bytes]
    predict: Callable[[bytes, np.ndarray], np.ndarray]
    zipped: bool = False


FORMATS = {
    "xgboost json": Format(lambda: _xgboost("json"), _predict_xgboost),
    "xgboost ubj": Format(lambda: _xgboost("ubj"), _predict_xgboost),
    "lightgbm text": Format(_lightgbm, _predict_lightgbm),
    "catboost cbm": Format(lambda: _catboost("SymmetricTree", "cbm"), _predict_catboost),
    "catboost json": Format(lambda: _catboost("SymmetricTree", "json"), _predict_catboost),
    "neutral": Format(_neutral, _predict_neutral),
    "skops": Format(_forest, _predict_skops, zipped=True),
    "skops, bins": Format(_histograms, _predict_skops, zipped=True),
    "skops, LightGBM": Format(_estimator, _predict_skops, zipped=True),
    "catboost cbm, free trees": Format(lambda: _catboost("Lossguide", "cbm"), _predict_catboost),
    "catboost cbm, statistics": Format(lambda: _catboost_statistics("cbm"), _predict_statistics),
    "catboost json, statistics": Format(lambda: _catboost_statistics("json"), _predict_statistics),
}  # and CatBoost does not read its own JSON of free trees
