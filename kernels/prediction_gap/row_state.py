"""State of one row before loops over pairs of leaves: its sides, and probabilities of sides under perturbation."""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..jit.lanes import LANES, aligned, splat, store
from .leaf_regions import Intervals, LeafRegions, Units
from .noise import BinDistributions


class Blocks(NamedTuple):
    """Leaves of a tree in blocks of LANES, and one block's values for the current row."""

    start: np.ndarray  # (trees + 1,) int64, tree t's blocks are start[t]..start[t + 1] - 1
    given: np.ndarray  # (sides * LANES,) float64, side by side: P(the perturbed row is on the side, given that it is in each of the block's leaves)
    at: np.ndarray  # (LANES, units) int64, the leaves' sides while ``given`` is filled, -1 between uses
    asked: np.ndarray  # (units,) int64, perturbed units that the block depends on


class RowState(NamedTuple):
    """Sides, probabilities and leaves of one row."""

    inside: np.ndarray  # (sides,) bool, the row itself is on the side
    probability: np.ndarray  # (sides,) float64, probability of the side when its unit is perturbed
    leaf: np.ndarray  # (trees,) int64, the leaf that the row itself reaches
    blocks: Blocks


@jit
def make_row_state(regions: LeafRegions) -> RowState:
    """Allocate the state of a row."""
    n_sides, n_trees, n_units = regions.sides.unit.size, regions.trees.leaf.size - 1, regions.units.perturbed.size
    start = np.zeros(n_trees + 1, np.int64)
    for t in range(n_trees):
        start[t + 1] = start[t] + (regions.trees.leaf[t + 1] - regions.trees.leaf[t] + LANES - 1) // LANES
    blocks = Blocks(start, aligned(n_sides * LANES), np.full((LANES, n_units), -1, np.int64), np.zeros(n_units, np.int64))
    return RowState(np.zeros(n_sides, np.bool_), np.zeros(n_sides), np.zeros(n_trees, np.int64), blocks)


@jit
def _weigh(cumulative: np.ndarray, present: float, lower: int, upper: int) -> float:
    """Return the probability of an interval of bins, see ``BinDistributions``, without branches."""
    p = cumulative[np.uint64(1 + max(lower, upper))] - cumulative[np.uint64(1 + lower)]
    return p + (present if p < 0.0 else 0.0)


@jit
def _fill_lane(units: Units, interval: Intervals, distribution: BinDistributions, u: int, s: int, probability: np.ndarray, lane: np.ndarray) -> None:
    """Write the probabilities of unit u's sides given side s (unconditional if s < 0) to every LANES-th place of ``lane``.

    Given an impossible side all are 0. Arguments are few, since a whole ``LeafRegions`` is copied at every call, and loops start at 0, so that no
    index needs a sign check.
    """
    first, size = units.side[u], units.side[u + 1] - units.side[u]
    if s < 0:
        for j in range(size):
            lane[j * LANES] = probability[first + j]
    elif not units.noised[u]:
        given = units.given[units.given_start[u] + (s - first) * size :]
        for j in range(size):
            lane[j * LANES] = given[j]
    elif probability[s] == 0.0:
        for j in range(size):
            lane[j * LANES] = 0.0
    else:
        cumulative, present, lost = distribution.cumulative[units.cell[u] : units.cell[u + 1]], distribution.present[u], distribution.missing[u]
        lower, upper, missing, condition = interval.lower[s], interval.upper[s], interval.missing[s], probability[s]
        lowers, uppers, admits = interval.lower[first : first + size], interval.upper[first : first + size], interval.missing[first : first + size]
        for j in range(lowers.size):
            p = _weigh(cumulative, present, max(lower, lowers[j]), min(upper, uppers[j]))
            lane[j * LANES] = (p + (lost if missing & admits[j] > 0 else 0.0)) / condition


@jit
def leaves_of_block(regions: LeafRegions, row: RowState, tree: int, block: int) -> tuple[int, int]:
    """Return a block's first leaf, and the one after its last."""
    first = regions.trees.leaf[tree] + (block - row.blocks.start[tree]) * LANES
    return first, min(first + LANES, regions.trees.leaf[tree + 1])


