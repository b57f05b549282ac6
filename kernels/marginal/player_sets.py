"""Interactions of sets of players in the marginal game, leaf by leaf (see ``subsets``, ``patterns`` and ``interactions``).

For a leaf of d players with F(S) the share of background rows that fail nobody outside S, R the players that the row passes, and p(b) the weight of
coalitions with b of d - s others, the interaction of a set T of s players is

    value * sum over L in T of (-1)^|L| sum over X in R - L of c(s, |L|, |X|) F(X),    c(s, l, x) = sum over n of C(l, n) p(x - s + n)

For d players that is one sum over subsets for every s and l. Deep leaves keep patterns: with A the players that the row fails and B those that a
background row fails, disjoint, this row's part is

    (-1)^|T in A| value * W(|B| - |T in B|, |A| - |T in A|)    where T is in A and B, else 0

which hangs on T by the part of it in B, and by how many of it are in A.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations, pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..set_indices import SetValue
from ..trees.forest import Forest
from ..trees.lookup import LOOKUP_ROWS, WORD_BITS, LookupTables, end_to_end, make_codes, padded_width
from ..trees.player_sets import find_rows
from .background import distinct, first_codes, n_words
from .coalitions import Leaves, View, add_gains, count_rows, lay_out_leaves, no_leaves
from .game import MarginalGame, find_failures
from .patterns import count_bits, skip_met
from .subsets import sum_over_subsets
from .subtrees import EDGE_PLAYER, Partitioning, Subtrees


class SetPatternTables(NamedTuple):
    """Deep leaves with the background's patterns there, and subsets of their players in colexicographic order."""

    leaves: Leaves  # with a column for every subset of a leaf's players, by size, in colexicographic order
    players: np.ndarray  # (leaves,) int64
    first: np.ndarray  # (leaves + 1,) int64, leaf l's patterns are patterns[first[l]:first[l + 1]]
    patterns: np.ndarray  # (patterns, words) int64, see PatternTables
    share: np.ndarray  # (patterns,) float64, of the background's rows
    weights: np.ndarray  # (order, n, n) float64, see SetValue.coalitions
    chosen: np.ndarray  # (subsets, order) int32: positions, ascending, then -1; those of d players of a size are the first C(d, size) of it
    first_of: np.ndarray  # (order + 1,) int64, subsets of a size start at first_of[size]
    times: np.ndarray  # (n + 1, order + 1) int64, binomial coefficients


def _local_sets(subtrees: Subtrees, u: int, order: int) -> np.ndarray:
    """List the sets of subtree u's players that share a leaf, ``(sets, order) int32``, by local numbers."""
    starts = subtrees.leaves.edge_start[subtrees.leaves.start[u] : subtrees.leaves.start[u + 1] + 1].tolist()
    players, above = subtrees.leaves.edges[starts[0] : starts[-1], EDGE_PLAYER].tolist(), range(subtrees.n_above[u])
    leaves = {frozenset((*above, *players[start - starts[0] : stop - starts[0]])) for start, stop in pairwise(starts)}
    found = {some for leaf in leaves for size in range(1, order + 1) for some in combinations(sorted(leaf), size)}
    return np.array(sorted((*some, *(-1,) * (order - len(some))) for some in found), np.int32).reshape(-1, order)


def _as_rows(subtrees: Subtrees, players: np.ndarray, local: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
    """Find the rows of each subtree's sets, by ``local`` numbers, among the game's ``players (sets, order)``."""
    nobody = np.iinfo(np.int32).max
    owns = {u: np.append(subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]], 0) for u in local}
    members = np.concatenate([players[:0], *(np.where(some < 0, nobody, owns[u][some]) for u, some in local.items())])
    members.sort(axis=1)
    rows = find_rows(players, np.where(members == nobody, -1, members).astype(np.int32))
    return dict(zip(local, np.split(rows, np.cumsum([len(some) for some in local.values()])), strict=False))


