"""The marginal game: equal to enumeration over subsets and background rows, additive, a matter of the function alone, right on examples."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from tests import naive
from tests.kernels.attributing import ATOL, LEVELS, run, write_value
from tests.kernels.marginal.against import KEPT, WEIGHTS, each_and_mixed, explain, query_for
from tests.strategies import batches, forests, partitions
from tests.trees import one_tree


@pytest.mark.again
@pytest.mark.parametrize(("name", "kept"), each_and_mixed("shapley", *WEIGHTS))
@given(data=st.data(), ensemble=forests(max_features=4))
def test_values_are_those_of_the_definition(data, ensemble, name, kept):
    """Every feature's phi, over all subsets and all background rows, in exact fractions."""
    rows, background = data.draw(batches(ensemble, max_rows=2)), data.draw(batches(ensemble, max_rows=5))
    phi, base, margin = explain(name, ensemble, rows, background, kept=KEPT[kept])
    group = np.arange(ensemble.n_features)
    expected = [naive.quotient_semivalue(ensemble, row, group, group.size, WEIGHTS[name], background) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)
    assert_allclose(base, naive.margins(ensemble, background).mean(axis=0), rtol=0, atol=ATOL)
    if METHODS[name].check is not None:
        assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@pytest.mark.again
@pytest.mark.parametrize(("name", "kept"), each_and_mixed("owen", "shapley", "two_step"))
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=5))
def test_values_of_a_partition_are_those_of_the_definition(data, ensemble, name, kept):
    """Groups as players, members of groups that come whole, and the two-step value, which also features in no split share."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=3))
    group = np.array(data.draw(st.lists(st.integers(0, 2), min_size=ensemble.n_features, max_size=ensemble.n_features)))
    group = np.unique(group, return_inverse=True)[1].astype(np.int32)
    phi, base, margin = explain(name, ensemble, rows, background, group, KEPT[kept])
    defined = {
        "shapley": lambda row: naive.quotient_semivalue(ensemble, row, group, int(group.max()) + 1, naive.shapley_weight, background),
        "owen": lambda row: naive.owen(ensemble, row, group, background),
        "two_step": lambda row: naive.two_step(ensemble, row, group, background),
    }
    assert_allclose(phi, [defined[name](row) for row in rows], rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_features=4))
@pytest.mark.slow
def test_coalitions_may_have_any_distribution_of_sizes(data, ensemble, kept):
    """One that is no semivalue's, of groups too, some of which are in no split."""
    rows, background, group = data.draw(batches(ensemble, max_rows=2)), data.draw(batches(ensemble, max_rows=5)), data.draw(partitions(ensemble))
    n_groups = int(group.max()) + 1
    sizes = data.draw(st.lists(st.integers(-2, 4), min_size=n_groups - 1, max_size=n_groups - 1))
    sizes = (*sizes, 1 - sum(sizes))
    phi, _, _ = explain("probabilistic", ensemble, rows, background, group, KEPT[kept], sizes=sizes)
    expected = [naive.quotient_semivalue(ensemble, row, group, n_groups, naive.size_weight(sizes), background) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL * max(1, max(map(abs, sizes))))


@given(data=st.data(), ensemble=forests(max_features=4))
def test_a_measure_may_be_signed(data, ensemble):
    """Weights of either sign, scaled to sum to one (Filom et al. 2024, Thm 2.4 asks for no more)."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=5))
    phi, _, _ = explain("semivalue", ensemble, rows, background, atoms=((0.25, -1.0), (0.5, 3.0)))
    group = np.arange(ensemble.n_features)
    weight = lambda size, n: (3 * naive.banzhaf_weight(size, n) - naive.banzhaf_weight(size, n, Fraction(1, 4))) / 2  # noqa: E731 - a definition
    expected = [naive.quotient_semivalue(ensemble, row, group, group.size, weight, background) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests(max_trees=2, max_features=4), across=st.sampled_from(LEVELS), within=st.sampled_from(LEVELS))
def test_coalitional_values_are_those_of_the_definition(data, ensemble, across, within, kept):
    """Any two values (Filom et al. 2024, Eq. E.6)."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=3))
    group = data.draw(partitions(ensemble))
    (across, weigh_across), (within, weigh_within) = write_value(across, int(group.max()) + 1), write_value(within, int(np.bincount(group).max()))
    phi, _, _ = explain("owen", ensemble, rows, background, group, KEPT[kept], across=across, within=within)
    expected = [naive.owen(ensemble, row, group, background, weigh_across, weigh_within) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=5, max_depth=6, max_features=8))
