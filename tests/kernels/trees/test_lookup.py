"""A tree that is looked up is as good as its comparisons: their outcomes are its code, and its code is its row of a table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.lookup import (
    ENTRIES_PER_NODE,
    LOOKUP_ROWS,
    MAX_COMPARISONS,
    Comparisons,
    add_lookups,
    look_up,
    outcomes,
    worth_looking_up,
)
from tests import naive
from tests.strategies import batches, forests
from tests.trees import symmetric


def question(ensemble, node):
    """What a split compares, in the ensemble's own numbers."""
    feature, missing_left, category_set = int(ensemble.feature[node]), bool(ensemble.missing_left[node]), int(ensemble.category_set[node])
    return feature, missing_left, category_set, float(ensemble.threshold[node]) if category_set < 0 else None


def splits_of_trees(ensemble):
    """Every tree's splits."""
    found = []
    for root in ensemble.root:
        pending, splits = [int(root)], []
        while pending:
            node = pending.pop()
            if ensemble.feature[node] >= 0:
                splits.append(node)
                pending += [int(ensemble.left[node]), int(ensemble.right[node])]
        found.append(splits)
    return found


@given(ensemble=forests(max_depth=6, max_features=2))
def test_splits_have_one_number_where_they_compare_the_same(ensemble):
    """Numbers count a tree's distinct comparisons from 0, and each is given by a split that makes it; -0.0 and 0.0 are one threshold."""
    comparisons = make_forest(ensemble)[1].comparisons
    for tree, splits in enumerate(splits_of_trees(ensemble)):
        numbers = {question(ensemble, node): int(comparisons.number[node]) for node in splits}
        assert sorted(numbers.values()) == list(range(comparisons.start[tree + 1] - comparisons.start[tree]))
        for node in splits:
            assert comparisons.number[node] == numbers[question(ensemble, node)]
        made = comparisons.node[comparisons.start[tree] : comparisons.start[tree + 1]]
        assert comparisons.number[made].tolist() == sorted(numbers.values())
    assert (comparisons.number[ensemble.feature < 0] == -1).all()


def looked_up(ensemble, rows, trees, targets, tables, n_targets):
    """What ``add_lookups`` adds for every row, ``(n_targets, n)``, to ones."""
    bins, forest = make_forest(ensemble)
    values = np.zeros((bins.column.size, padded(len(rows))))
    values[:, : len(rows)] = rows.T[bins.column]
    found = np.zeros(values.shape, bin_dtype(bins))
    bin_rows(values, bins, found)
    out = np.ones((n_targets, values.shape[1]))
    add_lookups(found, frozen(look_up(forest.splits, forest.comparisons, trees, targets, tables)), out)
    return out[:, : len(rows)], forest


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@given(data=st.data(), ensemble=forests(max_depth=3))
@pytest.mark.slow
def test_a_row_finds_the_row_of_its_code(width, data, ensemble):
    """Bit b of the code is the outcome of comparison b by the words of the ensemble; of its row every number goes to its own target."""
    rows = data.draw(batches(ensemble))
    comparisons = make_forest(ensemble)[1].comparisons
    trees = [t for t in range(ensemble.root.size) if comparisons.start[t + 1] > comparisons.start[t]]
    rng = np.random.default_rng(width)
    tables = [rng.integers(-8, 9, (1 << int(np.diff(comparisons.start)[t]), width)) / 4 for t in trees]
    targets = [rng.permutation(8)[:width] for _ in trees]
    found, _ = looked_up(ensemble, rows, trees, targets, tables, 8)
    expected = np.ones(found.shape)
    for tree, target, table in zip(trees, targets, tables, strict=True):
        made = comparisons.node[comparisons.start[tree] : comparisons.start[tree + 1]]
        for i, row in enumerate(rows):
            code = sum(1 << b for b, node in enumerate(made) if naive.goes_left(ensemble, node, float(row[ensemble.feature[node]])))
            expected[target, i] += table[code]
    assert (found == expected).all()


@pytest.mark.slow
def test_more_rows_than_are_looked_up_at_once():
    """Codes of nine bits and more are wider than a byte; blocks of rows follow each other."""
    rng = np.random.default_rng(0)
    ensemble = symmetric(rng, range(9), 9)
    rows = rng.standard_normal((40 if config.DISABLE_JIT else LOOKUP_ROWS + 200, 9))
    table = rng.integers(0, 1 << 20, (512, 2)).astype(float)
    found, forest = looked_up(ensemble, rows, [0], [np.array([1, 0])], [table], 2)
    threshold = ensemble.threshold[forest.comparisons.node]
    code = ((rows[:, ensemble.feature[forest.comparisons.node]] <= threshold) << np.arange(9)).sum(axis=1)
    assert (found == 1 + table[code].T[::-1]).all()


@pytest.mark.parametrize(
    ("n_comparisons", "columns", "n_nodes", "chosen"),
    [
        (0, 1, 1, False),
        (3, 4, 1, ENTRIES_PER_NODE >= 8 * 4),
        (3, 5, 1, ENTRIES_PER_NODE >= 8 * 5),
        (MAX_COMPARISONS, 1, 2**MAX_COMPARISONS, True),
        (MAX_COMPARISONS + 1, 0, 2**40, False),
    ],
)
def test_tables_are_small_beside_their_trees(n_comparisons, columns, n_nodes, chosen):
    """A tree without comparisons has nothing to look up, one with many has too many codes, whatever its size."""
    comparisons = Comparisons(np.zeros(0, np.int32), np.array([0, n_comparisons]), np.zeros(n_comparisons, np.int64))
    assert worth_looking_up(comparisons, np.array([n_nodes]), np.array([columns])).tolist() == [chosen]


def test_outcomes_are_the_bits_of_their_numbers():
    """Comparison b of row r is bit b of r, as a bin."""
    found = outcomes(3, 8, np.uint16)
    assert found.dtype == np.uint16
    assert (found == [[r >> b & 1 for r in range(8)] for b in range(3)]).all()
