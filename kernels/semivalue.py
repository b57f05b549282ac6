"""Any semivalue of the path-dependent game, every tree walked once per batch of rows.

At a node of the walk every quantity is a short vector over the batch. With t a quadrature node, a the absent weight of the current edge's
feature (product of its cover ratios down to the edge), o the bit "the row satisfies all its splits down to the edge", and a', o' the same at
the nearest edge of that feature above (1 where there is none), the feature's factor is F(o) = (1 - t) a + t o, and

* down an edge       S <- S F(o) / F'(o')
* at a leaf          H = S times the leaf's value
* up an edge         phi[feature] += sum over nodes of weight * H * ((o - a) / F(o) - (o' - a') / F'(o'))
* at a split         H = H of one child + H of the other.

The subtraction takes from the edge above the leaves that now belong to this one (Li, Yu and Low 2026, Alg. 1; homogenised as in
Wettenstein, Mitchell and Yu 2026, so that no cover is divided by). A row is in one of three states at a split: o' = 0; o' = 1 and it goes to the
first child; o' = 1 and it goes to the second. So every factor above is a constant of the split chosen among three, written
none + o' (other - none) + o (mine - other): two multiply-adds, no branch and no division per row.

A tree is a list of steps over stacks indexed by level: down to the first child, over to the second, back up. Leaves are no steps: their
values are folded into the constants of the split above. At most MAX_NODES quadrature nodes are taken at once, so that their loop
unrolls and stacks stay in the first-level cache; more are further walks of the same tree, whose contributions add.
"""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .ensemble import TreeEnsemble
from .lanes import LANES, inside, load, splat, store
from .paths import Trace
from .ranks import BATCH, RankedSplits, is_member

MAX_NODES = 4
DOWN, OVER, UP, UP_LEAF, LEAVES = range(5)  # kinds of steps


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
    members: np.ndarray  # (steps,) int64
    first: np.ndarray  # (steps,) int64, the step's constants start at constants[first], three per factor and node
    constants: np.ndarray  # float64
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
    return np.divide(a, b, out=np.zeros_like(b), where=b != 0)


def _edge(a, above, t):
    """One child's edge in the states (mine, other, none): factors down and up, each ``(splits, q)``."""
    above_1, above_0 = (1 - t) * above + t, (1 - t) * above
    absent = (1 - t) * a
    down = ((absent + t) / above_1, absent / above_1, _divide(absent, above_0))
    up_1, up_0, up_above = (1 - a) / (absent + t), _divide(-a + 0 * t, absent), (1 - above) / above_1
    return down, (up_1 - up_above, up_0 - up_above, up_0 - _divide(-above + 0 * t, above_0))


