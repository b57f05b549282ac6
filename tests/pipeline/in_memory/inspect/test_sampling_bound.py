"""The bound of Theorem 3.15 as users ask for it."""

import catboost
import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger import attribute, load_ensemble, sampling_bound, sampling_rows
from leafledger.kernels.marginal.sampling_bound import bound_sampling
from leafledger.pipeline.errors import UnsupportedModel, UsageError

ROWS = np.random.default_rng(1).normal(size=(400, 3))
LABEL = ROWS[:, 0] - ROWS[:, 1] ** 2


@pytest.fixture(scope="module")
def model():
    return catboost.CatBoostRegressor(iterations=5, depth=2, thread_count=1, verbose=False, allow_writing_files=False).fit(ROWS, LABEL)


def test_it_is_above_the_errors_that_are_measured(model):
    bound = sampling_bound(model, len(ROWS))
    assert_array_equal(bound, bound_sampling(load_ensemble(model).ensemble, len(ROWS)))
    errors = attribute(model, ROWS[:30], background=ROWS, background_errors=True).errors
    assert (errors <= bound).all()


def test_so_many_rows_keep_the_bound(model):
    """The fewest: with one less it is above. By Chebyshev's inequality the fewer misses, the more rows."""
    needed = sampling_rows(model, 0.5)
    for j, n in enumerate(needed[0]):
        assert sampling_bound(model, max(1, int(n)))[0, j] <= 0.5
        assert n == 0 or sampling_bound(model, int(n) - 1)[0, j] > 0.5
    constant = sampling_bound(model, 1)  # c in Eq. 3.30: P(error >= t) <= (c / t)² / n
    assert_array_equal(sampling_rows(model, 0.5, miss=0.05), np.ceil((constant / 0.5) ** 2 / 0.05))
    unused = catboost.CatBoostRegressor(iterations=1, depth=1, thread_count=1, verbose=False, allow_writing_files=False).fit(ROWS, LABEL)
    assert np.count_nonzero(sampling_rows(unused, 1.0)) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"error": 0}, "error is 0, expected a number above 0$"),
        ({"error": "1"}, "error is '1', expected a number above 0$"),
        ({"error": np.inf}, "error is inf, expected a number above 0$"),
        ({"error": 1.0, "miss": 1.5}, "miss is 1.5, expected a number above 0 and at most 1"),
    ],
)
def test_no_error_needs_so_many_rows(model, given, says):
    with pytest.raises(UsageError, match=says):
        sampling_rows(model, **given)


def test_groups_have_no_bound(model):
    """The theorem counts the outcomes of thresholds of one feature."""
    assert sampling_bound(model, 10).shape == (1, 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'partition'"):
        sampling_bound(model, 10, partition={"first": [0, 1]})


def test_what_has_no_bound_is_refused(model):
    says = (
        r"^the bound is of symmetric trees with leaf weights, as CatBoost's are by default: tree 0, .* as leaves of symmetric trees do; attribute\(…"
    )
    with pytest.raises(UsageError, match=says):
        sampling_bound(lightgbm.LGBMRegressor(n_estimators=1, num_leaves=4, verbose=-1).fit(ROWS, LABEL), 10)
    with pytest.raises(UsageError, match="n_rows is 0, expected"):
        sampling_bound(model, 0)
    texts = np.array([["a", "b", "c", "d"][int(each) % 4] for each in range(400)])[:, None]
    given = {"iterations": 3, "cat_features": [0], "one_hot_max_size": 2, "verbose": False, "allow_writing_files": False}
    looked_up = catboost.CatBoostRegressor(**given).fit(texts, LABEL)
    with pytest.raises(UnsupportedModel, match="the bound is not there for CatBoost models with target statistics"):
        sampling_bound(looked_up, 10)
