"""Sets of players that lie together on a path: at every split its own player, with the others above it."""

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from ..arrays.ordering import pack_pairs, unpack_pairs
from ..errors import InvalidParameters
from ..jit.decorator import jit
from .ensemble import TreeEnsemble
from .forest import Forest
from .paths import Trace, find_parents, trace

MOST_ENTRIES = 1 << 25  # sets at all splits: four bytes each in tables, and about forty while they are numbered
MOST_SETS = 1 << 20  # distinct sets: so many numbers has every row of a batch, for each output


class Above(NamedTuple):
    """For every split, the other players above it, the nearest first."""

    start: np.ndarray  # (nodes + 1,) int64, node v's others are start[v]:start[v + 1]; leaves have none
    edge: np.ndarray  # (others,) int32, the node that the other's nearest edge leads to
    player: np.ndarray  # (others,) int32


class SetsAbove(NamedTuple):
    """For every split, the sets of its own player and others above it."""

    players: np.ndarray  # (sets, order) int32: players ascending, then -1; by size, then in lexicographic order
    start: np.ndarray  # (nodes + 1,) int64, node v's sets are row[start[v]:start[v + 1]]
    row: np.ndarray  # int32, which of ``players``: the split's own player, then by size, in the order of combinations of the others above


@jit
def _climb(parent: np.ndarray, player: np.ndarray, n_players: int, start: np.ndarray, edge: np.ndarray, other: np.ndarray) -> None:
    """List the others above every split, the nearest first."""
    met = np.full(n_players, -1, np.int64)  # the last split below a split of each player
    n_found = 0
    for v in range(player.size):
        start[v] = n_found
        if player[v] >= 0:
            met[player[v]] = v
            below, above = v, parent[v]
            while above >= 0:
                if met[player[above]] != v:
                    met[player[above]] = v
                    edge[n_found], other[n_found] = below, player[above]
                    n_found += 1
                below, above = above, parent[above]
    start[player.size] = n_found


def find_above(ensemble: TreeEnsemble, traced: Trace, player: np.ndarray, n_players: int) -> Above:
    """Find the other players above every split.

    Parameters
    ----------
    traced : Trace
        of these players
    player : (nodes,) int32
        of every split, -1 at leaves
    n_players : int
        how many there are
    """
    most = int(traced.level[player >= 0].sum())
    start, edge, other = np.zeros(player.size + 1, np.int64), np.empty(most, np.int32), np.empty(most, np.int32)
    _climb(find_parents(ensemble), player, n_players, start, edge, other)
    return Above(start, edge[: start[-1]], other[: start[-1]])


def _members(above: Above, player: np.ndarray, n_others: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield for each number of others above a split, so many or more, the splits with it, their players, and the others."""
    counts = np.where(player >= 0, np.diff(above.start), -1)
    for n in range(n_others, int(counts.max(initial=-1)) + 1):
        node = np.flatnonzero(counts == n)
        yield node, player[node], above.player[above.start[node][:, None] + np.arange(n)]


def _keys(known: list[np.ndarray], own: np.ndarray, others: np.ndarray, size: int) -> np.ndarray:
    """Number the sets of a size at splits with the same number of others, ``(splits, combinations) int64``: one number for one set."""
    n_others = others.shape[1]
    chosen = np.array([*combinations(range(n_others), size - 1)], np.int64).reshape(comb(n_others, size - 1), size - 1)
    members = np.sort(np.concatenate((np.broadcast_to(own[:, None, None], (own.size, len(chosen), 1)), others[:, chosen]), axis=2), axis=2)
    key = members[:, :, 0].astype(np.int64)
    for k in range(1, size):
        key = pack_pairs(np.searchsorted(known[k - 1], key), members[:, :, k])
    return key


def find_sets(above: Above, player: np.ndarray, order: int) -> SetsAbove:
    """Number the sets of players on a path: at every split those of its own player with others above.

    Parameters
    ----------
    above : Above
    player : (nodes,) int32
        of every split, -1 at leaves
    order : int
        largest size of a set

    Raises
    ------
    InvalidParameters
        there are too many
    """
    n_others = np.diff(above.start)
    of_size = np.array([[comb(n, size - 1) for n in range(int(n_others.max(initial=0)) + 1)] for size in range(1, order + 1)], np.float64)
    n_sets = np.where(player >= 0, of_size.sum(axis=0)[n_others], 0.0)
    said = f"interactions of up to {order} players"
    if n_sets.sum() > MOST_ENTRIES:
        raise InvalidParameters(
            f"{said} have {n_sets.sum():,.0f} sets at the model's splits, expected at most {MOST_ENTRIES:,}; ask for a lower order, or give a "
            "partition of the features"
        )
    start = np.concatenate(([0], np.cumsum(n_sets.astype(np.int64))))
    row, known, players = np.empty(start[-1], np.int32), list[np.ndarray](), [np.zeros((0, order), np.int32)]
    first, before = start[:-1].copy(), 0
    for size in range(1, order + 1):
        found = [(node, _keys(known, own, others, size)) for node, own, others in _members(above, player, size - 1)]
        known.append(np.unique(np.concatenate([np.zeros(0, np.int64), *(np.unique(keys) for _, keys in found)])))
        for node, keys in found:
            row[first[node][:, None] + np.arange(keys.shape[1])] = before + np.searchsorted(known[-1], keys)
            first[node] += keys.shape[1]
        before += known[-1].size
        if before > MOST_SETS:
            raise InvalidParameters(f"{said} have more than {MOST_SETS:,} sets; ask for a lower order, or give a partition of the features")
        players.append(_spell(known, order))
    return SetsAbove(np.concatenate(players), start, row)


def _spell(known: list[np.ndarray], order: int) -> np.ndarray:
    """Return the players of the sets of the largest size known, ``(sets, order) int32``."""
    members = np.full((known[-1].size, order), -1, np.int32)
    keys = known[-1]
    for size in range(len(known), 1, -1):
        shorter, members[:, size - 1] = unpack_pairs(keys)
        keys = known[size - 2][shorter]
    members[:, 0] = keys
    return members


def list_sets(forest: Forest, order: int) -> np.ndarray:
    """List the sets of a forest's players that lie together on a path, ``(sets, order) int32``, see SetsAbove."""
    player = forest.player_of_node
    traced = trace(forest.ensemble, player, forest.n_players)
    return find_sets(find_above(forest.ensemble, traced, player, forest.n_players), player, order).players


def name_sets(forest: Forest, sets: np.ndarray) -> np.ndarray:
    """Turn numbers of a forest's players into those of Prepared.players.

    Parameters
    ----------
    sets : (sets, order) int32, -1 behind smaller sets
    """
    return np.append(forest.players, -1)[sets].astype(np.int32)


def find_rows(players: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Find sets among those that are numbered.

    Parameters
    ----------
    players : (sets, order) int32, see SetsAbove
    members : (m, order) int32, the same way; each is one of them

    Returns
    -------
    rows : (m,) int64
    """
    known, asked = players[:, 0].astype(np.int64), members[:, 0].astype(np.int64)
    for k in range(1, players.shape[1]):
        known, asked = (pack_pairs(key, some[:, k] + 1) for key, some in ((known, players), (asked, members)))
        keys = np.unique(known)
        known, asked = np.searchsorted(keys, known), np.searchsorted(keys, asked)
    by_key = np.argsort(known)
    return by_key[np.searchsorted(known[by_key], asked)]
