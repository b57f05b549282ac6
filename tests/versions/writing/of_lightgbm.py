"""Write models by the LightGBM that is installed, 2.2 to 4.7, and what it says of some rows."""

import warnings

import lightgbm
import numpy as np
from record import BINARY, CATEGORIES, CLASSES, CODES, FRAME, N_ROWS, NUMBERS, POSITIVE, TARGET, Record

warnings.simplefilter("ignore")
VERSION = tuple(map(int, lightgbm.__version__.split(".")[:2]))
SMALL = {"num_leaves": 4, "min_data_in_leaf": 5, "num_threads": 1, "verbosity": -1, "seed": 1, "learning_rate": 0.5, "objective": "regression"}
CATEGORICAL = {"min_data_per_group": 1, "cat_smooth": 0.0, "cat_l2": 0.0, "max_cat_to_onehot": 1}
ROUNDS, HELD_OUT = 3, 80
record = Record(17)


def said(case, file, booster, rows, mean=False):
    """Record a Booster's margins and contributions; those of averaged trees as means."""
    rows = rows.head(N_ROWS)
    n_rounds = booster.num_trees() if mean else 1
    margin = booster.predict(rows, **({} if mean else {"raw_score": True}))
    booster.save_model(record.path(file))
    contributions = np.asarray(booster.predict(rows, pred_contrib=True)) / n_rounds
    outputs = 1 if np.ndim(margin) == 1 else margin.shape[1]
    by_booster = contributions.reshape(len(rows), outputs, -1).sum(axis=2)
    assert np.allclose(by_booster, np.reshape(margin, by_booster.shape)), case
    record.add(case, file, rows, margin, contributions)


def train(given, rows, target, **more):
    """Train a Booster of a few rounds."""
    return lightgbm.train({**SMALL, **given}, lightgbm.Dataset(rows, target, **more), ROUNDS)


def write_all():
    """Write objectives, ways of boosting and of handling missing values, categories, early stopping."""
    said("regression", "regression.txt", train({}, NUMBERS, TARGET), NUMBERS)
    said("zero_as_missing", "zero.txt", train({"zero_as_missing": True}, NUMBERS, TARGET), NUMBERS)
    said("use_missing=false", "use_missing.txt", train({"use_missing": False}, NUMBERS, TARGET), NUMBERS)
    said("objective poisson", "poisson.txt", train({"objective": "poisson"}, NUMBERS, POSITIVE), NUMBERS)
    said("two classes", "two_classes.txt", train({"objective": "binary"}, NUMBERS, BINARY), NUMBERS)
    said("three classes", "three_classes.txt", train({"objective": "multiclass", "num_class": 3}, NUMBERS, CLASSES), NUMBERS)
    said("dart", "dart.txt", train({"boosting": "dart", "drop_rate": 0.5}, NUMBERS, TARGET), NUMBERS)
    averaged = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
    said("random forest", "random_forest.txt", train(averaged, NUMBERS, TARGET), NUMBERS, mean=True)
    said("a feature of one value", "single.txt", train({}, NUMBERS.assign(b=1.0), TARGET), NUMBERS.assign(b=1.0))
    rows = FRAME.assign(city=FRAME["city"].astype(CATEGORIES))
    said("categories", "categories.txt", train(CATEGORICAL, rows, TARGET), rows)
    rows = FRAME.assign(city=CODES)
    said("categories as codes", "codes.txt", train(CATEGORICAL, rows, TARGET, categorical_feature=[3]), rows)
    data = lightgbm.Dataset(NUMBERS[:HELD_OUT], TARGET[:HELD_OUT])
    held_out = lightgbm.Dataset(NUMBERS[HELD_OUT:], TARGET[HELD_OUT:], reference=data)
    early = {**SMALL, "early_stopping_round": 2, "learning_rate": 1.0, "num_leaves": 8}
    booster = lightgbm.train(early, data, 40, valid_sets=[held_out])
    assert 0 < booster.best_iteration < 30, booster.best_iteration
    said("stopped early", "stopped.txt", booster, NUMBERS)
    if VERSION >= (3, 2):
        lightgbm.train({**SMALL, "linear_tree": True}, lightgbm.Dataset(NUMBERS, TARGET), ROUNDS).save_model(record.path("linear.txt"))
        record.add_file("linear_tree", "linear.txt")


write_all()
record.close()
