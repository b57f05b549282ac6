"""The path-dependent game: equal to enumeration, additive, right on the papers' examples, at any depth."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config
from numpy.testing import assert_allclose

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.trees import lookup
from leafledger.kernels.trees.ensemble import check
from tests import naive
from tests.kernels.attributing import ATOL, explain
from tests.strategies import batches, forests
from tests.trees import chain, join, one_tree


@given(data=st.data(), ensemble=forests())
def test_shapley_values_are_those_of_the_definition(data, ensemble):
    """phi equals the enumeration of all subsets in exact fractions."""
    rows = data.draw(batches(ensemble))
    phi, _, _ = explain("shapley", ensemble, rows)
    assert_allclose(phi, [naive.semivalue(ensemble, row, naive.shapley_weight) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(), p=st.sampled_from((0.5, 0.125, 0.75, 0.0, 1.0)))
def test_banzhaf_values_are_those_of_the_definition(data, ensemble, p):
    """Weighted Banzhaf for any p, both ends included, equals the enumeration of all subsets in exact fractions."""
    rows = data.draw(batches(ensemble))
    phi, _, _ = explain("banzhaf", ensemble, rows, p=p)
    weight = lambda size, n: naive.banzhaf_weight(size, n, naive.Fraction(p))  # noqa: E731 - a definition in a line
    assert_allclose(phi, [naive.semivalue(ensemble, row, weight) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(), alpha=st.sampled_from((1, 2, 5)), beta=st.sampled_from((1, 3, 8)))
def test_beta_values_are_those_of_the_definition(data, ensemble, alpha, beta):
    """For whole numbers every weight is a fraction, and phi equals the enumeration of all subsets (Kwon and Zou 2022, Eq. 5)."""
    rows = data.draw(batches(ensemble, max_rows=2))
    phi, _, _ = explain("beta", ensemble, rows, alpha=float(alpha), beta=float(beta))
    weight = lambda size, n: naive.beta_weight(size, n, alpha, beta)  # noqa: E731 - a definition in a line
    assert_allclose(phi, [naive.semivalue(ensemble, row, weight) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(), alpha=st.sampled_from((0.3, 1.0, 2.5)), beta=st.sampled_from((0.7, 4.2)))
def test_beta_values_take_real_parameters(data, ensemble, alpha, beta):
    """Between whole numbers the weights are Beta functions, to the precision of their logarithms."""
    rows = data.draw(batches(ensemble, max_rows=1))
    phi, _, _ = explain("beta", ensemble, rows, alpha=alpha, beta=beta)
    weight = lambda size, n: naive.Fraction(naive.real_beta_weight(size, n, alpha, beta))  # noqa: E731 - a definition in a line
    assert_allclose(phi, [naive.semivalue(ensemble, row, weight) for row in rows], rtol=0, atol=1e-12)


@given(data=st.data(), ensemble=forests(max_trees=6, max_depth=7, max_features=9))
def test_shapley_values_add_up_to_the_margin(data, ensemble):
    """phi plus base is the raw score, which an independent descent over floats gives; base is the value of the empty coalition."""
    rows = data.draw(batches(ensemble))
    phi, base, margin = explain("shapley", ensemble, rows)
    assert_allclose(margin, naive.margins(ensemble, rows), rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)
    empty = [float(naive.coalition_value(ensemble, rows[0], (), k)) for k in range(ensemble.base.size)]
    assert_allclose(base, empty, rtol=0, atol=ATOL)


@pytest.mark.parametrize("name", ["shapley", "banzhaf", "beta"])
@pytest.mark.parametrize("depth", [1, 2, 9, 17, 30] if config.DISABLE_JIT else [1, 2, 9, 17, 100, 400, 1000])
def test_deep_chains_are_exact(name, depth):
    """SYNTHETIC.SPARSE of Karczmarz et al. 2022, Section 6: 388.5 for the feature that decides, exactly 0 for all others, at any depth.

    The root splits equal covers on the last feature into two chains; leaves of the left one are 0, those of the right one 777.
    """
    n = 2 * depth - 1  # nodes of a chain of depth - 1 splits
    half = chain(np.arange(depth - 1), np.full(depth, 777.0), np.ones(depth), depth)
    root = {"feature": depth - 1, "threshold": 0.5, "missing_left": False, "category_set": -1, "cover": 2.0 * depth}
    arrays = {name: np.concatenate(([first], getattr(half, name), getattr(half, name))) for name, first in root.items()}
    for side, first in (("left", 1), ("right", 1 + n)):
        child = getattr(half, side)
        arrays[side] = np.concatenate(([first], np.where(child < 0, -1, child + 1), np.where(child < 0, -1, child + 1 + n)))
    arrays = {field: values.astype(getattr(half, field).dtype) for field, values in arrays.items()}
    ensemble = half._replace(**arrays, value=np.concatenate(([[0.0]], 0.0 * half.value, half.value)))
    check(ensemble)
    phi, base, margin = explain(name, ensemble, np.ones((1, depth)))
    assert margin[0, 0] == 777.0
    assert_allclose(base, 388.5, rtol=1e-13)  # a product of as many cover ratios
    assert_allclose(phi[0, 0, -1], 388.5, rtol=1e-12)
    assert_allclose(phi[0, 0, :-1], 0.0, rtol=0, atol=388.5e-12)


# Li, Yu and Low 2026, Figure 1: what the eight outcomes of the splits on i, j, k give; recomputed by enumeration of the printed covers.
FIGURE_1 = {
    (1, 1, 1): ([0.07845454545454544, 0.04063636363636369, 0.04490909090909101], [0.0784090909090909, 0.04059090909090915, 0.04486363636363647]),
    (1, 1, 0): ([0.07263636363636361, 0.03627272727272734, -0.0449090909090909], [0.07268181818181815, 0.03631818181818189, -0.044863636363636356]),
    (1, 0, 1): ([0.04945454545454544, -0.4063636363636363, 0.020909090909090988], [0.0499090909090909, -0.4059090909090909, 0.021363636363636446]),
    (1, 0, 0): ([0.04763636363636361, -0.3627272727272726, -0.020909090909090877], [0.04718181818181816, -0.3631818181818181, -0.021363636363636335]),
}


@pytest.mark.parametrize("outcome", list(itertools.product((1, 0), repeat=3)))
def test_the_tree_of_figure_1(outcome):
    """The worked example of Li, Yu and Low 2026: covers 25 = 22 + 3, 22 = 20 + 2, 20 = 10 + 10, leaves .1, .3, .8, .7."""
    ensemble = chain(np.array([0, 1, 2]), np.array([0.1, 0.3, 0.7, 0.8]), np.array([3.0, 2.0, 10.0, 10.0]), 3)
    row = np.array([outcome], float)
    for name, weight in (("shapley", naive.shapley_weight), ("banzhaf", naive.banzhaf_weight)):
        phi, base, _ = explain(name, ensemble, row)
        assert_allclose(base, 0.636, rtol=1e-14)
        assert_allclose(phi[0, 0], naive.semivalue(ensemble, row[0], weight)[0], rtol=0, atol=1e-15)
        if outcome in FIGURE_1:
            assert_allclose(phi[0, 0], FIGURE_1[outcome][name == "banzhaf"], rtol=0, atol=1e-15)


@pytest.mark.parametrize(("n_deep", "n_stumps", "walks"), [(20, 1, [0, 0, 0, 21]), (1, 3000, [3000, 0, 0, 1])])
def test_few_walks_take_more_nodes_rather_than_another_kernel(monkeypatch, n_deep, n_stumps, walks):
    """Beside many trees of seven features, one of a single feature is walked at four nodes as well; nodes without weight change nothing. The other
    way round it cannot be: fewer nodes would not be exact."""
    monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)
    deep = chain(np.arange(7), np.arange(8.0), np.ones(8), 7)
    stump = chain(np.array([3]), np.array([1.0, -1.0]), np.ones(2), 7)
    ensemble = join([deep] * n_deep + [stump] * n_stumps)
    assert [some.start.size for some in prepare(ensemble, METHODS["shapley"], {}).method.walked] == walks
    row = np.array([[0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]])
    phi, _, _ = explain("shapley", ensemble, row)
    of_each = [naive.semivalue(tree, row[0], naive.shapley_weight) for tree in (deep, stump)]
    assert_allclose(phi[0], n_deep * of_each[0] + n_stumps * of_each[1], rtol=1e-13, atol=20 * ATOL)


def test_splits_that_ask_again_far_down_are_walked_at_all_nodes(monkeypatch):
    """Below seven features, which take four nodes, the first two are asked for again, by splits above splits: phi is that of the definition."""
    monkeypatch.setattr(lookup, "MAX_COMPARISONS", 0)
    feature = [*range(7), *[-1] * 7, 0, 1, 1, -1, -1, -1, -1]
    left = [*range(7, 14), *[-1] * 7, 15, 17, 19, *[-1] * 4]
    right = [*range(1, 7), 14, *[-1] * 7, 16, 18, 20, *[-1] * 4]
    threshold = np.where(np.arange(21) < 7, 0.0, [0] * 15 + [1, 2] + [0] * 4)
    threshold[14] = 3
    cover = np.array([64, 60, 50, 45, 40, 36, 30, 4, 10, 5, 5, 4, 6, 2, 28, 12, 16, 5, 7, 9, 7.0])
    ensemble = one_tree(feature, threshold, left, right, np.where(np.array(feature) < 0, np.arange(21.0) ** 2, 0), cover, 7)
    rows = np.array([[1.0] * 7, [4.0] * 7, [4, 1.5, 1, -1, 1, 1, 1]])
    phi, _, _ = explain("shapley", ensemble, rows)
    assert_allclose(phi, [naive.semivalue(ensemble, row, naive.shapley_weight) for row in rows], rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-15, 1e-60, 1e-110])
@pytest.mark.parametrize("p", [0.0, 1e-6, 0.5])
def test_rare_branches_keep_their_digits(rare, p):
    """A row on the rare side of two splits of one feature, where nothing or little else is present: phi is right to rounding, whatever the covers."""
    ensemble = chain(np.array([0, 1, 0]), np.array([0.0, 0.0, 1.0, 5.0]), np.array([1.0, rare, rare * rare, rare * rare]), 2)
    row = np.array([[1.0, 1.0]])
    phi, _, _ = explain("banzhaf", ensemble, row, p=p)
    expected = naive.semivalue(ensemble, row[0], lambda size, n: naive.banzhaf_weight(size, n, naive.Fraction(p)))
    assert_allclose(phi[0], expected, rtol=1e-14)


@pytest.mark.parametrize("p", [0.0, 1e-300, 1e-165, 1e-160, 1e-155, 1e-150, 1e-100, 1e-99, 1e-50])
def test_branches_without_cover_are_no_matter_of_how_small_p_is(p):
    """A row goes down a branch that no training row took, and its feature is asked for again there: phi is that of the definition, which at such p is
    that at 0, however far its square is below the smallest number."""
    of_splits = [0, 0, -1, 1, -1, -1, -1], [0.0, -1.0, 0, 0.0, 0, 0, 0], [1, 2, -1, 4, -1, -1, -1], [6, 3, -1, 5, -1, -1, -1]
    ensemble = one_tree(*of_splits, [0.0, 0, 1, 0, 2, 3, 7], [10.0, 0, 0, 0, 0, 0, 10], 2)
    rows = np.array([[-2.0, 0.0], [-0.5, 1.0], [1.0, 0.0]])
    phi, _, _ = explain("banzhaf", ensemble, rows, p=p)
    weight = lambda size, n: naive.banzhaf_weight(size, n, naive.Fraction(p))  # noqa: E731 - a definition in a line
    assert_allclose(phi, [naive.semivalue(ensemble, row, weight) for row in rows], rtol=0, atol=1e-12)
    assert_allclose(phi, explain("banzhaf", ensemble, rows, p=0.0)[0], rtol=0, atol=1e-12)
