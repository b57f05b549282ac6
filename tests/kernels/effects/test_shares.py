"""Shares of a background: rows that pass a path but for what it asks of a set of players."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.effects.shares import as_shares, count_shares, weigh_shares
from leafledger.kernels.marginal.background import first_codes
from tests.kernels.effects.changed import Grown
from tests.kernels.marginal.against import KEPT, counted, query_for
from tests.trees import chain, join


@pytest.mark.parametrize("kept", KEPT)
def test_rows_that_pass_all_but_one_player_s_conditions(kept):
    """Leaf 3 of the chain asks all three features to be above 1/2: of four rows one passes all, one fails the first alone, one the first two."""
    ensemble = chain([0, 1, 2], [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], 3)
    rows = np.array([[1.0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]])
    query, last = query_for("shapley", ensemble, kept=KEPT[kept]), int(np.argmax(ensemble.value[:, 0]))
    sets = np.array([[0, -1], [1, -1], [0, 1]])
    found = count_shares(query.partitioning, (counted(query, rows),), 3, sets, ensemble.feature.size)
    assert_array_equal(found[0, :, last], [2, 1, 3])


@pytest.mark.parametrize("kept", KEPT)
def test_weights_of_trees_with_other_sums_are_shares_of_each(kept):
    """As if every tree had seen the same rows."""
    ensemble = join([chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2), chain([1, 0], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2)])
    query = query_for("shapley", ensemble, kept=KEPT[kept])
    counted_rows = counted(query, np.array([[0.0, 1], [1, 0], [1, 1], [0, 0]]))
    first = first_codes(query.partitioning.coded)
    of_coded, of_deep = (np.repeat(np.arange(starts.size - 1) + 2.0, np.diff(starts)) for starts in (first, counted_rows.start))
    weights = as_shares(query.partitioning, counted_rows._replace(counts=counted_rows.counts * of_coded, times=counted_rows.times * of_deep))
    assert_array_equal(weights.counts * 4, counted_rows.counts)
    assert_array_equal(weights.times * 4, counted_rows.times)


def test_by_covers_the_ratios_of_others_are_multiplied():
    """And an even half counts where no training weight came."""
    ensemble = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 2.0], 2)
    grown = Grown(ensemble)
    sets = np.array([[0, -1], [1, -1], [0, 1]])
    last = int(np.argmax(ensemble.value[:, 0]))
    assert_array_equal(weigh_shares(grown.forest, grown.nodes, sets)[0, :, last], [2 / 3, 3 / 4, 1])
    empty = Grown(ensemble._replace(cover=np.zeros(5)))
    assert_array_equal(weigh_shares(empty.forest, empty.nodes, sets)[0, :, last], [1 / 2, 1 / 2, 1])
