"""The trees the papers' figures are drawn from, and the kernels' answer on them."""

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from tests.trees import one_tree

LEAF_COVER, HIGH = 33.0, 777.0  # of the synthetic instances of Karczmarz et al. 2022, Section 5.1
N_FEATURES, N_TRAINING = 11, 1000  # features as many as the data set of Li, Yu and Low 2026, Figure 2, has: 2^11 coalitions are enumerated
Leaf = tuple[float, float]  # value and cover
Split = tuple[int, "Leaf | Split", "Leaf | Split"]  # feature, left where x <= 0.5, right


def lay_out(root: Split, n_features: int) -> TreeEnsemble:
    """Nested splits as arrays, parents before children, every threshold 0.5, a split's cover the sum of its leaves'."""
    pending, nodes = [(root, -1, 0)], []
    while pending:
        part, parent, side = pending.pop()
        if parent >= 0:
            nodes[parent][side] = len(nodes)
        if len(part) == 2:
            nodes.append([-1, -1, -1, *part])
        else:
            pending += [(part[2], len(nodes), 2), (part[1], len(nodes), 1)]
            nodes.append([part[0], -1, -1, 0.0, 0.0])
    for node in reversed(nodes):
        if node[0] >= 0:
            node[4] = nodes[node[1]][4] + nodes[node[2]][4]
    feature, left, right, value, cover = zip(*nodes, strict=True)
    return one_tree(feature, np.full(len(nodes), 0.5), left, right, value, cover, n_features)


def synthetic_sparse(depth: int) -> TreeEnsemble:
    """SYNTHETIC.SPARSE: the root asks feature ``depth - 1`` which of two chains it is to be; all leaves of one are 0, of the other 777.

    On a row of ones every semivalue is 388.5 for that feature and 0 for all others.
    """

    def chain(value):
        part = (value, LEAF_COVER)
        for feature in range(depth - 1):
            part = (feature, (value, LEAF_COVER), part)
        return part

    return lay_out((depth - 1, chain(0.0), chain(HIGH)), depth)


def synthetic_dense(depth: int) -> TreeEnsemble:
    """SYNTHETIC.DENSE: the same with full binary trees in the place of the chains."""

    def full(value, levels):
        return (levels - 1, full(value, levels - 1), full(value, levels - 1)) if levels else (value, LEAF_COVER)

    return lay_out((depth - 1, full(0.0, depth - 1), full(HIGH, depth - 1)), depth)


def wide(depth: int, seed: int) -> TreeEnsemble:
    """A chain that asks a new feature at every level, ``depth`` of them, so that no limit of features shortens what is kept of a path."""
    draw = np.random.default_rng(seed)
    part = (draw.normal(), float(draw.integers(1, 20)))
    for feature in range(depth):
        leaf = (draw.normal(), float(draw.integers(1, 20)))
        part = (feature, leaf, part) if draw.random() < 0.5 else (feature, part, leaf)
    return lay_out(part, depth)


def bushy(depth: int, seed: int, levels: int = 2) -> TreeEnsemble:
    """The same with a full tree of ``levels`` levels in the place of every leaf of the chain, its features drawn from all: most are asked again."""
    draw = np.random.default_rng(seed)

    def leaf():
        return draw.normal(), float(draw.integers(1, 20))

    def bush(left):
        return (int(draw.integers(depth)), bush(left - 1), bush(left - 1)) if left else leaf()

    part = leaf()
    for feature in range(depth):
        part = (feature, bush(levels), part) if draw.random() < 0.5 else (feature, part, bush(levels))
    return lay_out(part, depth)


def training_rows() -> tuple[np.ndarray, np.ndarray]:
    """Heavy-tailed rows ``(N_TRAINING, N_FEATURES)`` and target: a tree fitted to them peels off a few rows at a time, and becomes deep."""
    draw = np.random.default_rng(2025)
    rows = np.exp(4 * draw.standard_normal((N_TRAINING, N_FEATURES)))
    return rows, np.exp(2 * draw.standard_normal(N_TRAINING)) * rows.mean(axis=1)


def trained(depth: int) -> TreeEnsemble:
    """A regression tree of scikit-learn grown to ``depth`` levels on ``training_rows``, its leaves scaled to at most one."""
    rows, target = training_rows()
    tree = DecisionTreeRegressor(max_depth=depth, random_state=2025).fit(rows, target).tree_
    inner = tree.children_left >= 0
    value = np.where(inner, 0.0, tree.value[:, 0, 0])
    return one_tree(
        np.where(inner, tree.feature, -1),
        np.where(inner, tree.threshold, 0.0),
        tree.children_left,
        tree.children_right,
        value / np.abs(value).max(),
        tree.weighted_n_node_samples,
        N_FEATURES,
    )


def depth_of(tree: TreeEnsemble) -> int:
    """Splits on the longest path; children come after their parents."""
    level = np.zeros(tree.feature.size, int)
    for node in np.flatnonzero(tree.feature >= 0):
        level[[tree.left[node], tree.right[node]]] = level[node] + 1
    return int(level.max())


def distinct_features(tree: TreeEnsemble) -> int:
    """Most distinct features on a path."""
    above: list[frozenset[int]] = [frozenset()] * tree.feature.size
    for node in np.flatnonzero(tree.feature >= 0):
        above[tree.left[node]] = above[tree.right[node]] = above[node] | {int(tree.feature[node])}
    return max(map(len, above))


def eject(tree: TreeEnsemble, row: np.ndarray) -> np.ndarray:
    """Shapley values of two features in the game that ends where an absent one is asked for, with the mean below (Filom et al. 2024, Def. C.1)."""
    inner = np.flatnonzero(tree.feature >= 0)
    mean = tree.value[:, 0].copy()
    for node in inner[::-1]:
        children = [tree.left[node], tree.right[node]]
        mean[node] = np.average(mean[children], weights=tree.cover[children])

    def v(*present):
        node = 0
        while tree.feature[node] in present:
            node = tree.left[node] if row[tree.feature[node]] <= tree.threshold[node] else tree.right[node]
        return mean[node]

    return np.array([v(0) - v() + v(0, 1) - v(1), v(1) - v() + v(0, 1) - v(0)]) / 2


def ours(name: str, tree: TreeEnsemble, rows: np.ndarray, **parameters: float) -> np.ndarray:
    """What the kernels say: ``(n, features)`` float64."""
    method = METHODS[name]
    prepared = prepare(tree, method, {parameter.name: parameter.default for parameter in method.parameters} | parameters)
    buffers = make_buffers(prepared, len(rows))
    buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
    attribute_batch(method, prepared, buffers)
    phi = np.zeros((len(rows), tree.n_features))
    phi[:, prepared.bins.column] = buffers.phi[0, :, : len(rows)].T
    return phi
