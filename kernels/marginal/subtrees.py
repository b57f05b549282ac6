"""How a background is asked about: trees cut into subtrees, each with a code that says of a row all that the marginal game needs to know there.

A subtree is a node with all below it; a row's code there says which players it fails on the way to the node and how it compares at the splits below.
A symmetric tree is one subtree (Filom et al. 2024, Alg. 3.12); of other trees, what stays small. A leaf with more players above it than a code may
have bits is a subtree too, but of a kind of which only the codes that occur are kept: see ``patterns``.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..lanes import QUAD
from ..trees.binning import complement
from ..trees.forest import Forest
from ..trees.paths import Trace, count_above, first_splits, trace

MOST_BITS = 12  # of a code that has a table with a row for every value


class Subtrees(NamedTuple):
    """What rows' codes are made of, and what they mean; a subtree's players are its columns."""

    marks: np.ndarray  # (marks, 5) int32, see lookup.LookupTables
    asked: np.ndarray  # (marks,) int32, twice the number of the tree's comparison that a mark makes, and one more where it sets its bit on the left
    start: np.ndarray  # (subtrees + 1,) int64, subtree u's marks are marks[start[u]:start[u + 1]]
    failing: np.ndarray  # (subtrees,) int64, how many of the lowest bits say that a player above fails; they are the first columns
    bits: np.ndarray  # (subtrees,) int64, of a code
    column: np.ndarray  # (subtrees + 1,) int64, subtree u's columns are player[column[u]:column[u + 1]]
    player: np.ndarray  # (columns,) int32
    leaf_start: np.ndarray  # (subtrees + 1,) int64, subtree u's leaves are leaf[leaf_start[u]:leaf_start[u + 1]]
    leaf: np.ndarray  # (leaves,) int32, nodes of the model
    edge_start: np.ndarray  # (leaves + 1,) int64, leaf l's edges below the subtree's node are edges[edge_start[l]:edge_start[l + 1]]
    edges: np.ndarray  # (edges, 3) int32: bit of the comparison, outcome of it that takes the edge, column of the player
    words: np.ndarray  # uint32

    @property
    def size(self) -> int:
        return self.failing.size


class Partitioning(NamedTuple):
    """All subtrees of a model."""

    coded: Subtrees  # whose codes are counted one by one
    deep: Subtrees  # leaves whose codes have more bits


class _Sizes(NamedTuple):
    """What a subtree of every node and all below would need, as upper bounds: a player that is asked for above and below counts twice."""

    bits: np.ndarray  # (nodes,) int64
    columns: np.ndarray  # (nodes,) int64


def _measure(forest: Forest, traced: Trace, player) -> _Sizes:
    ensemble, number = forest.ensemble, forest.comparisons.number.tolist()
    left, right, who = ensemble.left.tolist(), ensemble.right.tolist(), player.tolist()
    players, asked = [0] * player.size, [0] * player.size  # sets, as bits of integers, of those from a node down
    for v in traced.order[::-1].tolist():
        if left[v] >= 0:
            players[v] = players[left[v]] | players[right[v]] | 1 << who[v]
            asked[v] = asked[left[v]] | asked[right[v]] | 1 << number[v]
    n_above = count_above(ensemble, traced, first_splits(ensemble, traced))
    return _Sizes(n_above + [some.bit_count() for some in asked], n_above + [some.bit_count() for some in players])


@jit
def _choose(order, left, right, bits, columns, most_bits, whole):
    """Set ``whole`` where everything from a node down is best looked up together, by entries of tables."""
    cost = np.empty(order.size)
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        apart = np.inf if left[v] < 0 else cost[left[v]] + cost[right[v]]
        together = 2.0 ** bits[v] * (columns[v] + QUAD) if bits[v] <= most_bits else np.inf
        whole[v] = together <= apart and bits[v] <= most_bits
        cost[v] = min(together, apart)


class _Layout:
    """Subtrees as they are written down."""

    def __init__(self, forest: Forest, player):
        ensemble = forest.ensemble
        self.forest, self.player = forest, player.tolist()
        parent = np.full(player.size, -1, np.int64)
        inner = np.flatnonzero(ensemble.feature >= 0)
        parent[ensemble.left[inner]] = parent[ensemble.right[inner]] = inner
        self.parent, self.left, self.right = parent.tolist(), ensemble.left.tolist(), ensemble.right.tolist()
        self.number = forest.comparisons.number.tolist()
        splits = forest.splits
        self.compared = np.stack((splits.feature, splits.lower, splits.span, splits.members), axis=1).tolist()
        self.marks: list[tuple[int, ...]] = []
        self.asked: list[int] = []
        self.edges: list[tuple[int, int, int]] = []
        self.columns: list[list[int]] = []
        self.leaves: list[list[int]] = []
        self.n_marks: list[int] = []
        self.bits: list[int] = []
        self.n_edges: list[int] = []
        self.failing: list[int] = []

    def _mark(self, v: int, left: bool, bit: int) -> None:
        """Set a bit where the split at v sends a row to the left, or where it does not."""
        feature, lower, span, members = self.compared[v]
        if not left:
            lower, span = complement(lower, span)
        self.marks.append((feature, lower, span, members, bit))
        self.asked.append(2 * self.number[v] + left)

    def add(self, v: int) -> None:
        """Write down the subtree of v and all below."""
        column: dict[int, int] = {}
        bits: dict[int, int] = {}
        n_marks = len(self.marks)
        way = [v]
        while self.parent[way[-1]] >= 0:
            way.append(self.parent[way[-1]])
        for above, child in zip(way[:0:-1], way[-2::-1], strict=True):
            who = column.setdefault(self.player[above], len(column))
            self._mark(above, self.left[above] != child, who)
        failing = len(column)
        leaves: list[int] = []
        pending: list[tuple[int, tuple[tuple[int, int, int], ...]]] = [(v, ())]
        while pending:
            node, edges = pending.pop()
            if self.left[node] < 0:
                leaves.append(node)
                self.edges.extend(edges)
                self.n_edges.append(len(edges))
                continue
            number = self.number[node]
            if number not in bits:
                bits[number] = failing + len(bits)
                self._mark(node, True, bits[number])
            who = column.setdefault(self.player[node], len(column))
            for outcome, child in ((1, self.left[node]), (0, self.right[node])):
                pending.append((child, (*edges, (bits[number], outcome, who))))
        self.columns.append(list(column))
        self.leaves.append(leaves)
        self.n_marks.append(len(self.marks) - n_marks)
        self.bits.append(failing + len(bits))
        self.failing.append(failing)

    def subtrees(self) -> Subtrees:
        def ends(sizes):
            return np.cumsum([0, *sizes])

        return Subtrees(
            marks=np.array(self.marks, np.int32).reshape(-1, 5),
            asked=np.array(self.asked, np.int32),
            start=ends(self.n_marks),
            failing=np.array(self.failing, np.int64),
            bits=np.array(self.bits, np.int64),
            column=ends(map(len, self.columns)),
            player=np.array([who for column in self.columns for who in column], np.int32),
            leaf_start=ends(map(len, self.leaves)),
            leaf=np.array([leaf for leaves in self.leaves for leaf in leaves], np.int32),
            edge_start=ends(self.n_edges),
            edges=np.array(self.edges, np.int32).reshape(-1, 3),
            words=self.forest.splits.words,
        )


class Partitioner:
    """Cuts a model's trees, as finely as is asked; ``player (nodes,) int32`` plays at a split, -1 at leaves."""

    def __init__(self, forest: Forest, player):
        self._forest, self._player = forest, player
        self._trace = trace(forest.ensemble, player, int(player.max(initial=-1)) + 1)
        self._sizes = _measure(forest, self._trace, player)

    def partition(self, most_bits: int) -> Partitioning:
        """Subtrees with codes of at most so many bits, and the leaves with more."""
        ensemble = self._forest.ensemble
        whole = np.zeros(self._player.size, bool)
        _choose(self._trace.order, ensemble.left, ensemble.right, *self._sizes, most_bits, whole)
        coded, deep = _Layout(self._forest, self._player), _Layout(self._forest, self._player)
        pending = ensemble.root[::-1].tolist()
        while pending:
            v = pending.pop()
            if whole[v]:
                coded.add(v)
            elif ensemble.left[v] < 0:
                deep.add(v)
            else:
                pending += [int(ensemble.right[v]), int(ensemble.left[v])]
        return Partitioning(coded.subtrees(), deep.subtrees())
