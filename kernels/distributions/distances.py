"""Drift statistics of two histograms: PSI, Kolmogorov–Smirnov, chi², Wasserstein and NDCG, with p-values."""

import numpy as np
from scipy import stats

DECILES = 10
ENOUGH = 5.0  # expected rows per category at which the chi² approximation holds
FEW = 1000  # rows up to which exact Kolmogorov–Smirnov p-values are computed, in about a millisecond


def decile_bins(reference: np.ndarray) -> np.ndarray:
    """Assign positions to bins by the deciles of a distribution.

    Values beyond the range fall into the outer bins. Where at least a tenth of the rows share the smallest or largest value, values beyond it get a
    bin of their own.

    Parameters
    ----------
    reference : (places,) int64
        counts, in the order of the values

    Returns
    -------
    bins : (places,) int64
        0, 1, …, at most DECILES + 2 of them: a place is behind a decile where it is behind the first place up to which its share of rows lies
    """
    behind = np.cumsum(reference)
    n = behind[-1] if behind.size else 0
    deciles = np.searchsorted(behind * DECILES, np.arange(1, DECILES) * n)  # integer arithmetic is exact
    there = np.flatnonzero(reference)
    ends = [edge for end, edge in ((there[:1], there[:1] - 1), (there[-1:], there[-1:])) if (reference[end] * DECILES >= n).any()]
    bins = np.searchsorted(np.unique(np.concatenate((deciles, *ends))), np.arange(reference.size), side="left")
    return np.unique(bins, return_inverse=True)[1]


def measure_psi(reference: np.ndarray, current: np.ndarray) -> float:
    """Measure the population stability index, ``sum (q - p) log (q / p)`` over bins.

    Parameters
    ----------
    reference, current : (bins,) int64
        counts

    Returns
    -------
    float
        shares are of counts to each of which half a row was added, so that an empty bin makes none infinite; 0 of one bin
    """
    p, q = ((counts + 0.5) / (counts.sum() + 0.5 * counts.size) for counts in (reference, current))
    return float(((q - p) * np.log(q / p)).sum())


def expect_psi(n_reference: int, n_current: int, n_bins: int) -> float:
    """Return the expected population stability index without drift: ``1 / n + 1 / m`` times the mean of chi².

    Parameters
    ----------
    n_reference, n_current : int
        rows, at least 1
    """
    return (1.0 / n_reference + 1.0 / n_current) * (n_bins - 1)


def measure_ks(reference: np.ndarray, current: np.ndarray) -> tuple[float, float]:
    """Measure the Kolmogorov–Smirnov distance: the largest difference of the cumulative distributions.

    Parameters
    ----------
    reference, current : (places,) int64
        counts, in the order of the values; of at least one row each

    Returns
    -------
    distance : float
    p : float
        how probable so large a distance is without drift, at the most: ``2 exp(-2 d² n m / (n + m))`` (Wei and Dudley 2012, who prove it for n = m
        from 458 on, and conjecture it for nearly all others), or 1; of up to FEW rows each, where that is below 1, counted over all orders of n and m
        different values (Hodges 1958), since ties only make distances smaller
    """
    n, m = int(reference.sum()), int(current.sum())
    apart = np.abs(np.cumsum(reference) / n - np.cumsum(current) / m)
    distance = float(apart.max())
    p = min(1.0, 2.0 * np.exp(-2.0 * distance**2 * n * m / (n + m)))
    if p < 1.0 and max(n, m) <= FEW:
        places = np.arange(reference.size)
        p = stats.ks_2samp(np.repeat(places, reference), np.repeat(places, current), method="exact").pvalue
    return distance, float(p)


def _expect(table: np.ndarray) -> np.ndarray:
    """Return expected counts under equal distributions."""
    return table.sum(axis=0) * table.sum(axis=1, keepdims=True) / table.sum()


def _test_table(table: np.ndarray) -> float:
    """Return the p-value of the chi² test of a table."""
    expected = _expect(table)
    return float(stats.chi2.sf(((table - expected) ** 2 / expected).sum(), table.shape[1] - 1))


