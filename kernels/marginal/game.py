"""The marginal game: absent features take the values of background rows, averaged over all of them.

v(S) = mean over background rows b of f(x where S is present, b elsewhere) (Filom et al. 2024, Def. 2.2). If the row passes all of a leaf's players in
S, the leaf counts with its value times the share of background rows that pass all its players outside S. So the background enters only by how many of
its rows fail which of a leaf's players: a histogram over patterns, additive over parts of the background. With F(S) the share of background rows that
fail nobody outside S, R the players that the row passes, and w the game value's weights,

    phi_p = - value * sum over S in R of w(S) F(S)                                  where the row fails p
    phi_p =   value * sum over S in R - p of w(S) (F(S + p) - F(S))                 where it passes p

so phi depends on the row by R alone, and a leaf's table for all R comes from sums over subsets, in d 2^d additions (see ``subsets``). Leaves of a
subtree share one look-up (see ``subtrees``). Leaves with too many players keep two sums for each R, those with yet more players a list of patterns
(see ``patterns``).

A value of a partition is a game in which the other groups are single players, and w(S) is the product of two weights: by the number of other groups,
and of own players, in S. Owen's value, both parts of Kamijo's two-step value and asymmetric values are views of the same subtrees (see
``coalitions``).
"""

from typing import NamedTuple

import numpy as np

from ..game_values import Weighing
from ..jit.decorator import jit
from ..trees.forest import Forest
from ..trees.lookup import LookupTables, end_to_end, padded_width
from .background import Background, first_codes, n_words
from .coalitions import View, Views, Weights
from .patterns import PatternTables, lay_out_patterns
from .subsets import SubsetTables, lay_out_subsets, sum_coalitions
from .subtrees import EDGE_BIT, EDGE_OUTCOME, EDGE_PLAYER, Partitioning, Subtrees
from .whole_trees import fill_whole, is_whole, values_by_code


class Levels(NamedTuple):
    """A coalitional value: weights of coalitions of groups (None without other groups), and within a group."""

    across: Weighing | None
    within: Weighing


@jit
def find_failures(
    subtrees: Subtrees, u: int, leaf: int, who: np.ndarray, shares: np.ndarray, local: np.ndarray, masks: np.ndarray
) -> tuple[int, np.ndarray]:
    """Find which of a leaf's players are failed by rows with each code, and the share of background rows that fail these and no absent player.

    Parameters
    ----------
    who : (players,) int64
        as View.who
    shares : (codes,) float64
        of background rows
    local : (players,) int64, overwritten
        numbers of the quotient's players at this leaf, -1 of those that it does not ask
    masks : (codes,) int64, overwritten
        sets of failed players, as bits

    Returns
    -------
    d : int
        how many players the leaf has
    F : (2**d,) float64
        share of each set of them
    """
    n_above, leaves = subtrees.n_above[u], subtrees.leaves
    edges = leaves.edges[leaves.edge_start[leaf] : leaves.edge_start[leaf + 1]]
    local[:] = -1
    d = 0
    for e in range(-n_above, edges.shape[0]):  # players of splits above, then those of the leaf's edges
        player = who[edges[e, EDGE_PLAYER] if e >= 0 else e + n_above]
        if player >= 0 and local[player] < 0:
            local[player] = d
            d += 1
    F = np.zeros(1 << d)
    for code in range(shares.size):
        mask, arrives = 0, True
        for e in range(-n_above, edges.shape[0]):
            if e < 0:
                fails = (code >> (e + n_above)) & 1 == 1
                player = who[e + n_above]
            else:
                fails = (code >> edges[e, EDGE_BIT]) & 1 != edges[e, EDGE_OUTCOME]
                player = who[edges[e, EDGE_PLAYER]]
            if fails and player >= 0:
                mask |= 1 << local[player]
            elif fails:
                arrives = False
        masks[code] = mask
        if arrives:
            F[mask] += shares[code]
    return d, F


