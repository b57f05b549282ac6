"""Leaves as boxes: what a leaf asks of everything that may be perturbed, each distinct question once.

A unit is what is perturbed at a time: a numeric feature by itself, whose values move, or a categorical feature or a group of features, whose
values are drawn together from rows of data. What a leaf asks of a unit, all splits of the unit on its path together, is a side of its box: of a
numeric feature an interval of bins, of a drawn unit a set of the atoms that it is drawn from. Many leaves have a side in common.
"""

import itertools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..trees.forest import Forest

KEPT = 1 << 22


class Atoms(NamedTuple):
    """What a unit is drawn from."""

    bins: np.ndarray  # (atoms, members) int64, of the unit's used features, in their order
    weight: np.ndarray  # (atoms,) float64, adds up to 1


class Boxes(NamedTuple):
    """Leaves in the order of trees, and all distinct sides, those of a unit end to end."""

    value: np.ndarray  # (leaves, width) float64
    start: np.ndarray  # (leaves + 1,) int64, leaf l's sides are side[start[l]:start[l + 1]],
    stays: np.ndarray  # (leaves,) int64, from here on those of units that are never perturbed
    side: np.ndarray  # int32
    tree: np.ndarray  # (trees + 1,) int64, tree t's leaves are tree[t]..tree[t + 1] - 1
    uses: np.ndarray  # (trees, units) bool, the tree asks something of the unit
    used_start: np.ndarray  # (trees + 1,) int64, the same as a list
    used: np.ndarray  # int32
    target_start: np.ndarray  # (outputs + 1,) int64, output k is the sum of targets target_start[k]..target_start[k + 1] - 1
    target: np.ndarray  # (targets, 2) int32, tree and column of its values
    first: np.ndarray  # (units + 1,) int64, unit u's sides are first[u]..first[u + 1] - 1
    unit: np.ndarray  # (sides,) int32
    interval: np.ndarray  # (sides, 3) int64: the side of a moved unit holds bins above the first up to the second, and missing if the third is 1
    perturbed: np.ndarray  # (units,) bool
    moved: np.ndarray  # (units,) bool
    cell: np.ndarray  # (units + 1,) int64, a moved unit's numbers in a row of Tails are those from cell[u] up to cell[u + 1]
    given_start: np.ndarray  # (units,) int64, where a drawn unit's matrix in ``given`` starts; -1 for others
    given: np.ndarray  # float64, probability of one side given another, (sides, sides) of each drawn unit
    drawn: np.ndarray  # (sides,) float64, probability of a drawn unit's sides, 0 elsewhere
    condition_start: np.ndarray  # (sides + 1,) int64, side s holds where conditions condition_start[s]..condition_start[s + 1] - 1 of a row do
    condition: np.ndarray  # (conditions, 5) int64: used feature; interval as above; first of its set's members, -1 on numeric features
    member: np.ndarray  # bool, the categorical features' sets, a number for every bin
    kept: np.ndarray  # (1,) int64, probabilities of sides given others that may be kept while a row is worked on


def _edges(forest: Forest):
    """Of every edge, the split it leaves, and bins that pass all splits of the same feature down to it: intervals, and of categorical features
    sets. ``parent (nodes,)``, ``interval (nodes, 3)``, and from node to ``(bins,) bool``."""
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


def _paths(forest: Forest, leaves, parent):
    """Edges of every leaf's path, of a feature's only the lowest: ``(leaf's position, edge)``."""
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


def _probabilities(sides, conditions, atoms: Atoms, member, place: Mapping[int, int], top: int):
    """Of a drawn unit: probability of every side, and of every side given every other; 0 given what cannot be."""
    holds = np.ones((len(sides), atoms.weight.size), bool)
    for s, of_side in enumerate(sides):
        for c in of_side:
            feature, lower, upper, missing, first = conditions[c]
            bin_ = atoms.bins[:, place[feature]]
            passes = ((bin_ > lower) & (bin_ <= upper)) | ((bin_ == top) & (missing > 0)) if first < 0 else member[first + bin_]
            holds[s] &= passes
    joint = (holds * atoms.weight) @ holds.T
    probability = np.diag(joint).copy()
    return probability, np.divide(joint, probability[:, None], out=np.zeros_like(joint), where=probability[:, None] > 0)


def numeric_alone(forest: Forest):
    """``(units,) bool``: a numeric feature by itself, which noise can be added to."""
    first_member = np.unique(forest.player, return_index=True)[1]
    return (np.bincount(forest.groups)[forest.players] == 1) & (forest.ensemble.n_categories[forest.column[first_member]] == 0)


