"""Trees of few comparisons are looked up: which ones, and what flips in them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.changes.flips import choose_flips, prepare_flips
from leafledger.kernels.trees.forest import make_forest
from tests.kernels.changes.changing import change_rows
from tests.trees import grown, one_tree, stumps


def test_trees_of_few_comparisons_that_ask_for_a_feature():
    """Not the one with more comparisons than codes are made of, nor one that asks for other features alone, nor one that asks for its categories."""
    rng = np.random.default_rng(0)
    _, small = make_forest(stumps([(0, 0.5, 0.0, 1.0), (1, 0.5, 0.0, 1.0)], 2))
    assert_array_equal(choose_flips(small, np.array([0, -1])), [True, False])
    _, large = make_forest(grown(rng, 1, 6, 3))
    assert np.diff(large.comparisons.start) > 10
    assert not choose_flips(large, np.array([0, 1, 2])).any()
    one = {"category_set": np.array([0, -1, -1], np.int32), "set_start": np.array([0, 1]), "set_words": np.array([1], np.uint32)}
    _, categories = make_forest(stumps([(0, 0.5, 0.0, 1.0)], 1)._replace(n_categories=np.array([3], np.int32), **one))
    assert not choose_flips(categories, np.array([0])).any()


def symmetric():
    """A tree of depth two that asks for x at 2, then on both sides at 1."""
    return one_tree(
        [0, 0, 0, -1, -1, -1, -1],
        [2.0, 1.0, 1.0, 0, 0, 0, 0],
        [1, 3, 5, -1, -1, -1, -1],
        [2, 4, 6, -1, -1, -1, -1],
        [0, 0, 0, 1, 2, 9, 4],
        [8, 4, 4, 2, 2, 2, 2],
        1,
    )


def test_a_feature_that_is_asked_for_twice_flips_twice():
    """In ascending order, from where both comparisons go left."""
    _, forest = make_forest(symmetric())
    flips = prepare_flips(forest, np.array([0]), np.array([3]), np.array([0]), np.array([0]))
    assert_array_equal(flips.start, [0, 2])
    assert_array_equal(flips.step, [1, 2])
    assert_array_equal(flips.left, [3, 0])
    assert_array_equal(np.sort(flips.bit), [1, 2])


@pytest.mark.slow
def test_symmetric_trees_change_as_they_predict():
    """From 1 to 2 to 4: rows that cross 1.5 and 3; more rows than have codes at a time."""
    x = np.tile([0.0, 1.5, 3.0], 14)
    found, _ = change_rows(symmetric(), x[:, None], 1.5, 1.5)
    assert_array_equal(found.value[0], np.tile([np.nextafter(1.0, 2.0), 1.0, 1.0], 14))
    found, _ = change_rows(symmetric(), x[:, None], 3.0, 3.0)
    assert_array_equal(found.value[0], np.tile([np.nextafter(2.0, 3.0), np.nextafter(2.0, 3.0), 2.0], 14))
    assert_array_equal(found.margin[0], np.tile([4.0, 4.0, 2.0], 14))
