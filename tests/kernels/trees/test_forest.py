"""Who plays on a forest: features, or groups of them, with what no split asks for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernels.trees.forest import make_forest
from tests.strategies import forests, partitions


@given(data=st.data(), ensemble=forests())
def test_players_are_the_groups_of_features_that_splits_ask_for(data, ensemble):
    """A split is its feature's group's; members of groups that play are counted though no split asks for them, and so are all groups."""
    group = data.draw(partitions(ensemble))
    _, forest = make_forest(ensemble, group)
    used = sorted({int(feature) for feature in ensemble.feature if feature >= 0})
    players = sorted({int(group[feature]) for feature in used})
    assert forest.column.tolist() == used
    assert forest.players.tolist() == players
    assert forest.player.tolist() == [players.index(group[feature]) for feature in used]
    assert (forest.n_used, forest.n_players, forest.n_all) == (len(used), len(players), len(set(group.tolist())))
    assert forest.members.tolist() == [feature for feature in range(ensemble.n_features) if group[feature] in players]
    expected = [players.index(group[feature]) if feature >= 0 else -1 for feature in ensemble.feature]
    assert forest.player_of_node.tolist() == expected


@given(ensemble=forests())
def test_without_groups_every_feature_is_a_player(ensemble):
    """Whose number is that of its column."""
    bins, forest = make_forest(ensemble)
    assert forest.groups.tolist() == list(range(ensemble.n_features))
    assert (forest.players == bins.column).all()
    assert (forest.player == np.arange(forest.n_used)).all()
    assert (forest.player_of_node == forest.splits.feature).all()
