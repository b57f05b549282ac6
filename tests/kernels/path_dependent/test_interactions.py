"""Interactions are those of their definition, walked and looked up."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.game_values import Quadrature, banzhaf, beta, interior, shapley
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.interactions import play_pairs
from leafledger.kernels.prepare import prepare
from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.kernels.attributing import ATOL, WEIGHTS, attributed, defaults
from tests.strategies import batches, forests, partitions
from tests.trees import chain, join, players_of_paths

FEW_ROWS = 2


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data(), ensemble=forests())
@pytest.mark.usefixtures("trees")
def test_interactions_are_those_of_the_definition(data, ensemble, name):
    """Every two features', by enumeration in exact fractions; those that are not listed are 0."""
    rows = data.draw(batches(ensemble, FEW_ROWS))
    prepared = prepare(ensemble, METHODS[name], defaults(name), interactions=True)
    buffers = attributed(name, prepared, rows)
    found = np.zeros((len(rows), ensemble.base.size, ensemble.n_features, ensemble.n_features))
    for p, (i, j) in enumerate(prepared.pairs.players):
        found[:, :, i, j] = found[:, :, j, i] = buffers.pairs[:, p, : len(rows)].T
    assert_allclose(found, [naive.interactions(ensemble, row, WEIGHTS[name]) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=4, max_depth=6, max_features=8))
@pytest.mark.slow
def test_banzhaf_interactions_among_all_others(data, ensemble):
    """Where all others are present, at p = 1, an interaction is v(N) - v(N - i) - v(N - j) + v(N - i - j)."""
    check_among_all_others(ensemble, data.draw(batches(ensemble, 1)))


def test_interactions_on_a_long_path():
    """Nine points, of ten players: more than a walk takes at once."""
    rng = np.random.default_rng(0)
    ensemble = chain(np.arange(10), rng.standard_normal(11), rng.uniform(1, 9, 11), 10)
    check_among_all_others(ensemble, np.ones((1, 10)))


@pytest.mark.parametrize("p", [0.0, 1e-12, 1e-3, 1 - 1e-6, 1 - 1e-12, 1.0])
def test_points_at_and_near_the_border_lose_nothing(p):
    """Weighted Banzhaf interactions by enumeration in exact fractions of the same p, where branches without training weight are there too."""
    rng = np.random.default_rng(1)
    ensemble = join([chain(rng.permutation(5), rng.standard_normal(6), rng.uniform(1, 5, 6) * [1, 1, 0, 1, 0, 1], 5) for _ in range(3)])
    row, exact = np.array([[1.0, 0.0, 1.0, 1.0, 0.0]]), Fraction(p)
    prepared = prepare(ensemble, METHODS["banzhaf"], {"p": p}, interactions=True)
    buffers = attributed("banzhaf", prepared, row)
    expected = naive.interactions(ensemble, row[0], lambda size, n: exact**size * (1 - exact) ** (n - 1 - size))
    i, j = prepared.pairs.players.T
    assert np.abs(expected).max() > 0.1
    assert_allclose(buffers.pairs[0, :, 0], expected[0, i, j], rtol=0, atol=ATOL)


def check_among_all_others(ensemble, rows):
    """All interactions of a row are the four coalitions' that are told apart by the two players alone."""
    prepared = prepare(ensemble, METHODS["banzhaf"], {"p": 1.0}, interactions=True)
    buffers = attributed("banzhaf", prepared, rows)
    everyone = set(range(ensemble.n_features))
    for p, (i, j) in enumerate(prepared.pairs.players):
        for k in range(ensemble.base.size):
            without = [float(naive.coalition_value(ensemble, rows[0], everyone - out, k)) for out in (set(), {i}, {j}, {i, j})]
            assert abs(buffers.pairs[k, p, 0] - (without[0] - without[1] - without[2] + without[3])) < ATOL


@given(data=st.data(), ensemble=forests())
def test_pairs_are_those_that_share_a_path(data, ensemble):
    """And no others, each once, the lower player first."""
    forest = make_forest(ensemble, data.draw(partitions(ensemble, max_groups=5)))[1]
    paths = [path for root in ensemble.root for path in players_of_paths(ensemble, forest.player_of_node, root, frozenset())]
    expected = {pair for path in paths for pair in itertools.combinations(sorted(path), 2)}
    played, pairs = play_pairs(forest, shapley)
    assert list(map(tuple, pairs.tolist())) == sorted(expected)
    assert played.game.n_rows == len(expected)


@given(data=st.data(), ensemble=forests(max_depth=5, max_features=4))
def test_partners_are_the_other_players_above(data, ensemble):
    """Of every split: each other player once, by the nearest of its edges, with the row of the pair."""
    forest = make_forest(ensemble, data.draw(partitions(ensemble, max_groups=4)))[1]
    played, pairs = play_pairs(forest, shapley)
    player, partners = forest.player_of_node, played.partners
    expected = {}

    def descend(node, edges):
        if player[node] >= 0:
            expected[node] = {(edge, *sorted((other, player[node]))) for other, edge in edges.items() if other != player[node]}
            for child in (ensemble.left[node], ensemble.right[node]):
                descend(child, edges | {player[node]: child})

    for root in ensemble.root:
        descend(root, {})
    for node in range(player.size):
        mine = slice(partners.start[node], partners.start[node + 1])
        found = [(edge, *pairs[row]) for edge, row in zip(partners.edge[mine], partners.row[mine], strict=True)]
        assert len(found) == len(expected.get(node, ()))
        assert set(found) == expected.get(node, set())


@pytest.mark.parametrize("atoms", [[(1.0, 1.0)], [(0.0, 1.0)], [(0.0, 0.25), (1.0, 0.75)], [(0.0, -1.0), (0.5, 1.5), (1.0 - 1e-9, 0.5)]])
@pytest.mark.parametrize("n_terms", [1, 2, 7, 40])
def test_a_rule_on_the_border_agrees_with_one_inside(atoms, n_terms):
    """On every power of t below ``n_terms``, in exact fractions of the same atoms; and no node is where a factor vanishes."""
    t, weight = np.array(atoms).T
    rule = interior(Quadrature(t, weight), n_terms)
    assert ((rule.nodes > 0) & (rule.nodes < 1)).all()
    for power in range(n_terms):
        expected = sum(Fraction(w) * Fraction(at) ** power for at, w in atoms)
        assert abs(float(rule.weights @ rule.nodes**power) - float(expected)) < 1e-13


@pytest.mark.parametrize("n_players", [2, 9, 60])
def test_rules_inside_stay_as_they_are(n_players):
    """Gauss's rules of densities need no other."""
    for rule in (shapley(n_players), banzhaf(n_players, 0.5), beta(n_players, 2.0, 3.0)):
        assert interior(rule, n_players) is rule
