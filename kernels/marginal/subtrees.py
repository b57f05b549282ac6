"""Partition of trees into subtrees, with a row code for each that the marginal game can count.

A subtree is a node with everything below it. A row's code there has a bit for each player of the splits above, set if the row fails it on the way to
the node, and a bit for each distinct comparison below. A symmetric tree is one subtree (Filom et al. 2024, Alg. 3.12); other trees are cut where
codes get short. A single leaf with more players above it than a code may have bits is a deep subtree: only the background codes that occur are kept
(see ``patterns``).
"""

from collections.abc import Iterable
from math import comb
from typing import NamedTuple

import numpy as np

from ..arrays.offsets32 import narrow
from ..jit.decorator import jit
from ..jit.lanes import QUAD
from ..trees.binning import complement
from ..trees.forest import Forest
from ..trees.lookup import padded_width
from ..trees.paths import Trace, count_above, find_parents, first_splits, trace

MOST_BITS = 12  # bits of a code with a full table, at most
WHOLE_BITS = 16  # of one of a whole symmetric tree, whose tables are made in another way, see ``whole_trees``: codes are numbers of 16 bits
# Cost of a table for a row of data, in units of one lookup of QUAD numbers: this much for each bit of the code (measured on AVX-512),
BIT_COST = 0.075
# and this much for each entry, read from memory again for every LOOKUP_ROWS rows; 1/1,024 and 1/16,384 are within a tenth of the best.
ENTRY_COST = 1 / 2048
MANY = 1 << 40  # columns of a table that is not to be
EDGE_BIT, EDGE_OUTCOME, EDGE_PLAYER = range(3)  # columns of LeafPaths.edges


class LeafPaths(NamedTuple):
    """Leaves of subtrees, and the edges from the subtree's node to each leaf."""

    start: np.ndarray  # (subtrees + 1,) int64, subtree u's leaves are node[start[u]:start[u + 1]]
    node: np.ndarray  # (leaves,) int32, nodes of the model
    edge_start: np.ndarray  # (leaves + 1,) int64, leaf l's edges are edges[edge_start[l]:edge_start[l + 1]]
    edges: np.ndarray  # (edges, 3) int32: bit of the comparison, its outcome on this edge, local number of the player


class Subtrees(NamedTuple):
    """Codes of rows at every subtree, and the meaning of their bits."""

    marks: np.ndarray  # (marks, 5) int32, see lookup.LookupTables
    comparison: np.ndarray  # (marks,) int32, twice the number of the tree's comparison, plus one if the bit is set on the left
    start: np.ndarray  # (subtrees + 1,) int64, subtree u's marks are marks[start[u]:start[u + 1]]
    words: np.ndarray  # uint32, category sets
    n_above: np.ndarray  # (subtrees,) int64, players of splits above; they are the subtree's first, and the lowest bits say whether a row fails them
    bits: np.ndarray  # (subtrees,) int64, bits of a code
    player_start: np.ndarray  # (subtrees + 1,) int64, subtree u's players are player[player_start[u]:player_start[u + 1]]
    player: np.ndarray  # int32
    leaves: LeafPaths

    @property
    def size(self) -> int:
        """Number of subtrees."""
        return self.bits.size


class Partitioning(NamedTuple):
    """All subtrees of a model."""

    coded: Subtrees  # subtrees with codes short enough to count all
    deep: Subtrees  # single leaves with longer codes


class _Sizes(NamedTuple):
    """Upper bounds of the size of every node's subtree: a player of splits both above and below counts twice."""

    bits: np.ndarray  # (nodes,) int64
    players: np.ndarray  # (nodes,) int64, or columns, where these are sets of players


def _measure(forest: Forest, traced: Trace, player: np.ndarray) -> _Sizes:
    ensemble, number = forest.ensemble, forest.comparisons.number.tolist()
    left, right, who = ensemble.left.tolist(), ensemble.right.tolist(), player.tolist()
    players, compared = [0] * player.size, [0] * player.size  # sets as bits of integers: players and comparisons at and below each node
    for v in traced.order[::-1].tolist():
        if left[v] >= 0:
            players[v] = players[left[v]] | players[right[v]] | 1 << who[v]
            compared[v] = compared[left[v]] | compared[right[v]] | 1 << number[v]
    n_above = count_above(ensemble, traced, first_splits(ensemble, traced))
    return _Sizes(n_above + [some.bit_count() for some in compared], n_above + [some.bit_count() for some in players])


