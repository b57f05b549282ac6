"""Greedy rankings by prediction gap, with all candidates of a step evaluated in one pass (Gajewski et al. 2024, Section 4).

Each step adds the group that raises PG² most. PG² is not monotone: a group without effect precedes one that lowers it. A leaf counts in a step if the
row can reach it with the chosen units perturbed (it contributes for every candidate), or with one candidate more (for that one); contributions of
pairs are as in ``exact``. The first kind is stored from the front of a tree's slots and the second from the back, so that loops over pairs hardly
branch.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..jit.lanes import LANES, aligned, load, splat, store
from .leaf_regions import LeafRegions
from .noise import BinDistributions
from .row_state import RowState, any_used, fill_block, leaves_of_block, list_asked, locate_row, make_row_state, take_row

TIE = 1e-12  # gains that differ by less than this fraction of PG² are ties


class _ReachedLeaves(NamedTuple):
    """State of every leaf in a step."""

    value: np.ndarray  # (leaves,) float64, y; 0 for leaves that do not count
    probability: np.ndarray  # (leaves,) float64, of the chosen units' sides
    violated: np.ndarray  # (leaves,) int64, the candidate's side that the row is not on, or -1
    middle: np.ndarray  # (leaves,) int64, sides of chosen units are side[start:middle], start as in ``leaf_regions.Leaves``,
    end: np.ndarray  # (leaves,) int64, and those of candidates side[middle:end], where none is violated
    side: np.ndarray  # int64


class _ReachedTrees(NamedTuple):
    """The counted leaves of every tree, in as many slots as it has leaves, and its mean of y."""

    stop: np.ndarray  # (trees,) int64, leaves without a violated side are in the slots from the tree's first up to here,
    back: np.ndarray  # (trees,) int64, and those with one from here on
    leaf: np.ndarray  # (leaves,) int64, leaf of each slot
    mean: np.ndarray  # (trees,) float64, of y with the chosen units perturbed
    change: np.ndarray  # (trees, units) float64, change of the mean by a candidate


class _Step(NamedTuple):
    """Scratch arrays of a step, and values kept for a row."""

    leaves: _ReachedLeaves
    trees: _ReachedTrees
    sums: np.ndarray  # ((units + 1) * LANES,) float64, for a block: change by a candidate of the sum over later leaves, and last that sum
    scale: np.ndarray  # (LANES,) float64
    gains: np.ndarray  # (units * LANES,) float64
    given: np.ndarray  # float64, ``Blocks.given`` of every block for the current row; empty if too large to keep
    filled: np.ndarray  # (blocks,) bool, ``given`` is known


@jit
def _make_step(regions: LeafRegions, row: RowState) -> _Step:
    n, n_trees, n_units = regions.leaves.fixed.size, regions.trees.leaf.size - 1, regions.units.perturbed.size
    n_blocks, size = row.blocks.start[-1], row.blocks.given.size
    leaves = _ReachedLeaves(
        np.zeros(n), np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(regions.leaves.side.size, np.int64)
    )
    trees = _ReachedTrees(
        np.zeros(n_trees, np.int64), np.zeros(n_trees, np.int64), np.zeros(n, np.int64), np.zeros(n_trees), np.zeros((n_trees, n_units))
    )
    return _Step(
        leaves,
        trees,
        aligned((n_units + 1) * LANES),
        aligned(LANES),
        aligned(n_units * LANES),
        aligned(n_blocks * size if n_blocks * size <= regions.cached[0] else 0),
        np.zeros(n_blocks, np.bool_),
    )


@jit
def _given_block(regions: LeafRegions, distribution: BinDistributions, b: int, block: tuple[int, int], row: RowState, step: _Step) -> np.ndarray:
    """Return the probabilities of all sides given each leaf of block b, see ``Blocks.given``."""
    size = row.blocks.given.size
    given = row.blocks.given if step.given.size == 0 else step.given[b * size : (b + 1) * size]
    if step.given.size == 0 or not step.filled[b]:
        fill_block(regions, distribution, block, regions.units.perturbed, row, given)
        step.filled[b] = True
    return given


@jit
def _list_reached(regions: LeafRegions, tree: int, column: int, chosen: np.ndarray, row: RowState, step: _Step) -> None:
    """Fill a tree's slots with the leaves that count."""
    start, fixed, side, unit = regions.leaves.start, regions.leaves.fixed, regions.leaves.side, regions.sides.unit
    inside, probability, leaves, trees = row.inside, row.probability, step.leaves, step.trees
    own = regions.leaves.value[row.leaf[tree], column]
    front, back = regions.trees.leaf[tree], regions.trees.leaf[tree + 1]
    trees.mean[tree] = 0.0
    trees.change[tree] = 0.0
    for leaf in range(regions.trees.leaf[tree], regions.trees.leaf[tree + 1]):
        y, p, violated, counts = regions.leaves.value[leaf, column] - own, 1.0, -1, True
        e = start[leaf]
        for j in range(start[leaf], start[leaf + 1]):
            s = side[j]
            if chosen[unit[s]]:
                p *= probability[s]
                leaves.side[e] = s
                e += 1
            elif not inside[s]:
                counts &= violated < 0 and j < fixed[leaf] and probability[s] > 0.0
                violated = s
        if y == 0.0 or p == 0.0 or not counts:
            leaves.value[leaf] = 0.0
            continue
        leaves.value[leaf], leaves.probability[leaf], leaves.violated[leaf], leaves.middle[leaf] = y, p, violated, e
        if violated >= 0:
            back -= 1
            trees.leaf[back] = leaf
            trees.change[tree, unit[violated]] += y * p * probability[violated]
            continue
        trees.leaf[front] = leaf
        front += 1
        trees.mean[tree] += y * p
        for j in range(start[leaf], fixed[leaf]):
            s = side[j]
            if not chosen[unit[s]]:
                leaves.side[e] = s
                e += 1
                trees.change[tree, unit[s]] += y * p * (probability[s] - 1.0)
        leaves.end[leaf] = e
    trees.stop[tree], trees.back[tree] = front, back


