"""Sets of players on a path: each once, at every split those of its own player; too many are refused."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.trees import player_sets
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.paths import trace
from leafledger.kernels.trees.player_sets import find_above, find_rows, find_sets, list_sets, name_sets
from tests.strategies import forests, partitions
from tests.trees import chain, players_of_paths


@given(data=st.data(), ensemble=forests(max_depth=5), order=st.integers(1, 4))
def test_sets_are_those_that_share_a_path(data, ensemble, order):
    """And no others, by size and then in lexicographic order."""
    forest = make_forest(ensemble, data.draw(partitions(ensemble, max_groups=5)))[1]
    paths = [path for root in ensemble.root for path in players_of_paths(ensemble, forest.player_of_node, root, frozenset())]
    expected = {chosen for path in paths for size in range(1, order + 1) for chosen in itertools.combinations(sorted(path), size)}
    found = [tuple(player for player in row if player >= 0) for row in list_sets(forest, order).tolist()]
    assert found == sorted(expected, key=lambda chosen: (len(chosen), chosen))
    named = name_sets(forest, list_sets(forest, order))
    assert [tuple(forest.players[list(chosen)]) for chosen in found] == [tuple(player for player in row if player >= 0) for row in named.tolist()]


@given(ensemble=forests(max_depth=5, max_features=4), order=st.integers(1, 4))
def test_splits_have_the_sets_of_their_own_player(ensemble, order):
    """In the order of combinations of the others above, the nearest first."""
    forest = make_forest(ensemble)[1]
    player = forest.player_of_node
    above = find_above(ensemble, trace(ensemble, player, forest.n_players), player, forest.n_players)
    sets = find_sets(above, player, order)
    for v in range(player.size):
        mine, others = sets.row[sets.start[v] : sets.start[v + 1]], above.player[above.start[v] : above.start[v + 1]].tolist()
        expected = [{player[v], *some} for size in range(order) for some in itertools.combinations(others, size)] if player[v] >= 0 else []
        assert [set(row[row >= 0].tolist()) for row in sets.players[mine]] == expected


@given(ensemble=forests(max_depth=5), order=st.integers(1, 4), seed=st.integers(0, 99))
def test_numbered_sets_are_found_again(ensemble, order, seed):
    """Some of them, in any order."""
    players = list_sets(make_forest(ensemble)[1], order)
    some = np.random.default_rng(seed).permutation(len(players))
    assert find_rows(players, players[some]).tolist() == some.tolist()


@pytest.mark.parametrize(
    ("limit", "most", "said"),
    [("MOST_ENTRIES", 13, "have 14 sets at the model's splits, expected at most 13"), ("MOST_SETS", 13, "have more than 13 sets")],
)
def test_too_many_sets_are_refused(monkeypatch, limit, most, said):
    """Of a path of four players there are fourteen of up to three, at splits and distinct ones."""
    forest = make_forest(chain(np.arange(4), np.arange(5.0), np.ones(5), 4))[1]
    monkeypatch.setattr(player_sets, limit, most + 1)
    assert len(list_sets(forest, 3)) == 14
    monkeypatch.setattr(player_sets, limit, most)
    with pytest.raises(InvalidParameters, match=f"interactions of up to 3 players {said}.*; ask for a lower order, or give a partition"):
        list_sets(forest, 3)
