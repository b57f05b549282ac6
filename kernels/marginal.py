"""The marginal game: absent features take the values of background rows, averaged over all of them, whatever their number.

v(S) = mean over background rows b of f(x where S is present, b elsewhere) (Filom et al. 2024, Def. 2.2). A leaf counts there with its value times the
share of background rows that pass all its players outside of S, if the row passes all those in S. So all it takes to know of the background is,
per leaf, how many of its rows fail which of the leaf's players: a histogram over patterns, which adds up over parts of the background. With F(S)
the share of background rows that fail nobody outside of S, R the players that the row passes, and w the game value's weights,

    phi_p = - value * sum over S in R of w(|S|) F(S)                                  where the row fails p
    phi_p =   value * sum over S in R - p of w(|S|) (F(S + p) - F(S))                 where it passes p

so phi depends on the row by R alone, and sums over subsets, made for all R at once, fill a leaf's table with d 2^d additions.

Leaves are looked up together, by unit: a unit is a node with all below it, and a row's code there says which players it fails on the way to
the node and how it compares at the splits below. A symmetric tree is one unit (Filom et al. 2024, Alg. 3.12); of other trees, what stays small.
"""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .games import Board, GameValue
from .lanes import QUAD
from .lookup import ROWS, LookupTables, end_to_end, make_codes
from .parameters import InvalidParameters
from .paths import Trace, count_above, first_splits, trace

MOST_BITS = 12  # of a unit's code
_NOBODY, _TOO_MANY = frozenset[int](), frozenset(range(-MOST_BITS - 1, 0))


class Units(NamedTuple):
    """What rows' codes are made of, and what they mean; a unit's players are its columns."""

    marks: np.ndarray  # (marks, 5) int32, see lookup.LookupTables
    start: np.ndarray  # (units + 1,) int64, unit u's marks are marks[start[u]:start[u + 1]]
    failing: np.ndarray  # (units,) int64, how many of the lowest bits say that a player above fails; they are the first columns
    first: np.ndarray  # (units + 1,) int64, unit u's codes are counted in counts[first[u]:first[u + 1]]
    column: np.ndarray  # (units + 1,) int64, unit u's columns are player[column[u]:column[u + 1]]
    player: np.ndarray  # (columns,) int32
    leaf_start: np.ndarray  # (units + 1,) int64, unit u's leaves are leaf[leaf_start[u]:leaf_start[u + 1]]
    leaf: np.ndarray  # (leaves,) int32, nodes of the model
    edge_start: np.ndarray  # (leaves + 1,) int64, leaf l's edges below the unit's node are edges[edge_start[l]:edge_start[l + 1]]
    edges: np.ndarray  # (edges, 3) int32: bit of the comparison, outcome of it that takes the edge, column of the player
    words: np.ndarray  # uint32


class Background(NamedTuple):
    """What is known of a background: how many of its rows have each code of each unit. Backgrounds add up."""

    n_rows: np.ndarray  # (1,) int64
    counts: np.ndarray  # int64


def _choose_units(board: Board, traced: Trace, player):
    """``(nodes,) bool``: where everything from a node down is best looked up together, in entries of tables."""
    ensemble, number = board.ensemble, board.comparisons.number
    n_above = count_above(ensemble, traced, first_splits(ensemble, traced))
    players, asked = [_NOBODY] * player.size, [_NOBODY] * player.size  # of the splits from a node down
    cost, whole = np.zeros(player.size), np.zeros(player.size, bool)
    for v in traced.order[::-1].tolist():
        left, right = ensemble.left[v], ensemble.right[v]
        apart = np.inf
        if left >= 0:
            players[v] = players[left] | players[right] | {player[v]}
            asked[v] = asked[left] | asked[right] | {number[v]}
            apart = cost[left] + cost[right]
        n_bits = n_above[v] + len(asked[v])
        # Players above that are asked for again below are counted twice: an upper bound is enough to choose by.
        together = 2.0**n_bits * (n_above[v] + len(players[v]) + QUAD) if n_bits <= MOST_BITS else np.inf
        whole[v], cost[v] = together <= apart, min(together, apart)
        if len(asked[v]) > MOST_BITS:
            asked[v] = players[v] = _TOO_MANY
    return whole & np.isfinite(cost)


