"""Games as groups see them: who comes alone, who comes together, who gains; and which of them background rows fail."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.marginal.background import Background
from leafledger.kernels.marginal.coalitions import (
    Leaves,
    View,
    add_gains,
    any_sequence,
    each_group,
    everyone,
    in_sequence,
    view_patterns,
    whole_groups,
)
from leafledger.kernels.trees.lookup import WORD_BITS

PLAYERS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), unique_by=lambda pair: pair[0], max_size=8)


@given(PLAYERS, st.sampled_from((everyone, whole_groups, each_group)))
def test_a_view_has_own_players_first_and_others_behind(drawn, views):
    """Own players are numbered as their rows of phi are listed; all numbers are used, and players of different groups are never one."""
    players, groups = np.array(drawn, np.int32).reshape(-1, 2).T
    for view in views(players, groups):
        assert sorted(set(view.who.tolist())) == list(range(view.n_players))
        assert view.rows.size <= view.n_players
        for a, ours in enumerate(view.who):
            for b, theirs in enumerate(view.who):
                together = ours == theirs
                assert together <= (groups[a] == groups[b])
                assert together == (a == b or (groups[a] == groups[b] and (views is whole_groups or ours >= view.rows.size)))


@given(PLAYERS)
def test_everybody_gains_once(drawn):
    """Over all views of a subtree: each player by itself, or among its group, or each group as one."""
    players, groups = np.array(drawn, np.int32).reshape(-1, 2).T
    (alone,) = everyone(players, groups)
    assert alone.rows[alone.who].tolist() == players.tolist()
    (quotient,) = whole_groups(players, groups)
    assert quotient.rows[quotient.who].tolist() == groups.tolist()
    gained = []
    for view in each_group(players, groups):
        own = view.who < view.rows.size
        assert view.rows[view.who[own]].tolist() == players[own].tolist()
        assert len(set(groups[own].tolist())) <= 1
        assert view.n_players == own.sum() + len(set(groups[~own].tolist()))
        gained += players[own].tolist()
    assert sorted(gained) == sorted(players.tolist())


@given(PLAYERS, st.permutations(range(4)))
def test_in_a_sequence_later_groups_are_absent(drawn, place):
    """Own players come first, all of earlier groups are one player behind them, and tables have one size in any sequence."""
    players, groups = np.array(drawn, np.int32).reshape(-1, 2).T
    views, others = in_sequence(np.array(place))(players, groups), any_sequence(players, groups)
    assert len(views) == max(1, len(set(groups.tolist())))
    for view, other in zip(views, others, strict=True):
        assert (view.n_players, view.rows.tolist()) == (other.n_players, other.rows.tolist())
        n_own = view.rows.size
        mine = {int(group) for group, row in zip(groups, players, strict=True) if row in view.rows}
        for who, row, group in zip(view.who.tolist(), players.tolist(), groups.tolist(), strict=True):
            if group in mine:
                assert view.rows[who] == row
            else:
                assert who == (n_own if all(place[group] < place[own] for own in mine) else -1)


def test_rows_that_fail_an_absent_player_are_left_out():
    """Of a view's patterns, whatever else they fail."""
    background = Background(np.zeros(0, np.int64), np.array([0, 4]), np.array([[0b000], [0b001], [0b010], [0b110]]), np.array([4, 3, 2, 1]))
    seen, times = view_patterns(background, 0, View(np.array([0, -1, 1]), np.zeros(1, np.int32)))
    assert (seen.tolist(), times.tolist()) == ([[0], [1]], [4, 3])


@pytest.mark.parametrize("n_players", [5, WORD_BITS, WORD_BITS + 1, 3 * WORD_BITS])
def test_whoever_fails_a_member_fails_the_group(n_players):
    """Patterns of any number of words, in views of few and of many players."""
    rng = np.random.default_rng(n_players)
    sets = [set(np.flatnonzero(rng.random(n_players) < 0.1).tolist()) for _ in range(20)]
    words = -(-n_players // WORD_BITS)
    patterns = np.array([[sum(1 << p - w * WORD_BITS for p in some if p // WORD_BITS == w) for w in range(words)] for some in sets], np.int64)
    start, times = np.array([0, 3, 20]), np.arange(1, 21)
    background = Background(np.zeros(0, np.int64), start, patterns, times)
    for who in (np.arange(n_players), rng.permutation(n_players), rng.integers(0, 3, n_players)):
        seen, found_times = view_patterns(background, 1, View(who.astype(np.int64), np.zeros(1, np.int32)))
        found = [{w * WORD_BITS + bit for w, word in enumerate(row) for bit in range(WORD_BITS) if word >> bit & 1} for row in seen.tolist()]
        assert found == [{int(who[p]) for p in some} for some in sets[3:]]
        assert found_times.tolist() == times[3:].tolist()


def test_gains_go_to_rows_and_outputs_of_the_leaf():
    """A leaf of two numbers from output 1 on, whose own players gain in rows 2 and 0; another leaf and other rows of data are untouched."""
    none = np.zeros(0, np.int64)
    leaves = Leaves(
        marks=np.zeros((0, 5), np.int32),
        start=none,
        words=np.zeros(0, np.uint32),
        column=np.array([0, 1, 3]),
        target=np.array([1, 2, 0], np.int32),
        value=np.array([[7.0, 7.0], [3.0, -2.0]]),
        output=np.array([0, 1], np.int32),
    )
    phi = np.ones((3, 3, 2))
    add_gains(leaves, 1, np.array([0.5, 2.0]), 1, phi)
    expected = np.ones((3, 3, 2))
    expected[1, [2, 0], 1] += [1.5, 6.0]
    expected[2, [2, 0], 1] += [-1.0, -4.0]
    assert (phi == expected).all()
