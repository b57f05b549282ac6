"""Methods by measures and by weights are those of the definition, and say what they miss."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels import game_values
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.semivalues.methods import EXPONENTS
from tests import naive
from tests.kernels.attributing import ATOL, defaults, explain, run
from tests.kernels.marginal.against import against
from tests.strategies import batches, forests
from tests.trees import chain, stumps

MEASURES = (
    ((0.0, 1.0), (0.25, 2.0), (0.5, 1.0), (1.0, 4.0)),
    ((0.125, 1.0),),
    ((0.0, -1.0), (0.25, 2.0), (0.5, -1.0), (1.0, 4.0)),  # of either sign
)


def moment(size, n, atoms):
    """The weight of one coalition where others are present with probability t, t drawn from atoms."""
    total = sum(Fraction(w) for _, w in atoms)
    return sum(Fraction(w) / total * Fraction(t) ** size * (1 - Fraction(t)) ** (n - 1 - size) for t, w in atoms)


@given(data=st.data(), ensemble=forests(), atoms=st.sampled_from(MEASURES))
def test_a_measure_of_atoms(data, ensemble, atoms):
    """Phi equals the enumeration in exact fractions, more atoms than nodes and fewer, some of them below zero."""
    rows = data.draw(batches(ensemble, max_rows=2))
    phi, _, _ = explain("semivalue", ensemble, rows, atoms=atoms)
    assert_allclose(phi, [naive.semivalue(ensemble, row, lambda size, n: moment(size, n, atoms)) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
@pytest.mark.slow
def test_a_measure_with_a_density(data, ensemble):
    """2t as a polyline is Beta(1, 2); as a function 6 t (1 - t) is Beta(2, 2); a uniform half with an atom's half is the mean of both values."""
    rows = data.draw(batches(ensemble, max_rows=1))
    triangle, _, _ = explain("semivalue", ensemble, rows, density=((0.0, 0.0), (1.0, 2.0)))
    assert_allclose(triangle, explain("beta", ensemble, rows, alpha=1.0, beta=2.0)[0], rtol=0, atol=ATOL)
    function, _, _ = explain("semivalue", ensemble, rows, density=lambda t, rest: 6 * t * rest)
    assert_allclose(function, explain("beta", ensemble, rows, alpha=2.0, beta=2.0)[0], rtol=0, atol=ATOL)
    mixed, _, _ = explain("semivalue", ensemble, rows, density=((0.0, 1.0), (1.0, 1.0)), atoms=((0.5, 1.0),))
    halves = [explain(name, ensemble, rows)[0] for name in ("shapley", "banzhaf")]
    assert_allclose(mixed, (halves[0] + halves[1]) / 2, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
def test_probabilistic_values_by_sizes_and_by_weights(data, ensemble):
    """A feature that joins one other, or none: no semivalue. Sizes share their probability among the coalitions of a size, weights are each one's."""
    rows, n = data.draw(batches(ensemble, max_rows=2)), ensemble.n_features
    sizes = np.zeros(n)
    sizes[: min(n, 2)] = 1 / min(n, 2)
    expected = [naive.semivalue(ensemble, row, naive.size_weight(sizes)) for row in rows]
    weights = [size / math.comb(n - 1, k) for k, size in enumerate(sizes)]
    for given_ in ({"sizes": tuple(sizes)}, {"weights": tuple(weights)}):
        assert_allclose(explain("probabilistic", ensemble, rows, **given_)[0], expected, rtol=0, atol=ATOL)


def depth_of(ensemble):
    """Most splits above a leaf."""
    level, deepest = np.zeros(ensemble.feature.size, int), 0
    for v in range(ensemble.feature.size):  # children follow their parents
        if ensemble.feature[v] >= 0:
            level[[ensemble.left[v], ensemble.right[v]]] = level[v] + 1
            deepest = max(deepest, level[v] + 1)
    return deepest


@given(data=st.data(), ensemble=forests(max_trees=2, max_depth=3, max_features=6))
def test_sizes_of_as_many_players_as_trees_are_deep(data, ensemble):
    """Leaf by leaf, with players of no effect besides those on its path (Li, Yu and Low 2026, Remark 2); uniform sizes give Shapley values, binomial
    ones Banzhaf values, in either game."""
    rows, n = data.draw(batches(ensemble, max_rows=1)), int(max(1, min(depth_of(ensemble), ensemble.n_features)))
    drawn = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    sizes = [Fraction(size, sum(drawn)) for size in drawn]
    expected = np.zeros((1, ensemble.base.size, ensemble.n_features))
    for leaf in np.flatnonzero(ensemble.feature < 0):
        alone = ensemble._replace(value=np.where(np.arange(len(ensemble.value))[:, None] == leaf, ensemble.value, 0.0))
        for k in range(ensemble.base.size):
            v = naive.game(alone, rows[0], k)
            joins = [j for j in range(ensemble.n_features) if any(v([*s, j]) != v(s) for s in subsets(ensemble.n_features, j))]
            for j in joins:
                others = [i for i in joins if i != j]
                for s in itertools.chain.from_iterable(itertools.combinations(others, size) for size in range(len(joins))):
                    expected[0, k, j] += float(naive.thinned_weight(sizes, len(s), len(joins)) * (v([*s, j]) - v(s)))
    found, _, _ = explain("probabilistic", ensemble, rows, sizes=tuple(map(float, sizes)))
    assert_allclose(found, expected, rtol=0, atol=ATOL)
    background = data.draw(batches(ensemble, max_rows=3))
    for name, few in (("shapley", [1 / n] * n), ("banzhaf", [math.comb(n - 1, k) / 2 ** (n - 1) for k in range(n)])):
        assert_allclose(explain("probabilistic", ensemble, rows, sizes=tuple(few))[0], explain(name, ensemble, rows)[0], rtol=0, atol=ATOL)
        both = [
            run(each, against(each, ensemble, background, given_), rows, ensemble.n_features)[0]
            for each, given_ in ((name, defaults(name)), ("probabilistic", defaults("probabilistic") | {"sizes": tuple(few)}))
        ]
        assert_allclose(*both, rtol=0, atol=ATOL)


def subsets(n, without):
    """All sets of n players but one."""
    others = [i for i in range(n) if i != without]
    return [s for size in range(n) for s in itertools.combinations(others, size)]


@given(data=st.data(), ensemble=forests())
def test_probabilistic_values_of_groups(data, ensemble):
    """Sizes count groups, also those that no split asks for."""
    rows = data.draw(batches(ensemble, max_rows=1))
    group = np.arange(ensemble.n_features) // 2
    n_groups = int(group.max()) + 1
    sizes = np.arange(1.0, n_groups + 1) / np.arange(1.0, n_groups + 1).sum()
    given_ = {"sizes": tuple(sizes), "weights": ()}
    phi, _, _ = run("probabilistic", prepare(ensemble, METHODS["probabilistic"], given_, group), rows, n_groups)
    expected = [naive.quotient_semivalue(ensemble, row, group, n_groups, naive.size_weight(sizes)) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)


@pytest.mark.parametrize(
    ("name", "parameters", "says"),
    [
        ("semivalue", {}, "needs parameter 'atoms' or 'density'"),
        ("semivalue", {"atoms": ((0.0, 1.0), (1.0, -1.0))}, "'density' sum to 0, and their sizes to 2; expected a sum above 1e-06 of the latter"),
        ("semivalue", {"density": ((0.0, -1.0), (1.0, 0.0))}, "sum to -0.5"),
        ("semivalue", {"density": lambda t, _: t > 0.5}, "'density' is not smooth enough to be integrated as a function"),
        ("probabilistic", {}, "needs parameter 'sizes' or 'weights', and not both"),
        ("probabilistic", {"sizes": (1.0,), "weights": (1.0,)}, "and not both"),
        ("probabilistic", {"sizes": (0.5,) * 9}, "parameter 'sizes' has 9 numbers, expected one for each of . players"),
    ],
)
@given(ensemble=forests(max_trees=1))
def test_what_is_missing_is_said(ensemble, name, parameters, says):
    """No measure, or one whose weights cannot be scaled to one, and a distribution of another game."""
    with pytest.raises(InvalidParameters, match=says):
        explain(name, ensemble, np.zeros((1, ensemble.n_features)), **parameters)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"sizes": (1.0, 1.0, 1.0)}, "parameter 'sizes' sums to 3, expected 1, as probabilities do"),
        ({"sizes": (0.5, 0.25, 0.25001)}, "parameter 'sizes' sums to 1.00001, expected 1"),
        ({"sizes": (0.0, 0.0, 0.0)}, "parameter 'sizes' sums to 0, expected 1"),
        ({"sizes": (1e308, 1e308, 0.0)}, "parameter 'sizes' sums to inf, expected 1"),
        ({"weights": (1 / 3, 1 / 3, 1 / 3)}, "'weights', times how many coalitions of a size there are, sums to 1.33333333, expected 1"),
    ],
)
def test_what_is_no_distribution_is_refused(parameters, says):
    """A feature joins some coalition (Weber 1988): with probabilities that sum to three its value would be three times too large."""
    ensemble = chain(np.arange(3), np.arange(4.0), np.ones(4), 3)
    with pytest.raises(InvalidParameters, match=re.escape(says)):
        explain("probabilistic", ensemble, np.zeros((1, 3)), **parameters)
    third = explain("probabilistic", ensemble, np.zeros((1, 3)), sizes=(0.3333333, 0.3333333, 0.3333333))[0]
    assert_allclose(third, explain("shapley", ensemble, np.zeros((1, 3)))[0], rtol=1e-6)


