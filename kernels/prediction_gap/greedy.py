"""The greedy ranking: at every step the unit whose perturbation, on top of those before it, moves the prediction most (Gajewski et al. 2024,
Section "Greedy"), all candidates of a step in one pass over pairs of leaves.

A leaf counts in a step if the row can reach it with the chosen units perturbed, then for every candidate, or violates one candidate more, then for
that one. What a pair contributes is said in ``gap``. Of a tree's leaves the first kind lies at the front of its slots and the second at the end,
and sides of chosen units are as many for every leaf, filled up with one that is certain, so that loops over pairs hardly branch.
"""

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..lanes import LANES, load, splat, store
from .exact import fill_block, list_asked, make_row, meet, meets

TIE = 1e-12  # gains that differ by less, as a fraction of PG², are equal


class _Reached(NamedTuple):
    """Leaves that count: of every one what it is, and of every tree a list, in as many slots as it has leaves."""

    value: np.ndarray  # (leaves,) float64, y; 0 of those that do not count
    chance: np.ndarray  # (leaves,) float64, of the chosen units' sides
    broken: np.ndarray  # (leaves,) int64, the side that the row violates, -1 if none
    stop: np.ndarray  # (trees,) int64, slots of leaves that nobody violates are from the tree's first up to here,
    back: np.ndarray  # (trees,) int64, and those that one candidate does from here on
    leaf: np.ndarray  # (slots,) int64
    middle: np.ndarray  # (leaves,) int64, a leaf's sides here: of chosen units from its start up to here,
    end: np.ndarray  # (leaves,) int64, of candidates up to here
    side: np.ndarray  # int64
    level: np.ndarray  # (trees,) float64, mean of y over a tree,
    mean: np.ndarray  # (trees, units) float64, and what a candidate adds to it
    sums: np.ndarray  # (units + 1, LANES) float64, flat: of a block, what a candidate adds to the sum over later leaves, and last that sum
    scale: np.ndarray  # (LANES,) float64
    gains: np.ndarray  # (units, LANES) float64, flat
    given: np.ndarray  # float64, of every block, what gap.Row's is of one, while a row is worked on; none where that is too much to keep
    filled: np.ndarray  # (blocks,) bool


@jit
def _make_reached(boxes, row):
    n, n_trees, n_units = boxes.stays.size, boxes.tree.size - 1, boxes.perturbed.size
    n_blocks, size = row.block[-1], row.given.size
    return _Reached(
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n_trees, np.int64),
        np.zeros(n_trees, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(boxes.side.size, np.int64),
        np.zeros(n_trees),
        np.zeros((n_trees, n_units)),
        np.zeros((n_units + 1) * LANES),
        np.zeros(LANES),
        np.zeros(n_units * LANES),
        np.ones(n_blocks * size if n_blocks * size <= boxes.kept[0] else 0),
        np.zeros(n_blocks, np.bool_),
    )


@jit
def _given_block(boxes, tails, i, b, first_leaf, stop_leaf, row, out):
    """Probabilities of all sides given each leaf of block b."""
    size = row.given.size
    given = row.given if out.given.size == 0 else out.given[b * size : (b + 1) * size]
    if out.given.size == 0 or not out.filled[b]:
        fill_block(boxes, tails, i, first_leaf, stop_leaf, boxes.perturbed, row, given)
        out.filled[b] = True
    return given


@jit
def _list_reached(boxes, tree, column, chosen, row, out):
    """Put the leaves of a tree that count into its slots."""
    start, stays, side, unit, inside, chance = boxes.start, boxes.stays, boxes.side, boxes.unit, row.inside, row.chance
    own = boxes.value[row.own[tree], column]
    front, back = boxes.tree[tree], boxes.tree[tree + 1]
    out.level[tree] = 0.0
    out.mean[tree] = 0.0
    for leaf in range(boxes.tree[tree], boxes.tree[tree + 1]):
        y, p, violated, counts = boxes.value[leaf, column] - own, 1.0, -1, True
        e = start[leaf]
        for j in range(start[leaf], start[leaf + 1]):
            s = side[j]
            if chosen[unit[s]]:
                p *= chance[s]
                out.side[e] = s
                e += 1
            elif not inside[s]:
                counts &= violated < 0 and j < stays[leaf] and chance[s] > 0.0
                violated = s
        if y == 0.0 or p == 0.0 or not counts:
            out.value[leaf] = 0.0
            continue
        out.value[leaf], out.chance[leaf], out.broken[leaf], out.middle[leaf] = y, p, violated, e
        if violated >= 0:
            back -= 1
            out.leaf[back] = leaf
            out.mean[tree, unit[violated]] += y * p * chance[violated]
            continue
        out.leaf[front] = leaf
        front += 1
        out.level[tree] += y * p
        for j in range(start[leaf], stays[leaf]):
            s = side[j]
            if not chosen[unit[s]]:
                out.side[e] = s
                e += 1
                out.mean[tree, unit[s]] += y * p * (chance[s] - 1.0)
        out.end[leaf] = e
    out.stop[tree], out.back[tree] = front, back


