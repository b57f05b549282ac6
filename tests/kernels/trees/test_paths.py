"""What a trace says of every node is what going down to it finds."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from leafledger.kernels.trees.forest import make_forest
from leafledger.kernels.trees.paths import count_above, empty_coalition, first_splits, margin_bound, most_on_a_path
from tests import naive
from tests.kernels.attributing import ATOL
from tests.strategies import batches, forests


def traced(ensemble):
    return make_forest(ensemble)[1].trace


def ways_down(ensemble):
    """``(tree, edges)`` of every node, in preorder: the nodes on the way to it, from the root's child on."""
    found = {}

    def visit(tree, node, way):
        found[int(node)] = (tree, way)
        if ensemble.feature[node] >= 0:
            for child in (ensemble.left[node], ensemble.right[node]):
                visit(tree, child, [*way, int(child)])

    for tree, root in enumerate(ensemble.root):
        visit(tree, root, [])
    return found


def parents(ensemble):
    """The split above every node but roots."""
    inner = np.flatnonzero(ensemble.feature >= 0)
    return {int(child[node]): int(node) for node in inner for child in (ensemble.left, ensemble.right)}


def ratio(ensemble, node, parent):
    """Share of the cover of an edge, one half where there is none."""
    cover = [Fraction(float(ensemble.cover[child[parent]])) for child in (ensemble.left, ensemble.right)]
    return Fraction(float(ensemble.cover[node])) / sum(cover) if sum(cover) else Fraction(1, 2)


@given(ensemble=forests(max_depth=6, max_features=3))
def test_a_trace_is_what_going_down_finds(ensemble):
    """Preorder, levels, the nearest edge above of a split's own feature, and products of cover ratios, in exact fractions."""
    trace, parent = traced(ensemble), parents(ensemble)
    found = ways_down(ensemble)
    assert trace.order.tolist() == list(found)
    for node, (tree, way) in found.items():
        assert (trace.tree[node], trace.level[node]) == (tree, len(way))
        ratios = {edge: ratio(ensemble, edge, parent[edge]) for edge in way}
        assert_allclose(trace.reach[node], float(np.prod(list(ratios.values()), initial=Fraction(1))), rtol=1e-15, atol=0)
        same = [edge for edge in way if ensemble.feature[parent[edge]] == ensemble.feature[parent[node]]] if way else []
        assert_allclose(trace.absent[node], float(np.prod([ratios[edge] for edge in same], initial=Fraction(1))), rtol=1e-15, atol=0)
        if ensemble.feature[node] >= 0:
            above = [edge for edge in way if ensemble.feature[parent[edge]] == ensemble.feature[node]]
            assert trace.above[node] == (above[-1] if above else -1)
    levels = [max(len(way) for tree, way in found.values() if tree == t) for t in range(ensemble.root.size)]
    assert trace.levels.tolist() == levels


@given(data=st.data(), ensemble=forests(max_depth=6, max_features=3))
def test_splits_above_are_counted(data, ensemble):
    """Those that are asked for, on the way to every node, and at most on a path of each tree."""
    trace, parent = traced(ensemble), parents(ensemble)
    counted = np.array([bool(feature >= 0 and data.draw(st.booleans())) for feature in ensemble.feature], bool)
    found = ways_down(ensemble)
    n_above = {node: sum(bool(counted[parent[edge]]) for edge in way) for node, (_, way) in found.items()}
    assert dict(enumerate(count_above(ensemble, trace, counted).tolist())) == n_above
    most = [max(n_above[node] for node, (tree, _) in found.items() if tree == t) for t in range(ensemble.root.size)]
    assert most_on_a_path(ensemble, trace, counted).tolist() == most


@given(ensemble=forests(max_depth=6, max_features=3))
def test_first_splits_are_of_features_that_are_new_on_their_path(ensemble):
    """So that counting them on a path counts its distinct features."""
    parent = parents(ensemble)
    first = first_splits(ensemble, traced(ensemble))
    for node, (_, way) in ways_down(ensemble).items():
        features = {int(ensemble.feature[parent[edge]]) for edge in way}
        assert first[node] == (ensemble.feature[node] >= 0 and int(ensemble.feature[node]) not in features)


@given(data=st.data(), ensemble=forests())
def test_the_empty_coalition_and_the_bound(data, ensemble):
    """With nothing present the margin is the leaves averaged by cover; no margin is further from it than the bound."""
    trace = traced(ensemble)
    base = empty_coalition(ensemble, trace)
    row = np.zeros(ensemble.n_features)
    assert_allclose(base, [float(naive.coalition_value(ensemble, row, (), k)) for k in range(ensemble.base.size)], rtol=0, atol=ATOL)
    bound = margin_bound(ensemble, trace)
    assert (np.abs(naive.margins(ensemble, data.draw(batches(ensemble))) - base) <= bound + ATOL).all()
    ranges = np.zeros(base.size)
    for tree, output in enumerate(ensemble.output):
        leaves = [ensemble.value[node] for node, (its, _) in ways_down(ensemble).items() if its == tree and ensemble.feature[node] < 0]
        ranges[output : output + len(leaves[0])] += np.max(leaves, axis=0) - np.min(leaves, axis=0)
    assert_allclose(bound, ranges + 1e-6 * np.abs(ensemble.base), rtol=1e-12, atol=ATOL)