@pytest.mark.parametrize("name", ["sizes", "weights"])
@pytest.mark.parametrize("most", [1e5, 9e5, 1.1e6, 1e9, 3e15])
def test_numbers_that_cancel_keep_their_digits_or_are_refused(name, most):
    """In an additive model a feature changes by the same whatever it joins, so its value is that, as long as the sum of one is not lost beside its
    parts, whose magnitudes sum to ``most``."""
    n, rows = 4, np.array([[0.0, 1.0, 0.0, 1.0]])
    sizes = np.array([0.1 + most / 6, 0.2 - most / 2, 0.0, most / 3])
    sizes[2] = 1 - math.fsum(sizes)
    given_ = {name: tuple(sizes if name == "sizes" else sizes / [math.comb(n - 1, k) for k in range(n)])}
    ensemble = stumps([(j, 0.5, float(j), -1.0) for j in range(n)], n)
    if most > 1e6:
        with pytest.raises(InvalidParameters, match=r"parameter '\w+'.* sums to .*[,;] expected (1, as|less than 1e\+06, or digits are lost)"):
            explain("probabilistic", ensemble, rows, **given_)
    else:
        effect = [1.0 + j if value == 0 else -1.0 - j for j, value in enumerate(rows[0])]
        assert_allclose(explain("probabilistic", ensemble, rows, **given_)[0][0, 0], np.array(effect) / 2, rtol=0, atol=1e-9)


