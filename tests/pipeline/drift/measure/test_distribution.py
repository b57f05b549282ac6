"""What is kept of a column against NumPy on its rows: quantiles, shares, errors; exact where values are few, within a cell where they are many."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leafledger.pipeline.drift.measure.distribution import Categories
from tests.pipeline.drift.making import distribution


@pytest.mark.parametrize("name", ["normal", "positive", "offset", "dates", "wide"])
def test_quantiles_and_shares_lie_within_a_cell(name):
    """A quantile is in the cell of the exact one, a share between those of its edges: 1/64 of a number near 0, 1/1000 of the range far from it."""
    rng = np.random.default_rng(3)
    values, relative, absolute = {
        "normal": (rng.normal(size=5000), 1 / 64, 0.0),
        "positive": (rng.exponential(size=5000), 1 / 64, 0.0),
        "offset": (rng.normal(3e5, 0.5, 5000), 0.0, 4 / 1000),
        "dates": (1.7e9 + rng.uniform(0, 86400, 5000), 0.0, 86.4),
        "wide": (rng.normal(size=5000) * 10.0 ** rng.integers(-20, 20, 5000), 1 / 4, 0.0),
    }[name]
    found = distribution(values)
    assert found.points is None
    for share in (0.0, 0.01, 0.25, 0.5, 0.9, 1.0):
        exact = np.quantile(values, share, method="inverted_cdf")
        assert abs(found.quantile(share) - exact) <= relative * abs(exact) + absolute
    for at in np.quantile(values, [0.0, 0.3, 0.7, 1.0]):
        width = relative * abs(at) + absolute
        below, above = (values < at - width).mean(), (values < at + width).mean()
        assert below <= found.cdf(np.array([at]))[0] <= above
    assert_allclose(found.cdf(np.array([-1e30, 1e30])), [0.0, 1.0])
    assert_allclose(found.std, values.std(), rtol=1e-9)
    assert_allclose(found.standard_error, values.std(ddof=1) / math.sqrt(values.size), rtol=1e-9)
    assert_allclose(found.standard_error_abs, np.abs(values).std(ddof=1) / math.sqrt(values.size), rtol=1e-9)


def test_few_values_are_exact():
    """Years, and all days of ten of them, have quantiles and shares of their own."""
    days = np.arange(np.datetime64("2015-01-01"), np.datetime64("2025-01-01")).astype("datetime64[s]").astype(float)
    for values in (np.repeat(np.arange(1990.0, 2014.0), np.arange(1, 25)), np.repeat(days, 3)):
        found = distribution(values)
        for share in (0.0, 0.1, 0.5, 0.77, 1.0):
            assert found.quantile(share) == np.quantile(values, share, method="inverted_cdf")
        at = np.unique(np.concatenate((values[::17] - 0.5, values[::17], [values[0] - 1, values[-1], values[-1] + 1])))
        assert_allclose(found.cdf(at), [np.mean(values < x) for x in at])
        lower, upper = found.edges()
        assert (lower[0], upper[-1]) == (values[0], values[-1])


def test_two_values_have_a_standard_error():
    """Half their distance; one has none."""
    two, one = distribution([-1.0, 3.0]), distribution([3.0])
    assert (two.standard_error, two.standard_error_abs) == (2.0, 1.0)
    assert np.isnan([one.standard_error, one.standard_error_abs]).all()


def test_missing_and_infinite_values_are_counted_apart():
    """They are in no moment; infinite ones are the first and the last."""
    for extra in (np.zeros(0), np.random.default_rng(0).normal(size=1000)):
        found = distribution(np.concatenate(([np.nan, np.inf, -np.inf, -np.inf, 1.0], extra)))
        assert (found.rows - extra.size, found.missing, found.infinite, found.n - extra.size, found.there - extra.size) == (5, 1, 3, 1, 4)
        assert_allclose(found.mean, np.append(extra, 1.0).mean())
        assert (found.quantile(0.0), found.quantile(1.0)) == (-np.inf, np.inf)
    assert found.cdf(np.array([-1e30]))[0] == 2 / found.there


@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_nothing_has_no_moments(values):
    """No rows, or missing values alone: NaN, not zero."""
    found = distribution(values)
    assert (found.rows, found.missing, found.there) == (len(values), len(values), 0)
    assert np.isnan(
        [found.mean, found.std, found.standard_error, found.standard_error_abs, found.quantile(0.5), found.cdf(np.zeros(1))[0], found.low]
    ).all()


def test_one_value_has_no_error():
    """Its quantiles are it, and how sure its mean is nobody can tell."""
    found = distribution([2.5])
    assert (found.quantile(0.1), found.quantile(0.9), found.mean, found.std) == (2.5, 2.5, 2.5, 0.0)
    assert np.isnan(found.standard_error)
    assert Categories(3, 1, None, None).there == 2
