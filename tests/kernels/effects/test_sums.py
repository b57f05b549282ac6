"""Sums of rows: means, cells, local effects and H of the definitions, whatever the rows are cut into."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.effects.axes import both_axes, find_runs, find_states
from leafledger.kernels.effects.sums import (
    SIDE,
    CountedRows,
    PairAxis,
    RowAxis,
    RowTables,
    _count_cells,
    cell_ends,
    choose_edges,
    read_quantiles,
    sum_rows,
)
from leafledger.kernels.trees.binning import padded
from tests.kernels.attributing import ATOL
from tests.kernels.effects.changed import Grown
from tests.kernels.marginal.against import counted, query_for
from tests.strategies import batches, forests
from tests.trees import assert_same_bits, chain


def row_axes(grown, rows, n_intervals=3, reach=8.0):
    """Axes of all used features, with what a first pass over the same rows finds."""
    found = []
    for j, (axis, runs) in enumerate(zip(grown.axes, grown.runs, strict=True)):
        states = find_states(axis, grown.bins(rows))[: len(rows)]
        share = np.bincount(states, minlength=axis.n_states) / len(rows)
        columns = [grown.changed(rows, {grown.forest.column[j]: value}).mean(axis=0) for value in grown.values(j)]
        ordered = not grown.ensemble.n_categories[grown.forest.column[j]]
        edges = choose_edges(share[:-1], n_intervals) if ordered else np.zeros(0, np.int64)
        found.append(RowAxis(axis, runs, share, np.array(columns).T, edges, np.full(grown.ensemble.base.size, reach)))
    return found


def summed(grown, axes, rows, carry=None, pairs=()):
    surfaces = []
    for a, b in pairs:
        both = both_axes(axes[a].axis, axes[b].axis)
        surfaces.append(PairAxis(both, find_runs(grown.nodes, both)))
    places = np.array(pairs, np.int64).reshape(-1, 2)
    tables = RowTables(grown.tables, grown.nodes, grown.forest.ensemble.base, tuple(axes), places, tuple(surfaces))
    return sum_rows(tables, grown.bins(rows), len(rows), carry)


def squash(margin):
    return 1 / (1 + np.exp(-margin))


@pytest.mark.parametrize("carry", [None, squash])
@given(data=st.data(), ensemble=forests(max_features=3))
def test_sums_are_those_of_rows_with_the_feature_set(data, ensemble, carry):
    """Mean and spread of every state; H's numerator; local effects; the same of two parts, merged."""
    grown, rows = Grown(ensemble), data.draw(batches(ensemble, max_rows=6))
    assume(grown.axes)
    axes, g = row_axes(grown, rows), carry or (lambda margin: margin)
    whole = summed(grown, axes, rows, carry)
    parts = [summed(grown, axes, rows[some], carry) for some in (slice(0, 1), slice(1, 2), slice(2, None))]
    for found in (whole, parts[0].merge(parts[1:])):
        margin = grown.changed(rows, {})
        assert_allclose(found.margin.mean, margin.mean(axis=0), rtol=0, atol=ATOL)
        assert_allclose(found.margin.spread, len(rows) * margin.var(axis=0), rtol=0, atol=100 * ATOL)
        for j, (asked, sums) in enumerate(zip(axes, found.axes, strict=True)):
            margins = np.stack([grown.changed(rows, {grown.forest.column[j]: value}) for value in grown.values(j)])  # (states, n, outputs)
            own = find_states(asked.axis, grown.bins(rows))[: len(rows)]
            assert_allclose(sums.curve.mean, g(margins).mean(axis=1).T, rtol=0, atol=ATOL)
            assert_allclose(sums.curve.spread, len(rows) * g(margins).var(axis=1).T, rtol=0, atol=100 * ATOL)
            others = np.einsum("snk,s->nk", margins, asked.share)
            assert_allclose(sums.rest.spread, len(rows) * (margin - asked.curve[:, own].T - others).var(axis=0), rtol=0, atol=100 * ATOL)
            assert_array_equal(sums.cells.sum(axis=2), len(rows))
            for m in range(asked.edges.size - 1):
                low, high = asked.edges[m : m + 2]
                inside = (own <= high) & ((own > low) | ((own == low) & (m == 0)))
                assert sums.rises.n[m] == inside.sum()
                if inside.any():
                    rise = (g(margins[high]) - g(margins[low]))[inside]
                    assert_allclose(sums.rises.mean[:, m], rise.mean(axis=0), rtol=0, atol=ATOL)
                    assert_allclose(sums.rises.spread[:, m], inside.sum() * rise.var(axis=0), rtol=0, atol=100 * ATOL)


