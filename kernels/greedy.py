"""The greedy ranking: at every step the unit whose perturbation, on top of those before it, moves the prediction most (Gajewski et al. 2024,
Section "Greedy"), all candidates of a step in one pass over pairs of leaves. See ``gap`` for what a pair contributes.
"""

import numpy as np

from ._jit import jit
from .gap import _enter, _leave, _make_leaves, _make_row, _meet, _meets

TIE = 1e-12  # gains that differ by less, of the larger one, are equal


@jit
def _list_reached(boxes, k, chosen, row, leaves):
    """List the leaves of output k that can be reached when the chosen units and at most one other are perturbed."""
    n, m = 0, 0
    leaves.mean[:] = 0.0
    leaves.level[:] = 0.0
    for target in range(boxes.target_start[k], boxes.target_start[k + 1]):
        b, tree, column = target - boxes.target_start[k], boxes.target[target, 0], boxes.target[target, 1]
        leaves.first[b] = n
        for leaf in range(boxes.tree[tree], boxes.tree[tree + 1]):
            y = boxes.value[leaf, column] - boxes.value[row.own[tree], column]
            start, chance, broken, violated, counts = m, 1.0, -1, -1, y != 0.0
            for j in range(boxes.start[leaf], boxes.start[leaf + 1]):
                s = boxes.side[j]
                u = boxes.unit[s]
                if chosen[u]:
                    chance *= row.chance[s]
                    leaves.side[m] = s
                    m += 1
                elif not row.inside[s]:
                    counts &= broken < 0 and boxes.perturbed[u] and row.chance[s] > 0.0
                    broken, violated = u, s
            if not counts or chance == 0.0:
                m = start
                continue
            leaves.value[n], leaves.chance[n], leaves.broken[n], leaves.start[n], leaves.middle[n] = y, chance, broken, start, m
            if broken >= 0:
                leaves.side[m] = violated
                m += 1
                leaves.mean[b, broken] += y * chance * row.chance[violated]
            else:
                leaves.level[b] += y * chance
                for j in range(boxes.start[leaf], boxes.start[leaf + 1]):
                    s = boxes.side[j]
                    u = boxes.unit[s]
                    if not chosen[u] and boxes.perturbed[u]:
                        leaves.side[m] = s
                        m += 1
                        leaves.mean[b, u] += y * chance * (row.chance[s] - 1.0)
            n += 1
    leaves.first[boxes.target_start[k + 1] - boxes.target_start[k]] = n
    leaves.start[n] = m


@jit
def _sum_reached(a, trees, sides, scale, unit, uses, used_start, used, given, first, start, middle, broken, value, side, mean, level, gain):
    """Of a leaf of tree a that was entered, which nobody violates: add to the gain of every candidate what it changes in the pairs with leaves of
    later trees; returns what these are without it."""
    total = 0.0
    for b in range(a + 1, trees.size):
        if not _meets(sides, unit, uses[trees[b]]):
            total += scale * level[b]
            for j in range(used_start[trees[b]], used_start[trees[b] + 1]):
                gain[used[j]] += scale * mean[b, used[j]]
            continue
        for v in range(first[b], first[b + 1]):
            w = scale * value[v]
            for e in range(start[v], middle[v]):
                w *= given[side[e]]
            if broken[v] >= 0:
                gain[broken[v]] += w * given[side[middle[v]]]
                continue
            total += w
            for e in range(middle[v], start[v + 1]):
                gain[unit[side[e]]] += w * (given[side[e]] - 1.0)
    return total


@jit
def _sum_violated(a, trees, sides, candidate, unit, uses, given, first, start, middle, broken, value, side, level):
    """Of a leaf of tree a that was entered, which the candidate violates: sum over the leaves of later trees of y and their probability when it is
    perturbed as well."""
    total = 0.0
    for b in range(a + 1, trees.size):
        if not _meets(sides, unit, uses[trees[b]]):
            total += level[b]
            continue
        for v in range(first[b], first[b + 1]):
            if broken[v] >= 0 and broken[v] != candidate:
                continue
            w = value[v]
            for e in range(start[v], middle[v]):
                w *= given[side[e]]
            for e in range(middle[v], start[v + 1]):
                if unit[side[e]] == candidate:
                    w *= given[side[e]]
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
def _try_all(tails, boxes, i, k, row, leaves, gain, before):
    """What every candidate adds to PG² of the chosen units; returns that."""
    gain[:] = 0.0
    total, n_held = 0.0, 0
    trees = boxes.target[boxes.target_start[k] : boxes.target_start[k + 1], 0]
    unit, uses, used_start, used, given, chance = boxes.unit, boxes.uses, boxes.used_start, boxes.used, row.given, row.chance
    first, start, middle, broken, value, side = leaves.first, leaves.start, leaves.middle, leaves.broken, leaves.value, leaves.side
    mean, level = leaves.mean, leaves.level
    for a in range(trees.size):
        for u in range(first[a], first[a + 1]):
            sides, own = side[start[u] : start[u + 1]], side[middle[u] : start[u + 1]]
            y, p = value[u], leaves.chance[u]
            n_held = _enter(tails, boxes, i, sides, n_held, row)
            if broken[u] >= 0:
                later = _sum_violated(a, trees, sides, broken[u], unit, uses, given, first, start, middle, broken, value, side, level)
                gain[broken[u]] += p * chance[own[0]] * y * (y + 2.0 * later)
                continue
            _set_apart(own, unit, gain, before)
            shared = (unit, uses, used_start, used, given, first, start, middle, broken, value, side, mean, level)
            here = p * y * y + _sum_reached(a, trees, sides, 2.0 * p * y, *shared, gain)
            _put_back(own, unit, chance, here, gain, before)
            total += here
    _leave(boxes, n_held, row)
    return total


@jit
def rank_greedily(ranks, tails, boxes, order, gaps):
    """Choose units one by one; among equal gains, to a relative 1e-12, the first unit.

    Parameters
    ----------
    ranks, tails, boxes : as ``gap.measure_rankings`` takes them
    order : (n, outputs, steps) int64, the unit chosen at each step, -1 where no candidate is left; is overwritten
    gaps : (n, outputs, steps) float64, PG² of the units up to each step, where none is left that of all; is overwritten
    """
    row, leaves, n_units = _make_row(boxes), _make_leaves(boxes), boxes.perturbed.size
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
                    _list_reached(boxes, k, chosen, row, leaves)
                    level = _try_all(tails, boxes, i, k, row, leaves, gain, before)
                    for u in range(best + 1, n_units):
                        if boxes.perturbed[u] and not chosen[u] and gain[u] - gain[best] > TIE * (level + max(gain[u], 0.0)):
                            best = u
                    chosen[best] = True
                    gap = level + gain[best]
                order[i, k, step] = best
                gaps[i, k, step] = gap
