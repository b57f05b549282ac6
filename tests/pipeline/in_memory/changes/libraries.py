"""Models of all libraries, of numbers with missing values, whole numbers and categories, and what each library itself predicts."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import xgboost
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from threadpoolctl import threadpool_limits

N = 1000
CARRIERS = ("AA", "B6", "DL", "UA", "WN")
NUMBERS = ("delay", "share", "hour", "seats")


def make_frame(seed, missing=True):
    """Rows with ties, missing values, whole numbers with and without their own type, and categories."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"delay": rng.normal(size=N).round(1), "share": rng.random(N)})
    frame["hour"], frame["seats"] = rng.integers(0, 24, N), rng.poisson(1.0, N).astype(float)
    frame["carrier"] = pd.Categorical.from_codes(rng.integers(0, 5, N), CARRIERS)
    if missing:
        frame.loc[rng.random(N) < 0.1, "delay"] = np.nan
    return frame


def make_label(frame):
    """Interactions of every feature, so that most margins rise and fall along a feature."""
    delay, carrier = frame["delay"].fillna(-0.5), frame["carrier"].astype(str)
    score = np.sin(3 * delay) * (frame["hour"] > 11) + 2 * frame["share"] - frame["seats"] / 2 + (carrier == "UA") - (carrier == "B6") * delay
    return (score > score.median()).to_numpy()


def with_categories(frame):
    return frame.assign(carrier=frame["carrier"].astype(str))


def train_xgboost(frame):
    model = xgboost.XGBClassifier(n_estimators=30, max_depth=4, n_jobs=1, enable_categorical=True, max_cat_to_onehot=2, tree_method="hist")
    return model.fit(frame, make_label(frame)), lambda rows: model.predict_proba(rows)[:, 1]


def train_lightgbm(frame, **given):
    model = lightgbm.LGBMClassifier(n_estimators=30, num_leaves=15, n_jobs=1, min_data_per_group=5, cat_smooth=1.0, verbose=-1, **given)
    return model.fit(frame, make_label(frame)), lambda rows: model.predict_proba(rows)[:, 1]


def train_zeros_missing(frame):
    return train_lightgbm(frame, zero_as_missing=True)


def train_catboost(frame):
    model = catboost.CatBoostClassifier(
        iterations=30, depth=5, one_hot_max_size=10, cat_features=["carrier"], thread_count=1, verbose=False, allow_writing_files=False
    )
    return model.fit(with_categories(frame), make_label(frame)), lambda rows: model.predict_proba(with_categories(rows))[:, 1]


def train_histograms(frame):
    """On one thread, since a busy machine's threads would wait for each other at every tree."""
    model = HistGradientBoostingClassifier(max_iter=30, categorical_features="from_dtype", random_state=0)

    def predict(rows):
        with threadpool_limits(1):
            return model.predict_proba(rows)[:, 1]

    with threadpool_limits(1):
        return model.fit(frame, make_label(frame)), predict


def coded(frame):
    """Without missing values, and categories as numbers."""
    return frame.assign(carrier=frame["carrier"].cat.codes.astype(float), delay=frame["delay"].fillna(0.0))


def train_forest(frame):
    model = RandomForestClassifier(20, max_depth=6, random_state=0, n_jobs=1)
    return model.fit(coded(frame), make_label(frame)), lambda rows: model.predict_proba(rows)[:, 1]


def train_boosted(frame):
    model = GradientBoostingClassifier(n_estimators=30, max_depth=4, random_state=0)
    return model.fit(coded(frame), make_label(frame)), lambda rows: model.predict_proba(rows)[:, 1]


TRAIN = {  # and the kind of numbers that the library compares
    "xgboost": (train_xgboost, np.float32),
    "lightgbm": (train_lightgbm, np.float64),
    "lightgbm, zeros missing": (train_zeros_missing, np.float64),
    "catboost": (train_catboost, np.float32),
    "histograms": (train_histograms, np.float64),
    "forest": (train_forest, np.float32),
    "boosted": (train_boosted, np.float32),
}
