"""Parts of attributions by name: one player's numbers, those of a pair or set, and the class that is predicted for a row."""

from itertools import combinations

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


def test_features_that_never_meet_do_not_interact():
    """Where all interactions are kept those of other pairs are 0; of sets larger than those that were asked for nothing is known."""
    apart = xgboost.train({"max_depth": 1}, xgboost.DMatrix(FRAME, TARGET), 20)
    found = attribute(apart, FRAME, interactions="all")
    assert found.pairs == ()
    assert_array_equal(found["a", "b"], np.zeros(80))
    few = xgboost.train({"max_depth": 2}, xgboost.DMatrix(FRAME, FRAME["a"] * FRAME["b"]), 3)
    sets = attribute(few, FRAME[["a", "b", "c", "d"]], interactions="all", order=2)
    never = next(pair for pair in combinations("abcd", 2) if pair not in sets.sets)
    assert_array_equal(sets[never], np.zeros(80))
    of_one = attribute(few, FRAME, interactions="all", order=1)
    for some, pair in ((found, ("a", "a")), (found, ("a",)), (found, ("a", "b", "c")), (of_one, never)):
        with pytest.raises(UsageError, match="which never act together, or were not asked for"):
            some[pair]


@pytest.mark.parametrize("some", [None, slice("a", "b"), {}, 1.5, (slice(None), "a"), [["a"]], np.zeros((2, 2), int)], ids=str)
def test_what_is_no_part_is_refused_in_one_line(some):
    with pytest.raises(
        UsageError, match=r"^what is asked for is .*, expected positions of 80 rows, a slice, a mask of them, or the name of a feature$"
    ):
        attribute(TREES, FRAME)[some]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("base_values", "attributions have no 'base_values'; the base value is found.base"),
        ("expected_value", "attributions have no 'expected_value'; the base value is found.base"),
        ("shape", "attributions have no 'shape'; that of numbers is found.phi.shape: rows, outputs, features"),
        ("nothing", "attributions have no 'nothing'"),
    ],
)
def test_what_shap_calls_otherwise_is_told_by_its_name_here(name, line):
    with pytest.raises(AttributeError) as refusal:
        getattr(attribute(TREES, FRAME), name)
    assert str(refusal.value) == line


@pytest.mark.parametrize(
    ("asked", "pair", "line"),
    [
        ({}, ("a", "b"), "the interaction of a and b needs interactions, and none were asked for; give interactions='all'"),
        ({"interactions": "all"}, ("a", "where"), "there is no feature 'where', expected one of a, b, c, d"),
        ({}, ("a", "where"), "there is no feature 'where', expected one of a, b, c, d"),
        ({"interactions": "all"}, ("a", "b", "c"), "there are no interactions of a and b and c, which never act together, or were not asked for"),
    ],
)
def test_a_pair_that_is_none_is_refused(asked, pair, line):
    with pytest.raises(UsageError) as refusal:
        attribute(TREES, FRAME, **asked)[pair]
    assert str(refusal.value) == line


def test_an_output_in_the_place_of_a_feature_is_said_to_be_one():
    label = np.array(["low", "middle", "high"])[np.digitize(TARGET, [-0.7, 0.7])]
    found = attribute(RandomForestClassifier(3, max_depth=3, random_state=0).fit(FRAME, label), FRAME)
    says = r"^there is no feature 'low', expected one of a, b, c, d; it is an output: found\.to_frame\(\)\['low'\]$"
    for some in ("low", ("low", "a")):
        with pytest.raises(UsageError, match=says):
            found[some]
    assert_array_equal(found.to_frame()["low"], found.phi[:, found.outputs.index("low")])


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
