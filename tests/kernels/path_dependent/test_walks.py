"""Walks take every tree down and up again, and say at each step what a recursion would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.game_values import banzhaf, shapley
from leafledger.kernels.path_dependent.games import play, play_owen
from leafledger.kernels.path_dependent.walks import (
    MAX_NODES,
    STEP_ABOVE,
    STEP_FEATURE,
    STEP_GAIN,
    STEP_KIND,
    STEP_LOWER,
    STEP_MEMBERS,
    STEP_PLACE,
    STEP_SPAN,
    WALK_AGAIN,
    WALK_COMPARING,
    WALK_DOWN,
    WALK_LEAVES,
    WALK_UP,
    WALK_UP_LEAF,
    lay_out_walks,
    order_splits,
)
from leafledger.kernels.trees.binning import child_intervals
from leafledger.kernels.trees.forest import make_forest
from tests.strategies import forests, partitions
from tests.trees import chain, join


def steps_of(ensemble, node, above, place=0):
    """A split's steps by recursion: ``(kind, node, first child, place, place of the edge above)``; ``above`` has an edge's place for each player."""
    leaf = [ensemble.feature[child[node]] < 0 for child in (ensemble.left, ensemble.right)]
    first, second = ensemble.left[node], ensemble.right[node]
    if leaf == [True, False]:
        first, second = second, first
    player = int(ensemble.feature[node])
    step = (int(node), int(first), place, above.get(player, 0))
    again = WALK_AGAIN * (player in above)
    if all(leaf):
        return [(WALK_LEAVES + again, *step)]
    level = place // 2
    found = [(WALK_DOWN + again, *step)]
    for child, where in ((first, 2 * level + 2), (second, 2 * level + 3)):
        if ensemble.feature[child] >= 0:
            found += steps_of(ensemble, child, above | {player: where}, where)
    return [*found, ((WALK_UP_LEAF if any(leaf) else WALK_UP) + again, *step)]


@given(ensemble=forests(max_depth=5, max_features=3))
def test_walks_are_those_of_a_recursion(ensemble):
    """Down to both children, the first one first, and up: kinds, places, the edge above of the same player, who gains, and what is compared."""
    forest = make_forest(ensemble)[1]
    game = play(forest, lambda n_players: banzhaf(n_players, 0.5))
    trees = np.flatnonzero(ensemble.feature[ensemble.root] >= 0)
    walks = lay_out_walks(game, trees).one
    assert walks.tree.tolist() == trees.tolist()
    for w, tree in enumerate(trees):
        steps = walks.steps[walks.start[w] : walks.stop[w]]
        expected = np.array(steps_of(ensemble, ensemble.root[tree], {}))
        kind, node, first, place, above = expected.T
        assert (steps[:, [STEP_KIND, STEP_PLACE, STEP_ABOVE]] == np.stack((kind, place, above), axis=1)).all()
        assert (steps[:, STEP_FEATURE] == forest.splits.feature[node]).all()
        assert (steps[:, STEP_GAIN] == forest.player_of_node[node]).all()
        assert (steps[:, STEP_MEMBERS] == np.where(np.isin(kind, WALK_COMPARING), forest.splits.members[node], -1)).all()
        intervals = child_intervals(forest.splits, node, first == ensemble.left[node])
        assert (steps[:, [STEP_LOWER, STEP_SPAN]] == np.stack(intervals, axis=1)).all()
        assert walks.levels[0] > steps[:, STEP_PLACE].max(initial=0) // 2


@given(ensemble=forests(max_depth=5, max_features=3))
def test_children_are_ordered_so_that_leaves_come_last(ensemble):
    """A walk's steps of every subtree are counted, and a lone leaf is the second child."""
    game = play(make_forest(ensemble)[1], shapley)
    splits = order_splits(game)
    leaf = ensemble.feature < 0
    for node, first, second, last in zip(splits.node, splits.first, splits.second, splits.last, strict=True):
        assert {first, second} == {ensemble.left[node], ensemble.right[node]}
        assert last == (WALK_LEAVES if leaf[first] else WALK_UP_LEAF if leaf[second] else WALK_UP)
        assert splits.n_steps[node] == len(steps_of(ensemble, node, {}))


@pytest.mark.parametrize("n_players", [1, 2, 7, 8, 9, 30])
def test_points_are_spread_over_walks(n_players):
    """At most MAX_NODES at a time: all of a tree's walks together have its points, in order, each with its weight; others weigh nothing."""
    ensemble = chain(np.arange(n_players), np.arange(n_players + 1.0), np.ones(n_players + 1), n_players)
    game = play(make_forest(ensemble)[1], shapley)
    walks = lay_out_walks(game, [0])
    assert [some.weights.shape[1] for some in walks] == list(range(1, MAX_NODES + 1))
    weights = np.concatenate([some.weights.reshape(-1) for some in walks])
    expected = game.points[0].weights
    assert_allclose(np.sort(weights[weights > 0]), np.sort(expected), rtol=0, atol=0)
    assert sum(some.start.size for some in walks) == -(-expected.size // MAX_NODES)


def test_walks_of_one_tree_are_taken_out():
    """With the steps that they had."""
    trees = [chain(np.arange(k), np.arange(k + 1.0), np.ones(k + 1), 20) for k in (1, 20, 2, 20)]
    ensemble = join(trees)
    walks = lay_out_walks(play(make_forest(ensemble)[1], shapley), range(4)).four
    for tree in range(4):
        found, mine = walks.of_tree(tree), np.flatnonzero(walks.tree == tree)
        for name in ("start", "stop", "tree", "output", "nodes", "weights"):
            assert (getattr(found, name) == getattr(walks, name)[mine]).all()
        assert found.steps is walks.steps


@given(data=st.data(), ensemble=forests(max_depth=4))
def test_games_are_walked_as_often_as_they_have_copies(data, ensemble):
    """A tree of a game of groups stands in it once for each group of which it has several, and each copy has walks, of the model's tree."""
    game = play_owen(make_forest(ensemble, data.draw(partitions(ensemble, max_groups=3)))[1], shapley, shapley)
    chosen = [t for t in range(game.source.size) if data.draw(st.booleans())]
    walks = lay_out_walks(game, chosen)
    found = sorted(tree for some in walks for tree in some.tree.tolist())
    parts = [-(-game.points[t].weights.size // MAX_NODES) for t in chosen]
    assert found == sorted(int(game.source[t]) for t, n in zip(chosen, parts, strict=True) for _ in range(n))
