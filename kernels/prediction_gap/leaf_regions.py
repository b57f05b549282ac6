"""Regions of leaves as intersections of sides, one per perturbed unit, with distinct conditions stored once.

A unit is perturbed as a whole: a numeric feature, whose value gets noise, or a categorical feature or group of features, whose values are resampled
together from a row of data. A leaf's region is a box: a row reaches the leaf if each of its units is on the leaf's side for that unit. The side
combines all splits of the unit on the leaf's path: an interval of bins for a numeric feature, a set of atoms for a resampled unit. Many leaves share
sides.
"""

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..trees.forest import Forest

CACHED = 1 << 22  # probabilities, 32 MiB
Conditions = list[list[int]]  # numbers of the conditions of every side


class Atoms(NamedTuple):
    """Combinations of values that a resampled unit is drawn from, with probabilities."""

    bins: np.ndarray  # (atoms, members) int64, bins of the unit's used features, in their order
    weight: np.ndarray  # (atoms,) float64, probabilities


class Intervals(NamedTuple):
    """Sets of bins of one feature: the bins above ``lower`` up to ``upper``, and the missing bin where ``missing`` is 1."""

    lower: np.ndarray  # (n,) int64
    upper: np.ndarray  # (n,) int64
    missing: np.ndarray  # (n,) int64, 0 or 1


class SideConditions(NamedTuple):
    """Conditions on single features whose conjunction is a side, concatenated by side."""

    start: np.ndarray  # (sides + 1,) int64, side s holds where conditions start[s]..start[s + 1] - 1 do
    feature: np.ndarray  # (conditions,) int64, used feature
    interval: Intervals  # (conditions,) of numeric features
    first_member: np.ndarray  # (conditions,) int64, where a categorical feature's set starts in ``member``; -1 for numeric ones
    member: np.ndarray  # (members,) bool, whether a bin is in the set, from bin 0 on


class Sides(NamedTuple):
    """All distinct sides, concatenated by unit."""

    unit: np.ndarray  # (sides,) int32
    interval: Intervals  # (sides,) of units with noise; 0 elsewhere
    resampled: np.ndarray  # (sides,) float64, probability that a resampled unit lies on it; 0 elsewhere
    conditions: SideConditions  # conditions for the row itself


class Leaves(NamedTuple):
    """Leaves in the order of trees."""

    value: np.ndarray  # (leaves, width) float64, margin units
    start: np.ndarray  # (leaves + 1,) int64, leaf l's sides are side[start[l]:start[l + 1]],
    fixed: np.ndarray  # (leaves,) int64, from side[fixed[l]] on those of units that are never perturbed
    side: np.ndarray  # (start[-1],) int32


class Trees(NamedTuple):
    """The leaves of every tree, and the units it depends on."""

    leaf: np.ndarray  # (trees + 1,) int64, tree t's leaves are leaf[t]..leaf[t + 1] - 1
    uses: np.ndarray  # (trees, units) bool
    start: np.ndarray  # (trees + 1,) int64, the same as a list: tree t depends on unit[start[t]:start[t + 1]]
    unit: np.ndarray  # (start[-1],) int32


class Outputs(NamedTuple):
    """The trees that every output adds up."""

    start: np.ndarray  # (outputs + 1,) int64, output k is the sum of terms start[k]..start[k + 1] - 1
    tree: np.ndarray  # (terms,) int32
    column: np.ndarray  # (terms,) int32, of the leaves' values


class Units(NamedTuple):
    """Perturbation of every unit."""

    side: np.ndarray  # (units + 1,) int64, unit u's sides are side[u]..side[u + 1] - 1
    perturbed: np.ndarray  # (units,) bool
    noised: np.ndarray  # (units,) bool, perturbed by noise on the bins of its one feature; other perturbed units are resampled
    cell: np.ndarray  # (units + 1,) int64, unit u's numbers in ``noise.BinDistributions`` are cell[u] to cell[u + 1] - 1
    given_start: np.ndarray  # (units,) int64, where a resampled unit's matrix starts in ``given``; -1 for others
    given: np.ndarray  # float64, (sides, sides) of each resampled unit, flat: probability of the column's side given the row's