class _Layout:
    """Units as they are written down."""

    def __init__(self, board: Board, player):
        ensemble = board.ensemble
        self.board, self.player = board, player
        self.parent = np.full(player.size, -1, np.int64)
        inner = np.flatnonzero(ensemble.feature >= 0)
        self.parent[ensemble.left[inner]] = self.parent[ensemble.right[inner]] = inner
        self.marks: list[tuple[int, ...]] = []
        self.edges: list[tuple[int, int, int]] = []
        self.columns: list[list[int]] = []
        self.leaves: list[list[int]] = []
        self.n_marks: list[int] = []
        self.n_bits: list[int] = []
        self.n_edges: list[int] = []
        self.failing: list[int] = []

    def _mark(self, v: int, left: bool, bit: int) -> None:
        """Set a bit where the split at v sends a row to the left, or where it does not."""
        splits = self.board.splits
        lower, span = int(splits.lower[v]), int(splits.span[v])
        if not left:
            lower, span = lower + span + 1, -span - 2
        self.marks.append((int(splits.feature[v]), lower, span, int(splits.members[v]), bit))

    def add(self, v: int) -> None:
        """Write down the unit of v and all below."""
        ensemble, number = self.board.ensemble, self.board.comparisons.number
        column: dict[int, int] = {}
        bits: dict[int, int] = {}
        n_marks = len(self.marks)
        way = [v]
        while self.parent[way[-1]] >= 0:
            way.append(int(self.parent[way[-1]]))
        for above, child in zip(way[:0:-1], way[-2::-1], strict=True):
            who = column.setdefault(int(self.player[above]), len(column))
            self._mark(above, ensemble.left[above] != child, who)
        failing = len(column)
        leaves: list[int] = []
        pending: list[tuple[int, tuple[tuple[int, int, int], ...]]] = [(v, ())]
        while pending:
            node, edges = pending.pop()
            if ensemble.left[node] < 0:
                leaves.append(node)
                self.edges.extend(edges)
                self.n_edges.append(len(edges))
                continue
            if int(number[node]) not in bits:
                bits[int(number[node])] = failing + len(bits)
                self._mark(node, True, bits[int(number[node])])
            who = column.setdefault(int(self.player[node]), len(column))
            for outcome, child in ((1, ensemble.left[node]), (0, ensemble.right[node])):
                pending.append((int(child), (*edges, (bits[int(number[node])], outcome, who))))
        self.columns.append(list(column))
        self.leaves.append(leaves)
        self.n_marks.append(len(self.marks) - n_marks)
        self.n_bits.append(failing + len(bits))
        self.failing.append(failing)

    def units(self) -> Units:
        def ends(sizes):
            return np.cumsum([0, *sizes])

        return Units(
            marks=np.array(self.marks, np.int32).reshape(-1, 5),
            start=ends(self.n_marks),
            failing=np.array(self.failing, np.int64),
            first=ends(2**n for n in self.n_bits),
            column=ends(map(len, self.columns)),
            player=np.array([who for column in self.columns for who in column], np.int32),
            leaf_start=ends(map(len, self.leaves)),
            leaf=np.array([leaf for leaves in self.leaves for leaf in leaves], np.int32),
            edge_start=ends(self.n_edges),
            edges=np.array(self.edges, np.int32).reshape(-1, 3),
            words=self.board.splits.words,
        )


def cut_into_units(board: Board) -> Units:
    """Cut every tree into units.

    Raises
    ------
    InvalidParameters
        a leaf has more players above it than a code has bits
    """
    ensemble, player = board.ensemble, board.player_of_node
    traced = trace(ensemble, player, board.n_players)
    whole = _choose_units(board, traced, player)
    layout = _Layout(board, player)
    for t, root in enumerate(ensemble.root.tolist()):
        pending = [root]
        while pending:
            v = pending.pop()
            if whole[v]:
                layout.add(v)
            elif ensemble.left[v] < 0:
                raise InvalidParameters(f"tree {t}, node {v}: more than {MOST_BITS} players above a leaf, the marginal game takes so many at most")
            else:
                pending += [int(ensemble.right[v]), int(ensemble.left[v])]
    return layout.units()


@jit
def _count(ranks, units, n_rows, counts):
    n = ranks.shape[1]
    flat = ranks.reshape(-1)
    codes, members = np.empty(ROWS, np.uint16), np.empty(ROWS, ranks.dtype)
    for row in range(0, n, ROWS):
        size = min(ROWS, n - row)
        for u in range(units.failing.size):
            make_codes(flat, n, row, size, units, u, codes, members)
            for i in range(min(size, n_rows - row)):
                counts[units.first[u] + codes[i]] += 1


def count_background(ranks, units: Units, n_rows: int) -> Background:
    """Count the first ``n_rows`` rows; ``ranks (used, n)`` unsigned integers, n a multiple of BATCH."""
    counts = np.zeros(units.first[-1], np.int64)
    _count(ranks, units, n_rows, counts)
    return Background(np.array([n_rows]), counts)


