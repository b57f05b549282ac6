"""Shapley interactions of player pairs in the marginal game, leaf by leaf (see ``subsets`` and ``patterns``).

For a leaf with sets of its players as in ``subsets``: with A the players that the row fails and B those that a background row fails, disjoint, and
W(b, a) the integral of t^b (1 - t)^a over the value of the game in which the pair is one player, each pair's interaction is

    value * W(|B| - 2, |A|)          where B has both        value * W(|B|, |A| - 2)          where A has both
    - value * W(|B| - 1, |A| - 1)    where each has one
"""

import numpy as np

from ..arrays.ordering import pack_pairs, unpack_pairs
from ..game_values import GameValue, weigh_by_value
from ..jit.decorator import jit
from ..trees.lookup import LOOKUP_ROWS, WORD_BITS, LookupTables, end_to_end, make_codes, padded_width
from .background import distinct, first_codes, n_words
from .coalitions import Leaves, View, Weights, add_gains, count_rows, lay_out_leaves, view_patterns
from .game import MarginalGame, find_failures
from .patterns import PatternTables, count_bits, skip_met
from .subsets import SubsetTables, sum_pairs
from .subtrees import EDGE_PLAYER, Partitioning, Subtrees


@jit
def _meet(subtrees: Subtrees, u: int, together: np.ndarray) -> None:
    """Mark in ``together (players, players) bool`` every two players of subtree u that share a leaf."""
    leaves, n_above = subtrees.leaves, subtrees.n_above[u]
    for leaf in range(leaves.start[u], leaves.start[u + 1]):
        edges = leaves.edges[leaves.edge_start[leaf] : leaves.edge_start[leaf + 1]]
        for e in range(-n_above, edges.shape[0]):
            p = edges[e, EDGE_PLAYER] if e >= 0 else e + n_above
            for f in range(-n_above, e):
                q = edges[f, EDGE_PLAYER] if f >= 0 else f + n_above
                together[min(p, q), max(p, q)] |= p != q


def _local_pairs(subtrees: Subtrees, u: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of subtree u's players that share a leaf, ``(pairs,)`` each by local number, and packed as global pairs."""
    players = subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]]
    together = np.zeros((players.size, players.size), bool)
    _meet(subtrees, u, together)
    first, second = map(np.ascontiguousarray, np.nonzero(together))
    return first, second, pack_pairs(np.minimum(players[first], players[second]), np.maximum(players[first], players[second]))


def list_pairs(partitioning: Partitioning) -> np.ndarray:
    """List all pairs of players that interact: those that share a leaf."""
    keys = [_local_pairs(subtrees, u)[2] for subtrees in partitioning for u in range(subtrees.size)]
    return np.stack(unpack_pairs(np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))), axis=1).astype(np.int32)


def pair_bytes(partitioning: Partitioning, n_rows: int, width: int, summed_bits: int) -> int:
    """Bound the size in bytes of the tables of ``play_pairs_against``, before the background is known."""
    total = 0
    for subtrees, coded in ((partitioning.coded, True), (partitioning.deep, False)):
        for u, bits in enumerate(subtrees.bits.tolist()):
            n_pairs, n_players = _local_pairs(subtrees, u)[0].size, int(subtrees.player_start[u + 1] - subtrees.player_start[u])
            total += 20 * int(subtrees.start[u + 1] - subtrees.start[u]) + 4 * width * n_pairs + 8 * n_pairs
            if coded:
                total += (8 * padded_width(width * n_pairs) << bits) + 28
            else:
                total += 8 * width + 60 + (24 << n_players if n_players <= summed_bits else 8 * (n_words(subtrees) + 1) * min(n_rows, 1 << n_players))
    return total + 8 * 2 * (int(np.diff(partitioning.deep.player_start).max(initial=0)) + 2) ** 2


@jit
def _gain(sums: np.ndarray, first: int, passed: int, p: int, q: int) -> float:
    """Return the interaction of two of a leaf's players that the row passes, as a fraction of its value; see ``sum_pairs``."""
    without_p, without_q = passed & ~(1 << p), passed & ~(1 << q)
    return sums[first + passed, 0] - sums[first + without_p, 1] - sums[first + without_q, 1] + sums[first + (without_p & without_q), 2]


