"""How far a prediction moves when features are perturbed, exactly: PG² and PGI² (Gajewski et al. 2024).

PG²(x, S) is the mean of (f(x') - f(x))² where the units in S are perturbed independently of each other and the rest stays; PGI² averages it over
the prefixes of a ranking. With every leaf's value less that of the leaf which x itself reaches in its tree, written y, and f(x) gone,

    PG² = sum over leaves u, v of all trees of y_u y_v P(x' is in u and in v),

and that probability is one of u times, for every unit that v asks something of, that of v's side given u's (0 if x is on the wrong side of a unit
that stays). Nothing cancels where the perturbation is small, for the leaf of x has y = 0. Three things keep it fast: only leaves v that x' can
reach are looked at; the probabilities given the sides of eight leaves u of a tree, a block, lie beside each other, so that eight pairs cost as many
products of vectors as v has sides; and trees with which a block has no unit in common need only their mean.

A ranking takes one pass for all prefixes: the product of a pair changes at the ranks of v's units alone, and what u's factors are at every prefix
is summed up beforehand.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..lanes import LANES, load, splat, store


class Tails(NamedTuple):
    """How moved units are spread, row by row."""

    tail: np.ndarray  # (n, cells) float64: from the unit's cell on, P(bin < 0), P(bin <= 0), ... up to all bins; one above half of the mass
    # is written as the negative probability of the other side, so that small ones keep their digits on both
    mass: np.ndarray  # (n, units) float64, P(not missing)
    missing: np.ndarray  # (n, units) float64


class Row(NamedTuple):
    """What is known of one row, and of blocks: eight leaves of a tree, or what is left."""

    inside: np.ndarray  # (sides,) bool, the row itself is
    chance: np.ndarray  # (sides,) float64, its perturbed unit is
    own: np.ndarray  # (trees,) int64, the leaf that the row reaches
    block: np.ndarray  # (trees + 1,) int64, tree t's blocks are block[t]..block[t + 1] - 1
    given: np.ndarray  # float64, of a block, ``chance`` given each of its leaves: (sides + 1, LANES), the last is 1
    at: np.ndarray  # (LANES, units) int64, -1 between uses
    asked: np.ndarray  # (units,) int64, units of which a block asks something


class _Leaves(NamedTuple):
    """Leaves of one output's trees that count, their sides in the order of a ranking."""

    first: np.ndarray  # (targets + 1,) int64, those of each tree
    number: np.ndarray  # (leaves,) int64, the leaf's place in this list, -1 if it does not count
    value: np.ndarray  # float64, y
    broken: np.ndarray  # int64, how many sides there are up to the last one that the row violates
    start: np.ndarray  # int64
    side: np.ndarray  # int64
    mean: np.ndarray  # (targets, units) float64, what perturbing a unit adds to the mean of y over a tree


@jit
def make_row(boxes):
    """Room for what is known of a row."""
    n_sides, n_trees = boxes.unit.size, boxes.tree.size - 1
    block = np.zeros(n_trees + 1, np.int64)
    for t in range(n_trees):
        block[t + 1] = block[t] + (boxes.tree[t + 1] - boxes.tree[t] + LANES - 1) // LANES
    given = np.ones((n_sides + 1) * LANES)
    at = np.full((LANES, boxes.perturbed.size), -1, np.int64)
    return Row(
        np.zeros(n_sides, np.bool_), np.zeros(n_sides), np.zeros(n_trees, np.int64), block, given, at, np.zeros(boxes.perturbed.size, np.int64)
    )


