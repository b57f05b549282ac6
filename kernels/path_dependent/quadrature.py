"""Kernel for semivalues of the path-dependent game by quadrature, with one pass over every tree per batch.

At a quadrature point t every feature is present with probability t. With a the absent weight of a feature down to an edge (product of its cover
ratios) and o the bit "the row satisfies all its splits down to the edge", the feature's factor is F = (1 - t) a + t o, and a leaf contributes its
value times the product of its path's factors. A split replaces its feature's factor F' from above (1 at the feature's first split) by that of a
child. Since a + a and o + o of the children are a' and o' above, the children's shares of F' add up to one:

* r = F(first child) / F'       1 - r for the second child, a constant too: where r is close to 1, S - r S would lose what is left
* down   S(first) = r S,         S(second) = (1 - r) S            the product of all factors above
* up     D = G(first) - G(second),   G = G(second) + r D          the sum below, factors above divided out
* phi[feature] += (o a' - o' a) sum over nodes of weight * S * D / F'(o' = 1)^2,     o and a those of the first child.

The last line is the leaf-wise sum of (o - a) times the product of the other factors, telescoped (Li, Yu and Low 2026, Alg. 1, homogenised as in
Wettenstein, Mitchell and Yu 2026) over both children of a split: all divisors are constants, and it is zero where o' = 0. A row is in one of three
states at a split: o' = 0; o' = 1 and it goes to the first child; o' = 1 and to the second. So r is one of three constants, none + o' (other - none) +
o (mine - other): multiply-adds, no branch.

A tree is a list of steps over stacks: down to both children, and up again. Leaves are constants of the split above, without steps. A walk takes at
most MAX_NODES quadrature nodes, so that their loop unrolls and the stacks stay in the first-level cache; further nodes are further walks of the same
tree, whose contributions add.

For interactions (see ``interactions``) the products weight * S * D are added to the pairs of the split's player with those above. At three nodes that
is five operations for eight rows, a load and a store of the pair's sum; for sixteen rows the partner's three numbers, and a jump.

Speed: a tree of depth 6 at three nodes takes a row 1,950 floating-point operations and 8.5 KB of loads and stores in the first-level cache (S, G,
bits and gains, counted by step). On an EPYC with AVX2 that takes 80 ns: 24 GFLOP/s, where multiply-adds alone reach 51, and 106 GB/s, where a triad
in that cache reaches 245. The rest is instruction issue, and one unpredictable jump per step, some 20 cycles for 64 rows. Constants stream at 1.6
GB/s for 500 trees of depth 8, far from a limit. With AVX-512 it takes 30 ns, 66 GFLOP/s and 290 GB/s with stacks aligned to cache lines, and up to 40
ns otherwise.

Up to FEW_ROWS are walked eight at a time, by kernels of their own: with AVX-512, eight rows of 100 trees of depth 6 take 58 µs, 64 rows 196 µs.
Numbers of nodes and rows are constants of the kernels, so that loops unroll and constants stay in registers; with both as variables it takes half as
long again. Numba's part of the compilation, two thirds of the time, is the same for all: it is done once, for ``_walk_trees``, which LLVM puts into
each kernel with its constants. Loops over nodes have MAX_NODES turns and end at Q: so LLVM unrolls them before it knows Q, where it would otherwise
make loops of them that it does not unroll any more.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from ..jit.decorator import frozen, jit
from ..jit.lanes import LANES, Lanes, aligned, constant, inside, load, splat, store
from ..trees.binning import BATCH, copy_batch, is_member
from .interactions import NO_PARTNERS, PairWalkTables, StepPartners
from .walks import (
    MAX_NODES,
    STEP_ABOVE,
    STEP_CONSTANTS,
    STEP_FEATURE,
    STEP_GAIN,
    STEP_KIND,
    STEP_LOWER,
    STEP_MEMBERS,
    STEP_PLACE,
    STEP_SPAN,
    WALK_DOWN,
    WALK_DOWN_AGAIN,
    WALK_LEAVES,
    WALK_UP,
    WALK_UP_AGAIN,
    WALK_UP_LEAF,
    WALK_UP_LEAF_AGAIN,
    Walks,
    WalkTables,
)

FEW_ROWS = 3 * LANES  # up to which rows are walked LANES at a time, or PAIR_ROWS
PAIR_ROWS = 2 * LANES  # two vectors of rows per load of a partner


@jit
def _find_members(words: np.ndarray, members: int, batch: np.ndarray, bins: int, spare: int, ROWS: int) -> int:
    """Return where in ``batch`` the bins of a step start: at ``bins``, or its category set membership, written to row ``spare``."""
    if members < 0:
        return bins
    for i in range(ROWS):
        batch[spare * ROWS + i] = is_member(words, members, np.int64(batch[bins + i]))
    return spare * ROWS


@jit
def _multiply(
    changes: np.ndarray, products: np.ndarray, absent: np.ndarray, i: int, Q: int, ROWS: int
) -> tuple[Lanes, tuple[Lanes, Lanes, Lanes, Lanes]]:
    """Compute the products of eight rows that all partners share, node by node in registers."""
    change, common = load(changes, i), splat(0.0)
    for q in range(Q):
        common = common + change * load(products, q * ROWS + i) * splat(absent[q])
    p0, p1 = change * load(products, i), change * load(products, (1 % Q) * ROWS + i)
    p2, p3 = change * load(products, (2 % Q) * ROWS + i), change * load(products, (3 % Q) * ROWS + i)
    return common, (p0, p1, p2, p3)


@jit
def _add_pair(
    gained: np.ndarray,
    at: int,
    common: Lanes,
    taken: tuple[Lanes, Lanes, Lanes, Lanes],
    present: np.ndarray,
    k: int,
    bits: np.ndarray,
    bit: int,
    Q: int,
) -> None:
    """Add to the interactions of eight rows with one partner."""
    more = taken[0] * constant(present, k)
    if Q > 1:
        more = more + taken[1] * constant(present, k + 1)
    if Q > 2:
        more = more + taken[2] * constant(present, k + 2)
    if Q > 3:
        more = more + taken[3] * constant(present, k + 3)
    store(gained, at, load(gained, at) + (common + load(bits, bit) * more))


def _make_walk(pairs: bool) -> Callable[..., None]:
    """Make the kernel for single values, or for ``pairs``."""

    def walk_trees(
        bins: np.ndarray, walks: Walks, partners: StepPartners, phi: np.ndarray, n_phi: int, n: int, Q: int, ROWS: int, width: int
    ) -> None:
        """Add the attributions of all walks, or the interactions, of the first n rows, ROWS at a time.

        ``phi (outputs * n_phi * rows,) float64`` is ``add_walks``'s or ``add_pair_walks``'s, its axes joined. ``width`` is the numbers in a leaf.
        """
        n_used, n_padded = bins.shape
        steps, constants, words = walks.steps, walks.constants, walks.words
        levels = walks.levels[0] + 1
        STACK = Q * ROWS
        SUMS = width * STACK
        S, G = aligned(2 * levels * STACK), aligned(2 * levels * SUMS)  # by place: products above; sums below (places, width, Q, ROWS)
        bits = aligned(2 * levels * ROWS)  # by place: o of the edge into the node
        bits[:ROWS] = 1.0
        GAINED = (n_phi + 1) * ROWS  # an extra row for players without a row of phi
        gained = aligned(width * GAINED)
        changes, products, absent = aligned(ROWS), aligned(STACK), np.empty(Q)  # of the split that an upward step leaves, for pairs
        batch = np.empty((n_used + 1) * ROWS, bins.dtype)  # an extra row for membership in a category set
        for row in range(0, n, ROWS):
            copy_batch(bins, row, ROWS, batch)
            for w in range(walks.start.size):
                for q in range(MAX_NODES):
                    if q == Q:
                        break
                    S[q * ROWS : (q + 1) * ROWS] = walks.weights[w, q]
                    if pairs:
                        absent[q] = -1.0 / (1.0 - walks.nodes[w, q])
                for s in range(walks.start[w], walks.stop[w]):
                    kind, c, place = steps[s, STEP_KIND], steps[s, STEP_CONSTANTS], steps[s, STEP_PLACE]
                    level = place // 2
                    here, S_first, S_second = place * STACK, 2 * (level + 1) * STACK, (2 * level + 3) * STACK
                    o_above, o_first, o_second = steps[s, STEP_ABOVE] * ROWS, 2 * (level + 1) * ROWS, (2 * level + 3) * ROWS
                    compared = _find_members(words, steps[s, STEP_MEMBERS], batch, steps[s, STEP_FEATURE] * ROWS, n_used, ROWS)
                    lower, span = np.int64(steps[s, STEP_LOWER]), np.int64(steps[s, STEP_SPAN])
                    if kind == WALK_DOWN:
                        for i in range(0, ROWS, LANES):
                            o = inside(batch, compared + i, lower, span)
                            other = splat(1.0) - o
                            store(bits, o_first + i, o)
                            store(bits, o_second + i, other)
                            for q in range(MAX_NODES):
                                if q == Q:
                                    break
                                k, at = c + 3 * q, q * ROWS + i
                                product, gain = load(S, here + at), constant(constants, k + 2)
                                store(S, S_first + at, product * (constant(constants, k) + o * gain))
                                store(S, S_second + at, product * (constant(constants, k + 1) + other * gain))
                        continue
                    if kind == WALK_DOWN_AGAIN:
                        for i in range(0, ROWS, LANES):
                            above = load(bits, o_above + i)
                            o = above * inside(batch, compared + i, lower, span)
                            other = above - o
                            store(bits, o_first + i, o)
                            store(bits, o_second + i, other)
                            for q in range(MAX_NODES):
                                if q == Q:
                                    break
                                k, at = c + 5 * q, q * ROWS + i
                                product, gain = load(S, here + at), constant(constants, k + 4)
                                share = constant(constants, k) + above * constant(constants, k + 1) + o * gain
                                store(S, S_first + at, product * share)
                                share = constant(constants, k + 2) + above * constant(constants, k + 3) + other * gain
                                store(S, S_second + at, product * share)
                        continue
                    for leaf in range(width):
                        G_here, to = place * SUMS + leaf * STACK, leaf * GAINED + steps[s, STEP_GAIN] * ROWS
                        G_first, G_second = 2 * (level + 1) * SUMS + leaf * STACK, (2 * level + 3) * SUMS + leaf * STACK
                        if kind == WALK_UP:
                            for i in range(0, ROWS, LANES):
                                o = load(bits, o_first + i)
                                total = splat(0.0)
                                for q in range(MAX_NODES):
                                    if q == Q:
                                        break
                                    k, at = c + 1 + 2 * q, q * ROWS + i
                                    share = constant(constants, k) + o * constant(constants, k + 1)
                                    second = load(G, G_second + at)
                                    step = load(G, G_first + at) - second
                                    product = load(S, here + at) * step
                                    if pairs:
                                        store(products, at, product)
                                    total = total + product
                                    store(G, G_here + at, second + share * step)
                                change = o - constant(constants, c)
                                if pairs:
                                    store(changes, i, change)
                                else:
                                    store(gained, to + i, load(gained, to + i) + change * total)
                        elif kind == WALK_UP_LEAF:
                            second = constant(constants, c + 1 + 2 * Q + leaf)
                            for i in range(0, ROWS, LANES):
                                o = load(bits, o_first + i)
                                total = splat(0.0)
                                for q in range(MAX_NODES):
                                    if q == Q:
                                        break
                                    k, at = c + 1 + 2 * q, q * ROWS + i
                                    share = constant(constants, k) + o * constant(constants, k + 1)
                                    step = load(G, G_first + at) - second
                                    product = load(S, here + at) * step
                                    if pairs:
                                        store(products, at, product)
                                    total = total + product
                                    store(G, G_here + at, second + share * step)
                                change = o - constant(constants, c)
                                if pairs:
                                    store(changes, i, change)
                                else:
                                    store(gained, to + i, load(gained, to + i) + change * total)
                        elif kind == WALK_LEAVES:
                            a, b = c + 2 * leaf, c + 2 * width + leaf * 2 * Q
                            for i in range(0, ROWS, LANES):
                                o = inside(batch, compared + i, lower, span)
                                total = splat(0.0)
                                for q in range(MAX_NODES):
                                    if q == Q:
                                        break
                                    at = q * ROWS + i
                                    product = load(S, here + at)
                                    if pairs:
                                        store(products, at, product)
                                    total = total + product
                                    store(G, G_here + at, constant(constants, b + 2 * q) + o * constant(constants, b + 2 * q + 1))
                                change = o * constant(constants, a) - constant(constants, a + 1)
                                if pairs:
                                    store(changes, i, change)
                                else:
                                    store(gained, to + i, load(gained, to + i) + change * total)
                        elif kind == WALK_UP_AGAIN:
                            for i in range(0, ROWS, LANES):
                                above, o = load(bits, o_above + i), load(bits, o_first + i)
                                total = splat(0.0)
                                for q in range(MAX_NODES):
                                    if q == Q:
                                        break
                                    k, at = c + 2 + 4 * q, q * ROWS + i
                                    share = constant(constants, k) + above * constant(constants, k + 1) + o * constant(constants, k + 2)
                                    second = load(G, G_second + at)
                                    step = load(G, G_first + at) - second
                                    product = load(S, here + at) * step * constant(constants, k + 3)
                                    if pairs:
                                        store(products, at, product)
                                    total = total + product
                                    store(G, G_here + at, second + share * step)
                                change = o * constant(constants, c) - above * constant(constants, c + 1)
                                if pairs:
                                    store(changes, i, change)
                                else:
                                    store(gained, to + i, load(gained, to + i) + change * total)
                        elif kind == WALK_UP_LEAF_AGAIN:
                            second = constant(constants, c + 2 + 4 * Q + leaf)
                            for i in range(0, ROWS, LANES):
                                above, o = load(bits, o_above + i), load(bits, o_first + i)
                                total = splat(0.0)
                                for q in range(MAX_NODES):
                                    if q == Q:
                                        break
                                    k, at = c + 2 + 4 * q, q * ROWS + i
                                    share = constant(constants, k) + above * constant(constants, k + 1) + o * constant(constants, k + 2)
                                    step = load(G, G_first + at) - second
                                    product = load(S, here + at) * step * constant(constants, k + 3)
                                    if pairs:
                                        store(products, at, product)
                                    total = total + product
                                    store(G, G_here + at, second + share * step)
                                change = o * constant(constants, c) - above * constant(constants, c + 1)
                                if pairs:
                                    store(changes, i, change)
                                else:
                                    store(gained, to + i, load(gained, to + i) + change * total)
                        else:
                            a, b = c + Q + 2 * leaf, c + Q + 2 * width + leaf * 3 * Q
                            for i in range(0, ROWS, LANES):
                                above = load(bits, o_above + i)
                                o = above * inside(batch, compared + i, lower, span)
                                total = splat(0.0)
                                for q in range(MAX_NODES):
                                    if q == Q:
                                        break
                                    k, at = b + 3 * q, q * ROWS + i
                                    sum_below = constant(constants, k) + above * constant(constants, k + 1) + o * constant(constants, k + 2)
                                    store(G, G_here + at, sum_below)
                                    product = load(S, here + at) * constant(constants, c + q)
                                    if pairs:
                                        store(products, at, product)
                                    total = total + product
                                change = o * constant(constants, a) - above * constant(constants, a + 1)
                                if pairs:
                                    store(changes, i, change)
                                else:
                                    store(gained, to + i, load(gained, to + i) + change * total)
                        if pairs:
                            for i in range(0, ROWS, PAIR_ROWS):
                                common0, products0 = _multiply(changes, products, absent, i, Q, ROWS)
                                common1, products1 = _multiply(changes, products, absent, i + LANES, Q, ROWS)
                                for partner in range(partners.start[s], partners.start[s + 1]):
                                    at, bit = leaf * GAINED + partners.partners[partner, 0] * ROWS + i, partners.partners[partner, 1] * ROWS + i
                                    k = partners.partners[partner, 2]
                                    _add_pair(gained, at, common0, products0, partners.present, k, bits, bit, Q)
                                    _add_pair(gained, at + LANES, common1, products1, partners.present, k, bits, bit + LANES, Q)
                if w + 1 == walks.start.size or walks.output[w + 1] != walks.output[w]:
                    for k in range(width):
                        for j in range(n_phi):
                            at = ((walks.output[w] + k) * n_phi + j) * n_padded + row
                            for i in range(0, ROWS, LANES):
                                store(phi, at + i, load(phi, at + i) + load(gained, k * GAINED + j * ROWS + i))
                    gained[:] = 0.0

    return jit(walk_trees, inline=True)


_walk_trees, _walk_pairs = _make_walk(pairs=False), _make_walk(pairs=True)  # names that kernels can call and still be kept on disk


@cache
def _fix_trees(Q: int, ROWS: int, scalar: bool) -> Callable[[np.ndarray, Walks, StepPartners, np.ndarray, int, int], None]:
    """Make the kernel for Q nodes, ROWS rows at a time, and one number in leaves (``scalar``) or many."""

    @jit
    def walk(bins: np.ndarray, walks: Walks, partners: StepPartners, phi: np.ndarray, n_phi: int, n: int) -> None:
        _walk_trees(bins, walks, partners, phi, n_phi, n, np.int64(Q), np.int64(ROWS), np.int64(1) if scalar else walks.width[0])

    return walk


@cache
def _fix_pairs(Q: int, ROWS: int, scalar: bool) -> Callable[[np.ndarray, Walks, StepPartners, np.ndarray, int, int], None]:
    """Make the kernel of pairs, as ``_fix_trees`` does that of single values."""

    @jit
    def walk(bins: np.ndarray, walks: Walks, partners: StepPartners, phi: np.ndarray, n_phi: int, n: int) -> None:
        _walk_pairs(bins, walks, partners, phi, n_phi, n, np.int64(Q), np.int64(ROWS), np.int64(1) if scalar else walks.width[0])

    return walk


def _choose_rows(Q: int, n_rows: int, fewest: int) -> int:
    """Choose how many rows are walked at a time: more amortise the cost of a step, as long as stacks stay in the first-level cache."""
    return fewest if n_rows <= FEW_ROWS else BATCH if Q == 1 else BATCH // 2


_NOBODY = frozen(NO_PARTNERS)


def add_walks(bins: np.ndarray, walks: WalkTables, phi: np.ndarray, n_rows: int) -> None:
    """Add every row's attributions to ``phi``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    phi : (outputs, rows, n) float64, margin units
    n_rows : int
        how many rows count, the first; others may be left out
    """
    for q, some in enumerate(walks, 1):
        if some.start.size:
            _fix_trees(q, _choose_rows(q, n_rows, LANES), bool(some.width[0] == 1))(bins, some, _NOBODY, phi.reshape(-1), phi.shape[1], n_rows)


def add_pair_walks(bins: np.ndarray, tables: PairWalkTables, pairs: np.ndarray, n_rows: int) -> None:
    """Add every row's interactions to ``pairs``.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    pairs : (outputs, pairs, n) float64, margin units
    n_rows : int
        as ``add_walks`` takes it
    """
    for q, (some, partners) in enumerate(zip(tables.walks, tables.partners, strict=True), 1):
        if some.start.size:
            _fix_pairs(q, _choose_rows(q, n_rows, PAIR_ROWS), bool(some.width[0] == 1))(
                bins, some, partners, pairs.reshape(-1), pairs.shape[1], n_rows
            )
