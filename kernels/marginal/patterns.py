"""Leaves of the marginal game with too many players for a table: their background as a list of patterns.

A coalition S reaches a leaf where the row fails nobody in S, and a background row nobody outside S. So with A the players that the row fails and B
those that the background row fails, S contains B and avoids A. Such S exist only if A and B are disjoint, and then, with W(b, a) the integral of t^b
(1 - t)^a over the game value,

    phi_p = - value * W(|B|, |A| - 1)   for p in A,      phi_p = value * W(|B| - 1, |A|)   for p in B

for this background row: the marginal game of two rows (Lundberg et al. 2020, Interventional TreeSHAP). Each pattern B is handled once, however many
rows have it. Patterns are sorted, so that all that share the high bits up to one that meets A are skipped at once.

With groups the weight is a product: one W for the other groups, each a single player, and one for the group's own members.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..trees.lookup import LOOKUP_ROWS, WORD_BITS, make_codes
from .background import Background, distinct
from .coalitions import Leaves, Seen, Weights, add_gains, count_rows, lay_out_leaves, no_leaves, view_patterns
from .subtrees import Subtrees


class PatternTables(NamedTuple):
    """Deep leaves with the background's patterns there."""

    leaves: Leaves
    own: np.ndarray  # (leaves, words) int64, bits of own players
    first: np.ndarray  # (leaves + 1,) int64, leaf l's patterns are patterns[first[l]:first[l + 1]]
    patterns: np.ndarray  # (patterns, words) int64, the lowest word first; at every leaf sorted by the highest
    share: np.ndarray  # (patterns,) float64, of the background's rows
    weights: Weights


def lay_out_patterns(deep: Subtrees, background: Background, seen: Seen, value: np.ndarray, output: np.ndarray, weights: Weights) -> PatternTables:
    """Make the tables of deep leaves for the given views."""
    words = background.patterns.shape[1]
    owns, patterns, shares = [], [np.zeros((0, words), np.int64)], [np.zeros(0)]
    for u, view in seen:
        own = np.zeros(words, np.int64)
        for bit in range(view.rows.size):
            own[bit // WORD_BITS] |= 1 << bit % WORD_BITS
        owns.append(own)
        mine, times = view_patterns(background, u, view)
        _, found, times = distinct(np.zeros(len(mine), np.int64), mine, times)
        patterns.append(found)
        shares.append(times / count_rows(background, u))
    return PatternTables(
        leaves=lay_out_leaves(deep, seen, value, output),
        own=np.array(owns, np.int64).reshape(-1, words),
        first=np.cumsum([0, *(share.size for share in shares[1:])]),
        patterns=np.concatenate(patterns),
        share=np.concatenate(shares),
        weights=weights,
    )


def no_patterns(words: np.ndarray) -> PatternTables:
    """Make tables without leaves.

    Parameters
    ----------
    words : uint32
        the model's category sets, as ``no_leaves`` takes them
    """
    integers, numbers = np.zeros((0, 1), np.int64), np.zeros((1, 1))
    return PatternTables(no_leaves(words), integers, np.zeros(1, np.int64), integers, np.zeros(0), Weights(numbers, numbers))


@jit
def count_bits(word: int) -> int:
    """Count the set bits of a word."""
    n = 0
    while word:
        word &= word - 1
        n += 1
    return n


@jit
def _agree(patterns: np.ndarray, j: int, k: int, w: int, high: int) -> bool:
    """Return whether patterns j and k agree from the highest bit down to bit ``high`` of word w."""
    for v in range(w + 1, patterns.shape[1]):
        if patterns[k, v] != patterns[j, v]:
            return False
    return patterns[k, w] >> high == patterns[j, w] >> high


@jit
def _skip(patterns: np.ndarray, j: int, stop: int, w: int, met: int) -> int:
    """Find the first pattern after j, or ``stop``, that does not share with j the bits down to the highest bit of ``met`` in word w."""
    high = 0
    while met > 1:
        met >>= 1
        high += 1
    last, step = j, 1
    while last + step < stop and _agree(patterns, j, last + step, w, high):
        last += step
        step *= 2
    while step > 1:
        step //= 2
        if last + step < stop and _agree(patterns, j, last + step, w, high):
            last += step
    return last + 1


@jit
def skip_met(patterns: np.ndarray, j: int, stop: int, failed: np.ndarray) -> int:
    """Find the next pattern that may be disjoint from the failed players."""
    for w in range(failed.size - 1, -1, -1):
        met = patterns[j, w] & failed[w]
        if met:
            return _skip(patterns, j, stop, w, met)
    return j


@jit
def _gains(tables: PatternTables, leaf: int, failed: np.ndarray, gained: np.ndarray) -> None:
    """Write own players' contributions at a leaf, as fractions of its value, to ``gained (own,)``; the row fails ``failed (words,) int64``."""
    n_words = failed.size
    a_own, a_other = 0, 0
    for w in range(n_words):
        a_own += count_bits(failed[w] & tables.own[leaf, w])
        a_other += count_bits(failed[w] & ~tables.own[leaf, w])
    gained[:] = 0.0
    lost = 0.0
    j, stop = tables.first[leaf], tables.first[leaf + 1]
    while j < stop:
        behind = skip_met(tables.patterns, j, stop, failed)
        if behind > j:
            j = behind
            continue
        b_own, b_other = 0, 0
        for w in range(n_words):
            b_own += count_bits(tables.patterns[j, w] & tables.own[leaf, w])
            b_other += count_bits(tables.patterns[j, w] & ~tables.own[leaf, w])
        weight = tables.share[j] * tables.weights.across[b_other, a_other]
        if a_own > 0:
            lost += weight * tables.weights.within[b_own, a_own - 1]
        if b_own > 0:
            weight *= tables.weights.within[b_own - 1, a_own]
            for p in range(gained.size):
                gained[p] += weight * ((tables.patterns[j, p // WORD_BITS] >> np.int64(p % WORD_BITS)) & 1)
        j += 1
    for p in range(gained.size):
        if (failed[p // WORD_BITS] >> np.int64(p % WORD_BITS)) & 1:
            gained[p] = -lost


@jit
def add_patterns(bins: np.ndarray, tables: PatternTables, phi: np.ndarray) -> None:
    """Add the attributions of all leaves.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    phi : (outputs, rows, n) float64, margin units
    """
    n, n_words, leaves = bins.shape[1], tables.patterns.shape[1], tables.leaves
    flat = bins.reshape(-1)
    codes, members, failed = np.empty(n_words * LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype), np.empty(n_words, np.int64)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for leaf in range(leaves.output.size):
            make_codes(flat, n, row, size, leaves, leaf, codes, members)
            gained = np.empty(leaves.column[leaf + 1] - leaves.column[leaf])
            for i in range(size):
                for w in range(n_words):
                    failed[w] = codes[w * LOOKUP_ROWS + i]
                _gains(tables, leaf, failed, gained)
                add_gains(leaves, leaf, gained, row + i, phi)