@jit
def _make_leaves(boxes):
    most = 0
    for k in range(boxes.target_start.size - 1):
        most = max(most, boxes.target_start[k + 1] - boxes.target_start[k])
    n = boxes.start.size
    return _Leaves(
        np.zeros(most + 1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(boxes.side.size, np.int64),
        np.zeros((most, boxes.perturbed.size)),
    )


@jit
def _holds(condition, member, bin_, top):
    """A condition of a unit's bin."""
    if condition[4] >= 0:
        return member[condition[4] + bin_]
    if bin_ == top:
        return condition[3] > 0
    return condition[1] < bin_ and bin_ <= condition[2]


@jit
def _weigh(tail, mass, lower, upper):
    """Probability of an interval of bins, without branches on it."""
    p = tail[np.uint64(1 + max(lower, upper))] - tail[np.uint64(1 + lower)]
    return p + (mass if p < 0.0 else 0.0)


@jit
def _narrow(tail, mass, lost, lower, upper, missing, chance, interval, first, lane, given):
    """Probabilities of a moved unit's sides given one of them, ``chance`` its own; what is given what cannot be is 0."""
    if chance == 0.0:
        for j in range(interval.shape[0]):
            given[(first + j) * LANES + lane] = 0.0
        return
    for j in range(interval.shape[0]):
        p = _weigh(tail, mass, max(lower, interval[j, 0]), min(upper, interval[j, 1]))
        given[(first + j) * LANES + lane] = (p + (lost if missing & interval[j, 2] > 0 else 0.0)) / chance


@jit
def _fill_lane(boxes, tails, i, u, s, chance, lane, given):
    """Put the probabilities of unit u's sides given side s, or nothing where s < 0, into a lane of ``given``."""
    start, stop = boxes.first[u], boxes.first[u + 1]
    if s < 0:
        for other in range(start, stop):
            given[other * LANES + lane] = chance[other]
    elif boxes.moved[u]:
        tail, mass, lost = tails.tail[i, boxes.cell[u] : boxes.cell[u + 1]], tails.mass[i, u], tails.missing[i, u]
        lower, upper, missing = boxes.interval[s, 0], boxes.interval[s, 1], boxes.interval[s, 2]
        _narrow(tail, mass, lost, lower, upper, missing, chance[s], boxes.interval[start:stop], start, lane, given)
    else:
        for other in range(start, stop):
            given[other * LANES + lane] = boxes.given[boxes.given_start[u] + (s - start) * (stop - start) + other - start]


@jit
def fill_block(boxes, tails, i, first_leaf, stop_leaf, wanted, row, given):
    """Put the probabilities of the sides of wanted units given each leaf of a block into ``given``."""
    unit, first, at = boxes.unit, boxes.first, row.at
    for leaf in range(first_leaf, stop_leaf):
        for j in range(boxes.start[leaf], boxes.stays[leaf]):
            at[leaf - first_leaf, unit[boxes.side[j]]] = boxes.side[j]
    for u in range(boxes.perturbed.size):
        same = True
        for lane in range(1, LANES):
            same &= at[lane, u] == at[0, u]
        if wanted[u] > 0:
            for lane in range(1 if same else LANES):
                if lane > 0 and at[lane, u] == at[lane - 1, u]:
                    for other in range(first[u], first[u + 1]):
                        given[other * LANES + lane] = given[other * LANES + lane - 1]
                else:
                    _fill_lane(boxes, tails, i, u, at[lane, u], row.chance, lane, given)
            for other in range(first[u], first[u + 1] if same else first[u]):
                store(given, other * LANES, splat(given[other * LANES]))
        at[:, u] = -1


@jit
def meet(bins, tails, boxes, i, row):
    """Fill in what is known of row i."""
    condition, member, inside, chance, interval = boxes.condition, boxes.member, row.inside, row.chance, boxes.interval
    top = np.int64(np.iinfo(bins.dtype).max)
    for s in range(inside.size):
        inside[s] = True
        for c in range(boxes.condition_start[s], boxes.condition_start[s + 1]):
            inside[s] &= _holds(condition[c], member, np.int64(bins[condition[c, 0], i]), top)
    chance[:] = boxes.drawn
    for u in range(boxes.moved.size):
        if boxes.moved[u]:
            tail, mass, lost = tails.tail[i, boxes.cell[u] : boxes.cell[u + 1]], tails.mass[i, u], tails.missing[i, u]
            for s in range(boxes.first[u], boxes.first[u + 1]):
                chance[s] = _weigh(tail, mass, interval[s, 0], interval[s, 1]) + interval[s, 2] * lost
    for t in range(boxes.tree.size - 1):
        for leaf in range(boxes.tree[t], boxes.tree[t + 1]):
            reached = True
            for j in range(boxes.start[leaf], boxes.start[leaf + 1]):
                reached &= inside[boxes.side[j]]
            if reached:
                row.own[t] = leaf


@jit
def list_asked(boxes, first_leaf, stop_leaf, row):
    """List the units of which a block asks something, in ``row.asked``; returns how many."""
    n = 0
    for leaf in range(first_leaf, stop_leaf):
        for j in range(boxes.start[leaf], boxes.stays[leaf]):
            u = boxes.unit[boxes.side[j]]
            if row.at[0, u] < 0:
                row.at[0, u] = 0
                row.asked[n] = u
                n += 1
    for u in row.asked[:n]:
        row.at[0, u] = -1
    return n


@jit
def meets(units, uses):
    """Some of the units is used."""
    found = False
    for u in units:
        found |= uses[u]
    return found


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
            leaves.number[leaf] = -1
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
            leaves.number[leaf], leaves.value[n], leaves.broken[n], leaves.start[n] = n, y, broken, start
            n += 1
            leaves.mean[b, boxes.unit[leaves.side[start + broken - 1]]] += y * chance
            for e in range(start + broken, m):
                s = leaves.side[e]
                leaves.mean[b, boxes.unit[s]] += y * chance * (row.chance[s] - 1.0)
                chance *= row.chance[s]
    leaves.first[boxes.target_start[k + 1] - boxes.target_start[k]] = n
    leaves.start[n] = m


@jit
def _fold_ranking(unit, place, weight, chance, sides, broken, lane, ahead):
    """Put into ahead[r, lane] the sum over prefixes from r on of their weight and a leaf's probability, 0 as long as the row violates it."""
    p, e = 1.0, 0
    for r in range(place[unit[sides[broken - 1]]], weight.size + 1):
        while e < sides.size and place[unit[sides[e]]] <= r:
            p *= chance[sides[e]]
            e += 1
        ahead[r * LANES + lane] = weight[r - 1] * p
    for r in range(weight.size - 1, 0, -1):
        ahead[r * LANES + lane] += ahead[(r + 1) * LANES + lane]


@jit
def _sum_later(trees, given, place, ahead, asked, unit, uses, used_start, used, first, start, broken, value, side, mean, out):
    """Of a block: sum over the leaves of these trees of y and the weighted probabilities of both, all prefixes together."""
    total = splat(0.0)
    for b in range(trees.size):
        if not meets(asked, uses[trees[b]]):
            for j in range(used_start[trees[b]], used_start[trees[b] + 1]):
                total = total + splat(mean[b, used[j]]) * load(ahead, place[used[j]] * LANES)
            continue
        for v in range(first[b], first[b + 1]):
            reached = start[v] + broken[v]
            w = splat(value[v])
            for e in range(start[v], reached):
                w = w * load(given, side[e] * LANES)
            total = total + w * load(ahead, place[unit[side[reached - 1]]] * LANES)
            for e in range(reached, start[v + 1]):
                narrower = w * load(given, side[e] * LANES)
                total = total + (narrower - w) * load(ahead, place[unit[side[e]]] * LANES)
                w = narrower
    store(out, 0, total)


@jit
def _sum_ranked(boxes, tails, i, k, place, weight, row, leaves, ahead, later):
    """The weighted sum of PG² over the prefixes of a ranking."""
    total, trees = 0.0, boxes.target[boxes.target_start[k] : boxes.target_start[k + 1], 0]
    for a in range(trees.size):
        for b in range(row.block[trees[a]], row.block[trees[a] + 1]):
            first_leaf = boxes.tree[trees[a]] + (b - row.block[trees[a]]) * LANES
            stop_leaf = min(first_leaf + LANES, boxes.tree[trees[a] + 1])
            ahead[:] = 0.0
            n_here = 0
            for leaf in range(first_leaf, stop_leaf):
                u = leaves.number[leaf]
                if u >= 0:
                    sides = leaves.side[leaves.start[u] : leaves.start[u + 1]]
                    _fold_ranking(boxes.unit, place, weight, row.chance, sides, leaves.broken[u], leaf - first_leaf, ahead)
                    n_here += 1
            if n_here == 0:
                continue
            asked = row.asked[: list_asked(boxes, first_leaf, stop_leaf, row)]
            given = row.given
            fill_block(boxes, tails, i, first_leaf, stop_leaf, place, row, given)
            listed = (leaves.first[a + 1 :], leaves.start, leaves.broken, leaves.value, leaves.side, leaves.mean[a + 1 :])
            _sum_later(trees[a + 1 :], given, place, ahead, asked, boxes.unit, boxes.uses, boxes.used_start, boxes.used, *listed, later)
            for leaf in range(first_leaf, stop_leaf):
                if leaves.number[leaf] >= 0:
                    y, lane = leaves.value[leaves.number[leaf]], leaf - first_leaf
                    total += y * (y * ahead[LANES + lane] + 2.0 * later[lane])
    return total


@jit
def measure_rankings(bins, tails, boxes, places, weights, out):
    """Add up PG² over the prefixes of rankings: PGI², or PG² where there is one prefix.

    Parameters
    ----------
    bins : (used, n) unsigned integers, see ``binning.bin_rows``
    tails : Tails
    boxes : Boxes
    places : (n, outputs, units) int64, the prefix with which a unit comes to be perturbed: 1, 2, …, and 0 for never; 0 for units that cannot be
    weights : (n, outputs, prefixes) float64
    out : (n, outputs) float64, is overwritten
    """
    row, leaves = make_row(boxes), _make_leaves(boxes)
    ahead, later = np.zeros((weights.shape[2] + 1) * LANES), np.zeros(LANES)
    for i in range(out.shape[0]):
        meet(bins, tails, boxes, i, row)
        for k in range(out.shape[1]):
            _list_ranked(boxes, k, places[i, k], row, leaves)
            out[i, k] = _sum_ranked(boxes, tails, i, k, places[i, k], weights[i, k], row, leaves, ahead, later)
