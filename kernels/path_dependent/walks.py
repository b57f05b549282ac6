"""Trees as steps: what the kernel of the path-dependent game walks, with everything that does not depend on the row folded into constants.

A split is two steps, down to its children and up from them; one with two leaves is a single step, since leaves are constants of the split above
them. A split whose feature was split on above takes its steps in a second form, which needs more constants (see ``semivalue`` for what they
are).
"""

import math
from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..ordering import group_starts
from ..trees.binning import child_intervals
from .games import Game, Points

MAX_NODES = 4
STEP_COST = 2  # of a step, in nodes
SMALL_SHARE = 0.02  # of the time; a kernel for one more number of nodes takes seconds to compile
# Kinds of steps; WALK_AGAIN leads from a kind to that of a player that was split on above, and WALK_COMPARING look at bins.
WALK_DOWN, WALK_UP, WALK_UP_LEAF, WALK_LEAVES, WALK_DOWN_AGAIN, WALK_UP_AGAIN, WALK_UP_LEAF_AGAIN, WALK_LEAVES_AGAIN = range(8)
WALK_AGAIN = WALK_DOWN_AGAIN - WALK_DOWN
WALK_COMPARING = (WALK_DOWN, WALK_LEAVES, WALK_DOWN_AGAIN, WALK_LEAVES_AGAIN)
# Columns of Walks.steps: the kind; the place where the split's numbers are, twice its level, and one more if it is its parent's second child; the
# place of the edge whose bit is o' (0, where all bits are 1, if there is none); which bins go to the first child, see BinnedSplits, with members -1
# where the step compares nothing; the row of phi in which the split's player gains; and where the step's constants start.
STEP_KIND, STEP_PLACE, STEP_FEATURE, STEP_ABOVE, STEP_LOWER, STEP_SPAN, STEP_MEMBERS, STEP_GAIN, STEP_CONSTANTS = range(9)


class Walks(NamedTuple):
    """Walks with the same number q of quadrature nodes; a walk is one tree at no more than MAX_NODES of them."""

    start: np.ndarray  # (walks,) int64, walk w is steps start[w]:stop[w]
    stop: np.ndarray  # (walks,) int64
    tree: np.ndarray  # (walks,) int32, the model's
    output: np.ndarray  # (walks,) int32, the first output the tree adds to
    weights: np.ndarray  # (walks, q) float64
    width: np.ndarray  # (1,) int64, numbers in a leaf: one, or one for every output
    levels: np.ndarray  # (1,) int64, most levels of splits in a walk
    steps: np.ndarray  # (steps, 9) int32
    constants: np.ndarray  # float64
    words: np.ndarray  # uint32

    def of_tree(self, tree: int) -> "Walks":
        """The walks of one of the model's trees, where they lie together."""
        mine = slice(*np.searchsorted(self.tree, (tree, tree + 1)))
        return self._replace(**{name: getattr(self, name)[mine] for name in ("start", "stop", "tree", "output", "weights")})


class Splits(NamedTuple):
    """The ensemble's splits, tree by tree in preorder, their children in the order in which a walk takes them."""

    node: np.ndarray  # (splits,) int32
    start: np.ndarray  # (trees + 1,) int64, tree t's splits are start[t]:start[t + 1]
    first: np.ndarray  # (splits,) int32, the left child, or the right one where only the left is a leaf
    second: np.ndarray  # (splits,) int32
    last: np.ndarray  # (splits,) int32, kind of the split's last step: WALK_LEAVES, WALK_UP_LEAF or WALK_UP
    position: np.ndarray  # (nodes,) int64, of the node's first step among its tree's
    n_steps: np.ndarray  # (nodes,) int64, steps of the node and all below


@jit
def _place(order, first, second, own, n_steps, position):
    """Steps of every subtree, children before parents; then the place of every node's first step, parents before children."""
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        if own[v] > 0:
            n_steps[v] = own[v] + n_steps[first[v]] + n_steps[second[v]]
    for v in order:
        if own[v] > 0:
            position[first[v]] = position[v] + 1
            position[second[v]] = position[v] + 1 + n_steps[first[v]]


