"""Expansions: their terms are the sets of players that share a path, and they give the Shapley values of a tree's game and of its square."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.game_values import shapley
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.r2.expansions import expand, find_terms, lay_out_expansions, most_on_two_paths
from tests.kernels.r2.computing import ATOL, computed, descended, in_preorder, n_splits, one_by_one, regressions, shapley_values
from tests.strategies import batches
from tests.trees import chain

PLENTY = 1 << 16


def terms_of(trees, t, most=PLENTY):
    """Of one tree."""
    return find_terms(trees.splits[trees.start[t] : trees.start[t + 1]], most)


@given(data=st.data(), ensemble=regressions(max_features=4))
@pytest.mark.slow
def test_values_are_those_of_the_game_and_of_its_square(data, ensemble):
    """By enumeration of all sets of features in exact fractions, of every tree, with as many points as two paths have players."""
    rows = data.draw(batches(ensemble, max_rows=2))
    tables, forest, trees = in_preorder(ensemble)
    terms = [terms_of(trees, t) for t in range(ensemble.root.size)]
    expansions = frozen(lay_out_expansions(terms, [shapley(some.players) for some in terms]))
    for t, tree in enumerate(one_by_one(ensemble)):
        work = descended(tables, trees, t, rows, expansions.places[t])
        expand(trees, t, expansions, np.int32(t), work)
        for i, row in enumerate(rows):
            assert_allclose(computed(work, trees, t, forest, ensemble.n_features, i), shapley_values(tree, row), rtol=0, atol=ATOL)


def paths_of(ensemble, node):
    """Sets of features on the ways from a node to its leaves."""
    if ensemble.left[node] < 0:
        return [frozenset()]
    return [path | {int(ensemble.feature[node])} for child in (ensemble.left[node], ensemble.right[node]) for path in paths_of(ensemble, child)]


@given(ensemble=regressions(max_depth=5))
def test_terms_are_the_sets_of_players_that_share_a_path(ensemble):
    """At the root every such set of a player's stands once, and all that is made has a place."""
    _, forest, trees = in_preorder(ensemble)
    for t, root in enumerate(ensemble.root):
        terms, paths = terms_of(trees, t), paths_of(ensemble, root)
        shared = {frozenset(some) for path in paths for size in range(len(path) + 1) for some in combinations(path, size)}
        players = forest.players[trees.player[trees.player_start[t] : trees.player_start[t + 1]]].tolist()
        assert [len(edges) for edges in terms.edges] == [sum(player in some for some in shared) for player in players]
        assert all(len(set(edges)) == len(edges) for edges in terms.edges)
        assert max([*terms.below, *(place for edges in terms.edges for edge in edges for place in edge)], default=0) < terms.places
        assert terms.places >= 2 * n_splits(trees, t) + 2
        assert terms.players == max(len(a | b) for a in paths for b in paths)


@given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=6))
def test_most_players_on_two_paths(paths):
    """Or on one, if it is the only one."""
    assert most_on_two_paths([sum(1 << p for p in path) for path in paths]) == max(len(a | b) for a in paths for b in paths)


def test_a_game_of_too_many_terms_is_not_expanded():
    """Neither where much is to be made on the way to the root, nor where much is to be summed at the root."""
    n = 6
    _, _, trees = in_preorder(chain(np.arange(n), np.arange(n + 1.0), np.ones(n + 1), n))
    terms = terms_of(trees, 0)
    to_make, to_sum = len(terms.below) // 2, sum(map(len, terms.edges))
    assert terms_of(trees, 0, to_make - 1) is None
    assert to_make < to_sum
    assert terms_of(trees, 0, to_sum - 1) is None
    assert terms_of(trees, 0, to_sum) is not None
