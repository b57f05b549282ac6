"""Models of every library on one frame with categories and missing values, and their predictions and losses by the definition."""

import itertools

import numpy as np
import pandas as pd

RNG = np.random.default_rng(11)
N = 400
FRAME = pd.DataFrame({"delay": RNG.normal(size=N), "hour": RNG.integers(0, 24, N).astype(float), "wind": RNG.normal(size=N)})
FRAME.loc[::17, "wind"] = np.nan
FRAME["carrier"] = pd.Categorical(RNG.choice(["AA", "B6", "UA"], N))
SCORE = 0.8 * FRAME["delay"] + 0.4 * (FRAME["carrier"] == "B6") * FRAME["hour"] / 8 - 0.5 * FRAME["wind"].fillna(1.0)
LATE = (SCORE + RNG.normal(size=N) > 0.3).astype(int).to_numpy()
COUNT = RNG.poisson(np.exp(0.5 * SCORE)).astype(float)
AMOUNT = np.exp(0.5 * SCORE.to_numpy()) * RNG.gamma(2.0, 0.5, N) + 0.01
ROWS, BACKGROUND = FRAME[:3].reset_index(drop=True), FRAME[100:107].reset_index(drop=True)
DOUBLE, SINGLE = 1e-9, 2e-5  # relative to a row's largest part; XGBoost adds up in single precision
NUMBERS = ["delay", "hour", "wind"]
HELD, OTHERS = ROWS[NUMBERS], BACKGROUND[NUMBERS]
LOSSES = {  # of a margin m and a label y, as textbooks have them
    "probability": lambda m, y: 1 / (1 + np.exp(-m)),
    "response": lambda m, y: np.exp(m),
    "squared": lambda m, y: (y - m) ** 2,
    "log": lambda m, y: np.log1p(np.exp(-m)) if y == 1 else np.log1p(np.exp(m)),
    "poisson": lambda m, y: 2 * ((y * np.log(y) if y else 0.0) - y * m - y + np.exp(m)),
    "gamma": lambda m, y: 2 * (m - np.log(y) + y * np.exp(-m) - 1),
}


def train_xgboost(objective, label):
    import xgboost

    data = xgboost.DMatrix(FRAME, label, enable_categorical=True)
    model = xgboost.train({"objective": objective, "max_depth": 3, "eta": 0.4}, data, 6)
    return model, lambda frame: model.predict(xgboost.DMatrix(frame, enable_categorical=True), output_margin=True).astype(float)


def train_lightgbm(objective, label):
    import lightgbm

    given = {"objective": objective, "num_leaves": 7, "learning_rate": 0.4, "min_data_in_leaf": 5, "verbose": -1}
    model = lightgbm.train(given, lightgbm.Dataset(FRAME, label), 6)
    return model, lambda frame: model.predict(frame, raw_score=True)


def train_catboost(objective, label):
    import catboost

    text = lambda frame: frame.assign(carrier=frame["carrier"].astype(str))  # noqa: E731 - a conversion in a line
    given = {"loss_function": objective, "depth": 3, "iterations": 6, "learning_rate": 0.4, "one_hot_max_size": 9, "allow_writing_files": False}
    model = catboost.CatBoost({**given, "verbose": False}).fit(text(FRAME), label, cat_features=["carrier"])
    return model, lambda frame: model.predict(text(frame), prediction_type="RawFormulaVal")


def train_sklearn(objective, label):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if objective == "log_loss" else HistGradientBoostingRegressor
    model = kind(loss=objective, max_iter=6, max_depth=3, learning_rate=0.4, categorical_features="from_dtype").fit(FRAME, label)
    if objective == "log_loss":
        return model, model.decision_function
    return model, lambda frame: np.log(model.predict(frame)) if objective == "gamma" else model.predict(frame)


def enumerate_coalitions(margin_of, rows, background, function, label, orders=None):
    """Values of every row and feature, the row's total and its base: means over orders, all of them or some, against each background row, by the
    library's own margins."""
    names, n = list(rows.columns), len(rows.columns)
    coalitions, orders = list(itertools.product((False, True), repeat=n)), list(orders or itertools.permutations(range(n)))
    found = np.zeros((len(rows), n))
    totals, bases = np.zeros(len(rows)), np.zeros(len(rows))
    for i, y in enumerate(label):
        row, others = rows.iloc[i], [background.iloc[b] for b in range(len(background))]
        mixed = [
            {name: (row if there else other)[name] for name, there in zip(names, present, strict=True)} for other in others for present in coalitions
        ]
        frame = pd.DataFrame(mixed).astype({name: rows[name].dtype for name in names})
        margins = margin_of(frame).reshape(len(background), len(coalitions))
        for of_row in margins:
            v = dict(zip(coalitions, of_row, strict=True))
            u, w = v[(True,) * n], v[(False,) * n]
            slope = (function(u, y) - function(w, y)) / (u - w) if abs(u - w) > 1e-12 else 0.0
            for order in orders:
                present = [False] * n
                for j in order:
                    before = v[tuple(present)]
                    present[j] = True
                    found[i, j] += slope * (v[tuple(present)] - before) / len(orders) / len(background)
            totals[i], bases[i] = function(u, y), bases[i] + function(w, y) / len(background)
    return found, totals, bases
