"""Bins decide every split as floats do, whatever the library's rules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.trees.binning import bin_dtype, bin_ensemble, bin_rows, child_intervals, complement, is_member, read_columns
from leafledger.kernels.trees.ensemble import TreeEnsemble, bit_set, check
from leafledger.kernels.trees.statistics import NO_STATISTICS
from tests import naive
from tests.strategies import batches, forests
from tests.trees import one_tree


def binned(ensemble, rows):
    """Bins ``(used, n)`` of rows, and the tables and splits."""
    tables, splits = bin_ensemble(ensemble)
    values = np.ascontiguousarray(rows.T[tables.column])
    bins = np.zeros(values.shape, bin_dtype(tables))
    bin_rows(values, tables, bins)
    return bins, tables, splits


def goes_left(splits, node, bins):
    """One row at one split, in Python's integers."""
    found = int(bins[splits.feature[node]])
    if splits.members[node] >= 0:
        found = int(is_member(splits.words, splits.members[node], found))
    return (found - int(splits.lower[node])) % 2 ** (8 * bins.itemsize) <= int(splits.span[node]) % 2 ** (8 * bins.itemsize)


@given(data=st.data(), ensemble=forests(max_depth=5))
def test_bins_decide_as_floats_do(data, ensemble):
    """At every split of every forest, a row's bin sends it where its value goes."""
    rows = data.draw(batches(ensemble))
    bins, _, splits = binned(ensemble, rows)
    for node in np.flatnonzero(ensemble.feature >= 0):
        for i, row in enumerate(rows):
            assert goes_left(splits, node, bins[:, i]) == naive.goes_left(ensemble, node, row[ensemble.feature[node]])


@given(data=st.data(), ensemble=forests(max_depth=5))
def test_who_does_not_go_to_one_child_goes_to_the_other(data, ensemble):
    """The complement of a split's interval has all other bins, whichever child is asked about, and is its own complement's complement."""
    rows = data.draw(batches(ensemble))
    bins, _, splits = binned(ensemble, rows)
    nodes = np.flatnonzero(ensemble.feature >= 0)
    to_left = np.array([data.draw(st.booleans()) for _ in nodes], bool)
    lower, span = child_intervals(splits, nodes, to_left)
    asked = splits._replace(lower=splits.lower.copy(), span=splits.span.copy())
    asked.lower[nodes], asked.span[nodes] = lower, span
    for node, left in zip(nodes, to_left, strict=True):
        for i in range(len(rows)):
            assert goes_left(asked, node, bins[:, i]) == (goes_left(splits, node, bins[:, i]) == left)
    assert [array.tolist() for array in complement(*complement(lower, span))] == [lower.tolist(), span.tolist()]


def test_codes_are_truncated_towards_zero():
    """Bins of three categories: their codes, then unseen ones, then missing; what is a little below 0 is category 0."""
    ensemble = one_tree([0, -1, -1], [0.0, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1.0, 2.0], [2, 1, 1], 1)
    categories, of_root = {"n_categories": np.array([3], np.int32), "category_set": np.array([0, -1, -1], np.int32)}, bit_set([0, 3], 3)
    ensemble = ensemble._replace(**categories, set_start=np.array([0, of_root.size]), set_words=of_root)
    check(ensemble)
    rows = np.array([-np.inf, -1.0, -0.999, 0.0, 0.999, 1.0, 2.5, 3.0, 1e300, np.inf, np.nan])
    assert binned(ensemble, rows[:, None])[0].tolist() == [[3, 3, 0, 0, 0, 1, 2, 3, 3, 3, 4]]


def _stumps(thresholds):
    """One tree per threshold, all on one feature; missing goes left at every other."""
    n = len(thresholds)
    node = np.arange(3 * n)
    split = node % 3 == 0
    return TreeEnsemble(
        feature=np.where(split, 0, -1).astype(np.int32),
        threshold=np.where(split, np.repeat(thresholds, 3), 0.0),
        missing_left=node % 6 == 0,
        category_set=np.full(3 * n, -1, np.int32),
        left=np.where(split, node + 1, -1).astype(np.int32),
        right=np.where(split, node + 2, -1).astype(np.int32),
        value=np.zeros((3 * n, 1)),
        cover=np.ones(3 * n),
        root=node[split].astype(np.int32),
        output=np.zeros(n, np.int32),
        base=np.zeros(1),
        n_categories=np.zeros(1, np.int32),
        zero_missing=np.zeros(1, bool),
        set_start=np.zeros(1, np.int64),
        set_words=np.zeros(0, np.uint32),
        single_precision=False,
    )


