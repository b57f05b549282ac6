"""Games are those of their definitions: of groups, and of members of groups; trees are cut to what a player can change."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.game_values import shapley
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.games import cut_trees, play, play_owen
from leafledger.kernels.prepare import prepare
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.paths import trace
from tests import naive
from tests.kernels.attributing import ATOL, LEVELS, WEIGHTS, defaults, run, scores_by, write_value
from tests.strategies import batches, forests, partitions

FEW_ROWS = 2
LARGE = forests(max_trees=2, max_depth=4, max_features=6) if config.DISABLE_JIT else forests(max_trees=6, max_depth=7, max_features=9)


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_groups_play_the_quotient_game(data, ensemble, name):
    """A group's value is that of a player who brings all its features, by enumeration in exact fractions."""
    rows, group = data.draw(batches(ensemble, FEW_ROWS)), data.draw(partitions(ensemble))
    n_groups = int(group.max()) + 1
    prepared = prepare(ensemble, METHODS[name], defaults(name), group)
    phi, base, margin = run(name, prepared, rows, n_groups)
    expected = [naive.quotient_semivalue(ensemble, row, group, n_groups, WEIGHTS[name]) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)
    if METHODS[name].check is not None:
        assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_owen_values_are_those_of_the_definition(data, ensemble):
    """In exact fractions, over whole groups and members of one's own; they add up, and within a group to the group's value (Owen 1977)."""
    rows, group = data.draw(batches(ensemble, FEW_ROWS)), data.draw(partitions(ensemble))
    phi, base, margin = run("owen", prepare(ensemble, METHODS["owen"], defaults("owen"), group), rows, ensemble.n_features)
    assert_allclose(phi, [naive.owen(ensemble, row, group) for row in rows], rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)
    of_groups, _, _ = run("shapley", prepare(ensemble, METHODS["shapley"], {}, group), rows, int(group.max()) + 1)
    for g in range(group.max() + 1):
        assert_allclose(phi[:, :, group == g].sum(axis=2), of_groups[:, :, g], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(), across=st.sampled_from(LEVELS), within=st.sampled_from(LEVELS))
def test_coalitional_values_are_those_of_the_definition(data, ensemble, across, within):
    """Any two values, in exact fractions (Filom et al. 2024, Eq. E.6)."""
    rows, group = data.draw(batches(ensemble, 1)), data.draw(partitions(ensemble))
    (across, weigh_across), (within, weigh_within) = write_value(across, int(group.max()) + 1), write_value(within, int(np.bincount(group).max()))
    phi, _, _ = run("owen", prepare(ensemble, METHODS["owen"], {"across": across, "within": within}, group), rows, ensemble.n_features)
    expected = [naive.owen(ensemble, row, group, across=weigh_across, within=weigh_within) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)


@pytest.mark.again
@pytest.mark.parametrize("across", LEVELS)
@given(data=st.data(), ensemble=LARGE)
@pytest.mark.slow
def test_members_share_what_their_group_gets_in_the_quotient_game(data, ensemble, across):
    """With Shapley values within groups, whatever groups play for (Filom et al. 2024, Prop. E.2, part 3)."""
    rows, group = data.draw(batches(ensemble, FEW_ROWS)), data.draw(partitions(ensemble))
    across, _ = write_value(across, int(group.max()) + 1)
    phi, _, _ = run("owen", prepare(ensemble, METHODS["owen"], {"across": across, "within": "shapley"}, group), rows, ensemble.n_features)
    of_groups = scores_by(across, ensemble, rows, group)
    for g in range(group.max() + 1):
        assert_allclose(phi[:, :, group == g].sum(axis=2), of_groups[:, :, g], rtol=0, atol=ATOL)


@pytest.mark.parametrize("value", LEVELS)
@pytest.mark.parametrize("partition", ["one group", "groups of one"])
@given(data=st.data(), ensemble=LARGE)
@pytest.mark.slow
def test_of_trivial_partitions_one_level_counts(data, ensemble, partition, value):
    """One group of all features plays for the value within, groups of one for the one across (Owen 1977, Section 4)."""
    rows = data.draw(batches(ensemble, FEW_ROWS))
    one = partition == "one group"
    group = np.zeros(ensemble.n_features, int) if one else np.arange(ensemble.n_features)
    value, _ = write_value(value, ensemble.n_features)
    given_ = {"across": "beta:2:3" if one else value, "within": value if one else "beta:2:3"}
    owen, _, _ = run("owen", prepare(ensemble, METHODS["owen"], given_, group), rows, ensemble.n_features)
    assert_allclose(owen, scores_by(value, ensemble, rows), rtol=0, atol=ATOL)


def subsets(players):
    return itertools.chain.from_iterable(itertools.combinations(players, size) for size in range(len(players) + 1))