@jit
def _fill(subtrees: Subtrees, u: int, shares: np.ndarray, who: np.ndarray, weights: Weights, value: np.ndarray, table: np.ndarray) -> None:
    """Add all leaves of subtree u, in one view, to a table."""
    n_codes, _, n_own = table.shape
    leaves = subtrees.leaves
    local, masks = np.empty(who.size, np.int64), np.empty(n_codes, np.int64)
    for leaf in range(leaves.start[u], leaves.start[u + 1]):
        d, F = find_failures(subtrees, u, leaf, who, shares, local, masks)
        own = 0
        for player in range(n_own):
            if local[player] >= 0:
                own |= 1 << local[player]
        everybody = (1 << d) - 1
        without, joined = sum_coalitions(F, own, d, weights)
        for code in range(n_codes):
            passed = everybody & ~masks[code]
            for player in range(n_own):
                p = local[player]
                if p < 0:
                    continue
                rest = passed & ~(1 << p)
                phi = joined[passed] - (joined[rest] + without[rest])
                for k in range(table.shape[1]):
                    table[code, k, player] += phi * value[leaves.node[leaf], k]


def _make_table(subtrees: Subtrees, u: int, shares: np.ndarray, view: View, weights: Weights, value: np.ndarray) -> np.ndarray:
    """Make the table of subtree u in one view, ``(codes, width, own)``."""
    if is_whole(subtrees, u):
        return fill_whole(subtrees, u, shares, view, weights, value)
    table = np.zeros((shares.size, value.shape[1], view.rows.size))
    _fill(subtrees, u, shares, view.who, weights, value, table)
    return table


class MarginalGame(NamedTuple):
    """A model with a background."""

    forest: Forest
    partitioning: Partitioning
    background: Background
    player_group: np.ndarray  # (players,) int32, group of each of the partitioning's players
    summed_bits: int  # deep leaves with at most this many players keep sums over subsets; others keep patterns

    def _views(self, subtrees: Subtrees, u: int, views: Views) -> list[View]:
        players = subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]]
        return views(players, self.player_group[players])

    def shares(self, u: int, first: np.ndarray) -> np.ndarray:
        """Return the share of background rows with each code of a coded subtree.

        Parameters
        ----------
        first : (subtrees + 1,) int64
            as ``first_codes`` returns it

        Returns
        -------
        (codes,) float64
        """
        counts = self.background.counts[first[u] : first[u + 1]]
        return counts / self.background.total(counts)

    def play(self, views: Views, levels: Levels, n_rows: int) -> tuple[LookupTables, SubsetTables, PatternTables]:
        """Make the tables of all subtrees for the given views.

        Parameters
        ----------
        views : callable
            how a subtree's players are seen: ``everyone``, ``whole_groups`` or ``each_group``
        levels : Levels
            the game value
        n_rows : int
            rows of phi, for each output

        Returns
        -------
        looked_up, subsets, patterns : LookupTables, SubsetTables, PatternTables
            of coded subtrees; of deep leaves with at most ``summed_bits`` players; of the others. What each adds is to be added up
        """
        coded, deep = self.partitioning
        ensemble, tree = self.forest.ensemble, self.forest.trace.tree
        most = int(max(np.diff(coded.player_start).max(initial=1), np.diff(deep.player_start).max(initial=1))) + 1
        weights = Weights(np.ones((1, 1)) if levels.across is None else levels.across(most), levels.within(most))
        width, first = ensemble.value.shape[1], first_codes(coded)
        targets, tables = [], []
        for u in range(coded.size):
            shares, rows, columns = self.shares(u, first), [], []
            for view in self._views(coded, u, views):
                rows.append(view.rows)
                columns.append(_make_table(coded, u, shares, view, weights, ensemble.value))
            tables.append(np.concatenate(columns, axis=2).reshape(shares.size, -1))
            output = ensemble.output[tree[coded.leaves.node[coded.leaves.start[u]]]]
            targets.append(np.concatenate([(output + k) * n_rows + row for k in range(width) for row in rows]))
        seen = [(u, view) for u in range(deep.size) for view in self._views(deep, u, views)]
        summed = [(u, view) for u, view in seen if view.n_players <= self.summed_bits]
        listed = [(u, view) for u, view in seen if view.n_players > self.summed_bits]
        of_leaves = (ensemble.value, ensemble.output[tree[deep.leaves.node]], weights)
        return (
            end_to_end(coded.marks, coded.start, targets, tables, coded.words),
            lay_out_subsets(deep, self.background, summed, *of_leaves),
            lay_out_patterns(deep, self.background, listed, *of_leaves),
        )

    def mean_margin(self) -> np.ndarray:
        """Compute the background's mean margin: the value of the empty coalition.

        Computed from the counts, so that it does not depend on how the background was split for counting.
        """
        coded, deep = self.partitioning
        ensemble, first = self.forest.ensemble, first_codes(coded)
        total, output = ensemble.base.astype(np.float64), ensemble.output[self.forest.trace.tree]
        for u in range(coded.size):
            if is_whole(coded, u):
                k = output[coded.leaves.node[coded.leaves.start[u]]]
                total[k : k + ensemble.value.shape[1]] += (values_by_code(coded, u, ensemble.value) * self.shares(u, first)).sum(axis=1)
                continue
            _add_mean(coded, u, self.shares(u, first), ensemble.value, output, total)
        for u in range(deep.size):
            some = slice(self.background.start[u], self.background.start[u + 1])
            nobody = ~self.background.patterns[some].any(axis=1)
            times, leaf = self.background.times[some], deep.leaves.node[u]
            for k, value in enumerate(ensemble.value[leaf]):
                total[output[leaf] + k] += value * (times[nobody].sum() / times.sum())
        return total


