"""The published algorithms, from their formulas: two ways to traverse a tree, and a list of what is carried along.

Along a path a feature has gamma = o / a, with o the bit "the row satisfies the path's splits on it" and a the product of their cover ratios; a leaf's
game is its value times its share of the cover times the product of the gammas of the features present. Every algorithm carries a summary of that
product down the tree: a split adds a feature's gamma to it, having removed the one the same feature had above. On the way up the summaries of the
leaves are summed for every edge, gamma is removed, and what remains is read. They differ in the summary, and in what removal does to rounding.

Nothing is said of missing values and categories, which the papers do not treat. The traversals are recursive.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble
from tests.papers.states import (
    State,
    banzhaf_sum,
    chebyshev,
    coalition_sums,
    differences,
    gradients,
    padded_polynomial,
    tracked_polynomial,
    unit_roots,
)


def _edge(tree, rows, parent, child):
    """What an edge does: its cover ratio, and ``(n, 1)`` whether each row takes it."""
    goes_left = rows[:, [tree.feature[parent]]] <= tree.threshold[parent]
    ratio = tree.cover[child] / (tree.cover[tree.left[parent]] + tree.cover[tree.right[parent]])
    return rows.dtype.type(ratio), goes_left == (child == tree.left[parent])


def traverse(tree: TreeEnsemble, rows: np.ndarray, state: State) -> np.ndarray:
    """phi ``(n, features)`` as Algorithms 1, 4, 5 and 6 of Li, Yu and Low 2026 find it, which are one but for the state.

    Every edge gathers the leaves below it that no deeper edge of the same feature claims: an edge subtracts what it adds to itself from the
    nearest edge of its feature above.
    """
    number = rows.dtype.type
    phi = np.zeros((len(rows), tree.n_features), number)
    gathered: dict[int, Any] = {}

    def gather(node, carried):
        gathered[node] = state.plus(gathered[node], carried) if node in gathered else carried

    def descend(parent, node, carried, last, reach):
        feature = int(tree.feature[parent])
        ratio, follows = _edge(tree, rows, parent, node)
        above, before = last.get(feature, (None, np.ones((len(rows), 1), number)))
        gamma, reach = before * follows / ratio, reach * ratio
        if above is not None or state.dummies:
            carried = state.remove(carried, before)
        carried = state.add(carried, gamma)
        last = last | {feature: (node, gamma)}
        if tree.feature[node] < 0:
            carried = state.scale(state.finish(carried, len(last)), number(tree.value[node, 0]) * reach)
        else:
            carried = state.plus(*(descend(node, int(child), carried, last, reach) for child in (tree.left[node], tree.right[node])))
        if above is not None:
            gather(above, state.scale(carried, -1))
        gather(node, carried)
        phi[:, [feature]] += (gamma - 1) * state.read(state.remove(gathered.pop(node), gamma))
        return carried

    for child in (tree.left[0], tree.right[0]):
        descend(0, int(child), state.start(rows), {}, number(1))
    return phi


def traverse_fast(tree: TreeEnsemble, rows: np.ndarray, state: State) -> np.ndarray:
    """phi ``(n, features)`` by Karczmarz et al. 2022, Alg. 3, with its stacks H of nodes that no edge of their feature has claimed yet.

    The printed algorithm computes something else. Corrected here, each necessary to agree with enumeration:

    * the state starts as (1), that of no features, and dummies are added with delta = 1; the print starts from 0 and adds 0, so all stays 0;
    * a repeated feature removes the delta it has at its parent, not the one it gets at v (line 2);
    * DelFeature multiplies by (l + 1) / (l - k) at entry k, l the size of the set deleted from; the print has (l + 1) / l;
    * v is pushed onto H whether its feature is new or not (line 3 stands in the one branch);
    * the state's entries are summed, which is their 1-norm only where no leaf value is negative (line 19).

    States are passed down by value: undoing them by the inverse operations (lines 20 to 25) would only add to the errors.
    """
    number = rows.dtype.type
    phi = np.zeros((len(rows), tree.n_features), number)
    stacks: dict[int, list[int]] = defaultdict(list)
    sums: dict[int, np.ndarray] = {}

    def descend(parent, node, carried, deltas):
        feature = int(tree.feature[parent])
        ratio, follows = _edge(tree, rows, parent, node)
        before = deltas.get(feature, np.ones((len(rows), 1), number))
        delta = before * follows / ratio
        carried = state.add(state.remove(carried, before) * ratio, delta)
        stacks[feature].append(node)
        if tree.feature[node] < 0:
            sums[node] = number(tree.value[node, 0]) * carried
        else:
            left, right = int(tree.left[node]), int(tree.right[node])
            for child in (left, right):
                descend(node, child, carried, deltas | {feature: delta})
            sums[node] = sums[left] + sums[right]
        own = sums[node]
        while stacks[feature][-1] != node:
            own = own - sums[stacks[feature].pop()]
        phi[:, [feature]] += state.read(state.remove(own, delta)) * (delta - 1)

    for child in (tree.left[0], tree.right[0]):
        descend(0, int(child), state.start(rows), {})
    return phi


def traverse_leaves(tree: TreeEnsemble, rows: np.ndarray, state: State) -> np.ndarray:
    """phi ``(n, features)`` by Karczmarz et al. 2022, Alg. 2: at every leaf each feature of its path is deleted once, O(L D^2) operations.

    Corrected as Algorithm 3 is: the state starts as (1); a repeated feature removes the delta of its parent, and every feature is added, new or not
    (line 4 stands in the branch); states are passed by value and summed.
    """
    number = rows.dtype.type
    phi = np.zeros((len(rows), tree.n_features), number)

    def descend(parent, node, carried, deltas):
        feature = int(tree.feature[parent])
        ratio, follows = _edge(tree, rows, parent, node)
        before = deltas.get(feature)
        if before is not None:
            carried = state.remove(carried, before)
        delta = (number(1) if before is None else before) * follows / ratio
        carried, deltas = state.add(carried * ratio, delta), deltas | {feature: delta}
        if tree.feature[node] < 0:
            for i, own in deltas.items():
                phi[:, [i]] += number(tree.value[node, 0]) * state.read(state.remove(carried, own)) * (own - 1)
        else:
            for child in (tree.left[node], tree.right[node]):
                descend(node, int(child), carried, deltas)

    for child in (tree.left[0], tree.right[0]):
        descend(0, int(child), state.start(rows), {})
    return phi


@dataclass(frozen=True, slots=True)
class Reference:
    """A published algorithm: ``explain(tree, rows, size)`` gives phi. ``size`` is the paper's D, at least the distinct features of any path."""

    name: str
    explain: Callable[[TreeEnsemble, np.ndarray, int], np.ndarray]