def test_weights_that_overflow_are_refused():
    """Of 2,000 players there are more coalitions of a size than a float64 holds; no phi is to be NaN for that."""
    ensemble = chain(np.arange(3), np.arange(4.0), np.ones(4), 2000)
    with pytest.raises(InvalidParameters, match="parameter 'weights' overflows: there are too many coalitions of 2000 players; give 'sizes'"):
        explain("probabilistic", ensemble, np.zeros((1, 2000)), weights=(0.0,) * 2000)


@pytest.mark.again
@pytest.mark.parametrize("alpha", [*EXPONENTS, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("beta", [*EXPONENTS, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("n_players", [1, 2, 3, 7, 20])
def test_beta_keeps_its_digits_at_its_limits(n_players, alpha, beta):
    """Weights of coalitions are those of the definition in fractions: beyond the limits they may miss a millionth, or overflow."""
    nodes, weights = game_values.beta(n_players, alpha, beta)
    for size in range(n_players):
        exact = Fraction(1)
        for i in range(n_players - 1):
            exact *= (Fraction(beta) + i if i < size else Fraction(alpha) + i - size) / (Fraction(alpha) + Fraction(beta) + i)
        assert abs(np.sum(weights * nodes**size * (1 - nodes) ** (n_players - 1 - size)) - float(exact)) < 2e-14


@pytest.mark.parametrize("given", ["1e300", "1e-300", 1e13, 1e-7, 0, -1, float("inf"), float("nan")])
def test_exponents_beyond_the_limits_are_refused(given):
    """Before anything overflows."""
    for parameter in METHODS["beta"].parameters:
        with pytest.raises(ValueError, match=r"^expected a number between 1e-06 and 1e\+12$"):
            parameter.read(given)
