"""Trees as walks for sets of players: as many points as the deepest path needs, cut evenly."""

import numpy as np
import pytest

from leafledger.kernels.path_dependent.set_games import lay_out_set_walks, no_set_walks, play_sets
from leafledger.kernels.set_indices import of_index
from leafledger.kernels.trees.forest import make_forest
from tests.trees import chain, join


def play(depths, index, order=3):
    """Chains of so many players each."""
    ensemble = join([chain(np.arange(depth), np.arange(depth + 1.0), np.ones(depth + 1), max(depths)) for depth in depths])
    forest = make_forest(ensemble)[1]
    return play_sets(forest, of_index(index, order))


@pytest.mark.parametrize(
    ("depth", "index", "sizes"), [(3, "SII", [2]), (5, "k-SII", [3, 3]), (6, "k-SII", [3, 3]), (9, "k-SII", [3, 3, 3]), (9, "BII", [1])]
)
def test_points_are_those_of_the_deepest_path(depth, index, sizes):
    """Walks of one tree have the same number of points, of which those that fill up have no weight."""
    tables = lay_out_set_walks(play([depth], index), [0])
    assert [q for q, some in enumerate(tables.walks, 1) for _ in some.start] == sizes
    weights = sum(some.weights.reshape(len(some.start), 3, q).sum(axis=(0, 2)) for q, some in enumerate(tables.walks, 1))
    assert np.allclose(weights, of_index(index, 3).rule(depth).weights.sum(axis=1), rtol=0, atol=1e-13)


def test_trees_share_what_does_not_depend_on_points():
    """Others above every split, and sets, once for all walks of a tree; and only of trees that are walked."""
    played = play([6, 4], "k-SII")
    both, one = lay_out_set_walks(played, [0, 1]), lay_out_set_walks(played, [1])
    assert one.rows.size == 1 + 2 + 4 + 7  # of a split with 0, 1, 2 and 3 others above it, sets of up to three with its own player
    assert both.rows.size == one.rows.size + played.sets.row.size - one.rows.size
    assert one.places.size == 0 + 1 + 2 + 3
    assert one.most[0] == both.most[0] == 1 + 5


def test_trees_of_one_model_are_found_again():
    """As tables are filled tree by tree."""
    tables = lay_out_set_walks(play([6, 4], "k-SII"), [0, 1])
    assert [some.tree.tolist() for some in tables.of_tree(1).walks] == [[], [], [], [1]]


def test_no_walks_have_the_shapes_of_some():
    """So that kernels have one signature."""
    nothing, some = no_set_walks(3, 1, np.zeros(0, np.uint32)), lay_out_set_walks(play([6], "SII"), [0])
    assert lay_out_set_walks(play([6], "SII"), []).rows.size == 0
    for q, (empty, full) in enumerate(zip(nothing.walks, some.walks, strict=True), 1):
        assert empty.weights.shape[1] == full.weights.shape[1] == 3 * q
        assert [array.dtype for array in empty] == [array.dtype for array in full]
