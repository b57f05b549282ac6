"""Who plays on a forest: features, or groups of them, with what no split asks for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.strategies import batches, forests, partitions


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


@given(data=st.data(), ensemble=forests())
def test_what_leaves_of_a_tree_have_in_common_goes_to_the_base_values(data, ensemble):
    """Margins stay, no leaf grows, and trees with leaves of both signs stay as they are."""
    shift = data.draw(st.lists(st.sampled_from([0.0, 3.0, -(2.0**40)]), min_size=ensemble.root.size, max_size=ensemble.root.size))
    plain = make_forest(ensemble)[1]
    value = ensemble.value + np.array([shift[tree] for tree in plain.trace.tree])[:, None]
    shifted = ensemble._replace(value=value)
    found = make_forest(shifted)[1].ensemble
    rows = data.draw(batches(ensemble))
    assert_allclose(naive.margins(found, rows), naive.margins(shifted, rows), rtol=1e-15, atol=1e-13)
    leaf = ensemble.feature < 0
    assert (np.abs(found.value[leaf]) <= np.abs(value[leaf])).all()
    for tree in range(ensemble.root.size):
        leaves = leaf & (plain.trace.tree == tree)
        for column in range(value.shape[1]):
            assert 0.0 in found.value[leaves, column] or (found.value[leaves, column] == value[leaves, column]).all()
