"""Probabilistic values of the path-dependent game: equal to enumeration whatever the sizes and the players, and accurate at any depth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import config
from numpy.testing import assert_allclose

from leafledger.kernels import game_values
from leafledger.kernels.jit.decorator import frozen
from leafledger.kernels.path_dependent.probabilistic import add_probabilistic, prepare_probabilistic
from leafledger.kernels.trees.binning import BATCH, bin_dtype, bin_ensemble, bin_rows, padded
from leafledger.kernels.trees.paths import trace
from tests import naive
from tests.strategies import batches, forests
from tests.trees import one_tree

# Leaves are at most 2 in size and trees at most 3: what is left is rounding of sums of some thirty terms.
ATOL = 1e-13
DEPTHS = [1, 2, 9, 30] if config.DISABLE_JIT else [1, 2, 30, 100, 400, 1000]


def shapley(n):
    return np.full(n, 1 / n)


def banzhaf(n, p=0.5):
    """Binomial sizes, by logarithms where they would underflow."""
    logarithm = [math.log(math.comb(n - 1, k)) + k * math.log(p) + (n - 1 - k) * math.log1p(-p) for k in range(n)]
    return np.exp(logarithm)


def beta(n, alpha, weight):
    return np.array([math.comb(n - 1, k) * naive.real_beta_weight(k, n, alpha, weight) for k in range(n)])


def one_size(n, size):
    return (np.arange(n) == size).astype(float)


DISTRIBUTIONS = {
    "shapley": shapley,
    "banzhaf": banzhaf,
    "rarely present": lambda n: banzhaf(n, 0.01),
    "beta": lambda n: beta(n, 2.5, 0.7),
    "alone": lambda n: one_size(n, 0),
    "half": lambda n: one_size(n, n // 2),
    "last": lambda n: one_size(n, n - 1),
    "alternating": lambda n: (-1.0) ** np.arange(n),
    "random": lambda n: np.random.default_rng(n).dirichlet(np.full(n, 0.2)),
}


def explain(ensemble, rows, sizes, group=None, n_groups=0):
    """phi ``(n, outputs, players)``; the players are groups ``(features,)`` of features, or every feature is one."""
    if group is None:
        group, n_groups = np.arange(ensemble.n_features), ensemble.n_features
    ranking, splits = bin_ensemble(ensemble)
    values = np.zeros((ranking.column.size, padded(len(rows))))
    values[:, : len(rows)] = rows.T[ranking.column]
    bins = np.zeros(values.shape, bin_dtype(ranking))
    bin_rows(values, ranking, bins)
    player = np.where(ensemble.feature < 0, -1, group[ensemble.feature]).astype(np.int32)
    tables = prepare_probabilistic(ensemble, splits, trace(ensemble, player, n_groups), player, sizes)
    phi = np.zeros((ensemble.base.size, n_groups, values.shape[1]))
    add_probabilistic(bins, frozen(tables), phi)
    return phi[:, :, : len(rows)].transpose(2, 0, 1)


def by_points(ensemble, rows, rule):
    """phi ``(n, outputs, features)`` of one tree with all thresholds 0.5, leaf by leaf: the sum over a quadrature's points of (o - a) times the
    product of the others' factors (1 - t) a + t o."""
    phi = np.zeros((len(rows), ensemble.base.size, ensemble.n_features))
    t = rule.nodes[:, None]
    stack = [(0, {})]
    while stack:
        node, path = stack.pop()
        j = ensemble.feature[node]
        if j >= 0:
            children, left = (ensemble.left[node], ensemble.right[node]), rows[:, j] <= 0.5
            a, o = path.get(j, (1.0, np.ones(len(rows))))
            cover = ensemble.cover[list(children)]
            ratios = cover / cover.sum() if cover.any() else np.full(2, 0.5)
            stack += [(child, path | {j: (a * ratio, o * side)}) for child, ratio, side in zip(children, ratios, (left, ~left), strict=True)]
            continue
        before = [np.ones((t.size, len(rows)))]
        for a, o in path.values():
            before.append(before[-1] * ((1 - t) * a + t * o))
        after = rule.weights[:, None] * np.ones(len(rows))
        for j, product in zip(reversed(path), reversed(before[:-1]), strict=True):
            a, o = path[j]
            phi[:, :, j] += ((o - a) * (product * after).sum(axis=0))[:, None] * ensemble.value[node]
            after = after * ((1 - t) * a + t * o)
    return phi


