"""The marginal game: equal to enumeration over subsets and background rows, additive, a matter of the function alone, right on examples."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from numpy.testing import assert_allclose

from kernels.marginal import query
from kernels.methods import METHODS
from kernels.parameters import InvalidParameters
from kernels.prepare import ask_background, measure_background, merge_statistics, prepare, weigh_leaves
from tests import naive
from tests.kernels.attributing import ATOL, run
from tests.strategies import batches, forests
from tests.trees import chain, one_tree, symmetric

WEIGHTS = {
    "shapley": naive.shapley_weight,
    "banzhaf": naive.banzhaf_weight,
    "beta": lambda size, n: naive.beta_weight(size, n, 2, 3),
    "semivalue": lambda size, n: (naive.banzhaf_weight(size, n, Fraction(1, 4)) + 3 * naive.banzhaf_weight(size, n)) / 4,
}
PARAMETERS = {
    "shapley": {},
    "banzhaf": {"p": 0.5},
    "beta": {"alpha": 2.0, "beta": 3.0},
    "semivalue": {"atoms": ((0.25, 1.0), (0.5, 3.0)), "density": ()},
    "owen": {},
    "two_step": {},
}
PLENTY = 1 << 40  # bytes
KEPT = {"tables": (12, 20), "tables and sums": (2, 20), "sums": (0, 20), "sums and patterns": (0, 1), "patterns": (0, 0)}  # of units; of leaves


def each_and_mixed(first, *others):
    """The first method with all that can be kept of a background, others with a mixture."""
    return [
        *((first, kept) for kept in KEPT),
        *((name, kept) for name in others if name != first for kept in ("tables and sums", "sums and patterns")),
    ]


def query_for(name, ensemble, group=None, kept=KEPT["tables"]):
    """A query whose subtrees are cut as finely as is asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query, "COARSE_TO_FINE", [kept])
        return ask_background(ensemble, METHODS[name], group, n_rows=100, budget=PLENTY)


def counted(asked, background):
    """A background of few rows, counted."""
    return measure_background(asked, background.T[asked.bins.column].copy())


def explain(name, ensemble, rows, background, group=None, kept=KEPT["tables"]):
    """phi ``(n, outputs, players)``, base and margin."""
    asked = query_for(name, ensemble, group, kept)
    prepared = prepare(ensemble, METHODS[name], PARAMETERS[name], group, background=(asked, counted(asked, background)))
    n_players = ensemble.n_features if group is None or not METHODS[name].phi.of_groups else int(group.max()) + 1
    assert (prepared.players == asked.players).all()
    return run(name, prepared, rows, n_players)


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
    if METHODS[name].additive:
        assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


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


@given(data=st.data(), ensemble=forests(max_trees=5, max_depth=6, max_features=8))
def test_shapley_values_add_up_to_margin_less_mean_margin(data, ensemble):
    """On larger forests, cut into units of several kinds."""
    rows, background = data.draw(batches(ensemble)), data.draw(batches(ensemble, max_rows=9))
    phi, base, margin = explain("shapley", ensemble, rows, background)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)


@pytest.mark.parametrize("kept", KEPT)
@given(data=st.data(), ensemble=forests())
def test_backgrounds_add_up(data, ensemble, kept):
    """Counts of parts are the counts of the whole, so that who counts what, and when, does not matter."""
    background = data.draw(batches(ensemble, max_rows=6))
    asked = query_for("shapley", ensemble, kept=KEPT[kept])
    whole, *parts = (counted(asked, rows) for rows in (background, background[:1], background[1:2], background[2:]))
    for together in (merge_statistics(parts), merge_statistics([parts[2], merge_statistics(parts[:2])]), merge_statistics([whole])):
        for found, expected in zip(together, whole, strict=True):
            assert found.dtype == expected.dtype
            assert found.tolist() == expected.tolist()


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


def test_a_path_may_have_any_number_of_players(monkeypatch):
    """Codes of several words: every leaf's values from the two-row formula, in exact fractions."""
    if config.DISABLE_JIT:  # a million subsets of 20 players take plain Python a minute
        monkeypatch.setattr(query, "COARSE_TO_FINE", [(8, 12)])
    n = 70
    rng = np.random.default_rng(n)
    ensemble = chain(rng.permutation(n), rng.integers(-8, 8, n + 1) / 4, np.ones(n + 1), n)
    rows, background = ((rng.random((size, n)) < 0.97).astype(float) for size in (2, 7))
    expected = np.zeros((len(rows), n))
    for i, row in enumerate(rows):
        for other in background:
            for leaf in np.flatnonzero(ensemble.feature < 0):
                failed, needed = set(), set()
                node = leaf
                while node != 0:
                    child, node = node, int(np.flatnonzero((ensemble.left == node) | (ensemble.right == node))[0])
                    feature, left = int(ensemble.feature[node]), ensemble.left[node] == child
                    failed |= {feature} if (row[feature] <= 0.5) != left else set()
                    needed |= {feature} if (other[feature] <= 0.5) != left else set()
                if not failed & needed:
                    together = len(failed) + len(needed)
                    for p in failed | needed:
                        weight = naive.shapley_weight(len(needed) - (p in needed), together)
                        expected[i, p] += float((weight if p in needed else -weight) * Fraction(ensemble.value[leaf, 0])) / len(background)
    phi, base, margin = explain("shapley", ensemble, rows, background)
    assert_allclose(phi[:, 0], expected, rtol=0, atol=ATOL)
    assert_allclose(phi.sum(axis=2) + base, margin, rtol=0, atol=ATOL)
    asked = query_for("shapley", ensemble)
    assert asked.partitioning.deep.bits.max() == n
    assert counted(asked, background).patterns.shape[1] == 2


