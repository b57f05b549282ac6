"""Predictions without the first features: equal to means in exact fractions over all that these are drawn as, rows cut anyhow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.prediction_gap.noise import measure
from leafledger.kernels.prediction_gap.removal import SLICE, prepare_removal, shift_means
from tests import perturbed
from tests.kernels.prediction_gap.gaps import ATOL, RTOL, binned, outcomes_of
from tests.strategies import batches, forests
from tests.trees import grown


def drawn_from(ensemble, rows, data):
    """Tables, values and bins."""
    values, bins, forest = binned(ensemble, rows)
    measured = measure(*binned(ensemble, data)[:2], forest.player, np.ones(forest.n_players, bool))
    return prepare_removal(forest, measured), values, bins, forest.players


@given(data=st.data(), ensemble=forests(max_features=4))
@pytest.mark.slow
def test_means_are_those_of_the_definition(data, ensemble):
    """E f(X), the first k features drawn from rows of data independently of each other, by enumeration: numbers, categories, missing values, ties,
    features in no split among the first, two rankings, others for other outputs."""
    rows, seen = data.draw(batches(ensemble, 2)), data.draw(batches(ensemble, 3))
    tables, values, bins, players = drawn_from(ensemble, rows, seen)
    n, outputs = ensemble.n_features, ensemble.base.size
    orders = [[[data.draw(st.permutations(range(n))) for _ in rows] for _ in range(2)] for _ in range(outputs)]
    places = [[[[order.index(j) + 1 for order in of_rows] for j in players] for of_rows in of_rankings] for of_rankings in orders]
    places = np.array(places, np.int64).reshape(outputs, 2, -1, len(rows))
    sizes = (0, *range(1, n + 1), n + 3)
    found = shift_means(values, bins, tables, places, sizes)
    outcomes = outcomes_of(seen, range(n), range(n))
    for i, row in enumerate(rows):
        start = perturbed.exact_margin(ensemble, row)
        for k, r in np.ndindex(outputs, 2):
            expected = [float(perturbed.mean_margin(ensemble, row, outcomes, orders[k][r][i][:size])[k] - start[k]) for size in sizes]
            assert_allclose(found[k, r, :, i], expected, rtol=RTOL, atol=ATOL)
    assert (found[:, :, 0] == 0).all()


def test_rows_are_taken_some_at_a_time():
    """More than are taken at once give the same bits as each alone."""
    rng = np.random.default_rng(3)
    ensemble, rows = grown(rng, 3, 3, 4), rng.normal(size=(SLICE + 3, 4))
    tables, values, bins, players = drawn_from(ensemble, rows, rng.normal(size=(50, 4)))
    places = (np.argsort(rng.random((1, 1, players.size, len(rows))), axis=2) + 1).astype(np.int64)
    whole = shift_means(values, bins, tables, places, (1, 3))
    for i in (0, SLICE - 1, SLICE, SLICE + 2):
        one = slice(i, i + 1)
        alone = shift_means(values[:, one].copy(), bins[:, one].copy(), tables, places[..., one], (1, 3))
        assert_array_equal(whole[..., one], alone)
    assert shift_means(values[:, :0], bins[:, :0], tables, places[..., :0], (1,)).shape == (1, 1, 1, 0)


def test_without_any_feature_the_mean_is_that_of_independent_columns():
    """Of one feature that is the mean over the data."""
    rng = np.random.default_rng(4)
    ensemble, seen = grown(rng, 4, 3, 1), rng.normal(size=(40, 1))
    tables, values, bins, _ = drawn_from(ensemble, seen, seen)
    shifts = shift_means(values, bins, tables, np.ones((1, 1, 1, 40), np.int64), (1,))
    margins = np.array([float(perturbed.exact_margin(ensemble, row)[0]) for row in seen])
    assert_allclose(margins + shifts[0, 0, 0], np.full(40, margins.mean()), rtol=1e-12)
