"""The greedy ranking: at every step the unit whose perturbation, on top of those before it, moves the prediction most (Gajewski et al. 2024,
Section "Greedy"), all candidates of a step in one pass over pairs of leaves.

A leaf counts in a step if the row can reach it with the chosen units perturbed, then for every candidate, or violates one candidate more, then for
that one. What a pair contributes is said in ``gap``. Of a tree's leaves the first kind lies at the front of its slots and the second at the end,
and sides of chosen units are as many for every leaf, filled up with one that is certain, so that loops over pairs hardly branch.
"""

from typing import NamedTuple

import numpy as np

from ._jit import jit
from .gap import _enter, _leave, _make_row, _meet, _meets

TIE = 1e-12  # gains that differ by less, as a fraction of PG², are equal


class _Reached(NamedTuple):
    """Leaves that count, in slots: as many for every tree as it has leaves."""

    stop: np.ndarray  # (trees,) int64, those that nobody violates are from the tree's first slot up to here,
    back: np.ndarray  # (trees,) int64, and those that one candidate does from here on
    leaf: np.ndarray  # (slots,) int64
    value: np.ndarray  # (slots,) float64, y
    chance: np.ndarray  # (slots,) float64, of the chosen units' sides
    broken: np.ndarray  # (slots,) uint32, the unit that the row violates
    chosen: np.ndarray  # (slots * most sides,) uint32, sides of chosen units
    start: np.ndarray  # (slots,) int64, where those of candidates start: all, or the violated one
    end: np.ndarray  # (slots,) int64
    side: np.ndarray  # uint32
    level: np.ndarray  # (trees,) float64, mean of y over a tree,
    mean: np.ndarray  # (trees, units) float64, and what a candidate adds to it