def chains(depth):
    """SYNTHETIC.SPARSE of Karczmarz et al. 2022: the root splits on the last feature, into two chains on all others; leaves are 0, then 777."""
    n = 2 * depth - 1  # nodes of one chain
    node = np.arange(n)
    split = node < depth - 1
    feature, cover = np.where(split, node, -1), np.where(split, depth - node, 1.0)
    left, right = np.where(split, node + depth - 1, -1), np.where(split, np.where(node == depth - 2, n - 1, node + 1), -1)
    sides = [np.where(child < 0, -1, child + first) for first in (1, 1 + n) for child in (left, right)]
    return one_tree(
        feature=np.concatenate(([depth - 1], feature, feature)),
        threshold=0.5,
        left=np.concatenate(([1], sides[0], sides[2])),
        right=np.concatenate(([1 + n], sides[1], sides[3])),
        value=np.concatenate((np.zeros(n + 1), np.full(n, 777.0))),
        cover=np.concatenate(([2.0 * depth], cover, cover)),
        n_features=depth,
    )


def halving_chain(depth):
    """Split i asks feature i, half of the cover goes on to split i + 1, and at last to the only leaf that is not 0 but 1."""
    node = np.arange(2 * depth + 1)
    split = node < depth
    level = np.where(split, node, node - depth + 1)
    level[-1] = depth
    return one_tree(
        feature=np.where(split, node, -1),
        threshold=0.5,
        left=np.where(split, node + depth, -1),
        right=np.where(split, np.where(node == depth - 1, 2 * depth, node + 1), -1),
        value=(node == 2 * depth).astype(float),
        cover=0.5**level,
        n_features=depth,
    )


def random_tree(rng, n_splits, n_features, width):
    """A tree that grows mostly at its last leaves, so that it is deep, with covers from nearly balanced to nearly none."""
    feature, left, right, cover, leaves = [-1], [-1], [-1], [1.0], [0]
    for _ in range(n_splits):
        node = leaves.pop(-min(len(leaves), int(rng.geometric(0.6))))
        share = rng.choice([0.5, 0.9, 0.1, 1e-6, 1.0])
        feature[node], left[node], right[node] = int(rng.integers(n_features)), len(feature), len(feature) + 1
        leaves += [left[node], right[node]]
        cover += [cover[node] * share, cover[node] * (1 - share)]
        for numbers in (feature, left, right):
            numbers += [-1, -1]
    return one_tree(feature, 0.5, left, right, rng.normal(size=(len(feature), width)), cover, n_features)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@given(data=st.data(), ensemble=forests())
def test_values_are_those_of_the_definition(name, data, ensemble):
    """phi equals the enumeration of all subsets in exact fractions, features in no split being players too (Weber 1988)."""
    rows = data.draw(batches(ensemble, max_rows=2))
    sizes = DISTRIBUTIONS[name](ensemble.n_features)
    weight = naive.size_weight(sizes)
    assert_allclose(explain(ensemble, rows, sizes), [naive.semivalue(ensemble, row, weight) for row in rows], rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_features=6))
def test_groups_of_features_are_players(data, ensemble):
    """Features that join together, one group of none among them: phi equals the enumeration of all sets of groups, for weights of any sign."""
    rows = data.draw(batches(ensemble, max_rows=2))
    n_groups = data.draw(st.integers(1, 4))
    group = np.array(data.draw(st.lists(st.integers(0, n_groups - 1), min_size=ensemble.n_features, max_size=ensemble.n_features)))
    sizes = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=n_groups + 1, max_size=n_groups + 1))) / 8
    phi = explain(ensemble, rows, sizes, group, n_groups + 1)
    weight = naive.size_weight(sizes)
    assert_allclose(phi, [naive.quotient_semivalue(ensemble, row, group, n_groups + 1, weight) for row in rows], rtol=0, atol=ATOL)