@jit
def _fill(
    subtrees: Subtrees, u: int, shares: np.ndarray, first: np.ndarray, second: np.ndarray, within: np.ndarray, value: np.ndarray, table: np.ndarray
) -> None:
    """Add all leaves of subtree u to ``table (codes, width, pairs)``, with pairs of the players ``first`` and ``second``."""
    n_codes, leaves = table.shape[0], subtrees.leaves
    everyone = np.arange(subtrees.player_start[u + 1] - subtrees.player_start[u])
    local, masks = np.empty(everyone.size, np.int64), np.empty(n_codes, np.int64)
    for leaf in range(leaves.start[u], leaves.start[u + 1]):
        d, F = find_failures(subtrees, u, leaf, everyone, shares, local, masks)
        if d < 2:
            continue
        sums = sum_pairs(F, d, within)
        for pair in range(first.size):
            p, q = local[first[pair]], local[second[pair]]
            if p < 0 or q < 0:
                continue
            for code in range(n_codes):
                gain = _gain(sums, 0, ((1 << d) - 1) & ~masks[code], p, q)
                for k in range(table.shape[1]):
                    table[code, k, pair] += gain * value[leaves.node[leaf], k]


def _look_up(game: MarginalGame, keys: np.ndarray, within: np.ndarray) -> LookupTables:
    """Make the tables of coded subtrees that have pairs."""
    coded, ensemble = game.partitioning.coded, game.forest.ensemble
    width, first_code = ensemble.value.shape[1], first_codes(coded)
    marks, targets, tables = [np.zeros((0, 5), np.int32)], [], []
    for u in range(coded.size):
        first, second, mine = _local_pairs(coded, u)
        if not mine.size:
            continue
        shares = game.shares(u, first_code)
        table = np.zeros((shares.size, width, mine.size))
        _fill(coded, u, shares, first, second, within, ensemble.value, table)
        output, row = ensemble.output[game.forest.trace.tree[coded.leaves.node[coded.leaves.start[u]]]], np.searchsorted(keys, mine)
        marks.append(coded.marks[coded.start[u] : coded.start[u + 1]])
        targets.append(np.concatenate([(output + k) * keys.size + row for k in range(width)]))
        tables.append(table.reshape(shares.size, -1))
    return end_to_end(np.concatenate(marks), np.cumsum([0, *map(len, marks[1:])]), targets, tables, coded.words)


def _lay_out(game: MarginalGame, keys: np.ndarray, chosen: list[int]) -> Leaves:
    """Lay out deep leaves with their pairs in the order of bits."""
    deep, ensemble = game.partitioning.deep, game.forest.ensemble
    seen = []
    for u in chosen:
        n_players = int(deep.player_start[u + 1] - deep.player_start[u])
        seen.append((u, View(np.arange(n_players), np.searchsorted(keys, _local_pairs(deep, u)[2]).astype(np.int32))))
    return lay_out_leaves(deep, seen, ensemble.value, ensemble.output[game.forest.trace.tree[deep.leaves.node]])


def _sum(game: MarginalGame, keys: np.ndarray, chosen: list[int], within: np.ndarray) -> SubsetTables:
    players = np.diff(game.partitioning.deep.player_start)[chosen]
    ends, sums = np.cumsum(np.append(0, 1 << players)), [np.zeros((0, 3))]
    for u, n_players in zip(chosen, players.tolist(), strict=True):
        patterns, times = view_patterns(game.background, u, View(np.arange(n_players), np.zeros(0, np.int32)))
        sums.append(sum_pairs(np.bincount(patterns[:, 0], times, minlength=1 << n_players) / count_rows(game.background, u), n_players, within))
    return SubsetTables(_lay_out(game, keys, chosen), players, ends[:-1], np.concatenate(sums))


def _list(game: MarginalGame, keys: np.ndarray, chosen: list[int], within: np.ndarray) -> PatternTables:
    words = game.background.patterns.shape[1]
    patterns, shares = [np.zeros((0, words), np.int64)], [np.zeros(0)]
    for u in chosen:
        some = slice(game.background.start[u], game.background.start[u + 1])
        _, found, times = distinct(np.zeros(some.stop - some.start, np.int64), game.background.patterns[some], game.background.times[some])
        patterns.append(found)
        shares.append(times / count_rows(game.background, u))
    return PatternTables(
        leaves=_lay_out(game, keys, chosen),
        own=np.zeros((len(chosen), words), np.int64),
        first=np.cumsum([0, *(share.size for share in shares[1:])]),
        patterns=np.concatenate(patterns),
        share=np.concatenate(shares),
        weights=Weights(np.ones((1, 1)), within),
    )


