"""Counted backgrounds: standard errors, and the model's own leaf weights."""

import catboost
import numpy as np
import pytest
from numpy.testing import assert_allclose

import leafledger
from leafledger.pipeline.errors import UsageError
from tests.pipeline.effects.trained import ATOL, NUMBERS, brute, make_rows, make_target, train


def test_standard_errors_are_those_of_the_mean():
    """The jackknife over twenty lots is near the spread of rows' own predictions; fewer than 40 rows have none."""
    rows = make_rows(2000)
    model, predict = train("lightgbm", rows)
    frame = leafledger.partial_dependence(model, rows, features=["x"]).to_frame("x")
    inside = np.nan_to_num((frame["lower"] + frame["upper"]).to_numpy()[:-1] / 2, neginf=-9.0, posinf=9.0)
    expected = brute(predict, rows, {"x": inside}).std(axis=1) / np.sqrt(len(rows))
    ratio = frame["standard_error"].to_numpy()[:-1] / expected
    assert 0.7 < np.median(ratio) < 1.4
    assert leafledger.partial_dependence(model, rows[:39], features=["x"]).to_frame("x")["standard_error"].isna().all()


def test_the_model_s_own_leaf_weights():
    """Of symmetric trees: as its training rows, where every tree saw all of them with weight 1."""
    rows = make_rows(300)[NUMBERS]
    given = {"iterations": 5, "depth": 3, "thread_count": 1, "verbose": False, "allow_writing_files": False, "bootstrap_type": "No"}
    model = catboost.CatBoostRegressor(**given).fit(rows, make_target(make_rows(300)))
    own, counted = leafledger.partial_dependence(model, "model"), leafledger.partial_dependence(model, rows)
    for name in NUMBERS:
        assert_allclose(own.to_frame(name)["value"], counted.to_frame(name)["value"], rtol=0, atol=ATOL)
    with pytest.raises(UsageError, match="background is 'rows', expected rows or 'model'"):
        leafledger.partial_dependence(model, "rows")