@jit
def fill_block(
    regions: LeafRegions, distribution: BinDistributions, block: tuple[int, int], wanted: np.ndarray, row: RowState, given: np.ndarray
) -> None:
    """Write the probabilities of sides given each leaf of a block to ``given``."""
    unit, first, at, units, interval = regions.sides.unit, regions.units.side, row.blocks.at, regions.units, regions.sides.interval
    for leaf in range(block[0], block[1]):
        for j in range(regions.leaves.start[leaf], regions.leaves.fixed[leaf]):
            at[leaf - block[0], unit[regions.leaves.side[j]]] = regions.leaves.side[j]
    for u in range(regions.units.perturbed.size):
        same = True
        for lane in range(1, LANES):
            same &= at[lane, u] == at[0, u]
        if wanted[u] > 0:
            for lane in range(1 if same else LANES):
                if lane > 0 and at[lane, u] == at[lane - 1, u]:
                    for other in range(first[u], first[u + 1]):
                        given[other * LANES + lane] = given[other * LANES + lane - 1]
                else:
                    _fill_lane(units, interval, distribution, u, at[lane, u], row.probability, given[first[u] * LANES + lane :])
            for other in range(first[u], first[u + 1] if same else first[u]):
                store(given, other * LANES, splat(given[other * LANES]))
        at[:, u] = -1


@jit
def take_row(distributions: BinDistributions, i: int) -> BinDistributions:
    """Select the distributions of row i, as views."""
    return BinDistributions(distributions.cumulative[i], distributions.present[i], distributions.missing[i])


@jit
def locate_row(bins: np.ndarray, i: int, distribution: BinDistributions, regions: LeafRegions, row: RowState) -> None:
    """Find the sides and leaves of row i, and the probability of each side under perturbation."""
    conditions, interval, inside, probability = regions.sides.conditions, regions.sides.interval, row.inside, row.probability
    units, resampled, top = regions.units, regions.sides.resampled, np.int64(np.iinfo(bins.dtype).max)
    start, feature, first_member, member = conditions.start, conditions.feature, conditions.first_member, conditions.member
    lower, upper, missing = conditions.interval.lower, conditions.interval.upper, conditions.interval.missing
    for s in range(inside.size):
        holds = True
        for c in range(start[s], start[s + 1]):  # inlined: a function of so many arrays would count references to all of them at each call
            bin_ = np.int64(bins[feature[c], i])
            if first_member[c] >= 0:
                holds &= member[first_member[c] + bin_]
            elif bin_ == top:
                holds &= missing[c] > 0
            else:
                holds &= lower[c] < bin_ and bin_ <= upper[c]
        inside[s], probability[s] = holds, resampled[s]
    for u in range(units.noised.size):
        if units.noised[u]:
            cumulative, present, lost = distribution.cumulative[units.cell[u] : units.cell[u + 1]], distribution.present[u], distribution.missing[u]
            for s in range(units.side[u], units.side[u + 1]):
                probability[s] = _weigh(cumulative, present, interval.lower[s], interval.upper[s]) + interval.missing[s] * lost
    for t in range(regions.trees.leaf.size - 1):
        for leaf in range(regions.trees.leaf[t], regions.trees.leaf[t + 1]):
            reached = True
            for j in range(regions.leaves.start[leaf], regions.leaves.start[leaf + 1]):
                reached &= inside[regions.leaves.side[j]]
            if reached:
                row.leaf[t] = leaf


@jit
def list_asked(regions: LeafRegions, block: tuple[int, int], row: RowState) -> np.ndarray:
    """List the perturbed units that a block depends on."""
    n, blocks = 0, row.blocks
    for leaf in range(block[0], block[1]):
        for j in range(regions.leaves.start[leaf], regions.leaves.fixed[leaf]):
            u = regions.sides.unit[regions.leaves.side[j]]
            if blocks.at[0, u] < 0:
                blocks.at[0, u] = 0
                blocks.asked[n] = u
                n += 1
    for u in blocks.asked[:n]:
        blocks.at[0, u] = -1
    return blocks.asked[:n]


@jit
def any_used(units: np.ndarray, uses: np.ndarray) -> bool:
    """Return whether a tree depends on any of these units."""
    found = False
    for u in units:
        found |= uses[u]
    return found