@jit
def _sum_over_subsets(sums):
    """Replace every set's number by the sum of its subsets'; sets are bit masks."""
    bit = 1
    while bit < sums.size:
        for s in range(sums.size):
            if s & bit:
                sums[s] += sums[s ^ bit]
        bit *= 2


@jit
def _fill(units, u, counts, weights, value, table):
    """Add every leaf of unit u to its ``table (codes, width, columns)``; ``weights (d, s)``, of coalitions of s others among d players."""
    n_columns, n_codes, failing = table.shape[2], table.shape[0], units.failing[u]
    local, masks = np.empty(n_columns, np.int64), np.empty(n_codes, np.int64)
    for leaf in range(units.leaf_start[u], units.leaf_start[u + 1]):
        edges = units.edges[units.edge_start[leaf] : units.edge_start[leaf + 1]]
        local[:] = -1
        for d in range(failing):
            local[d] = d
        d = failing
        for e in range(edges.shape[0]):
            if local[edges[e, 2]] < 0:
                local[edges[e, 2]] = d
                d += 1
        everyone = (1 << d) - 1
        shares = np.zeros(1 << d)
        for code in range(n_codes):
            mask = code & ((1 << failing) - 1)
            for e in range(edges.shape[0]):
                if (code >> edges[e, 0]) & 1 != edges[e, 1]:
                    mask |= 1 << local[edges[e, 2]]
            masks[code] = mask
            shares[mask] += counts[units.first[u] + code]
        _sum_over_subsets(shares)  # F
        without, joined = np.zeros(1 << d), np.zeros(1 << d)
        for s in range(1 << d):
            size = 0
            for p in range(d):
                size += (s >> p) & 1
            if size < d:
                without[s] = weights[d, size] * shares[s]
            if size > 0:
                joined[s] = weights[d, size - 1] * shares[s]
        _sum_over_subsets(without)
        _sum_over_subsets(joined)
        for code in range(n_codes):
            passed = everyone & ~masks[code]
            for column in range(n_columns):
                p = local[column]
                if p < 0:
                    continue
                rest = passed & ~(1 << p)
                phi = -without[passed] if rest == passed else joined[passed] - joined[rest] - without[rest]
                for k in range(table.shape[1]):
                    table[code, k, column] += phi * value[units.leaf[leaf], k]


def prepare_marginal(board: Board, units: Units, background: Background, value: GameValue) -> LookupTables:
    """Tables of every unit, for ``lookup.add_lookups``: phi has a row per player."""
    weights = np.zeros((MOST_BITS + 1, MOST_BITS + 1))
    for d in range(1, MOST_BITS + 1):
        rule = value(d)
        for s in range(d):
            weights[d, s] = np.sum(rule.weights * rule.nodes**s * (1 - rule.nodes) ** (d - 1 - s)) / background.n_rows[0]
    width = board.ensemble.value.shape[1]
    targets, tables = [], []
    for u in range(units.failing.size):
        players = units.player[units.column[u] : units.column[u + 1]]
        table = np.zeros((units.first[u + 1] - units.first[u], width, players.size))
        _fill(units, u, background.counts, weights, board.ensemble.value, table)
        tables.append(table.reshape(len(table), -1))
        output = board.ensemble.output[board.trace.tree[units.leaf[units.leaf_start[u]]]]
        targets.append(np.concatenate([(output + k) * board.n_players + players for k in range(width)]))
    return end_to_end(units.marks, units.start, targets, tables, units.words)


@jit
def _mean(units, counts, value, output, out):
    """Add the value of every leaf for every row that reaches it."""
    for u in range(units.failing.size):
        for leaf in range(units.leaf_start[u], units.leaf_start[u + 1]):
            reached = 0
            for code in range(units.first[u + 1] - units.first[u]):
                fails = (code & ((1 << units.failing[u]) - 1)) > 0
                for e in range(units.edge_start[leaf], units.edge_start[leaf + 1]):
                    fails |= (code >> units.edges[e, 0]) & 1 != units.edges[e, 1]
                if not fails:
                    reached += counts[units.first[u] + code]
            for k in range(value.shape[1]):
                out[output[units.leaf[leaf]] + k] += reached * value[units.leaf[leaf], k]


def mean_margin(board: Board, units: Units, background: Background):
    """Mean margin of the background, ``(outputs,) float64``: the value of the empty coalition. From counts: the same bits whoever counted."""
    total = np.zeros(board.ensemble.base.size)
    _mean(units, background.counts, board.ensemble.value, board.ensemble.output[board.trace.tree], total)
    return board.ensemble.base + total / background.n_rows[0]
