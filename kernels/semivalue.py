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

MAX_NODES = 4
# Kinds of steps; those whose feature was split on above come in a second form, which needs more constants.
OVER, DOWN, UP, UP_LEAF, LEAVES, DOWN_AGAIN, UP_AGAIN, UP_LEAF_AGAIN, LEAVES_AGAIN = range(9)
AGAIN = DOWN_AGAIN - DOWN
COMPARING = (DOWN, LEAVES, DOWN_AGAIN, LEAVES_AGAIN)


class Walks(NamedTuple):
    """Walks with the same number q of quadrature nodes; a walk is one tree, one output, at most MAX_NODES nodes."""

    start: np.ndarray  # (walks,) int64, walk w is steps start[w]:stop[w]
    stop: np.ndarray  # (walks,) int64
    output: np.ndarray  # (walks,) int32, ascending
    levels: np.ndarray  # (1,) int64, most levels of splits in a walk
    kind: np.ndarray  # (steps,) int8
    level: np.ndarray  # (steps,) int32, level of the split
    feature: np.ndarray  # (steps,) int32, used feature
    above: np.ndarray  # (steps,) int32, level of the edge whose bit is o'; 0, where all bits are 1, if there is none
    lower: np.ndarray  # (steps,) int64, ranks that go to the first child, see RankedSplits
    span: np.ndarray  # (steps,) int64
    members: np.ndarray  # (steps,) int64, -1 also where the step compares nothing
    slot: np.ndarray  # (steps,) int32, where the split's sum goes: 0 if it is its parent's first child, 1 if its second
    first: np.ndarray  # (steps,) int64, the step's constants start at constants[first]
    constants: np.ndarray  # float64
    nodes: np.ndarray  # (walks, q) float64
    weights: np.ndarray  # (walks, q) float64
    words: np.ndarray  # uint32


class SemivalueTables(NamedTuple):
    """Walks by their number of quadrature nodes."""

    one: Walks
    two: Walks
    three: Walks
    four: Walks


class _Splits(NamedTuple):
    """The ensemble's splits, tree by tree in preorder, their children in the order in which a walk takes them."""

    node: np.ndarray  # (splits,) int32
    start: np.ndarray  # (trees + 1,) int64, tree t's splits are start[t]:start[t + 1]
    first: np.ndarray  # (splits,) int32, the left child, or the right one where only the left is a leaf
    second: np.ndarray  # (splits,) int32
    last: np.ndarray  # (splits,) int8, kind of the split's last step: LEAVES, UP_LEAF or UP
    position: np.ndarray  # (nodes,) int64, of the node's first step among its tree's
    n_steps: np.ndarray  # (nodes,) int64, steps of the node and all below


@jit
def _place(order, first, second, own, count, position):
    """Steps of every subtree, children before parents; then the place of every node's first step, parents before children."""
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        if own[v] > 0:
            count[v] = own[v] + count[first[v]] + count[second[v]]
    for v in order:
        if own[v] > 1:
            position[first[v]] = position[v] + 1
            position[second[v]] = position[v] + 2 + count[first[v]]


def _order_splits(ensemble, trace):
    leaf = ensemble.feature < 0
    node = trace.order[~leaf[trace.order]]
    swap = leaf[ensemble.left[node]] & ~leaf[ensemble.right[node]]
    first = np.where(swap, ensemble.right[node], ensemble.left[node])
    second = np.where(swap, ensemble.left[node], ensemble.right[node])
    last = np.where(leaf[first], LEAVES, np.where(leaf[second], UP_LEAF, UP)).astype(np.int8)
    children = np.zeros((2, leaf.size), np.int64)
    children[:, node] = first, second
    own, count, position = (np.zeros(leaf.size, np.int64) for _ in range(3))
    own[node] = np.choose(last - UP, (3, 2, 1))
    _place(trace.order, children[0], children[1], own, count, position)
    start = np.concatenate(([0], np.cumsum(np.bincount(trace.tree[node], minlength=ensemble.root.size))))
    return _Splits(node, start, first, second, last, position, count)


