"""Trees of an iteration are found in all that an old file says of them; what it says twice must agree, and what nothing says is refused."""

import json

import numpy as np
import pytest

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.xgboost.rounds import number_rounds

OLD, NEWER = (1, 5, 2), (1, 3, 3)


def number(output, version=OLD, n_outputs=1, attributes=None, parameters=None, **model):
    """Iterations of trees that add to these outputs."""
    model |= {"tree_info": list(output), "gbtree_model_param": parameters or {}}
    return number_rounds({"attributes": attributes or {}}, model, version, n_outputs, "m").tolist()


def notes(**parameters):
    return {"scikit_learn": json.dumps(parameters)}


@pytest.mark.parametrize("version", [OLD, NEWER])
def test_the_order_of_trees_tells_where_there_are_several_outputs(version):
    """All trees of an iteration for the first output, then those for the second."""
    order = [0, 0, 0, 1, 1, 1] * 4
    assert number(order, version, 2) == np.repeat(range(4), 6).tolist()
    assert number(order, version, 2, {"best_iteration": "1"}) == np.repeat(range(2), 6).tolist()
    assert number([0, 1] * 3, version, 2, {"best_iteration": "0"}) == [0, 0]
    with pytest.raises(UnsupportedModel, match=r"^m: iterations differ in their number of trees, which XGBoost before 1\.6 does not say"):
        number([0, 1, 0, 0, 1, 1], version, 2)


def test_the_number_of_trees_up_to_the_best_iteration_tells():
    """Which 1.4 and 1.5 write, also of a Booster and of a random forest without early stopping."""
    assert number([0] * 12, attributes={"best_iteration": "1", "best_ntree_limit": "6"}) == [0, 0, 0, 1, 1, 1]
    forest = {"best_iteration": "0", "best_ntree_limit": "4", **notes(n_estimators=4, num_parallel_tree=None)}
    assert number([0] * 4, attributes=forest) == [0] * 4


def test_an_estimator_s_parameters_tell():
    """None of them is one, but where all trees may be a random forest's, of which it is left out."""
    stopped = {"best_iteration": "1"}
    assert number([0] * 12, NEWER, attributes=stopped | notes(num_parallel_tree=3, n_estimators=20)) == [0, 0, 0, 1, 1, 1]
    assert number([0] * 5, NEWER, attributes=stopped | notes(num_parallel_tree=None, n_estimators=20)) == [0, 1]
    with pytest.raises(UnsupportedModel, match=r"^m: XGBoost 1\.3 does not say how many trees"):
        number([0] * 4, NEWER, attributes={"best_iteration": "0", **notes(num_parallel_tree=None, n_estimators=4)})


def test_what_nothing_tells_is_refused_and_can_be_helped():
    """Only where it matters: which trees are those up to the best iteration. What the message says to do does it."""
    stopped = {"best_iteration": "1"}
    with pytest.raises(UnsupportedModel, match=r"^m: XGBoost 1\.3 .*up to the best iteration 1: .*set_attr\(best_ntree_limit=\.\.\.\)") as caught:
        number([0] * 12, NEWER, attributes=stopped)
    assert "\n" not in str(caught.value)
    assert number([0] * 12, NEWER, attributes=stopped | {"best_ntree_limit": "6"}) == [0, 0, 0, 1, 1, 1]
    assert number([0] * 12, NEWER) == list(range(12))
    assert number([0] * 2, NEWER, attributes=stopped) == [0, 1]


@pytest.mark.parametrize(
    ("output", "n_outputs", "attributes", "parameters", "says"),
    [
        ([0, 0, 1, 1] * 3, 2, {"best_iteration": "0", "best_ntree_limit": "3"}, {}, "2 trees by the order of trees, 3 trees by best_ntree_limit"),
        (
            [0] * 12,
            1,
            {"best_iteration": "1", "best_ntree_limit": "6"},
            {"num_parallel_tree": "1"},
            "1 trees by num_parallel_tree, 3 trees by best_ntree",
        ),
        (
            [0] * 12,
            1,
            {"best_iteration": "0", "best_ntree_limit": "2", **notes(num_parallel_tree=3)},
            {},
            "3 trees by the estimator, 2 trees by best",
        ),
    ],
)
def test_what_is_said_twice_must_agree(output, n_outputs, attributes, parameters, says):
    """The second is what a version from 1.6 on makes of an earlier one's file: it takes each tree for an iteration."""
    with pytest.raises(InvalidModel, match=f"^m: an iteration has {says}.*explain the file that was saved first$"):
        number(output, OLD, n_outputs, attributes, parameters)


def test_what_files_say_since_is_taken():
    """num_parallel_tree since 1.6, the bounds of iterations since 2.0."""
    assert number([0] * 6, (1, 6, 2), attributes={"best_iteration": "0"}, parameters={"num_parallel_tree": "2"}) == [0, 0]
    assert number([0] * 6, (2, 0, 3), parameters={"num_parallel_tree": "1"}, iteration_indptr=[0, 1, 6]) == [0, 1, 1, 1, 1, 1]
    with pytest.raises(InvalidModel, match="does not divide 6 trees into rounds"):
        number([0] * 6, (2, 0, 3), iteration_indptr=[0, 1, 5])
    with pytest.raises(InvalidModel, match="does not divide 5 trees into rounds"):
        number([0] * 5, (1, 6, 2), parameters={"num_parallel_tree": "2"})
