"""Exact prediction gaps PG² and PGI² by sums over pairs of leaves (Gajewski et al. 2024, Section 3).

PG²(x, S) is the mean of (f(x') - f(x))² where the units in S are perturbed independently and the rest stays; PGI²(x, ranking) is its mean over the
prefixes of a ranking of units, the most important first. Let y be a leaf's value less that of the leaf that x reaches in the same tree. Then f(x') -
f(x) is the sum of y over the leaves that x' reaches, and

    PG² = sum over leaves u, v of all trees of y_u y_v P(x' is in u and in v).

The probability is P(x' is in u), times for every unit of v the probability that x' is on v's side given that it is on u's; for an unperturbed unit it
is 0 or 1. Nothing cancels for small perturbations, since y is 0 at the leaf of x. Three things make this fast:

* only leaves v that x' can reach are looked at;
* eight leaves u of a tree, a block, are taken at once: the probabilities given the sides of each lie beside each other, so that eight pairs of leaves
  cost as many products of vectors as v has sides;
* of a tree that has no unit in common with a block only its mean is needed.

All prefixes of a ranking are computed in one pass: the product for a pair of leaves changes only at the ranks of v's units, and u's factors are
summed over the prefixes beforehand.
"""

from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..jit.lanes import LANES, aligned, load, splat, store
from .leaf_regions import LeafRegions
from .noise import BinDistributions
from .row_state import RowState, any_used, fill_block, leaves_of_block, list_asked, locate_row, make_row_state, take_row


class Prefixes(NamedTuple):
    """Sets of perturbed units: the prefixes of a ranking, for every row and output; in a kernel, for one row and output."""

    place: np.ndarray  # (n, outputs, units) int64, the first prefix that perturbs a unit: 1, 2, …, or 0 for never
    weight: np.ndarray  # (n, outputs, prefixes) float64, weight of each prefix's PG² in the sum


class _RankedLeaves(NamedTuple):
    """Leaves of one output's trees that the row can reach with all ranked units perturbed, each with its sides in the order of the ranking."""

    first: np.ndarray  # (terms + 1,) int64, those of each tree
    number: np.ndarray  # (leaves,) int64, the leaf's number in this list, or -1
    value: np.ndarray  # (leaves,) float64, y
    needed: np.ndarray  # (leaves,) int64, how many of the leaf's first sides have to be perturbed for the row to reach it
    start: np.ndarray  # (leaves,) int64
    side: np.ndarray  # (start[-1],) int64
    mean: np.ndarray  # (terms, units) float64, change of a tree's mean y by perturbing a unit after those ranked before it
    ahead: np.ndarray  # ((prefixes + 1) * LANES,) float64, for a block: sums of weighted probabilities over each prefix and all longer ones
    later: np.ndarray  # (LANES,) float64, for a block: sums over the leaves of later trees


