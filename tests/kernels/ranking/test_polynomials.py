"""Polynomials of trees that are looked up: what is climbed and its derivatives, equal to the multilinear extension in exact fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.jit.lanes import LANES, zeros
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.ranking.polynomials import EVEN, ROOM, ROWS, add_polynomials, prepare_polynomials
from leafledger.kernels.trees import lookup
from leafledger.kernels.trees.binning import BATCH, bin_dtype, bin_rows
from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.kernels.attributing import ATOL, defaults, explain
from tests.strategies import batches, forests
from tests.trees import chain, join, one_tree, symmetric

LARGE = 10**6  # entries for every node: all trees with few comparisons are looked up


def climbed(ensemble, rows, x, first=0):
    """Of every output h ``(outputs, n)`` and its derivatives ``(outputs, features, n)`` at ``x (n, features)``, rows from ``first`` on."""
    tables, forest = make_forest(ensemble)
    n, used = len(rows), forest.column
    values = np.zeros((used.size, first + BATCH))
    values[:, first : first + n] = rows.T[used]
    bins = np.zeros(values.shape, bin_dtype(tables))
    bin_rows(values, tables, bins)
    found = frozen(prepare_polynomials(forest))
    at, h, gained = (np.zeros((*shape, ROWS)) for shape in ((used.size,), (ensemble.base.size,), (ensemble.base.size, used.size)))
    at[:, :n] = x.T[used]
    for k in range(ensemble.base.size):
        add_polynomials(bins, first, BATCH, found, k, at.reshape(-1), gained[k].reshape(-1), h[k], zeros(ROOM))
    everywhere = np.zeros((ensemble.base.size, ensemble.n_features, n))
    everywhere[:, used] = gained[:, :, :n]
    return h[:, :n], everywhere, found


def defined(ensemble, row, x, k):
    """h and its derivatives (Li, Yu and Low 2026, Algorithm 2's objective), by enumeration of all sets of features."""
    z, rest = 0.5 + x, 0.5 - x
    h = float(naive.extension(ensemble, row, z, k) - naive.extension(ensemble, row, rest, k)) / 2
    slopes = [naive.gradient(ensemble, row, point, k) for point in (z, rest)]
    return h, [float(one + other) / 2 for one, other in zip(*slopes, strict=True)]


points = st.integers(-4, 4).map(lambda eighths: eighths / 8)


@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=4))
def test_polynomials_are_the_extension_of_the_game(data, ensemble):
    """At any point, for every output; of trees with one player, with two, and with more, none of them too deep for a table."""
    rows = data.draw(batches(ensemble, max_rows=2))
    x = np.array([[data.draw(points) for _ in range(ensemble.n_features)] for _ in rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "ENTRIES_PER_NODE", LARGE)
        h, gained, _ = climbed(ensemble, rows, x)
    for i, k in np.ndindex(len(rows), ensemble.base.size):
        expected = defined(ensemble, rows[i], x[i], k)
        assert_allclose(h[k, i], expected[0], rtol=0, atol=ATOL)
        assert_allclose(gained[k, :, i], expected[1], rtol=0, atol=ATOL)


@pytest.mark.again
@pytest.mark.parametrize("n_players", [1, 2, 3, 4, 5])
def test_trees_of_so_many_players(n_players):
    """One that asks for all of them, and again for the first; also where the rows are not the first of a buffer."""
    rng = np.random.default_rng(n_players)
    ensemble = symmetric(rng, [*range(n_players), 0], n_players)
    rows, x = rng.normal(size=(2, n_players)), rng.integers(-4, 5, (2, n_players)) / 8
    for first in (0, BATCH):
        h, gained, _ = climbed(ensemble, rows, x, first)
        for i in range(2):
            expected = defined(ensemble, rows[i], x[i], 0)
            assert_allclose(h[0, i], expected[0], rtol=0, atol=ATOL)
            assert_allclose(gained[0, :, i], expected[1], rtol=0, atol=ATOL)


def test_outcomes_that_take_more_than_a_byte(monkeypatch):
    """Nine comparisons of two features, of which every row has one of ten outcomes."""
    monkeypatch.setattr(lookup, "ENTRIES_PER_NODE", LARGE)
    rng, n = np.random.default_rng(3), 9
    ensemble = chain(np.arange(n) % 2, rng.normal(size=n + 1), rng.random(n + 1), 2)
    ensemble = ensemble._replace(threshold=np.where(ensemble.feature >= 0, np.linspace(-1, 1, 2 * n + 1), 0.0))
    rows, x = rng.normal(size=(LANES, 2)), rng.integers(-4, 5, (LANES, 2)) / 8
    h, gained, found = climbed(ensemble, rows, x)
    assert found.looked_up.n_codes.tolist() == [1 << n]
    for i, row in enumerate(rows):
        expected = defined(ensemble, row, x[i], 0)
        assert_allclose(h[0, i], expected[0], rtol=0, atol=ATOL)
        assert_allclose(gained[0, :, i], expected[1], rtol=0, atol=ATOL)


def test_coefficients_by_hand():
    """x <= 0 is worth 3, more is worth 1, half of the cover each: a row at 0 has f(z) = 2 + z, so h is z - 1/2 and its slope 1, whatever z."""
    ensemble = one_tree([0, -1, -1], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 3.0, 1.0], [2, 1, 1], 1)
    h, gained, found = climbed(ensemble, np.array([[0.0], [1.0]]), np.array([[0.25], [0.25]]))
    assert h.tolist() == [[0.25, -0.25]]
    assert gained.tolist() == [[[1.0, -1.0]]]
    assert found.looked_up.values.reshape(2, -1)[:, 0].tolist() == [-1.0, 1.0]


def test_even_numbers_are_those_with_an_even_number_of_bits():
    """Of the players but the last, so that with it every product is of an odd number of them."""
    assert EVEN.tolist() == [bin(number).count("1") % 2 == 0 for number in range(1024)]


def test_trees_of_very_many_players_are_walked():
    """No number of 64 bits counts the sets of 70 players. The first step is along Banzhaf values."""
    rng, n = np.random.default_rng(0), 70
    ensemble, rows = chain(np.arange(n), rng.normal(size=n + 1), rng.random(n + 1), n), rng.normal(size=(3, n))
    found = explain("ranker", ensemble, rows, steps=1)[0]
    banzhaf = explain("banzhaf", ensemble, rows)[0]
    assert np.array_equal(np.argsort(-found[:, 0], axis=1, kind="stable")[:, :5], np.argsort(-banzhaf[:, 0], axis=1, kind="stable")[:, :5])


def test_trees_are_walked_where_a_table_would_be_large():
    """One of them is enough: seven features at seven levels."""
    trees = [symmetric(np.random.default_rng(0), range(depth), 7) for depth in (3, 7)]
    assert prepare(trees[0], METHODS["ranker"], defaults("ranker")).method.game.polynomials.looked_up.first.size == 1
    both = prepare_polynomials(make_forest(join(trees))[1])
    assert both.looked_up.first.size == 0
    assert both.output.tolist() == [0, 0]
