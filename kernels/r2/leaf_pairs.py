"""Shapley values of a tree's squared game by pairs of leaves, for trees of any shape.

The square of a tree's game is the game of the tree with a copy of itself at every leaf, whose leaf values are products: the weight of an absent
player is the product A of the cover ratios on both paths, its bit O that of both bits. So for each leaf, with A and O at the end of its path, the
copy is walked like any tree (see ``path_dependent.quadrature``). The pairs are those of Jiang, Zhang and Zhang 2025, Alg. 1, in real arithmetic and
without a division per pair. With A' and O' above a split of share w, b = 1 where the row goes left, and F' = (1 - t) A' + t the factor where O' = 1:

* down   S(left) = r S,     S(right) = (1 - r) S,     r = w + O' (b - w) t / F'
* up     D = G(left) - G(right),   G = G(right) + r D
* the player gains O' (b - w) A' S D / F'^2, integrated over t.

A row and a tree of L leaves take time O(L^2 D), with D the most players on two paths.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..jit.lanes import LANES, aligned, load, splat, store
from .preorder import PREORDER_ABOVE, PREORDER_LEFT, PREORDER_PLAYER, PREORDER_RIGHT, PreorderTrees, Workspace


class Pass(NamedTuple):
    """Arrays of a walk over one tree: by node, with LANES adjacent numbers where rows differ."""

    product: np.ndarray  # (nodes * LANES,) float64, S
    total: np.ndarray  # (nodes * LANES,) float64, G
    absent: np.ndarray  # (nodes + players,) float64, A after the edge into the node; then the initial A of every player
    satisfied: np.ndarray  # ((nodes + players) * LANES,) float64, O likewise
    ratio: np.ndarray  # (splits,) float64, t / F'


class Passes(NamedTuple):
    """Scratch arrays for pairs of leaves."""

    outer: Pass  # over the tree
    inner: Pass  # over its copy at one leaf
    parent: np.ndarray  # (nodes,) int64
    seen: np.ndarray  # (players,) int64, the last leaf whose path has a split of the player


@jit
def _make_pass(nodes: int, players: int) -> Pass:
    states = nodes + players
    return Pass(aligned(nodes * LANES), aligned(nodes * LANES), np.empty(states), aligned(states * LANES), np.empty(nodes // 2))


@jit
def make_passes(nodes: int, players: int) -> Passes:
    """Allocate the scratch arrays of pairs of leaves."""
    return Passes(_make_pass(nodes, players), _make_pass(nodes, players), np.empty(nodes, np.int64), np.empty(players, np.int64))


@jit
def _begin(trees: PreorderTrees, t: int, walk: Pass) -> None:
    """Set the initial A and O of every player to 1."""
    nodes, players = 2 * (trees.start[t + 1] - trees.start[t]) + 1, trees.player_start[t + 1] - trees.player_start[t]
    walk.absent[nodes : nodes + players] = 1.0
    walk.satisfied[nodes * LANES : (nodes + players) * LANES] = 1.0


@jit
def _go_down(trees: PreorderTrees, t: int, p: float, goes_left: np.ndarray, walk: Pass) -> None:
    """Compute S of all nodes, top-down."""
    first, n = trees.start[t], trees.start[t + 1] - trees.start[t]
    for v in range(n):
        left, right, above = trees.splits[first + v, PREORDER_LEFT], trees.splits[first + v, PREORDER_RIGHT], trees.splits[first + v, PREORDER_ABOVE]
        w, absent = trees.share[first + v], walk.absent[above]
        walk.absent[left], walk.absent[right] = absent * w, absent * (1 - w)
        walk.ratio[v] = p / ((1 - p) * absent + p)
        b, share, product = load(goes_left, v * LANES), splat(w), load(walk.product, v * LANES)
        satisfied = load(walk.satisfied, above * LANES)
        change = satisfied * (b - share) * splat(walk.ratio[v])
        store(walk.product, left * LANES, (share + change) * product)
        store(walk.product, right * LANES, (splat(1 - w) - change) * product)
        store(walk.satisfied, left * LANES, satisfied * b)
        store(walk.satisfied, right * LANES, satisfied - satisfied * b)


@jit
def _come_up(trees: PreorderTrees, t: int, p: float, weight: float, goes_left: np.ndarray, walk: Pass, phi: np.ndarray) -> None:
    """Compute G of all nodes, bottom-up, and add the players' gains to ``phi (players * LANES,)``."""
    first, n = trees.start[t], trees.start[t + 1] - trees.start[t]
    for v in range(n - 1, -1, -1):
        left, right, above = trees.splits[first + v, PREORDER_LEFT], trees.splits[first + v, PREORDER_RIGHT], trees.splits[first + v, PREORDER_ABOVE]
        share, ratio = splat(trees.share[first + v]), walk.ratio[v]
        change = load(walk.satisfied, above * LANES) * (load(goes_left, v * LANES) - share)
        second = load(walk.total, right * LANES)
        step = load(walk.total, left * LANES) - second
        store(walk.total, v * LANES, second + (share + change * splat(ratio)) * step)
        gain = change * step * load(walk.product, v * LANES) * splat(weight * walk.absent[above] * (ratio / p) ** 2)
        at = trees.splits[first + v, PREORDER_PLAYER] * LANES
        store(phi, at, load(phi, at) + gain)