class LeafRegions(NamedTuple):
    """Regions of all leaves of a model."""

    leaves: Leaves
    trees: Trees
    outputs: Outputs
    sides: Sides
    units: Units
    cached: np.ndarray  # (1,) int64, conditional probabilities that the greedy ranking may cache for a row


def _edge_conditions(forest: Forest) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, np.ndarray]]:
    """Return the bins that pass all splits of an edge's feature from the root to that edge; edge v leads into node v."""
    ensemble, splits, traced = forest.ensemble, forest.splits, forest.trace
    n_nodes = ensemble.feature.size
    inner = np.flatnonzero(ensemble.feature >= 0)
    parent, on_left = np.full(n_nodes, -1), np.zeros(n_nodes, bool)
    parent[ensemble.left[inner]] = parent[ensemble.right[inner]] = inner
    on_left[ensemble.left[inner]] = True
    position, highest = splits.lower + splits.span, np.zeros(forest.n_used, np.int64)
    np.maximum.at(highest, splits.feature[inner], position[inner] + 1)
    interval, sets = np.zeros((n_nodes, 3), np.int64), dict[int, np.ndarray]()
    for level in range(1, int(traced.levels.max(initial=0)) + 1):
        v = np.flatnonzero(traced.level == level)
        p, left = parent[v], on_left[v]
        interval[v, 0], interval[v, 1] = np.where(left, -1, position[p]), np.where(left, position[p], highest[splits.feature[p]])
        interval[v, 2] = ensemble.missing_left[p] == left
        again = traced.above[p] >= 0
        w, a = v[again], traced.above[p[again]]
        interval[w, 0], interval[w, 1] = np.maximum(interval[w, 0], interval[a, 0]), np.minimum(interval[w, 1], interval[a, 1])
        interval[w, 2] &= interval[a, 2]
        for node in v[splits.members[p] >= 0]:
            split = parent[node]
            bin_ = np.arange(ensemble.n_categories[ensemble.feature[split]] + 2)
            words = splits.words[splits.members[split] + bin_ // 32]
            found = ((words >> (bin_ % 32).astype(np.uint32)) & 1 > 0) == on_left[node]
            sets[int(node)] = found & sets[int(traced.above[split])] if traced.above[split] >= 0 else found
    return parent, highest, interval, sets


def _lowest_edges(forest: Forest, leaves: np.ndarray, parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List the lowest edge of every feature on every leaf's path: ``(leaf's position, edge)``, ``(edges,) int64`` each."""
    at, owner, owners, edges = leaves, np.arange(leaves.size), [], []
    while (parent[at] >= 0).any():
        owner, at = owner[parent[at] >= 0], at[parent[at] >= 0]
        owners.append(owner)
        edges.append(at)
        at = parent[at]
    owner, edge = (np.concatenate([np.zeros(0, np.int64), *lists]) for lists in (owners, edges))
    above = forest.trace.above[parent[edge]]
    keys, covered = owner * parent.size + edge, (owner * parent.size + above)[above >= 0]
    kept = ~np.isin(keys, covered)
    return owner[kept], edge[kept]


def _list_conditions(
    forest: Forest, edge: np.ndarray, parent: np.ndarray, interval: np.ndarray, sets: Mapping[int, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Number the distinct conditions of edges."""
    feature = forest.splits.feature[parent[edge]]
    rows = np.column_stack((feature, interval[edge], np.full(edge.size, -1)))
    member_of: dict[tuple[int, bytes], int] = {}
    n_members, members = 0, [np.zeros(0, bool)]
    for place in np.flatnonzero(forest.splits.members[parent[edge]] >= 0):
        held = sets[int(edge[place])]
        key = (int(feature[place]), held.tobytes())
        if key not in member_of:
            member_of[key] = n_members
            members.append(held)
            n_members += held.size
        rows[place, 1:] = (0, 0, 0, member_of[key])
    conditions, number = np.unique(rows, axis=0, return_inverse=True)
    return conditions.astype(np.int64), number.reshape(-1), np.concatenate(members)


def _resample(sides: Conditions, conditions: SideConditions, atoms: Atoms, column: Mapping[int, int], top: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the probability of every side of a resampled unit, ``(sides,)``, and of every side given every other, ``(sides, sides)``.

    ``column`` maps used features to columns of ``atoms.bins``; ``top`` is the missing bin. Probabilities given an impossible side are 0.
    """
    holds = np.ones((len(sides), atoms.weight.size), bool)
    for s, of_side in enumerate(sides):
        for c in of_side:
            lower, upper, missing = (of_all[c] for of_all in conditions.interval)
            bin_, first = atoms.bins[:, column[int(conditions.feature[c])]], conditions.first_member[c]
            in_interval = ((bin_ > lower) & (bin_ <= upper)) | ((bin_ == top) & (missing > 0))
            holds[s] &= in_interval if first < 0 else conditions.member[first + bin_]
    joint = (holds * atoms.weight) @ holds.T
    probability = np.diag(joint).copy()
    return probability, np.divide(joint, probability[:, None], out=np.zeros_like(joint), where=probability[:, None] > 0)


def _first_features(forest: Forest) -> np.ndarray:
    """Return the first used feature of every unit, ``(units,) int64``."""
    return np.unique(forest.player, return_index=True)[1]


def numeric_alone(forest: Forest) -> np.ndarray:
    """Return the units to which noise can be added: single numeric features.

    Parameters
    ----------
    forest : Forest
        its players are the units

    Returns
    -------
    alone : (units,) bool, the unit is a numeric feature by itself
    """
    return (np.bincount(forest.groups)[forest.players] == 1) & (forest.ensemble.n_categories[forest.column[_first_features(forest)]] == 0)


def _starts(sizes: Any) -> np.ndarray:
    """Return the starts of concatenated parts of these sizes, and the end of the last, ``(parts + 1,) int64``."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _make_units(
    forest: Forest, side: np.ndarray, sides: Conditions, conditions: SideConditions, atoms: Mapping[int, Atoms], highest: np.ndarray
) -> tuple[Units, np.ndarray]:
    """Return the units' perturbations, and the probabilities of resampled units' sides, ``(sides,) float64``."""
    noised = numeric_alone(forest) & ~np.isin(np.arange(forest.n_players), list(atoms))
    given_start, given, resampled, end = np.full(forest.n_players, -1), [np.zeros(0)], np.zeros(len(sides)), 0
    for u, found in atoms.items():
        column = {int(f): j for j, f in enumerate(np.flatnonzero(forest.player == u))}
        probability, table = _resample(sides[side[u] : side[u + 1]], conditions, found, column, np.iinfo(forest.bin_type).max)
        resampled[side[u] : side[u + 1]], given_start[u], end = probability, end, end + table.size
        given.append(table.reshape(-1))
    cell = _starts(np.where(noised, highest[_first_features(forest)] + 2, 0))
    return Units(side, noised | (given_start >= 0), noised, cell, given_start, np.concatenate(given)), resampled


def _make_outputs(forest: Forest) -> Outputs:
    width, tree = forest.ensemble.value.shape[1], np.arange(forest.ensemble.root.size)
    terms = [tree if width > 1 else tree[forest.ensemble.output == k] for k in range(forest.ensemble.base.size)]
    column = [np.full(some.size, k if width > 1 else 0) for k, some in enumerate(terms)]
    return Outputs(_starts([some.size for some in terms]), np.concatenate(terms).astype(np.int32), np.concatenate(column).astype(np.int32))


def make_regions(forest: Forest, atoms: Mapping[int, Atoms]) -> LeafRegions:
    """Compute the regions of all leaves."""
    ensemble, traced = forest.ensemble, forest.trace
    leaf = traced.order[ensemble.feature[traced.order] < 0]
    parent, highest, interval, sets = _edge_conditions(forest)
    owner, edge = _lowest_edges(forest, leaf, parent)
    conditions, condition, member = _list_conditions(forest, edge, parent, interval, sets)
    single = SideConditions(np.arange(len(conditions) + 1), conditions[:, 0], Intervals(*conditions[:, 1:4].T), conditions[:, 4], member)

    unit_of = forest.player[conditions[:, 0]] if conditions.size else np.zeros(0, np.int32)
    asked: list[dict[int, list[int]]] = [{} for _ in range(leaf.size)]
    for o, c in zip(owner.tolist(), condition.tolist(), strict=True):
        asked[o].setdefault(int(unit_of[c]), []).append(c)
    keys = sorted({(u, tuple(sorted(found))) for of_leaf in asked for u, found in of_leaf.items()})
    number = {key: s for s, key in enumerate(keys)}
    unit, found = np.array([u for u, _ in keys], np.int32), [list(conjunction) for _, conjunction in keys]
    units, resampled = _make_units(forest, np.searchsorted(unit, np.arange(forest.n_players + 1)), found, single, atoms, highest)
    of_sides = conditions[[c for some in found for c in some]].reshape(-1, 5)
    first = np.array([conditions[some[0], 1:4] if units.noised[u] else (0, 0, 0) for u, some in zip(unit, found, strict=True)], np.int64)

    perturbed = units.perturbed
    of_leaves = [sorted((number[u, tuple(sorted(some))] for u, some in of_leaf.items()), key=lambda s: not perturbed[unit[s]]) for of_leaf in asked]
    side = np.array([s for of_leaf in of_leaves for s in of_leaf], np.int32)
    start, n_trees, tree = _starts([len(of_leaf) for of_leaf in of_leaves]), ensemble.root.size, traced.tree[leaf]
    uses = np.zeros((n_trees, forest.n_players), bool)
    uses[np.repeat(tree, np.diff(start)), unit[side]] = True
    n_perturbed = np.array([sum(bool(perturbed[unit[s]]) for s in of_leaf) for of_leaf in of_leaves], np.int64)
    return LeafRegions(
        leaves=Leaves(ensemble.value[leaf], start, start[:-1] + n_perturbed, side),
        trees=Trees(np.searchsorted(tree, np.arange(n_trees + 1)), uses, _starts(uses.sum(axis=1)), np.nonzero(uses)[1].astype(np.int32)),
        outputs=_make_outputs(forest),
        sides=Sides(
            unit=unit,
            interval=Intervals(*first.reshape(-1, 3).T),
            resampled=resampled,
            conditions=SideConditions(_starts([len(some) for some in found]), of_sides[:, 0], Intervals(*of_sides[:, 1:4].T), of_sides[:, 4], member),
        ),
        units=units,
        cached=np.array([CACHED]),
    )


def count_visits(regions: LeafRegions) -> int:
    """Bound the pairs of leaves that one pass over all units visits.

    Returns
    -------
    int
        pairs of leaves of different trees of one output, where the first leaf and the second's tree depend on a perturbed unit in common
    """
    leaves, trees = regions.leaves, regions.trees
    n_leaves, leaf = np.diff(trees.leaf), np.repeat(np.arange(len(leaves.value)), np.diff(leaves.start))
    asks = np.zeros((len(leaves.value), regions.units.perturbed.size), np.float32)
    unit = regions.sides.unit[leaves.side]
    asks[leaf, unit] = regions.units.perturbed[unit]
    total = 0
    for first, stop in itertools.pairwise(regions.outputs.start.tolist()):
        of_output = regions.outputs.tree[first:stop]
        for i, t in enumerate(of_output):
            later = of_output[i + 1 :]
            shared = asks[trees.leaf[t] : trees.leaf[t + 1]] @ trees.uses[later].T.astype(np.float32) > 0
            total += int((shared @ n_leaves[later]).sum())
    return total