class Cut(NamedTuple):
    """Where trees are cut, by upper bounds."""

    whole: np.ndarray  # (nodes,) bool, one table for all below a node costs a row no more than tables of its parts
    cost: np.ndarray  # (nodes,) float64, of a row at all tables at and below the node, in lookups; infinite where a leaf needs a longer code
    cells: np.ndarray  # (nodes,) float64, numbers in these tables


@jit
def _choose(order: np.ndarray, left: np.ndarray, right: np.ndarray, sizes: _Sizes, most_bits: int, cut: Cut) -> None:
    """Choose where to cut."""
    bits, players = sizes
    whole, cost, cells = cut
    for i in range(order.size - 1, -1, -1):
        v = order[i]
        apart = np.inf if left[v] < 0 else cost[left[v]] + cost[right[v]]
        lookups = (players[v] + QUAD - 1) // QUAD
        together = lookups + BIT_COST * bits[v] + ENTRY_COST * 2.0 ** bits[v] * (players[v] + QUAD) if bits[v] <= most_bits else np.inf
        whole[v] = together <= apart and bits[v] <= most_bits
        cost[v] = min(together, apart)
        if whole[v]:
            cells[v] = 2.0 ** bits[v] * padded_width(players[v])
        elif left[v] >= 0:
            cells[v] = cells[left[v]] + cells[right[v]]


class _Layout:
    """Builder of the arrays of subtrees."""

    def __init__(self, forest: Forest, player: np.ndarray):
        ensemble = forest.ensemble
        self.forest, self.player = forest, player.tolist()
        self.parent, self.left, self.right = find_parents(ensemble).tolist(), ensemble.left.tolist(), ensemble.right.tolist()
        self.number = forest.comparisons.number.tolist()
        splits = forest.splits
        self.compared = np.stack((splits.feature, splits.lower, splits.span, splits.members), axis=1).tolist()
        self.marks: list[tuple[int, ...]] = []
        self.comparison: list[int] = []
        self.edges: list[tuple[int, int, int]] = []
        self.players: list[list[int]] = []
        self.leaves: list[list[int]] = []
        self.n_marks: list[int] = []
        self.bits: list[int] = []
        self.n_edges: list[int] = []
        self.n_above: list[int] = []

    def _mark(self, v: int, left: bool, bit: int) -> None:
        """Append a mark: the bit set where the split at v sends a row left, or right."""
        feature, lower, span, members = self.compared[v]
        if not left:
            lower, span = complement(lower, span)
        self.marks.append((feature, lower, span, members, bit))
        self.comparison.append(2 * self.number[v] + left)

    def add(self, v: int) -> None:
        """Append the subtree of node v."""
        local: dict[int, int] = {}  # local numbers of players
        bits: dict[int, int] = {}
        n_marks = len(self.marks)
        way = [v]
        while self.parent[way[-1]] >= 0:
            way.append(self.parent[way[-1]])
        for above, child in zip(way[:0:-1], way[-2::-1], strict=True):
            who = local.setdefault(self.player[above], len(local))
            self._mark(above, self.left[above] != child, who)
        n_above = len(local)
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
                bits[number] = n_above + len(bits)
                self._mark(node, True, bits[number])
            who = local.setdefault(self.player[node], len(local))
            for outcome, child in ((1, self.left[node]), (0, self.right[node])):
                pending.append((child, (*edges, (bits[number], outcome, who))))
        self.players.append(list(local))
        self.leaves.append(leaves)
        self.n_marks.append(len(self.marks) - n_marks)
        self.bits.append(n_above + len(bits))
        self.n_above.append(n_above)

    def subtrees(self) -> Subtrees:
        """Return all appended subtrees as arrays."""

        def ends(sizes: Iterable[int]) -> np.ndarray:
            return np.cumsum([0, *sizes])

        return Subtrees(
            marks=narrow(np.array(self.marks, np.int64).reshape(-1, 5)),
            comparison=np.array(self.comparison, np.int32),
            start=ends(self.n_marks),
            words=self.forest.splits.words,
            n_above=np.array(self.n_above, np.int64),
            bits=np.array(self.bits, np.int64),
            player_start=ends(map(len, self.players)),
            player=np.array([player for players in self.players for player in players], np.int32),
            leaves=LeafPaths(
                start=ends(map(len, self.leaves)),
                node=np.array([leaf for leaves in self.leaves for leaf in leaves], np.int32),
                edge_start=ends(self.n_edges),
                edges=np.array(self.edges, np.int32).reshape(-1, 3),
            ),
        )