@pytest.mark.again
@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name != "alternating"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_chains_are_exact(name, depth):
    """SYNTHETIC.SPARSE of Karczmarz et al. 2022, Section 6: 388.5 for the feature that decides, 0 for all others, at any depth."""
    sizes = DISTRIBUTIONS[name](depth)
    phi = explain(chains(depth), np.ones((1, depth)), sizes)
    assert_allclose(phi[0, 0, -1], 388.5 * sizes.sum(), rtol=1e-12)
    assert_allclose(phi[0, 0, :-1], 0.0, rtol=0, atol=388.5e-12)


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_smallest_values_keep_their_digits(depth):
    """A leaf that every feature halves is worth 2^-(absent features): phi at size k is 2^(k - depth), to a relative error."""
    ensemble = halving_chain(depth)
    for size in {0, 1, depth // 2, depth - 1} & set(range(depth)):
        phi = explain(ensemble, np.ones((1, depth)), one_size(depth, size))
        assert_allclose(phi[0, 0], 2.0 ** (size - depth), rtol=1e-12)


@pytest.mark.again
@pytest.mark.parametrize(("n_splits", "n_features", "width"), [(40, 5, 1), (30, 20, 2)] if config.DISABLE_JIT else [(400, 9, 1), (300, 90, 3)])
@pytest.mark.slow
def test_deep_random_trees_agree_with_quadratures(n_splits, n_features, width):
    """Players met again and again, branches without cover, several batches of rows: the same semivalues as by points."""
    rng = np.random.default_rng(n_splits)
    ensemble = random_tree(rng, n_splits, n_features, width)
    rows = rng.random((BATCH + 3, n_features))
    for sizes, rule in (
        (shapley(n_features), game_values.shapley(n_features)),
        (banzhaf(n_features, 0.2), game_values.banzhaf(n_features, 0.2)),
        (beta(n_features, 3.0, 2.0), game_values.beta(n_features, 3.0, 2.0)),
    ):
        expected = by_points(ensemble, rows, rule)
        assert np.abs(expected).max() > 0.1
        assert_allclose(explain(ensemble, rows, sizes), expected, rtol=0, atol=1e-12)


def test_the_tree_of_figure_1():
    """Li, Yu and Low 2026, Figure 1, for the row that reaches v5: Shapley and Banzhaf values as recomputed from the printed covers."""
    ensemble = one_tree(
        feature=[0, -1, 1, -1, 2, -1, -1],
        threshold=0.5,
        left=[1, -1, 3, -1, 5, -1, -1],
        right=[2, -1, 4, -1, 6, -1, -1],
        value=[0.0, 0.1, 0.0, 0.3, 0.0, 0.7, 0.8],
        cover=[25.0, 3.0, 22.0, 2.0, 20.0, 10.0, 10.0],
        n_features=3,
    )
    for sizes, expected in (
        (shapley(3), [0.07845454545454544, 0.04063636363636369, 0.04490909090909101]),
        (banzhaf(3), [0.0784090909090909, 0.04059090909090915, 0.04486363636363647]),
    ):
        assert_allclose(explain(ensemble, np.ones((1, 3)), sizes)[0, 0], expected, rtol=0, atol=1e-15)


def test_a_tree_without_splits_has_no_players():
    """Nothing is added, and no size is needed."""
    ensemble = one_tree(feature=[-1], threshold=0.5, left=[-1], right=[-1], value=[1.0], cover=[1.0], n_features=2)
    assert (explain(ensemble, np.ones((1, 2)), np.zeros(0)) == 0).all()


def test_a_game_of_fewer_players_than_a_path_is_refused():
    """The sizes must be those of all players."""
    with pytest.raises(ValueError, match="a path has 3 distinct players, but the sizes are those of 2"):
        explain(halving_chain(3), np.ones((1, 3)), shapley(2))
