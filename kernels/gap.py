"""How far a prediction moves when features are perturbed, exactly: PG², PGI² and the greedy ranking (Gajewski et al. 2024).

PG²(x, S) is the mean of (f(x') - f(x))² where the units in S are perturbed independently of each other and the rest stays; PGI² averages it over
the prefixes of a ranking. With every leaf's value less that of the leaf which x itself reaches in its tree, written y, and c gone,

    PG² = sum over leaves u, v of all trees of y_u y_v P(x' is in u and in v),

and that probability is one of u times, for every unit that v asks something of, that of v's side given u's (0 if x is on the wrong side of a unit
that stays). Nothing cancels where the perturbation is small, for the leaf of x has y = 0. Three things keep it fast: only leaves that x' can reach
are looked at; for a leaf u the probabilities given its sides lie in one array, by side, so that a pair costs a product of as many numbers as v has
sides; and trees with which u has no unit in common need only their mean.

A ranking takes one pass for all prefixes: the product of a pair changes at the ranks of v's units alone, and what u's factors are at every prefix
is summed up beforehand. A greedy step takes one pass for all candidates: pairs in which nobody is violated count for all, those in which one unit
is, for that one.
"""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .boxes import Boxes

POOLED = 1 << 21  # probabilities of sides given others that are kept while a row is worked on


class Tails(NamedTuple):
    """How moved units are spread, row by row."""

    tail: np.ndarray  # (n, cells) float64: from the unit's cell on, P(rank < 0), P(rank <= 0), ... up to all ranks; one above half of the mass
    # is written as the negative probability of the other side, so that small ones keep their digits on both
    mass: np.ndarray  # (n, units) float64, P(not missing)
    missing: np.ndarray  # (n, units) float64


class _Row(NamedTuple):
    """What is known of one row before anything is perturbed, and of one of its leaves."""

    inside: np.ndarray  # (sides,) bool, the row itself is
    chance: np.ndarray  # (sides,) float64, its perturbed unit is
    given: np.ndarray  # (sides + 1,) float64, the same given the sides of the leaf at hand, and 1
    own: np.ndarray  # (trees,) int64, the leaf that the row reaches
    held: np.ndarray  # (units + 1,) int64, units whose ``given`` differs from ``chance``
    at: np.ndarray  # (units,) int64, and the leaf's side of each, -1 for others
    asked: np.ndarray  # (units,) int64, -1 between uses
    pool: np.ndarray  # float64, what ``given`` is for each side of most units
    place: np.ndarray  # (sides,) int64, where in the pool, -1 for units that found no room


class _Leaves(NamedTuple):
    """Leaves of one output's trees that count, their sides in the order of a ranking."""

    first: np.ndarray  # (targets + 1,) int64, those of each tree
    value: np.ndarray  # float64, y
    broken: np.ndarray  # int64, how many sides there are up to the last one that the row violates
    start: np.ndarray  # int64
    side: np.ndarray  # int64
    mean: np.ndarray  # (targets, units) float64, what perturbing a unit adds to the mean of y over a tree


@jit
def _make_row(boxes):
    n_sides, n_units = boxes.unit.size, boxes.perturbed.size
    place, end = np.full(n_sides, -1, np.int64), boxes.given.size
    for u in range(n_units):
        n = boxes.first[u + 1] - boxes.first[u]
        start = boxes.given_start[u]
        if boxes.moved[u] and end + n * n <= boxes.given.size + POOLED:
            start, end = end, end + n * n
        for s in range(n if start >= 0 else 0):
            place[boxes.first[u] + s] = start + s * n
    row = _Row(
        np.zeros(n_sides, np.bool_),
        np.zeros(n_sides),
        np.ones(n_sides + 1),
        np.zeros(boxes.tree.size, np.int64),
        np.zeros(n_units + 1, np.int64),
        np.full(n_units, -1, np.int64),
        np.full(n_units, -1, np.int64),
        np.zeros(end),
        place,
    )
    _copy(boxes.given, row.pool[: boxes.given.size])
    return row


@jit
def _make_leaves(boxes):
    most = 0
    for k in range(boxes.target_start.size - 1):
        most = max(most, boxes.target_start[k + 1] - boxes.target_start[k])
    n = boxes.start.size
    return _Leaves(
        np.zeros(most + 1, np.int64),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(boxes.side.size, np.int64),
        np.zeros((most, boxes.perturbed.size)),
    )


@jit
def _holds(boxes, ranks, i, c):
    """Condition c of row i."""
    rank = np.int64(ranks[boxes.condition[c, 0], i])
    if boxes.condition[c, 4] >= 0:
        return boxes.member[boxes.condition[c, 4] + rank]
    if rank == np.iinfo(ranks.dtype).max:
        return boxes.condition[c, 3] > 0
    return boxes.condition[c, 1] < rank and rank <= boxes.condition[c, 2]