@jit
def _make_reached(boxes):
    n, n_trees, most = boxes.stays.size, boxes.tree.size - 1, 0
    for leaf in range(n):
        most = max(most, boxes.start[leaf + 1] - boxes.start[leaf])
    return _Reached(
        np.zeros(n_trees, np.int64),
        np.zeros(n_trees, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.uint32),
        np.zeros(n * most, np.uint32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(boxes.side.size, np.uint32),
        np.zeros(n_trees),
        np.zeros((n_trees, boxes.perturbed.size)),
    )


@jit
def _count_chosen(boxes, chosen):
    """Most sides of chosen units that a leaf has."""
    most = 0
    for leaf in range(boxes.stays.size):
        n = 0
        for j in range(boxes.start[leaf], boxes.stays[leaf]):
            n += chosen[boxes.unit[boxes.side[j]]]
        most = max(most, n)
    return most


@jit
def _list_reached(boxes, tree, column, chosen, width, row, out):
    """Put the leaves of a tree that count into its slots."""
    start, stays, side, unit, inside, chance = boxes.start, boxes.stays, boxes.side, boxes.unit, row.inside, row.chance
    own, none = boxes.value[row.own[tree], column], unit.size
    front, back = boxes.tree[tree], boxes.tree[tree + 1]
    out.level[tree] = 0.0
    out.mean[tree] = 0.0
    for leaf in range(boxes.tree[tree], boxes.tree[tree + 1]):
        y, p, violated, counts = boxes.value[leaf, column] - own, 1.0, -1, True
        for j in range(start[leaf], start[leaf + 1]):
            s = side[j]
            if chosen[unit[s]]:
                p *= chance[s]
            elif not inside[s]:
                counts &= violated < 0 and j < stays[leaf] and chance[s] > 0.0
                violated = s
        if y == 0.0 or p == 0.0 or not counts:
            continue
        if violated >= 0:
            back -= 1
        slot = back if violated >= 0 else front
        out.leaf[slot], out.value[slot], out.chance[slot], out.start[slot] = leaf, y, p, start[leaf]
        n, e = 0, start[leaf]
        for j in range(start[leaf], stays[leaf]):
            s = side[j]
            if chosen[unit[s]]:
                out.chosen[slot * width + n] = s
                n += 1
            elif violated < 0:
                out.side[e] = s
                e += 1
                out.mean[tree, unit[s]] += y * p * (chance[s] - 1.0)
        out.chosen[slot * width + n : (slot + 1) * width] = none
        if violated >= 0:
            out.broken[slot], out.side[e] = unit[violated], violated
            e += 1
            out.mean[tree, unit[violated]] += y * p * chance[violated]
        else:
            front += 1
            out.level[tree] += y * p
        out.end[slot] = e
    out.stop[tree], out.back[tree] = front, back


@jit
def _sum_reached(trees, ends, sides, scale, width, unit, uses, used_start, used, given, stop, back, value, broken, chosen, start, end, side, level, mean, gain):
    """Of a leaf that was entered, which nobody violates: add to the gain of every candidate what it changes in the pairs with leaves of these
    trees; returns what they are without it."""
    total = 0.0
    for tree in trees:
        if not _meets(sides, unit, uses[tree]):
            total += scale * level[tree]
            for j in range(used_start[tree], used_start[tree + 1]):
                gain[used[j]] += scale * mean[tree, used[j]]
            continue
        for v in range(ends[tree], stop[tree]):
            w = scale * value[v]
            for e in range(v * width, (v + 1) * width):
                w *= given[chosen[e]]
            total += w
            for e in range(start[v], end[v]):
                gain[unit[side[e]]] += w * (given[side[e]] - 1.0)
        for v in range(back[tree], ends[tree + 1]):
            w = scale * value[v] * given[side[start[v]]]
            for e in range(v * width, (v + 1) * width):
                w *= given[chosen[e]]
            gain[broken[v]] += w
    return total


@jit
def _sum_violated(trees, ends, sides, candidate, width, unit, uses, given, stop, back, value, broken, chosen, start, end, side, level):
    """Of a leaf that was entered, which the candidate violates: sum over the leaves of these trees of y and their probability when it is perturbed
    as well."""
    total = 0.0
    for tree in trees:
        if not _meets(sides, unit, uses[tree]):
            total += level[tree]
            continue
        for v in range(ends[tree], stop[tree]):
            w = value[v]
            for e in range(v * width, (v + 1) * width):
                w *= given[chosen[e]]
            for e in range(start[v], end[v]):
                if unit[side[e]] == candidate:
                    w *= given[side[e]]
            total += w
        for v in range(back[tree], ends[tree + 1]):
            if broken[v] == candidate:
                w = value[v] * given[side[start[v]]]
                for e in range(v * width, (v + 1) * width):
                    w *= given[chosen[e]]
                total += w
    return total


@jit
def _set_apart(own, unit, gain, before):
    """Keep the gains of a leaf's own candidates, which change its probability too, and start them from 0."""
    for e in range(own.size):
        before[e], gain[unit[own[e]]] = gain[unit[own[e]]], 0.0


@jit
def _put_back(own, unit, chance, level, gain, before):
    """Gains of a leaf's own candidates, given what there is without any."""
    for e in range(own.size):
        p, c = chance[own[e]], unit[own[e]]
        gain[c] = before[e] + p * gain[c] + (p - 1.0) * level


@jit
def _try_all(tails, boxes, i, k, chosen, row, out, gain, before):
    """What every candidate adds to PG² of the chosen units; returns that."""
    width = _count_chosen(boxes, chosen)
    targets = boxes.target[boxes.target_start[k] : boxes.target_start[k + 1]]
    for tree, column in targets:
        _list_reached(boxes, tree, column, chosen, width, row, out)
    gain[:] = 0.0
    total, n_held = 0.0, 0
    unit, uses, ends, given, chance = boxes.unit, boxes.uses, boxes.tree, row.given, row.chance
    leaves = (out.stop, out.back, out.value, out.broken, out.chosen, out.start, out.end, out.side, out.level)
    for a in range(len(targets)):
        tree, later = targets[a, 0], targets[a + 1 :, 0]
        for slot in range(ends[tree], ends[tree + 1]):
            if out.stop[tree] <= slot and slot < out.back[tree]:
                continue
            leaf, y, p, own = out.leaf[slot], out.value[slot], out.chance[slot], out.side[out.start[slot] : out.end[slot]]
            sides = boxes.side[boxes.start[leaf] : boxes.stays[leaf]]
            n_held = _enter(tails, boxes, i, sides, n_held, row)
            if slot >= out.back[tree]:
                mean = _sum_violated(later, ends, sides, out.broken[slot], width, unit, uses, given, *leaves)
                gain[out.broken[slot]] += p * chance[own[0]] * y * (y + 2.0 * mean)
                continue
            _set_apart(own, unit, gain, before)
            here = p * y * y
            here += _sum_reached(later, ends, sides, 2.0 * p * y, width, unit, uses, boxes.used_start, boxes.used, given, *leaves, out.mean, gain)
            _put_back(own, unit, chance, here, gain, before)
            total += here
    _leave(boxes, n_held, row)
    return total


@jit
def rank_greedily(ranks, tails, boxes, order, gaps):
    """Choose units one by one; among equal gains, to 1e-12 of PG², the first unit.

    Parameters
    ----------
    ranks, tails, boxes : as ``gap.measure_rankings`` takes them
    order : (n, outputs, steps) int64, the unit chosen at each step, -1 where no candidate is left; is overwritten
    gaps : (n, outputs, steps) float64, PG² of the units up to each step, where none is left that of all; is overwritten
    """
    row, reached, n_units = _make_row(boxes), _make_reached(boxes), boxes.perturbed.size
    gain, before, chosen = np.zeros(n_units), np.zeros(n_units), np.zeros(n_units, np.bool_)
    for i in range(order.shape[0]):
        _meet(ranks, tails, boxes, i, row)
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
                    level = _try_all(tails, boxes, i, k, chosen, row, reached, gain, before)
                    for u in range(best + 1, n_units):
                        if boxes.perturbed[u] and not chosen[u] and gain[u] - gain[best] > TIE * (level + max(gain[u], 0.0)):
                            best = u
                    chosen[best] = True
                    gap = level + gain[best]
                order[i, k, step] = best
                gaps[i, k, step] = gap
