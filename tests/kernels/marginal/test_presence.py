"""Margins of the marginal game where players are present with any probabilities, or one after the other: equal to enumeration."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.marginal.presence import ROWS, add_expectations, add_gradient, add_steps, read_codes
from leafledger.kernels.ranking.ranked_curves import PresentPlayers, draw_curves
from tests import naive
from tests.kernels.attributing import ATOL
from tests.kernels.marginal.against import against
from tests.kernels.marginal.cutting import binned
from tests.kernels.path_dependent.gradients import drawn_points
from tests.strategies import batches, forests

RANKER = {"steps": 1, "rate": 0.1, "optimizer": "adam"}


def presence(ensemble, background, rows):
    """Tables, the players that have a row of phi, and bins."""
    prepared = against("ranker", ensemble, background, RANKER)
    return prepared.method.game, prepared.players, binned(prepared.bins, rows)


@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
def test_gradients_are_those_of_the_definition(data, ensemble):
    """Every derivative, and the expected margin, on the faces of the cube as well, for every output."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=4))
    tables, players, bins = presence(ensemble, background, rows)
    z = drawn_points(data, ensemble, rows)[0]
    codes = np.zeros((tables.first.size, ROWS), np.int64)
    read_codes(bins, tables, 0, codes)
    for k in range(ensemble.base.size):
        at = np.repeat(z[k, players], ROWS)
        nobody, found, g = np.zeros(ROWS), np.zeros(ROWS), np.zeros(at.size)
        add_gradient(tables, codes, k, np.zeros(at.size), 1.0, np.zeros(at.size), nobody)
        add_gradient(tables, codes, k, at, 2.0, g, found)
        expected = np.array(naive.gradient(ensemble, rows[0], z[k], k, background), float)
        assert_allclose(g.reshape(-1, ROWS)[:, 0] / 2, expected[players], rtol=0, atol=ATOL)
        margin = naive.extension(ensemble, rows[0], z[k], k, background)
        assert_allclose(found[0] / 2 - nobody[0] + tables.base[k], float(margin), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
def test_steps_are_what_players_change_when_they_join(data, ensemble):
    """In the order of a ranking of all features, and in the opposite one; those that no split asks for change nothing."""
    rows, background, n = data.draw(batches(ensemble)), data.draw(batches(ensemble, max_rows=4)), ensemble.n_features
    tables, players, bins = presence(ensemble, background, rows)
    scores = np.array([[data.draw(st.permutations(range(n))) for _ in range(ensemble.base.size)] for _ in rows])
    place = np.ones((ensemble.base.size, players.size, bins.shape[1]), np.int64)
    place[:, :, : len(rows)] = (n - scores)[:, :, players].transpose(1, 2, 0)
    steps = np.zeros((ensemble.base.size, 2, bins.shape[1], n + 1))
    add_steps(bins, tables, place, steps)
    curves = np.cumsum(steps, axis=3) + tables.base[:, None, None, None]
    ranked = np.zeros((ensemble.base.size, players.size, bins.shape[1]))
    ranked[:, :, : len(rows)] = scores[:, :, players].transpose(1, 2, 0)
    areas, drawn = draw_curves(bins, PresentPlayers(tables, players), players, n, ranked)
    assert areas.shape == (*drawn.shape[:2], bins.shape[1])
    assert_allclose(drawn[..., [0, -1]], curves[..., [0, -1]], rtol=0, atol=ATOL)  # by the empty and by the full prefix
    for i, k in np.ndindex(len(rows), ensemble.base.size):
        for found, definition in zip(curves[k, :, i], (naive.insertion, naive.deletion), strict=True):
            assert_allclose(found, np.array(definition(ensemble, rows[i], scores[i, k], k, background), float), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4))
def test_expectations_are_those_of_the_definition(data, ensemble):
    """Of players that are present once in four times."""
    rows, background = data.draw(batches(ensemble)), data.draw(batches(ensemble, max_rows=4))
    tables, players, bins = presence(ensemble, background, rows)
    margin = np.zeros((ensemble.base.size, bins.shape[1]))
    phi = np.zeros((ensemble.base.size, players.size, bins.shape[1]))
    add_expectations(bins, tables, np.full(phi.shape, 0.25), phi, margin)
    for i, k in np.ndindex(len(rows), ensemble.base.size):
        z = np.full(ensemble.n_features, 0.25)
        assert_allclose(margin[k, i], float(naive.extension(ensemble, rows[i], z, k, background)), rtol=0, atol=ATOL)
        expected = np.array(naive.gradient(ensemble, rows[i], z, k, background), float)
        assert_allclose(phi[k, :, i], expected[players], rtol=0, atol=ATOL)