def set_bytes(partitioning: Partitioning, n_rows: int, width: int, order: int) -> int:
    """Bound the size in bytes of the tables of ``play_sets_against``, before the background is known."""
    total = 0
    for subtrees, coded in ((partitioning.coded, True), (partitioning.deep, False)):
        for u, bits in enumerate(subtrees.bits.tolist()):
            n_players = int(subtrees.player_start[u + 1] - subtrees.player_start[u])
            n_leaves = int(subtrees.leaves.start[u + 1] - subtrees.leaves.start[u])
            n_edges = int(np.diff(subtrees.leaves.edge_start[subtrees.leaves.start[u] : subtrees.leaves.start[u + 1] + 1]).max(initial=0))
            of_leaf = sum(comb(min(n_players, int(subtrees.n_above[u]) + n_edges), size) for size in range(1, order + 1))
            n_sets = min(n_leaves * of_leaf, sum(comb(n_players, size) for size in range(1, order + 1)))
            total += 20 * int(subtrees.start[u + 1] - subtrees.start[u]) + 4 * width * n_sets + 8 * n_sets
            total += (
                (8 * padded_width(width * n_sets) << bits) + 28
                if coded
                else 8 * width + 60 + 8 * (n_words(subtrees) + 1) * min(n_rows, 1 << n_players)
            )
    most = int(np.diff(partitioning.deep.player_start).max(initial=0))
    n_chosen = sum(comb(most, size) for size in range(1, order + 1))
    widest = max(most, int(np.diff(partitioning.coded.player_start).max(initial=0)))
    return total + 8 * order * (widest + 2) ** 2 + 4 * order * n_chosen + 8 * (order + 1) * (most + 2) + 64


@jit
def _binomial(n: int, k: int) -> int:
    """Return the binomial coefficient of n over k."""
    found = 1
    for i in range(k):
        found = found * (n - i) // (i + 1)
    return found


