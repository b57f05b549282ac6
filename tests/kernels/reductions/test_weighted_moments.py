"""Weighted moments by group, against NumPy on the rows that count."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose

from leafledger.kernels.reductions.weighted_moments import WEIGHTED_MEANS, WEIGHTED_MOMENTS, find_errors_of_means, take_group, whole
from leafledger.kernels.slices.labels import no_labels

RNG = np.random.default_rng(3)
N = 40
VALUES = RNG.normal(size=(1, 3, N)) + 5.0
WEIGHT = RNG.integers(0, 4, N).astype(float)
MISSING = (WEIGHT == 0.0) & (np.arange(N) % 2 == 0)  # the other rows of weight 0 have a label, and do not count
LABELS = no_labels(N)._replace(weight=WEIGHT, missing=MISSING, group=RNG.integers(0, 2, N), names=np.array(['["a"]', '["b"]']))


def update(reduction, ends=(0, 7, 7, 25, N)):
    """The state after slices of the rows."""
    state = reduction.init(1, 3)
    for first, last in itertools.pairwise(ends):
        some = LABELS._replace(**{name: getattr(LABELS, name)[first:last] for name in ("weight", "missing", "group")})
        held = np.zeros((1, 3, last - first + 5))  # padding does not count
        held[..., : last - first] = VALUES[..., first:last]
        padded = some._replace(weight=np.append(some.weight, np.ones(5)), missing=np.append(some.missing, np.zeros(5, bool)))
        state = reduction.update(state, held, last - first, padded._replace(group=np.append(some.group, np.zeros(5, np.int64))))
    return state


@pytest.mark.parametrize("group", [0, 1, None])
def test_rows_count_by_their_weights(group):
    """In each group and over all: means, spreads, extremes, and how many rows have a label."""
    state = update(WEIGHTED_MOMENTS)
    found = whole(state) if group is None else take_group(state, group)
    some = np.full(N, True) if group is None else LABELS.group == group
    weight, values = WEIGHT[some], VALUES[0][:, some]
    mean = np.average(values, axis=1, weights=weight)
    assert_allclose(found.moments.mean[0, :, 0], mean, rtol=1e-13)
    assert_allclose(found.moments.mean_abs[0, :, 0], np.average(np.abs(values), axis=1, weights=weight), rtol=1e-13)
    assert_allclose(found.moments.spread[0, :, 0], (weight * (values - mean[:, None]) ** 2).sum(axis=1), rtol=1e-12)
    assert_allclose(found.moments.low[0, :, 0], values[:, weight > 0].min(axis=1))
    assert_allclose(found.moments.high[0, :, 0], values[:, weight > 0].max(axis=1))
    assert found.counts[:, 0].tolist() == [(weight > 0).sum(), MISSING[some].sum()]
    n, squares = (weight > 0).sum(), ((weight * (values - mean[:, None])) ** 2).sum(axis=1)
    assert_allclose(find_errors_of_means(found)[0], np.sqrt(squares * n / (n - 1)) / weight.sum(), rtol=1e-12)


def test_equal_weights_have_the_usual_errors():
    """Sample deviation over the root of the number of rows; none of one row, or of none."""
    labels = no_labels(4)._replace(weight=np.full(4, 2.5))
    state = WEIGHTED_MOMENTS.update(WEIGHTED_MOMENTS.init(1, 3), VALUES[..., :4].copy(), 4, labels)
    assert_allclose(find_errors_of_means(whole(state))[0], VALUES[0, :, :4].std(axis=1, ddof=1) / 2.0, rtol=1e-12)
    one = WEIGHTED_MOMENTS.update(WEIGHTED_MOMENTS.init(1, 3), VALUES[..., :4].copy(), 1, labels)
    assert np.isnan(find_errors_of_means(whole(one))).all()
    assert np.isnan(find_errors_of_means(whole(WEIGHTED_MOMENTS.init(1, 3)))).all()
    assert WEIGHTED_MOMENTS.finalize(state, np.arange(3), 3) is state


def test_means_without_groups_are_those_of_all():
    """Where no row counts, they are those of no rows."""
    state, expected = update(WEIGHTED_MEANS), whole(update(WEIGHTED_MOMENTS)).moments
    assert_allclose(state.mean, expected.mean[..., 0], rtol=1e-13)
    assert state.rows[0] == WEIGHT.sum()
    labels = no_labels(4)
    nothing = WEIGHTED_MEANS.update(WEIGHTED_MEANS.init(1, 3), VALUES[..., :4].copy(), 4, labels)
    assert (nothing.rows[0], nothing.mean.tolist()) == (0.0, [[0.0, 0.0, 0.0]])
