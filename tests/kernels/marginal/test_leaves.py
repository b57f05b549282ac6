"""Every leaf of a symmetric tree that rows can reach has one row, which reaches it; other trees are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.marginal.leaves import find_leaves, number_leaves, probe, reach_leaves
from leafledger.kernels.trees.ensemble import bit_set
from leafledger.kernels.trees.forest import make_forest
from tests.kernels.marginal.cutting import binned
from tests.naive import goes_left
from tests.strategies import batches, forests
from tests.trees import chain, join, one_tree, symmetric


def descended(ensemble, tree, row):
    """The leaf of a tree that a row reaches."""
    node = ensemble.root[tree]
    while ensemble.feature[node] >= 0:
        node = (ensemble.left if goes_left(ensemble, node, float(row[ensemble.feature[node]])) else ensemble.right)[node]
    return int(node)


def reached(ensemble, tree):
    """The leaves that rows can reach, and whole rows that are said to reach them."""
    bins, forest = make_forest(ensemble)
    found = reach_leaves(forest, probe(bins), tree)
    rows = np.zeros((found.leaf.size, ensemble.n_features))
    rows[:, bins.column] = found.values.T
    return found.leaf.tolist(), rows


@pytest.mark.parametrize("features", [(0,), (0, 1, 2), (0, 1, 0), (1, 1, 1), (2, 0, 2, 0, 1)])
def test_every_leaf_that_rows_can_reach_is_reached(features):
    """Those of random rows and no others: n splits of one feature part its values in n + 1."""
    rng = np.random.default_rng(len(features))
    ensemble = join([symmetric(rng, features, 3), symmetric(rng, features[::-1], 3)])
    rows = rng.normal(size=(4_000, 3)) * 1.5
    for tree in (0, 1):
        leaves, own = reached(ensemble, tree)
        assert len(leaves) == np.prod([1 + features.count(j) for j in set(features)])
        assert [descended(ensemble, tree, row) for row in own] == leaves
        assert {descended(ensemble, tree, row) for row in rows} <= set(leaves)


@given(data=st.data(), ensemble=forests(max_depth=1))
def test_missing_values_and_categories_reach_their_leaves(data, ensemble):
    """Stumps are symmetric: whatever a row holds, it reaches a leaf that has a row, and that row reaches it."""
    rows = data.draw(batches(ensemble))
    for tree in range(ensemble.root.size):
        leaves, own = reached(ensemble, tree)
        assert [descended(ensemble, tree, row) for row in own] == leaves
        assert {descended(ensemble, tree, row) for row in rows} <= set(leaves)


def test_zeros_that_are_missing_do_not_hide_numbers():
    """A threshold within them is no number itself; numbers below it are."""
    ensemble = one_tree([0, -1, -1], [1e-35, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 2], [2, 1, 1], 1)._replace(zero_missing=np.ones(1, bool))
    leaves, own = reached(ensemble, 0)
    assert leaves == [1, 2]
    assert own[0, 0] < -1e-35


@pytest.mark.parametrize("code", [0, 31, 32, 39, 40])
def test_one_category_is_enough_to_reach_a_leaf(code):
    """The first, the last, those at the ends of words, and all that are not known."""
    stump = one_tree([0, -1, -1], [0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 2], [2, 1, 1], 1)
    words = bit_set([code], 40)
    sets = {"category_set": np.array([0, -1, -1], np.int32), "n_categories": np.array([40], np.int32), "set_start": np.array([0, words.size])}
    leaves, own = reached(stump._replace(**sets, set_words=words), 0)
    assert leaves == [1, 2]
    assert own[0, 0] == code


def test_leaves_are_numbered_from_the_left():
    """In a symmetric tree that is the way down as a binary number."""
    ensemble = join([symmetric(np.random.default_rng(0), (0, 1, 2), 3), chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 3)])
    number = number_leaves(make_forest(ensemble)[1])
    assert number[:15].tolist() == [-1] * 7 + list(range(8))
    assert number[15:].tolist() == [-1, -1, 0, 1, 2]


def test_a_tree_without_splits_has_one_leaf():
    """Which every row reaches."""
    assert reached(one_tree([-1], [0], [-1], [-1], [3.0], [1.0], 2), 0)[0] == [0]


def test_trees_that_are_not_symmetric_are_refused():
    """A leaf that several rows reach that differ at other splits has no values of its own."""
    with pytest.raises(InvalidParameters, match=r"^tree 1: rows can compare in 4 ways at its splits, expected a leaf for each of them, got 3$"):
        reached(join([symmetric(np.random.default_rng(0), (0, 1), 2), chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2)]), 1)
    twice = one_tree([0, 0, 1, -1, -1, -1, -1], 0.5, [1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1], range(7), [2, 1, 1, 1, 0, 1, 0], 2)
    with pytest.raises(InvalidParameters, match=r"^tree 0: rows that compare in 4 ways at its splits reach 3 leaves, expected one for each$"):
        reached(twice, 0)


@given(data=st.data(), ensemble=forests(max_depth=1))
def test_leaves_of_rows_are_those_that_they_reach(data, ensemble):
    """Of binned rows as of the rows themselves."""
    rows, (tables, forest) = data.draw(batches(ensemble)), make_forest(ensemble)
    bins = binned(tables, rows)
    for tree in range(ensemble.root.size):
        assert find_leaves(forest, bins, tree)[: len(rows)].tolist() == [descended(ensemble, tree, row) for row in rows]
