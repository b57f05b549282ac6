"""Trees of CatBoost as arrays: leaves where its numbering says, weights that add up, splits that ask what the file says."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.catboost import assemble as catboost_trees
from leafledger.pipeline.models.catboost.assemble import MAX_DEPTH, Contents, build, free_tree, loss_name, symmetric_tree
from leafledger.pipeline.models.catboost.cityhash import DIGITS, WORDS, HashedCategory
from leafledger.pipeline.models.catboost.classes import Classes
from leafledger.pipeline.models.catboost.columns import Column
from tests import naive

NO_BORDERS = np.empty(0, np.float32)


@given(depth=st.integers(0, 5), n_outputs=st.integers(1, 2), data=st.data())
def test_answers_are_the_bits_of_a_leaf(depth, n_outputs, data):
    """Whatever the splits answer: down the tree, the last split first, is the leaf whose number has the answer to split b as bit b."""
    splits = data.draw(st.lists(st.integers(0, 99), min_size=depth, max_size=depth))
    value = np.arange((1 << depth) * n_outputs, dtype=float).reshape(-1, n_outputs)
    weight = np.array(data.draw(st.lists(st.integers(0, 9), min_size=1 << depth, max_size=1 << depth)), float)
    tree = symmetric_tree(splits, value, weight)
    assert tree.weight[0] == weight.sum()
    for answers in itertools.product((0, 1), repeat=depth):
        node = 0
        for level in reversed(range(depth)):
            assert tree.split[node] == splits[level]
            assert tree.weight[node] == tree.weight[tree.left[node]] + tree.weight[tree.right[node]]
            node = (tree.left, tree.right)[answers[level]][node]
        leaf = sum(answer << level for level, answer in enumerate(answers))
        assert (tree.split[node], tree.left[node], tree.right[node]) == (-1, -1, -1)
        assert (tree.value[node].tolist(), tree.weight[node]) == (value[leaf].tolist(), weight[leaf])


def test_a_tree_of_any_shape_has_the_weights_of_its_leaves():
    """A node weighs what its children do, however deep they are."""
    tree = free_tree([3, -1, 5, -1, -1], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], np.zeros((5, 1)), np.array([0, 2.0, 0, 3, 4]), "m: tree 0")
    assert tree.weight.tolist() == [9, 2, 7, 3, 4]


def chain(depth):
    """A tree whose every right child is a leaf but the last, which is deepest."""
    split = [0] * depth + [-1] * (depth + 1)
    left = [node + 1 for node in range(depth)] + [-1] * (depth + 1)
    right = [depth + 1 + node for node in range(depth)] + [-1] * (depth + 1)
    return split, left, right, np.zeros((2 * depth + 1, 1)), np.ones(2 * depth + 1)


def test_trees_that_are_none_or_too_deep_are_refused():
    """A child comes after its parent, so that there are no circles; the depth is bounded."""
    for child in (0, -1, 3):
        with pytest.raises(InvalidModel, match=rf"^m: tree 0: node 0 has child {child}, expected 1\.\.2$"):
            free_tree([0, -1, -1], [1, -1, -1], [child, -1, -1], np.zeros((3, 1)), np.ones(3), "m: tree 0")
    assert free_tree(*chain(MAX_DEPTH), "m: tree 0").split.size == 2 * MAX_DEPTH + 1
    with pytest.raises(UnsupportedModel, match=f"^m: tree 0 is {MAX_DEPTH + 1} deep, expected at most {MAX_DEPTH}$"):
        free_tree(*chain(MAX_DEPTH + 1), "m: tree 0")


@pytest.mark.parametrize(
    ("parameters", "loss"),
    [
        ({"loss_function": {"type": "RMSE", "params": {}}}, "RMSE"),
        (json.dumps({"loss_function": {"type": "Quantile", "params": {"alpha": "0.3"}}}), "Quantile"),
        (b'{"loss_function": {"type": "Logloss"}}', "Logloss"),
        ({}, ""),
        (None, ""),
        ("[]", ""),
        ({"loss_function": "RMSE"}, ""),
        ({"loss_function": {"type": 3}}, ""),
    ],
)
def test_the_loss_is_named_where_the_file_says_it(parameters, loss):
    """As an object or as its text; nothing where there is something else."""
    assert loss_name(parameters) == loss


def number(flat, borders, name="x", nan_right=False):
    return Column(False, 0, flat, name, nan_right, np.array(borders, np.float32), (), None)


def category(flat, values, texts=None, name="c"):
    return Column(True, 0, flat, name, False, NO_BORDERS, values, texts)


def contents(columns, trees, **changes):
    return Contents(**{"columns": columns, "trees": trees, "scale": 1.0, "bias": np.zeros(1), "classes": Classes(), "loss": "RMSE"} | changes)


def test_splits_ask_what_the_file_says():
    """Numbers in their file order before categories, columns in the order of their flat index; a border is below, a category is equal. Leaves are
    scaled, the bias is the base."""
    columns = (number(2, [0.5, 1.5]), category(0, (HashedCategory.of("red").code, HashedCategory.of("blue").code)))
    value = np.arange(8.0)[:, None]
    found = contents(columns, (symmetric_tree([0, 1, 3], value, np.ones(8)),), scale=2.0, bias=np.array([10.0]))
    ensemble, features, outputs, objective = build(found, "m")
    assert [feature.name for feature in features] == ["c", "x"]
    assert features[0].categories == (HashedCategory.of("red"), HashedCategory.of("blue"))
    assert (outputs, objective.name) == (("0",), "RMSE")
    for (code, word), x in itertools.product(((0, "red"), (1, "blue"), (2, "?")), (0.0, 0.5, 0.6, 1.5, 2.0)):
        leaf = (x > 0.5) + 2 * (x > 1.5) + 4 * (word == "blue")
        assert naive.margin(ensemble, np.array([code, x])) == 10 + 2 * leaf


@pytest.mark.parametrize("nan_right", [False, True])
def test_a_missing_number_goes_where_its_feature_says(nan_right):
    """Right where it counts as larger than every border."""
    tree = symmetric_tree([0], np.array([[-1.0], [1.0]]), np.ones(2))
    ensemble = build(contents((number(0, [0.5], nan_right=nan_right),), (tree,)), "m")[0]
    assert naive.margin(ensemble, np.array([np.nan])) == (1 if nan_right else -1)


def test_several_outputs_are_called_like_the_classes():
    """Where the file names them; by their numbers else."""
    tree = symmetric_tree([], np.array([[1.0, 2.0]]), np.ones(1))
    for names, outputs in ((("no", "yes"), ("no", "yes")), ((), ("0", "1"))):
        found = build(contents((number(0, []),), (tree,), bias=np.array([0.5, 0.25]), classes=Classes(names)), "m")
        assert found[2] == outputs
        assert_allclose(naive.margin(found[0], np.zeros(1)), [1.5, 2.25], rtol=0)


@pytest.mark.parametrize(("flats", "named"), [((0, 1, 2), False), ((0, 1, 3), True), ((1, 2, 3), True)])
def test_a_name_says_more_than_a_position_where_columns_are_left_out(flats, named):
    """Before the first, or between two."""
    columns = tuple(replace(number(flat, [0.5]), named=False) for flat in flats)
    tree = symmetric_tree([0], np.zeros((2, 1)), np.ones(2))
    assert [feature.named for feature in build(contents(columns, (tree,)), "m")[1]] == [named] * 3


def test_sets_of_categories_take_a_bounded_number_of_words(monkeypatch):
    """Of 40 categories and the unseen two for every split on one."""
    tree = symmetric_tree([0, 1, 2], np.zeros((8, 1)), np.ones(8))
    found = contents((category(0, tuple(range(40))),), (tree,))
    monkeypatch.setattr(catboost_trees, "MAX_SET_WORDS", 6)
    assert build(found, "m")[0].set_words.size == 6
    monkeypatch.setattr(catboost_trees, "MAX_SET_WORDS", 5)
    with pytest.raises(UnsupportedModel, match="3 splits on features of up to 40 categories need too much memory"):
        build(found, "m")


def test_a_split_that_no_feature_has_is_refused():
    """With the number of its tree."""
    trees = tuple(symmetric_tree([split], np.zeros((2, 1)), np.ones(2)) for split in (1, 2))
    with pytest.raises(InvalidModel, match=r"^m: tree 1 has split 2, expected 0\.\.1$"):
        build(contents((number(0, [1.0, 2.0]),), trees), "m")


def test_what_the_file_has_of_categories_tells_how_booleans_are_written():
    """Of hashes; texts say so themselves. Where no split asks for a category they may be as CatBoost has them."""
    of_words = tuple(HashedCategory.of(word).code for word in ("True", "red"))
    for values, texts, written in ((of_words, None, WORDS), (of_words, ("True", "red"), ()), (of_words[1:], None, ()), ((), None, DIGITS)):
        columns = (number(0, [0.5]), category(1, values, texts))
        (_, found) = build(contents(columns, (symmetric_tree([0], np.zeros((2, 1)), np.ones(2)),)), "m")[1]
        assert found.booleans == written
