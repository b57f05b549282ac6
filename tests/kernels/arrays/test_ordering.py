"""Ranks, groups and pairs, as loops would find them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from leafledger.kernels.arrays.ordering import group_starts, pack_pairs, places_by_score, ranks_by_score, ranks_from_order, unpack_pairs

SCORES = st.sampled_from((-2.0, -0.0, 0.0, 1.0, np.inf, np.nan))  # few, so that many are equal


@given(data=st.data(), scores=arrays(np.float64, array_shapes(max_dims=3, max_side=4), elements=SCORES))
def test_a_rank_counts_who_comes_before(data, scores):
    """Higher scores do, and equal ones that stand earlier; NaN comes behind all numbers."""
    axis = data.draw(st.integers(0, scores.ndim - 1))
    ranks = ranks_by_score(scores, axis)
    assert ranks.dtype == np.int64
    by_row = [np.moveaxis(array, axis, -1).reshape(-1, scores.shape[axis]) for array in (scores, ranks)]
    for row, found in zip(*by_row, strict=True):
        keys = [(np.isnan(x), 0.0 if np.isnan(x) else -x, j) for j, x in enumerate(row)]
        assert found.tolist() == [1 + sum(other < key for other in keys) for key in keys]


@given(data=st.data(), n_all=st.integers(1, 6))
def test_players_that_are_not_listed_have_score_0(data, n_all):
    """Places are those in a sort of all players."""
    players = np.array(sorted(data.draw(st.sets(st.integers(0, n_all - 1)))), np.int64)
    scores = data.draw(arrays(np.float64, players.size, elements=st.sampled_from((-1.0, -0.0, 0.0, 1.0))))
    of_all = np.zeros(n_all)
    of_all[players] = scores
    found = places_by_score(scores[None, :, None], players - np.arange(players.size), n_all)
    assert found[0, :, 0].tolist() == ranks_by_score(of_all, 0)[players].tolist()


@pytest.mark.parametrize("axis", [0, 1])
def test_who_is_left_out_of_an_order_has_rank_0(axis):
    """Two orders of two of four players."""
    order = np.array([[2, 0], [3, 1]])
    expected = np.array([[2, 0, 1, 0], [0, 2, 0, 1]])
    found = ranks_from_order(order if axis else order.T, 4, axis)
    assert (found == (expected if axis else expected.T)).all()


@given(st.lists(st.integers(0, 4)))
def test_groups_start_where_a_sorted_list_has_them(groups):
    """Groups without entries start where the next one does."""
    start = group_starts(np.array(groups, np.int64), 5)
    assert start.dtype == np.int64
    assert [sorted(groups)[start[g] : start[g + 1]] for g in range(5)] == [[g] * groups.count(g) for g in range(5)]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**32 - 1))))
def test_pairs_as_numbers_sort_like_pairs(pairs):
    """And come apart as they were."""
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    packed = np.sort(pack_pairs(first, second))
    assert list(zip(*(part.tolist() for part in unpack_pairs(packed)), strict=True)) == sorted(pairs)
