"""Small models of every library, with missing values and categories, and effects by brute force through their own predictions."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor

COLOURS = ("red", "green", "blue", "black")
FEATURES = ["x", "y", "z", "colour"]
NUMBERS = FEATURES[:3]
ATOL = 1e-9  # of numbers around one


def make_rows(n, seed=0, missing=True):
    """Numbers that go together, with gaps, and a category that depends on them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rows = pd.DataFrame({"x": x, "y": x + rng.normal(size=n), "z": np.round(rng.normal(size=n), 1)})
    rows["colour"] = pd.Categorical.from_codes(np.where(x > 0, rng.integers(0, 3, n), rng.integers(1, 4, n)), COLOURS)
    if missing:
        rows.loc[rng.random(n) < 0.1, "y"] = np.nan
    return rows


def make_target(rows):
    return (
        rows["x"] * rows["y"].fillna(-1.0)
        + (rows["colour"] == "red") * (2.0 + rows["z"])
        - (rows["colour"] == "black") * rows["x"]
        + np.abs(rows["z"])
    )


def train(library, rows, target=None):
    """A model, and its margins of rows as float64."""
    target = make_target(rows) if target is None else target
    if library == "xgboost":
        model = xgboost.train({"max_depth": 4, "nthread": 1, "max_cat_to_onehot": 2}, xgboost.DMatrix(rows, target, enable_categorical=True), 8)
        return model, lambda some: model.predict(xgboost.DMatrix(some, enable_categorical=True), output_margin=True).astype(float)
    if library == "lightgbm":
        given = {"verbosity": -1, "num_threads": 1, "num_leaves": 12, "min_data_per_group": 5, "cat_smooth": 1.0}
        model = lightgbm.train(given, lightgbm.Dataset(rows, target), 8)
        return model, model.predict
    if library == "catboost":
        given = {"iterations": 8, "depth": 4, "one_hot_max_size": 10, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        model = catboost.CatBoostRegressor(**given).fit(catboost.Pool(rows, target, cat_features=["colour"]))
        return model, model.predict
    model = HistGradientBoostingRegressor(max_iter=8, categorical_features="from_dtype", random_state=0).fit(rows, target)
    return model, model.predict


def brute(predict, rows, settings):
    """Predictions of rows with columns set, ``(rows,)``; or, where columns are set to lists, to each of their values in turn, ``(values, rows)``."""
    n_values = next((len(value) for value in settings.values() if np.ndim(value)), 1)
    changed = rows.iloc[np.tile(np.arange(len(rows)), n_values)].reset_index(drop=True)
    for name, value in settings.items():
        each = [np.nan if one is None and name in NUMBERS else one for one in (value if np.ndim(value) else [value])]
        column = np.repeat(np.array(each, float if name in NUMBERS else object), len(changed) // len(each))
        changed[name] = column if name in NUMBERS else pd.Categorical(column, COLOURS)
    found = np.asarray(predict(changed), float)
    return found.reshape(n_values, len(rows), *found.shape[1:]) if any(map(np.ndim, settings.values())) else found


FORESTS = {
    "forest": lambda rows, target: RandomForestRegressor(6, max_depth=5, random_state=0).fit(rows, target),
    "boosting": lambda rows, target: GradientBoostingRegressor(n_estimators=6, random_state=0).fit(rows, target),
    "histograms": lambda rows, target: HistGradientBoostingRegressor(max_iter=6, random_state=0).fit(rows, target),
    "classifier": lambda rows, target: HistGradientBoostingClassifier(max_iter=6, random_state=0).fit(rows, target > 0),
}


def train_classes(kind, rows):
    """A model whose predictions are no margins."""
    target = make_target(rows)
    given = {"verbosity": -1, "num_threads": 1, "num_leaves": 6, "min_data_per_group": 5, "cat_smooth": 1.0}
    labels = {"binary": target > 0.5, "multiclass": np.digitize(target, [-0.5, 0.8]), "poisson": np.round(np.exp(target / 3))}[kind]
    given |= {"objective": kind} | ({"num_class": 3} if kind == "multiclass" else {})
    return lightgbm.train(given, lightgbm.Dataset(rows, np.asarray(labels, float)), 6)
