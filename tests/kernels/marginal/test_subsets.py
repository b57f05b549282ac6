"""Sums over subsets are those of the definition, and give the values of a game; leaves that keep them are right however many features they have."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from leafledger.kernels.marginal.coalitions import Weights, each_group
from leafledger.kernels.marginal.subsets import sum_coalitions, sum_over_subsets
from tests import naive
from tests.kernels.attributing import ATOL
from tests.kernels.marginal.cutting import OWEN, failed, play
from tests.trees import chain

MOST = 6


def integral(b, a):
    """Of t^b (1 - t)^a over [0, 1]: Shapley's weight of b players among a + b others."""
    return naive.shapley_weight(b, a + b + 1)


WEIGHTS = Weights(*(np.array([[float(integral(b, a)) for a in range(MOST)] for b in range(MOST)]) for _ in range(2)))


@given(st.integers(0, 6).flatmap(lambda n: hnp.arrays(np.float64, 1 << n, elements=st.integers(-100, 100))))
def test_a_set_has_the_sum_of_its_subsets(numbers):
    """Also the empty one, and that of all."""
    found = numbers.copy()
    sum_over_subsets(found)
    assert found.tolist() == [sum(numbers[s] for s in range(numbers.size) if s & ~mine == 0) for mine in range(numbers.size)]


@given(data=st.data(), n_players=st.integers(1, 5))
def test_values_are_differences_of_sums(data, n_players):
    """Of the game that a leaf is, for every set of players that a row may pass, in exact fractions: with weights of others and of own players."""
    own = data.draw(st.integers(1, (1 << n_players) - 1))
    times = data.draw(st.lists(st.integers(0, 3), min_size=1 << n_players, max_size=1 << n_players).filter(any))
    n_own, sets = own.bit_count(), range(1 << n_players)
    without, joined = sum_coalitions(np.array(times) / sum(times), own, n_players, WEIGHTS)
    for passed in sets:
        v = [Fraction(sum(times[b] for b in sets if b & ~s == 0), sum(times)) * (s & ~passed == 0) for s in sets]
        for p in range(n_players):
            if not own >> p & 1:
                continue
            expected = Fraction(0)
            for s in sets:
                if not s >> p & 1:
                    mine, others = (s & own).bit_count(), (s & ~own).bit_count()
                    weight = integral(mine, n_own - 1 - mine) * integral(others, n_players - n_own - others)
                    expected += weight * (v[s | 1 << p] - v[s])
            rest = passed & ~(1 << p)
            assert_allclose(joined[passed] - (joined[rest] + without[rest]), float(expected), rtol=0, atol=1e-15)


def owen_of_two_rows(ensemble, row, other, group, leaf):
    """What a leaf adds to Owen's values against one background row, by feature, in exact fractions: see ``patterns`` for the formula."""
    lost, gained = failed(ensemble, leaf, row), failed(ensemble, leaf, other)
    found = dict.fromkeys(lost | gained, Fraction(0))
    for p in lost | gained:
        others = [{int(group[j]) for j in some if group[j] != group[p]} for some in (lost, gained)]
        own = [{j for j in some if group[j] == group[p] and j != p} for some in (lost, gained)]
        if others[0] & others[1] or lost & gained:
            continue
        sign = 1 if p in gained else -1
        found[p] = sign * integral(len(others[1]), len(others[0])) * integral(len(own[1]), len(own[0])) * Fraction(float(ensemble.value[leaf, 0]))
    return found


@pytest.mark.again
@pytest.mark.parametrize("kept", [(12, 8), (0, 0)], ids=["sums", "patterns"])
@pytest.mark.slow
def test_groups_that_come_whole_may_have_any_number_of_features(kept):
    """A leaf under 70 features, of which a group of three sees the others as two players: sums over few sets, of patterns of two words."""
    n = 70
    rng = np.random.default_rng(n)
    ensemble = chain(np.arange(n), rng.integers(-8, 8, n + 1) / 4, np.ones(n + 1), n)
    group = np.repeat([0, 1, 2], (3, 64, 3))
    rows, background = ((rng.random((size, n)) < 0.97).astype(float) for size in (2, 3))
    expected = np.zeros((len(rows), n))
    for i, row in enumerate(rows):
        for other in background:
            for leaf in np.flatnonzero(ensemble.feature < 0):
                for p, value in owen_of_two_rows(ensemble, row, other, group, leaf).items():
                    expected[i, p] += float(value) / len(background)
    phi = play(ensemble, rows, background, each_group, OWEN, kept, group)
    assert_allclose(phi[:, 0], expected, rtol=0, atol=ATOL)