@jit
def _sum_later(trees, given, asked, unit, uses, used_start, used, ends, start, value, broken, stop, back, leaf, middle, end, side, level, mean, sums):
    """Of a block: sum over the leaves of these trees of y and their probability, and what every candidate adds to that."""
    last = sums.size - LANES
    for first in range(0, sums.size, LANES):
        store(sums, first, splat(0.0))
    total = splat(0.0)
    for tree in trees:
        if not meets(asked, uses[tree]):
            total = total + splat(level[tree])
            for j in range(used_start[tree], used_start[tree + 1]):
                store(sums, used[j] * LANES, load(sums, used[j] * LANES) + splat(mean[tree, used[j]]))
            continue
        for slot in range(ends[tree], stop[tree]):
            v = leaf[slot]
            w = splat(value[v])
            for e in range(start[v], middle[v]):
                w = w * load(given, side[e] * LANES)
            total = total + w
            for e in range(middle[v], end[v]):
                at = unit[side[e]] * LANES
                store(sums, at, load(sums, at) + (w * load(given, side[e] * LANES) - w))
        for slot in range(back[tree], ends[tree + 1]):
            v = leaf[slot]
            w = splat(value[v]) * load(given, broken[v] * LANES)
            for e in range(start[v], middle[v]):
                w = w * load(given, side[e] * LANES)
            at = unit[broken[v]] * LANES
            store(sums, at, load(sums, at) + w)
    store(sums, last, total)


@jit
def _add_block(boxes, first_leaf, stop_leaf, row, out):
    """Add to the gains what a block's leaves contribute, given its sums; returns what they do without any candidate."""
    n_units, level = boxes.perturbed.size, 0.0
    out.scale[:] = 0.0
    for leaf in range(first_leaf, stop_leaf):
        y, lane = out.value[leaf], leaf - first_leaf
        if y == 0.0:
            continue
        p, s = out.chance[leaf], out.broken[leaf]
        whole = y + 2.0 * out.sums[n_units * LANES + lane]
        if s >= 0:
            at = boxes.unit[s] * LANES + lane
            out.gains[at] += p * y * row.chance[s] * (whole + 2.0 * out.sums[at])
            continue
        level += p * y * whole
        out.scale[lane] = 2.0 * p * y
        for e in range(out.middle[leaf], out.end[leaf]):  # candidates that change the leaf's own probability too
            s = out.side[e]
            at = boxes.unit[s] * LANES + lane
            out.gains[at] += p * y * (row.chance[s] - 1.0) * (whole + 2.0 * out.sums[at])
    scale = load(out.scale, 0)
    for first in range(0, out.gains.size, LANES):
        store(out.gains, first, load(out.gains, first) + scale * load(out.sums, first))
    return level


@jit
def _try_all(tails, boxes, i, k, chosen, row, out, gain):
    """What every candidate adds to PG² of the chosen units; returns that."""
    total, targets = 0.0, boxes.target[boxes.target_start[k] : boxes.target_start[k + 1]]
    trees = targets[:, 0]
    for a in range(trees.size):
        _list_reached(boxes, trees[a], targets[a, 1], chosen, row, out)
    out.gains[:] = 0.0
    of_boxes = (boxes.unit, boxes.uses, boxes.used_start, boxes.used, boxes.tree, boxes.start)
    of_leaves = (out.value, out.broken, out.stop, out.back, out.leaf, out.middle, out.end, out.side, out.level, out.mean)
    for a in range(trees.size):
        for b in range(row.block[trees[a]], row.block[trees[a] + 1]):
            first_leaf = boxes.tree[trees[a]] + (b - row.block[trees[a]]) * LANES
            stop_leaf = min(first_leaf + LANES, boxes.tree[trees[a] + 1])
            counts = False
            for leaf in range(first_leaf, stop_leaf):
                counts |= out.value[leaf] != 0.0
            if counts:
                asked = row.asked[: list_asked(boxes, first_leaf, stop_leaf, row)]
                given = _given_block(boxes, tails, i, b, first_leaf, stop_leaf, row, out)
                _sum_later(trees[a + 1 :], given, asked, *of_boxes, *of_leaves, out.sums)
                total += _add_block(boxes, first_leaf, stop_leaf, row, out)
    for u in range(gain.size):
        gain[u] = 0.0
        for lane in range(LANES):
            gain[u] += out.gains[u * LANES + lane]
    return total


@jit
def rank_greedily(bins, tails, boxes, order, gaps):
    """Choose units one by one; among equal gains, to 1e-12 of PG², the first unit.

    Parameters
    ----------
    bins, tails, boxes : as ``exact.measure_rankings`` takes them
    order : (n, outputs, steps) int64, the unit chosen at each step, -1 where no candidate is left; is overwritten
    gaps : (n, outputs, steps) float64, PG² of the units up to each step, where none is left that of all; is overwritten
    """
    row, n_units = make_row(boxes), boxes.perturbed.size
    reached = _make_reached(boxes, row)
    gain, chosen = np.zeros(n_units), np.zeros(n_units, np.bool_)
    for i in range(order.shape[0]):
        meet(bins, tails, boxes, i, row)
        reached.filled[:] = False
        for k in range(order.shape[1]):
            chosen[:] = False
            gap = 0.0
            for step in range(order.shape[2]):
                best = -1
                for u in range(n_units):
                    if boxes.perturbed[u] and not chosen[u]:
                        best = u
                        break
                if best >= 0:
                    level = _try_all(tails, boxes, i, k, chosen, row, reached, gain)
                    for u in range(best + 1, n_units):
                        if boxes.perturbed[u] and not chosen[u] and gain[u] - gain[best] > TIE * (level + max(gain[u], 0.0)):
                            best = u
                    chosen[best] = True
                    gap = level + gain[best]
                order[i, k, step] = best
                gaps[i, k, step] = gap