@jit
def _sum_later(regions: LeafRegions, later: np.ndarray, asked: np.ndarray, given: np.ndarray, step: _Step) -> None:
    """Sum, for a block, y times the probability over the leaves of later trees, and each candidate's change of it."""
    # Fields are read from their records before the loops over pairs of leaves.
    sums, unit, uses, used_start, used = step.sums, regions.sides.unit, regions.trees.uses, regions.trees.start, regions.trees.unit
    first_leaf, start, stop, back, leaf = regions.trees.leaf, regions.leaves.start, step.trees.stop, step.trees.back, step.trees.leaf
    mean, change, value, violated = step.trees.mean, step.trees.change, step.leaves.value, step.leaves.violated
    middle, end, side, total = step.leaves.middle, step.leaves.end, step.leaves.side, splat(0.0)
    for first in range(0, sums.size, LANES):
        store(sums, first, splat(0.0))
    for tree in later:
        if not any_used(asked, uses[tree]):
            total = total + splat(mean[tree])
            for j in range(used_start[tree], used_start[tree + 1]):
                store(sums, used[j] * LANES, load(sums, used[j] * LANES) + splat(change[tree, used[j]]))
            continue
        for slot in range(first_leaf[tree], stop[tree]):
            v = leaf[slot]
            w = splat(value[v])
            for e in range(start[v], middle[v]):
                w = w * load(given, side[e] * LANES)
            total = total + w
            for e in range(middle[v], end[v]):
                at = unit[side[e]] * LANES
                store(sums, at, load(sums, at) + (w * load(given, side[e] * LANES) - w))
        for slot in range(back[tree], first_leaf[tree + 1]):
            v = leaf[slot]
            w = splat(value[v]) * load(given, violated[v] * LANES)
            for e in range(start[v], middle[v]):
                w = w * load(given, side[e] * LANES)
            at = unit[violated[v]] * LANES
            store(sums, at, load(sums, at) + w)
    store(sums, sums.size - LANES, total)


