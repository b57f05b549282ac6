"""Trees as lists of steps for the path-dependent kernel, with everything independent of the row in constants.

A split is two steps, down to its children and up again; a split with two leaves is a single step, since leaves are constants of the split above. A
split of a player that was split on above has steps of a second form, with more constants (see ``quadrature``).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..arrays.ordering import group_starts
from ..jit.decorator import jit
from ..trees.binning import BinnedSplits, child_intervals
from .games import Game, Points

MAX_NODES = 4  # quadrature nodes in one walk
STEP_COST = 2  # cost of a step, in nodes
SMALL_SHARE = 0.02  # share of the time; a kernel for one more number of nodes takes seconds to compile
NO_FACTOR = 1e-150  # below it, 1 / x**2 would soon overflow, and such branches have practically no training weight
# Kinds of steps; adding WALK_AGAIN gives the kind for a player that was split on above; WALK_COMPARING ones compare bins.
WALK_DOWN, WALK_UP, WALK_UP_LEAF, WALK_LEAVES, WALK_DOWN_AGAIN, WALK_UP_AGAIN, WALK_UP_LEAF_AGAIN, WALK_LEAVES_AGAIN = range(8)
WALK_AGAIN = WALK_DOWN_AGAIN - WALK_DOWN
WALK_COMPARING = (WALK_DOWN, WALK_LEAVES, WALK_DOWN_AGAIN, WALK_LEAVES_AGAIN)
# Columns of Walks.steps: the kind; the place of the split's numbers on the stacks, twice its level, plus one for a second child; the place of the
# edge whose bit is o' (0, where all bits are 1, if none); the bins that go to the first child, see BinnedSplits, with members -1 if the step compares
# nothing; the row of phi of the split's player; and the start of the step's constants.
STEP_KIND, STEP_PLACE, STEP_FEATURE, STEP_ABOVE, STEP_LOWER, STEP_SPAN, STEP_MEMBERS, STEP_GAIN, STEP_CONSTANTS = range(9)


class Walks(NamedTuple):
    """Walks with the same number q of quadrature nodes; a walk is one tree at up to MAX_NODES of them."""

    start: np.ndarray  # (walks,) int64, walk w is steps start[w]:stop[w]
    stop: np.ndarray  # (walks,) int64
    tree: np.ndarray  # (walks,) int32, the model's
    output: np.ndarray  # (walks,) int32, the first output the tree adds to
    nodes: np.ndarray  # (walks, q) float64, probabilities of presence of the first kind of players, see Game.presence
    weights: np.ndarray  # (walks, q) float64
    width: np.ndarray  # (1,) int64, numbers in a leaf: one, or one for every output
    levels: np.ndarray  # (1,) int64, most levels of splits in a walk
    steps: np.ndarray  # (steps, 9) int32
    constants: np.ndarray  # float64
    words: np.ndarray  # uint32

    def of_tree(self, tree: int) -> "Walks":
        """Select the walks of one of the model's trees, which are contiguous.

        Parameters
        ----------
        tree : int
            the model's; walks have to be in ascending order of trees

        Returns
        -------
        Walks
            with all steps and constants, of which these walks are a part
        """
        mine = slice(*np.searchsorted(self.tree, (tree, tree + 1)))
        return self._replace(**{name: getattr(self, name)[mine] for name in ("start", "stop", "tree", "output", "nodes", "weights")})


class WalkTables(NamedTuple):
    """Walks grouped by their number of quadrature nodes, from one to MAX_NODES."""

    one: Walks
    two: Walks
    three: Walks
    four: Walks

    def of_tree(self, tree: int) -> "WalkTables":
        """Select the walks of one of the model's trees, as ``Walks.of_tree`` does."""
        return WalkTables(*(some.of_tree(tree) for some in self))


class Splits(NamedTuple):
    """The ensemble's splits, tree by tree in preorder, with children in the order of the walk."""

    node: np.ndarray  # (splits,) int32
    start: np.ndarray  # (trees + 1,) int64, tree t's splits are start[t]:start[t + 1]
    first: np.ndarray  # (splits,) int32, the left child, or the right one where only the left is a leaf
    second: np.ndarray  # (splits,) int32
    last: np.ndarray  # (splits,) int32, kind of the split's last step: WALK_LEAVES, WALK_UP_LEAF or WALK_UP
    position: np.ndarray  # (nodes,) int64, of the node's first step among its tree's
    n_steps: np.ndarray  # (nodes,) int64, steps of the node and all below


@jit
def _place(order: np.ndarray, first: np.ndarray, second: np.ndarray, own: np.ndarray, n_steps: np.ndarray, position: np.ndarray) -> None:
    """Count the steps of every subtree bottom-up, then find every node's first step top-down.

    ``order``, ``first``, ``second (nodes,)`` nodes; ``own (nodes,) int64`` steps of the node itself; ``n_steps``, ``position (nodes,) int64``
    are overwritten, see Splits.
    """
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        if own[v] > 0:
            n_steps[v] = own[v] + n_steps[first[v]] + n_steps[second[v]]
    for v in order:
        if own[v] > 0:
            position[first[v]] = position[v] + 1
            position[second[v]] = position[v] + 1 + n_steps[first[v]]


