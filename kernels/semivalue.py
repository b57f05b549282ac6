"""Any semivalue of the path-dependent game, every tree walked once per batch of rows.

At a point t of the quadrature every feature is present with probability t. With a the absent weight of a feature down to an edge (product of its
cover ratios) and o the bit "the row satisfies all its splits down to the edge", the feature's factor there is F = (1 - t) a + t o, and a leaf
counts with its value times the product of the factors of its path. A split replaces the factor F' that its feature has above it (1 where it is
the first) by that of one of its children, and a + a, o + o of the children are a' and o' above, so the children's shares of F' add up to one:

* r = F(first child) / F'       1 - r for the second child
* down   S(first) = r S,         S(second) = S - S(first)         the product of all factors above
* up     D = G(first) - G(second),   G = G(second) + r D          the sum below, factors above divided out
* phi[feature] += (o a' - o' a) sum over nodes of weight * S * D / F'(o' = 1)^2,     o and a those of the first child.

The last line is what the leaf-wise sum of (o - a) times the product of the others telescopes to (Li, Yu and Low 2026, Alg. 1, homogenised as in
Wettenstein, Mitchell and Yu 2026), once both children of a split are taken together: nothing but constants is ever divided by, and it is zero where
o' = 0. A row is in one of three states at a split: o' = 0; o' = 1 and it goes to the first child; o' = 1 and to the second. So r is a
constant of the split chosen among three, none + o' (other - none) + o (mine - other): multiply-adds, no branch.

A tree is a list of steps over stacks indexed by level: down to the first child, over to the second, back up. Leaves are no steps: their values are
constants of the split above. At most MAX_NODES quadrature nodes are taken at once, so that their loop unrolls and stacks stay in the first-level
cache; more are further walks of the same tree, whose contributions add.
"""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .ensemble import TreeEnsemble
from .lanes import LANES, inside, load, splat, store
from .paths import Trace
from .ranks import BATCH, RankedSplits, is_member
from .walks import (
    ABOVE,
    DOWN,
    DOWN_AGAIN,
    FEATURE,
    FIRST,
    KIND,
    LEAVES,
    LOWER,
    MAX_NODES,
    MEMBERS,
    OVER,
    PLACE,
    SPAN,
    UP,
    UP_AGAIN,
    UP_LEAF,
    UP_LEAF_AGAIN,
    Walks,
    lay_out_walks,
)


class SemivalueTables(NamedTuple):
    """Walks by their number of quadrature nodes."""

    one: Walks
    two: Walks
    three: Walks
    four: Walks


def prepare_semivalue(ensemble: TreeEnsemble, ranked: RankedSplits, trace: Trace, quadrature) -> SemivalueTables:
    """Write every tree as walks for the kernel; ``quadrature`` turns the number of distinct features on a tree's longest path into a Quadrature."""
    return SemivalueTables(*lay_out_walks(ensemble, ranked, trace, quadrature))


@jit
def _find_members(walks, s, batch, spare):
    """Where the ranks that step s compares start in ``batch``: the feature's own, or those of its category set, put into row ``spare``."""
    ranks, members = walks.steps[s, FEATURE] * BATCH, walks.steps[s, MEMBERS]
    if members < 0:
        return ranks
    for i in range(BATCH):
        batch[spare * BATCH + i] = is_member(walks.words, members, np.int64(batch[ranks + i]))
    return spare * BATCH