def _factors(trace, splits, values, t, kappa):
    """What each kind of step multiplies: lists of (mine, other, none), each ``(splits, q)``; ``values (2, splits)`` are those of the children
    that are leaves, 0 where they are not."""
    above = trace.above[splits.node]
    absent_above = np.where(above < 0, 1.0, trace.absent[above])[:, None]
    down_1, up_1 = _edge(trace.absent[splits.first][:, None], absent_above, t)
    down_2, up_2 = _edge(trace.absent[splits.second][:, None], absent_above, t)
    as_first = (1, 0, 2)  # the second child's states, in the order of the first's
    mass_1 = [values[0][:, None] * factor for factor in down_1]
    mass_2 = [values[1][:, None] * down_2[state] for state in as_first]
    mass = [a + b for a, b in zip(mass_1, mass_2, strict=True)]
    gain = [kappa * (mass_1[i] * up_1[i] + mass_2[i] * up_2[state]) for i, state in enumerate(as_first)]
    up_1, up_2 = [kappa * factor for factor in up_1], [kappa * factor for factor in up_2]
    return {DOWN: [down_1], OVER: [down_2], UP: [up_1, up_2], UP_LEAF: [up_1, mass, gain], LEAVES: [mass, gain]}


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

    kind, split = np.full(stop[-1] if stop.size else 0, DOWN, np.int8), np.zeros(stop[-1] if stop.size else 0, np.int64)
    numbers = np.arange(walk.size)
    over, both = down + 1 + splits.n_steps[of.first], of.last == UP
    split[down] = numbers
    kind[over[both]], split[over[both]] = OVER, numbers[both]
    up = down + splits.n_steps[of.node] - 1
    kind[up], split[up] = of.last, numbers

    leaf = ensemble.feature < 0
    children = np.stack((of.first, of.second))
    values = np.where(leaf[children], ensemble.value[children, column[walk]], 0.0)
    factors = _factors(trace, of, values, nodes[walk], weights[walk])
    size = np.array([3 * q * len(factors[k]) for k in range(len(factors))], np.int64)[kind]
    first = np.cumsum(size) - size
    constants = np.empty(size.sum())
    for k, group in factors.items():
        steps = np.flatnonzero(kind == k)
        for i, states in enumerate(group):
            one, other, none = (state[split[steps]] for state in states)
            choices = np.stack((none, other - none, one - other), axis=-1)
            at = first[steps] + 3 * q * i
            constants[at[:, None] + np.arange(3 * q)] = choices.reshape(steps.size, 3 * q)

    node = of.node[split]
    above = trace.above[node]
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
        members=ranked.members[node],
        first=first,
        constants=constants,
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
        flat_ranks, flat_phi, constants = ranks.reshape(-1), phi.reshape(-1), walks.constants
        levels = walks.levels[0] + 1
        STACK = Q * BATCH
        S, H = np.empty(levels * STACK), np.empty(levels * STACK)  # per level: products above, sums below; (levels, Q, BATCH)
        H_first = np.empty(levels * STACK)  # sums below the first child, while the second's are made
        bits = np.empty(levels * BATCH)  # per level: o of the edge into the walk's current node there
        bits[:BATCH] = 1.0
        S[:STACK] = 1.0
        gained = np.empty(n_used * BATCH)
        batch = np.zeros((n_used + 1) * BATCH, ranks.dtype)  # one row more, for membership in a category set
        for row in range(0, n, BATCH):
            for j in range(n_used):
                batch[j * BATCH : (j + 1) * BATCH] = flat_ranks[j * n + row : j * n + row + BATCH]
            gained[:] = 0.0
            for w in range(walks.start.size):
                for s in range(walks.start[w], walks.stop[w]):
                    kind, j, c = walks.kind[s], walks.feature[s], walks.first[s]
                    here = walks.level[s] * STACK
                    below = here + STACK
                    o_above = walks.above[s] * BATCH
                    o_below = (walks.level[s] + 1) * BATCH
                    gain = j * BATCH
                    if kind in (DOWN, LEAVES):
                        compared, lower, span = j * BATCH, walks.lower[s], walks.span[s]
                        if walks.members[s] >= 0:
                            compared = n_used * BATCH
                            for i in range(BATCH):
                                batch[compared + i] = is_member(walks.words, walks.members[s], np.int64(batch[gain + i]))
                    if kind == DOWN:
                        for i in range(0, BATCH, LANES):
                            above = load(bits, o_above + i)
                            o = above * inside(batch, compared + i, lower, span)
                            store(bits, o_below + i, o)
                            for q in range(Q):
                                k = c + 3 * q
                                down = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                store(S, below + q * BATCH + i, load(S, here + q * BATCH + i) * down)
                    elif kind == OVER:
                        for i in range(0, BATCH, LANES):
                            above = load(bits, o_above + i)
                            o = above - load(bits, o_below + i)
                            store(bits, o_below + i, o)
                            for q in range(Q):
                                k, at = c + 3 * q, q * BATCH + i
                                down = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                store(H_first, here + at, load(H, below + at))
                                store(S, below + at, load(S, here + at) * down)
                    elif kind == UP:
                        for i in range(0, BATCH, LANES):
                            above, o_second = load(bits, o_above + i), load(bits, o_below + i)
                            o = above - o_second
                            total = load(gained, gain + i)
                            for q in range(Q):
                                k, at = c + 3 * q, q * BATCH + i
                                first, second = load(H_first, here + at), load(H, below + at)
                                up = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                total = total + first * up
                                k += 3 * Q
                                up = splat(constants[k]) + above * splat(constants[k + 1]) + o_second * splat(constants[k + 2])
                                total = total + second * up
                                store(H, here + at, first + second)
                            store(gained, gain + i, total)
                    elif kind == UP_LEAF:
                        for i in range(0, BATCH, LANES):
                            above, o = load(bits, o_above + i), load(bits, o_below + i)
                            total = load(gained, gain + i)
                            for q in range(Q):
                                k, at = c + 3 * q, q * BATCH + i
                                product, first = load(S, here + at), load(H, below + at)
                                up = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                total = total + first * up
                                k += 3 * Q
                                mass = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                store(H, here + at, first + product * mass)
                                k += 3 * Q
                                leaf = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                total = total + product * leaf
                            store(gained, gain + i, total)
                    else:
                        for i in range(0, BATCH, LANES):
                            above = load(bits, o_above + i)
                            o = above * inside(batch, compared + i, lower, span)
                            total = load(gained, gain + i)
                            for q in range(Q):
                                k, at = c + 3 * q, q * BATCH + i
                                product = load(S, here + at)
                                mass = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                store(H, here + at, product * mass)
                                k += 3 * Q
                                leaf = splat(constants[k]) + above * splat(constants[k + 1]) + o * splat(constants[k + 2])
                                total = total + product * leaf
                            store(gained, gain + i, total)
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
