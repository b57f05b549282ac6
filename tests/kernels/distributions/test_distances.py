"""Measures of drift against SciPy on the rows, hand-computed examples, enumerations, and the example that SageMaker's documentation publishes."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from leafledger.kernels.distributions.distances import (
    FEW,
    correct_p,
    decile_bins,
    expect_psi,
    measure_categories,
    measure_ks,
    measure_ndcg,
    measure_psi,
    measure_shares,
    measure_wasserstein,
)


def counts(values, places):
    return np.array([(values == place).sum() for place in places])


def test_ndcg_is_that_of_sagemakers_example():
    """SAT score, grade point average and class rank of their hypothetical admissions: 0.69, and 1 without a change of order."""
    baseline, live = np.array([0.70, 0.50, 0.05]), np.array([0.10, 0.20, 0.70])
    assert round(measure_ndcg(baseline, live), 2) == 0.69
    assert measure_ndcg(baseline, baseline * 3) == 1.0
    assert measure_ndcg(np.zeros(3), live) == 1.0
    assert measure_ndcg(baseline, np.zeros(3)) == 1.0  # every order is one of equal importances
    worst = min(measure_ndcg(baseline, np.array(order, float)) for order in itertools.permutations(range(3)))
    assert_allclose(worst, measure_ndcg(baseline, -baseline + 1), rtol=1e-15)


def test_psi_is_that_by_hand():
    """Half a row is added to every bin, so that an empty one makes it no infinity."""
    p, q = np.array([10.5, 20.5, 70.5]) / 101.5, np.array([0.5, 50.5, 50.5]) / 101.5
    by_hand = sum((b - a) * math.log(b / a) for a, b in zip(p, q, strict=True))
    assert_allclose(measure_psi(np.array([10, 20, 70]), np.array([0, 50, 50])), by_hand, rtol=1e-14)
    assert measure_psi(np.array([5]), np.array([7])) == 0.0


def test_psi_without_drift_is_what_is_expected():
    """The mean of a thousand pairs from one distribution."""
    rng = np.random.default_rng(0)
    found = [measure_psi(*(rng.multinomial(n, [0.1] * 10) for n in (2000, 1000))) for _ in range(1000)]
    assert_allclose(np.mean(found), expect_psi(2000, 1000, 10), rtol=0.05)


def test_bins_are_those_of_the_deciles():
    """Where values are all different a tenth each; ties stay together; what only the current night has falls between, or beyond."""
    assert decile_bins(np.ones(100, int)).tolist() == np.repeat(np.arange(10), 10).tolist()
    assert decile_bins(np.array([0, 0, 95, 0, 5, 0])).tolist() == [0, 0, 1, 2, 2, 2]
    assert decile_bins(np.array([0, 0, 5, 0, 95, 0])).tolist() == [0, 0, 0, 0, 0, 1]
    assert decile_bins(np.array([7])).tolist() == [0]
    assert decile_bins(np.array([0, 1, 0])).tolist() == [0, 1, 2]
    assert decile_bins(np.array([0, *[1] * 10, 0])).tolist() == list(range(12))
    assert decile_bins(np.zeros(0, int)).size == 0
    rng = np.random.default_rng(1)
    values = np.round(rng.exponential(size=777), 1)
    places = np.unique(values)
    bins = decile_bins(counts(values, places))
    deciles = np.unique([np.quantile(values, q / 10, method="inverted_cdf") for q in range(1, 10)])
    expected = np.searchsorted(deciles, places)
    assert bins.tolist() == np.unique(expected, return_inverse=True)[1].tolist()


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_psi_sees_what_leaves_the_reference_at_either_end(share):
    """Rows of a value that half of the reference or all have, its smallest or its largest, go beyond it: PSI by hand, the same at both ends."""
    for at_the_end in (500, 1000):
        rest = (1000 - at_the_end) // 10
        gone = int(1000 * share) if at_the_end == 1000 else int(500 * share)
        reference, current = ([*beyond, *[rest] * 10] for beyond in ([0, at_the_end], [gone, at_the_end - gone]))
        found = []
        for one, other in ((reference, current), (reference[::-1], current[::-1])):
            bins = decile_bins(np.array(one))
            found.append(measure_psi(*(np.bincount(bins, night).astype(int) for night in (one, other))))
        n_bins = np.unique(bins).size
        p, q = (np.array([beyond + 0.5, end + 0.5]) / (1000 + 0.5 * n_bins) for beyond, end in (reference[:2], current[:2]))
        assert_allclose(found, np.sum((q - p) * np.log(q / p)), rtol=1e-12)
        assert found[0] > 0.9


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_distances_are_scipys(shift):
    """Of the rows, with many ties and with none."""
    rng = np.random.default_rng(2)
    for digits in (0, 8):
        a, b = np.round(rng.normal(size=300), digits), np.round(rng.normal(shift, 1.2, 450), digits)
        places = np.union1d(a, b)
        one, other = counts(a, places), counts(b, places)
        expected = stats.ks_2samp(a, b, method="exact")
        assert_allclose(measure_ks(one, other), (expected.statistic, expected.pvalue), rtol=1e-9)
        assert_allclose(measure_wasserstein(places, places, one, other), stats.wasserstein_distance(a, b), rtol=1e-9)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 2), (2, 2), (3, 3), (2, 5), (4, 6)])
def test_p_of_few_rows_is_that_of_all_their_orders(n, m):
    """Enumerated: never below one of the orders that there are; of values that are all different exactly, or 1 if it is large; of ties at least."""
    orders = [np.isin(np.arange(n + m), order).astype(int) for order in itertools.combinations(range(n + m), n)]
    found = [measure_ks(order, 1 - order) for order in orders]
    for distance, p in found:
        expected = np.mean([other >= distance - 1e-9 for other, _ in found])
        assert p == pytest.approx(expected, rel=1e-12) or (p == 1.0 and expected > 0.8)
        assert p >= 1 / math.comb(n + m, n)
    tied = [measure_ks(*(np.add.reduceat(each, range(0, n + m, 2)) for each in (order, 1 - order))) for order in orders]
    for distance, p in tied:
        assert p >= np.mean([other >= distance - 1e-9 for other, _ in tied]) - 1e-12


@pytest.mark.parametrize(("n", "m"), [(FEW + 1, FEW + 1), (FEW + 1, 3), (FEW + 1, 50), (FEW + 7, FEW // 2), (3000, 2000)])
def test_p_of_many_rows_is_an_upper_bound(n, m):
    """Of SciPy's exact one, which takes too long where rows are many, and a near one where both nights have many."""
    rng = np.random.default_rng(4)
    for shift in (0.1, 0.2, 0.3, 1.0):
        a, b = rng.normal(size=n), rng.normal(shift, size=m)
        places = np.union1d(a, b)
        exact, (_, p) = stats.ks_2samp(a, b, method="exact").pvalue, measure_ks(counts(a, places), counts(b, places))
        assert exact <= p <= 1.0
        assert p < 1.3 * exact or exact > 0.3 or exact < 1e-9 or min(n, m) < 100


