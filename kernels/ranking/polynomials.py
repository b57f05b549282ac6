"""The ascent's objective for looked-up trees, as a polynomial for every combination of outcomes of comparisons.

f(z) is linear in every player's probability, so h = (f(z) - f(1 - z)) / 2 is linear in every x = z - 1/2, and odd in all of them: for a tree with d
players a sum of 2^(d - 1) products of odd numbers of distinct x,

    h = sum over sets R of the players but the last of c_R x^R, times the last player's x where |R| is even.

The c_R depend on a row only through the outcomes of the tree's comparisons, see ``lookup``. The sum is folded player by player, with derivatives by
reverse accumulation: about four products per c_R, where ``gradient`` walks all nodes at two points.
"""

import itertools
from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..jit.lanes import LANES, QUAD, load, splat, store, take
from ..path_dependent.multilinear import trees_by_output
from ..trees.forest import Forest
from ..trees.lookup import MAX_COMPARISONS, LookupTables, look_up, make_codes, make_starts, worth_looking_up

ROWS = 512  # rows of data per read of a tree's table
EVEN = np.array([number.bit_count() % 2 == 0 for number in range(1 << MAX_COMPARISONS)])


class PolynomialTables(NamedTuple):
    """Trees of every output; trees with a leaf value for each output occur once for each."""

    looked_up: LookupTables  # rows of coefficients, see ``_width``; targets are a tree's players, the last of them not in R
    output: np.ndarray  # (outputs + 1,) int64, output k's tables are output[k]:output[k + 1]


@jit
def _width(n_players: int) -> int:
    """Return the numbers in a row of a table: coefficients padded to quads."""
    return max(1 << (n_players - 1), QUAD)


@jit
def _expect(left: np.ndarray, right: np.ndarray, share: np.ndarray, player: np.ndarray, number: np.ndarray, value: np.ndarray) -> None:
    """Compute the expected margin for every combination of outcomes and every set of a tree's players."""
    for v in range(left.size - 1, -1, -1):
        if left[v] < 0:
            continue
        for code in range(value.shape[1]):
            chosen = left[v] if code >> number[v] & 1 else right[v]
            for s in range(value.shape[2]):
                absent = share[v] * value[left[v], code, s] + (1 - share[v]) * value[right[v], code, s]
                value[v, code, s] = value[chosen, code, s] if s >> player[v] & 1 else absent


def _coefficients(value: np.ndarray, n_players: int) -> np.ndarray:
    """Return c_R for every code, ``(codes, width)``, from ``value (codes, sets)``."""
    for j in range(n_players):
        halves = value.reshape(len(value), -1, 2, 1 << j)  # without player j, and with it
        value = np.stack((halves.mean(axis=2), halves[:, :, 1] - halves[:, :, 0]), axis=2)
    sets = np.arange(1 << (n_players - 1))
    odd = value.reshape(len(value), -1)[:, sets + (EVEN[sets].astype(np.int64) << (n_players - 1))]
    return np.pad(odd, ((0, 0), (0, _width(n_players) - odd.shape[1])))


def prepare_polynomials(forest: Forest) -> PolynomialTables:
    """Make the polynomials of all trees, or none if any tree is not worth looking up."""
    ensemble, order, n_trees = forest.ensemble, forest.trace.order, forest.ensemble.root.size
    tree, column, output, _ = trees_by_output(ensemble)
    start = np.concatenate(([0], np.cumsum(np.bincount(forest.trace.tree, minlength=n_trees))))
    player = forest.player_of_node[order]
    players = [np.unique(player[a:b][player[a:b] >= 0]) for a, b in itertools.pairwise(start)]
    # A tree has at least as many comparisons as players: with more players than this it is not looked up.
    n_columns = np.array([1 << min(max(some.size - 1, 0), MAX_COMPARISONS) for some in players], np.int64)
    if not worth_looking_up(forest.comparisons, np.diff(start), n_columns)[tree].all():
        tree, column, output = tree[:0], column[:0], np.zeros_like(output)
    position = np.empty(order.size, np.int64)
    position[order] = np.arange(order.size)
    weight = np.stack([ensemble.cover[side[order]] for side in (ensemble.left, ensemble.right)])
    both = weight.sum(axis=0)
    share = np.divide(weight[0], both, out=np.full(both.size, 0.5), where=both > 0)
    tables = []
    for t, k in zip(tree, column, strict=True):
        mine = slice(start[t], start[t + 1])
        nodes, n_codes = order[mine], 1 << int(forest.comparisons.start[t + 1] - forest.comparisons.start[t])
        children = [np.where(side[nodes] < 0, -1, position[side[nodes]] - start[t]) for side in (ensemble.left, ensemble.right)]
        local = np.searchsorted(players[t], player[mine])
        value = np.empty((nodes.size, n_codes, 1 << players[t].size))
        value[:] = ensemble.value[nodes, k][:, None, None]
        _expect(*children, share[mine], local, forest.comparisons.number[nodes], value)
        tables.append(_coefficients(value[0], players[t].size))
    return PolynomialTables(look_up(forest.splits, forest.comparisons, tree, [players[t] for t in tree], tables), output)