@given(data=st.data(), ensemble=forests(max_features=3))
def test_rows_of_two_states_are_counted_and_two_axes_are_one(data, ensemble):
    """Of every pair; the axis of both has a state for every two, in which rows change in both."""
    grown, rows = Grown(ensemble), data.draw(batches(ensemble, max_rows=4))
    assume(len(grown.axes) > 1)
    axes, bins = row_axes(grown, rows), grown.bins(rows)
    found = summed(grown, axes, rows, pairs=[(0, 1)])
    own = [find_states(each.axis, bins)[: len(rows)] for each in axes[:2]]
    expected = np.zeros(found.together[0].shape, int)
    np.add.at(expected, tuple(own), 1)
    assert_array_equal(found.together[0], expected)
    parts = [summed(grown, axes, rows[some], squash, [(0, 1)]) for some in (slice(0, 2), slice(2, None))]
    surface = parts[0].merge(parts[1:]).surfaces[0]
    for s, first in enumerate(grown.values(0)):
        for t, second in enumerate(grown.values(1)):
            changed = grown.changed(rows, {grown.forest.column[0]: first, grown.forest.column[1]: second})
            assert_allclose(surface.mean[:, s * axes[1].axis.n_states + t], squash(changed).mean(axis=0), rtol=0, atol=ATOL)


def test_cells_hold_what_is_counted_in_them():
    """Within a 16th of its size, or of a thousandth of the reach; quantiles lie in their cells, also beyond the reach."""
    ends = cell_ends(4.0)
    assert ends.size == 2 * SIDE + 1
    assert_allclose(ends[[0, SIDE, -1]], [-4.0, 0.0, 4.0])
    wide, size = np.diff(ends), np.minimum(np.abs(ends[1:]), np.abs(ends[:-1]))
    assert (wide <= (size + 4.0 / 1023) / 16 * (1 + 1e-12)).all()
    rng = np.random.default_rng(0)
    values = np.concatenate((rng.normal(size=500) / 3, rng.normal(size=50) / 1e4, [0.0, -9.0, 9.0]))
    cells, quantiles = np.zeros((1, 1, 2 * SIDE), np.int64), np.array([0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
    _count_cells(values[None, :, None], np.zeros((1, values.size)), np.array([4.0]), cells)
    lower, upper = read_quantiles(cells[0], 4.0, quantiles)
    exact = np.quantile(values, quantiles, method="inverted_cdf")
    assert (lower[0] <= np.clip(exact, -4, 4) + ATOL).all()
    assert (np.clip(exact, -4, 4) - ATOL <= upper[0]).all()
    assert_same_bits(cell_ends(0.0), np.zeros(2 * SIDE + 1))  # flat curves have no size that cells could be a part of


def test_edges_are_quantiles_of_states():
    """Each once; the first and the last state with rows among them; none without rows."""
    assert_array_equal(choose_edges(np.array([0.0, 0.5, 0.0, 0.25, 0.25]), 4), [1, 3, 4])
    assert_array_equal(choose_edges(np.array([0.1] * 10), 2), [0, 4, 9])
    assert_array_equal(choose_edges(np.array([1.0, 0.0]), 3), [0])
    assert choose_edges(np.zeros(3), 3).size == 0


def test_rows_whose_value_is_missing_are_in_no_interval():
    """Local effects are of the others; two rows of a chain with one split."""
    grown = Grown(chain([0], [1.0, 3.0], [1.0, 1.0], 1))
    rows = np.array([[0.0], [1.0], [np.nan]])
    (asked,) = row_axes(grown, rows)
    found = summed(grown, [asked], rows).axes[0].rises
    assert_array_equal(found.n, [2.0])
    assert_allclose(found.mean, [[2.0]])
    assert padded(3) == grown.bins(rows).shape[1]


def test_counts_of_parts_add_up():
    """Of leaves, of states and of categories; in any order the same."""
    ensemble = chain([0, 1], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 2)
    query, rows = query_for("shapley", ensemble), np.array([[0.0, 1], [1, 0], [1, 1]])
    parts = [CountedRows(counted(query, rows[k : k + 1]), (np.array([k, 1]),), np.array([[1, k]])) for k in range(3)]
    whole, turned = parts[0].merge(parts[1:]), parts[2].merge([parts[0], parts[1]])
    assert_array_equal(whole.states[0], [3, 3])
    assert_array_equal(whole.seen, [[3, 3]])
    assert_array_equal(whole.statistics.counts, counted(query, rows).counts)
    assert_same_bits(whole, turned)
    alone = [each._replace(statistics=()) for each in parts]
    assert alone[0].merge(alone[1:]).statistics == ()
    assert_array_equal(alone[0].merge(alone[1:]).states[0], [3, 3])
