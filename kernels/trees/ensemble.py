"""The tree ensemble as arrays, with one semantic for all libraries, and its validation."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from .statistics import NO_STATISTICS, Statistics, find_fault

WORD_BITS = 32
COVER_TOLERANCE = 1e-2  # relative: libraries sum covers in float32; larger deviations have another cause


NO_ITERATIONS = np.zeros(0, np.int32)


class InvalidEnsemble(ValueError):
    """The arrays are not a well-formed ensemble; the message gives the tree, the node, and values got and expected."""


class TreeEnsemble(NamedTuple):
    """Trees concatenated, children by absolute index, leaf values in margin units.

    At a node a missing value goes left iff ``missing_left``. Any other value ``x`` goes left iff ``x <= threshold`` on a numeric
    split, and iff its code is in the node's category set on a categorical one.
    """

    feature: np.ndarray  # (nodes,) int32, column of the split, -1 at leaves
    threshold: np.ndarray  # (nodes,) float64, finite or +inf on numeric splits, ignored elsewhere
    missing_left: np.ndarray  # (nodes,) bool
    category_set: np.ndarray  # (nodes,) int32, index of the set of codes that go left, -1 on numeric splits and leaves
    left: np.ndarray  # (nodes,) int32, -1 at leaves
    right: np.ndarray  # (nodes,) int32, -1 at leaves
    value: np.ndarray  # (nodes, width) float64, margin added at leaves; width is 1 or the number of outputs
    cover: np.ndarray  # (nodes,) float64, training weight that reached the node
    root: np.ndarray  # (trees,) int32
    output: np.ndarray  # (trees,) int32, the output a scalar-leaf tree adds to; 0 where width > 1
    base: np.ndarray  # (outputs,) float64, margin before any tree
    n_categories: np.ndarray  # (features,) int32, codes 0..n-1 are known, every other code is "unseen" (= n); 0 on numeric features
    zero_missing: np.ndarray  # (features,) bool, values with |x| <= float32(1e-35) count as missing (LightGBM's zero_as_missing)
    set_start: np.ndarray  # (sets + 1,) int64, set s is set_words[set_start[s]:set_start[s + 1]]
    set_words: np.ndarray  # (words,) uint32, bit c of a set (word c // 32, bit c % 32): code c goes left; bit n_categories: unseen; none above it
    single_precision: bool  # the library compares float32(x); thresholds are then float32 values
    statistics: Statistics = NO_STATISTICS  # the last columns, which are not in the data
    iteration: np.ndarray = NO_ITERATIONS  # (trees,) int32, iteration of each, from 0, nondecreasing; (0,) where trees are averaged
    base_is_first: bool = False  # the base value belongs to the first iteration and is left out with it

    @property
    def n_features(self) -> int:
        """Number of columns of a row, including statistics."""
        return self.n_categories.size


def bit_set(codes: Iterable[int], n_categories: int) -> np.ndarray:
    """Pack the category codes that go left at a split into a bit set.

    Parameters
    ----------
    codes : iterable of int
        from 0 to ``n_categories``, which stands for every code that is not known

    Returns
    -------
    words : (n_categories // 32 + 1,) uint32
        code c is bit c % 32 of word c // 32
    """
    words = np.zeros(n_categories // WORD_BITS + 1, np.uint32)
    for code in codes:
        words[code // WORD_BITS] |= np.uint32(1 << (code % WORD_BITS))
    return words


def _refuse(nodes: np.ndarray, says: Callable[[int], str], owner: np.ndarray | None = None) -> None:
    """Refuse the first of some nodes, if there are any; ``owner (nodes,)`` are their trees."""
    if not nodes.size:
        return
    node = int(nodes[0])
    where = f"tree {owner[node]}, " if owner is not None and owner[node] >= 0 else ""
    raise InvalidEnsemble(f"{where}node {node}: {says(node)}")


def _check_shapes(ensemble: TreeEnsemble) -> None:
    n_nodes, n_trees, n_outputs = ensemble.feature.size, ensemble.root.size, ensemble.base.size
    wanted = dict.fromkeys(("feature", "threshold", "missing_left", "category_set", "left", "right", "cover"), (n_nodes,))
    wanted |= {"root": (n_trees,), "output": (n_trees,), "base": (n_outputs,), "zero_missing": (ensemble.n_features,)}
    for name, shape in wanted.items():
        if getattr(ensemble, name).shape != shape:
            raise InvalidEnsemble(f"array {name!r} has shape {getattr(ensemble, name).shape}, expected {shape}")
    if n_outputs < 1:
        raise InvalidEnsemble("an ensemble needs at least one output, got none")
    if ensemble.value.shape not in {(n_nodes, 1), (n_nodes, n_outputs)}:
        raise InvalidEnsemble(f"array 'value' has shape {ensemble.value.shape}, expected {(n_nodes, 1)} or {(n_nodes, n_outputs)}")
    iteration = ensemble.iteration
    if iteration.size and (iteration.shape != (n_trees,) or iteration[0] < 0 or (np.diff(iteration) < 0).any()):
        raise InvalidEnsemble(f"iterations of trees are {iteration.tolist()[:9]}, expected {n_trees} that do not fall, from 0 on")
    if not np.isfinite(ensemble.base).all():
        raise InvalidEnsemble(f"base values must be finite, got {ensemble.base.tolist()}")
    for tree in np.flatnonzero((ensemble.root < 0) | (ensemble.root >= n_nodes)):
        raise InvalidEnsemble(f"tree {tree}: root {ensemble.root[tree]} is out of range, expected 0..{n_nodes - 1}")
    for tree in np.flatnonzero((ensemble.output < 0) | (ensemble.output >= n_outputs)):
        raise InvalidEnsemble(f"tree {tree}: output {ensemble.output[tree]} is out of range, expected 0..{n_outputs - 1}")


def _check_children(side: str, child: np.ndarray, inner: np.ndarray) -> None:
    outside = inner & ((child < 0) | (child >= child.size))
    _refuse(np.flatnonzero(outside), lambda v: f"{side} child {child[v]} is out of range, expected 0..{child.size - 1}")
    _refuse(np.flatnonzero(~inner & (child != -1)), lambda v: f"a leaf has {side} child {child[v]}, expected -1")


def _owners(ensemble: TreeEnsemble) -> np.ndarray:
    """Find the tree of each node, ``(nodes,) int32``, level by level; refuse anything that is not a forest."""
    n_nodes = ensemble.feature.size
    inner = ensemble.feature >= 0
    _check_children("left", ensemble.left, inner)
    _check_children("right", ensemble.right, inner)
    parents = np.bincount(np.concatenate((ensemble.left[inner], ensemble.right[inner], ensemble.root)), minlength=n_nodes)
    bad = np.flatnonzero(parents > 1)
    _refuse(bad, lambda v: f"has {parents[v]} parents (a root counts as one), expected 1")
    owner = np.full(n_nodes, -1, np.int32)
    level, tree = ensemble.root, np.arange(ensemble.root.size, dtype=np.int32)
    while level.size:
        owner[level] = tree
        keep = inner[level]
        level, tree = level[keep], tree[keep]
        level, tree = np.concatenate((ensemble.left[level], ensemble.right[level])), np.concatenate((tree, tree))
    bad = np.flatnonzero(owner < 0)
    _refuse(bad, lambda v: "is not reached from any root: a cycle or a stray node")
    return owner


def _check_splits(ensemble: TreeEnsemble, owner: np.ndarray) -> None:
    inner = ensemble.feature >= 0
    numeric = inner & (ensemble.category_set < 0)
    bad = np.flatnonzero(ensemble.feature >= ensemble.n_features)
    _refuse(bad, lambda v: f"feature {ensemble.feature[v]} is out of range, expected 0..{ensemble.n_features - 1}", owner)
    bad = np.flatnonzero(numeric & ~(ensemble.threshold > -np.inf))  # LightGBM splits missing values from others at +inf
    _refuse(bad, lambda v: f"threshold is {ensemble.threshold[v]}, expected a number or inf", owner)
    categorical = np.zeros(inner.size, bool)
    categorical[inner] = ensemble.n_categories[ensemble.feature[inner]] > 0
    bad = np.flatnonzero(inner & (categorical == numeric))
    _refuse(bad, lambda v: f"feature {ensemble.feature[v]} has both numeric and categorical splits", owner)
    n_sets = ensemble.set_start.size - 1
    bad = np.flatnonzero(ensemble.category_set >= n_sets)
    _refuse(bad, lambda v: f"category set {ensemble.category_set[v]} is out of range, expected 0..{n_sets - 1}", owner)
    nodes = np.flatnonzero(inner & ~numeric)
    words = np.diff(ensemble.set_start)[ensemble.category_set[nodes]]
    unseen = ensemble.n_categories[ensemble.feature[nodes]]
    bad = nodes[words != unseen // WORD_BITS + 1]
    if ensemble.set_start[0] != 0 or ensemble.set_start[-1] != ensemble.set_words.size or (np.diff(ensemble.set_start) < 0).any():
        bad = np.append(bad, 0)
    _refuse(bad, lambda v: "category set does not have one bit per category and one for unseen", owner)
    last = ensemble.set_words[ensemble.set_start[ensemble.category_set[nodes] + 1] - 1].astype(np.uint64)
    bad = nodes[last >> (unseen % WORD_BITS + 1).astype(np.uint64) > 0]
    _refuse(bad, lambda v: f"category set has a bit above {ensemble.n_categories[ensemble.feature[v]]}, which is that for unseen", owner)


def _check_leaves_and_cover(ensemble: TreeEnsemble, owner: np.ndarray) -> None:
    inner = np.flatnonzero(ensemble.feature >= 0)
    leaf = np.flatnonzero(ensemble.feature < 0)
    bad = leaf[~np.isfinite(ensemble.value[leaf]).all(axis=1)]
    _refuse(bad, lambda v: f"leaf value is {ensemble.value[v].tolist()}, expected finite numbers", owner)
    bad = np.flatnonzero(~(ensemble.cover >= 0) | np.isinf(ensemble.cover))
    _refuse(bad, lambda v: f"cover is {ensemble.cover[v]}, expected a finite number >= 0", owner)
    children = ensemble.cover[ensemble.left[inner]] + ensemble.cover[ensemble.right[inner]]
    bad = inner[np.abs(children - ensemble.cover[inner]) > COVER_TOLERANCE * np.maximum(children, ensemble.cover[inner])]
    total = np.zeros(ensemble.cover.size)
    total[inner] = children
    _refuse(bad, lambda v: f"cover is {ensemble.cover[v]}, its children's add up to {total[v]}", owner)


def check(ensemble: TreeEnsemble) -> None:
    """Refuse a malformed ensemble.

    Refused are arrays of wrong shapes, cycles, shared or stray nodes, indices out of range, thresholds of NaN or -inf, base or leaf values that are
    not finite, covers that are negative, missing or inconsistent, malformed category sets, and invalid statistics.

    Raises
    ------
    InvalidEnsemble
        one line: which tree and node, what was got, what was expected
    """
    _check_shapes(ensemble)
    owner = _owners(ensemble)
    _check_splits(ensemble, owner)
    _check_leaves_and_cover(ensemble, owner)
    fault = find_fault(ensemble.statistics, ensemble.n_categories)
    if fault:
        raise InvalidEnsemble(fault)
