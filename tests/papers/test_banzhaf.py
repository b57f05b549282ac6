"""The modified Cayley distance of Karczmarz et al. 2022, and what Table 1 is made of."""

from itertools import permutations

import numpy as np
import pytest

from tests.papers import banzhaf
from tests.papers import trees as trees_


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("abc", "abc", 0),
        ("abc", "bac", 1),
        ("abc", "bca", 2),
        ("abc", "abe", 0),
        ("abe", "acb", 0),
        ("eab", "abc", 2),
        ("abc", "eab", 0),
        ("ab", "cd", 0),
    ],
)
def test_swaps_by_hand(one, other, distance):
    """A feature that the other lacks belongs at the end: e, a, b becomes a, b, e; the other way round a, b, c is in order."""
    assert banzhaf.swaps(one, other) == distance


def test_swaps_are_the_size_less_the_cycles():
    """Cayley's distance of two permutations of four, whichever is taken first."""
    for other in permutations(range(4)):
        seen, cycles = set(), 0
        for start in range(4):
            cycles += start not in seen
            while start not in seen:
                seen.add(start)
                start = other[start]
        assert banzhaf.swaps(range(4), other) == banzhaf.swaps(other, range(4)) == 4 - cycles


def test_printed_swaps_of_one_hundred_trees():
    """.02 and 1.05 (Table 1), whichever order is sorted by the other."""
    _, ensemble, rows, _ = next(iter(banzhaf.models()))
    orders = [banzhaf.order(ensemble, value, rows) for value in (banzhaf.SHAPLEY, banzhaf.BANZHAF)]
    for one, other in permutations(orders):
        assert [round(banzhaf.mean_swaps(one, other, k), 2) for k in banzhaf.FIRST] == [0.02, 1.05]


def test_the_boston_data_are_the_papers():
    """506 rows and 13 columns, and a tree of depth 10; trees predict the mean of what they were trained on."""
    (_, forest, rows, _), (_, tree, *_) = [*banzhaf.models()][:2]
    assert rows.shape == (506, 13)
    assert forest.root.size == 100
    assert trees_.depth_of(tree) == 10
    prediction = np.array([_predict(tree, row) for row in rows])
    assert abs(prediction.mean() - 22.5328) < 1e-4


def _predict(tree, row):
    node = 0
    while tree.feature[node] >= 0:
        node = tree.left[node] if row[tree.feature[node]] <= tree.threshold[node] else tree.right[node]
    return tree.value[node, 0]