def _pool(table: np.ndarray) -> np.ndarray:
    """Pool adjacent rare categories until each is expected to have ENOUGH rows, ``(2, categories)`` to ``(2, fewer)``.

    Pooling depends on the sums of both runs alone, so that p stays that of chi². A remainder joins the last pool, or else the smallest other
    category; one pool of all rare categories would hide shifts among them.
    """
    total = table.sum(axis=0)
    wanted = np.ceil(ENOUGH * total.sum() / table.sum(axis=1).min())  # total rows at which the smaller run is expected to have ENOUGH
    rare = total < wanted
    behind = np.concatenate(([0.0], np.cumsum(total[rare])))
    starts = [0]
    while behind[-1] - behind[starts[-1]] >= wanted:
        starts.append(int(np.searchsorted(behind, behind[starts[-1]] + wanted)))
    pooled = np.diff(np.concatenate((np.zeros((2, 1)), np.cumsum(table[:, rare], axis=1)), axis=1)[:, starts], axis=1)
    rest = table[:, rare].sum(axis=1) - pooled.sum(axis=1)
    found = np.concatenate((table[:, ~rare], pooled), axis=1)
    if not found.shape[1]:
        return rest[:, None]
    found[:, -1 if pooled.size else found.sum(axis=0).argmin()] += rest
    return found


def measure_categories(reference: np.ndarray, current: np.ndarray) -> tuple[float, float]:
    """Measure the distance of two distributions over unordered categories.

    Parameters
    ----------
    reference, current : (categories,) int64
        counts; of at least one row each

    Returns
    -------
    distance : float
        total variation: the share of rows that would have to be of another category
    p : float
        of chi², where categories with less than ENOUGH expected rows are put together, see ``_pool``; 1 where that leaves one
    """
    n, m = int(reference.sum()), int(current.sum())
    distance = float(np.abs(reference / n - current / m).sum() / 2)
    table = _pool(np.array([reference, current], np.float64))
    return distance, _test_table(table) if table.shape[1] > 1 else 1.0


def measure_shares(reference: int, n_reference: int, current: int, n_current: int) -> tuple[float, float]:
    """Measure the difference of two shares.

    Parameters
    ----------
    reference, n_reference : int
        rows of a kind, and all, at least 1

    Returns
    -------
    distance : float
        magnitude of the difference
    p : float
        of chi²; of Fisher's exact test where few rows are expected
    """
    distance = abs(current / n_current - reference / n_reference)
    table = np.array([[reference, n_reference - reference], [current, n_current - current]], np.float64)
    if not table.sum(axis=0).all():
        return distance, 1.0
    if _expect(table).min() < ENOUGH:
        return distance, min(1.0, float(stats.fisher_exact(table.astype(np.int64)).pvalue))
    return distance, _test_table(table)


def measure_wasserstein(lower: np.ndarray, upper: np.ndarray, reference: np.ndarray, current: np.ndarray) -> float:
    """Measure the Wasserstein distance: the mean distance that rows move under optimal transport.

    Parameters
    ----------
    lower, upper : (places,) float64
        where values lie, one place behind the other; spread evenly where these are two
    reference, current : (places,) int64
        counts; of at least one row each

    Returns
    -------
    float
        in the values' units
    """
    apart = np.cumsum(reference) / reference.sum() - np.cumsum(current) / current.sum()
    before = np.concatenate(([0.0], apart[:-1]))
    between = np.abs(apart[:-1]) * (lower[1:] - upper[:-1])
    total = np.abs(before) + np.abs(apart)
    with np.errstate(invalid="ignore", divide="ignore"):
        crossing = np.where(before * apart < 0, (before**2 + apart**2) / total, total)  # the difference changes sign: two triangles
    return float(between.sum() + (crossing / 2 * (upper - lower)).sum())


def correct_p(p: np.ndarray) -> np.ndarray:
    """Adjust p-values for multiple tests by Benjamini and Hochberg (1995): the false discovery rate is at most q among those up to q.

    Parameters
    ----------
    p : (tests,) float64
        NaN where nothing was tested

    Returns
    -------
    (tests,) float64
    """
    tested = ~np.isnan(p)
    corrected = np.full(p.shape, np.nan)
    if tested.any():
        corrected[tested] = stats.false_discovery_control(p[tested])
    return corrected


def measure_ndcg(reference: np.ndarray, current: np.ndarray) -> float:
    """Compute NDCG of the current order of features by the reference's importances, as Amazon SageMaker Clarify does.

    Parameters
    ----------
    reference, current : (features,) float64
        importances, at least 0

    Returns
    -------
    float
        normalized discounted cumulative gain: 1 where the order is the same; 1 also where no feature has any importance
    """
    discount = 1.0 / np.log2(np.arange(2, reference.size + 2))
    best = float((np.sort(reference)[::-1] * discount).sum())
    order = np.lexsort((-reference, -current))  # ties take the best order
    return float((reference[order] * discount).sum()) / best if best > 0 else 1.0
