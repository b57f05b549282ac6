"""How many background rows pass everything that a leaf's path asks, but for the players of a set: counted, or by the trees' covers.

A leaf's share where a set of players is free is N(rows that fail nobody outside of the set)/n, a sum over four entries at most of the histogram of
who is failed, which a background's counts have. By covers it is the product of the cover ratios at the splits of other players (scikit-learn's method
"recursion"; Friedman 2001, Section 8.2).
"""

import numpy as np

from ..jit.decorator import jit
from ..marginal.background import Background, first_codes
from ..marginal.subtrees import EDGE_BIT, EDGE_OUTCOME, EDGE_PLAYER, Partitioning, Subtrees
from ..trees.forest import Forest
from ..trees.lookup import WORD_BITS
from .axes import Nodes


@jit
def _add_sets(F: np.ndarray, local: np.ndarray, sets: np.ndarray, node: int, out: np.ndarray) -> None:
    """Write, for every set of players, how many rows fail nobody outside of it, from ``F (lots, masks of failed local players)``."""
    for k in range(sets.shape[0]):
        a = 1 << local[sets[k, 0]] if local[sets[k, 0]] >= 0 else 0
        b = 1 << local[sets[k, 1]] if sets[k, 1] >= 0 and local[sets[k, 1]] >= 0 else 0
        for lot in range(F.shape[0]):
            total = F[lot, 0]
            if a > 0:
                total += F[lot, a]
            if b > 0:
                total += F[lot, b]
            if a > 0 and b > 0:
                total += F[lot, a | b]
            out[lot, k, node] = total


@jit
def _count_coded(subtrees: Subtrees, first: np.ndarray, counts: np.ndarray, sets: np.ndarray, local: np.ndarray, out: np.ndarray) -> None:
    """Write the rows of every leaf of coded subtrees to ``out (lots, sets, nodes)``; ``counts (lots, codes of all subtrees)``."""
    leaves = subtrees.leaves
    for u in range(first.size - 1):
        n_above, players = subtrees.n_above[u], subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]]
        for leaf in range(leaves.start[u], leaves.start[u + 1]):
            edges = leaves.edges[leaves.edge_start[leaf] : leaves.edge_start[leaf + 1]]
            d = 0
            for e in range(-n_above, edges.shape[0]):
                player = players[edges[e, EDGE_PLAYER] if e >= 0 else e + n_above]
                if local[player] < 0:
                    local[player] = d
                    d += 1
            F = np.zeros((counts.shape[0], 1 << d))
            for code in range(first[u + 1] - first[u]):
                mask = code & ((1 << n_above) - 1)  # players above are the first, and failed by the lowest bits
                for e in range(edges.shape[0]):
                    if (code >> edges[e, EDGE_BIT]) & 1 != edges[e, EDGE_OUTCOME]:
                        mask |= 1 << local[players[edges[e, EDGE_PLAYER]]]
                for lot in range(counts.shape[0]):
                    F[lot, mask] += counts[lot, first[u] + code]
            _add_sets(F, local, sets, leaves.node[leaf], out)
            for player in players:
                local[player] = -1


@jit
def _count_deep(subtrees: Subtrees, lot: int, start: np.ndarray, patterns: np.ndarray, times: np.ndarray, sets: np.ndarray, out: np.ndarray) -> None:
    """Write one lot's rows of every deep leaf, from its patterns of failed players."""
    failed = np.empty(2, np.int64)
    for u in range(start.size - 1):
        players, node = subtrees.player[subtrees.player_start[u] : subtrees.player_start[u + 1]], subtrees.leaves.node[u]
        for j in range(start[u], start[u + 1]):
            n_failed = 0
            for p in range(players.size):
                if (patterns[j, p // WORD_BITS] >> np.int64(p % WORD_BITS)) & 1 == 1:
                    if n_failed < 2:
                        failed[n_failed] = players[p]
                    n_failed += 1
            if n_failed > 2:
                continue
            for k in range(sets.shape[0]):
                outside = False
                for f in range(n_failed):
                    outside |= failed[f] != sets[k, 0] and failed[f] != sets[k, 1]
                if not outside:
                    out[lot, k, node] += times[j]


def count_shares(partitioning: Partitioning, lots: tuple[Background, ...], n_players: int, sets: np.ndarray, n_nodes: int) -> np.ndarray:
    """Count, for every leaf, the background rows that pass all of its path but what it asks of a set's players.

    Parameters
    ----------
    lots : tuple of Background
        disjoint parts of the background
    n_players : int
        of the partitioning
    sets : (sets, 2) int64
        players; -1 where there is one alone, or none

    Returns
    -------
    (lots, sets, nodes) float64
        whole numbers of rows, or sums of weights; 0 at splits
    """
    coded, deep = partitioning
    out, local = np.zeros((len(lots), len(sets), n_nodes)), np.full(n_players + 1, -1, np.int64)  # the last for player -1
    counts = np.stack([lot.counts for lot in lots]).astype(np.float64)
    _count_coded(coded, first_codes(coded), counts, sets, local, out)
    for k, lot in enumerate(lots):
        _count_deep(deep, k, lot.start, lot.patterns, lot.times.astype(np.float64), sets, out)
    return out


def as_shares(partitioning: Partitioning, weights: Background) -> Background:
    """Scale the model's own leaf weights, of which trees may have different sums, to add up to one at every subtree."""
    first, start = first_codes(partitioning.coded), weights.start
    of_coded, of_deep = (
        np.repeat(np.add.reduceat(values, starts[:-1]) if starts.size > 1 else np.ones(0), np.diff(starts))
        for values, starts in ((weights.counts, first), (weights.times, start))
    )
    return weights._replace(counts=weights.counts / of_coded, times=weights.times / of_deep)


@jit
def _weigh(nodes: Nodes, player: np.ndarray, cover: np.ndarray, sets: np.ndarray, out: np.ndarray) -> None:
    """Write every node's product of cover ratios at splits of players outside of each set to ``out (sets, nodes)``."""
    for v in nodes.order:
        parent = nodes.parent[v]
        for k in range(sets.shape[0]):
            if parent < 0:
                out[k, v] = 1.0
                continue
            both = cover[nodes.left[parent]] + cover[nodes.right[parent]]
            ratio = cover[v] / both if both > 0 else 0.5
            free = player[parent] == sets[k, 0] or player[parent] == sets[k, 1]
            out[k, v] = out[k, parent] * (1.0 if free else ratio)


def weigh_shares(forest: Forest, nodes: Nodes, sets: np.ndarray) -> np.ndarray:
    """Weigh every leaf by covers where a set's players are free: an even half where no training weight came.

    Parameters
    ----------
    sets : (sets, 2) int64
        as ``count_shares`` takes them

    Returns
    -------
    (1, sets, nodes) float64
    """
    out = np.zeros((1, len(sets), nodes.feature.size))
    _weigh(nodes, forest.player_of_node, forest.ensemble.cover, sets, out[0])
    return out