@jit
def _add_mean(subtrees: Subtrees, u: int, shares: np.ndarray, value: np.ndarray, output: np.ndarray, out: np.ndarray) -> None:
    """Add every leaf of subtree u, weighted by the share of rows that reach it."""
    leaves = subtrees.leaves
    for leaf in range(leaves.start[u], leaves.start[u + 1]):
        reached = 0.0
        for code in range(shares.size):
            fails = (code & ((1 << subtrees.n_above[u]) - 1)) > 0
            for e in range(leaves.edge_start[leaf], leaves.edge_start[leaf + 1]):
                fails |= (code >> leaves.edges[e, EDGE_BIT]) & 1 != leaves.edges[e, EDGE_OUTCOME]
            if not fails:
                reached += shares[code]
        for k in range(value.shape[1]):
            out[output[leaves.node[leaf]] + k] += reached * value[leaves.node[leaf], k]


def table_bytes(partitioning: Partitioning, n_rows: int, views: Views, player_group: np.ndarray, width: int, summed_bits: int) -> int:
    """Bound the size in bytes of the tables of ``MarginalGame.play``, before the background is known."""
    total = 0
    for subtrees, coded in ((partitioning.coded, True), (partitioning.deep, False)):
        for u, bits in enumerate(subtrees.bits.tolist()):
            players = subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]]
            seen = views(players, player_group[players])
            n_columns, n_marks = width * sum(view.rows.size for view in seen), int(subtrees.start[u + 1] - subtrees.start[u])
            if coded:
                total += (8 * padded_width(n_columns) << bits) + 20 * n_marks + 4 * n_columns + 28
                continue
            total += len(seen) * (20 * n_marks + 8 * width + 44) + 4 * n_columns
            for n_players in (view.n_players for view in seen):
                total += 16 << n_players if n_players <= summed_bits else 8 * (n_words(subtrees) + 1) * min(n_rows, 1 << n_players)
    return total + 8 * 2 * (int(np.diff(partitioning.deep.player_start).max(initial=0)) + 2) ** 2