def test_wasserstein_of_cells_is_that_of_values_spread_evenly():
    """Against many points in the place of each cell, where the difference changes its sign too."""
    lower, upper = np.array([-2.0, 0.0, 1.0, 5.0]), np.array([-1.0, 1.0, 3.0, 6.0])
    one, other = np.array([3, 4, 0, 3]), np.array([0, 9, 1, 0])
    points = lower[:, None] + (np.arange(2000) + 0.5) / 2000 * (upper - lower)[:, None]
    weights = [np.repeat(night / 2000, 2000) for night in (one, other)]
    expected = stats.wasserstein_distance(points.ravel(), points.ravel(), *weights)
    assert_allclose(measure_wasserstein(lower, upper, one, other), expected, rtol=1e-3)


def test_categories_are_chi_squared():
    """SciPy's, where enough rows are expected of each; rare ones are put together, and hardly any rows say nothing."""
    one, other = np.array([50, 30, 20]), np.array([30, 60, 40])
    distance, p = measure_categories(one, other)
    assert_allclose(p, stats.chi2_contingency([one, other], correction=False).pvalue)
    assert_allclose(distance, np.abs(one / 100 - other / 130).sum() / 2)
    rare = measure_categories(np.array([50, 30, 4, 3, 4]), np.array([60, 20, 3, 4, 4]))[1]
    assert_allclose(rare, stats.chi2_contingency([[50, 30, 11], [60, 20, 11]], correction=False).pvalue)
    few = measure_categories(np.array([50, 30, 1]), np.array([60, 20, 2]))[1]
    assert_allclose(few, stats.chi2_contingency([[50, 31], [60, 22]], correction=False).pvalue)
    several = measure_categories(np.array([2, 50, 3, 8, 0, 4, 4, 0, 1, 1]), np.array([3, 40, 2, 0, 9, 4, 3, 2, 1, 1]))[1]  # 11 of both are enough
    assert_allclose(several, stats.chi2_contingency([[50, 2 + 3 + 8, 0 + 4, 4 + 0 + 1 + 1], [40, 5, 13, 7]], correction=False).pvalue)
    assert measure_categories(np.array([1, 2]), np.array([2, 1]))[1] == 1.0
    assert measure_categories(np.array([500]), np.array([300])) == (0.0, 1.0)


