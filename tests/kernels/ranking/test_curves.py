"""Insertion and deletion curves: equal to evaluating every set of the ranking in exact fractions, with all features in their places."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels import game_values
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.prepare import prepare
from leafledger.kernels.ranking.curves import add_areas, prepare_curves
from leafledger.kernels.trees.forest import make_forest
from tests import naive
from tests.kernels.attributing import ATOL, attributed, explain
from tests.strategies import batches, forests
from tests.trees import chain, with_statistic

scores_ = st.sampled_from((-2.0, -1.0, -0.0, 0.0, 1.0, 3.0))


def curves(ensemble, rows, scores):
    """Areas ``(outputs, rankings, n)`` of insertion and deletion, and curves ``(outputs, 2 * rankings, n, features + 1)``.

    ``scores (rankings, n, outputs, features)``; of features in no split they must be 0.
    """
    forest = make_forest(ensemble)[1]
    tables = prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all)
    prepared = prepare(ensemble, METHODS["banzhaf"], {"p": 0.5})
    buffers, n = attributed("banzhaf", prepared, rows), len(rows)
    shape = (ensemble.base.size, len(scores), n)
    insertion, deletion, steps = np.zeros(shape), np.zeros(shape), np.empty((shape[0], 2 * shape[1], n, ensemble.n_features + 1))
    given_ = np.ascontiguousarray(scores[:, :, :, prepared.players].transpose(0, 2, 3, 1))
    add_areas(buffers.bins, tables, given_, insertion, deletion, steps)
    alone = np.zeros(shape), np.zeros(shape)
    add_areas(buffers.bins, tables, given_, *alone)
    assert (alone[0] == insertion).all()
    assert (alone[1] == deletion).all()
    return insertion, deletion, steps


@given(data=st.data(), ensemble=forests(), n_rankings=st.integers(1, 2))
def test_curves_are_those_of_the_definition(data, ensemble, n_rankings):
    """All N + 1 points of both curves, by any scores, ties among them, equal f of every set; areas are means of all points but the first."""
    rows = data.draw(batches(ensemble, max_rows=2))
    shape = (n_rankings, len(rows), ensemble.base.size, ensemble.n_features)
    scores = np.array(data.draw(st.lists(scores_, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))).reshape(shape)
    scores[..., np.setdiff1d(np.arange(ensemble.n_features), ensemble.feature)] = 0.0
    insertion, deletion, steps = curves(ensemble, rows, scores)
    for r, i, k in np.ndindex(shape[:3]):
        for kind, area, naive_curve in ((0, insertion, naive.insertion), (n_rankings, deletion, naive.deletion)):
            expected = np.array(naive_curve(ensemble, rows[i], scores[r, i, k], k), float)
            assert_allclose(steps[k, kind + r, i], expected, rtol=0, atol=ATOL)
            assert_allclose(area[k, r, i], expected[1:].mean(), rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_depth=5, max_features=7))
def test_curves_end_at_the_margin(data, ensemble):
    """From the value of the empty coalition to the raw score, whatever the ranking."""
    rows = data.draw(batches(ensemble))
    phi, base, margin = explain("shapley", ensemble, rows)
    _, _, steps = curves(ensemble, rows, phi[None])
    for kind in range(2):
        assert_allclose(steps[:, kind, :, 0].T, np.tile(base, (len(rows), 1)), rtol=0, atol=ATOL)
        assert_allclose(steps[:, kind, :, -1].T, margin, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests().filter(lambda ensemble: (ensemble.category_set >= 0).any()))
def test_a_column_that_no_split_asks_for_changes_no_end(data, ensemble):
    """A statistic that is there for other trees is a row of bins all the same: curves still end at the raw score of categorical splits."""
    rows = data.draw(batches(ensemble))
    phi, base, margin = explain("shapley", ensemble, rows)
    _, _, steps = curves(with_statistic(ensemble), np.pad(rows, ((0, 0), (0, 1))), np.pad(phi, ((0, 0), (0, 0), (0, 1)))[None])
    for kind in range(2):
        assert_allclose(steps[:, kind, :, 0].T, np.tile(base, (len(rows), 1)), rtol=0, atol=ATOL)
        assert_allclose(steps[:, kind, :, -1].T, margin, rtol=0, atol=ATOL)


def test_features_in_no_split_have_places_too():
    """Of 100 features one raises the margin and one lowers it: the curve steps at both ends, and is flat between."""
    ensemble = chain(np.array([70, 20]), np.array([0.0, 4.0, 1.0]), np.array([1.0, 1.0, 2.0]), 100)
    row = np.zeros((1, 100))
    row[0, 70] = 1.0
    scores = np.zeros((1, 1, 1, 100))
    scores[0, 0, 0, [70, 20]] = 1.0, -1.0
    insertion, deletion, steps = curves(ensemble, row, scores)
    f = [float(naive.coalition_value(ensemble, row[0], s, 0)) for s in ((), (70,), (20,), (20, 70))]
    assert_allclose(steps[0, 0, 0], [f[0], *[f[1]] * 99, f[3]], rtol=0, atol=ATOL)
    assert_allclose(steps[0, 1, 0], [f[0], *[f[2]] * 99, f[3]], rtol=0, atol=ATOL)
    assert_allclose(insertion[0, 0, 0], (99 * f[1] + f[3]) / 100, rtol=0, atol=ATOL)
    assert_allclose(deletion[0, 0, 0], (99 * f[2] + f[3]) / 100, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_features=4))
def test_curves_of_groups(data, ensemble):
    """Players are groups where there are any: they join whole."""
    row = data.draw(batches(ensemble, max_rows=1))
    group = np.arange(ensemble.n_features) // 2
    n_groups = int(group.max()) + 1
    forest = make_forest(ensemble, group)[1]
    tables = prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all)
    buffers = attributed("banzhaf", prepare(ensemble, METHODS["banzhaf"], {"p": 0.5}), row)
    scores = np.arange(forest.n_players, 0.0, -1)[None, None, :, None] * np.ones((1, ensemble.base.size, 1, 1))
    shape = (ensemble.base.size, 1, 1)
    insertion, deletion, steps = np.zeros(shape), np.zeros(shape), np.empty((shape[0], 2, 1, n_groups + 1))
    add_areas(buffers.bins, tables, scores, insertion, deletion, steps)
    order = [*forest.players, *np.setdiff1d(np.arange(n_groups), forest.players)]
    for k in range(ensemble.base.size):
        expected = [float(naive.coalition_value(ensemble, row[0], np.flatnonzero(np.isin(group, order[:m])), k)) for m in range(n_groups + 1)]
        assert_allclose(steps[k, 0, 0], expected, rtol=0, atol=ATOL)
