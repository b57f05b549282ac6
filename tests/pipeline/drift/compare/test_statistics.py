"""Two distributions compared against SciPy on their rows: exactly where values are few, within a cell's width where they are many."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from leafledger.pipeline.drift.compare.statistics import align, compare_categories, compare_numbers, compare_shares
from leafledger.pipeline.drift.measure.distribution import Categories
from tests.pipeline.drift.making import distribution


@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_few_values_are_compared_exactly(shift):
    """Kolmogorov and Smirnov's distance and Wasserstein's are SciPy's, PSI that of the reference's deciles by hand."""
    rng = np.random.default_rng(0)
    a, b = np.round(rng.normal(size=4000), 1), np.round(rng.normal(shift, 1.1, 3000), 1)
    found = compare_numbers(distribution(a), distribution(b))
    expected = stats.ks_2samp(a, b, method="asymp")
    assert_allclose(found.distance, expected.statistic, rtol=1e-9)
    assert expected.pvalue <= found.p <= 1.2 * expected.pvalue or min(found.p, expected.pvalue) > 0.3
    assert_allclose(found.wasserstein, stats.wasserstein_distance(a, b), rtol=1e-9)
    deciles = np.unique([np.quantile(a, q / 10, method="inverted_cdf") for q in range(1, 10)])
    p, q = ((np.bincount(np.searchsorted(deciles, x), minlength=10) + 0.5) / (x.size + 5) for x in (a, b))
    assert_allclose(found.psi, ((q - p) * np.log(q / p)).sum(), rtol=1e-12)
    assert_allclose(found.psi_expected, 9 / 4000 + 9 / 3000)


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize(
    "draw", [lambda rng: rng.integers(-4, 9, 3000) / 10, lambda rng: rng.normal(1e-3, 1e-6, 9000), lambda rng: rng.normal(size=9000)]
)
def test_values_in_fewer_bits_are_the_same_values(draw, kind):
    """Few ones, many that lie close together, and many that do not; and what has moved is told as of the rounded rows, by SciPy."""
    values = draw(np.random.default_rng(7))
    rounded = values.astype(kind).astype(float)
    narrow = replace(distribution(rounded), bits=np.finfo(kind).bits)
    for pair in ((narrow, distribution(values)), (distribution(values), narrow)):
        found = compare_numbers(*pair)
        assert found.distance <= 0.005 or found.unsure
        assert found.wasserstein <= 1e-3 * np.abs(values).max() or found.unsure
    if np.unique(values).size < 100:
        moved = np.concatenate((values[500:], np.full(500, 0.7)))
        found = compare_numbers(narrow, distribution(moved))
        assert_allclose(found.distance, stats.ks_2samp(rounded, moved.astype(kind), method="asymp").statistic, rtol=1e-9)
        assert compare_numbers(narrow, narrow).distance == 0.0


def check_against_scipy(a, b, atol, width):
    """Distances within tolerances of those of the rows, no larger one of Kolmogorov and Smirnov, and none below the change of the mean."""
    one, other = distribution(a), distribution(b)
    found, expected = compare_numbers(one, other), stats.ks_2samp(a, b, method="asymp")
    assert expected.statistic - atol <= found.distance <= expected.statistic + 1e-12
    assert abs(found.wasserstein - stats.wasserstein_distance(a, b)) <= width
    assert found.wasserstein >= abs(other.mean - one.mean)
    assert not found.unsure
    return found


@pytest.mark.parametrize("offset", [0.0, 5.0, -1e3, 1e6, 1e9])
@pytest.mark.parametrize("shift", [0.0, 0.1, 1.0])
def test_many_values_are_compared_within_a_cell(offset, shift):
    """However far from 0 they lie: cells follow the spread, and hold half a percent of the rows at most."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(offset, 1.0, 8000), rng.normal(offset + shift, 1.0, 6000)
    found = check_against_scipy(a, b, 0.005, 0.005)
    assert (found.p < 1e-3) == (shift > 0)
    p, q = (np.histogram(x, np.concatenate(([-np.inf], np.quantile(a, np.arange(1, 10) / 10), [np.inf])))[0] for x in (a, b))
    assert_allclose(found.psi, ((q / 6000 - p / 8000) * np.log((q / 6000) / (p / 8000))).sum(), rtol=0.02, atol=0.02)


def days(year):
    """Every day of a year, twenty times."""
    return np.repeat(np.arange(np.datetime64(f"{year}-01-01"), np.datetime64(f"{year + 1}-01-01")), 20)


def seconds(day, n=9000):
    return np.datetime64(day).astype("datetime64[s]").astype(float) + np.random.default_rng(3).uniform(0, 86400, n)


DATES = [[float(str(day).replace("-", "")) for day in days(year).tolist()] for year in (2024, 2025)]


@pytest.mark.parametrize(
    ("pair", "distance"),
    [
        (DATES, 1.0),
        ([days(year).astype("datetime64[s]").astype(float) for year in (2024, 2025)], 1.0),
        ([seconds("2026-10-01"), seconds("2026-11-01")], 1.0),
        ([np.floor(seconds("2026-11-01")), np.floor(seconds("2026-11-01")) + 3600], 3600 / 86400),
        ([np.random.default_rng(k).normal(1014 + k / 2, 0.5, 5000) for k in (0, 1)], 0.38),
    ],
)
def test_dates_and_times_are_told_apart(pair, distance):
    """Days of two years as YYYYMMDD and in seconds, moments of two days, of two hours, and pressures: each by what scipy says of the rows."""
    found = check_against_scipy(*map(np.asarray, pair), 0.005, 1e-6 * np.ptp(np.concatenate(pair)))
    assert_allclose(found.distance, distance, atol=0.015)
    assert found.p < 1e-9
    assert found.psi > found.psi_expected


