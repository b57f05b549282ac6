"""Places among all players: scores of those in splits, 0 for all others, sorted as a whole; rankings as they say; and ranks among some."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from leafledger.kernels.arrays.ordering import SCORE, SIZE
from leafledger.kernels.comparison.player_ranks import place_ranks, place_scores, rank_among

SCORES = st.sampled_from((-2.0, -1.0, -0.0, 0.0, 1.0, 2.0))


def places_of(keys):
    """1 for the smallest key; equal ones in their order."""
    order = sorted(range(len(keys)), key=lambda j: keys[j])
    return [order.index(j) + 1 for j in range(len(keys))]


@given(data=st.data(), n_all=st.integers(1, 6))
def test_scores_are_placed_among_zeros(data, n_all):
    """As a sort of all players has them, by score and by magnitude."""
    players = np.array(sorted(data.draw(st.sets(st.integers(0, n_all - 1)))), np.int32)
    scores = np.array(data.draw(st.lists(SCORES, min_size=players.size, max_size=players.size)))
    of_all = np.zeros(n_all)
    of_all[players] = scores
    found = place_scores(scores[None, :, None], players, n_all)
    assert found.by_score[0, :, 0].tolist() == [places_of((-of_all).tolist())[j] for j in players]
    assert found.by_size[0, :, 0].tolist() == [places_of((-np.abs(of_all)).tolist())[j] for j in players]
    assert found.by_score.dtype == found.by_size.dtype == np.int64


@given(data=st.data(), n_all=st.integers(1, 6))
def test_rankings_are_taken_as_they_are(data, n_all):
    """Players in no split keep their places too; whom a row leaves out comes last, in order. Of places in the other order nothing is known."""
    top, order = data.draw(st.integers(0, n_all)), data.draw(st.permutations(range(n_all)))
    ranks = np.zeros(n_all)
    ranks[order[:top]] = np.arange(1, top + 1)
    players = np.array(sorted(data.draw(st.sets(st.integers(0, n_all - 1)))), np.int64)
    found, by_size = place_ranks(ranks[None, :, None], players, SCORE), place_ranks(ranks[None, :, None], players, SIZE)
    whole = [*order[:top], *sorted(order[top:])]
    assert found.by_score[0, :, 0].tolist() == [whole.index(j) + 1 for j in players]
    assert_array_equal(found.by_score, by_size.by_size)
    assert found.by_size is by_size.by_score is None
    twice = found.take(np.array([0, 0]))
    assert twice.by_size is None
    assert_array_equal(twice.by_score, np.concatenate((found.by_score, found.by_score), axis=2))


@given(st.lists(st.integers(1, 20), unique=True))
def test_ranks_among_some(places):
    """Nobody else counts."""
    assert rank_among(np.array(places, np.int64)[None, :, None])[0, :, 0].tolist() == [1 + sum(other < mine for other in places) for mine in places]


def test_equal_scores_keep_the_order_of_players():
    """Also where a zero is negative."""
    assert place_scores(np.array([0.0, 1.0, -0.0, 1.0])[None, :, None], np.arange(4), 4).by_score[0, :, 0].tolist() == [3, 1, 4, 2]


def test_players_are_selected_with_their_ranks():
    """In the order that is asked for."""
    found = place_scores(np.array([2.0, -1.0, 0.5])[None, :, None], np.arange(3, dtype=np.int32), 4)
    some = found.of_players(np.array([2, 0]))
    assert_array_equal(some.by_score, found.by_score[:, [2, 0]])
    assert_array_equal(some.by_size, found.by_size[:, [2, 0]])