@jit
def _weigh(tail, mass, lower, upper):
    """Probability of an interval of ranks."""
    p = 0.0
    if lower < upper:
        p = tail[1 + upper] - tail[1 + lower]
        if p < 0.0:
            p += mass
    return p


@jit
def _narrow(tails, boxes, i, s, chance, out):
    """Probabilities of all sides of a moved unit given side s, ``chance`` its own; what is given what cannot be is 0."""
    u, interval = boxes.unit[s], boxes.interval
    first, tail, mass, lost = boxes.first[u], tails.tail[i, boxes.cell[u] : boxes.cell[u + 1]], tails.mass[i, u], tails.missing[i, u]
    lower, upper, missing = interval[s, 0], interval[s, 1], interval[s, 2]
    for j in range(out.size):
        p = 0.0
        if chance > 0.0:
            p = _weigh(tail, mass, max(lower, interval[first + j, 0]), min(upper, interval[first + j, 1])) / chance
            if missing & interval[first + j, 2] > 0:
                p += lost / chance
        out[j] = p


@jit
def _meet(ranks, tails, boxes, i, row):
    """Fill in what is known of row i."""
    for s in range(row.inside.size):
        u = boxes.unit[s]
        row.inside[s] = True
        for c in range(boxes.condition_start[s], boxes.condition_start[s + 1]):
            row.inside[s] &= _holds(boxes, ranks, i, c)
        row.chance[s] = boxes.drawn[s]
        if boxes.moved[u]:
            tail = tails.tail[i, boxes.cell[u] : boxes.cell[u + 1]]
            row.chance[s] = _weigh(tail, tails.mass[i, u], boxes.interval[s, 0], boxes.interval[s, 1])
            row.chance[s] += boxes.interval[s, 2] * tails.missing[i, u]
    for s in range(row.inside.size):
        if boxes.moved[boxes.unit[s]] and row.place[s] >= 0:
            n = boxes.first[boxes.unit[s] + 1] - boxes.first[boxes.unit[s]]
            _narrow(tails, boxes, i, s, row.chance[s], row.pool[row.place[s] : row.place[s] + n])
    _copy(row.chance, row.given[: row.chance.size])
    for t in range(boxes.tree.size - 1):
        for leaf in range(boxes.tree[t], boxes.tree[t + 1]):
            inside = True
            for j in range(boxes.start[leaf], boxes.start[leaf + 1]):
                inside &= row.inside[boxes.side[j]]
            if inside:
                row.own[t] = leaf


@jit
def _copy(values, out):
    for j in range(out.size):
        out[j] = values[j]


@jit
def _enter(tails, boxes, i, sides, n_held, row):
    """Put the probabilities given these sides, a leaf's, into ``row.given``, where the pair loops read them; returns how many units are held."""
    unit, first, chance, given, asked, held, at, place = boxes.unit, boxes.first, row.chance, row.given, row.asked, row.held, row.at, row.place
    for s in sides:
        asked[unit[s]] = s
    n = 0
    for h in range(n_held):
        u = held[h]
        if asked[u] >= 0:
            held[n] = u
            n += 1
        else:
            at[u] = -1
            _copy(chance[first[u] : first[u + 1]], given[first[u] : first[u + 1]])
    for s in sides:
        u = unit[s]
        asked[u] = -1
        if at[u] < 0:
            held[n] = u
            n += 1
        if at[u] != s:
            at[u] = s
            if place[s] >= 0:
                _copy(row.pool[place[s] : place[s] + first[u + 1] - first[u]], given[first[u] : first[u + 1]])
            else:
                _narrow(tails, boxes, i, s, chance[s], given[first[u] : first[u + 1]])
    return n


@jit
def _leave(boxes, n_held, row):
    """Hold nothing."""
    for h in range(n_held):
        u = row.held[h]
        row.given[boxes.first[u] : boxes.first[u + 1]] = row.chance[boxes.first[u] : boxes.first[u + 1]]
        row.at[u] = -1


@jit
def _meets(sides, unit, uses):
    """Some of the sides is of a unit that is used."""
    for s in sides:
        if uses[unit[s]]:
            return True
    return False


