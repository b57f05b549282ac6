"""Leaves of any number of players: values against every background row, and nothing skipped that counts."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.marginal.coalitions import everyone
from leafledger.kernels.marginal.patterns import _skip, count_bits
from tests import naive
from tests.kernels.attributing import ATOL
from tests.kernels.marginal.cutting import SHAPLEY, cut, failed, play
from tests.trees import chain

WORD = st.integers(0, 7) | st.sampled_from(((1 << 62) - 1, 1 << 61, 1 << 40))


@pytest.mark.parametrize("kept", [(8, 12), (0, 0)], ids=["mixed", "patterns"])
def test_a_path_may_have_any_number_of_players(kept):
    """Patterns of several words, by themselves and beside what shorter paths keep: the formula for two rows (Lundberg et al. 2020) in fractions."""
    n = 70
    rng = np.random.default_rng(n)
    ensemble = chain(rng.permutation(n), rng.integers(-8, 8, n + 1) / 4, np.ones(n + 1), n)
    rows, background = ((rng.random((size, n)) < 0.98).astype(float) for size in (2, 7))
    assert cut(ensemble, 0)[2].deep.bits.max() == n
    expected = np.zeros((len(rows), n))
    for leaf in np.flatnonzero(ensemble.feature < 0):
        value = Fraction(float(ensemble.value[leaf, 0])) / len(background)
        theirs = [failed(ensemble, leaf, other) for other in background]
        for i, row in enumerate(rows):
            lost = failed(ensemble, leaf, row)
            for gained in (some for some in theirs if not some & lost):
                for p in lost | gained:
                    weight = naive.shapley_weight(len(gained - {p}), len(lost | gained))
                    expected[i, p] += float((1 if p in gained else -1) * weight * value)
    assert_allclose(play(ensemble, rows, background, everyone, SHAPLEY, kept)[:, 0], expected, rtol=0, atol=ATOL)


@given(data=st.data(), listed=st.lists(st.tuples(WORD, WORD), min_size=1, max_size=40, unique=True), failed=st.tuples(WORD, WORD))
def test_what_is_skipped_meets_the_row(data, listed, failed):
    """From a pattern that meets a row on: all that share it down to that bit, and no other."""
    patterns = np.array(sorted(listed, key=lambda words: words[::-1]), np.int64)
    j = data.draw(st.integers(0, len(patterns) - 1))
    met = [w for w in (1, 0) if patterns[j, w] & failed[w]]
    if not met:
        return
    high = (int(patterns[j, met[0]]) & failed[met[0]]).bit_length() - 1
    above = [[int(row[1]) if met[0] == 0 else 0, int(row[met[0]]) >> high] for row in patterns]
    expected = next((k for k in range(j + 1, len(patterns)) if above[k] != above[j]), len(patterns))
    assert _skip(patterns, j, len(patterns), met[0], int(patterns[j, met[0]]) & failed[met[0]]) == expected


@given(st.integers(0, (1 << 62) - 1))
def test_bits_are_counted(word):
    """Of a word of 62 bits."""
    assert count_bits(word) == word.bit_count()