def order_splits(game: Game) -> Splits:
    """Order the splits of a game, and the children of each."""
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


def find_places(game: Game, splits: Splits) -> np.ndarray:
    """Return each node's place on a walk's stacks: twice its level, plus one for a second child."""
    second_child = np.zeros(game.node.size, bool)
    second_child[splits.second] = True
    return 2 * game.trace.level + second_child


class Steps(NamedTuple):
    """Trees as steps, in the layout common to all kernels that walk them."""

    start: np.ndarray  # (walks,) int64, walk w is steps start[w]:stop[w]
    stop: np.ndarray  # (walks,) int64
    levels: np.ndarray  # (1,) int64, most levels of splits in a walk
    walk: np.ndarray  # (splits,) int64, the walk of every split, walks end to end
    node: np.ndarray  # (splits,) int32
    first: np.ndarray  # (splits,) int32, see Splits
    second: np.ndarray  # (splits,) int32
    split: np.ndarray  # (steps,) int64, the split of each step
    columns: np.ndarray  # (steps, 6) int32, from STEP_KIND to STEP_SPAN


def lay_out_steps(game: Game, splits: Splits, binned: BinnedSplits, trees: np.ndarray) -> Steps:
    """Lay out trees as steps, one tree after the other."""
    ensemble, trace = game.ensemble, game.trace
    n_splits = np.diff(splits.start)[trees]
    walk = np.repeat(np.arange(trees.size), n_splits)
    mine = np.arange(walk.size) - (np.cumsum(n_splits) - n_splits)[walk] + splits.start[trees[walk]]
    node, first, second = splits.node[mine], splits.first[mine], splits.second[mine]
    n_steps = splits.n_steps[ensemble.root[trees]]
    stop = np.cumsum(n_steps)
    down = (stop - n_steps)[walk] + splits.position[node]
    last = down + splits.n_steps[node] - 1
    kind, split = np.full(n_steps.sum(), WALK_DOWN, np.int32), np.zeros(n_steps.sum(), np.int64)
    split[down] = split[last] = np.arange(walk.size)
    kind[last] = splits.last[mine]

    place, above = find_places(game, splits), trace.above[node]
    lower, span = child_intervals(binned, node, first == ensemble.left[node])
    of_splits = np.stack((place[node], binned.feature[node], np.where(above < 0, 0, place[above]), lower, span), axis=1)
    return Steps(
        start=stop - n_steps,
        stop=stop,
        levels=np.array([trace.level[node].max(initial=-1) + 1], np.int64),
        walk=walk,
        node=node,
        first=first,
        second=second,
        split=split,
        columns=narrow(np.column_stack((kind + WALK_AGAIN * (above >= 0)[split], of_splits[split]))),
    )


def _divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide, with 0 where b is 0: in a branch without training weight the product S is 0 already."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape)), where=b != 0)


