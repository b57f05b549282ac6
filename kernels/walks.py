"""Trees as steps: what the kernel of the path-dependent game walks, with everything that does not depend on the row folded into constants.

A split whose children are splits is three steps: down to its first child, over to its second, up. One with a leaf needs no step over, one with two
leaves is a single step: leaves are constants of the split above them. A split whose feature was split on above takes its steps in a second form,
which needs more constants (see ``semivalue`` for what they are).
"""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .ensemble import TreeEnsemble
from .paths import Trace
from .ranks import RankedSplits

MAX_NODES = 4
# Kinds of steps.
OVER, DOWN, UP, UP_LEAF, LEAVES, DOWN_AGAIN, UP_AGAIN, UP_LEAF_AGAIN, LEAVES_AGAIN = range(9)
AGAIN = DOWN_AGAIN - DOWN
COMPARING = (DOWN, LEAVES, DOWN_AGAIN, LEAVES_AGAIN)
# A step's numbers. PLACE is where the split's sum goes: twice its level, and one more if it is its parent's second child. ABOVE is the level of the
# edge whose bit is o' (0, where all bits are 1, if there is none). LOWER, SPAN and MEMBERS say which ranks go to the first child, see
# RankedSplits; MEMBERS is -1 where the step compares nothing. FIRST is where the step's constants start.
KIND, PLACE, FEATURE, ABOVE, LOWER, SPAN, MEMBERS, FIRST = range(8)


class Walks(NamedTuple):
    """Walks with the same number q of quadrature nodes; a walk is one tree, one output, at most MAX_NODES nodes."""

    start: np.ndarray  # (walks,) int64, walk w is steps start[w]:stop[w]
    stop: np.ndarray  # (walks,) int64
    output: np.ndarray  # (walks,) int32, ascending
    levels: np.ndarray  # (1,) int64, most levels of splits in a walk
    steps: np.ndarray  # (steps, 8) int32
    constants: np.ndarray  # float64
    nodes: np.ndarray  # (walks, q) float64
    weights: np.ndarray  # (walks, q) float64
    words: np.ndarray  # uint32


class _Splits(NamedTuple):
    """The ensemble's splits, tree by tree in preorder, their children in the order in which a walk takes them."""

    node: np.ndarray  # (splits,) int32
    start: np.ndarray  # (trees + 1,) int64, tree t's splits are start[t]:start[t + 1]
    first: np.ndarray  # (splits,) int32, the left child, or the right one where only the left is a leaf
    second: np.ndarray  # (splits,) int32
    last: np.ndarray  # (splits,) int32, kind of the split's last step: LEAVES, UP_LEAF or UP
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
            position[second[v]] = position[v] + 1 + n_steps[first[v]] + (own[v] == 3)


def _order_splits(ensemble, trace):
    leaf = ensemble.feature < 0
    node = trace.order[~leaf[trace.order]]
    swap = leaf[ensemble.left[node]] & ~leaf[ensemble.right[node]]
    first = np.where(swap, ensemble.right[node], ensemble.left[node])
    second = np.where(swap, ensemble.left[node], ensemble.right[node])
    last = np.where(leaf[first], LEAVES, np.where(leaf[second], UP_LEAF, UP)).astype(np.int32)
    children = np.zeros((2, leaf.size), np.int64)
    children[:, node] = first, second
    own, n_steps, position = (np.zeros(leaf.size, np.int64) for _ in range(3))
    own[node] = np.choose(last - UP, (3, 2, 1))
    _place(trace.order, children[0], children[1], own, n_steps, position)
    start = np.concatenate(([0], np.cumsum(np.bincount(trace.tree[node], minlength=ensemble.root.size))))
    return _Splits(node, start, first, second, last, position, n_steps)


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
    # At t = 0 the factor of a branch without training weight vanishes; its share has the limit o all the same, and its phi is counted above.
    none, other = _divide(a, a_above) + 0 * t, _divide((1 - t) * a, factor)
    gain, weight = np.where(factor > 0, _divide(t, factor), 1.0), _divide(np.ones_like(t), factor**2)
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

    steps = np.zeros((stop[-1] if stop.size else 0, 8), np.int32)
    kind, split = np.full(steps.shape[0], DOWN, np.int32), np.zeros(steps.shape[0], np.int64)
    numbers = np.arange(walk.size)
    split[down] = numbers
    over, both = down + 1 + splits.n_steps[of.first], of.last == UP
    kind[over[both]], split[over[both]] = OVER, numbers[both]
    last = down + splits.n_steps[of.node] - 1
    kind[last], split[last] = of.last, numbers

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
        mine = np.flatnonzero(kind == k)
        constants[first[mine][:, None] + np.arange(block.shape[1])] = block[split[mine]]

    second_child = np.zeros(leaf.size, bool)
    second_child[of.second] = True
    swapped = of.first[split] != ensemble.left[node]
    steps[:, KIND] = kind
    steps[:, PLACE] = 2 * trace.level[node] + second_child[node]
    steps[:, FEATURE] = ranked.feature[node]
    steps[:, ABOVE] = np.where(above < 0, 0, trace.level[above])
    steps[:, LOWER] = np.where(swapped, ranked.lower[node] + ranked.span[node] + 1, ranked.lower[node])
    steps[:, SPAN] = np.where(swapped, -ranked.span[node] - 2, ranked.span[node])
    steps[:, MEMBERS] = np.where(np.isin(kind, COMPARING), ranked.members[node], -1)
    steps[:, FIRST] = first
    return Walks(
        start=stop - n_steps,
        stop=stop,
        output=np.array([walk.output for walk in walks], np.int32),
        levels=np.array([trace.level[of.node].max(initial=-1) + 1], np.int64),
        steps=steps,
        constants=constants,
        nodes=nodes,
        weights=weights,
        words=ranked.words,
    )


def lay_out_walks(ensemble: TreeEnsemble, ranked: RankedSplits, trace: Trace, quadrature) -> list[Walks]:
    """Write every tree as walks, by their number of quadrature nodes from 1 to MAX_NODES.

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
    return [_lay_out(ensemble, ranked, trace, splits, walks, q) for q, walks in groups.items()]
