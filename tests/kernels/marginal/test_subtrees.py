"""Subtrees: together they are the model, no cut of it costs less, and codes say of every leaf which players a row fails."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.kernels.jit.lanes import QUAD
from leafledger.kernels.marginal.subtrees import BIT_COST, ENTRY_COST
from leafledger.kernels.trees.paths import trace
from tests.kernels.marginal.cutting import binned, codes_of, cut, failed, failed_by_code, leaves_of, way_to
from tests.strategies import batches, forests
from tests.trees import symmetric

MOST_BITS = st.sampled_from((0, 1, 2, 3, 5, 12))


@given(ensemble=forests(), most_bits=MOST_BITS)
def test_every_leaf_is_in_one_subtree(ensemble, most_bits):
    """With as many bits as are allowed, or by itself with more."""
    _, _, (coded, deep) = cut(ensemble, most_bits)
    leaves = np.concatenate((coded.leaves.node, deep.leaves.node))
    assert sorted(leaves.tolist()) == np.flatnonzero(ensemble.feature < 0).tolist()
    assert (coded.bits <= most_bits).all()
    assert (deep.bits > most_bits).all()
    assert np.diff(deep.leaves.start).tolist() == [1] * deep.size
    for u in range(deep.size):
        above = {int(ensemble.feature[v]) for v, _ in way_to(ensemble, deep.leaves.node[u])}
        assert deep.bits[u] == deep.n_above[u] == len(above)


@given(data=st.data(), ensemble=forests(), most_bits=MOST_BITS)
def test_a_code_says_which_players_a_row_fails(data, ensemble, most_bits):
    """At every leaf the same as walking to it, for rows near thresholds, with missing values and categories."""
    rows = data.draw(batches(ensemble))
    tables, forest, partitioning = cut(ensemble, most_bits)
    for subtrees in partitioning:
        for u, codes in enumerate(codes_of(subtrees, binned(tables, rows), len(rows))):
            for leaf in leaves_of(subtrees, u):
                for row, code in zip(rows, codes, strict=True):
                    assert code < 1 << subtrees.bits[u]
                    found = {int(forest.column[player]) for player in failed_by_code(subtrees, u, leaf, code)}
                    assert found == failed(ensemble, subtrees.leaves.node[leaf], row)


def all_cuts(ensemble, v):
    """All ways to cut a tree from a node down: lists of nodes whose subtrees stay whole."""
    if ensemble.left[v] < 0:
        return [[v]]
    return [[v], *(a + b for a in all_cuts(ensemble, ensemble.left[v]) for b in all_cuts(ensemble, ensemble.right[v]))]


def below(ensemble, v):
    """All nodes from a node down."""
    return [v] if ensemble.left[v] < 0 else [v, *below(ensemble, ensemble.left[v]), *below(ensemble, ensemble.right[v])]


@given(ensemble=forests(max_depth=3), most_bits=MOST_BITS)
def test_no_cut_costs_less(ensemble, most_bits):
    """Of all cuts into subtrees whose codes have few enough bits; a leaf that has more belongs to none of them."""
    _, forest, (coded, deep) = cut(ensemble, most_bits)
    number, player = forest.comparisons.number, trace(ensemble, forest.player_of_node, forest.n_players)

    def cost(v):
        """Lookups, bits and entries of a node's subtree; a player above and below may need two columns and bits."""
        splits = [w for w in below(ensemble, v) if ensemble.left[w] >= 0]
        above = {ensemble.feature[w] for w, _ in way_to(ensemble, v)}
        bits = len(above) + len({number[w] for w in splits})
        players = len(above) + len({ensemble.feature[w] for w in splits})
        return math.ceil(players / QUAD) + BIT_COST * bits + ENTRY_COST * 2**bits * (players + QUAD) if bits <= most_bits else np.inf

    leaves = [set(coded.leaves.node[coded.leaves.start[u] : coded.leaves.start[u + 1]].tolist()) for u in range(coded.size)]
    tops = [v for v in player.order if {w for w in below(ensemble, v) if ensemble.left[w] < 0} in leaves]
    assert len(tops) == coded.size
    left_out = set(deep.leaves.node.tolist())
    for t, root in enumerate(ensemble.root):
        least = min(sum(cost(v) for v in nodes if v not in left_out) for nodes in all_cuts(ensemble, root))
        assert math.isclose(sum(cost(v) for v in tops if forest.trace.tree[v] == t), least)


@pytest.mark.parametrize("features", [(0,), (0, 1, 2, 3), (0, 2, 0, 1), (1, 1, 1)])
def test_a_symmetric_tree_is_one_subtree(features):
    """Filom et al. 2024, Alg. 3.12: with a bit for each level, and nobody above."""
    _, _, (coded, deep) = cut(symmetric(np.random.default_rng(1), features, 4), 12)
    assert (coded.size, deep.size) == (1, 0)
    assert coded.bits.tolist() == [len(features)]
    assert coded.n_above.tolist() == [0]
