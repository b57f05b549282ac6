"""Shares of R^2: their definition on few rows, mergeable, precise far from 0, and errors as large as repetition finds them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose, assert_array_equal

from leafledger.kernels.r2.shares import finalize, merge, no_rows, update, whole
from leafledger.kernels.slices.labels import Labels
from tests.kernels.r2.decomposing import explain, grow

RTOL = 1e-12  # sums of some hundred terms, shares that do not cancel


def draw_rows(seed, n, players=3):
    """Losses ``(players, n)``, residuals, labels and weights of rows."""
    draw = np.random.default_rng(seed)
    labels = draw.normal(size=n) * 2 + 5
    residual = draw.normal(size=n)
    loss = draw.normal(size=(players, n)) + 0.3 * (labels - 5) ** 2
    return loss, residual, labels, draw.integers(0, 4, n) / 2


def labelled(residual, labels, weights, names=("",), group=None, missing=None):
    """Rows against their labels."""
    n = labels.size
    group, missing = np.zeros(n, np.int64) if group is None else group, np.zeros(n, bool) if missing is None else missing
    return Labels(labels, weights, missing, group, np.array(names), residual, np.zeros(n))


def summed(loss, residual, labels, weights, sizes=None):
    """The state of all rows, updated in slices."""
    state, first = no_rows(len(loss)), 0
    for n in sizes or [labels.size]:
        part = slice(first, first + n)
        state = update(state, np.ascontiguousarray(loss[:, part]), labelled(residual[part], labels[part], weights[part]), n)
        first += n
    return state


def shares(*rows, sizes=None):
    """The shares of rows that are one group."""
    state = summed(*rows, sizes=sizes)
    return finalize(state, np.arange(len(rows[0])), len(rows[0]))


def same_bits(a, b):
    """Whether two states are equal, array by array."""
    return list(a.names) == list(b.names) and all((x == y).all() for x, y in zip(a.sums, b.sums, strict=True))


@given(seed=st.integers(0, 1000), n=st.integers(2, 12))
def test_shares_are_those_of_the_definition(seed, n):
    """R^2, shares, remainder and standard errors equal the plain formulas in fractions; shares and remainder add up to R^2."""
    loss, residual, labels, weights = draw_rows(seed, n)
    weights[:2] = 1.0
    found = shares(loss, residual, labels, weights)
    exact = lambda array: [Fraction(float(x)) for x in array]  # noqa: E731 - a definition in a line
    w, y, r = exact(weights), exact(labels), exact(residual)
    mean = sum(a * b for a, b in zip(w, y, strict=True)) / sum(w)
    from_mean = [(x - mean) ** 2 for x in y]
    sst = sum(a * b for a, b in zip(w, from_mean, strict=True))
    rows = sum(x > 0 for x in w)

    def ratio(values):
        """A ratio to SST, and its standard error by the delta method."""
        share = sum(a * b for a, b in zip(w, values, strict=True)) / sst
        off = sum((a * (b - share * c)) ** 2 for a, b, c in zip(w, values, from_mean, strict=True))
        return float(share), float(off * rows / (rows - 1)) ** 0.5 / float(sst)

    expected = [ratio(exact(values)) for values in loss]
    r2, r2_error = ratio([a - b * b for a, b in zip(from_mean, r, strict=True)])
    rest, rest_error = ratio([a - b * b - sum(exact(values)[i] for values in loss) for i, (a, b) in enumerate(zip(from_mean, r, strict=True))])
    assert found.rows == [rows]
    assert_allclose([found.weight[0], found.sst[0]], [float(sum(w)), float(sst)], rtol=RTOL)
    scale = 1 + max(abs(x) for x, _ in expected)
    assert_allclose(found.share.value[0], [x for x, _ in expected], rtol=0, atol=RTOL * scale)
    assert_allclose([found.r2.value[0], found.remainder.value[0]], [r2, rest], rtol=0, atol=RTOL * scale)
    # An error is the root of what is left of sums of squares, and has half of their digits where nearly nothing is.
    assert_allclose(found.share.standard_error[0], [x for _, x in expected], rtol=0, atol=1e-6 * scale)
    assert_allclose([found.r2.standard_error[0], found.remainder.standard_error[0]], [r2_error, rest_error], rtol=0, atol=1e-6 * scale)
    assert_allclose(found.share.value.sum() + found.remainder.value, found.r2.value, rtol=0, atol=RTOL * scale)
    assert (np.diff(found.share.value[0, np.argsort(found.rank[0])]) <= 0).all()


@given(seed=st.integers(0, 1000), sizes=st.lists(st.integers(0, 20), min_size=1, max_size=6))
def test_states_merge(seed, sizes):
    """The state of slices is that of all rows at once, up to rounding; merged in the same order it has the same bits."""
    rows = draw_rows(seed, sum(sizes))
    once, parts = summed(*rows), summed(*rows, sizes=sizes)
    for a, b in zip(once.sums, parts.sums, strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    assert same_bits(parts, summed(*rows, sizes=sizes))
    assert same_bits(merge(once, no_rows(3)), once)
    assert same_bits(merge(no_rows(3), once), once)


@given(seed=st.integers(0, 1000), n=st.integers(0, 40), cut=st.integers(0, 40))
def test_every_group_has_the_sums_of_its_own_rows(seed, n, cut):
    """Whatever groups a slice has, a group's state is that of its rows alone, and all groups as one have the shares of all rows."""
    loss, residual, labels, weights = draw_rows(seed, n)
    draw = np.random.default_rng(seed)
    group, missing = draw.integers(0, 3, n), draw.random(n) < 0.2
    weights[missing] = 0
    state = no_rows(3)
    for part in (slice(0, min(cut, n)), slice(min(cut, n), n)):
        names, code = np.unique(np.array(["b", "a", "longer"])[group[part]], return_inverse=True)
        rows = labelled(residual[part], labels[part], weights[part], names, code.astype(np.int64), missing[part])
        state = update(state, np.ascontiguousarray(loss[:, part]), rows, labels[part].size)
    assert list(state.names) == sorted({["b", "a", "longer"][g] for g in group})
    for g, name in enumerate(state.names):
        mine = group == ["b", "a", "longer"].index(name)
        alone = summed(np.ascontiguousarray(loss[:, mine]), residual[mine], labels[mine], weights[mine])
        for field in alone.sums._fields:
            if field not in ("missing", "origin", "mean"):
                assert_allclose(getattr(state.sums, field)[g], getattr(alone.sums, field)[0], rtol=1e-10, atol=1e-10)
        assert state.sums.missing[g] == missing[mine].sum()
    found, expected = finalize(whole(state), np.arange(3), 3), shares(loss, residual, labels, weights)
    assert_allclose(found.share.value, expected.share.value, rtol=1e-10, atol=1e-10)
    assert_allclose(found.share.standard_error, expected.share.standard_error, rtol=1e-6, atol=1e-6)
    assert found.missing == [missing.sum()]


