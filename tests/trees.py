"""Trees written down by hand."""

import numpy as np
from numpy.testing import assert_array_equal

from leafledger.kernels.trees.ensemble import TreeEnsemble, check
from leafledger.kernels.trees.statistics import ABOVE, EQUAL, Statistics, make_directory

STATISTICS = Statistics(  # of a number and a category with 40 values: by the category, and by it and the number
    source=np.array([0, 1], np.int32),
    nan_above=np.zeros(2, bool),
    element_start=np.array([0, 1, 4]),
    element=np.array([1, 1, 0, 1], np.int32),
    kind=np.array([0, 0, 1, 2], np.uint8),
    bound=np.array([0.0, 0, 0.5, 7]),
    key_start=np.array([0, 2, 2]),
    key=np.array([5, 2**63], np.uint64),
    directory_bits=np.array([1, 1]),
    directory_start=np.array([0, 3]),
    directory=np.array([0, 1, 2, 0, 0, 0]),
    column=np.array([2, 3], np.int32),
    projection=np.array([0, 1], np.int32),
    code_start=np.array([0, 3]),
    code=np.array([0, 1, 2, 0], np.uint8),
)


def one_tree(feature, threshold, left, right, value, cover, n_features: int) -> TreeEnsemble:
    """An ensemble of one tree, node 0 its root: numeric splits, a missing value goes right; -1 for feature and children at leaves."""
    n_nodes = len(feature)
    leaf = np.asarray(feature) < 0
    ensemble = TreeEnsemble(
        feature=np.asarray(feature, np.int32),
        threshold=np.where(leaf, 0.0, threshold),
        missing_left=np.zeros(n_nodes, bool),
        category_set=np.full(n_nodes, -1, np.int32),
        left=np.asarray(left, np.int32),
        right=np.asarray(right, np.int32),
        value=np.asarray(value, float).reshape(n_nodes, -1),
        cover=np.asarray(cover, float),
        root=np.zeros(1, np.int32),
        output=np.zeros(1, np.int32),
        base=np.zeros(np.asarray(value).size // n_nodes),
        n_categories=np.zeros(n_features, np.int32),
        zero_missing=np.zeros(n_features, bool),
        set_start=np.zeros(1, np.int64),
        set_words=np.zeros(0, np.uint32),
        single_precision=False,
    )
    check(ensemble)
    return ensemble


def assert_same_bits(one, other):
    """Records of arrays, and of such records, are equal in every element."""
    if isinstance(one, tuple):
        for mine, theirs in zip(one, other, strict=True):
            assert_same_bits(mine, theirs)
    else:
        assert_array_equal(one, other)


def chain(features, values, covers, n_features):
    """One tree: split i asks feature i for x <= 0.5; its left child is leaf ``values[i]``, its right one split i + 1, at last ``values[-1]``."""
    n = len(features)
    node = np.arange(2 * n + 1)
    split = node < n
    left = np.where(split, node + n, -1)
    right = np.where(split, np.where(node < n - 1, node + 1, 2 * n), -1)
    cover = np.concatenate((np.cumsum(covers[::-1])[::-1][:n], covers))
    feature = np.where(split, np.append(features, np.zeros(n + 1)), -1)
    return one_tree(feature, 0.5, left, right, np.concatenate((np.zeros(n), values)), cover, n_features)


def join(trees):
    """Ensembles of one tree each, of the same features, as one."""
    shift = np.cumsum([0, *(tree.feature.size for tree in trees)])[:-1].astype(np.int32)
    of_nodes = ("feature", "threshold", "missing_left", "category_set", "value", "cover")
    ensemble = trees[0]._replace(
        **{name: np.concatenate([getattr(tree, name) for tree in trees]) for name in of_nodes},
        **{
            side: np.concatenate([np.where(getattr(tree, side) < 0, -1, getattr(tree, side) + by) for tree, by in zip(trees, shift, strict=True)])
            for side in ("left", "right")
        },
        root=shift,
        output=np.concatenate([tree.output for tree in trees]),
    )
    check(ensemble)
    return ensemble


def with_statistic(ensemble):
    """The same with a column behind the others, a statistic of the first one, that no split asks for."""
    n, key = ensemble.n_features, np.zeros(0, np.uint64)
    bits, directory = make_directory(key)
    statistics = Statistics(
        source=np.zeros(1, np.int32),
        nan_above=np.zeros(1, bool),
        element_start=np.array([0, 1]),
        element=np.zeros(1, np.int32),
        kind=np.array([EQUAL if ensemble.n_categories[0] else ABOVE], np.uint8),
        bound=np.zeros(1),
        key_start=np.zeros(2, np.int64),
        key=key,
        directory_bits=np.array([bits]),
        directory_start=np.zeros(1, np.int64),
        directory=directory,
        column=np.array([n], np.int32),
        projection=np.zeros(1, np.int32),
        code_start=np.zeros(1, np.int64),
        code=np.zeros(1, np.uint8),
    )
    wider = ensemble._replace(
        n_categories=np.append(ensemble.n_categories, np.int32(0)), zero_missing=np.append(ensemble.zero_missing, False), statistics=statistics
    )
    check(wider)
    return wider


def stumps(said, n_features):
    """An ensemble of stumps: feature, threshold, value up to it and beyond."""
    trees = [one_tree([f, -1, -1], [t, 0, 0], [1, -1, -1], [2, -1, -1], [0, low, high], [2, 1, 1], n_features) for f, t, low, high in said]
    return join(trees)


def grown(rng, n_trees, depth, n_features):
    """Full trees of random splits and leaves, all numbers drawn from a normal distribution."""
    n, node = (1 << depth) - 1, np.arange((2 << depth) - 1)
    left, right = (np.where(node < n, 2 * node + side, -1) for side in (1, 2))
    cover = 0.5 ** np.floor(np.log2(node + 1))

    def draw():
        return np.where(node < n, rng.integers(0, n_features, node.size), -1), rng.normal(size=node.size), rng.normal(size=node.size)

    drawn = [draw() for _ in range(n_trees)]
    return join([one_tree(feature, threshold, left, right, value, cover, n_features) for feature, threshold, value in drawn])


def symmetric(rng, features, n_features):
    """A tree that asks the same question on a whole level, of one of the ``features`` after the other; thresholds, leaves and covers drawn."""
    n_levels, n_inner = len(features), 2 ** len(features) - 1
    node = np.arange(2 * n_inner + 1)
    split, level = node < n_inner, np.log2(node + 1).astype(int)
    cover = np.concatenate((np.zeros(n_inner), rng.random(n_inner + 1)))
    for v in range(n_inner - 1, -1, -1):
        cover[v] = cover[2 * v + 1] + cover[2 * v + 2]
    return one_tree(
        np.where(split, np.append(features, -1)[np.minimum(level, n_levels)], -1),
        np.append(rng.standard_normal(n_levels), 0.0)[np.minimum(level, n_levels)],
        np.where(split, 2 * node + 1, -1),
        np.where(split, 2 * node + 2, -1),
        np.where(split, 0.0, rng.standard_normal(node.size)),
        cover,
        n_features,
    )


def players_of_paths(ensemble, player, node, above):
    """The players of every path from a node down, and of those above it."""
    if ensemble.feature[node] < 0:
        return [above]
    below = above | {int(player[node])}
    return [path for child in (ensemble.left, ensemble.right) for path in players_of_paths(ensemble, player, child[node], below)]