@jit
def _evaluate(
    table: np.ndarray,
    first: int,
    starts: np.ndarray,
    i: int,
    x: np.ndarray,
    players: np.ndarray,
    gained: np.ndarray,
    h: np.ndarray,
    room: np.ndarray,
) -> None:
    """Add a tree's part of h and its derivatives for eight rows from i on; ``room`` holds folded sums and weights."""
    d = players.size
    half = 1 << (d - 1)
    for c in range(0, half, QUAD):
        p, q, r, s = take(table, first + c, starts, i)
        store(room, c * LANES, p)
        store(room, (c + 1) * LANES, q)
        store(room, (c + 2) * LANES, r)
        store(room, (c + 3) * LANES, s)
    last = players[d - 1] * ROWS + i
    if d == 1:
        c = load(room, 0)
        store(h, i, load(h, i) + c * load(x, last))
        store(gained, last, load(gained, last) + c)
        return
    first_player = players[0] * ROWS + i
    x_first, x_last = load(x, first_player), load(x, last)
    x_both = x_first * x_last
    sums, size = max(half, QUAD) * LANES, half // 2  # start and number of the sums over sets that agree on later players
    for b in range(size):
        without, having = load(room, 2 * b * LANES), load(room, (2 * b + 1) * LANES)
        total = without * x_last + having * x_first if EVEN[b] else without + having * x_both
        store(room, sums + b * LANES, total)
    level = sums
    for j in range(1, d - 1):
        x_j = load(x, players[j] * ROWS + i)
        for b in range(size // 2):
            total = load(room, level + 2 * b * LANES) + x_j * load(room, level + (2 * b + 1) * LANES)
            store(room, level + (size + b) * LANES, total)
        level, size = level + size * LANES, size // 2
    store(h, i, load(h, i) + load(room, level))
    weights = level + LANES
    store(room, weights, splat(1.0))
    for j in range(d - 2, 0, -1):
        level, x_j, total = level - 2 * size * LANES, load(x, players[j] * ROWS + i), splat(0.0)
        for b in range(size - 1, -1, -1):
            weight = load(room, weights + b * LANES)
            total = total + weight * load(room, level + (2 * b + 1) * LANES)
            store(room, weights + 2 * b * LANES, weight)
            store(room, weights + (2 * b + 1) * LANES, weight * x_j)
        at = players[j] * ROWS + i
        store(gained, at, load(gained, at) + total)
        size *= 2
    of_first, of_last, of_both = splat(0.0), splat(0.0), splat(0.0)
    for b in range(size):
        weight, having = load(room, weights + b * LANES), load(room, (2 * b + 1) * LANES)
        if EVEN[b]:
            of_last = of_last + weight * load(room, 2 * b * LANES)
            of_first = of_first + weight * having
        else:
            of_both = of_both + weight * having
    store(gained, first_player, load(gained, first_player) + of_first + of_both * x_last)
    store(gained, last, load(gained, last) + of_last + of_both * x_first)


ROOM = 3 * LANES << (MAX_COMPARISONS - 1)  # coefficients, as many sums, half as many weights


@jit
def add_polynomials(
    bins: np.ndarray,
    row: int,
    size: int,
    tables: PolynomialTables,
    k: int,
    x: np.ndarray,
    gained: np.ndarray,
    h: np.ndarray,
    room: np.ndarray,
) -> None:
    """Add output k's h = (f(z) - f(1 - z)) / 2 and its derivatives."""
    n, flat, looked_up = bins.shape[1], bins.reshape(-1), tables.looked_up
    narrow, wide = np.empty(ROWS, np.uint8), np.empty(ROWS, np.uint16)
    members, starts = np.empty(ROWS, bins.dtype), np.empty(ROWS, np.uint32)
    for t in range(tables.output[k], tables.output[k + 1]):
        players = looked_up.target[looked_up.column[t] : looked_up.column[t + 1]]
        if looked_up.n_codes[t] <= 1 << 8:
            make_codes(flat, n, row, size, looked_up, t, narrow, members)
            make_starts(narrow, _width(players.size), size, starts)
        else:
            make_codes(flat, n, row, size, looked_up, t, wide, members)
            make_starts(wide, _width(players.size), size, starts)
        for i in range(0, size, LANES):
            _evaluate(looked_up.values, looked_up.first[t], starts, i, x, players, gained, h, room)
