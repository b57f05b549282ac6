"""What stands for objects of a file: attributes that are read when they are asked for, and no code."""

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.ensemble import GradientBoostingRegressor

from leafledger.pipeline.models.sklearn.skops_types import BaseForest, Stored, find_family


def test_attributes_are_read_once_and_when_they_are_asked_for():
    """What nobody asks for may be anything."""
    read = []
    found = find_family("sklearn.ensemble._forest", "RandomForestRegressor")(lambda node: read.append(node) or node, {"a": 1, "b": 2})
    assert (found.a, found.a, read) == (1, 1, [1])
    assert isinstance(found, BaseForest)
    assert not hasattr(found, "c")


def test_features_are_a_bounded_number():
    """Whatever is made of it takes memory."""
    for number in (0, -1, 2**40, 1.0, True, "3"):
        found = find_family("sklearn.tree._classes", "DecisionTreeRegressor")(lambda node: node, {"n_features_in_": number})
        with pytest.raises(ValueError, match="features, expected 1 to 1048576"):
            _ = found.n_features_in_


def test_a_regression_starts_from_its_constant_as_in_scikit_learn():
    """Every row from the same, as its own method has it; from 0 where it starts from nothing."""
    rows = np.random.default_rng(0).normal(size=(30, 2))
    family = find_family("sklearn.ensemble._gb", "GradientBoostingRegressor")
    for init in (None, "zero"):
        trained = GradientBoostingRegressor(n_estimators=2, init=init).fit(rows, rows[:, 0] + 3)
        found = family(lambda node: node, {"init_": trained.init_, "estimators_": trained.estimators_})
        assert_array_equal(found._raw_predict_init(rows), trained._raw_predict_init(rows))


def test_classes_of_others_are_names():
    """With their module, so that none is taken for one of scikit-learn's."""
    assert find_family("other", "IsolationForest").__mro__[1:] == (Stored, object)
    assert find_family("other", "IsolationForest").__name__ == "other.IsolationForest"
    assert find_family("sklearn.pipeline", "Pipeline").__name__ == "Pipeline"


@pytest.mark.parametrize("best", [0, 3, 9])
def test_trees_behind_the_best_iteration_are_left_out_as_lightgbm_does(best):
    """Of two trees an iteration; without a best one all are kept."""
    rows = np.random.default_rng(0).normal(size=(90, 2))
    parameters = {"objective": "multiclass", "num_class": 2, "num_leaves": 3, "min_data_in_leaf": 3, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(parameters, lightgbm.Dataset(rows, rows[:, 0] > 0), 9)
    values = {"_handle": booster.model_to_string(), "best_iteration": best}
    booster.best_iteration = best
    found = find_family("lightgbm.basic", "Booster")(lambda node: node, values).model_to_string()
    ours, theirs = (text.partition("\nfeature_importances:")[0] for text in (found, booster.model_to_string()))
    assert ours == theirs
    assert lightgbm.Booster(model_str=found).num_trees() == 2 * (best or 9)
