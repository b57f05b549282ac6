"""Rows are in the cells that NumPy puts them in; counts of pieces add up to those of all."""

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.report.counts.counts import (
    PHI,
    SWARM,
    TAIL,
    CountedColumn,
    Values,
    count_rows,
    lay_edges,
    no_rows,
    percentiles_of,
    place_on,
    place_values,
)

NUMBERS = Values(Feature("x"), "value_x", (0.0, 1.0, 2.0))


def test_numbers_are_in_numpy_s_bins():
    numbers = np.random.default_rng(1).normal(size=10_000)
    placed = np.bincount(place_on((-2, 2), 8, numbers), minlength=10)
    inside, _ = np.histogram(numbers, 8, (-2, 2))
    assert_array_equal(placed, [(numbers < -2).sum(), *inside, (numbers > 2).sum()])
    assert place_on((0, 1), 4, np.array([-np.inf, 0, 1, np.inf])).tolist() == [0, 1, 4, 5]


def test_values_are_between_edges_or_beyond():
    column = pa.array([None, float("nan"), -1, 0, 0.5, 1, 2, float("inf"), float("-inf")])
    assert place_values(NUMBERS, column).tolist() == [0, 0, 1, 2, 2, 3, 4, 4, 1]


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("categories", [None, ("z", "b", "a")])
def test_categories_have_bins_of_their_own(encoded, categories):
    """Whether the model lists them or not; the last bin is of all that are not asked for."""
    asked = Values(Feature("x", True, categories), "value_x", categories=("a", "b"))
    column = pa.array(["a", "b", None, "z", "new"])
    assert place_values(asked, column.dictionary_encode() if encoded else column).tolist() == [1, 2, 0, 3, 3]


def test_counts_of_pieces_add_up():
    rng = np.random.default_rng(2)
    phi, values = rng.normal(size=1000), rng.uniform(-1, 3, 1000)
    phi[::50], values[::7] = np.nan, np.nan
    known = ~np.isnan(phi)
    table = pa.table({"phi_x": phi, "value_x": values})
    edges = lay_edges((-1, 1), (phi[known].min(), phi[known].max()))
    asked = [CountedColumn("phi_x", (-1, 1), edges, NUMBERS), CountedColumn("phi_x", (-1, 1), edges, None)]
    all_rows, pieces = count_rows(table, asked), [count_rows(table.slice(start, 100), asked) for start in range(0, 1000, 100)]
    for i, each in enumerate(asked):
        total = sum((piece[i] for piece in reversed(pieces)), no_rows(each))
        assert_array_equal(total.swarm, all_rows[i].swarm)
        assert_array_equal(total.own, all_rows[i].own)
        assert_array_equal((total.lows, total.highs), (all_rows[i].lows, all_rows[i].highs))
        assert_allclose(total.sums.astype(float), all_rows[i].sums.astype(float), rtol=1e-12)
        assert_array_equal(total.sums, sum((piece[i] for piece in pieces), no_rows(each)).sums)
        assert total.swarm.sum() == total.own.sum() == np.isfinite(phi).sum()
    assert all_rows[0].swarm.shape == (SWARM + 2, 5)
    assert all_rows[0].own.shape == (5, TAIL + PHI + TAIL)
    assert all_rows[0].own[0].sum() == (np.isnan(values) & known).sum()
    inside, _ = np.histogram(phi[known], PHI, (-1, 1))
    assert_array_equal(all_rows[1].own[0, TAIL:-TAIL], inside)
    middle = known & (values >= 0) & (values < 1)
    assert float(all_rows[0].sums[2]) == pytest.approx(phi[middle].sum())
    assert (all_rows[0].lows[2], all_rows[0].highs[2]) == (phi[middle].min(), phi[middle].max())


def test_edges_hold_everything_and_equal_attributions_stay_together():
    """Where many rows have the attribution at which the axis ends, they are on it, whether there are others beyond or not."""
    for whole in ((0.0, 1.0), (-5.0, 5.0)):
        edges = lay_edges((0.0, 1.0), whole)
        assert (np.diff(edges) >= 0).all()
        own = count_rows(pa.table({"phi": np.repeat([0.0, 1.0, *whole], 9)}), [CountedColumn("phi", (0, 1), edges, None)])[0].own[0]
        assert own[TAIL:-TAIL].sum() == (36 if whole[1] == 1 else 18)


def test_percentiles_are_middles_of_ranks():
    assert_array_equal(percentiles_of([5, 2, 2, 0, 4]), [np.nan, 0.125, 0.375, 0.5, 0.75])