def test_shapley_values_add_up_to_margin_less_mean_margin(data, ensemble):
    """On larger forests, cut into units of several kinds."""
    rows, background = data.draw(batches(ensemble)), data.draw(batches(ensemble, max_rows=9))
    phi, base, margin = explain("shapley", ensemble, rows, background)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


def two_features(nodes, n_features=2):
    """A tree of (feature, threshold, left, right) and leaves (value, cover), in preorder."""
    split = np.array([len(node) == 4 for node in nodes])
    cover = np.array([0.0 if len(node) == 4 else node[1] for node in nodes])
    for v in range(len(nodes) - 1, -1, -1):
        if split[v]:
            cover[v] = cover[nodes[v][2]] + cover[nodes[v][3]]

    def take(k, default):
        return [node[k] if len(node) == 4 else default for node in nodes]

    values = [0.0 if len(node) == 4 else node[0] for node in nodes]
    return one_tree(take(0, -1), take(1, 0.0), take(2, -1), take(3, -1), values, cover, n_features)


# Filom et al. 2024, Example 3.1: 2.03 where x1 <= 0.5, else 1 where x0 <= 0.5 and 2 where not; 33, 1, 27 and 39 per cent of the data in the four
# cells. Tree 1 asks for x1 first, tree 2 for x0.
TREE_1 = two_features([(1, 0.5, 1, 2), (2.03, 34.0), (0, 0.5, 3, 4), (1.0, 27.0), (2.0, 39.0)])
TREE_2 = two_features([(0, 0.5, 1, 2), (1, 0.5, 3, 4), (1, 0.5, 5, 6), (2.03, 33.0), (1.0, 27.0), (2.03, 1.0), (2.0, 39.0)])
CELLS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
MARGINAL = [[-0.195, 0.4848], [0.135, 0.1548], [-0.395, -0.3452], [0.435, -0.1752]]
PATH_DEPENDENT = {0: [-0.4904545454545455, -0.2497454545454547], 1: [-0.28685, -0.45335]}  # in the third cell


def test_values_are_a_matter_of_the_function():
    """Example 3.1: two trees of one function have the same marginal values, and path-dependent ones that bin the features the other way round."""
    background = CELLS[[0] * 33 + [1] + [2] * 27 + [3] * 39]
    for t, tree in enumerate((TREE_1, TREE_2)):
        phi, base, _ = explain("shapley", tree, CELLS, background)
        assert_allclose(base, 1.7402, rtol=1e-15)
        assert_allclose(phi[:, 0], MARGINAL, rtol=0, atol=1e-15)
        by_path, _, _ = run("shapley", prepare(tree, METHODS["shapley"], {}), CELLS, 2)
        assert_allclose(by_path[2, 0], PATH_DEPENDENT[t], rtol=0, atol=1e-15)


def test_the_symmetric_tree_of_example_3_10():
    """Filom et al. 2024, Example 3.10: x0 on levels 1 and 3, x1 on level 2, a sixth of the data in each of the six cells there can be."""
    values = {"000": 1.0, "001": 0.0, "010": 2.0, "011": 0.0, "100": 3.0, "101": 7.0, "110": 5.0, "111": 11.0}
    inner = [(0, 0.0, 1, 8), (1, 0.0, 2, 5), (0, 1.0, 3, 4), (0, 1.0, 6, 7), (1, 0.0, 9, 12), (0, 1.0, 10, 11), (0, 1.0, 13, 14)]
    nodes = [None] * 15
    for place, node in zip((0, 1, 2, 5, 8, 9, 12), inner, strict=True):
        nodes[place] = node
    for place, (code, value) in zip((3, 4, 6, 7, 10, 11, 13, 14), values.items(), strict=True):
        nodes[place] = (value, 0.0 if code in ("001", "011") else 1.0)
    tree = two_features(nodes)
    background = np.array([[x0, x1] for x0 in (-1.0, 0.5, 2.0) for x1 in (-1.0, 1.0)])
    assert query_for("shapley", tree).partitioning.coded.n_above.tolist() == [0]
    phi, _, _ = explain("shapley", tree, np.array([[0.5, 1.0]]), background)
    assert_allclose(phi[0, 0], [-11 / 12, 13 / 12], rtol=1e-14)