def _divide(a, b):
    """a / b, and 0 where b is 0: a branch without training weight, whose product S is 0 already."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)


def _blocks(trace, splits, values, t):
    """Constants of every kind of step: for each ``(splits, m)``, per split and then per quadrature node.

    ``values (2, splits)`` are those of the children that are leaves, 0 where they are not; ``t (splits, q)``.
    """
    above = trace.above[splits.node]
    a_above = np.where(above < 0, 1.0, trace.absent[above])[:, None]
    a = trace.absent[splits.first][:, None]
    factor = (1 - t) * a_above + t  # F' where o' = 1
    none, other, gain = _divide(a, a_above) + 0 * t, (1 - t) * a / factor, t / factor
    weight = 1 / factor**2
    leaf = values[1][:, None]
    step = values[0][:, None] - leaf  # D where both children are leaves

    def per_node(*parts):
        return np.stack(parts, axis=-1).reshape(t.shape[0], len(parts) * t.shape[1])

    def joined(*blocks):
        return np.concatenate(blocks, axis=1)

    return {
        OVER: np.zeros((t.shape[0], 0)),
        DOWN: other,
        UP: a,
        UP_LEAF: joined(a, leaf),
        LEAVES: joined(step, a * step, per_node(leaf + other * step, gain * step)),
        DOWN_AGAIN: per_node(none, other - none, gain),
        UP_AGAIN: joined(a_above, a, weight),
        UP_LEAF_AGAIN: joined(a_above, a, leaf, weight),
        LEAVES_AGAIN: joined(a_above * step, a * step, per_node(leaf + none * step, (other - none) * step, gain * step, weight)),
    }


class _Walk(NamedTuple):
    tree: int
    column: int  # of the leaf values
    output: int
    nodes: tuple[float, ...]
    weights: tuple[float, ...]


def _lay_out(ensemble, ranked, trace, splits, walks, q):
    """Steps and constants of ``walks``, all of ``q`` nodes."""
    walks = sorted(walks, key=lambda walk: walk.output)
    tree = np.array([walk.tree for walk in walks], np.int64)
    column = np.array([walk.column for walk in walks], np.int64)
    nodes = np.array([walk.nodes for walk in walks]).reshape(-1, q)
    weights = np.array([walk.weights for walk in walks]).reshape(-1, q)

    n_splits = splits.start[tree + 1] - splits.start[tree]
    walk = np.repeat(np.arange(tree.size), n_splits)
    mine = np.arange(walk.size) + np.repeat(splits.start[tree] - np.cumsum(n_splits) + n_splits, n_splits)
    of = splits._replace(node=splits.node[mine], first=splits.first[mine], second=splits.second[mine], last=splits.last[mine])
    n_steps = splits.n_steps[ensemble.root[tree]]
    stop = np.cumsum(n_steps)
    down = (stop - n_steps)[walk] + splits.position[of.node]

    total = stop[-1] if stop.size else 0
    kind, split = np.full(total, DOWN, np.int8), np.zeros(total, np.int64)
    numbers = np.arange(walk.size)
    over, both = down + 1 + splits.n_steps[of.first], of.last == UP
    split[down] = numbers
    kind[over[both]], split[over[both]] = OVER, numbers[both]
    up = down + splits.n_steps[of.node] - 1
    kind[up], split[up] = of.last, numbers

    leaf = ensemble.feature < 0
    children = np.stack((of.first, of.second))
    values = np.where(leaf[children], ensemble.value[children, column[walk]], 0.0)
    node = of.node[split]
    above = trace.above[node]
    kind[(above >= 0) & (kind != OVER)] += AGAIN
    blocks = _blocks(trace, of, values, nodes[walk])
    size = np.array([blocks[k].shape[1] for k in range(len(blocks))], np.int64)[kind]
    first = np.cumsum(size) - size
    constants = np.empty(size.sum())
    for k, block in blocks.items():
        steps = np.flatnonzero(kind == k)
        constants[first[steps][:, None] + np.arange(block.shape[1])] = block[split[steps]]

    slot = np.zeros(leaf.size, np.int32)
    slot[of.second] = 1
    swapped = of.first[split] != ensemble.left[node]
    return Walks(
        start=stop - n_steps,
        stop=stop,
        output=np.array([walk.output for walk in walks], np.int32),
        levels=np.array([trace.level[of.node].max(initial=-1) + 1], np.int64),
        kind=kind,
        level=trace.level[node],
        feature=ranked.feature[node],
        above=np.where(above < 0, 0, trace.level[above]).astype(np.int32),
        lower=np.where(swapped, ranked.lower[node] + ranked.span[node] + 1, ranked.lower[node]),
        span=np.where(swapped, -ranked.span[node] - 2, ranked.span[node]),
        members=np.where(np.isin(kind, COMPARING), ranked.members[node], -1),
        slot=slot[node],
        first=first,
        constants=constants,
        nodes=nodes,
        weights=weights,
        words=ranked.words,
    )


def prepare_semivalue(ensemble: TreeEnsemble, ranked: RankedSplits, trace: Trace, quadrature) -> SemivalueTables:
    """Write every tree as walks for the kernel.

    Parameters
    ----------
    quadrature : callable, number of distinct features on a tree's longest path -> Quadrature
    """
    splits = _order_splits(ensemble, trace)
    rules = {int(d): quadrature(int(d)) for d in np.unique(trace.players)}
    groups: dict[int, list[_Walk]] = {q: [] for q in range(1, MAX_NODES + 1)}
    for tree, players in enumerate(trace.players):
        rule = rules[int(players)]
        for i in range(0, rule.nodes.size, MAX_NODES):
            nodes, weights = tuple(rule.nodes[i : i + MAX_NODES]), tuple(rule.weights[i : i + MAX_NODES])
            for column in range(ensemble.value.shape[1]):
                groups[len(nodes)].append(_Walk(tree, column, int(ensemble.output[tree]) + column, nodes, weights))
    return SemivalueTables(*(_lay_out(ensemble, ranked, trace, splits, walks, q) for q, walks in groups.items()))


def _make_walker(Q):
    @jit
    def walk_trees(ranks, walks, phi):
        """Add the attributions of all walks to ``phi (outputs, used, n) float64``; ``ranks (used, n)``, n a multiple of BATCH."""
        n_used, n = ranks.shape
        flat_ranks, flat_phi, constants, nodes = ranks.reshape(-1), phi.reshape(-1), walks.constants, walks.nodes.reshape(-1)
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
                    kind, c = walks.kind[s], walks.first[s]
                    here, below = walks.level[s] * STACK, (walks.level[s] + 1) * STACK
                    G_here, G_first, G_second = 2 * here + walks.slot[s] * STACK, 2 * below, 2 * below + STACK
                    o_above, o_below = walks.above[s] * BATCH, (walks.level[s] + 1) * BATCH
                    gain = walks.feature[s] * BATCH
                    if kind == OVER:
                        for i in range(0, BATCH, LANES):
                            store(bits, o_below + i, load(bits, o_above + i) - load(bits, o_below + i))
                            for q in range(Q):
                                at = q * BATCH + i
                                store(S, below + at, load(S, here + at) - load(S, below + at))
                        continue
                    compared, lower, span = gain, walks.lower[s], walks.span[s]
                    if walks.members[s] >= 0:
                        compared = n_used * BATCH
                        for i in range(BATCH):
                            batch[compared + i] = is_member(walks.words, walks.members[s], np.int64(batch[gain + i]))
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