@jit
def _continue(trees: PreorderTrees, t: int, leaf: int, passes: Passes) -> None:
    """Start the copy's walk at a leaf with A and O of each player's nearest edge on the leaf's path, 1 without one."""
    outer, inner, parent, seen = passes
    _begin(trees, t, inner)
    first, nodes, node = trees.start[t], 2 * (trees.start[t + 1] - trees.start[t]) + 1, leaf
    while node > 0:
        player = trees.splits[first + parent[node], PREORDER_PLAYER]
        if seen[player] != leaf:
            seen[player] = leaf
            inner.absent[nodes + player] = outer.absent[node]
            store(inner.satisfied, (nodes + player) * LANES, load(outer.satisfied, node * LANES))
        node = parent[node]


@jit
def pair_leaves(trees: PreorderTrees, t: int, points: np.ndarray, work: Workspace, passes: Passes) -> None:
    """Compute the Shapley values of a tree's game and of its square for LANES rows, from pairs of its leaves."""
    outer, inner, parent, seen = passes
    goes_left, phi, phi_of_square = work.goes_left, work.phi, work.phi_of_square
    first, n = trees.start[t], trees.start[t + 1] - trees.start[t]
    values, players = first + t, trees.player_start[t + 1] - trees.player_start[t]
    phi[: players * LANES] = 0.0
    phi_of_square[: players * LANES] = 0.0
    _begin(trees, t, outer)
    for v in range(n):
        parent[trees.splits[first + v, PREORDER_LEFT]] = parent[trees.splits[first + v, PREORDER_RIGHT]] = v
    for leaf in range(n, 2 * n + 1):
        store(inner.total, leaf * LANES, splat(trees.value[values + leaf - n]))
    for q in range(len(points)):
        p, weight = points[q, 0], points[q, 1]
        seen[:players] = -1
        outer.product[:LANES] = 1.0
        _go_down(trees, t, p, goes_left, outer)
        for leaf in range(n, 2 * n + 1):
            store(outer.total, leaf * LANES, load(inner.total, leaf * LANES))
        _come_up(trees, t, p, weight, goes_left, outer, phi)
        for leaf in range(n, 2 * n + 1):
            value = splat(trees.value[values + leaf - n])
            _continue(trees, t, leaf, passes)
            store(inner.product, 0, value * load(outer.product, leaf * LANES))
            _go_down(trees, t, p, goes_left, inner)
            _come_up(trees, t, p, weight, goes_left, inner, phi_of_square)
            store(outer.total, leaf * LANES, value * load(inner.total, 0))
        _come_up(trees, t, p, weight, goes_left, outer, phi_of_square)
