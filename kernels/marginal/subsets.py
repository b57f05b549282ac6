"""Sums over subsets, the work of the marginal game: over all sets of players at once, in d 2^d additions.

Wide tables of them, a column for each player, are looked up by subtree. At a leaf with many players two numbers for every set do: with R the players
that the row passes, and p any player,

    phi_p = value * (joined(R) - (joined + without)(R - p))

in the terms of ``marginal``, which is both of its lines: where the row fails p, R - p is R. So such a leaf needs no column for each player, and a
row takes one number more than there are players.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..trees.lookup import LOOKUP_ROWS
from .background import Background, make_patterns
from .coalitions import Leaves, Seen, Weights, add_gains, lay_out_leaves, no_leaves
from .subtrees import Subtrees


class SubsetTables(NamedTuple):
    """Leaves with their sums."""

    leaves: Leaves
    players: np.ndarray  # (leaves,) int64, of the view
    first: np.ndarray  # (leaves,) int64, leaf l's sums are sums[first[l] + R], R a set as a bit mask
    sums: np.ndarray  # (entries, 2) float64: joined, joined + without


@jit
def sum_over_subsets(sums):
    """Replace every set's number by the sum of its subsets'; sets are bit masks."""
    bit = 1
    while bit < sums.size:
        for s in range(sums.size):
            if s & bit:
                sums[s] += sums[s ^ bit]
        bit *= 2


@jit
def sum_coalitions(F, own, n_players, across, within):
    """``without`` and ``joined`` of all sets of players, from the share of background rows that fail just those of each set, which is overwritten."""
    sum_over_subsets(F)
    without, joined = np.zeros(F.size), np.zeros(F.size)
    n_own = 0
    for p in range(n_players):
        n_own += (own >> p) & 1
    for s in range(F.size):
        mine, others = 0, 0
        for p in range(n_players):
            mine += (s & own) >> p & 1
            others += (s & ~own) >> p & 1
        weight = across[others, n_players - n_own - others] * F[s]
        if mine < n_own:
            without[s] = weight * within[mine, n_own - 1 - mine]
        if mine > 0:
            joined[s] = weight * within[mine - 1, n_own - mine]
    sum_over_subsets(without)
    sum_over_subsets(joined)
    return without, joined


def lay_out_subsets(deep: Subtrees, background: Background, seen: Seen, value, output, weights: Weights) -> SubsetTables:
    """Tables of the deep leaves as they are seen."""
    players = np.array([view.n_players for _, view in seen], np.int64)
    ends = np.cumsum(np.append(0, 1 << players))
    sums = np.zeros((ends[-1] * (players.size > 0), 2))
    for leaf, (u, view) in enumerate(seen):
        some = slice(background.start[u], background.start[u + 1])
        masks = np.zeros(some.stop - some.start, np.int64)
        for bit, who in enumerate(view.who.tolist()):
            masks |= (background.patterns[some, 0] >> bit & 1) << who
        times = background.times[some]
        shares = np.bincount(masks, times, minlength=1 << view.n_players) / times.sum()
        without, joined = sum_coalitions(shares, (1 << view.rows.size) - 1, view.n_players, *weights)
        sums[ends[leaf] : ends[leaf + 1], 0] = joined
        sums[ends[leaf] : ends[leaf + 1], 1] = joined + without
    return SubsetTables(lay_out_leaves(deep, seen, value, output), players, ends[:-1], sums)


def no_subsets(words) -> SubsetTables:
    """Tables that add nothing."""
    return SubsetTables(no_leaves(words), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 2)))


@jit
def add_subsets(bins, tables, phi):
    """Add the attributions of all leaves to ``phi (outputs, rows, n) float64``; ``bins (used, n)`` unsigned integers, n a multiple of BATCH."""
    n, leaves = bins.shape[1], tables.leaves
    flat = bins.reshape(-1)
    codes, members = np.empty(LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for leaf in range(tables.first.size):
            make_patterns(flat, n, row, size, leaves.marks, leaves.start[leaf], leaves.start[leaf + 1], leaves.words, codes, members)
            gained = np.empty(leaves.column[leaf + 1] - leaves.column[leaf])
            first, everybody = tables.first[leaf], (1 << tables.players[leaf]) - 1
            for i in range(size):
                passed = everybody & ~codes[i]
                joined = tables.sums[first + passed, 0]
                for p in range(gained.size):
                    gained[p] = joined - tables.sums[first + (passed & ~(1 << p)), 1]
                add_gains(leaves, leaf, gained, row + i, phi)