def _gauss_legendre(size):
    nodes, weights = np.polynomial.legendre.leggauss((size + 1) // 2)
    return gradients((nodes + 1) / 2, weights / 2)


LINEAR_TREESHAP = Reference("Linear TreeShap", lambda tree, rows, size: traverse(tree, rows, tracked_polynomial(chebyshev(size))))
LINEAR_TREESHAP_V1 = Reference("Linear TreeShap V1", lambda tree, rows, size: traverse(tree, rows, differences(size)))
TREESHAP_K = Reference("TreeShap-K", lambda tree, rows, size: traverse(tree, rows, coalition_sums(size)))
TREEPROB = Reference("TreeProb", lambda tree, rows, size: traverse(tree, rows, padded_polynomial(unit_roots(size))))
TREEPROB_MODIFIED = Reference("TreeProb (modified)", lambda tree, rows, size: traverse(tree, rows, tracked_polynomial(unit_roots(size))))
TREEGRAD_SHAP = Reference("TreeGrad-Shap", lambda tree, rows, size: traverse(tree, rows, _gauss_legendre(size)))
TREEGRAD = Reference("TreeGrad", lambda tree, rows, size: traverse(tree, rows, gradients(np.array([0.5]), np.ones(1))))
ALGORITHM_2 = Reference("Algorithm 2", lambda tree, rows, size: traverse_leaves(tree, rows, coalition_sums(0)))
ALGORITHM_2_BANZHAF = Reference("Algorithm 2, Banzhaf", lambda tree, rows, size: traverse_leaves(tree, rows, banzhaf_sum()))
ALGORITHM_3 = Reference("Algorithm 3", lambda tree, rows, size: traverse_fast(tree, rows, coalition_sums(size)))
ALGORITHM_3_BANZHAF = Reference("Algorithm 3, Banzhaf", lambda tree, rows, size: traverse_fast(tree, rows, banzhaf_sum()))
