"""Representative rows of symmetric trees: one for every reachable leaf, to precompute values (Filom et al. 2024, Alg. 3.12)."""

from math import prod
from typing import NamedTuple

import numpy as np

from ..errors import InvalidParameters
from ..trees.binning import BinnedSplits, BinTables, bin_dtype, bin_rows
from ..trees.ensemble import WORD_BITS
from ..trees.forest import Forest
from ..trees.lookup import descend


class Probes(NamedTuple):
    """Feature values with every possible combination of outcomes at the model's splits."""

    values: np.ndarray  # (used, probes) float64, NaN where missing
    bins: np.ndarray  # (used, probes) unsigned integers


class Reached(NamedTuple):
    """One row for every reachable leaf of a tree."""

    values: np.ndarray  # (used, rows) float64, NaN where missing
    leaf: np.ndarray  # (rows,) int64, nodes, ascending


def _sides(tables: BinTables, j: int) -> np.ndarray:
    """Return a used feature's values: all codes, an unknown code and NaN; or thresholds, points between them, and NaN."""
    known = int(tables.n_codes[j])
    if known:
        return np.append(np.arange(known + 1.0), np.nan)
    thresholds = tables.threshold[tables.start[j] : tables.start[j + 1]]
    edges = np.concatenate(([-np.inf], thresholds, [np.inf]))
    with np.errstate(invalid="ignore"):
        between = edges[:-1] / 2 + edges[1:] / 2
    return np.concatenate((thresholds, between, [np.inf, np.nan]))


def probe(tables: BinTables) -> Probes:
    """Choose probe values of every feature.

    Parameters
    ----------
    tables : BinTables
        without statistics: where a model has them, take their columns for numbers
    """
    sides = [_sides(tables, j) for j in range(tables.column.size)]
    values = np.full((len(sides), max((side.size for side in sides), default=0)), np.nan)
    for own, side in zip(values, sides, strict=True):
        own[: side.size] = side
    bins = np.zeros(values.shape, bin_dtype(tables))
    bin_rows(values, tables, bins)
    return Probes(values, bins)


def _go_left(splits: BinnedSplits, node: int, bins: np.ndarray) -> np.ndarray:
    """Return whether values with ``bins (n,)`` go left at a split, see BinnedSplits."""
    first, mask, asked = int(splits.members[node]), int(np.iinfo(bins.dtype).max), bins.astype(np.int64)
    if first >= 0:
        asked = splits.words[first + asked // WORD_BITS].astype(np.int64) >> asked % WORD_BITS & 1
    return (asked - splits.lower[node]) & mask <= splits.span[node] & mask


def number_leaves(forest: Forest) -> np.ndarray:
    """Number the leaves of every tree from left to right.

    In a symmetric tree the number is the leaf's code: one bit for each level, the root's the highest, 1 for right.

    Returns
    -------
    number : (nodes,) int64
        -1 at splits
    """
    order, tree = forest.trace.order, forest.trace.tree
    leaves = order[forest.ensemble.feature[order] < 0]
    n_leaves = np.bincount(tree[leaves], minlength=forest.ensemble.root.size)
    number = np.full(tree.size, -1, np.int64)
    number[leaves] = np.arange(leaves.size) - (np.cumsum(n_leaves) - n_leaves)[tree[leaves]]
    return number


def find_leaves(forest: Forest, bins: np.ndarray, tree: int) -> np.ndarray:
    """Find the leaf of a tree that each row reaches.

    Parameters
    ----------
    bins : (used, n) unsigned integers
        of rows, binned without statistics

    Returns
    -------
    leaf : (n,) int64, nodes
    """
    comparisons = forest.comparisons
    asked = comparisons.node[comparisons.start[tree] : comparisons.start[tree + 1]]
    left = [_go_left(forest.splits, v, bins[forest.splits.feature[v]]) for v in asked]
    return descend(forest.ensemble, comparisons, tree, np.array(left, bool).reshape(asked.size, bins.shape[1]))


def reach_leaves(forest: Forest, probes: Probes, tree: int) -> Reached:
    """Make a row for every reachable leaf of a symmetric tree, from every combination of its features' outcomes.

    Parameters
    ----------
    probes : Probes
        of the same forest

    Raises
    ------
    InvalidParameters
        rows that compare differently reach one leaf: the tree is not symmetric
    """
    comparisons, ensemble = forest.comparisons, forest.ensemble
    asked = comparisons.node[comparisons.start[tree] : comparisons.start[tree + 1]]
    feature = forest.splits.feature[asked]
    left = np.array([_go_left(forest.splits, v, probes.bins[j]) for v, j in zip(asked, feature, strict=True)], bool)
    left = left.reshape(asked.size, probes.bins.shape[1])
    ways = {int(j): np.unique(left[feature == j], axis=1, return_index=True)[1] for j in np.unique(feature)}
    n_rows, n_leaves = prod(way.size for way in ways.values()), int((ensemble.feature[forest.trace.tree == tree] < 0).sum())
    if n_rows > n_leaves:
        raise InvalidParameters(f"tree {tree}: rows can compare in {n_rows} ways at its splits, expected a leaf for each of them, got {n_leaves}")
    values, outcomes, before = np.zeros((len(probes.values), n_rows)), np.zeros((asked.size, n_rows), bool), 1
    for j, way in ways.items():
        chosen = way[np.arange(n_rows) // before % way.size]
        values[j], outcomes[feature == j] = probes.values[j, chosen], left[feature == j][:, chosen]
        before *= way.size
    leaf, first = np.unique(descend(ensemble, comparisons, tree, outcomes), return_index=True)
    if leaf.size < n_rows:
        raise InvalidParameters(f"tree {tree}: rows that compare in {n_rows} ways at its splits reach {leaf.size} leaves, expected one for each")
    return Reached(values[:, first], leaf)
