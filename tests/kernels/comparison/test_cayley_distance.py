"""Both counts of swaps: the fewest, found by trying all; their axioms; and lists written down by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.comparison.cayley_distance import count_list_swaps, count_swaps
from tests import naive


def count(measure, k, first, second):
    """Of two rankings, lists of players."""
    ranks = [np.array([order.index(j) + 1.0 for j in range(len(order))])[None, :, None] for order in (first, second)]
    return int(measure(k, *ranks)[0, 0])


@given(data=st.data(), n=st.integers(1, 6), k=st.integers(1, 3))
def test_swaps_are_the_fewest_that_there_are(data, n, k):
    """By breadth-first search over all swaps: from a list to itself in the order of the other; and of two lists whose missing players were added."""
    first, second = (data.draw(st.permutations(range(n))) for _ in range(2))
    assert count(count_swaps, k, first, second) == naive.swaps(first[:k], naive.sort_by(first[:k], second[:k]))
    assert count(count_list_swaps, k, first, second) == naive.swaps(*naive.lengthen(first[:k], second[:k]))


@given(data=st.data(), n=st.integers(1, 12), k=st.integers(1, 12))
def test_swaps_of_one_list(data, n, k):
    """0 of a list to itself, but not to itself alone; fewer than the list has; the same as of both lists where these have the same members."""
    first, second = (data.draw(st.permutations(range(n))) for _ in range(2))
    there, back = count(count_swaps, k, first, second), count(count_swaps, k, second, first)
    assert count(count_swaps, k, first, first) == count(count_swaps, 1, first, second) == 0
    assert there < min(k, n)
    assert (there == 0) == (naive.sort_by(first[:k], second[:k]) == first[:k])
    if set(first[:k]) == set(second[:k]):
        assert there == back == count(count_list_swaps, k, first, second)


@given(data=st.data(), n=st.integers(1, 12), k=st.integers(1, 12))
def test_swaps_of_both_lists_are_a_distance(data, n, k):
    """0 of a list to itself alone, the same both ways; the first player is the same or not; fewer than there are players in both lists, and as many
    as one list has where they have none in common."""
    first, second = (data.draw(st.permutations(range(n))) for _ in range(2))
    assert count(count_list_swaps, k, first, first) == 0
    assert count(count_list_swaps, k, first, second) == count(count_list_swaps, k, second, first)
    assert count(count_list_swaps, 1, first, second) == (first[0] != second[0])
    together = set(first[:k]) | set(second[:k])
    assert count(count_list_swaps, k, first, second) < len(together)
    assert len(together) < 2 * k or count(count_list_swaps, k, first, second) == k
    assert (count(count_list_swaps, k, first, second) == 0) == (first[:k] == second[:k])


@pytest.mark.parametrize(
    ("k", "first", "second", "of_one", "of_both"),
    [
        (3, [0, 1, 2, 3], [1, 0, 2, 3], 1, 1),
        (3, [0, 1, 2, 3], [1, 2, 0, 3], 2, 2),  # a cycle of three
        (3, [0, 1, 2, 3], [0, 1, 3, 2], 0, 1),  # 2 is last anyhow; but 0 1 2 and 3 against 0 1 3 and 2
        (3, [2, 0, 1, 3], [0, 1, 3, 2], 2, 3),  # 2 0 1 becomes 0 1 2
        (3, [0, 1, 3, 2], [2, 0, 1, 3], 0, 3),  # and the other way 0 1 3 is in order
        (2, [0, 1, 2, 3], [2, 3, 0, 1], 0, 2),  # 0 1, then 2 3, against 2 3, then 0 1
        (2, [0, 1, 2, 3], [3, 2, 0, 1], 0, 2),  # the other list's order at the end, not one's own
        (9, [0, 1, 2, 3], [1, 0, 3, 2], 2, 2),
    ],
)
def test_lists_written_down(k, first, second, of_one, of_both):
    """Where one can see the swaps."""
    assert count(count_swaps, k, first, second) == of_one
    assert count(count_list_swaps, k, first, second) == of_both


@pytest.mark.parametrize("measure", [count_swaps, count_list_swaps])
def test_rows_and_outputs_are_counted_apart(measure):
    """Many at once give what each gives alone; no players, no swaps."""
    rng = np.random.default_rng(0)
    a, b = (np.argsort(rng.random((2, 7, 50)), axis=1) + 1 for _ in range(2))
    found = measure(4, a, b)
    for k, i in np.ndindex(2, 50):
        alone = measure(4, a[k : k + 1, :, i : i + 1].astype(np.float64), b[k : k + 1, :, i : i + 1].astype(np.float64))
        assert found[k, i] == alone[0, 0]
    assert measure(3, np.zeros((1, 0, 2)), np.zeros((1, 0, 2))).tolist() == [[0.0, 0.0]]
