"""Interactions of sets of players in the path-dependent game: one walk over every tree, with all sets of players above each split.

As in ``interactions``, with any number of players more. For a split of player i, with o, a and F' as in ``quadrature``, and T a set of other players
above it, each by its nearest edge,

    value of T + i += (o a' - o' a) sum over points of omega * S * D / F'(o' = 1)^2 * product over k in T of D_k / F_k

where omega is the weight of sets of that size, see ``set_indices``: an index is a table of numbers. D_k / F_k is -1 / (1 - t) where the row leaves
that edge's path, and otherwise (1 - a) / F_k; it is kept beside the products of factors on the way down. Sets grow by one player at a time, nearest
first, each product made from that of the set without its last player; those of the largest size are only summed: a multiply-add for a point and
eight rows. For 100 trees of depth 6 of 20 features, on an EPYC with AVX-512, sets of up to three take a row 27 µs at three points (SII), and 47 at
six (k-SII), where Shapley values take 7 and pairs 14.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from ..jit.decorator import jit
from ..jit.lanes import LANES, Lanes, aligned, constant, inside, load, splat, store
from ..trees.binning import copy_batch, is_member
from .set_games import (
    ABOVE,
    CONSTANTS,
    FEATURE,
    GAIN,
    KIND,
    LEAVES,
    LOWER,
    MEMBERS,
    MORE,
    MORE_SECOND,
    N_OTHERS,
    NONE,
    NONE_SECOND,
    OTHERS,
    PER_POINT,
    PLACE,
    RATIO,
    RATIO_MORE,
    RATIO_MORE_SECOND,
    SETS,
    SPAN,
    WEIGHT,
    SetWalks,
    SetWalkTables,
)
from .walks import MAX_NODES, WALK_DOWN, WALK_LEAVES

SET_ROWS = 2 * LANES  # rows of a batch: sums of a thousand sets stay in the second-level cache


@jit
def _take(products: np.ndarray, at: int, weights: np.ndarray, k: int, Q: int) -> tuple[Lanes, Lanes, Lanes, Lanes]:
    """Load the products of eight rows, point by point, times the weights of sets with one player more."""
    p0 = load(products, at) * constant(weights, k)
    p1 = load(products, at + (1 % Q) * SET_ROWS) * constant(weights, k + 1 % Q)
    p2 = load(products, at + (2 % Q) * SET_ROWS) * constant(weights, k + 2 % Q)
    p3 = load(products, at + (3 % Q) * SET_ROWS) * constant(weights, k + 3 % Q)
    return p0, p1, p2, p3


@jit
def _add_set(gained: np.ndarray, to: int, taken: tuple[Lanes, Lanes, Lanes, Lanes], ratios: np.ndarray, at: int, Q: int) -> None:
    """Add to the interactions of eight rows of one set."""
    total = taken[0] * load(ratios, at)
    if Q > 1:
        total = total + taken[1] * load(ratios, at + SET_ROWS)
    if Q > 2:
        total = total + taken[2] * load(ratios, at + 2 * SET_ROWS)
    if Q > 3:
        total = total + taken[3] * load(ratios, at + 3 * SET_ROWS)
    store(gained, to, load(gained, to) + total)


def _walk_sets(bins: np.ndarray, walks: SetWalks, shared: SetWalkTables, out: np.ndarray, n_out: int, n: int, Q: int, width: int) -> None:
    """Add the interactions of all walks, of the first n rows, SET_ROWS at a time.

    ``out (outputs * n_out * rows,) float64`` is ``add_set_walks``'s, its axes joined. ``width`` is the numbers in a leaf.
    """
    n_used, n_padded = bins.shape
    steps, constants, weights = walks.steps, walks.constants, walks.weights.reshape(-1)
    places, rows, order = shared.places, shared.rows, shared.order[0]
    levels = walks.levels[0] + 1
    STACK = Q * SET_ROWS
    SUMS, GAINED = width * STACK, n_out * SET_ROWS
    S, R, G = aligned(2 * levels * STACK), aligned(2 * levels * STACK), aligned(2 * levels * SUMS)  # by place: products, D / F, and sums below
    bits = aligned(2 * levels * SET_ROWS)  # by place: o of the edge into the node
    bits[:SET_ROWS] = 1.0
    S[:STACK] = 1.0
    products, last = aligned(shared.most[0] * STACK), np.empty(shared.most[0], np.int64)  # of sets: products with D / F, and their last player
    gained = aligned(width * GAINED)
    batch = np.empty((n_used + 1) * SET_ROWS, bins.dtype)  # an extra row for membership in a category set
    for row in range(0, n, SET_ROWS):
        copy_batch(bins, row, SET_ROWS, batch)
        for w in range(walks.start.size):
            omega = w * order * Q
            for s in range(walks.start[w], walks.stop[w]):
                kind, place, n_leaves = steps[s, KIND], steps[s, PLACE], steps[s, LEAVES]
                level, c = place // 2, np.int64(steps[s, CONSTANTS])
                per_point = c + 2 + 2 * width
                here, S_first, S_second = place * STACK, 2 * (level + 1) * STACK, (2 * level + 3) * STACK
                o_above, o_first, o_second = steps[s, ABOVE] * SET_ROWS, 2 * (level + 1) * SET_ROWS, (2 * level + 3) * SET_ROWS
                if kind in (WALK_DOWN, WALK_LEAVES):
                    compared = np.int64(steps[s, FEATURE]) * SET_ROWS
                    if steps[s, MEMBERS] >= 0:
                        for i in range(SET_ROWS):
                            batch[n_used * SET_ROWS + i] = is_member(walks.words, steps[s, MEMBERS], np.int64(batch[compared + i]))
                        compared = n_used * SET_ROWS
                    lower, span = np.int64(steps[s, LOWER]), np.int64(steps[s, SPAN])
                    for i in range(0, SET_ROWS, LANES):
                        above = load(bits, o_above + i)
                        o = above * inside(batch, compared + i, lower, span)
                        other = above - o
                        store(bits, o_first + i, o)
                        store(bits, o_second + i, other)
                        for q in range(MAX_NODES):
                            if q == Q:
                                break
                            k, at = per_point + PER_POINT * q, q * SET_ROWS + i
                            product, gain = load(S, here + at), constant(constants, k + GAIN)
                            if n_leaves < 2:
                                share = constant(constants, k + NONE) + above * constant(constants, k + MORE) + o * gain
                                store(S, S_first + at, product * share)
                                store(R, S_first + at, constant(constants, k + RATIO) + o * constant(constants, k + RATIO_MORE))
                            if n_leaves < 1:
                                share = constant(constants, k + NONE_SECOND) + above * constant(constants, k + MORE_SECOND) + other * gain
                                store(S, S_second + at, product * share)
                                store(R, S_second + at, constant(constants, k + RATIO) + other * constant(constants, k + RATIO_MORE_SECOND))
                    for leaf in range(width):
                        if n_leaves > 0:
                            value = constant(constants, c + 2 + width + leaf)
                            for i in range(0, STACK, LANES):
                                store(G, (2 * level + 3) * SUMS + leaf * STACK + i, value)
                        if n_leaves > 1:
                            value = constant(constants, c + 2 + leaf)
                            for i in range(0, STACK, LANES):
                                store(G, 2 * (level + 1) * SUMS + leaf * STACK + i, value)
                if kind == WALK_DOWN:
                    continue
                n_others, first_place = steps[s, N_OTHERS], np.int64(steps[s, OTHERS])
                for leaf in range(width):
                    e, to = int(steps[s, SETS]), leaf * GAINED
                    G_here, G_first = place * SUMS + leaf * STACK, 2 * (level + 1) * SUMS + leaf * STACK
                    G_second = G_first + SUMS
                    at_set = to + np.int64(rows[e]) * SET_ROWS
                    for i in range(0, SET_ROWS, LANES):
                        above, o, total = load(bits, o_above + i), load(bits, o_first + i), splat(0.0)
                        change = o * constant(constants, c + 1) - above * constant(constants, c)
                        for q in range(MAX_NODES):
                            if q == Q:
                                break
                            k, at = per_point + PER_POINT * q, q * SET_ROWS + i
                            share = constant(constants, k + NONE) + above * constant(constants, k + MORE) + o * constant(constants, k + GAIN)
                            second = load(G, G_second + at)
                            step = load(G, G_first + at) - second
                            store(G, G_here + at, second + share * step)
                            product = change * load(S, here + at) * step * constant(constants, k + WEIGHT)
                            store(products, at, product)
                            total = total + product * constant(weights, omega + q)
                        store(gained, at_set + i, load(gained, at_set + i) + total)
                    e += 1
                    last[0] = -1
                    first, end = 0, 1  # the sets with one player less
                    for size in range(1, order - 1):  # sets that larger ones are made from, with so many others above
                        n_made = end
                        for held in range(first, end):
                            for other_one in range(last[held] + 1, n_others):
                                at_ratio, at_set = np.int64(places[first_place + other_one]) * STACK, to + np.int64(rows[e]) * SET_ROWS
                                for i in range(0, SET_ROWS, LANES):
                                    total = splat(0.0)
                                    for q in range(MAX_NODES):
                                        if q == Q:
                                            break
                                        at = q * SET_ROWS + i
                                        product = load(products, held * STACK + at) * load(R, at_ratio + at)
                                        store(products, n_made * STACK + at, product)
                                        total = total + product * constant(weights, omega + size * Q + q)
                                    store(gained, at_set + i, load(gained, at_set + i) + total)
                                last[n_made] = other_one
                                n_made += 1
                                e += 1
                        first, end = end, n_made
                    if order > 1:
                        k = omega + (order - 1) * Q
                        for held in range(first, end):
                            taken0 = _take(products, held * STACK, weights, k, Q)
                            taken1 = _take(products, held * STACK + LANES, weights, k, Q)
                            for other_one in range(last[held] + 1, n_others):
                                at_ratio, at_set = np.int64(places[first_place + other_one]) * STACK, to + np.int64(rows[e]) * SET_ROWS
                                _add_set(gained, at_set, taken0, R, at_ratio, Q)
                                _add_set(gained, at_set + LANES, taken1, R, at_ratio + LANES, Q)
                                e += 1
            if w + 1 == walks.start.size or walks.output[w + 1] != walks.output[w]:
                for leaf in range(width):
                    for j in range(n_out):
                        at = ((walks.output[w] + leaf) * n_out + j) * n_padded + row
                        for i in range(0, SET_ROWS, LANES):
                            store(out, at + i, load(out, at + i) + load(gained, leaf * GAINED + j * SET_ROWS + i))
                gained[:] = 0.0


_walk = jit(_walk_sets, inline=True)


@cache
def _fix(Q: int, scalar: bool) -> Callable[[np.ndarray, SetWalks, SetWalkTables, np.ndarray, int, int], None]:
    """Make the kernel for Q points, and one number in leaves (``scalar``) or many."""

    @jit
    def walk(bins: np.ndarray, walks: SetWalks, shared: SetWalkTables, out: np.ndarray, n_out: int, n: int) -> None:
        _walk(bins, walks, shared, out, n_out, n, np.int64(Q), np.int64(1) if scalar else walks.width[0])

    return walk


def add_set_walks(bins: np.ndarray, tables: SetWalkTables, out: np.ndarray, n_rows: int) -> None:
    """Add every row's interactions to ``out``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    out : (outputs, sets, n) float64, margin units
    n_rows : int
        how many rows count, the first; others may be left out
    """
    for q, some in enumerate(tables.walks, 1):
        if some.start.size:
            _fix(q, bool(some.width[0] == 1))(bins, some, tables, out.reshape(-1), out.shape[1], n_rows)
