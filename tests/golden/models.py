"""``python -m tests.golden.models``: rows and model files of golden numbers, which are kept; other versions of the libraries write others."""

from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import catboost
import lightgbm
import numpy as np
import pandas as pd
import skops.io
import xgboost
from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier

from leafledger import load_ensemble, save_model
from tests.golden.cases import BACKGROUND, CODES, MODELS, ROWS

COLUMNS = ["a", "b", "c", "k"]
N_ROWS, N_BACKGROUND, N_TRAINED = 12, 48, 400


def draw_rows(draw: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw numbers, one of a few values, and categories as texts."""
    rows = pd.DataFrame({"a": draw.normal(size=n).round(3), "b": draw.normal(size=n).round(3), "c": draw.integers(0, 5, n).astype(float)})
    rows["k"] = draw.choice(["x", "y", "z"], n)
    rows["y"] = (rows.a + rows.b * rows.c + 2 * (rows.k == "x") * rows.a - (rows.k == "z")).round(4)
    return rows.assign(w=draw.random(n).round(3), m=draw.choice(["p", "q"], n))


def _save_numeric(path: Path, model: Any, inputs: pd.DataFrame, y: Any) -> None:
    skops.io.dump(model.fit(inputs, y), path, compression=ZIP_DEFLATED)


def write_all() -> None:
    """Write rows and models."""
    draw = np.random.default_rng(20261127)
    trained, explained, background = (draw_rows(draw, n) for n in (N_TRAINED, N_ROWS, N_BACKGROUND))
    explained.loc[3, "k"] = "unseen"
    MODELS.mkdir(exist_ok=True)
    explained.to_parquet(ROWS)
    background.to_parquet(BACKGROUND)
    inputs = trained[COLUMNS].assign(k=trained["k"].astype("category"))
    coded = trained[COLUMNS].assign(k=trained["k"].map(CODES))
    classes = np.digitize(trained["y"], [-1, 1])
    given = {"max_depth": 3, "eta": 0.5, "seed": 1, "nthread": 1}
    matrix = xgboost.DMatrix(inputs, trained["y"], enable_categorical=True)
    xgboost.train(given, matrix, 5).save_model(MODELS / "xgboost.ubj")
    of_classes = xgboost.DMatrix(inputs, classes, enable_categorical=True)
    xgboost.train({**given, "objective": "multi:softprob", "num_class": 3}, of_classes, 3).save_model(MODELS / "xgboost_classes.json")
    given = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 5, "min_data_per_group": 5, "seed": 1, "learning_rate": 0.4}
    data = lightgbm.Dataset(inputs, trained["y"], free_raw_data=False)
    lightgbm.train(given, data, 5).save_model(MODELS / "lightgbm.txt")
    forest = {**given, "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    lightgbm.train(forest, lightgbm.Dataset(inputs, trained["y"]), 4).save_model(MODELS / "lightgbm_forest.txt")
    given = {"iterations": 5, "depth": 3, "random_seed": 1, "thread_count": 1, "verbose": False, "allow_writing_files": False, "learning_rate": 0.4}
    pool = catboost.Pool(trained[COLUMNS], trained["y"], cat_features=["k"])
    small = catboost.CatBoostRegressor(**given, one_hot_max_size=10)
    small.fit(pool)
    small.save_model(str(MODELS / "catboost.cbm"))
    statistics, several = catboost.CatBoostRegressor(**given, one_hot_max_size=1), ["k", "m"]
    pool = catboost.Pool(trained[[*COLUMNS, "m"]], trained["y"], cat_features=several)
    statistics.fit(pool)
    statistics.save_model(str(MODELS / "catboost_ctr.json"), format="json", pool=pool)
    _save_numeric(MODELS / "gradient_boosting.skops", GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=1), coded, classes > 1)
    _save_numeric(MODELS / "random_forest.skops", RandomForestRegressor(n_estimators=4, max_depth=3, random_state=1), coded, trained["y"])
    ada = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2, random_state=1), n_estimators=4, random_state=1)
    _save_numeric(MODELS / "adaboost.skops", ada, coded, classes)
    hist = HistGradientBoostingRegressor(max_iter=4, max_leaf_nodes=6, random_state=1, categorical_features="from_dtype")
    _save_numeric(MODELS / "hist_gradient_boosting.skops", hist, inputs, trained["y"])
    save_model(load_ensemble(MODELS / "lightgbm.txt"), MODELS / "neutral.leaftrees")


if __name__ == "__main__":
    write_all()
