"""The marginal game: equal to enumeration over subsets and background rows, additive, a matter of the function alone, right on examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernels.batch import count, prepare, survey
from kernels.marginal import Background
from kernels.methods import METHODS
from kernels.parameters import InvalidParameters
from tests import naive
from tests.kernels.test_semivalue import ATOL, chain, run
from tests.strategies import batches, forests
from tests.trees import one_tree

WEIGHTS = {"shapley": naive.shapley_weight, "banzhaf": naive.banzhaf_weight, "beta": lambda size, n: naive.beta_weight(size, n, 2, 3)}
PARAMETERS = {"shapley": {}, "banzhaf": {"p": 0.5}, "beta": {"alpha": 2.0, "beta": 3.0}}


def counted(ensemble, background, group=None):
    """A background of few rows, counted."""
    surveyed = survey(ensemble, group)
    return count(surveyed, background.T[surveyed.ranks.column].copy())


def explain(name, ensemble, rows, background, group=None):
    """phi ``(n, outputs, players)``, base and margin."""
    prepared = prepare(ensemble, METHODS[name], PARAMETERS[name], group, background=counted(ensemble, background, group))
    return run(name, prepared, rows, ensemble.n_features if group is None else int(group.max()) + 1)


@pytest.mark.parametrize("name", WEIGHTS)
@given(data=st.data(), ensemble=forests(max_features=4))
def test_values_are_those_of_the_definition(data, ensemble, name):
    """Every feature's phi, over all subsets and all background rows, in exact fractions."""
    rows, background = data.draw(batches(ensemble, max_rows=2)), data.draw(batches(ensemble, max_rows=5))
    phi, base, margin = explain(name, ensemble, rows, background)
    group = np.arange(ensemble.n_features)
    expected = [naive.marginal_quotient_semivalue(ensemble, row, background, group, group.size, WEIGHTS[name]) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)
    assert_allclose(base, naive.margins(ensemble, background).mean(axis=0), rtol=0, atol=ATOL)
    if METHODS[name].additive:
        assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_features=5))
def test_groups_play_the_quotient_game(data, ensemble):
    """A group's value is that of a player who brings all its features."""
    rows, background = data.draw(batches(ensemble, max_rows=1)), data.draw(batches(ensemble, max_rows=4))
    group = np.arange(ensemble.n_features) // 2
    n_groups = int(group.max()) + 1
    phi, _, _ = explain("shapley", ensemble, rows, background, group)
    expected = [naive.marginal_quotient_semivalue(ensemble, row, background, group, n_groups, naive.shapley_weight) for row in rows]
    assert_allclose(phi, expected, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests(max_trees=5, max_depth=6, max_features=8))
def test_shapley_values_add_up_to_margin_less_mean_margin(data, ensemble):
    """On larger forests, cut into units of several kinds."""
    rows, background = data.draw(batches(ensemble)), data.draw(batches(ensemble, max_rows=9))
    phi, base, margin = explain("shapley", ensemble, rows, background)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@given(data=st.data(), ensemble=forests())
def test_backgrounds_add_up(data, ensemble):
    """Counts of parts are the counts of the whole, so that who counts what does not matter."""
    background = data.draw(batches(ensemble, max_rows=6))
    whole, first, rest = (counted(ensemble, rows) for rows in (background, background[:1], background[1:]))
    assert (whole.counts == first.counts + rest.counts).all()
    assert whole.n_rows[0] == first.n_rows[0] + rest.n_rows[0] == len(background)


def two_features(nodes, n_features=2):
    """A tree of (feature, threshold, left, right) and leaves (value, cover), in preorder."""
    split = np.array([len(node) == 4 for node in nodes])
    cover = np.array([0.0 if len(node) == 4 else node[1] for node in nodes])
    for v in range(len(nodes) - 1, -1, -1):
        if split[v]:
            cover[v] = cover[nodes[v][2]] + cover[nodes[v][3]]
    take = lambda k, default: [node[k] if len(node) == 4 else default for node in nodes]  # noqa: E731 - a definition in a line
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
    """Example 3.1: two trees of one function have the same marginal values, and path-dependent ones that rank the features the other way round."""
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
    surveyed = survey(tree)
    assert surveyed.units.failing.tolist() == [0]
    phi, _, _ = explain("shapley", tree, np.array([[0.5, 1.0]]), background)
    assert_allclose(phi[0, 0], [-11 / 12, 13 / 12], rtol=1e-14)


def test_what_the_game_does_not_have_is_refused():
    """A leaf with more players than a code has bits, and values that are not made of the game's own weights."""
    deep = chain(np.arange(13), np.arange(14.0), np.ones(14), 13)
    with pytest.raises(InvalidParameters, match=r"tree 0, node 2[56]: more than 12 players above a leaf"):
        survey(deep)
    background = Background(np.ones(1, np.int64), np.zeros(0, np.int64))
    with pytest.raises(InvalidParameters, match="'owen' has no marginal game"):
        prepare(deep, METHODS["owen"], {}, np.zeros(13, int), background=background)
    with pytest.raises(InvalidParameters, match="'shapley' has no interactions in the marginal game"):
        prepare(deep, METHODS["shapley"], {}, interactions=True, background=background)
