"""The marginal game with players present at given probabilities, or joining one by one, as rankings need.

With F(S) the share of background rows that fail nobody outside S, and R the players of a leaf that the row passes, the leaf contributes its value
times F(S) to v(S) if S lies within R, and nothing otherwise (see ``game``). F is stored for every set of a leaf's players. The expected margin with
player p present with probability z_p (the multilinear extension, Owen 1972) eliminates one player after the other,

    F(S) <- (1 - z_p) F(S) + [p in R] z_p F(S + p)        S without p

in 2^d additions for d players; derivatives take the same steps backwards.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import frozen, jit
from ..trees.lookup import make_codes
from .background import Background
from .coalitions import Leaves, View, lay_out_leaves, view_patterns
from .game import MarginalGame
from .subsets import sum_over_subsets

ROWS = 64  # rows of data in a block; buffers have a multiple of them


class PresenceTables(NamedTuple):
    """All leaves that depend on a player, with the background shares of their players' sets."""

    leaves: Leaves
    players: np.ndarray  # (leaves,) int64, number of players of each leaf
    first: np.ndarray  # (leaves,) int64, leaf l's shares are share[first[l] + S], S a set as a bit mask
    share: np.ndarray  # float64, F
    base: np.ndarray  # (outputs,) float64, margin units, value of the empty coalition


def _share(background: Background, u: int, view: View) -> np.ndarray:
    """Return F of every set of deep leaf u's players, ``(2**players,)``."""
    patterns, times = view_patterns(background, u, view)
    share = np.bincount(patterns[:, 0], times, minlength=1 << view.n_players) / times.sum()
    sum_over_subsets(share)
    return share


def lay_out_presence(game: MarginalGame) -> PresenceTables:
    """Make the tables of a game whose leaves are all deep.

    Returns
    -------
    PresenceTables
        contiguous and read-only
    """
    deep, ensemble = game.partitioning.deep, game.forest.ensemble
    groups = [deep.player[deep.player_start[u] : deep.player_start[u + 1]] for u in range(deep.size)]
    seen = [(u, View(np.arange(players.size), players)) for u, players in enumerate(groups)]
    players = np.array([view.n_players for _, view in seen], np.int64)
    return frozen(
        PresenceTables(
            leaves=lay_out_leaves(deep, seen, ensemble.value, ensemble.output[game.forest.trace.tree[deep.leaves.node]]),
            players=players,
            first=np.cumsum(np.append(0, 1 << players))[:-1],
            share=np.concatenate([np.zeros(0), *(_share(game.background, u, view) for u, view in seen)]),
            base=game.mean_margin(),
        )
    )


@jit
def read_codes(bins: np.ndarray, tables: PresenceTables, row: int, codes: np.ndarray) -> None:
    """Find which players rows fail at every leaf.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    row : int
        the first of ROWS rows
    codes : (leaves, ROWS) int64
        a bit for each of a leaf's players; overwritten
    """
    n, flat = bins.shape[1], bins.reshape(-1)
    some, members = np.empty(ROWS, np.int64), np.empty(ROWS, bins.dtype)  # patterns have one word here
    for leaf in range(tables.first.size):
        make_codes(flat, n, row, ROWS, tables.leaves, leaf, some, members)
        codes[leaf] = some[:ROWS]


@jit
def _contract(tables: PresenceTables, leaf: int, failed: int, z: np.ndarray, sums: np.ndarray) -> float:
    """Eliminate a leaf's players from F, the highest bit first, and return the last value; ``sums[1 << p : 2 << p]`` is left after player p."""
    d, first = tables.players[leaf], tables.first[leaf]
    for p in range(d - 1, -1, -1):
        half = 1 << p
        there = 0.0 if (failed >> p) & 1 else z[p]
        for s in range(half):
            if p == d - 1:
                absent, present = tables.share[first + s], tables.share[first + s + half]
            else:
                absent, present = sums[2 * half + s], sums[3 * half + s]
            sums[half + s] = (1.0 - z[p]) * absent + there * present
    return sums[1]


@jit
def _differentiate(tables: PresenceTables, leaf: int, failed: int, z: np.ndarray, sums: np.ndarray, back: np.ndarray, out: np.ndarray) -> None:
    """Write the derivatives of ``_contract``'s result by every player to ``out (players,)``; ``back`` is scratch of the size of ``sums``."""
    d, first = tables.players[leaf], tables.first[leaf]
    back[1] = 1.0
    for p in range(d):
        half, passes = 1 << p, (failed >> p) & 1 == 0
        gained = 0.0
        for s in range(half):
            if p == d - 1:
                absent, present = tables.share[first + s], tables.share[first + s + half]
            else:
                absent, present = sums[2 * half + s], sums[3 * half + s]
                back[2 * half + s] = back[half + s] * (1.0 - z[p])
                back[3 * half + s] = back[half + s] * z[p] if passes else 0.0
            gained += back[half + s] * ((present if passes else 0.0) - absent)
        out[p] = gained