def test_rare_categories_that_are_others_are_seen():
    """None of a night's 500 categories is in the other night, or those of a few rows take the place of each other."""
    one, none = np.full(500, 4), np.zeros(500, int)
    order = np.random.default_rng(5).permutation(1000)
    for places in (np.arange(1000), order):
        distance, p = measure_categories(np.concatenate((one, none))[places], np.concatenate((none, one))[places])
        assert distance == pytest.approx(1.0)
        assert p < 1e-50
    some = [np.concatenate(([600, 600], *night)) for night in ((one[:200], none[:200]), (none[:200], one[:200]))]
    assert measure_categories(*some)[1] < 1e-50


@pytest.mark.again
@pytest.mark.parametrize(("n_categories", "n", "m"), [(500, 2000, 1000), (30, 40, 40), (1000, 5000, 800)])
@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.slow
def test_rare_categories_raise_no_false_alarms(n_categories, n, m, power):
    """Of two nights from one distribution, p is below a level as often as the level says, or more seldom."""
    shares = np.arange(1, n_categories + 1) ** -power
    rng, found = np.random.default_rng(6), []
    for _ in range(1000):
        one, other = (rng.multinomial(size, shares / shares.sum()) for size in (n, m))
        found.append(measure_categories(one[one + other > 0], other[one + other > 0])[1])
    for level in (0.1, 0.05, 0.01):
        assert np.mean(np.array(found) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 1000)


def test_shares_are_tested_exactly_where_they_are_small():
    """SciPy's chi² of many rows, Fisher's exact test of few; none and all are no change."""
    assert_allclose(measure_shares(50, 1000, 90, 1000)[1], stats.chi2_contingency([[50, 950], [90, 910]], correction=False).pvalue)
    assert_allclose(measure_shares(0, 1000, 6, 1000)[1], stats.fisher_exact([[0, 1000], [6, 994]]).pvalue)
    assert measure_shares(0, 10, 0, 20) == (0.0, 1.0)
    assert measure_shares(10, 10, 20, 20) == (0.0, 1.0)
    assert_allclose(measure_shares(1, 2, 1, 1)[0], 0.5)


def test_correction_is_that_of_benjamini_and_hochberg():
    """By the definition: the smallest p (m / rank) of those at least as large; what was not tested counts for nothing."""
    p = np.array([0.01, np.nan, 0.02, 0.03, 0.5])
    by_hand = [min(p[i] * 4 / rank for i, rank in ((0, 1), (2, 2), (3, 3), (4, 4)) if rank >= mine) for mine in (1, 2, 3, 4)]
    assert_allclose(correct_p(p), [by_hand[0], np.nan, *by_hand[1:]])
    assert np.isnan(correct_p(np.array([np.nan]))).all()
