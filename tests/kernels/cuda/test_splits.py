"""Records of splits say what the walks say."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from leafledger.kernels.cuda.splits import AGAIN, BOTH_LEAVES, FEATURE_AT, HIGH_AT, KIND, lay_out_splits
from leafledger.kernels.trees import lookup
from tests.kernels.cuda.card import tables
from tests.trees import grown, one_tree


@pytest.fixture(autouse=True)
def nothing_is_looked_up(monkeypatch):
    monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)


def test_the_record_of_a_single_split():
    """Values 0 and 4, reached by a quarter and three quarters of the rows: D = -4, a D = -1, and G without the player is their mean."""
    ensemble = one_tree([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0.0, 4.0], [4, 1, 3], 2)
    walks = tables("shapley", ensemble).method.walked.one
    splits = lay_out_splits(walks, 16)
    interval, word = splits.records[:2].view(np.int64).tolist()
    assert (interval & 0xFFFFFFFF, interval >> HIGH_AT) == (0, 0)  # bin 0 alone: at most the only threshold
    assert word & KIND == BOTH_LEAVES
    assert not word & AGAIN
    assert (word >> FEATURE_AT & 0x3FFFFF, word >> HIGH_AT) == (0, 0)  # the only used feature, and the only row of phi
    assert_array_equal(splits.records[2:], [-4.0, -1.0, 3.0])


def test_every_split_has_a_record_and_walks_start_at_their_roots():
    """As many records as splits, each walk's first at level 0, whatever the number of nodes."""
    prepared = tables("shapley", grown(np.random.default_rng(2), 3, 5, 20))
    for walks in prepared.method.walked:
        if walks.start.size:
            splits = lay_out_splits(walks, 16)
            assert splits.start[0] == 0
            assert (np.diff(splits.start.astype(int)) > 0).all()
            assert splits.levels == 5