def _make_walker(Q):
    @jit
    def walk_trees(ranks, walks, phi):
        """Add the attributions of all walks to ``phi (outputs, used, n) float64``; ``ranks (used, n)``, n a multiple of BATCH."""
        n_used, n = ranks.shape
        flat_ranks, flat_phi, steps, constants, nodes = ranks.reshape(-1), phi.reshape(-1), walks.steps, walks.constants, walks.nodes.reshape(-1)
        levels = walks.levels[0] + 1
        STACK = Q * BATCH
        S, R = np.empty(levels * STACK), np.empty(levels * STACK)  # per level: products above, the first child's share; (levels, Q, BATCH)
        G = np.empty(2 * levels * STACK)  # per level: the sum below the first child, and below the second
        bits = np.empty(levels * BATCH)  # per level: o of the edge into the walk's current node there
        bits[:BATCH] = 1.0
        gained = np.empty(n_used * BATCH)
        batch = np.zeros((n_used + 1) * BATCH, ranks.dtype)  # one row more, for membership in a category set
        for row in range(0, n, BATCH):
            for j in range(n_used):
                batch[j * BATCH : (j + 1) * BATCH] = flat_ranks[j * n + row : j * n + row + BATCH]
            gained[:] = 0.0
            for w in range(walks.start.size):
                for q in range(Q):
                    S[q * BATCH : (q + 1) * BATCH] = walks.weights[w, q]
                t = w * Q
                for s in range(walks.start[w], walks.stop[w]):
                    kind, c, place = steps[s, KIND], steps[s, FIRST], steps[s, PLACE]
                    level = place // 2
                    here, below = level * STACK, (level + 1) * STACK
                    G_here, G_first, G_second = place * STACK, 2 * below, 2 * below + STACK
                    o_above, o_below = steps[s, ABOVE] * BATCH, (level + 1) * BATCH
                    gain = steps[s, FEATURE] * BATCH
                    if kind == OVER:
                        for i in range(0, BATCH, LANES):
                            store(bits, o_below + i, load(bits, o_above + i) - load(bits, o_below + i))
                            for q in range(Q):
                                at = q * BATCH + i
                                store(S, below + at, load(S, here + at) - load(S, below + at))
                        continue
                    compared, lower, span = _find_members(walks, s, batch, n_used), np.int64(steps[s, LOWER]), np.int64(steps[s, SPAN])
                    if kind == DOWN:
                        for i in range(0, BATCH, LANES):
                            o = inside(batch, compared + i, lower, span)
                            store(bits, o_below + i, o)
                            for q in range(Q):
                                at = q * BATCH + i
                                share = splat(constants[c + q]) + o * splat(nodes[t + q])
                                store(R, here + at, share)
                                store(S, below + at, load(S, here + at) * share)
                    elif kind == UP:
                        for i in range(0, BATCH, LANES):
                            # After its second child the split has that child's bit.
                            o = splat(1.0) - load(bits, o_below + i)
                            total = splat(0.0)
                            for q in range(Q):
                                at = q * BATCH + i
                                second = load(G, G_second + at)
                                step = load(G, G_first + at) - second
                                total = total + load(S, here + at) * step
                                store(G, G_here + at, second + load(R, here + at) * step)
                            store(gained, gain + i, load(gained, gain + i) + (o - splat(constants[c])) * total)
                    elif kind == UP_LEAF:
                        leaf = splat(constants[c + 1])
                        for i in range(0, BATCH, LANES):
                            o = load(bits, o_below + i)
                            total = splat(0.0)
                            for q in range(Q):
                                at = q * BATCH + i
                                step = load(G, G_first + at) - leaf
                                total = total + load(S, here + at) * step
                                store(G, G_here + at, leaf + load(R, here + at) * step)
                            store(gained, gain + i, load(gained, gain + i) + (o - splat(constants[c])) * total)
                    elif kind == LEAVES:
                        for i in range(0, BATCH, LANES):
                            o = inside(batch, compared + i, lower, span)
                            total = splat(0.0)
                            for q in range(Q):
                                at = q * BATCH + i
                                total = total + load(S, here + at)
                                store(G, G_here + at, splat(constants[c + 2 + 2 * q]) + o * splat(constants[c + 3 + 2 * q]))
                            store(gained, gain + i, load(gained, gain + i) + (o * splat(constants[c]) - splat(constants[c + 1])) * total)
                    elif kind == DOWN_AGAIN:
                        for i in range(0, BATCH, LANES):
                            above = load(bits, o_above + i)
                            o = above * inside(batch, compared + i, lower, span)
                            store(bits, o_below + i, o)
                            for q in range(Q):
                                k, at = c + 3 * q, q * BATCH + i
                                share = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                store(R, here + at, share)
                                store(S, below + at, load(S, here + at) * share)
                    elif kind == UP_AGAIN:
                        for i in range(0, BATCH, LANES):
                            above = load(bits, o_above + i)
                            o = above - load(bits, o_below + i)
                            total = splat(0.0)
                            for q in range(Q):
                                at = q * BATCH + i
                                second = load(G, G_second + at)
                                step = load(G, G_first + at) - second
                                total = total + load(S, here + at) * step * splat(constants[c + 2 + q])
                                store(G, G_here + at, second + load(R, here + at) * step)
                            share = o * splat(constants[c]) - above * splat(constants[c + 1])
                            store(gained, gain + i, load(gained, gain + i) + share * total)
                    elif kind == UP_LEAF_AGAIN:
                        leaf = splat(constants[c + 2])
                        for i in range(0, BATCH, LANES):
                            above, o = load(bits, o_above + i), load(bits, o_below + i)
                            total = splat(0.0)
                            for q in range(Q):
                                at = q * BATCH + i
                                step = load(G, G_first + at) - leaf
                                total = total + load(S, here + at) * step * splat(constants[c + 3 + q])
                                store(G, G_here + at, leaf + load(R, here + at) * step)
                            share = o * splat(constants[c]) - above * splat(constants[c + 1])
                            store(gained, gain + i, load(gained, gain + i) + share * total)
                    else:
                        for i in range(0, BATCH, LANES):
                            above = load(bits, o_above + i)
                            o = above * inside(batch, compared + i, lower, span)
                            total = splat(0.0)
                            for q in range(Q):
                                k, at = c + 2 + 4 * q, q * BATCH + i
                                sum_below = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                store(G, G_here + at, sum_below)
                                total = total + load(S, here + at) * splat(constants[k + 3])
                            share = o * splat(constants[c]) - above * splat(constants[c + 1])
                            store(gained, gain + i, load(gained, gain + i) + share * total)
                if w + 1 == walks.start.size or walks.output[w + 1] != walks.output[w]:
                    for j in range(n_used):
                        at = (walks.output[w] * n_used + j) * n + row
                        for i in range(0, BATCH, LANES):
                            store(flat_phi, at + i, load(flat_phi, at + i) + load(gained, j * BATCH + i))
                    gained[:] = 0.0

    return walk_trees


_WALKERS = tuple(_make_walker(q) for q in range(1, MAX_NODES + 1))


def add_semivalues(ranks, tables: SemivalueTables, phi) -> None:
    """Add every row's attributions to ``phi``.

    Parameters
    ----------
    ranks : (used, n) unsigned integers, n a multiple of BATCH
    tables : SemivalueTables
    phi : (outputs, used, n) float64, margin units
    """
    for walker, walks in zip(_WALKERS, tables, strict=True):
        if walks.start.size:
            walker(ranks, walks, phi)
