"""A tree's squared game by pairs of leaves, for trees of any shape: at every leaf the tree is walked once more.

The square of a tree's game is the game of the tree with a copy of itself at every leaf, whose leaves multiply the leaf's value with their own: the
weight of an absent player is the product A of cover ratios on both paths, its bit O that of both. So one leaf at a time, with what its path leaves of
A and O, the copy is walked like any tree (see ``semivalue``; the pairs are those of Jiang, Zhang and Zhang 2025, Alg. 1, in real arithmetic and
without a division per pair). With A' and O' above a split of share w, b = 1 where the row goes left, F' = (1 - t) A' + t the factor where O' = 1:

* down   S(left) = r S,     S(right) = (1 - r) S,     r = w + O' (b - w) t / F'
* up     D = G(left) - G(right),   G = G(right) + r D
* the player gains O' (b - w) A' S D / F'^2, integrated over t.

A row and tree of L leaves take time proportional to L^2 D with D the most players on two paths.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..lanes import load, splat, store
from .preorder import BEFORE, LEFT, PLAYER, RIGHT, ROWS


class Pass(NamedTuple):
    """A walk over one tree: by node, of ROWS numbers each where they differ between rows."""

    product: np.ndarray  # (nodes * ROWS,) float64, S
    total: np.ndarray  # (nodes * ROWS,) float64, G
    absent: np.ndarray  # (nodes + players,) float64, A after the edge into the node; then every player's before the walk
    satisfied: np.ndarray  # ((nodes + players) * ROWS,) float64, O likewise
    ratio: np.ndarray  # (splits,) float64, t / F'


@jit
def make_pass(nodes, players):
    """Room for a walk."""
    states = nodes + players
    return Pass(np.empty(nodes * ROWS), np.empty(nodes * ROWS), np.empty(states), np.empty(states * ROWS), np.empty(nodes // 2))


@jit
def _begin(trees, t, walk):
    """Nobody was asked for before the walk: A and O are 1."""
    nodes, players = 2 * (trees.start[t + 1] - trees.start[t]) + 1, trees.player_start[t + 1] - trees.player_start[t]
    walk.absent[nodes : nodes + players] = 1.0
    walk.satisfied[nodes * ROWS : (nodes + players) * ROWS] = 1.0


@jit
def _go_down(trees, t, p, bits, walk):
    """Products of all nodes from the root's."""
    first, n = trees.start[t], trees.start[t + 1] - trees.start[t]
    for v in range(n):
        left, right, before = trees.splits[first + v, LEFT], trees.splits[first + v, RIGHT], trees.splits[first + v, BEFORE]
        w, absent = trees.share[first + v], walk.absent[before]
        walk.absent[left], walk.absent[right] = absent * w, absent * (1 - w)
        walk.ratio[v] = p / ((1 - p) * absent + p)
        b, share, product = load(bits, v * ROWS), splat(w), load(walk.product, v * ROWS)
        satisfied = load(walk.satisfied, before * ROWS)
        change = satisfied * (b - share) * splat(walk.ratio[v])
        store(walk.product, left * ROWS, (share + change) * product)
        store(walk.product, right * ROWS, (splat(1 - w) - change) * product)
        store(walk.satisfied, left * ROWS, satisfied * b)
        store(walk.satisfied, right * ROWS, satisfied - satisfied * b)


@jit
def _come_up(trees, t, p, weight, bits, walk, gained):
    """Sums of all nodes from the leaves', and what every player gains."""
    first, n = trees.start[t], trees.start[t + 1] - trees.start[t]
    for v in range(n - 1, -1, -1):
        left, right, before = trees.splits[first + v, LEFT], trees.splits[first + v, RIGHT], trees.splits[first + v, BEFORE]
        share, ratio = splat(trees.share[first + v]), walk.ratio[v]
        change = load(walk.satisfied, before * ROWS) * (load(bits, v * ROWS) - share)
        second = load(walk.total, right * ROWS)
        step = load(walk.total, left * ROWS) - second
        store(walk.total, v * ROWS, second + (share + change * splat(ratio)) * step)
        gain = change * step * load(walk.product, v * ROWS) * splat(weight * walk.absent[before] * (ratio / p) ** 2)
        at = trees.splits[first + v, PLAYER] * ROWS
        store(gained, at, load(gained, at) + gain)


@jit
def _continue(trees, t, leaf, parent, seen, outer, inner):
    """The walk of the copy at a leaf starts with what the leaf's path leaves of A and O: the nearest edge of every player, 1 without one."""
    _begin(trees, t, inner)
    first, nodes, node = trees.start[t], 2 * (trees.start[t + 1] - trees.start[t]) + 1, leaf
    while node > 0:
        player = trees.splits[first + parent[node], PLAYER]
        if seen[player] != leaf:
            seen[player] = leaf
            inner.absent[nodes + player] = outer.absent[node]
            store(inner.satisfied, (nodes + player) * ROWS, load(outer.satisfied, node * ROWS))
        node = parent[node]


@jit
def pair_leaves(trees, t, points, begin, end, bits, outer, inner, parent, seen, once, twice):
    """Shapley values of a tree's game and of its square, for ROWS rows.

    Parameters
    ----------
    trees, t : PreorderTrees and the tree's number; it has a split
    points, begin, end : (points, 2) float64, t and its weight, and which of them are the tree's
    bits : (splits * ROWS,) float64, as ``ask`` leaves them
    outer, inner, parent, seen : passes, (nodes,) int64 and (players,) int64 to work in
    once, twice : (players * ROWS,) float64, overwritten
    """
    first, n = trees.start[t], trees.start[t + 1] - trees.start[t]
    values, players = first + t, trees.player_start[t + 1] - trees.player_start[t]
    once[: players * ROWS] = 0.0
    twice[: players * ROWS] = 0.0
    _begin(trees, t, outer)
    for v in range(n):
        parent[trees.splits[first + v, LEFT]] = parent[trees.splits[first + v, RIGHT]] = v
    for leaf in range(n, 2 * n + 1):
        store(inner.total, leaf * ROWS, splat(trees.value[values + leaf - n]))
    for q in range(begin, end):
        p, weight = points[q, 0], points[q, 1]
        seen[:players] = -1
        outer.product[:ROWS] = 1.0
        _go_down(trees, t, p, bits, outer)
        for leaf in range(n, 2 * n + 1):
            store(outer.total, leaf * ROWS, load(inner.total, leaf * ROWS))
        _come_up(trees, t, p, weight, bits, outer, once)
        for leaf in range(n, 2 * n + 1):
            value = splat(trees.value[values + leaf - n])
            _continue(trees, t, leaf, parent, seen, outer, inner)
            store(inner.product, 0, value * load(outer.product, leaf * ROWS))
            _go_down(trees, t, p, bits, inner)
            _come_up(trees, t, p, weight, bits, inner, twice)
            store(outer.total, leaf * ROWS, value * load(inner.total, 0))
        _come_up(trees, t, p, weight, bits, outer, twice)
