"""The nearest change of one feature is that of all values tried one after the other."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from leafledger.kernels.changes.supported import Grid
from tests import naive
from tests.kernels.changes.changing import change_rows
from tests.strategies import N_CATEGORIES, batches, forests
from tests.trees import grown, one_tree, stumps


@given(data=st.data(), ensemble=forests(max_trees=4))
@pytest.mark.slow
def test_none_is_nearer_and_all_cross(data, ensemble):
    """Both ways, on every side, with missing values and categories: what trying all thresholds of the definition finds."""
    assume(ensemble.base.size == 1)
    rows = data.draw(batches(ensemble))
    up, down = data.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    at = data.draw(st.integers(-12, 12)) / 4
    below = at - data.draw(st.sampled_from([0.0, 0.5]))
    found, columns = change_rows(ensemble, rows, at, below, up, down)
    for f, column in enumerate(columns):
        for i, row in enumerate(rows):
            nearest = naive.nearest_change(ensemble, row, column, at, below, up, down)
            assert_array_equal(found.value[f, i], np.nan if nearest is None else nearest)
            if nearest is not None:
                changed = row.copy()
                changed[column] = nearest
                assert found.margin[f, i] == naive.margin(ensemble, changed)[0]
            else:
                assert np.isnan(found.margin[f, i])
                assert np.isnan(found.until[f, i])


@pytest.mark.slow
def test_blocks_of_rows_are_rows_one_by_one():
    """More rows than walk a tree together."""
    rng = np.random.default_rng(0)
    ensemble = stumps([(j % 3, rng.normal(), *rng.normal(size=2)) for j in range(40)], 3)
    rows = rng.normal(size=(100, 3))
    together, _ = change_rows(ensemble, rows, 0.1, 0.1)
    assert np.isfinite(together.value).any(axis=1).all()
    for i in range(100):
        alone, _ = change_rows(ensemble, rows[i : i + 1], 0.1, 0.1)
        for mine, theirs in zip(together, alone, strict=True):
            assert_array_equal(mine[:, i], theirs[:, 0])


def test_what_is_missing_has_no_nearest_number():
    """As the definition has it; the number beside it has one."""
    ensemble, rows = stumps([(0, 1.0, 0.0, 1.0)], 1), np.array([[np.nan], [0.0]])
    found, _ = change_rows(ensemble, rows, 0.5, 0.5)
    expected = [naive.nearest_change(ensemble, row, 0, 0.5, 0.5, True, True) for row in rows]
    assert_array_equal(found.value, [[np.nan if each is None else each for each in expected]])
    assert [each is None for each in expected] == [True, False]


def test_until_says_where_the_crossing_ends():
    """A margin of 1 between 1 and 2 and beyond 3, else 0: the change to 1 holds up to 2, that from 4 down to 3 holds down to 2, to all below 1."""
    ensemble = stumps([(0, 1.0, 0.0, 1.0), (0, 2.0, 0.0, -1.0), (0, 3.0, 0.0, 1.0)], 1)
    found, _ = change_rows(ensemble, np.array([[0.5], [4.0], [2.5], [1.1]]), 0.5, 0.5)
    above = np.nextafter([1.0, 2.0, 3.0], np.inf)
    assert_array_equal(found.value, [[above[0], 3.0, 2.0, 1.0]])
    assert_array_equal(found.until, [[2.0, above[1], above[0], np.nan]])
    found, _ = change_rows(ensemble, np.array([[2.9]]), 0.5, 0.5, down=False)
    assert_array_equal(found.value[0], above[2:])
    assert_array_equal(found.until, [[np.nan]])
    found, _ = change_rows(ensemble, np.array([[2.1], [0.5]]), 0.5, 0.5, up=False)
    assert_array_equal(found.value, [[2.0, np.nan]])
    assert_array_equal(found.until, [[above[0], np.nan]])


def test_bins_without_a_supported_value_are_passed_over():
    """Whole numbers alone, of which two thresholds between 1 and 2 leave none: on the way to the first that crosses, and on the way to the end."""
    ensemble = stumps([(0, 0.5, 0.0, 1.0), (0, 1.2, 0.0, -1.0), (0, 1.4, 0.0, 1.0), (0, 2.5, 0.0, -1.0)], 1)
    whole = Grid(1.0, np.float64)
    found, _ = change_rows(ensemble, np.array([[0.0], [3.0]]), 0.5, 0.5, grid=whole)
    assert_array_equal(found.value, [[1.0, 2.0]])
    assert_array_equal(found.until, [[2.0, 1.0]])


def test_of_equally_near_numbers_the_smaller():
    """One half away on both sides."""
    ensemble = stumps([(0, 1.0, 1.0, 0.0), (0, np.nextafter(2.0, 0.0), 0.0, 1.0)], 1)
    found, _ = change_rows(ensemble, np.array([[1.5]]), 0.5, 0.5)
    assert_array_equal(found.value, [[1.0]])


@pytest.mark.parametrize(("codes", "expected"), [([2.0, 1.0], 2.0), ([1.0, 2.0], 1.0), ([0.0], np.nan)])
def test_categories_are_tried_in_order(codes, expected):
    """The first of those listed that crosses; none where none of them does, and never one that is not listed."""

    def build():
        ensemble = stumps([(0, 0.5, 0.0, 1.0)], 1)
        words = np.array([1 << 0], np.uint32)  # code 0 goes left
        return ensemble._replace(
            n_categories=np.array([N_CATEGORIES], np.int32), category_set=np.array([0, -1, -1], np.int32), set_start=np.array([0, 1]), set_words=words
        )

    found, _ = change_rows(build(), np.array([[0.0], [np.nan], [9.0]]), 0.5, 0.5, codes=np.array(codes))
    assert_array_equal(found.value[0, 0], expected)
    found, _ = change_rows(build(), np.array([[np.nan], [9.0]]), 0.5, 0.5, codes=np.array([0.0]))
    assert_array_equal(found.value, [[0.0, 0.0]])


def test_features_are_changed_alone():
    """Each of three as if it were the only one that may be changed, in trees that ask for the others above it and below."""
    rng = np.random.default_rng(1)
    ensemble, rows = grown(rng, 5, 4, 3), rng.normal(size=(20, 3))
    together, columns = change_rows(ensemble, rows, 0.1, 0.1)
    assert np.isfinite(together.value).any(axis=1).all()
    for f in range(3):
        alone, column = change_rows(ensemble, rows, 0.1, 0.1, asked=[f])
        assert column == columns[f]
        for mine, theirs in zip(together, alone, strict=True):
            assert_array_equal(mine[f], theirs[0])


def test_categories_that_a_tree_asks_for_twice():
    """Code 0 goes left, and of the others 1 alone to the leaf that crosses."""
    tree = one_tree([0, -1, 0, -1, -1], [0] * 5, [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 0, 0, 1, 0], [4, 1, 3, 1, 2], 1)
    sets = {"category_set": np.array([0, -1, 1, -1, -1], np.int32), "set_start": np.array([0, 1, 2]), "set_words": np.array([1, 2], np.uint32)}
    found, _ = change_rows(tree._replace(n_categories=np.array([N_CATEGORIES], np.int32), **sets), np.array([[0.0], [1.0], [2.0]]), 0.5, 0.5)
    assert_array_equal(found.value, [[1.0, 0.0, 1.0]])
    assert_array_equal(found.margin, [[1.0, 0.0, 1.0]])