def _count_sets(n_players: int, order: int) -> int:
    """Return how many sets of up to ``order`` there are of some players, at most MANY."""
    return min(MANY, sum(comb(n_players, size) for size in range(1, order + 1)))


class Partitioner:
    """Partitions a model's trees into subtrees of a given size of code.

    Parameters
    ----------
    forest : Forest
    player : (nodes,) int32
        who plays at a split, -1 at leaves
    order : int
        tables have a column for every set of up to so many players
    """

    def __init__(self, forest: Forest, player: np.ndarray, order: int = 1):
        self._forest, self._player = forest, player
        self._trace = trace(forest.ensemble, player, int(player.max(initial=-1)) + 1)
        bits, players = _measure(forest, self._trace, player)
        columns = np.array([_count_sets(n, order) for n in range(int(players.max(initial=0)) + 1)], np.int64)
        self._sizes = _Sizes(bits, columns[players.astype(np.int64)])

    def _whole_trees(self) -> np.ndarray:
        """Find the roots of symmetric trees with too many comparisons for a table as others have: one on each level, and all leaves below."""
        ensemble, comparisons, traced = self._forest.ensemble, self._forest.comparisons, self._forest.trace
        n_comparisons, inner = np.diff(comparisons.start), ensemble.feature >= 0
        n_leaves = np.bincount(traced.tree[~inner], minlength=n_comparisons.size)
        many = (n_comparisons > MOST_BITS) & (n_comparisons <= WHOLE_BITS) & (n_comparisons == traced.levels)
        number, roots = np.flatnonzero(many & (n_leaves == 1 << np.minimum(n_comparisons, WHOLE_BITS))), list[int]()
        for t in number.tolist():
            mine = inner & (traced.tree == t)
            if np.unique(np.stack((traced.level[mine], comparisons.number[mine])), axis=1).shape[1] == n_comparisons[t]:
                roots.append(int(ensemble.root[t]))
        return np.array(roots, np.int64)

    def cut(self, most_bits: int) -> Cut:
        """Choose where to cut for the lowest cost per row: fewer, larger tables take fewer lookups but more memory.

        Parameters
        ----------
        most_bits : int
            of a code with a table

        Returns
        -------
        Cut
        """
        ensemble, n_nodes = self._forest.ensemble, self._player.size
        found = Cut(np.zeros(n_nodes, bool), np.empty(n_nodes), np.zeros(n_nodes))
        _choose(self._trace.order, ensemble.left, ensemble.right, self._sizes, most_bits, found)
        return found

    def partition(self, most_bits: int, whole_trees: bool = False, trees: np.ndarray | None = None) -> Partitioning:
        """Partition into subtrees with codes of at most this many bits, and leaves that need more.

        Among such partitions, choose one with the lowest cost per row, see ``cut``.

        Parameters
        ----------
        most_bits : int
            from 0, with which every leaf below a split is deep, to MOST_BITS
        whole_trees : bool
            symmetric trees with codes of up to WHOLE_BITS are not cut
        trees : (m,) int64, optional
            only these, ascending

        Returns
        -------
        Partitioning
            subtrees in the order of trees, within a tree from left to right
        """
        ensemble = self._forest.ensemble
        whole = self.cut(most_bits).whole
        if whole_trees:
            whole[self._whole_trees()] = True
        coded, deep = _Layout(self._forest, self._player), _Layout(self._forest, self._player)
        pending = (ensemble.root if trees is None else ensemble.root[trees])[::-1].tolist()
        while pending:
            v = pending.pop()
            if whole[v]:
                coded.add(v)
            elif ensemble.left[v] < 0:
                deep.add(v)
            else:
                pending += [int(ensemble.right[v]), int(ensemble.left[v])]
        return Partitioning(coded.subtrees(), deep.subtrees())
