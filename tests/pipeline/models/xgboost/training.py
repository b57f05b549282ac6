"""XGBoost models of every kind that tests train, their documents, and the library's own margins.

The loader reproduces comparisons exactly, but XGBoost adds leaves in float32: RTOL and ATOL leave each of a few trees' additions, of
margins near 1, a rounding of 6e-8 and its contributions (quadrature or weighted paths in float32) a few dozen of them.
"""

import json
import warnings

import numpy as np
import pandas as pd
import xgboost as xgb
from numpy.testing import assert_allclose

from leafledger.pipeline.models.xgboost.loader import LOADER
from tests import naive

RTOL = ATOL = 1e-5
VERSION = tuple(int(part) for part in xgb.__version__.split(".")[:2])
PARAMETERS = {"nthread": 1, "max_depth": 3, "seed": 1, "verbosity": 0}
LARGEST = float(np.finfo(np.float32).max)


def numeric_rows(n_rows=160):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n_rows, 3)).astype(np.float32)
    rows[::4, 1] = np.nan
    rows[::3, 2] = 0.0
    return rows


ROWS = numeric_rows()
SIGNAL = ROWS[:, 0] + np.nan_to_num(ROWS[:, 1], nan=3.0) * (ROWS[:, 2] == 0)
CLASS = np.digitize(SIGNAL, [-0.5, 0.5]).astype(float)
TARGETS = np.stack([SIGNAL, np.nan_to_num(ROWS[:, 1]) - ROWS[:, 0]], axis=1)
RAW_CODES = np.random.default_rng(2).choice([0.0, 3.0, 31.0, 32.0, 64.0, 70.0], ROWS.shape[0])


def train(rows=ROWS, target=SIGNAL, n_rounds=4, types=None, **parameters):
    data = xgb.DMatrix(rows, target, nthread=1, feature_types=types, enable_categorical=True)
    if parameters.get("objective") == "survival:aft":
        data.set_float_info("label_lower_bound", target)
        data.set_float_info("label_upper_bound", 2 * target)
    if parameters.get("objective", "").startswith("rank:"):
        data.set_group([len(rows) // 2, len(rows) - len(rows) // 2])
    with warnings.catch_warnings():  # deprecations of parameters that old models were trained with
        warnings.simplefilter("ignore", UserWarning)
        return xgb.train(PARAMETERS | parameters, data, n_rounds)


def load(booster):
    return LOADER.parse(LOADER.serialise(booster), "m")[:3]


def document(booster):
    return json.loads(booster.save_raw("json"))


def trees_of(model):
    booster = model["learner"]["gradient_booster"]
    return booster.get("gbtree", booster)["model"]["trees"]


def parse_document(model):
    return LOADER.parse(json.dumps(model).encode(), "m")[:3]


def margins(booster, rows, **options):
    with np.errstate(over="ignore"):
        predicted = booster.inplace_predict(rows, predict_type="margin", **options)
    return predicted.reshape(len(rows), -1)


def frame(names):
    rng = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "word": pd.Categorical(rng.choice(names, 160), categories=names),
            "number": pd.Categorical(rng.choice([70000, -5, 7], 160), categories=[7, 70000, -5]),
            "x": ROWS[:, 0],
            "idle": pd.Categorical(["only"] * 160),
        }
    )


def probes(booster):
    """Training rows, and rows of specials: each value at, just below and just above a threshold, zeros, infinities, missing."""
    values: set[float] = {0.0, -0.0, 1e-45, -1e-45, LARGEST, -LARGEST, 1e308, -1e308, np.inf, -np.inf, np.nan}
    for tree in trees_of(document(booster)):
        for threshold, left in zip(np.array(tree["split_conditions"], np.float32), tree["left_children"], strict=True):
            if left != -1:
                near = (np.nextafter(threshold, np.float32(-np.inf)), threshold, np.nextafter(threshold, np.float32(np.inf)))
                # The last rounds to the threshold as float32 and lies below it as float64.
                values |= {*map(float, near), np.nextafter(float(threshold), -np.inf)}
    rng = np.random.default_rng(3)
    return np.concatenate((ROWS[:40].astype(float), rng.choice(sorted(values, key=repr), (250, 3))))


def assert_agrees(booster, rows=None, **options):
    ensemble, features, outputs = load(booster)
    rows = probes(booster) if rows is None else rows
    wanted = margins(booster, rows, **options)
    assert_allclose(naive.margins(ensemble, rows), wanted, rtol=RTOL, atol=ATOL)
    assert ensemble.single_precision
    assert outputs == tuple(str(k) for k in range(wanted.shape[1]))
    return ensemble, features
