"""Trees in preorder: numbered as recursion visits them, and every row goes where the model sends it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.jit.lanes import LANES
from leafledger.kernels.r2.preorder import PREORDER_ABOVE, PREORDER_LEFT, PREORDER_PLAYER, PREORDER_RIGHT
from tests import naive
from tests.kernels.r2.computing import ATOL, descended, in_preorder, n_splits, one_by_one, regressions
from tests.strategies import batches


def visit(ensemble, node):
    """Nodes as recursion comes to them."""
    if ensemble.left[node] < 0:
        return [node]
    return [node, *visit(ensemble, ensemble.left[node]), *visit(ensemble, ensemble.right[node])]


def number_of(ensemble, root):
    """Numbers of a tree's nodes: splits first, then leaves, each as recursion comes to them."""
    nodes = visit(ensemble, root)
    return {v: k for k, v in enumerate([v for v in nodes if ensemble.left[v] >= 0] + [v for v in nodes if ensemble.left[v] < 0])}


@given(ensemble=regressions())
def test_splits_and_leaves_are_numbered_as_they_are_visited(ensemble):
    """Children, players and the nearest edge above of the same player; shares and leaves by cover, halves where there is none."""
    _, forest, trees = in_preorder(ensemble)
    for t, (root, tree) in enumerate(zip(ensemble.root, one_by_one(ensemble), strict=True)):
        numbers, n = number_of(ensemble, root), n_splits(trees, t)
        players = trees.player[trees.player_start[t] : trees.player_start[t + 1]].tolist()
        asked = {int(ensemble.feature[v]) for v in numbers if ensemble.left[v] >= 0}
        assert forest.players[players].tolist() == sorted(asked)
        nearest = {root: {}}  # of every node, the edges above by player
        for v, k in numbers.items():
            if ensemble.left[v] < 0:
                assert_allclose(trees.value[trees.start[t] + t + k - n] + trees.mean[t], ensemble.value[v, 0], rtol=0, atol=ATOL)
                continue
            split, player = trees.splits[trees.start[t] + k], players.index(forest.player_of_node[v])
            assert split[[PREORDER_LEFT, PREORDER_RIGHT, PREORDER_PLAYER]].tolist() == [numbers[ensemble.left[v]], numbers[ensemble.right[v]], player]
            assert split[PREORDER_ABOVE] == nearest[v].get(player, 2 * n + 1 + player)
            for child in (ensemble.left[v], ensemble.right[v]):
                nearest[child] = nearest[v] | {player: numbers[child]}
            left, right = ensemble.cover[ensemble.left[v]], ensemble.cover[ensemble.right[v]]
            assert trees.share[trees.start[t] + k] == (left / (left + right) if left + right else 0.5)
        assert_allclose(trees.mean[t], float(naive.coalition_value(tree, np.zeros(ensemble.n_features), set(), 0)), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=regressions())
def test_rows_go_where_the_model_sends_them(data, ensemble):
    """At every split, also where the row never comes; and below every node they find the leaf that descending from there finds."""
    rows = data.draw(batches(ensemble, max_rows=LANES))
    tables, _, trees = in_preorder(ensemble)
    for t, root in enumerate(ensemble.root):
        work, numbers, n = descended(tables, trees, t, rows), number_of(ensemble, root), n_splits(trees, t)
        goes_left, values = work.goes_left.reshape(-1, LANES), work.values.reshape(-1, LANES)
        for i, row in enumerate(rows):
            for v, k in numbers.items():
                end = v
                while ensemble.left[end] >= 0:
                    end = (ensemble.left if naive.goes_left(ensemble, end, row[ensemble.feature[end]]) else ensemble.right)[end]
                assert values[k, i] == trees.value[trees.start[t] + t + numbers[end] - n]
                if ensemble.left[v] >= 0:
                    assert goes_left[k, i] == naive.goes_left(ensemble, v, row[ensemble.feature[v]])