def test_players_that_no_split_asks_for_have_no_share():
    """They stand among all others, with zeros, and rank after positive shares; where nothing is to be shared they have none of it either."""
    loss, residual, labels, weights = draw_rows(1, 20)
    state = summed(loss, residual, labels, weights)
    found = finalize(state, np.array([4, 0, 2]), 5)
    assert_array_equal(found.share.value[0, [4, 0, 2]], finalize(state, np.arange(3), 3).share.value[0])
    assert_array_equal(found.share.value[0, [1, 3]], 0)
    assert_array_equal(found.share.standard_error[0, [1, 3]], 0)
    nothing = finalize(summed(loss, residual, np.ones(20), weights), np.array([4, 0, 2]), 5)
    assert np.isnan(nothing.share.value).all()
    assert nothing.rank.tolist() == [[1, 2, 3, 4, 5]]


def test_labels_far_from_zero_lose_no_digits():
    """Labels of 1e12 and noise in 1/4096ths, which the sum represents, have the shares and errors of the noise."""
    loss, residual, labels, weights = draw_rows(1, 500)
    labels = np.round(labels * 4096) / 4096
    near = shares(loss, residual, labels, weights, sizes=[100] * 5)
    far = shares(loss, residual, labels + 1e12, weights, sizes=[250] * 2)
    assert_allclose(far.sst, near.sst, rtol=1e-11)
    assert_allclose(far.share.value, near.share.value, rtol=1e-11)
    assert_allclose(far.share.standard_error, near.share.standard_error, rtol=1e-9)


@pytest.mark.parametrize("label", [0.1, 1e12 + 0.1, 0.0])
def test_a_constant_label_has_no_shares(label):
    """Where nothing varies there is nothing to share: NaN, not infinity, and no warning."""
    loss, residual, labels, weights = draw_rows(2, 30)
    found = shares(loss, residual, np.full_like(labels, label), weights, sizes=[7, 23])
    for estimate in (found.r2, found.remainder, found.share):
        assert np.isnan(estimate.value).all()
        assert np.isnan(estimate.standard_error).all()
    assert found.rows == [(weights > 0).sum()]
    nothing = finalize(whole(no_rows(3)), np.arange(3), 3)
    assert nothing.rows == [0]
    assert np.isnan([*nothing.r2.value, *nothing.share.value[0]]).all()