def order_splits(game: Game) -> Splits:
    ensemble, trace = game.ensemble, game.trace
    leaf = ensemble.feature < 0
    node = trace.order[~leaf[trace.order]]
    swap = leaf[ensemble.left[node]] & ~leaf[ensemble.right[node]]
    first = np.where(swap, ensemble.right[node], ensemble.left[node])
    second = np.where(swap, ensemble.left[node], ensemble.right[node])
    last = np.where(leaf[first], WALK_LEAVES, np.where(leaf[second], WALK_UP_LEAF, WALK_UP)).astype(np.int32)
    children = np.zeros((2, leaf.size), np.int64)
    children[:, node] = first, second
    own, n_steps, position = (np.zeros(leaf.size, np.int64) for _ in range(3))
    own[node] = np.where(last == WALK_LEAVES, 1, 2)
    _place(trace.order, children[0], children[1], own, n_steps, position)
    start = group_starts(trace.tree[node], ensemble.root.size)
    return Splits(node, start, first, second, last, position, n_steps)


def _divide(a, b):
    """a / b, and 0 where b is 0: a branch without training weight, whose product S is 0 already."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)


def _block(kind, game, splits, values, t):
    """Constants of one kind of step, ``(splits, m)``.

    ``values (2, splits, width)`` are those of the children that are leaves, 0 where they are not; ``t (splits, q)`` the probabilities of the
    splits' players.
    """
    above = game.trace.above[splits.node]
    a_above = np.where(above < 0, 1.0, game.trace.absent[above])[:, None]
    a, a_second = (game.trace.absent[child][:, None] for child in (splits.first, splits.second))
    factor = (1 - t) * a_above + t  # F' where o' = 1
    # At t = 0 the factor of a branch without training weight vanishes; its share has the limit o all the same, and its phi is counted above.
    none, other = _divide(a, a_above) + 0 * t, _divide((1 - t) * a, factor)
    none_second, other_second = _divide(a_second, a_above) + 0 * t, _divide((1 - t) * a_second, factor)
    gain, weight = np.where(factor > 0, _divide(t, factor), 1.0), _divide(np.ones_like(t), factor**2)
    leaf = values[1]
    step = values[0] - leaf  # D where both children are leaves

    def beside(*parts):
        """Numbers that are read together, next to each other."""
        stacked = np.stack(np.broadcast_arrays(*parts), axis=-1)
        return stacked.reshape(len(t), math.prod(stacked.shape[1:]))

    def joined(*blocks):
        return np.concatenate(blocks, axis=1)

    def sums(constant, *slopes):
        """Of two leaves the sum below, for every number in a leaf and every node: the constant's share, then that of each bit."""
        return beside(leaf[:, :, None] + constant[:, None] * step[:, :, None], *(slope[:, None] * step[:, :, None] for slope in slopes))

    return {
        WALK_DOWN: lambda: beside(other, other_second, gain),
        WALK_UP: lambda: joined(a, beside(other, gain)),
        WALK_UP_LEAF: lambda: joined(a, beside(other, gain), leaf),
        WALK_LEAVES: lambda: joined(beside(step, a * step), sums(other, gain)),
        WALK_DOWN_AGAIN: lambda: beside(none, other - none, none_second, other_second - none_second, gain),
        WALK_UP_AGAIN: lambda: joined(a_above, a, beside(none, other - none, gain, weight)),
        WALK_UP_LEAF_AGAIN: lambda: joined(a_above, a, beside(none, other - none, gain, weight), leaf),
        WALK_LEAVES_AGAIN: lambda: joined(weight, beside(a_above * step, a * step), sums(none, other - none, gain)),
    }[kind]()


class _Walk(NamedTuple):
    """A tree of the game at some of its points."""

    tree: int
    points: Points


