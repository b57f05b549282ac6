"""What is kept of a background: of every leaf, how many rows fail just which of its players."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.marginal import background as counting
from leafledger.kernels.marginal.background import check_weights, count_background, distinct, first_codes, weigh_leaves
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.lookup import WORD_BITS
from tests.kernels.marginal.cutting import binned, cut, failed, failed_by_code, leaves_of
from tests.strategies import batches, forests
from tests.trees import chain, join, one_tree, symmetric

CODE = st.sampled_from((0, 1, 2, (1 << WORD_BITS) - 1))


def histograms(forest, partitioning, known):
    """Of every leaf of the model: times of each set of failed features, from what is known of a background."""
    found, first = {}, first_codes(partitioning.coded)
    for subtrees, start, codes, times in (
        (partitioning.coded, first, [c for size in np.diff(first) for c in range(size)], known.counts),
        (partitioning.deep, known.start, [sum(int(word) << WORD_BITS * w for w, word in enumerate(p)) for p in known.patterns], known.times),
    ):
        for u in range(subtrees.size):
            for leaf in leaves_of(subtrees, u):
                histogram = found[int(subtrees.leaves.node[leaf])] = Counter()
                for code, n in zip(codes[start[u] : start[u + 1]], times[start[u] : start[u + 1]], strict=True):
                    if n:
                        histogram[frozenset(int(forest.column[player]) for player in failed_by_code(subtrees, u, leaf, code))] += int(n)
    return found


@pytest.mark.parametrize("dense_bits", [0, 16])
@given(data=st.data(), ensemble=forests(), most_bits=st.sampled_from((0, 2, 12)))
def test_rows_are_counted_by_the_players_they_fail(dense_bits, data, ensemble, most_bits):
    """At every leaf as walking counts them, whether patterns are counted densely or sorted."""
    rows = data.draw(batches(ensemble, max_rows=8))
    tables, forest, partitioning = cut(ensemble, most_bits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "DENSE_BITS", dense_bits)
        found = histograms(forest, partitioning, count_background(binned(tables, rows), partitioning, len(rows)))
    assert found == {leaf: Counter(failed(ensemble, leaf, row) for row in rows) for leaf in np.flatnonzero(ensemble.feature < 0).tolist()}


@pytest.mark.again
@pytest.mark.slow
def test_a_pattern_may_have_several_words():
    """A leaf under more players than a word has bits."""
    n = 2 * WORD_BITS + 1
    rng = np.random.default_rng(n)
    ensemble = chain(rng.permutation(n), rng.standard_normal(n + 1), np.ones(n + 1), n)
    rows = (rng.random((9, n)) < 0.98).astype(float)
    tables, forest, partitioning = cut(ensemble, 12)
    known = count_background(binned(tables, rows), partitioning, len(rows))
    assert known.patterns.shape[1] == 3
    assert (known.patterns >= 0).all()
    found = histograms(forest, partitioning, known)
    assert found == {leaf: Counter(failed(ensemble, leaf, row) for row in rows) for leaf in np.flatnonzero(ensemble.feature < 0).tolist()}


@given(st.lists(st.tuples(st.integers(0, 2), CODE, CODE, st.integers(1, 5))))
def test_equal_patterns_are_one(listed):
    """With their times added up, by subtree and then by the highest word."""
    expected = Counter()
    for subtree, low, high, times in listed:
        expected[subtree, high, low] += times
    subtree, low, high, times = np.array(listed, np.int64).reshape(-1, 4).T
    found = distinct(subtree, np.stack((low, high), axis=1), times)
    assert [(u, high, low, n) for u, (low, high), n in zip(*(array.tolist() for array in found), strict=True)] == [
        (*key, expected[key]) for key in sorted(expected)
    ]


@given(data=st.data(), ensemble=forests(), most_bits=st.sampled_from((0, 2, 12)))
def test_backgrounds_add_up(data, ensemble, most_bits):
    """Counts of parts are the counts of the whole, so that who counts what, and when, does not matter."""
    rows = data.draw(batches(ensemble, max_rows=6))
    tables, _, partitioning = cut(ensemble, most_bits)
    whole, a, b, c = (count_background(binned(tables, some), partitioning, len(some)) for some in (rows, rows[:1], rows[1:2], rows[2:]))
    for together in (a.merge([b, c]), c.merge([a.merge([b])]), whole.merge([])):
        for found, expected in zip(together, whole, strict=True):
            assert found.dtype == expected.dtype
            assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("most_bits", [0, 2, 12])
def test_leaf_weights_stand_for_the_rows_behind_them(most_bits):
    """At symmetric trees, where the rows of a leaf compare alike at every split: where covers count the background's rows."""
    rng = np.random.default_rng(3)
    rows, ensemble = rng.standard_normal((200, 3)), symmetric(rng, (0, 2, 0, 1), 3)
    passing = [[not failed(ensemble, v, row) for row in rows] for v in range(ensemble.feature.size)]
    ensemble = ensemble._replace(cover=np.sum(passing, axis=1).astype(float))
    tables, forest, partitioning = cut(ensemble, most_bits)
    counted = count_background(binned(tables, rows), partitioning, len(rows))
    for found, expected in zip(weigh_leaves(forest, partitioning), counted, strict=True):
        assert found.tolist() == expected.tolist()


def test_leaf_weights_must_say_enough():
    """Weights of a leaf that other splits than its own could cut, and none at all."""
    ensemble = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2)
    with pytest.raises(InvalidParameters, match="tree 0, node 2: a leaf does not say how its rows compare at every split of the tree"):
        weigh_leaves(*cut(ensemble, 12)[1:])
    with pytest.raises(InvalidParameters, match="tree 0: its leaves have no weights"):
        weigh_leaves(*cut(ensemble._replace(cover=np.zeros(5)), 12)[1:])


def test_a_model_is_asked_once_whether_its_weights_say_enough():
    """Of all its trees: what is said is of the first that does not; a tree may ask twice what is known already, or nothing at all."""
    rng = np.random.default_rng(0)
    uneven, even = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2), symmetric(rng, (0, 1, 0), 2)
    twice = one_tree([0, 0, -1, -1, -1], 0.5, [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], range(5), [2, 1, 1, 1, 0], 2)
    other = one_tree([0, 1, 0, -1, -1, -1, -1], 0.5, [1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1], range(7), [4, 2, 2, 1, 1, 1, 1], 2)
    leaf = one_tree([-1], [0], [-1], [-1], [1.0], [1.0], 2)
    check_weights(make_forest(join([even, twice, leaf, even]))[1])
    for bad, says in ((uneven, "tree 2, node "), (other, "tree 2, node "), (even._replace(cover=np.zeros(15)), "tree 2: its leaves have no weights")):
        with pytest.raises(InvalidParameters, match=says):
            check_weights(make_forest(join([even, twice, bad]))[1])
