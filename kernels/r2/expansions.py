"""Shapley values of a tree's game and its square by expansion in orthonormal polynomials of players' presence.

Let every player be present with probability t, independently, x_k be 1 where player k is present and 0 otherwise, and e_k = (x_k - t) / s with s =
sqrt(t (1 - t)): products of distinct e_k are orthonormal (Efron and Stein 1981; O'Donnell 2014, Section 8.4). The game m(S) of a tree and a row is a
sum of terms c_R times the product of e_k over k in R, for sets R of players that share a path: for trees of depth 6 some hundred terms, against 2,080
pairs of leaves. They are computed from the leaves up. With b = 1 where the row goes left at a split of player k, w the share of the cover that does,
and D = c(left) - c(right),

    c[R]     = c(right)[R]     + f D[R] + g D[R + k]         f = w + t (b - w)         g = s (b - w)
    c[R + k] = c(right)[R + k] + g D[R] + h D[R + k]         h = b - t (b - w)

for R without k: no divisions, whatever the covers, and also where k occurs above and below. Missing terms are 0. At z, the players' own
probabilities, the game's mean is f(z) with derivatives df/dz_j = c_j / s at z = t, and its mean square the sum of c_R^2, with

    d/dz_j = sum over R without j of c[R + j] (alpha c[R + j] + beta c[R]),     alpha = (1 - 2 t) / s^2,     beta = 2 / s.

Integrated over t these are the Shapley values of m and of m squared.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..game_values import Quadrature
from ..jit.decorator import jit
from ..jit.lanes import LANES, load, splat, store
from .preorder import PREORDER_LEFT, PREORDER_PLAYER, PREORDER_RIGHT, PreorderTrees, Workspace

# Columns of Expansions.splits: start of the split's part of ``below``, place of its first term, number of R without R + k below, and with.
TERMS_BELOW, TERMS_PLACE, TERMS_SINGLE, TERMS_DOUBLE = range(4)


class Expansions(NamedTuple):
    """How the terms of trees are computed from those below.

    A place holds a term of LANES rows. The first 2 n + 1 places are the tree's nodes, with leaves as the first terms; a place of zeros follows.
    """

    start: np.ndarray  # (trees + 1,) int64, tree x's splits are splits[start[x]:start[x + 1]], in the tree's own order
    splits: np.ndarray  # (splits, 4) int32
    below: np.ndarray  # int32, places of c(left)[R] and c(right)[R]; where R + k is below, also those of c(left)[R + k] and c(right)[R + k]
    places: np.ndarray  # (trees,) int64, number of places of the tree
    run: np.ndarray  # (trees + 1,) int64, tree x's players have numbers run[x] to run[x + 1] in edge_start
    edge_start: np.ndarray  # (players + 1,) int64, a player's edges are edges[edge_start[j]:edge_start[j + 1]]; its first is that of the empty R
    edges: np.ndarray  # (edges, 2) int32, places of c[R + j] and c[R] at the root
    point_start: np.ndarray  # (trees + 1,) int64, tree x's points are points[point_start[x]:point_start[x + 1]]
    points: np.ndarray  # (points, 2) float64, t and its weight


class Terms(NamedTuple):
    """Terms of one tree, see Expansions."""

    splits: list[tuple[int, int, int, int]]
    below: list[int]
    edges: list[list[tuple[int, int]]]  # by player
    places: int
    players: int  # most players on two paths together


def most_on_two_paths(paths: Sequence[int]) -> int:
    """Return the most players on any two paths: a rule exact for as many integrates a squared game exactly."""
    return max([(a | b).bit_count() for a, b in combinations(set(paths), 2)] + [path.bit_count() for path in paths])


def find_terms(splits: np.ndarray, most: int) -> Terms | None:
    """List the terms of one tree, and their inputs.

    A node's terms are needed until its parent's are computed. They are on one of two stacks, by the parity of the level, next to the terms computed
    from them; places on the second stack are negative until the height of the first is known.
    """
    n = len(splits)
    players, left, right = (splits[:, column].tolist() for column in (PREORDER_PLAYER, PREORDER_LEFT, PREORDER_RIGHT))
    level, path = [0] * (2 * n + 1), [0] * (2 * n + 1)
    for v in range(n):
        for child in (left[v], right[v]):
            level[child], path[child] = level[v] + 1, path[v] | 1 << players[v]
    zero, top, height = 2 * n + 1, [0, 0], [0, 0]
    found: dict[int, dict[int, int]] = {leaf: {0: leaf} for leaf in range(n, 2 * n + 1)}
    below: list[int] = []
    out = []
    for v in reversed(range(n)):
        bit, parity = 1 << players[v], level[v] % 2
        one, other = found.pop(left[v]), found.pop(right[v])
        without = [terms for terms in one | other if not terms & bit]
        alone = [terms for terms in without if terms | bit not in one and terms | bit not in other]
        joined = [terms for terms in without if terms | bit in one or terms | bit in other]
        out.append((len(below), zero + 1 + top[parity] if parity == 0 else -1 - top[parity], len(alone), len(joined)))
        for terms in alone:
            below += one.get(terms, zero), other.get(terms, zero)
        for terms in joined:
            below += one.get(terms, zero), other.get(terms, zero), one.get(terms | bit, zero), other.get(terms | bit, zero)
        top[1 - parity] -= sum(len(some) for child, some in ((left[v], one), (right[v], other)) if child < n)
        places = [out[-1][TERMS_PLACE] + (i if parity == 0 else -i) for i in range(2 * len(without))]
        found[v] = dict(zip([*alone, *joined, *(terms | bit for terms in (*alone, *joined))], places, strict=True))
        top[parity] += len(places)
        height[parity] = max(height[parity], top[parity])
        if len(below) > 2 * most:
            return None
    root = found[0]
    edges = [[(root[terms], root[terms ^ 1 << j]) for terms in sorted(root) if terms >> j & 1] for j in range(max(players, default=-1) + 1)]
    if sum(map(len, edges)) > most:
        return None
    second = zero + 1 + height[0]

    def put(place: int) -> int:
        return place if place >= 0 else second - 1 - place

    return Terms(
        splits=[(first, put(place), single, double) for first, place, single, double in reversed(out)],
        below=[put(place) for place in below],
        edges=[[(put(a), put(b)) for a, b in run] for run in edges],
        places=second + height[1],
        players=most_on_two_paths(path[n:]),
    )


def lay_out_expansions(expanded: Sequence[Terms], points: Sequence[Quadrature]) -> Expansions:
    """Concatenate the terms of trees."""
    below = [len(terms.below) for terms in expanded]
    shift = np.repeat(np.cumsum([0, *below])[:-1], [len(terms.splits) for terms in expanded])
    splits = np.array([split for terms in expanded for split in terms.splits], np.int64).reshape(-1, 4)
    splits[:, TERMS_BELOW] += shift.astype(np.int64)
    runs = [run for terms in expanded for run in terms.edges]
    return Expansions(
        start=np.cumsum([0, *(len(terms.splits) for terms in expanded)]),
        splits=narrow(splits),
        below=np.array([place for terms in expanded for place in terms.below], np.int32),
        places=np.array([terms.places for terms in expanded], np.int64),
        run=np.cumsum([0, *(len(terms.edges) for terms in expanded)]),
        edge_start=np.cumsum([0, *map(len, runs)]),
        edges=np.array([edge for run in runs for edge in run], np.int32).reshape(-1, 2),
        point_start=np.cumsum([0, *(rule.nodes.size for rule in points)]),
        points=np.concatenate([np.zeros((0, 2)), *(np.stack(rule, axis=1) for rule in points)]),
    )


@jit
def expand(trees: PreorderTrees, t: int, expansions: Expansions, x: int, work: Workspace) -> None:
    """Compute the Shapley values of a tree's game and of its square for LANES rows, from the expansion."""
    first, n = trees.start[t], trees.start[t + 1] - trees.start[t]
    begin, players = expansions.start[x], trees.player_start[t + 1] - trees.player_start[t]
    below, edges, zero = expansions.below, expansions.edges, splat(0.0)
    terms, phi, phi_of_square = work.values, work.phi, work.phi_of_square
    store(terms, (2 * n + 1) * LANES, zero)
    phi[: players * LANES] = 0.0
    phi_of_square[: players * LANES] = 0.0
    for q in range(expansions.point_start[x], expansions.point_start[x + 1]):
        p, weight = expansions.points[q, 0], expansions.points[q, 1]
        variance = p * (1 - p)
        deviation = np.sqrt(variance)
        for v in range(n - 1, -1, -1):
            b, w = load(work.goes_left, v * LANES), splat(trees.share[first + v])
            change = splat(p) * (b - w)
            f, g, h = w + change, splat(deviation) * (b - w), b - change
            r, out = expansions.splits[begin + v, TERMS_BELOW], expansions.splits[begin + v, TERMS_PLACE] * LANES
            single, double = expansions.splits[begin + v, TERMS_SINGLE] * LANES, expansions.splits[begin + v, TERMS_DOUBLE] * LANES
            out_with = out + single + double
            for i in range(0, single, LANES):
                right = load(terms, below[r + 1] * LANES)
                step = load(terms, below[r] * LANES) - right
                store(terms, out + i, right + f * step)
                store(terms, out_with + i, g * step)
                r += 2
            for i in range(single, single + double, LANES):
                right, right_with = load(terms, below[r + 1] * LANES), load(terms, below[r + 3] * LANES)
                step, step_with = load(terms, below[r] * LANES) - right, load(terms, below[r + 2] * LANES) - right_with
                store(terms, out + i, right + f * step + g * step_with)
                store(terms, out_with + i, right_with + g * step + h * step_with)
                r += 4
        alpha, beta, gradient = splat(weight * (1 - 2 * p) / variance), splat(2 * weight / deviation), splat(weight / deviation)
        for j in range(players):
            start, stop = expansions.edge_start[expansions.run[x] + j], expansions.edge_start[expansions.run[x] + j + 1]
            squares, products = zero, zero
            for edge in range(start, stop):
                with_j = load(terms, edges[edge, 0] * LANES)
                squares = squares + with_j * with_j
                products = products + with_j * load(terms, edges[edge, 1] * LANES)
            store(phi, j * LANES, load(phi, j * LANES) + gradient * load(terms, edges[start, 0] * LANES))
            store(phi_of_square, j * LANES, load(phi_of_square, j * LANES) + alpha * squares + beta * products)