def _lay_out(game: Game, splits: Splits, walks: list[_Walk], q: int) -> Walks:
    ensemble, binned, trace = game.ensemble, game.splits, game.trace
    tree = np.array([walk.tree for walk in walks], np.int64)
    nodes = np.array([walk.points.nodes for walk in walks]).reshape(-1, q, 2)
    n_splits = (splits.start[1:] - splits.start[:-1])[tree]
    walk = np.repeat(np.arange(tree.size), n_splits)
    first_of_walk = np.cumsum(n_splits) - n_splits
    mine = np.arange(walk.size) - first_of_walk[walk] + splits.start[tree[walk]]
    of = splits._replace(node=splits.node[mine], first=splits.first[mine], second=splits.second[mine], last=splits.last[mine])
    n_steps = splits.n_steps[ensemble.root[tree]]
    stop = np.cumsum(n_steps)
    down = (stop - n_steps)[walk] + splits.position[of.node]

    steps = np.zeros((stop[-1] if stop.size else 0, STEP_CONSTANTS + 1), np.int32)
    kind, split = np.full(steps.shape[0], WALK_DOWN, np.int32), np.zeros(steps.shape[0], np.int64)
    numbers = np.arange(walk.size)
    split[down] = numbers
    last = down + splits.n_steps[of.node] - 1
    kind[last], split[last] = of.last, numbers

    leaf = ensemble.feature < 0
    children = np.stack((of.first, of.second))
    values = np.where(leaf[children][:, :, None], ensemble.value[children], 0.0)
    node = of.node[split]
    above = trace.above[node]
    kind[above >= 0] += WALK_AGAIN
    t = np.where(game.own[of.node][:, None], nodes[walk, :, 1], nodes[walk, :, 0])
    blocks = []
    size = np.zeros(kind.size, np.int64)
    for k in range(WALK_LEAVES_AGAIN + 1):
        mine = np.flatnonzero(kind == k)
        part = split[mine]
        these = of._replace(node=of.node[part], first=of.first[part], second=of.second[part])
        blocks.append((mine, _block(k, game, these, values[:, part], t[part])))
        size[mine] = blocks[-1][1].shape[1]
    first = np.cumsum(size) - size
    constants = np.empty(size.sum())
    for mine, block in blocks:
        constants[first[mine][:, None] + np.arange(block.shape[1])] = block

    second_child = np.zeros(leaf.size, bool)
    second_child[of.second] = True
    steps[:, STEP_KIND] = kind
    place = 2 * trace.level + second_child
    steps[:, STEP_PLACE] = place[node]
    steps[:, STEP_FEATURE] = binned.feature[node]
    steps[:, STEP_ABOVE] = np.where(above < 0, 0, place[above])
    steps[:, STEP_LOWER], steps[:, STEP_SPAN] = child_intervals(binned, node, of.first[split] == ensemble.left[node])
    steps[:, STEP_MEMBERS] = np.where(np.isin(kind, WALK_COMPARING), binned.members[node], -1)
    steps[:, STEP_GAIN] = game.gain[node]
    steps[:, STEP_CONSTANTS] = first
    return Walks(
        start=stop - n_steps,
        stop=stop,
        tree=game.source[tree],
        output=ensemble.output[tree],
        weights=np.array([walk.points.weights for walk in walks]).reshape(-1, q),
        width=np.array([ensemble.value.shape[1]], np.int64),
        levels=np.array([trace.level[of.node].max(initial=-1) + 1], np.int64),
        steps=steps,
        constants=constants,
        words=binned.words,
    )


def _parts(points: Points) -> list[Points]:
    """At most MAX_NODES points at a time."""
    return [Points(points.nodes[i : i + MAX_NODES], points.weights[i : i + MAX_NODES]) for i in range(0, points.weights.size, MAX_NODES)]


def _grow(points: Points, q: int) -> Points:
    """As many as q points, the new ones without weight."""
    more = q - points.weights.size
    return Points(np.concatenate((points.nodes, np.full((more, 2), 0.5))), np.concatenate((points.weights, np.zeros(more))))


def _merged(cost):
    """The number of nodes with which walks of each number are made: so few that they are not worth compiling for take some more."""
    sizes = np.arange(cost.size)
    for q in np.flatnonzero((cost > 0) & (cost < SMALL_SHARE * cost.sum())).tolist():
        larger = np.flatnonzero(cost[q + 1 :])
        if larger.size:
            sizes[q] = q + 1 + larger[0]
    for i in range(sizes.size - 1, 0, -1):  # those that they join may have joined others
        sizes[i] = sizes[sizes[i]]
    return sizes


def lay_out_walks(game: Game, trees) -> list[Walks]:
    """Write trees as walks, by their number of quadrature nodes from 1 to MAX_NODES; ``trees`` counts the game's, walks keep their order."""
    splits = order_splits(game)
    walks = [_Walk(tree, part) for tree in trees for part in _parts(game.points[tree])]
    cost = np.zeros(MAX_NODES + 1)
    for walk in walks:
        cost[walk.points.weights.size] += splits.n_steps[game.ensemble.root[walk.tree]] * (walk.points.weights.size + STEP_COST)
    sizes = _merged(cost)
    groups: dict[int, list[_Walk]] = {q: [] for q in range(1, MAX_NODES + 1)}
    for walk in walks:
        q = int(sizes[walk.points.weights.size])
        groups[q].append(_Walk(walk.tree, _grow(walk.points, q)))
    return [_lay_out(game, splits, some, q) for q, some in groups.items()]
