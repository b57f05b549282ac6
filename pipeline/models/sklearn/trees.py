"""Decision trees of scikit-learn, converted to the arrays of one ensemble."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble, bit_set


class Tree(NamedTuple):
    """One tree, with children by position."""

    feature: np.ndarray  # (nodes,) int, column of the split, -1 at leaves
    threshold: np.ndarray  # (nodes,) float64
    missing_left: np.ndarray  # (nodes,) bool
    left: np.ndarray  # (nodes,) int, -1 at leaves
    right: np.ndarray  # (nodes,) int, -1 at leaves
    value: np.ndarray  # (nodes, width) float64
    cover: np.ndarray  # (nodes,) float64
    output: int  # output of a tree with single values
    sets: dict[int, list[int]]  # left category codes of categorical splits by node; the number of categories stands for all others


def single_below(threshold: np.ndarray) -> np.ndarray:
    """Round thresholds down to single precision, which selects the same single-precision values."""
    with np.errstate(over="ignore"):
        near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near).astype(np.float64)


def read_tree(model: Any, value: np.ndarray, columns: Any = None, output: int = 0) -> Tree:
    """Read a fitted decision tree, which compares single-precision values with double-precision thresholds."""
    tree = model.tree_
    left, right = tree.children_left.astype(np.int64), tree.children_right.astype(np.int64)
    leaf = left < 0
    seen = np.arange(model.n_features_in_) if columns is None else np.asarray(columns, np.int64)
    missing_left = getattr(tree, "missing_go_to_left", None)  # older versions do not handle missing values
    return Tree(
        feature=np.where(leaf, -1, seen[np.maximum(tree.feature, 0)]),
        threshold=np.where(leaf, 0.0, single_below(tree.threshold)),
        missing_left=np.zeros(leaf.size, bool) if missing_left is None else (missing_left > 0) & ~leaf,
        left=np.where(leaf, -1, left),
        right=np.where(leaf, -1, right),
        value=np.where(leaf[:, None], value, 0.0),
        cover=tree.weighted_n_node_samples.astype(float),
        output=output,
        sets={},
    )


def join(trees: Sequence[Tree], base: np.ndarray, n_categories: np.ndarray, single_precision: bool = True) -> TreeEnsemble:
    """Concatenate trees."""
    sizes = [tree.feature.size for tree in trees]
    root = np.cumsum([0, *sizes])[:-1]
    shift = np.repeat(root, sizes)

    def joined(name: str, dtype: type) -> np.ndarray:
        return np.concatenate([getattr(tree, name) for tree in trees]).astype(dtype)

    left, right, feature = joined("left", np.int64), joined("right", np.int64), joined("feature", np.int32)
    category_set = np.full(feature.size, -1, np.int32)
    sets: list[np.ndarray] = []
    for first, tree in zip(root.tolist(), trees, strict=True):
        for node, codes in tree.sets.items():
            category_set[first + node] = len(sets)
            sets.append(bit_set(codes, int(n_categories[tree.feature[node]])))
    return TreeEnsemble(
        feature=feature,
        threshold=joined("threshold", np.float64),
        missing_left=joined("missing_left", bool),
        category_set=category_set,
        left=np.where(left < 0, -1, left + shift).astype(np.int32),
        right=np.where(right < 0, -1, right + shift).astype(np.int32),
        value=joined("value", np.float64),
        cover=joined("cover", np.float64),
        root=root.astype(np.int32),
        output=np.array([tree.output for tree in trees], np.int32),
        base=np.asarray(base, np.float64),
        n_categories=n_categories.astype(np.int32),
        zero_missing=np.zeros(n_categories.size, bool),
        set_start=np.cumsum([0, *(words.size for words in sets)]).astype(np.int64),
        set_words=np.concatenate([np.zeros(0, np.uint32), *sets]),
        single_precision=single_precision,
    )


def add_iterations(ensemble: TreeEnsemble, per_iteration: int) -> TreeEnsemble:
    """Number the iterations by trees per iteration."""
    return ensemble._replace(iteration=(np.arange(ensemble.root.size) // per_iteration).astype(np.int32))