@jit
def _make_ranked_leaves(regions: LeafRegions, n_prefixes: int) -> _RankedLeaves:
    most, n = 0, regions.leaves.start.size
    for k in range(regions.outputs.start.size - 1):
        most = max(most, regions.outputs.start[k + 1] - regions.outputs.start[k])
    return _RankedLeaves(
        np.zeros(most + 1, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(regions.leaves.side.size, np.int64),
        np.zeros((most, regions.units.perturbed.size)),
        aligned((n_prefixes + 1) * LANES),
        aligned(LANES),
    )


@jit
def _list_ranked(regions: LeafRegions, k: int, place: np.ndarray, row: RowState, ranked: _RankedLeaves) -> None:
    """List the leaves of output k that the row can reach, with sides in the order of perturbation."""
    leaves, unit, n, m = regions.leaves, regions.sides.unit, 0, 0
    for term in range(regions.outputs.start[k], regions.outputs.start[k + 1]):
        b, tree, column = term - regions.outputs.start[k], regions.outputs.tree[term], regions.outputs.column[term]
        ranked.first[b] = n
        ranked.mean[b] = 0.0
        for leaf in range(regions.trees.leaf[tree], regions.trees.leaf[tree + 1]):
            y = leaves.value[leaf, column] - leaves.value[row.leaf[tree], column]
            start, last, counts = m, 0, y != 0.0
            ranked.number[leaf] = -1
            for j in range(leaves.start[leaf], leaves.start[leaf + 1]):
                s = leaves.side[j]
                here = place[unit[s]]
                if here == 0:
                    counts &= row.inside[s]
                    continue
                if not row.inside[s]:
                    last = max(last, here)
                e = m
                while e > start and place[unit[ranked.side[e - 1]]] > here:
                    ranked.side[e] = ranked.side[e - 1]
                    e -= 1
                ranked.side[e] = s
                m += 1
            p, needed = 1.0, 0
            while counts and needed < m - start and place[unit[ranked.side[start + needed]]] <= last:
                p *= row.probability[ranked.side[start + needed]]
                needed += 1
            if not counts or p == 0.0:
                m = start
                continue
            ranked.number[leaf], ranked.value[n], ranked.needed[n], ranked.start[n] = n, y, needed, start
            n += 1
            ranked.mean[b, unit[ranked.side[start + needed - 1]]] += y * p
            for e in range(start + needed, m):
                s = ranked.side[e]
                ranked.mean[b, unit[s]] += y * p * (row.probability[s] - 1.0)
                p *= row.probability[s]
    ranked.first[regions.outputs.start[k + 1] - regions.outputs.start[k]] = n
    ranked.start[n] = m


@jit
def _sum_ahead(unit: np.ndarray, prefixes: Prefixes, probability: np.ndarray, ranked: _RankedLeaves, v: int, lane: int) -> None:
    """Write leaf v's sums of weighted probabilities, over every prefix and all longer ones, to a lane of ``ahead``."""
    p, e, stop, place, weight, ahead = 1.0, ranked.start[v], ranked.start[v + 1], prefixes.place, prefixes.weight, ranked.ahead
    for r in range(place[unit[ranked.side[e + ranked.needed[v] - 1]]], weight.size + 1):  # shorter prefixes do not reach the leaf
        while e < stop and place[unit[ranked.side[e]]] <= r:
            p *= probability[ranked.side[e]]
            e += 1
        ahead[r * LANES + lane] = weight[r - 1] * p
    for r in range(weight.size - 1, 0, -1):
        ahead[r * LANES + lane] += ahead[(r + 1) * LANES + lane]


@jit
def _sum_later(
    regions: LeafRegions, terms: tuple[int, int], asked: np.ndarray, given: np.ndarray, place: np.ndarray, ranked: _RankedLeaves, first_term: int
) -> None:
    """Sum, for a block, y times the weighted probabilities of both leaves over these terms' trees, for all prefixes together."""
    trees, unit, ahead, total = regions.trees, regions.sides.unit, ranked.ahead, splat(0.0)
    for term in range(terms[0], terms[1]):
        b, tree = term - first_term, regions.outputs.tree[term]
        if not any_used(asked, trees.uses[tree]):
            for j in range(trees.start[tree], trees.start[tree + 1]):
                u = trees.unit[j]
                total = total + splat(ranked.mean[b, u]) * load(ahead, place[u] * LANES)
            continue
        for v in range(ranked.first[b], ranked.first[b + 1]):
            reached = ranked.start[v] + ranked.needed[v]
            w = splat(ranked.value[v])
            for e in range(ranked.start[v], reached):
                w = w * load(given, ranked.side[e] * LANES)
            total = total + w * load(ahead, place[unit[ranked.side[reached - 1]]] * LANES)
            for e in range(reached, ranked.start[v + 1]):
                narrower = w * load(given, ranked.side[e] * LANES)
                total = total + (narrower - w) * load(ahead, place[unit[ranked.side[e]]] * LANES)
                w = narrower
    store(ranked.later, 0, total)


@jit
def _sum_ranked(regions: LeafRegions, distribution: BinDistributions, k: int, prefixes: Prefixes, row: RowState, ranked: _RankedLeaves) -> float:
    """Return the weighted sum of PG² of output k over the prefixes of a ranking."""
    first_term, stop_term, total = regions.outputs.start[k], regions.outputs.start[k + 1], 0.0
    for term in range(first_term, stop_term):
        tree = regions.outputs.tree[term]
        for b in range(row.blocks.start[tree], row.blocks.start[tree + 1]):
            block = leaves_of_block(regions, row, tree, b)
            ranked.ahead[:] = 0.0
            n_here = 0
            for leaf in range(block[0], block[1]):
                if ranked.number[leaf] >= 0:
                    _sum_ahead(regions.sides.unit, prefixes, row.probability, ranked, ranked.number[leaf], leaf - block[0])
                    n_here += 1
            if n_here == 0:
                continue
            fill_block(regions, distribution, block, prefixes.place, row, row.blocks.given)
            _sum_later(regions, (term + 1, stop_term), list_asked(regions, block, row), row.blocks.given, prefixes.place, ranked, first_term)
            for leaf in range(block[0], block[1]):
                if ranked.number[leaf] >= 0:
                    y, lane = ranked.value[ranked.number[leaf]], leaf - block[0]
                    total += y * (y * ranked.ahead[LANES + lane] + 2.0 * ranked.later[lane])
    return total


@jit
def measure_rankings(bins: np.ndarray, distributions: BinDistributions, regions: LeafRegions, prefixes: Prefixes, out: np.ndarray) -> None:
    """Add the weighted PG² of the prefixes of rankings: PGI², or PG² with one prefix (Gajewski et al. 2024)."""
    row, ranked = make_row_state(regions), _make_ranked_leaves(regions, prefixes.weight.shape[2])
    for i in range(out.shape[0]):
        distribution = take_row(distributions, i)
        locate_row(bins, i, distribution, regions, row)
        for k in range(out.shape[1]):
            of_output = Prefixes(prefixes.place[i, k], prefixes.weight[i, k])
            _list_ranked(regions, k, of_output.place, row, ranked)
            out[i, k] = _sum_ranked(regions, distribution, k, of_output, row, ranked)
