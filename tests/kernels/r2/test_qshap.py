"""What players take off the squared error: equal to enumeration, additive, the same whichever way a tree is taken."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose

from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.r2 import qshap
from tests import naive, naive_r2
from tests.kernels.r2.computing import regressions
from tests.kernels.r2.decomposing import explain, grow
from tests.strategies import batches, forests
from tests.trees import chain, one_tree

# Leaves are at most 2 in size, labels 8, trees at most 3: what is left is rounding of sums of some hundred terms of size 100.
ATOL = 1e-12
WAYS = {"looked up": {"ENTRIES_PER_NODE": 1 << 20}, "expanded": {"ENTRIES_PER_NODE": 0}, "by pairs": {"ENTRIES_PER_NODE": 0, "MOST_TERMS": 0}}


def draw_labels(data, rows):
    return np.array([data.draw(st.integers(-32, 32)) / 4 for _ in rows])


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(data=st.data(), ensemble=regressions())
@pytest.mark.slow
def test_losses_are_those_of_the_definition(way, data, ensemble):
    """Losses, residuals and remainders equal the enumeration of all subsets in exact fractions, however a tree is taken."""
    rows = data.draw(batches(ensemble, max_rows=2))
    labels = draw_labels(data, rows)
    with patch.multiple(qshap, **way):
        found = explain(ensemble, rows, labels)
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        loss, residual, remainder, start = naive_r2.losses(ensemble, row, label)
        assert_allclose(found[0][i], loss, rtol=0, atol=ATOL)
        assert_allclose([found[1][i], found[2][i], found[3]], [residual, remainder, start], rtol=0, atol=ATOL)


@pytest.mark.parametrize(("fewer", "by_pairs"), [({}, False), ({"MOST_TERMS": 0}, True), ({"PAIR_COST": 0}, True)])
def test_trees_are_expanded_where_that_takes_few_terms(fewer, by_pairs):
    """Fewer than there may be at all, and than pairs of leaves cost."""
    with patch.multiple(qshap, ENTRIES_PER_NODE=0, **fewer):
        computed = prepare(figure_1(0.5), METHODS["r2"], {}).method.computed
    assert (computed.point_start[-1] > 0) == by_pairs


@pytest.mark.parametrize(("times", "looked_up"), [(7, False), (8, True)])
def test_trees_are_looked_up_where_their_tables_are_small(times, looked_up):
    """Three comparisons have 8 outcomes, each with two numbers of three players and the tree's own: 56 numbers for 7 nodes are 8 times as many."""
    with patch.multiple(qshap, ENTRIES_PER_NODE=times):
        tables = prepare(chain([0, 1, 2], [1.0, 2.0, 4.0, 8.0], np.ones(4), 3), METHODS["r2"], {}).method
    assert (tables.table[0] >= 0) == looked_up


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@given(data=st.data(), ensemble=regressions())
def test_groups_of_features_play_together(way, data, ensemble):
    """With groups as players losses equal the enumeration of all subsets of groups."""
    rows = data.draw(batches(ensemble, max_rows=1))
    drawn = [data.draw(st.integers(0, 2)) for _ in range(ensemble.n_features)]
    groups = np.unique(drawn, return_inverse=True)[1]
    labels = draw_labels(data, rows)
    with patch.multiple(qshap, **way):
        loss = explain(ensemble, rows, labels, groups)[0]
    assert_allclose(loss[0], naive_r2.losses(ensemble, rows[0], labels[0], groups)[0], rtol=0, atol=ATOL)


def figure_1(share):
    """The paper's tree: X1 at the root with leaf 10 on its left, then X2 with leaves 20 and 30 of equal weight."""
    feature, left, right = [0, -1, 1, -1, -1], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1]
    return one_tree(feature, [20, 0, 30, 0, 0], left, right, [0, 10, 0, 20, 30], [1, share, 1 - share, (1 - share) / 2, (1 - share) / 2], 2)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("share", [0.2, 1 / 3, 0.5])