def play_pairs_against(game: MarginalGame, pairs: np.ndarray, value: GameValue) -> tuple[LookupTables, SubsetTables, PatternTables]:
    """Make the tables of the interactions of all pairs."""
    keys, (coded, deep) = pack_pairs(pairs[:, 0], pairs[:, 1]), game.partitioning
    n_players = np.diff(deep.player_start)
    within = weigh_by_value(value)(int(max(np.diff(coded.player_start).max(initial=1), n_players.max(initial=1))) + 1)
    summed = np.flatnonzero((n_players > 1) & (n_players <= game.summed_bits)).tolist()
    listed = np.flatnonzero((n_players > 1) & (n_players > game.summed_bits)).tolist()
    return _look_up(game, keys, within), _sum(game, keys, summed, within), _list(game, keys, listed, within)


@jit
def add_pair_subsets(bins: np.ndarray, tables: SubsetTables, out: np.ndarray) -> None:
    """Add the interactions at deep leaves with sums over subsets.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : SubsetTables
        of pairs
    out : (outputs, pairs, n) float64, margin units
    """
    n, leaves = bins.shape[1], tables.leaves
    flat = bins.reshape(-1)
    codes, members = np.empty(LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for leaf in range(tables.first.size):
            make_codes(flat, n, row, size, leaves, leaf, codes, members)
            gained = np.empty(leaves.column[leaf + 1] - leaves.column[leaf])
            first, d = tables.first[leaf], tables.players[leaf]
            for i in range(size):
                passed, pair = ((1 << d) - 1) & ~codes[i], 0
                for p in range(d):
                    for q in range(p + 1, d):
                        gained[pair] = _gain(tables.sums, first, passed, p, q)
                        pair += 1
                add_gains(leaves, leaf, gained, row + i, out)


@jit
def _has(word: np.ndarray, p: int) -> bool:
    return (word[p // WORD_BITS] >> np.int64(p % WORD_BITS)) & 1 == 1


@jit
def _gains(tables: PatternTables, leaf: int, failed: np.ndarray, d: int, single: np.ndarray, gained: np.ndarray) -> None:
    """Write interactions of pairs of d players to ``gained (pairs,)`` for a row that fails ``failed (words,)``; ``single (d,)`` is scratch."""
    within = tables.weights.within
    a = 0
    for word in failed:
        a += count_bits(word)
    single[:], gained[:] = 0.0, 0.0
    both_failed = 0.0
    j, stop = tables.first[leaf], tables.first[leaf + 1]
    while j < stop:
        behind = skip_met(tables.patterns, j, stop, failed)
        if behind > j:
            j = behind
            continue
        b, share = 0, tables.share[j]
        for word in tables.patterns[j]:
            b += count_bits(word)
        if a > 1:
            both_failed += share * within[b, a - 2]
        apart = share * within[b - 1, a - 1] if a > 0 and b > 0 else 0.0
        both = share * within[b - 2, a] if b > 1 else 0.0
        pair = 0
        for p in range(d):
            if _has(tables.patterns[j], p):
                single[p] += apart
                for q in range(p + 1, d):
                    if _has(tables.patterns[j], q):
                        gained[pair + q - p - 1] += both
            pair += d - p - 1
        j += 1
    pair = 0
    for p in range(d):
        for q in range(p + 1, d):
            if _has(failed, p) and _has(failed, q):
                gained[pair] = both_failed
            elif _has(failed, p):
                gained[pair] = -single[q]
            elif _has(failed, q):
                gained[pair] = -single[p]
            pair += 1


@jit
def add_pair_patterns(bins: np.ndarray, tables: PatternTables, out: np.ndarray) -> None:
    """Add the interactions at deep leaves with lists of patterns.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : PatternTables
        of pairs
    out : (outputs, pairs, n) float64, margin units
    """
    n, n_words, leaves = bins.shape[1], tables.patterns.shape[1], tables.leaves
    flat = bins.reshape(-1)
    codes, members, failed = np.empty(n_words * LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype), np.empty(n_words, np.int64)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for leaf in range(leaves.output.size):
            make_codes(flat, n, row, size, leaves, leaf, codes, members)
            n_pairs = leaves.column[leaf + 1] - leaves.column[leaf]
            d = int((1 + np.sqrt(1 + 8 * n_pairs)) // 2)
            gained, single = np.empty(n_pairs), np.empty(d)
            for i in range(size):
                for w in range(n_words):
                    failed[w] = codes[w * LOOKUP_ROWS + i]
                _gains(tables, leaf, failed, d, single, gained)
                add_gains(leaves, leaf, gained, row + i, out)