def _block(kind: int, game: Game, triples: np.ndarray, values: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Make the constants of one kind of step, ``(splits, m) float64``."""
    node, first, second = triples
    above = game.trace.above[node]
    a_above = np.where(above < 0, 1.0, game.trace.absent[above])[:, None]
    a, a_second = game.trace.absent[first][:, None], game.trace.absent[second][:, None]
    factor = (1 - t) * a_above + t  # F' where o' = 1
    factor = np.where(factor < NO_FACTOR, 0.0, factor)
    # At t = 0 the factor of a branch without training weight vanishes; its share still has the limit o, and its phi is counted above.
    none, other = _divide(a, a_above) + 0 * t, _divide((1 - t) * a, factor)
    none_second, other_second = _divide(a_second, a_above) + 0 * t, _divide((1 - t) * a_second, factor)
    gain, weight = np.where(factor > 0, _divide(t, factor), 1.0), _divide(np.ones_like(t), factor**2)
    leaf = values[1]
    step = values[0] - leaf  # D where both children are leaves

    def beside(*parts: np.ndarray) -> np.ndarray:
        """Concatenate numbers that are read together along the last axis."""
        stacked = np.stack(np.broadcast_arrays(*parts), axis=-1)
        return stacked.reshape(len(t), math.prod(stacked.shape[1:]))

    def joined(*blocks: np.ndarray) -> np.ndarray:
        return np.concatenate(blocks, axis=1)

    def sums(constant: np.ndarray, *slopes: np.ndarray) -> np.ndarray:
        """Return the sum below two leaves, for every leaf number and node: the constant part, then that of each bit."""
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
    """A tree of the game with some of its points."""

    tree: int
    points: Points


def _lay_out(game: Game, splits: Splits, walks: list[_Walk], q: int) -> Walks:
    """Lay out trees as walks with q points each."""
    ensemble = game.ensemble
    tree = np.array([walk.tree for walk in walks], np.int64)
    steps = lay_out_steps(game, splits, game.splits, tree)
    kind, split = steps.columns[:, STEP_KIND], steps.split
    triples = np.stack((steps.node, steps.first, steps.second))
    values = np.where((ensemble.feature < 0)[triples[1:]][:, :, None], ensemble.value[triples[1:]], 0.0)
    nodes = np.array([walk.points.nodes for walk in walks])[steps.walk]
    t = nodes[np.arange(len(nodes)), :, game.presence[steps.node]]
    blocks = []
    size = np.zeros(kind.size, np.int64)
    for k in np.unique(kind).tolist():
        mine = np.flatnonzero(kind == k)
        part = split[mine]
        blocks.append((mine, _block(k, game, triples[:, part], values[:, part], t[part])))
        size[mine] = blocks[-1][1].shape[1]
    first = np.cumsum(size) - size
    constants = np.empty(size.sum())
    for mine, block in blocks:
        constants[first[mine][:, None] + np.arange(block.shape[1])] = block

    node = steps.node[split]
    members = np.where(np.isin(kind, WALK_COMPARING), game.splits.members[node], -1)
    return Walks(
        start=steps.start,
        stop=steps.stop,
        tree=game.source[tree],
        output=ensemble.output[tree],
        nodes=np.array([walk.points.nodes[:, 0] for walk in walks]).reshape(-1, q),
        weights=np.array([walk.points.weights for walk in walks]).reshape(-1, q),
        width=np.array([ensemble.value.shape[1]], np.int64),
        levels=steps.levels,
        steps=narrow(np.column_stack((steps.columns, members, game.gain[node], first))),
        constants=constants,
        words=game.splits.words,
    )


def _no_walks(q: int, width: int, words: np.ndarray) -> Walks:
    """Make the tables of no walks, which ``_lay_out`` would make."""
    offsets, numbers = np.zeros(0, np.int64), np.zeros(0, np.int32)
    nodes, constants = np.zeros((0, q)), np.zeros(0)
    steps = np.zeros((0, STEP_CONSTANTS + 1), np.int32)
    return Walks(offsets, offsets, numbers, numbers, nodes, nodes, np.array([width], np.int64), np.zeros(1, np.int64), steps, constants, words)


def no_walk_tables(width: int, words: np.ndarray) -> WalkTables:
    """Make the tables of no walks.

    Parameters
    ----------
    width : int
        numbers in a leaf of the model
    words : uint32, sets of bins, see BinnedSplits
    """
    return WalkTables(*(_no_walks(q, width, words) for q in range(1, MAX_NODES + 1)))


def _parts(points: Points) -> list[Points]:
    """Cut points into parts of at most MAX_NODES."""
    return [Points(points.nodes[i : i + MAX_NODES], points.weights[i : i + MAX_NODES]) for i in range(0, points.weights.size, MAX_NODES)]


def _grow(points: Points, q: int) -> Points:
    """Pad points to q with weight 0."""
    more = q - points.weights.size
    return Points(np.concatenate((points.nodes, np.full((more, points.nodes.shape[1]), 0.5))), np.concatenate((points.weights, np.zeros(more))))


def merge_sizes(cost: np.ndarray) -> np.ndarray:
    """Choose the number of nodes that walks of each number are padded to, ``(MAX_NODES + 1,)``.

    ``cost (MAX_NODES + 1,)`` is the total cost of walks by number of nodes. Walks too few to be worth compiling a kernel take more nodes.
    """
    sizes = np.arange(cost.size)
    for q in np.flatnonzero((cost > 0) & (cost < SMALL_SHARE * cost.sum())).tolist():
        larger = np.flatnonzero(cost[q + 1 :])
        if larger.size:
            sizes[q] = q + 1 + larger[0]
    for i in range(sizes.size - 1, 0, -1):  # the sizes that they join may have joined others
        sizes[i] = sizes[sizes[i]]
    return sizes


def lay_out_walks(game: Game, trees: Iterable[int]) -> WalkTables:
    """Lay out trees as walks, grouped by the number of quadrature nodes.

    Parameters
    ----------
    trees : iterable of int
        trees of the game; walks keep their order
    """
    walks, width = [_Walk(tree, part) for tree in trees for part in _parts(game.points[tree])], game.ensemble.value.shape[1]
    if not walks:
        return no_walk_tables(width, game.splits.words)
    splits = order_splits(game)
    cost = np.zeros(MAX_NODES + 1)
    for walk in walks:
        cost[walk.points.weights.size] += splits.n_steps[game.ensemble.root[walk.tree]] * (walk.points.weights.size + STEP_COST)
    sizes = merge_sizes(cost)
    groups: dict[int, list[_Walk]] = {q: [] for q in range(1, MAX_NODES + 1)}
    for walk in walks:
        q = int(sizes[walk.points.weights.size])
        groups[q].append(_Walk(walk.tree, _grow(walk.points, q)))
    return WalkTables(*(_lay_out(game, splits, some, q) if some else _no_walks(q, width, game.splits.words) for q, some in groups.items()))