def test_the_tree_of_figure_1_has_the_values_of_its_game(way, share):
    """Jiang, Zhang and Zhang 2025, Figure 1: m is 25 - 15 p, 25, 20 - 10 p and 20 for the sets {}, {1}, {2} and {1, 2} of the row (40, 25)."""
    m = {(): 25 - 15 * share, (0,): 25.0, (1,): 20 - 10 * share, (0, 1): 20.0}
    label = 7.0
    with patch.multiple(qshap, **way):
        loss, residual, _, start = explain(figure_1(share), np.array([[40.0, 25.0]]), np.array([label]))
    off = {s: 2 * label * value - value**2 for s, value in m.items()}
    first = (off[(0,)] - off[()] + off[(0, 1)] - off[(1,)]) / 2
    assert_allclose(loss[0], [first, off[(0, 1)] - off[()] - first], rtol=1e-13)
    assert_allclose([residual[0], start], [label - 20, m[()]], rtol=1e-13)


@pytest.mark.again
@pytest.mark.parametrize(("n_trees", "depth", "n_features"), [(3, 3, 6), (1, 4, 30), (1, 4 if config.DISABLE_JIT else 5, 8)])
def test_losses_add_up_and_do_not_depend_on_the_way(n_trees, depth, n_features):
    """On every row losses sum to (label - start)^2 - (label - margin)^2 + remainder; expansions and pairs of leaves give the same."""
    draw = np.random.default_rng(depth)
    ensemble = grow(draw, n_trees, depth, n_features)
    rows = draw.normal(size=(9, n_features))
    rows[draw.random(rows.shape) < 0.1] = np.nan
    labels = draw.normal(size=9) * 3
    found = {}
    for name, way in WAYS.items():
        with patch.multiple(qshap, **way):
            loss, residual, remainder, start = found[name] = explain(ensemble, rows, labels)
        assert_allclose(residual, labels - naive.margins(ensemble, rows)[:, 0], rtol=0, atol=1e-13)
        assert_allclose(loss.sum(axis=1), (labels - start) ** 2 - residual**2 + remainder, rtol=0, atol=1e-11)
    assert_allclose(found["looked up"][0], found["expanded"][0], rtol=0, atol=1e-11)
    assert_allclose(found["by pairs"][0], found["expanded"][0], rtol=0, atol=1e-11)


@pytest.mark.again
def test_a_chain_of_many_players_has_the_values_of_its_symmetric_game():
    """A leaf at the end of 16 splits of as many features, all satisfied: m(S) is the product of the others' shares, equal for all; the rest
    follows by symmetry and additivity, and no expansion has room for the 2^16 sets of players."""
    n = 16
    cover = 0.9 ** np.arange(n + 1)
    ensemble = chain(np.arange(n), [*np.zeros(n), 5.0], np.append(-np.diff(cover), cover[-1]), n)
    loss, residual, _, start = explain(ensemble, np.ones((1, n)), np.array([3.0]))
    empty = 5 * 0.9**n
    assert_allclose([residual[0], start], [-2, empty], rtol=1e-12)
    assert_allclose(loss[0], ((3 - empty) ** 2 - 4) / n, rtol=1e-11)


@pytest.mark.again
def test_a_chain_that_a_row_leaves_half_way_has_the_values_of_a_small_game():
    """Of 14 splits of as many features the row fails the last: m is a product over the others while that one is absent, and 0 else, so the
    others share its value by symmetry and its own is a sum over how many are there."""
    n, value = 14, 5.0
    cover = 0.9 ** np.arange(n + 1)
    ensemble = chain(np.arange(n), [*np.zeros(n), value], np.append(-np.diff(cover), cover[-1]), n)
    row = np.ones((1, n))
    row[0, -1] = 0.0
    loss, residual, _, start = explain(ensemble, row, np.array([3.0]))
    off = lambda size: 2 * 3 * value * 0.9 ** (n - size) - (value * 0.9 ** (n - size)) ** 2  # noqa: E731 - a definition in a line
    last = -sum(off(size) for size in range(n)) / n
    assert_allclose(loss[0, -1], last, rtol=1e-11)
    assert_allclose(loss[0, :-1], ((3 - start) ** 2 - 9 - last) / (n - 1), rtol=1e-10)
    assert_allclose(residual[0], 3)


@given(ensemble=forests().filter(lambda ensemble: ensemble.base.size > 1))
def test_a_model_of_several_outputs_is_refused(ensemble):
    """R^2 is that of one output."""
    with pytest.raises(InvalidParameters, match=r"method 'r2' needs a model of one output, got \d"):
        prepare(ensemble, METHODS["r2"], {})
