"""Leaves of the marginal game that are too many players deep for a table: their background as a list of the patterns that occur.

A leaf counts in a coalition S with its value where the row fails nobody in S, and in the share of background rows that fail nobody outside of it.
So with A the players that the row fails and B those that a background row fails, the leaf counts where B is in S and A is not; that can be only
if A and B are disjoint, and then, with W(b, a) the integral of t^b (1 - t)^a over the game value,

    phi_p = - value * W(|B|, |A| - 1)   for p in A,      phi_p = value * W(|B| - 1, |A|)   for p in B

per background row: what the marginal game is for two rows, known as such since Lundberg et al. 2020 (Interventional TreeSHAP). Here a pattern
is taken once, however many rows have it, and patterns are sorted, so that all which share the part that meets the row's are skipped at once.

With groups of players the weight is a product, of one W for the other groups, each of them as one player, and one for the group's own members.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..trees.lookup import LOOKUP_ROWS
from .background import WORD, Background, distinct, make_patterns
from .coalitions import Leaves, Seen, Weights, add_gains, lay_out_leaves, no_leaves
from .subtrees import Subtrees


class PatternTables(NamedTuple):
    """Leaves with the patterns that the background has there."""

    leaves: Leaves
    own: np.ndarray  # (leaves, words) int64, bits of own players
    first: np.ndarray  # (leaves + 1,) int64, leaf l's patterns are patterns[first[l]:first[l + 1]]
    patterns: np.ndarray  # (patterns, words) int64, sorted, the highest word first
    share: np.ndarray  # (patterns,) float64, of the background's rows
    across: np.ndarray  # see Weights
    within: np.ndarray


def lay_out_patterns(deep: Subtrees, background: Background, seen: Seen, value, output, weights: Weights) -> PatternTables:
    """Tables of the deep leaves as they are seen."""
    words = background.patterns.shape[1]
    owns, patterns, shares = [], [np.zeros((0, words), np.int64)], [np.zeros(0)]
    for u, view in seen:
        own = np.zeros(words, np.int64)
        for bit in range(view.rows.size):
            own[bit // WORD] |= 1 << bit % WORD
        owns.append(own)
        some = slice(background.start[u], background.start[u + 1])
        mine = np.zeros((some.stop - some.start, words), np.int64)
        for bit, who in enumerate(view.who.tolist()):
            mine[:, who // WORD] |= (background.patterns[some, bit // WORD] >> bit % WORD & 1) << who % WORD
        _, found, times = distinct(np.zeros(len(mine), np.int64), mine, background.times[some])
        patterns.append(found)
        shares.append(times / times.sum())
    return PatternTables(
        leaves=lay_out_leaves(deep, seen, value, output),
        own=np.array(owns, np.int64).reshape(-1, words),
        first=np.cumsum([0, *(share.size for share in shares[1:])]),
        patterns=np.concatenate(patterns),
        share=np.concatenate(shares),
        across=weights.across,
        within=weights.within,
    )


def no_patterns(words) -> PatternTables:
    """Tables that add nothing."""
    integers, numbers = np.zeros((0, 1), np.int64), np.zeros((1, 1))
    return PatternTables(no_leaves(words), integers, np.zeros(1, np.int64), integers, np.zeros(0), numbers, numbers)


@jit
def _count_bits(word):
    n = 0
    while word:
        word &= word - 1
        n += 1
    return n


@jit
def _agree(patterns, j, k, w, high):
    """Whether patterns j and k agree from the highest bit down to bit ``high`` of word w."""
    for v in range(w + 1, patterns.shape[1]):
        if patterns[k, v] != patterns[j, v]:
            return False
    return patterns[k, w] >> high == patterns[j, w] >> high


@jit
def _skip(patterns, j, stop, w, met):
    """The first pattern after j that may not meet the row in the highest bit of ``met``, in word w: those that agree with j down to it do."""
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
def _gains(tables, leaf, failed, gained):
    """What own players gain at leaf in subtrees of its value, for a row that fails ``failed (words,) int64``; ``gained (own,)`` overwritten."""
    n_words = failed.size
    a_own, a_other = 0, 0
    for w in range(n_words):
        a_own += _count_bits(failed[w] & tables.own[leaf, w])
        a_other += _count_bits(failed[w] & ~tables.own[leaf, w])
    gained[:] = 0.0
    lost = 0.0
    j, stop = tables.first[leaf], tables.first[leaf + 1]
    while j < stop:
        b_own, b_other, met = 0, 0, -1
        for w in range(n_words - 1, -1, -1):
            pattern = tables.patterns[j, w]
            if pattern & failed[w]:
                met = w
                break
            b_own += _count_bits(pattern & tables.own[leaf, w])
            b_other += _count_bits(pattern & ~tables.own[leaf, w])
        if met >= 0:
            j = _skip(tables.patterns, j, stop, met, tables.patterns[j, met] & failed[met])
            continue
        weight = tables.share[j] * tables.across[b_other, a_other]
        if a_own > 0:
            lost += weight * tables.within[b_own, a_own - 1]
        if b_own > 0:
            weight *= tables.within[b_own - 1, a_own]
            for p in range(gained.size):
                gained[p] += weight * ((tables.patterns[j, p // WORD] >> np.int64(p % WORD)) & 1)
        j += 1
    for p in range(gained.size):
        if (failed[p // WORD] >> np.int64(p % WORD)) & 1:
            gained[p] = -lost


@jit
def add_patterns(bins, tables, phi):
    """Add the attributions of all leaves to ``phi (outputs, rows, n) float64``; ``bins (used, n)`` unsigned integers, n a multiple of BATCH."""
    n, n_words, leaves = bins.shape[1], tables.patterns.shape[1], tables.leaves
    flat = bins.reshape(-1)
    codes, members, failed = np.empty(n_words * LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype), np.empty(n_words, np.int64)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for leaf in range(leaves.output.size):
            make_patterns(flat, n, row, size, leaves.marks, leaves.start[leaf], leaves.start[leaf + 1], leaves.words, codes, members)
            gained = np.empty(leaves.column[leaf + 1] - leaves.column[leaf])
            for i in range(size):
                for w in range(n_words):
                    failed[w] = codes[w * LOOKUP_ROWS + i]
                _gains(tables, leaf, failed, gained)
                add_gains(leaves, leaf, gained, row + i, phi)
