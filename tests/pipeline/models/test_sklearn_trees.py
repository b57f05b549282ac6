"""scikit-learn's trees: values are compared as they are compared there, and missing ones go the same way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn import ensemble, tree

from leafledger import attribute, load_ensemble
from pipeline.models.sklearn_trees import single_below

ROWS = np.random.default_rng(0).normal(size=(300, 4)).round(2)
TARGET = ROWS[:, 0] + np.abs(ROWS[:, 1]) * (ROWS[:, 2] > 0) + np.random.default_rng(1).normal(0, 0.1, 300)
SEED = {"random_state": 0}


def missing(rows):
    """Some values missing."""
    return np.where(np.random.default_rng(3).random(rows.shape) < 0.1, np.nan, rows)


@pytest.mark.parametrize(
    "model",
    [
        tree.DecisionTreeRegressor(max_depth=5, **SEED),
        ensemble.RandomForestRegressor(5, max_depth=5, **SEED),
        ensemble.HistGradientBoostingRegressor(max_iter=10, **SEED),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("seen", [True, False])
def test_missing_values_go_where_scikit_learn_sends_them(model, seen):
    """Where training saw some, and where it did not."""
    model.fit(missing(ROWS) if seen else ROWS, TARGET)
    rows = missing(ROWS[::-1])
    assert_allclose(attribute(model, rows).margin[:, 0], model.predict(rows), rtol=1e-12, atol=1e-12)


def test_values_are_compared_in_the_library_s_precision():
    """Trees round values to single precision and not their thresholds; histograms round neither."""
    rows = np.linspace(0, 1, 400)[:, None] + 1e-9
    for model in (tree.DecisionTreeRegressor(**SEED), ensemble.HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2, **SEED)):
        model.fit(rows, np.sin(9 * rows[:, 0]))
        thresholds = load_ensemble(model).ensemble.threshold
        asked = np.concatenate([thresholds, *(np.nextafter(thresholds, side) for side in (-9, 9))])[:, None]
        single = np.float32(thresholds)
        asked = np.concatenate((asked, *(np.nextafter(single, np.float32(side)).astype(float)[:, None] for side in (-9, 9))))
        assert_allclose(attribute(model, asked).margin[:, 0], model.predict(asked), rtol=1e-12, atol=1e-12)


@given(st.floats(-1e30, 1e30), st.floats(-1e30, 1e30))
def test_the_same_numbers_in_single_precision_are_below_a_rounded_threshold(threshold, number):
    """Wherever the threshold lies between two of them."""
    for single in (np.float32(number), np.float32(threshold), *(np.nextafter(np.float32(threshold), np.float32(side)) for side in (-1e38, 1e38))):
        assert (float(single) <= threshold) == (float(single) <= single_below(np.array([threshold]))[0])