@jit
def _sum_sets(F: np.ndarray, n_players: int, weights: np.ndarray) -> np.ndarray:
    """Sum over the subsets of every set of players: of each size of sets, for subsets less 0, 1, … of the set's players, see above."""
    sum_over_subsets(F)
    order = weights.shape[0]
    found = np.zeros((F.size, order * (order + 3) // 2))
    terms = np.empty(F.size)
    for size in range(1, min(order, n_players) + 1):
        for less in range(size + 1):
            for s in range(F.size):
                x = 0
                for p in range(n_players):
                    x += s >> p & 1
                c = 0.0
                for n in range(less + 1):
                    b = x - size + n
                    if 0 <= b <= n_players - size:
                        c += _binomial(less, n) * weights[size - 1, b, n_players - size - b]
                terms[s] = c * F[s]
            sum_over_subsets(terms)
            for s in range(F.size):
                found[s, (size - 1) * (size + 2) // 2 + less] = terms[s]
    return found


@jit
def _gain(sums: np.ndarray, passed: int, members: np.ndarray, size: int) -> float:
    """Return the interaction of a leaf's players ``members (size,)``, as a fraction of its value, for a row that passes some."""
    total, first = 0.0, (size - 1) * (size + 2) // 2
    for chosen in range(1 << size):
        rest, less = passed, 0
        for m in range(size):
            if chosen >> m & 1:
                rest &= ~(1 << members[m])
                less += 1
        total += (1.0 - 2.0 * (less % 2)) * sums[rest, first + less]
    return total


@jit
def add_leaf(
    d: int, F: np.ndarray, local: np.ndarray, masks: np.ndarray, sets: np.ndarray, weights: np.ndarray, value: np.ndarray, table: np.ndarray
) -> None:
    """Add a leaf of d players to the table of its subtree.

    Parameters
    ----------
    F : (2**d,) float64, overwritten
        share of what is absent that fails the players of a set and no others
    local, masks : as ``find_failures`` fills them
    sets : (sets, order) int32
        of the subtree's players
    weights : (order, n, n) float64, see SetValue.coalitions
    value : (width,) float64, margin units
    table : (codes, width, sets) float64
    """
    sums, gains, members = _sum_sets(F, d, weights), np.empty(1 << d), np.empty(sets.shape[1], np.int64)
    for t in range(len(sets)):
        size, here = 0, True
        while size < members.size and sets[t, size] >= 0:
            members[size] = local[sets[t, size]]
            here &= members[size] >= 0
            size += 1
        if not here:
            continue
        for passed in range(1 << d):
            gains[passed] = _gain(sums, passed, members, size)
        for code in range(masks.size):
            gain = gains[((1 << d) - 1) & ~masks[code]]
            for k in range(value.size):
                table[code, k, t] += gain * value[k]


@jit
def _fill(subtrees: Subtrees, u: int, sets: np.ndarray, shares: np.ndarray, weights: np.ndarray, value: np.ndarray, table: np.ndarray) -> None:
    """Add all leaves of subtree u to ``table (codes, width, sets)``, with ``sets (sets, order)`` of its players."""
    leaves = subtrees.leaves
    everyone = np.arange(subtrees.player_start[u + 1] - subtrees.player_start[u])
    local, masks = np.empty(everyone.size, np.int64), np.empty(shares.size, np.int64)
    for leaf in range(leaves.start[u], leaves.start[u + 1]):
        d, F = find_failures(subtrees, u, leaf, everyone, shares, local, masks)
        add_leaf(d, F, local, masks, sets, weights, value[leaves.node[leaf]], table)


def look_up_sets(forest: Forest, coded: Subtrees, players: np.ndarray, fill: Callable[[int, np.ndarray, np.ndarray], None]) -> LookupTables:
    """Make the tables of coded subtrees that have players.

    Parameters
    ----------
    players : (sets, order) int32
        of the forest
    fill : callable
        ``(u, sets, table)`` adds the leaves of subtree u to its ``table (codes, width, sets)``, with ``sets (sets, order)`` of its players
    """
    ensemble, order = forest.ensemble, players.shape[1]
    width, local = ensemble.value.shape[1], {u: some for u in range(coded.size) if len(some := _local_sets(coded, u, order))}
    marks, targets, tables = [np.zeros((0, 5), np.int32)], [], []
    for u, row in _as_rows(coded, players, local).items():
        table = np.zeros((1 << int(coded.bits[u]), width, row.size))
        fill(u, local[u], table)
        output = ensemble.output[forest.trace.tree[coded.leaves.node[coded.leaves.start[u]]]]
        marks.append(coded.marks[coded.start[u] : coded.start[u + 1]])
        targets.append(np.concatenate([(output + k) * len(players) + row for k in range(width)]))
        tables.append(table.reshape(len(table), -1))
    return end_to_end(np.concatenate(marks), np.cumsum([0, *map(len, marks[1:])]), targets, tables, coded.words)


@cache
def _colex(n_players: int, order: int) -> np.ndarray:
    """List the subsets of a leaf's players by size, in colexicographic order, see SetPatternTables; -1 behind."""
    found = [(*some, *(-1,) * (order - size)) for size in range(1, order + 1) for some in combinations(range(n_players), size)]
    rows = np.array(found, np.int32).reshape(-1, order)
    return rows[np.lexsort((*rows.T, (rows >= 0).sum(axis=1)))]


def _list(game: MarginalGame, players: np.ndarray, weights: np.ndarray) -> SetPatternTables:
    """Make the tables of deep leaves."""
    deep, ensemble, order, words = game.partitioning.deep, game.forest.ensemble, players.shape[1], game.background.patterns.shape[1]
    n_players = np.diff(deep.player_start)
    chosen = np.flatnonzero(n_players > 0)
    rows = _as_rows(deep, players, {u: _colex(int(n_players[u]), order) for u in chosen.tolist()})
    seen, patterns, shares = [], [np.zeros((0, words), np.int64)], [np.zeros(0)]
    for u, row in rows.items():
        some = slice(*game.background.start[u : u + 2])
        seen.append((u, View(np.arange(n_players[u]), row.astype(np.int32))))
        _, found, times = distinct(np.zeros(some.stop - some.start, np.int64), game.background.patterns[some], game.background.times[some])
        patterns.append(found)
        shares.append(times / count_rows(game.background, u))
    most = int(n_players.max(initial=0))
    sizes = np.array([0, *(comb(most, size) for size in range(1, order + 1))])
    return SetPatternTables(
        leaves=lay_out_leaves(deep, seen, ensemble.value, ensemble.output[game.forest.trace.tree[deep.leaves.node]]),
        players=n_players[chosen],
        first=np.cumsum([0, *(share.size for share in shares[1:])]),
        patterns=np.concatenate(patterns),
        share=np.concatenate(shares),
        weights=weights,
        chosen=_colex(most, order),
        first_of=np.cumsum(sizes) - sizes,
        times=np.array([[comb(n, k) for k in range(order + 1)] for n in range(most + 1)], np.int64),
    )


def no_set_patterns(order: int, words: np.ndarray) -> SetPatternTables:
    """Make tables without leaves, see ``no_leaves``.

    Parameters
    ----------
    words : uint32
        the model's category sets
    """
    none, numbers = np.zeros(0, np.int64), np.zeros((order, 1, 1))
    chosen, times = np.zeros((0, order), np.int32), np.zeros((1, order + 1), np.int64)
    first, first_of = np.zeros(1, np.int64), np.zeros(order + 1, np.int64)
    return SetPatternTables(no_leaves(words), none, first, np.zeros((0, 1), np.int64), np.zeros(0), numbers, chosen, first_of, times)


def play_sets_against(game: MarginalGame, players: np.ndarray, value: SetValue) -> tuple[LookupTables, SetPatternTables]:
    """Make the tables of the interactions of all sets ``players (sets, order)`` of the forest's players."""
    coded, deep = game.partitioning
    most = int(max(np.diff(coded.player_start).max(initial=1), np.diff(deep.player_start).max(initial=1)))
    weights, first, leaf_values = value.coalitions(most + 1), first_codes(coded), game.forest.ensemble.value

    def fill(u: int, sets: np.ndarray, table: np.ndarray) -> None:
        _fill(coded, u, sets, game.shares(u, first), weights, leaf_values, table)

    return look_up_sets(game.forest, coded, players, fill), _list(game, players, weights)


@jit
def _gains(tables: SetPatternTables, leaf: int, failed: np.ndarray, sums: np.ndarray, mine: np.ndarray, gained: np.ndarray) -> None:
    """Write interactions of all subsets of a leaf's players to ``gained (subsets,)`` for a row that fails ``failed (words,)``.

    ``sums (subsets + 1, order + 1)`` and ``mine (players,)`` are scratch: of every set of passed players, first of nobody, and how many failed ones.
    """
    order, d, a = tables.weights.shape[0], tables.players[leaf], 0
    for word in failed:
        a += count_bits(word)
    sums[0] = 0.0
    for size in range(1, order + 1):
        sums[1 + tables.first_of[size] : 1 + tables.first_of[size] + tables.times[d, size]] = 0.0
    j, stop = tables.first[leaf], tables.first[leaf + 1]
    while j < stop:
        behind = skip_met(tables.patterns, j, stop, failed)
        if behind > j:
            j = behind
            continue
        b = 0
        for p in range(d):
            if (tables.patterns[j, p // WORD_BITS] >> np.int64(p % WORD_BITS)) & 1:
                mine[b] = p
                b += 1
        for c in range(1, min(order, a) + 1):
            sums[0, c] += tables.share[j] * tables.weights[c - 1, b, a - c]
        for size in range(1, min(order, b) + 1):
            for t in range(tables.times[b, size]):
                at = 1 + tables.first_of[size]
                for m in range(size):
                    at += tables.times[mine[tables.chosen[tables.first_of[size] + t, m]], m + 1]
                for c in range(min(order - size, a) + 1):
                    sums[at, c] += tables.share[j] * tables.weights[size + c - 1, b - size, a - c]
        j += 1
    to = 0
    for size in range(1, order + 1):
        for t in range(tables.times[d, size]):
            n_failed, n_passed, at = 0, 0, 0
            for m in range(size):
                p = tables.chosen[tables.first_of[size] + t, m]
                if (failed[p // WORD_BITS] >> np.int64(p % WORD_BITS)) & 1:
                    n_failed += 1
                else:
                    n_passed += 1
                    at += tables.times[p, n_passed]
            if n_passed:
                at += 1 + tables.first_of[n_passed]
            gained[to] = (1.0 - 2.0 * (n_failed % 2)) * sums[at, n_failed]
            to += 1


@jit
def add_set_patterns(bins: np.ndarray, tables: SetPatternTables, out: np.ndarray) -> None:
    """Add the interactions at deep leaves.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : SetPatternTables
        of at least one leaf
    out : (outputs, sets, n) float64, margin units
    """
    n, n_words, leaves = bins.shape[1], tables.patterns.shape[1], tables.leaves
    flat = bins.reshape(-1)
    codes, members, failed = np.empty(n_words * LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype), np.empty(n_words, np.int64)
    sums, mine = np.empty((len(tables.chosen) + 1, tables.weights.shape[0] + 1)), np.empty(tables.times.shape[0], np.int64)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for leaf in range(leaves.output.size):
            make_codes(flat, n, row, size, leaves, leaf, codes, members)
            gained = np.empty(leaves.column[leaf + 1] - leaves.column[leaf])
            for i in range(size):
                for w in range(n_words):
                    failed[w] = codes[w * LOOKUP_ROWS + i]
                _gains(tables, leaf, failed, sums, mine, gained)
                add_gains(leaves, leaf, gained, row + i, out)