@pytest.mark.parametrize(("n_thresholds", "dtype"), [(1, np.uint16), (300, np.uint16), (65534, np.uint16), (65535, np.uint32)])
def test_bins_are_as_narrow_as_they_can_be(n_thresholds, dtype):
    """The highest bin of a type is kept for missing; one threshold more and bins are wider."""
    thresholds = np.arange(n_thresholds) / 8
    ensemble = _stumps(thresholds)
    rows = np.concatenate((thresholds[:: max(1, n_thresholds // 200)], thresholds[-1:], [-1.0, thresholds[-1] + 0.01, np.inf, -np.inf, np.nan]))[
        :, None
    ]
    bins, _, splits = binned(ensemble, rows)
    assert bins.dtype == dtype
    present = ~np.isnan(rows[:, 0])
    assert (bins[0, present] == np.searchsorted(thresholds, rows[present, 0], side="left")).all()
    assert bins[0, -1] == np.iinfo(dtype).max
    for node in ensemble.root[:: max(1, n_thresholds // 50)]:
        for i, row in enumerate(rows):
            assert goes_left(splits, node, bins[:, i]) == naive.goes_left(ensemble, node, row[0])


def test_infinite_thresholds_keep_every_number_left():
    """LightGBM splits the missing from the rest at +inf: numbers, infinities included, go left."""
    ensemble = _stumps(np.array([0.5, np.inf]))
    rows = np.array([[-np.inf], [1e308], [np.inf], [np.nan]])
    bins, _, splits = binned(ensemble, rows)
    assert [goes_left(splits, ensemble.root[1], bins[:, i]) for i in range(4)] == [True, True, True, False]


def test_zeros_are_missing_where_the_library_says_so():
    """Under LightGBM's zero_as_missing every |x| <= float32(1e-35) has the bin of missing."""
    ensemble = _stumps(np.array([-0.5, 0.5]))._replace(zero_missing=np.ones(1, bool))
    rows = np.array([[0.0], [-0.0], [1e-36], [-1e-36], [np.nan], [1e-34], [-1.0]])
    bins, _, _ = binned(ensemble, rows)
    assert bins[0].tolist() == [65535] * 5 + [1, 0]


def test_statistics_are_bins_where_they_are_looked_up():
    """Codes 0 to 4 of the only key and of others, compared with 1 and 3: bins count the thresholds below. What they are of is read too."""
    ensemble = one_tree([2, -1, 2, -1, -1], [1.0, 0, 3.0, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 1.0, 0, 2.0, 3.0], [3, 1, 2, 1, 1], 3)
    for code, bin_ in enumerate((0, 0, 1, 1, 2)):
        statistics = NO_STATISTICS._replace(
            source=np.array([0], np.int32),
            key_start=np.array([0, 1]),
            column=np.array([2], np.int32),
            projection=np.zeros(1, np.int32),
            code_start=np.zeros(1, np.int64),
            code=np.array([code, 4 - code], np.uint8),
        )
        with_statistics = ensemble._replace(statistics=statistics)
        tables, splits = bin_ensemble(with_statistics)
        assert tables.column.tolist() == [0, 2]
        assert tables.read.tolist() == read_columns(with_statistics).tolist() == [0]
        found = int(tables.statistics.code[0])
        assert found == bin_
        values, bins = np.array([[7.0], [found]]), np.zeros((2, 1), bin_dtype(tables))
        bin_rows(values, tables, bins)
        assert bins[1, 0] == bin_
        for node in (0, 2):
            assert goes_left(splits, node, bins[:, 0]) == (code <= ensemble.threshold[node])
