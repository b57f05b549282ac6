"""Offsets fit into 32 bits, or are refused: a kernel would read other numbers by those that wrap."""

import numpy as np
import pytest

from leafledger.kernels.arrays import offsets32 as narrowing
from leafledger.kernels.arrays.offsets32 import check_offset, narrow
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.game_values import shapley
from leafledger.kernels.marginal.subtrees import Partitioner
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.path_dependent.interactions import lay_out_pair_walks, play_pairs
from leafledger.kernels.path_dependent.multilinear import prepare_gradient
from leafledger.kernels.path_dependent.probabilistic import prepare_probabilistic
from leafledger.kernels.path_dependent.walks import lay_out_walks
from leafledger.kernels.r2.expansions import find_terms, lay_out_expansions
from leafledger.kernels.r2.preorder import lay_out_preorder
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.lookup import look_up
from leafledger.kernels.trees.margin import prepare_margin
from tests.kernels.attributing import leaves
from tests.trees import assert_same_bits, grown

MOST = 2**31 - 1


def test_numbers_of_32_bits_stay_as_they_are():
    """Down to the smallest and up to the largest of them, and none at all."""
    numbers = np.array([[-(2**31), -1], [0, MOST]])
    assert narrow(numbers).dtype == np.int32
    assert (narrow(numbers) == numbers).all()
    assert narrow(np.zeros((0, 3), np.int64)).shape == (0, 3)
    check_offset(MOST)


@pytest.mark.parametrize("largest", [MOST + 1, 2**32, 2**40])
def test_larger_numbers_are_refused(largest):
    """NumPy would keep their lowest bits, without a word."""
    for refuse in (check_offset, lambda number: narrow(np.array([[0, number], [1, 2]]))):
        with pytest.raises(
            InvalidParameters, match=rf"^the model is too large: a table has more than {largest:,} numbers, expected at most 2,147,483,647;"
        ):
            refuse(largest)


def lay_out_terms(forest):
    trees = lay_out_preorder(forest)
    return lay_out_expansions([find_terms(part, 10**6) for part in np.split(trees.splits, trees.start[1:-1])], [shapley(5)] * trees.mean.size)


def lay_out_lookups(forest):
    trees = range(forest.ensemble.root.size)
    return look_up(forest.splits, forest.comparisons, trees, [np.arange(1)] * len(trees), [np.zeros((1, 1))] * len(trees))


LAYOUTS = {
    "walks": lambda forest: lay_out_walks(play(forest, shapley), range(9)),
    "interactions": lambda forest: lay_out_pair_walks(play_pairs(forest, shapley)[0], range(9)),
    "gradients": lambda forest: prepare_gradient(play(forest, shapley)),
    "probabilistic": lambda forest: (
        prepare_probabilistic(forest.ensemble, forest.splits, forest.trace, forest.player_of_node, np.full(9, 1 / 9)).edges
    ),
    "preorder": lay_out_preorder,
    "expansions": lay_out_terms,
    "look-ups": lay_out_lookups,
    "margins": lambda forest: prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons),
    "subtrees": lambda forest: tuple(some.marks for some in Partitioner(forest, forest.player_of_node).partition(4)),
}


@pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)
def test_tables_are_made_up_to_the_limit(monkeypatch, make):
    """With a limit that is their own largest number they are the same, and with one less they are refused."""
    forest = make_forest(grown(np.random.default_rng(0), 9, 4, 9))[1]
    tables = make(forest)
    largest = max(int(array.max(initial=0)) for array in leaves(tables) if array.dtype == np.int32)
    monkeypatch.setattr(narrowing, "LARGEST_OFFSET", largest)
    assert_same_bits(make(forest), tables)
    monkeypatch.setattr(narrowing, "LARGEST_OFFSET", largest - 1)
    with pytest.raises(
        InvalidParameters, match=f"^the model is too large: a table has more than {largest:,} numbers, expected at most {largest - 1:,}; explain"
    ):
        make(forest)