@jit
def add_gradient(tables: PresenceTables, codes: np.ndarray, k: int, z: np.ndarray, weight: float, g: np.ndarray, margin: np.ndarray) -> None:
    """Add a weighted expected margin at z of one output, and its derivatives.

    Parameters
    ----------
    codes : (leaves, ROWS) int64, as ``read_codes`` found them
    k : int
        output
    z : (players * ROWS,) float64
        probabilities with which players are present, those of one player side by side
    weight : float
        the part
    g : (players * ROWS,) float64, margin units
        derivatives, added to
    margin : (ROWS,) float64, margin units
        expected margins less that of the empty coalition's constants, added to
    """
    most = 0
    for d in tables.players:
        most = max(most, d)
    sums, back, at, out = np.empty(1 << most), np.empty(1 << most), np.empty(most), np.empty(most)
    leaves = tables.leaves
    for leaf in range(tables.first.size):
        column, d, start = k - leaves.output[leaf], tables.players[leaf], leaves.column[leaf]
        if column < 0 or column >= leaves.value.shape[1] or leaves.value[leaf, column] == 0.0:
            continue
        value = weight * leaves.value[leaf, column]
        for i in range(ROWS):
            for p in range(d):
                at[p] = z[leaves.target[start + p] * ROWS + i]
            margin[i] += value * _contract(tables, leaf, codes[leaf, i], at, sums)
            _differentiate(tables, leaf, codes[leaf, i], at, sums, back, out)
            for p in range(d):
                g[leaves.target[start + p] * ROWS + i] += value * out[p]


def add_expectations(bins: np.ndarray, tables: PresenceTables, z: np.ndarray, phi: np.ndarray, margin: np.ndarray) -> None:
    """Add the expected margin at every row's own point, and its derivatives.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    z : (outputs, players, n) float64, probabilities with which players are present
    phi : (outputs, players, n) float64, margin units
        derivatives, added to
    margin : (outputs, n) float64, margin units
        added to
    """
    codes, n_players, width = np.zeros((tables.first.size, ROWS), np.int64), z.shape[1], tables.leaves.value.shape[1]
    nobody = tables.leaves.value * tables.share[tables.first][:, None]  # what leaves contribute to the empty coalition
    at_nobody = np.bincount((tables.leaves.output[:, None] + np.arange(width)).ravel(), nobody.ravel(), minlength=tables.base.size)
    for row in range(0, bins.shape[1], ROWS):
        read_codes(bins, tables, row, codes)
        some = slice(row, row + ROWS)
        for k in range(tables.base.size):
            g, found = np.zeros(n_players * ROWS), np.zeros(ROWS)
            add_gradient(tables, codes, k, np.ascontiguousarray(z[k, :, some]).reshape(-1), 1.0, g, found)
            phi[k, :, some] += g.reshape(-1, ROWS)
            margin[k, some] += found + (tables.base[k] - at_nobody[k])


@jit
def _sort(stop: np.ndarray, order: np.ndarray) -> None:
    """Sort players by when they join, ``stop (players,)``, into ``order``."""
    for p in range(stop.size):
        at = p
        while at > 0 and stop[order[at - 1]] > stop[p]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = p


@jit
def _join(
    tables: PresenceTables, leaf: int, failed: int, order: np.ndarray, stop: np.ndarray, backwards: bool, value: float, steps: np.ndarray
) -> None:
    """Add a leaf's changes to ``steps (points,)`` as its players join in an order or in the reverse order."""
    first, joined = tables.first[leaf], 0
    last = tables.share[first]
    for q in range(order.size):
        p = order[order.size - 1 - q] if backwards else order[q]
        joined |= 1 << p
        now = 0.0 if failed & joined else tables.share[first + joined]
        steps[steps.size - stop[p] if backwards else stop[p]] += value * (now - last)
        last = now


@jit
def add_steps(bins: np.ndarray, tables: PresenceTables, place: np.ndarray, steps: np.ndarray) -> None:
    """Add the change of every step when players join in the order of a ranking, and in the reverse order.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    place : (outputs, players, n) int64
        places of players in the ranking of each output, from 1
    steps : (outputs, 2, n, all players + 1) float64, margin units
        by how many players are present, insertion's and deletion's; added to
    """
    n, leaves, most = bins.shape[1], tables.leaves, 0
    for d in tables.players:
        most = max(most, d)
    codes, stops, orders = np.empty((tables.first.size, ROWS), np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    for row in range(0, n, ROWS):
        read_codes(bins, tables, row, codes)
        for leaf in range(tables.first.size):
            start, d = leaves.column[leaf], tables.players[leaf]
            stop, order = stops[:d], orders[:d]
            for i in range(ROWS):
                for column in range(leaves.value.shape[1]):
                    k, value = leaves.output[leaf] + column, leaves.value[leaf, column]
                    for p in range(d):
                        stop[p] = place[k, leaves.target[start + p], row + i]
                    _sort(stop, order)
                    _join(tables, leaf, codes[leaf, i], order, stop, False, value, steps[k, 0, row + i])
                    _join(tables, leaf, codes[leaf, i], order, stop, True, value, steps[k, 1, row + i])