def test_nights_are_compared_by_the_wider_cells():
    """One of them has values over sixty orders of magnitude, the other far from 0: distances are still no larger than those of the rows."""
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=20_000) * 10.0 ** rng.integers(-30, 30, 20_000), rng.normal(1e6, 1.0, 20_000)
    found, expected = compare_numbers(distribution(a), distribution(b)), stats.ks_2samp(a, b, method="asymp")
    assert expected.statistic - 0.02 <= found.distance <= expected.statistic + 1e-12


def test_one_cell_of_most_values_is_not_taken_for_one_value():
    """Beside values over many orders of magnitude, those near a million share a cell: nothing is known then, not even that nothing moved."""
    rng = np.random.default_rng(6)
    wide = rng.normal(size=8000) * 10.0 ** rng.integers(-300, 300, 8000)
    nights = [distribution(np.concatenate((wide, rng.normal(7e5 + k, 1.0, 20_000)))) for k in (0, 1000)]
    found = compare_numbers(*nights)
    assert found.unsure
    assert np.isnan([found.psi, found.psi_expected, found.wasserstein, found.distance, found.p]).all()
    same = compare_numbers(nights[0], nights[0])
    assert same.unsure
    assert np.isnan(same.distance)
    seen = compare_numbers(nights[0], distribution(np.concatenate((-np.abs(wide), rng.normal(7e5, 1.0, 20_000)))))
    assert seen.unsure
    assert seen.p < 1e-9
    zeros = compare_numbers(*[distribution(np.concatenate((wide, np.zeros(20_000))))] * 2)
    assert (zeros.unsure, zeros.distance) == (False, 0.0)


def test_points_and_cells_go_together():
    """A night of few values and one of many have the same places."""
    a, b = distribution(np.arange(100.0)), distribution(np.linspace(0, 99, 9000))
    lower, upper, one, other = align(a, b)
    assert (one.sum(), other.sum()) == (100, 9000)
    assert (lower <= upper).all()
    assert (upper[:-1] <= lower[1:]).all()
    assert compare_numbers(a, b).distance < 0.02


def test_values_outside_of_the_references_range_count():
    """In the outer bins: a night above all of the reference is as far as can be."""
    found = compare_numbers(distribution(np.arange(1000.0)), distribution(np.arange(5000.0, 6000.0)))
    assert found.distance == 1.0
    assert found.psi > 5


@pytest.mark.parametrize("pair", [([], [1.0]), ([np.nan], [1.0]), ([1.0], []), ([], [])])
def test_nothing_cannot_be_compared(pair):
    """NaN, not zero."""
    found = compare_numbers(*map(distribution, pair))
    assert np.isnan([found.psi, found.psi_expected, found.wasserstein, found.distance, found.p]).all()


def test_constants_infinities_and_single_rows():
    """All have a distance; infinite values are the first and the last, and no part of Wasserstein's."""
    same = compare_numbers(distribution([3.0] * 9), distribution([3.0]))
    assert (same.distance, same.psi, same.wasserstein, same.psi_expected) == (0.0, 0.0, 0.0, 0.0)
    assert np.isnan(same.p)
    found = compare_numbers(distribution([-np.inf, 1.0, 2.0]), distribution([1.0, 2.0, np.inf]))
    assert_allclose((found.distance, found.wasserstein), (1 / 3, 0.0))
    assert np.isnan(compare_numbers(distribution([np.inf]), distribution([np.inf, 1.0])).wasserstein)
    many = np.random.default_rng(0).normal(size=9000)
    assert compare_numbers(distribution(np.append(many, np.inf)), distribution(np.append(many, -np.inf))).distance <= 2 / 9001
    assert compare_numbers(distribution(np.full(3, np.inf)), distribution(many)).distance == 1.0


def test_categories_are_compared_by_name():
    """As chi² has them, with those that the model does not know as one; too many to count are not compared."""
    one = Categories(110, 10, 10, (("a", 60), ("b", 30)))
    other = Categories(200, 0, 50, (("a", 70), ("c", 80)))
    found = compare_categories(one, other)
    table = [[60, 30, 0, 10], [70, 0, 80, 50]]
    assert_allclose(found.p, stats.chi2_contingency(table, correction=False).pvalue)
    assert_allclose(found.distance, np.abs(np.array(table[0]) / 100 - np.array(table[1]) / 200).sum() / 2)
    p, q = (np.array(night) + 0.5 for night in table)
    p, q = p / p.sum(), q / q.sum()
    assert_allclose(found.psi, ((q - p) * np.log(q / p)).sum())
    assert np.isnan(compare_categories(one, Categories(9, 0, None, None)).p)
    assert np.isnan(compare_categories(Categories(9, 9, 0, ()), one).p)


@pytest.mark.parametrize(("before", "now"), [(50, 90), (90, 50)])
def test_shares_of_rows_are_tested(before, now):
    """Whether they rise or fall."""
    expected = stats.chi2_contingency([[before, 1000 - before], [now, 1200 - now]], correction=False)
    assert_allclose(compare_shares(before, 1000, now, 1200).p, expected.pvalue)


def test_shares_of_no_rows_are_not_compared():
    """Of some rows they are; where no row is of the kind, or all are, that is no test."""
    assert np.isnan([compare_shares(0, 4, 0, 9).p, compare_shares(4, 4, 9, 9).p]).all()
    assert compare_shares(0, 4, 0, 9).distance == 0.0
    assert np.isnan(compare_categories(Categories(3, 0, 0, (("a", 3),)), Categories(4, 1, 0, (("a", 3),))).p)
    assert np.isnan(compare_shares(0, 0, 1, 2).p)
    assert compare_shares(0, 4, 1, 2).distance == 0.5
