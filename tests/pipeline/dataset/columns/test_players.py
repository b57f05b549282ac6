"""A statistic of one feature is that feature's; one of several is a player of its own, called as they are."""

from dataclasses import replace

import numpy as np
import pytest

from leafledger.kernels.trees.statistics import ABOVE, CATEGORY, NO_STATISTICS
from leafledger.pipeline.dataset.columns.partition import read_groups
from leafledger.pipeline.dataset.columns.players import combination_names, number_players
from leafledger.pipeline.errors import SchemaMismatch
from leafledger.pipeline.models.model import Feature, Model
from tests.trees import chain

CITY, JOB, PAY, AGE = range(4)
# What the statistics are looked up by: categories, and in one of them a number.
SOURCES = ((CITY,), (CITY, JOB), (JOB, PAY), (CITY, JOB, AGE), (CITY, AGE))


@pytest.fixture(scope="module")
def model():
    """Four features, of which the last is a number, and a statistic for each of SOURCES."""
    ensemble = chain([4, 5, 6, 7, 8], range(6), [1.0] * 6, 4 + len(SOURCES))
    statistics = NO_STATISTICS._replace(
        source=np.arange(4, dtype=np.int32),
        element_start=np.concatenate(([0], np.cumsum([len(of) for of in SOURCES]))),
        element=np.array([feature for of in SOURCES for feature in of], np.int32),
        kind=np.array([ABOVE if feature == AGE else CATEGORY for of in SOURCES for feature in of], np.uint8),
        column=np.arange(4, 4 + len(SOURCES), dtype=np.int32),
        projection=np.arange(len(SOURCES), dtype=np.int32),
    )
    features = (*(Feature(name, True) for name in ("city", "job", "pay")), Feature("age"))
    return Model(ensemble._replace(statistics=statistics), features, ("0",), "catboost", "")


def test_sets_of_features_are_players(model):
    """Numbers in a combination count for nothing; equal sets are one player, whatever else they are looked up by."""
    players = number_players(model, ())
    assert players.combinations == {4: (CITY, JOB), 5: (JOB, PAY)}
    assert players.numbers.tolist() == [CITY, JOB, PAY, AGE, CITY, 4, 5, 4, CITY]
    assert combination_names(model, ()) == ("city×job", "job×pay")


def test_groups_are_players(model):
    """A combination of features of one group is that group's; of several groups it is theirs."""
    groups = read_groups({"where": ["city", "age"], "work": ["job", "pay"]}, model.features)
    players = number_players(model, groups)
    assert players.combinations == {2: (0, 1)}
    assert players.numbers.tolist() == [0, 1, 1, 0, 0, 2, 1, 2, 0]
    assert combination_names(model, groups) == ("where×work",)


def test_without_statistics_features_are_the_players(model):
    """Nothing is numbered."""
    plain = replace(model, ensemble=chain([0], [1.0, 2.0], [1.0, 1.0], 4))
    assert number_players(plain, ()).numbers is None
    assert not combination_names(plain, ())


def test_two_players_of_one_name_are_refused(model):
    """A feature may be called as a combination is."""
    features = (*model.features[:3], Feature("city×job"))
    with pytest.raises(SchemaMismatch, match=r"'city×job' would be the name of two players"):
        combination_names(replace(model, features=features), ())


def test_the_order_of_a_combination_does_not_matter(model):
    """The same features are one player, called in the model's order, however many features there are."""
    statistics = model.ensemble.statistics._replace(
        source=np.array([0, 8], np.int32),
        element_start=np.array([0, 2, 4]),
        element=np.array([1, 0, 0, 1], np.int32),
        kind=np.full(4, CATEGORY, np.uint8),
        column=np.array([9, 10], np.int32),
        projection=np.array([0, 1], np.int32),
    )
    features = tuple(Feature(name, True) for name in "abcdefghi")
    wide = replace(model, ensemble=chain([9, 10], range(3), [1.0] * 3, 11)._replace(statistics=statistics), features=features)
    assert number_players(wide, ()).combinations == {9: (0, 8)}
    assert number_players(wide, ()).numbers.tolist() == [*range(9), 9, 9]
    assert combination_names(wide, ()) == ("a×i",)


def test_two_combinations_of_one_name_are_refused(model):
    """Names may themselves look like combinations."""
    features = tuple(Feature(name, True) for name in ("x", "y×z", "x×y", "z"))
    statistics = model.ensemble.statistics._replace(
        element_start=np.array([0, 2, 4]),
        element=np.array([0, 1, 2, 3], np.int32),
        kind=np.full(4, CATEGORY, np.uint8),
        column=np.array([4, 5], np.int32),
        projection=np.array([0, 1], np.int32),
    )
    doubled = replace(model, ensemble=chain([4, 5], range(3), [1.0] * 3, 6)._replace(statistics=statistics), features=features)
    with pytest.raises(SchemaMismatch, match=r"'x×y×z' would be the name of two players"):
        combination_names(doubled, ())