def one_of(ensemble, tree):
    """An ensemble of one of its trees."""
    return ensemble._replace(root=ensemble.root[tree : tree + 1], output=ensemble.output[tree : tree + 1])


@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4).filter(lambda ensemble: (ensemble.feature >= 0).any()))
def test_a_cut_tree_keeps_all_that_its_own_player_can_change(data, ensemble):
    """What the player adds to any coalition is the same in the copy, which has no split without the player at, above or below it."""
    row = data.draw(batches(ensemble, max_rows=1))[0]
    forest = make_forest(ensemble)[1]
    trees = np.repeat(np.arange(ensemble.root.size, dtype=np.int32), forest.n_players)
    own = np.tile(np.arange(forest.n_players, dtype=np.int32), ensemble.root.size)
    cut = cut_trees(forest, trees, own)
    copy_of = trace(cut.ensemble, cut.splits.feature, forest.n_used).tree
    assert (cut.own == own[copy_of]).all()
    for c, (tree, player) in enumerate(zip(trees, own, strict=True)):
        feature = int(forest.column[player])
        copied, original = one_of(cut.ensemble, c), one_of(ensemble, tree)
        for others in subsets([j for j in range(ensemble.n_features) if j != feature]):
            for k in range(ensemble.base.size):
                v = [[naive.coalition_value(some, row, present, k) for present in ({*others, feature}, others)] for some in (copied, original)]
                assert v[0][0] - v[0][1] == v[1][0] - v[1][1]
        assert splits_without(copied, int(copied.root[0]), feature) == 0


def splits_without(ensemble, node, feature, under=False):
    """Splits at and below a node that have none of a feature at, above or below them."""

    def asks(v):
        return ensemble.feature[v] == feature or (ensemble.feature[v] >= 0 and (asks(ensemble.left[v]) or asks(ensemble.right[v])))

    if ensemble.feature[node] < 0:
        return 0
    below = under or ensemble.feature[node] == feature
    return (not under and not asks(node)) + sum(splits_without(ensemble, child[node], feature, below) for child in (ensemble.left, ensemble.right))


@given(ensemble=forests(max_trees=3))
def test_without_an_own_player_a_tree_is_copied_whole(ensemble):
    """Node by node, in preorder."""
    forest = make_forest(ensemble)[1]
    n_trees = ensemble.root.size
    cut = cut_trees(forest, np.arange(n_trees, dtype=np.int32), np.full(n_trees, -1, np.int32))
    assert (cut.node == forest.trace.order).all()
    assert (cut.own == -1).all()
    leaf = cut.ensemble.feature < 0
    assert (cut.ensemble.value[leaf] == forest.ensemble.value[cut.node[leaf]]).all()
    for side in ("left", "right"):
        assert (cut.node[getattr(cut.ensemble, side)[~leaf]] == getattr(ensemble, side)[cut.node[~leaf]]).all()


@given(data=st.data(), ensemble=forests(max_depth=5))
def test_points_are_as_few_as_paths_need(data, ensemble):
    """A Gauss rule of ceil(d / 2) nodes for the most players d on a path of each tree; own players of an Owen game come at points of their own."""
    forest = make_forest(ensemble, data.draw(partitions(ensemble)))[1]
    game = play(forest, shapley)
    for tree, root in enumerate(game.ensemble.root):
        d = most_players(game.ensemble, forest.player_of_node, root, frozenset())
        assert game.points[tree].weights.size == max(1, -(-d // 2))
        assert (game.points[tree].nodes[:, 0] == game.points[tree].nodes[:, 1]).all()
    game = play_owen(forest, shapley, shapley)
    for points in game.points:
        assert abs(points.weights.sum() - 1) < ATOL


def most_players(ensemble, player, node, above):
    """Distinct players on a path from a node down, and above it."""
    if ensemble.feature[node] < 0:
        return len(above)
    return max(most_players(ensemble, player, child[node], above | {player[node]}) for child in (ensemble.left, ensemble.right))


@given(ensemble=forests(max_trees=1))
def test_what_a_method_cannot_do_is_refused(ensemble):
    """One line says so."""
    with pytest.raises(InvalidParameters, match="'owen' needs a partition"):
        prepare(ensemble, METHODS["owen"], {})
    with pytest.raises(InvalidParameters, match="'owen' has no interactions"):
        prepare(ensemble, METHODS["owen"], defaults("owen"), np.zeros(ensemble.n_features, int), interactions=True)


def test_only_two_shapley_values_add_up_to_the_margin():
    """So that nothing else is held against it."""
    owen = METHODS["owen"]
    assert owen.check_of(defaults("owen")) is owen.check is not None
    assert owen.check_of({"across": "shapley", "within": "banzhaf"}) is None
    assert owen.check_of({"across": "beta:4:1", "within": "shapley"}) is None
