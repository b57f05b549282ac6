"""Means are those of the rows, and quantiles lie in the cells of NumPy's."""

import numpy as np
import pyarrow as pa
import pytest

from leafledger.pipeline.models.model import Feature
from leafledger.pipeline.report.counts.counts import PHI, CountedColumn, Values, count_rows, lay_edges, no_rows
from leafledger.pipeline.report.figures.spread import find_spread

FLAG = Values(Feature("x"), "value_x", (-0.1, 0.5, 1.1), (0.0, 1.0))


def test_quantiles_are_numpy_s_within_a_cell():
    phi = np.random.default_rng(1).normal(size=4000)
    asked = CountedColumn("phi_x", (-3, 3), lay_edges((-3, 3), (phi.min(), phi.max())), None)
    spread = find_spread(asked, count_rows(pa.table({"phi_x": phi}), [asked])[0])
    for q in (0.05, 0.5, 0.95):
        assert spread.quantile(q) == pytest.approx(np.quantile(phi, q), abs=6 / PHI)
    assert (spread.quantile(0), spread.quantile(1)) == (phi.min(), phi.max())
    assert spread.mean == pytest.approx(phi.mean(), rel=1e-12)
    assert np.isnan(find_spread(asked, no_rows(asked)).quantile(0.5))
    assert np.isnan(find_spread(asked, no_rows(asked)).mean)


def test_a_rare_value_has_its_own_rows_mean_and_quantiles():
    """However few rows have it, and however far from all others: also where a single row is a thousand times farther."""
    rng = np.random.default_rng(2)
    value = np.repeat([0.0, 1.0, np.nan], [39_959, 40, 1])
    phi = np.where(value == 1, 30 + rng.normal(0, 0.3, value.size), rng.normal(0, 0.03, value.size))
    phi[-1] = 30_000
    asked = CountedColumn("phi_x", (-0.1, 0.1), lay_edges((-0.1, 0.1), (phi.min(), phi.max())), FLAG)
    counts = count_rows(pa.table({"phi_x": phi, "value_x": value}), [asked])[0]
    for bins, some in ((slice(2, 3), phi[value == 0]), (slice(3, 4), phi[value == 1]), (slice(0, 1), phi[-1:])):
        spread = find_spread(asked, counts, bins)
        assert spread.n == some.size
        assert spread.mean == pytest.approx(some.mean(), rel=1e-12)
        assert some.min() <= spread.quantile(0.05) <= spread.quantile(0.95) <= some.max()
