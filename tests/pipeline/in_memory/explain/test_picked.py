"""Parts of attributions by name: one player's numbers, those of a pair or set, and the class that is predicted for a row."""

import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from leafledger import attribute
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.in_memory.explain.picked import predicted_outputs

RNG = np.random.default_rng(6)
FRAME = pd.DataFrame(RNG.normal(size=(80, 4)), columns=list("abcd"))
TARGET = FRAME["a"] * FRAME["b"] + FRAME["c"]
TREES = xgboost.train({"max_depth": 3}, xgboost.DMatrix(FRAME, TARGET), 5)


def test_a_pair_goes_by_both_names_in_any_order():
    """Its interactions are those of the array, of one output (n,), of several (n, outputs)."""
    found = attribute(TREES, FRAME, interactions="all")
    number = found.pairs.index(("a", "b"))
    assert_array_equal(found["a", "b"], found.interactions[:, 0, number])
    assert_array_equal(found["b", "a"], found["a", "b"])
    assert_array_equal(found[5:9]["a", "b"], found["a", "b"][5:9])
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(FRAME, np.digitize(TARGET, [-1, 1]))
    several = attribute(forest, FRAME, interactions="all")
    assert several["c", "a"].shape == (80, 3)
    sets = attribute(TREES, FRAME, interactions="all", order=3)
    three = next(each for each in sets.sets if len(each) == 3)
    assert_array_equal(sets[three[::-1]], sets.interactions[:, 0, sets.sets.index(three)])


@pytest.mark.parametrize(
    ("asked", "pair", "line"),
    [
        ({}, ("a", "b"), "the interaction of a and b needs interactions, and none were asked for; give interactions='all'"),
        ({"interactions": "all"}, ("a", "where"), "there is no feature 'where', expected one of a, b, c, d"),
        ({"interactions": "all"}, ("a", "b", "c"), "there are no interactions of a and b and c, which never act together, or were not asked for"),
    ],
)
def test_a_pair_that_is_none_is_refused(asked, pair, line):
    with pytest.raises(UsageError) as refusal:
        attribute(TREES, FRAME, **asked)[pair]
    assert str(refusal.value) == line


def test_the_predicted_class_is_what_the_library_predicts():
    """Of classes of one label only: several targets have none, and one output is itself."""
    label = np.digitize(TARGET, [-0.7, 0.7])
    forest = RandomForestClassifier(7, max_depth=4, random_state=0).fit(FRAME, label)
    for space in ("margin", "probability"):
        assert_array_equal(predicted_outputs(attribute(forest, FRAME, space=space)), forest.predict(FRAME))
    both = RandomForestClassifier(7, max_depth=4, random_state=0).fit(FRAME, label > 1)
    assert_array_equal(predicted_outputs(attribute(both, FRAME)), both.predict(FRAME))
    targets = RandomForestRegressor(3, max_depth=3, random_state=0).fit(FRAME, np.column_stack((TARGET, -TARGET)))
    assert predicted_outputs(attribute(targets, FRAME)) is None
    assert_array_equal(predicted_outputs(attribute(TREES, FRAME)), np.zeros(80))