@jit
def _add_block(regions: LeafRegions, block: tuple[int, int], row: RowState, step: _Step) -> float:
    """Add a block's contributions to the candidates' gains, given its sums; return the contribution without candidates."""
    n_units, level, leaves, unit, probability = regions.units.perturbed.size, 0.0, step.leaves, regions.sides.unit, row.probability
    step.scale[:] = 0.0
    for leaf in range(block[0], block[1]):
        y, lane = leaves.value[leaf], leaf - block[0]
        if y == 0.0:
            continue
        p, s = leaves.probability[leaf], leaves.violated[leaf]
        whole = y + 2.0 * step.sums[n_units * LANES + lane]
        if s >= 0:
            at = unit[s] * LANES + lane
            step.gains[at] += p * y * probability[s] * (whole + 2.0 * step.sums[at])
            continue
        level += p * y * whole
        step.scale[lane] = 2.0 * p * y
        for e in range(leaves.middle[leaf], leaves.end[leaf]):  # candidates that also change the leaf's own probability
            s = leaves.side[e]
            at = unit[s] * LANES + lane
            step.gains[at] += p * y * (probability[s] - 1.0) * (whole + 2.0 * step.sums[at])
    scale = load(step.scale, 0)
    for first in range(0, step.gains.size, LANES):
        store(step.gains, first, load(step.gains, first) + scale * load(step.sums, first))
    return level


@jit
def _try_all(regions: LeafRegions, distribution: BinDistributions, k: int, chosen: np.ndarray, row: RowState, step: _Step, gain: np.ndarray) -> float:
    """Write every candidate's gain over PG² of the chosen units to ``gain``, and return that PG²."""
    total, first, stop = 0.0, regions.outputs.start[k], regions.outputs.start[k + 1]
    trees, columns = regions.outputs.tree[first:stop], regions.outputs.column[first:stop]
    for a in range(trees.size):
        _list_reached(regions, trees[a], columns[a], chosen, row, step)
    step.gains[:] = 0.0
    for a in range(trees.size):
        for b in range(row.blocks.start[trees[a]], row.blocks.start[trees[a] + 1]):
            block = leaves_of_block(regions, row, trees[a], b)
            counts = False
            for leaf in range(block[0], block[1]):
                counts |= step.leaves.value[leaf] != 0.0
            if counts:
                given = _given_block(regions, distribution, b, block, row, step)
                _sum_later(regions, trees[a + 1 :], list_asked(regions, block, row), given, step)
                total += _add_block(regions, block, row, step)
    for u in range(gain.size):
        gain[u] = 0.0
        for lane in range(LANES):
            gain[u] += step.gains[u * LANES + lane]
    return total


@jit
def _best_group(unit: np.ndarray, chosen: np.ndarray, gain: np.ndarray, level: float) -> int:
    """Return the first unchosen group with the largest gain, to 1e-12 of PG²."""
    best, best_gain = -1, 0.0
    for group in range(unit.size):
        if chosen[group]:
            continue
        found = gain[unit[group]] if unit[group] >= 0 else 0.0
        if best < 0 or found - best_gain > TIE * (level + max(found, 0.0)):
            best, best_gain = group, found
    return best


@jit
def rank_greedily(
    bins: np.ndarray, distributions: BinDistributions, regions: LeafRegions, unit: np.ndarray, order: np.ndarray, gaps: np.ndarray
) -> None:
    """Choose groups one by one; of equal gains, to 1e-12 of PG², the first group."""
    row, n_units = make_row_state(regions), regions.units.perturbed.size
    sums, n_movable = _make_step(regions, row), (unit >= 0).sum()
    gain, moved, chosen = np.zeros(n_units), np.zeros(n_units, np.bool_), np.zeros(unit.size, np.bool_)
    for i in range(order.shape[0]):
        distribution = take_row(distributions, i)
        locate_row(bins, i, distribution, regions, row)
        sums.filled[:] = False
        for k in range(order.shape[1]):
            moved[:], chosen[:] = False, False
            gap, level, known, left = 0.0, 0.0, False, n_movable
            for step in range(order.shape[2]):
                if left > 0 and not known:  # groups without effect change nothing, so that gains stay valid
                    level, known = _try_all(regions, distribution, k, moved, row, sums, gain), True
                best = _best_group(unit, chosen, gain, level)
                chosen[best] = True
                if unit[best] >= 0:
                    moved[unit[best]], known = True, False
                    left -= 1
                    gap = level + gain[unit[best]]
                order[i, k, step], gaps[i, k, step] = best, gap
