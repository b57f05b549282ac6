"""What is asked of a model: what is flat or never meets is said, what is not there is refused in a line."""

import re

import catboost
import numpy as np
import pytest
from numpy.testing import assert_allclose

import leafledger
from leafledger.pipeline.errors import UnsupportedModel, UsageError
from tests.pipeline.effects.trained import ATOL, FEATURES, make_rows, make_target


def test_what_no_split_asks_for_is_flat_and_said(additive):
    """At the mean margin; and two features that no path asks for add up, which is said too."""
    model, rows = additive
    found = leafledger.partial_dependence(model, rows, pairs=[("x", "y"), ("x", "z")])
    assert "no split asks for 'z': its curve is flat" in repr(found)
    assert "no path asks for both 'x' and 'y': what they do adds up" in repr(found)
    assert_allclose(found.at("z", [0.0, 5.0, np.nan])[:, 0], model.predict(rows).mean(), rtol=0, atol=ATOL)
    a, b = np.array([-1.0, 0.5]), np.array([1.0, -2.0])
    both = found.at(("x", "y"), (a, b)) - found.at("x", a) - found.at("y", b)
    assert_allclose(both, -model.predict(rows).mean(), rtol=0, atol=ATOL)
    assert_allclose(found.at(("x", "z"), (a, b)), found.at("x", a), rtol=0, atol=ATOL)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"features": ["xx"]}, "features name 'xx', which is no feature of the model"),
        ({"features": ["X"]}, "did you mean 'x'"),
        ({"features": [7]}, "features names position 7, expected 0 to 2"),
        ({"features": ["x", "x"]}, "features has 'x' twice, expected once"),
        ({"features": []}, "features are [], expected at least one, or None for all"),
        ({"space": "raw"}, "did you mean 'margin'?"),
        ({"features": ["x"], "partition": {"both": ["x", "y"]}}, "features name 'x', which is in group 'both'; ask for the group"),
        ({"pairs": ["xy"]}, "pairs have 'xy', expected two features each"),
        ({"pairs": [("x", "x")]}, "pairs have 'x' with itself, expected two different features"),
        ({"pairs": [("x", "y"), ("y", "x")]}, "pairs have 'y' and 'x' twice, expected once"),
        ({"pairs": [("x", "w")]}, "pairs name 'w', which is no feature of the model"),
    ],
)
def test_what_cannot_be_asked(additive, asked, message):
    """One line that says what was got and what was expected."""
    model, rows = additive
    with pytest.raises(UsageError, match=re.escape(message)):
        leafledger.partial_dependence(model, rows, **asked)


def test_models_with_target_statistics_are_refused():
    """Their columns are no features."""
    rows = make_rows(120)
    given = {"iterations": 3, "depth": 3, "one_hot_max_size": 2, "thread_count": 1, "verbose": False, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(**given).fit(catboost.Pool(rows[FEATURES], make_target(rows), cat_features=["colour"]))
    with pytest.raises(UnsupportedModel, match="partial_dependence is not there for CatBoost models with target statistics"):
        leafledger.partial_dependence(model, rows)
