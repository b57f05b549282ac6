"""Sums over the subsets of all sets of d players at once, in d 2^d additions: the marginal game's tables.

With F(S) the share of background rows that fail nobody outside S, and w the weights of a game value, let

    joined(R) = sum over S in R of w(S less one player) F(S)        without(R) = sum over S in R of w(S) F(S)

Then for R, the players of a leaf that a row passes, and any player p (this joins the two formulas of ``game``, since R - p is R where the row fails
p),

    phi_p = value * (joined(R) - (joined + without)(R - p))

The interaction of two players (Grabisch and Roubens 1999) is a sum over the sets without both. With w the weights of the game in which the pair is
one player, and joined and twice the sums with the weights of sets less one player and less two, the same steps give

    I_pq = value * (twice(R) - (twice + joined)(R - p) - (twice + joined)(R - q) + (twice + 2 joined + without)(R - p - q))

Subtrees have tables made from these sums, with a column for each player or pair. Deep leaves with many players store the sums of every set instead of
columns; a row then reads one number more than there are players, or four for each pair.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..trees.lookup import LOOKUP_ROWS, make_codes
from .background import Background
from .coalitions import Leaves, Seen, Weights, add_gains, count_rows, lay_out_leaves, no_leaves, view_patterns
from .subtrees import Subtrees


class SubsetTables(NamedTuple):
    """Deep leaves with their sums over subsets."""

    leaves: Leaves
    players: np.ndarray  # (leaves,) int64, players of each leaf's view
    first: np.ndarray  # (leaves,) int64, leaf l's sums are sums[first[l] + R], R a set as a bit mask
    sums: np.ndarray  # (entries, 2) float64: joined, joined + without; of pairs (entries, 3), see sum_pairs


@jit
def sum_over_subsets(sums: np.ndarray) -> None:
    """Replace every set's number by the sum over its subsets, itself included."""
    bit = 1
    while bit < sums.size:
        for s in range(sums.size):
            if s & bit:
                sums[s] += sums[s ^ bit]
        bit *= 2


@jit
def sum_coalitions(F: np.ndarray, own: int, n_players: int, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """Sum over the subsets of every set of players."""
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
        weight = weights.across[others, n_players - n_own - others] * F[s]
        if mine < n_own:
            without[s] = weight * weights.within[mine, n_own - 1 - mine]
        if mine > 0:
            joined[s] = weight * weights.within[mine - 1, n_own - mine]
    sum_over_subsets(without)
    sum_over_subsets(joined)
    return without, joined


@jit
def sum_pairs(F: np.ndarray, n_players: int, within: np.ndarray) -> np.ndarray:
    """Sum over the subsets of every set of players, for pairwise interactions."""
    sum_over_subsets(F)
    sums = np.zeros((3, F.size))
    for s in range(F.size):
        size = 0
        for p in range(n_players):
            size += s >> p & 1
        for taken in range(3):  # number of the pair's players that the weight does not count
            if 0 <= size - taken <= n_players - 2:
                sums[taken, s] = within[size - taken, n_players - 2 - (size - taken)] * F[s]
    for each in sums:
        sum_over_subsets(each)
    without, joined, twice = sums
    found = np.empty((F.size, 3))
    found[:, 0], found[:, 1], found[:, 2] = twice, twice + joined, twice + 2.0 * joined + without
    return found


def lay_out_subsets(deep: Subtrees, background: Background, seen: Seen, value: np.ndarray, output: np.ndarray, weights: Weights) -> SubsetTables:
    """Make the tables of deep leaves for the given views."""
    players = np.array([view.n_players for _, view in seen], np.int64)
    ends = np.cumsum(np.append(0, 1 << players))
    sums = np.zeros((ends[-1] * (players.size > 0), 2))
    for leaf, (u, view) in enumerate(seen):
        patterns, times = view_patterns(background, u, view)
        shares = np.bincount(patterns[:, 0], times, minlength=1 << view.n_players) / count_rows(background, u)
        without, joined = sum_coalitions(shares, (1 << view.rows.size) - 1, view.n_players, weights)
        sums[ends[leaf] : ends[leaf + 1], 0] = joined
        sums[ends[leaf] : ends[leaf + 1], 1] = joined + without
    return SubsetTables(lay_out_leaves(deep, seen, value, output), players, ends[:-1], sums)


def no_subsets(words: np.ndarray) -> SubsetTables:
    """Make tables without leaves.

    Parameters
    ----------
    words : uint32
        the model's category sets, as ``no_leaves`` takes them
    """
    return SubsetTables(no_leaves(words), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, 2)))


@jit
def add_subsets(bins: np.ndarray, tables: SubsetTables, phi: np.ndarray) -> None:
    """Add the attributions of all leaves.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    phi : (outputs, rows, n) float64, margin units
    """
    n, leaves = bins.shape[1], tables.leaves
    flat = bins.reshape(-1)
    codes, members = np.empty(LOOKUP_ROWS, np.int64), np.empty(LOOKUP_ROWS, bins.dtype)
    for row in range(0, n, LOOKUP_ROWS):
        size = min(LOOKUP_ROWS, n - row)
        for leaf in range(tables.first.size):
            make_codes(flat, n, row, size, leaves, leaf, codes, members)
            gained = np.empty(leaves.column[leaf + 1] - leaves.column[leaf])
            first, everybody = tables.first[leaf], (1 << tables.players[leaf]) - 1
            for i in range(size):
                passed = everybody & ~codes[i]
                joined = tables.sums[first + passed, 0]
                for p in range(gained.size):
                    gained[p] = joined - tables.sums[first + (passed & ~(1 << p)), 1]
                add_gains(leaves, leaf, gained, row + i, phi)
