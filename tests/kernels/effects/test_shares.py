"""Shares of a background: rows that pass a path but for what it asks of a set of players."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.effects.shares import count_shares, weigh_shares
from tests.kernels.effects.changed import Grown
from tests.kernels.marginal.against import KEPT, counted, query_for
from tests.trees import chain


@pytest.mark.parametrize("kept", KEPT)
def test_rows_that_pass_all_but_one_player_s_conditions(kept):
    """Leaf 3 of the chain asks all three features to be above 1/2: of four rows one passes all, one fails the first alone, one the first two."""
    ensemble = chain([0, 1, 2], [1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 1.0, 1.0], 3)
    rows = np.array([[1.0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 0]])
    query, last = query_for("shapley", ensemble, kept=KEPT[kept]), int(np.argmax(ensemble.value[:, 0]))
    sets = np.array([[0, -1], [1, -1], [0, 1]])
    found = count_shares(query.partitioning, (counted(query, rows),), 3, sets, ensemble.feature.size)
    assert_array_equal(found[0, :, last], [2, 1, 3])


def test_by_covers_the_ratios_of_others_are_multiplied():
    """And an even half counts where no training weight came."""
    ensemble = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 2.0], 2)
    grown = Grown(ensemble)
    sets = np.array([[0, -1], [1, -1], [0, 1]])
    last = int(np.argmax(ensemble.value[:, 0]))
    assert_array_equal(weigh_shares(grown.forest, grown.nodes, sets)[0, :, last], [2 / 3, 3 / 4, 1])
    empty = Grown(ensemble._replace(cover=np.zeros(5)))
    assert_array_equal(weigh_shares(empty.forest, empty.nodes, sets)[0, :, last], [1 / 2, 1 / 2, 1])
