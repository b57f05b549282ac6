"""Values in decimal arithmetic of 60 digits, for trees too deep for whole numbers.

A value is an integral over [0, 1], for Banzhaf's at one point, of what a tree gains by a feature where all others are present with probability t: a
polynomial in t of a lower degree than a path has features. The quadrature integrates it without an error; what is left is rounding in the 60th digit.
No cover may be 0.
"""

from collections.abc import Iterable
from decimal import Decimal, localcontext

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble
from tests.papers.trees import distinct_features

DIGITS = 60
Point = tuple[Decimal, Decimal]  # t and its weight


def _legendre(size: int) -> list[Point]:
    """Nodes and weights of Gauss and Legendre on [0, 1], to the context's digits: Newton's method from float64."""
    found = []
    for node in np.polynomial.legendre.leggauss(size)[0]:
        x = Decimal(float(node))
        for _ in range(4):  # 16 digits become 32, 64, 128: more than are kept; the last gives the slope at the end
            below, here = Decimal(1), x
            for k in range(2, size + 1):
                below, here = here, ((2 * k - 1) * x * here - (k - 1) * below) / k
            slope = size * (x * here - below) / (x * x - 1)
            x -= here / slope
        found.append(((x + 1) / 2, 1 / ((1 - x * x) * slope * slope)))
    return found


def _edges(tree, row):
    """By child: its feature, o and a of that feature above the edge (1 and 1 where it is new) and below it, and the edge of it above."""
    edges: dict[int, tuple] = {}
    pending: list[tuple[int, dict[int, int]]] = [(0, {})]
    while pending:
        node, last = pending.pop()
        feature = int(tree.feature[node])
        if feature < 0:
            continue
        left, right = int(tree.left[node]), int(tree.right[node])
        total = Decimal(float(tree.cover[left])) + Decimal(float(tree.cover[right]))
        goes_left = row[feature] <= tree.threshold[node]
        above = last.get(feature)
        o, a = edges[above][3:5] if above is not None else (1, Decimal(1))
        for child, taken in ((left, goes_left), (right, not goes_left)):
            edges[child] = (feature, o, a, o * int(taken), a * Decimal(float(tree.cover[child])) / total, above)
            pending.append((child, last | {feature: child}))
    return edges


def _add_gains(tree, inner, edges, t, weight, sums):
    """At one node of the quadrature: products of the factors down to every node, then sums over the leaves below every edge."""
    product, below = {0: Decimal(1)}, {}
    factor = {child: a + (o - a) * t for child, (_, _, _, o, a, _) in edges.items()}
    for node in inner:
        for child in (int(tree.left[node]), int(tree.right[node])):
            above = edges[child][5]
            product[child] = product[node] * factor[child] / (factor[above] if above is not None else 1)
    for child in edges:
        if tree.feature[child] < 0:
            below[child] = product[child] * Decimal(float(tree.value[child, 0]))
    for node in reversed(inner):
        below[node] = below[int(tree.left[node])] + below[int(tree.right[node])]
    for child, (feature, _, _, o, a, above) in edges.items():
        gain = weight * below[child] * (o - a) / factor[child]
        sums[feature] += gain
        if above is not None:  # what stands below this edge has its own factor of the feature, not that of the edge above
            sums[feature] -= weight * below[child] * (edges[above][3] - edges[above][4]) / factor[above]


def _values(tree: TreeEnsemble, rows: np.ndarray, points: Iterable[Point]) -> np.ndarray:
    points = list(points)
    inner = [int(node) for node in np.flatnonzero(tree.feature >= 0)]
    phi = np.zeros((len(rows), tree.n_features))
    for out, row in zip(phi, rows, strict=True):
        edges, sums = _edges(tree, row), [Decimal(0)] * tree.n_features
        for t, weight in points:
            _add_gains(tree, inner, edges, t, weight, sums)
        out[:] = [float(x) for x in sums]
    return phi


def shapley_decimal(tree: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    """Shapley values ``(n, features)`` float64."""
    with localcontext(prec=DIGITS):
        return _values(tree, rows, _legendre((distinct_features(tree) + 1) // 2))


def banzhaf_decimal(tree: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    """Banzhaf values ``(n, features)`` float64."""
    with localcontext(prec=DIGITS):
        return _values(tree, rows, [(Decimal("0.5"), Decimal(1))])