@jit
def _list_ranked(boxes, k, place, row, leaves):
    """List the leaves of output k, their sides in the order in which units are perturbed: place[u] in 1, 2, …, 0 if never."""
    n, m = 0, 0
    for target in range(boxes.target_start[k], boxes.target_start[k + 1]):
        b, tree, column = target - boxes.target_start[k], boxes.target[target, 0], boxes.target[target, 1]
        leaves.first[b] = n
        leaves.mean[b] = 0.0
        for leaf in range(boxes.tree[tree], boxes.tree[tree + 1]):
            y = boxes.value[leaf, column] - boxes.value[row.own[tree], column]
            start, last, counts = m, 0, y != 0.0
            for j in range(boxes.start[leaf], boxes.start[leaf + 1]):
                s = boxes.side[j]
                here = place[boxes.unit[s]]
                if here == 0:
                    counts &= row.inside[s]
                    continue
                if not row.inside[s]:
                    last = max(last, here)
                e = m
                while e > start and place[boxes.unit[leaves.side[e - 1]]] > here:
                    leaves.side[e] = leaves.side[e - 1]
                    e -= 1
                leaves.side[e] = s
                m += 1
            chance, broken = 1.0, 0
            while counts and broken < m - start and place[boxes.unit[leaves.side[start + broken]]] <= last:
                chance *= row.chance[leaves.side[start + broken]]
                broken += 1
            if not counts or chance == 0.0:
                m = start
                continue
            leaves.value[n], leaves.broken[n], leaves.start[n] = y, broken, start
            n += 1
            leaves.mean[b, boxes.unit[leaves.side[start + broken - 1]]] += y * chance
            for e in range(start + broken, m):
                s = leaves.side[e]
                leaves.mean[b, boxes.unit[s]] += y * chance * (row.chance[s] - 1.0)
                chance *= row.chance[s]
    leaves.first[boxes.target_start[k + 1] - boxes.target_start[k]] = n
    leaves.start[n] = m


@jit
def _fold_ranking(boxes, u, place, weight, row, leaves, ahead):
    """Put into ahead[r] the sum over prefixes from r on of their weight and leaf u's probability; 0 as long as the row violates it."""
    n_prefixes = weight.size
    sides = leaves.side[leaves.start[u] : leaves.start[u + 1]]
    ahead[: n_prefixes + 2] = 0.0
    last = place[boxes.unit[sides[leaves.broken[u] - 1]]]
    chance, e = 1.0, 0
    for r in range(last, n_prefixes + 1):
        while e < sides.size and place[boxes.unit[sides[e]]] <= r:
            chance *= row.chance[sides[e]]
            e += 1
        ahead[r] = weight[r - 1] * chance
    for r in range(n_prefixes - 1, 0, -1):
        ahead[r] += ahead[r + 1]


@jit
def _sum_later(a, trees, sides, place, ahead, unit, uses, used_start, used, given, first, start, broken, value, side, mean):
    """Of a leaf of tree a that was entered: sum over the leaves of later trees of y and the weighted probabilities of both, all prefixes together."""
    total = 0.0
    for b in range(a + 1, trees.size):
        if not _meets(sides, unit, uses[trees[b]]):
            for j in range(used_start[trees[b]], used_start[trees[b] + 1]):
                total += mean[b, used[j]] * ahead[place[used[j]]]
            continue
        for v in range(first[b], first[b + 1]):
            reached, stop = start[v] + broken[v], start[v + 1]
            w = value[v]
            for e in range(start[v], reached):
                w *= given[side[e]]
            if w == 0.0:
                continue
            total += w * ahead[place[unit[side[reached - 1]]]]
            for e in range(reached, stop):
                narrower = w * given[side[e]]
                total += (narrower - w) * ahead[place[unit[side[e]]]]
                w = narrower
    return total


@jit
def measure_rankings(ranks, tails, boxes, places, weights, out):
    """Add up PG² over the prefixes of rankings: PGI², or PG² where there is one prefix.

    Parameters
    ----------
    ranks : (used, n) unsigned integers, see ``ranks.rank_rows``
    tails : Tails
    boxes : Boxes
    places : (n, outputs, units) int64, the prefix with which a unit comes to be perturbed: 1, 2, …, and 0 for never
    weights : (n, outputs, prefixes) float64
    out : (n, outputs) float64, is overwritten
    """
    row, leaves = _make_row(boxes), _make_leaves(boxes)
    ahead = np.zeros(weights.shape[2] + 2)
    for i in range(out.shape[0]):
        _meet(ranks, tails, boxes, i, row)
        for k in range(out.shape[1]):
            place, weight = places[i, k], weights[i, k]
            _list_ranked(boxes, k, place, row, leaves)
            trees = boxes.target[boxes.target_start[k] : boxes.target_start[k + 1], 0]
            total, n_held = 0.0, 0
            for a in range(trees.size):
                for u in range(leaves.first[a], leaves.first[a + 1]):
                    sides = leaves.side[leaves.start[u] : leaves.start[u + 1]]
                    _fold_ranking(boxes, u, place, weight, row, leaves, ahead)
                    n_held = _enter(tails, boxes, i, sides, n_held, row)
                    mean = _sum_later(
                        a,
                        trees,
                        sides,
                        place,
                        ahead,
                        boxes.unit,
                        boxes.uses,
                        boxes.used_start,
                        boxes.used,
                        row.given,
                        leaves.first,
                        leaves.start,
                        leaves.broken,
                        leaves.value,
                        leaves.side,
                        leaves.mean,
                    )
                    total += leaves.value[u] * (leaves.value[u] * ahead[1] + 2.0 * mean)
            _leave(boxes, n_held, row)
            out[i, k] = total