@pytest.mark.parametrize(("scale", "has_errors"), [(1e-40, True), (1e-70, True), (1e-80, False), (1e-90, False)])
def test_errors_are_none_where_their_sums_underflow(scale, has_errors):
    """Labels may be of any unit: a share has none, nor has its error, until fourth powers of the labels are no numbers any more."""
    loss, residual, labels, weights = draw_rows(0, 200)
    found, plain = (shares(loss * unit**2, residual * unit, labels * unit, weights) for unit in (scale, 1.0))
    for here, there in ((found.share, plain.share), (found.r2, plain.r2), (found.remainder, plain.remainder)):
        assert_allclose(here.value, there.value, rtol=1e-9)
        assert_allclose(here.standard_error, there.standard_error if has_errors else np.full_like(there.standard_error, np.nan), rtol=1e-6)


def test_rows_without_weight_do_not_count():
    """A label that is missing has weight 0."""
    loss, residual, labels, weights = draw_rows(3, 40)
    missing = weights == 0
    labels[missing], residual[missing], loss[:, missing] = np.nan, np.nan, np.nan
    found = summed(loss, residual, labels, weights)
    kept = summed(loss[:, ~missing], residual[~missing], labels[~missing], weights[~missing])
    assert same_bits(found, kept)


@pytest.mark.again
@pytest.mark.parametrize("offset", [0.0, 1e12])
def test_shares_and_the_named_remainder_add_up_to_r2(offset):
    """Of a forest: R^2 less the shares is what the trees' means and a start other than the mean of the labels take, - (sum of remainders + w (mean -
    start)^2) / SST (Jiang, Zhang and Zhang 2025, Section 4, with a start of its own); with an offset in the base or in the first tree as well."""
    draw = np.random.default_rng(4)
    ensemble = grow(draw, 5, 4, 6, base=offset)
    rows = draw.normal(size=(400, 6))
    labels = np.round(4096 * (rows[:, 0] + draw.normal(size=400))) / 4096 + offset
    weights = draw.integers(1, 4, 400) / 2
    loss, residual, remainder, start = explain(ensemble, rows, labels)
    found = shares(loss.T, residual, labels, weights, sizes=[150, 250])
    y = labels - offset
    mean = np.average(y, weights=weights)
    sst = weights @ (y - mean) ** 2
    named = -(weights @ remainder + weights.sum() * (mean - (start - offset)) ** 2) / sst
    assert_allclose(found.remainder.value, named, rtol=1e-10 if offset == 0 else 1e-3)  # beside 1e12 the start is rounded to 1e-4
    assert_allclose(found.share.value.sum() + found.remainder.value, found.r2.value, rtol=1e-12)
    assert_allclose(found.r2.value, 1 - weights @ residual**2 / sst, rtol=1e-11)


def test_an_offset_in_the_first_tree_loses_no_digits():
    """A library that keeps the mean of the labels, 1e12, in its first tree's leaves has the losses of one that keeps it in the base, 0 there."""
    draw = np.random.default_rng(5)
    ensemble = grow(draw, 4, 4, 6, base=0.0)
    leaves = np.flatnonzero(ensemble.feature < 0)
    ensemble.value[leaves] = np.round(4096 * ensemble.value[leaves]) / 4096
    first = leaves[leaves < ensemble.root[1]]
    rows = draw.normal(size=(100, 6))
    labels = np.round(4096 * draw.normal(size=100)) / 4096
    near, *_ = explain(ensemble, rows, labels)
    ensemble.value[first] += 1e12
    far, residual, *_ = explain(ensemble, rows, labels + 1e12)
    assert_allclose(far, near, rtol=0, atol=2e-3)  # leaves and start are rounded to 1e-4
    assert np.abs(residual).max() < 20


@pytest.mark.again
def test_standard_errors_are_the_spread_of_repetitions():
    """Given a model, shares of 200 samples of 100 rows spread as their standard errors say, within the 10 % that 200 samples can tell."""
    draw = np.random.default_rng(6)
    ensemble = grow(draw, *((1, 2) if config.DISABLE_JIT else (3, 3)), 4)
    n, repetitions = 100, 200
    rows = draw.normal(size=(n * repetitions, 4))
    labels = 2 * rows[:, 0] + rows[:, 1] * rows[:, 2] + draw.standard_t(8, size=len(rows))
    weights = draw.choice([0.5, 1.0, 3.0], len(rows))
    loss, residual, _, _ = explain(ensemble, rows, labels)
    repeated, errors = [], []
    for i in range(0, len(rows), n):
        part = slice(i, i + n)
        found = shares(loss.T[:, part], residual[part], labels[part], weights[part])
        repeated.append([*found.share.value[0], *found.r2.value, *found.remainder.value])
        errors.append([*found.share.standard_error[0], *found.r2.standard_error, *found.remainder.standard_error])
    assert_allclose(np.sqrt(np.mean(np.square(errors), axis=0)), np.std(repeated, axis=0, ddof=1), rtol=0.15)