@pytest.mark.parametrize("kept", KEPT)
def test_leaf_weights_stand_for_the_rows_behind_them(kept):
    """At symmetric trees, where the rows of a leaf compare alike at every split: the covers are counts of the background's rows."""
    rng = np.random.default_rng(3)
    background, rows = rng.standard_normal((200, 3)), rng.standard_normal((5, 3))
    ensemble = symmetric(rng, (0, 2, 0, 1), 3)
    node, cover = np.zeros(len(background), int), np.zeros(ensemble.feature.size)
    np.add.at(cover, node, 1)
    for _ in range(4):
        left = background[np.arange(len(background)), ensemble.feature[node]] <= ensemble.threshold[node]
        node = np.where(left, ensemble.left[node], ensemble.right[node])
        np.add.at(cover, node, 1)
    ensemble = ensemble._replace(cover=cover)
    asked = query_for("shapley", ensemble, kept=KEPT[kept])
    weighed = weigh_leaves(ensemble, METHODS["shapley"], None, asked)
    prepared = prepare(ensemble, METHODS["shapley"], {}, background=(asked, weighed))
    phi, base, _ = run("shapley", prepared, rows, 3)
    expected = explain("shapley", ensemble, rows, background)
    assert_allclose(phi, expected[0], rtol=0, atol=ATOL)
    assert_allclose(base, expected[1], rtol=0, atol=ATOL)


def test_leaf_weights_must_say_enough():
    """Weights of a leaf that other splits than its own could cut, and none at all."""
    asked = query_for("shapley", TREE_1)
    with pytest.raises(InvalidParameters, match="tree 0, node 1: a leaf does not say how its rows compare at every split of the tree"):
        weigh_leaves(TREE_1, METHODS["shapley"], None, asked)
    weightless = TREE_1._replace(cover=np.zeros(5))
    with pytest.raises(InvalidParameters, match="tree 0: its leaves have no weights"):
        weigh_leaves(weightless, METHODS["shapley"], None, asked)


def n_bytes(tables):
    """Of all arrays in nested records."""
    return tables.nbytes if isinstance(tables, np.ndarray) else sum(map(n_bytes, tables))


def test_a_smaller_budget_keeps_patterns_instead_of_tables():
    """Leaf by leaf; what fits nowhere is refused with its size."""
    rng = np.random.default_rng(0)
    ensemble = chain(rng.permutation(9), rng.standard_normal(10), np.ones(10), 9)
    rows, background = ((rng.random((n, 9)) < 0.7).astype(float) for n in (4, 6))
    found, budget = [], PLENTY
    for _ in range(4):
        asked = ask_background(ensemble, METHODS["shapley"], n_rows=len(background), budget=budget)
        prepared = prepare(ensemble, METHODS["shapley"], {}, background=(asked, counted(asked, background)))
        found.append(run("shapley", prepared, rows, 9)[0])
        budget = int(asked.n_bytes[0]) - 1
        assert n_bytes(prepared) <= asked.n_bytes[0]
    assert asked.partitioning.deep.size > 3
    for phi in found:
        assert_allclose(phi, found[0], rtol=0, atol=ATOL)
    with pytest.raises(InvalidParameters, match=r"tables of the marginal game would have 0\.0 MiB, 0\.0 MiB are allowed"):
        ask_background(ensemble, METHODS["shapley"], n_rows=len(background), budget=1000)


def test_what_the_game_does_not_have_is_refused():
    """Values that are not made of the game's own weights, and interactions."""
    with pytest.raises(InvalidParameters, match="'probabilistic' has no marginal game"):
        ask_background(TREE_1, METHODS["probabilistic"], n_rows=1, budget=PLENTY)
    with pytest.raises(InvalidParameters, match="'shapley' has no interactions in the marginal game"):
        ask_background(TREE_1, METHODS["shapley"], n_rows=1, budget=PLENTY, interactions=True)
    with pytest.raises(InvalidParameters, match="'owen' needs a partition"):
        ask_background(TREE_1, METHODS["owen"], n_rows=1, budget=PLENTY)