def lay_out_boxes(forest: Forest, atoms: Mapping[int, Atoms]) -> Boxes:
    """Make boxes of all leaves.

    Parameters
    ----------
    forest : the model; its players are the units
    atoms : of the units that are drawn. A numeric feature that is a player of its own and not among them is moved; whatever else is not among
        them is never perturbed
    """
    ensemble, traced = forest.ensemble, forest.trace
    leaves = traced.order[ensemble.feature[traced.order] < 0]
    parent, highest, interval, sets = _edges(forest)
    owner, edge = _paths(forest, leaves, parent)
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
    conditions, condition = np.unique(rows, axis=0, return_inverse=True)
    condition, member = condition.reshape(-1), np.concatenate(members)

    unit_of = forest.player[conditions[:, 0]] if conditions.size else np.zeros(0, np.int32)
    asked: list[dict[int, list[int]]] = [{} for _ in range(leaves.size)]
    for o, c in zip(owner.tolist(), condition.tolist(), strict=True):
        asked[o].setdefault(int(unit_of[c]), []).append(c)
    keys = sorted({(unit, tuple(sorted(found))) for sides in asked for unit, found in sides.items()})
    number = {key: s for s, key in enumerate(keys)}
    unit = np.array([unit for unit, _ in keys], np.int32)
    first = np.searchsorted(unit, np.arange(forest.n_players + 1))

    first_member = np.unique(forest.player, return_index=True)[1]
    moved = numeric_alone(forest) & ~np.isin(np.arange(forest.n_players), list(atoms))
    cells = np.where(moved, highest[first_member] + 2, 0)
    given_start, given, drawn, end = np.full(forest.n_players, -1), [np.zeros(0)], np.zeros(unit.size), 0
    for u, found in atoms.items():
        mine = {int(f): j for j, f in enumerate(np.flatnonzero(forest.player == u))}
        top = np.iinfo(forest.bin_type).max
        probability, table = _probabilities([key[1] for key in keys[first[u] : first[u + 1]]], conditions, found, member, mine, top)
        drawn[first[u] : first[u + 1]], given_start[u], end = probability, end, end + table.size
        given.append(table.reshape(-1))

    perturbed = moved | (given_start >= 0)
    asks = [sorted((number[u, tuple(sorted(found))] for u, found in sides.items()), key=lambda s: not perturbed[unit[s]]) for sides in asked]
    side = np.array([s for sides in asks for s in sides], np.int32)
    n_trees = ensemble.root.size
    tree_of_leaf = traced.tree[leaves]
    uses = np.zeros((n_trees, forest.n_players), bool)
    sizes_of = np.array([len(sides) for sides in asked], np.int64)
    uses[np.repeat(tree_of_leaf, sizes_of), unit[side]] = True
    start = np.concatenate(([0], np.cumsum(sizes_of))).astype(np.int64)
    width, outputs = ensemble.value.shape[1], ensemble.base.size
    targets = [[(t, k if width > 1 else 0) for t in range(n_trees) if width > 1 or ensemble.output[t] == k] for k in range(outputs)]
    return Boxes(
        value=ensemble.value[leaves],
        start=start,
        stays=start[:-1] + np.array([sum(bool(perturbed[unit[s]]) for s in sides) for sides in asks], np.int64),
        side=side,
        tree=np.searchsorted(tree_of_leaf, np.arange(n_trees + 1)),
        uses=uses,
        used_start=np.concatenate(([0], np.cumsum(uses.sum(axis=1)))).astype(np.int64),
        used=np.nonzero(uses)[1].astype(np.int32),
        target_start=np.concatenate(([0], np.cumsum([len(found) for found in targets]))).astype(np.int64),
        target=np.array([pair for found in targets for pair in found], np.int32).reshape(-1, 2),
        first=first,
        unit=unit,
        interval=np.array([conditions[found[0], 1:4] if moved[u] else (0, 0, 0) for u, found in keys], np.int64).reshape(-1, 3),
        perturbed=perturbed,
        moved=moved,
        cell=np.concatenate(([0], np.cumsum(cells))).astype(np.int64),
        given_start=given_start,
        given=np.concatenate(given),
        drawn=drawn,
        condition_start=np.concatenate(([0], np.cumsum([len(found) for _, found in keys]))).astype(np.int64),
        condition=conditions[[c for _, found in keys for c in found]].astype(np.int64).reshape(-1, 5),
        member=member,
        kept=np.array([KEPT]),
    )


def count_visits(boxes: Boxes) -> int:
    """Pairs of leaves that one pass over all units looks at, at most: of different trees of one output, the first leaf's with a unit in common
    with the second's tree."""
    n_leaves, leaf = np.diff(boxes.tree), np.repeat(np.arange(len(boxes.value)), np.diff(boxes.start))
    asks = np.zeros((len(boxes.value), boxes.perturbed.size), np.float32)
    asks[leaf, boxes.unit[boxes.side]] = boxes.perturbed[boxes.unit[boxes.side]]
    total = 0
    for first, stop in itertools.pairwise(boxes.target_start.tolist()):
        trees = boxes.target[first:stop, 0]
        for i, t in enumerate(trees):
            later = trees[i + 1 :]
            shared = asks[boxes.tree[t] : boxes.tree[t + 1]] @ boxes.uses[later].T.astype(np.float32) > 0
            total += int((shared @ n_leaves[later]).sum())
    return total
