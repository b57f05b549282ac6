"""What the published algorithms and the kernels are measured against: sums over all coalitions, and exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble

EXTENDED = np.longdouble  # 64 bits of mantissa on x86; elsewhere maybe no more than float64, which is still a sum of positive products


def _coalition_values(tree, row, players):
    """The path-dependent game on all ``2^players`` coalitions at once (Li, Yu and Low 2026, Alg. 3); bit j of the index: feature j is present."""
    present = [(np.arange(2**players) >> j & 1).astype(bool) for j in range(players)]
    total = np.zeros(2**players, EXTENDED)
    pending = [(0, np.ones(2**players, EXTENDED))]
    while pending:
        node, reach = pending.pop()
        feature = tree.feature[node]
        if feature < 0:
            total += reach * EXTENDED(tree.value[node, 0])
            continue
        left, right = tree.left[node], tree.right[node]
        both = EXTENDED(tree.cover[left]) + EXTENDED(tree.cover[right])
        goes_left = row[feature] <= tree.threshold[node]
        for child, taken in ((left, goes_left), (right, not goes_left)):
            share = np.where(present[feature], EXTENDED(taken), EXTENDED(tree.cover[child]) / both)
            if share.any():
                pending.append((child, reach * share))
    return total


def enumerated(tree: TreeEnsemble, rows: np.ndarray, weight) -> np.ndarray:
    """A probabilistic value by its definition, ``(n, features)``: every coalition's value and every marginal effect, in extended precision.

    ``weight(size, n)`` is the Fraction that a coalition of ``size`` others counts with. A coalition's value is a sum over leaves of products of at
    most ``depth`` cover ratios: nothing in it cancels but leaf values of opposite sign.
    """
    n = tree.n_features
    size = np.array([mask.bit_count() for mask in range(2**n)])
    weights = np.array([EXTENDED(w.numerator) / EXTENDED(w.denominator) for w in (weight(s, n) for s in range(n))] + [0])
    phi = np.zeros((len(rows), n), EXTENDED)
    for i, row in enumerate(rows):
        v = _coalition_values(tree, row, n)
        for j in range(n):
            without = np.flatnonzero(~(np.arange(2**n) >> j) & 1)
            phi[i, j] = np.sum(weights[size[without]] * (v[without | 1 << j] - v[without]))
    return phi


def _leaves(tree, row):
    """Every leaf's value, and per feature of its path the pair (o, a): 1 if the row satisfies its splits, product of its cover ratios."""
    pending = [(0, {})]
    while pending:
        node, factors = pending.pop()
        feature = int(tree.feature[node])
        if feature < 0:
            yield Fraction(float(tree.value[node, 0])), factors
            continue
        children = int(tree.left[node]), int(tree.right[node])
        covers = [Fraction(float(tree.cover[child])) for child in children]
        goes_left = row[feature] <= tree.threshold[node]
        o, a = factors.get(feature, (1, Fraction(1)))
        for child, cover, taken in zip(children, covers, (goes_left, not goes_left), strict=True):
            pending.append((child, factors | {feature: (o * int(taken), a * cover / sum(covers))}))


def _share_out(value: Fraction, factors: dict[int, tuple[int, Fraction]], common: int, out: list[Fraction]) -> None:
    """Add the Shapley values of value times the product over features of (o if present else a), o 0 or 1, to ``out``.

    Feature i gets value times (o_i - a_i) times the integral over [0, 1] of the product over the others of a_j + (o_j - a_j) t. With a_j = p / q
    that is whole numbers over the product of all q: the product of all p + (o q - p) t is divided by a factor without remainder, and integrated
    coefficient by coefficient; ``common`` is a multiple of every number up to that of the features.
    """
    lines = {feature: (a.numerator, o * a.denominator - a.numerator) for feature, (o, a) in factors.items()}
    product = [1]
    for start, slope in lines.values():
        product = [start * here + slope * below for below, here in itertools.pairwise([0, *product, 0])]
    share = value / (common * math.prod(a.denominator for _, a in factors.values()))
    for feature, (start, slope) in lines.items():
        integral = coefficient = 0
        for k, c in enumerate(product[:-1], 1):
            coefficient = (c - slope * coefficient) // start
            integral += coefficient * (common // k)
        out[feature] += share * slope * integral


def shapley_fractions(tree: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    """Shapley values without rounding, ``(n, features)`` float64, for trees of too many features to enumerate; no cover may be 0."""
    common = math.lcm(*range(1, tree.n_features + 1))
    phi = [[Fraction(0)] * tree.n_features for _ in rows]
    for out, row in zip(phi, rows, strict=True):
        for value, factors in _leaves(tree, row):
            _share_out(value, factors, common, out)
    return np.array([[float(x) for x in out] for out in phi])


def squared_fractions(tree: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    """The same of the squared prediction: a sum over pairs of leaves, whose factors are multiplied (Jiang, Zhang and Zhang 2025, Eq. 5)."""
    common = math.lcm(*range(1, tree.n_features + 1))
    phi = [[Fraction(0)] * tree.n_features for _ in rows]
    for out, row in zip(phi, rows, strict=True):
        for (first, one), (second, other) in itertools.combinations_with_replacement(list(_leaves(tree, row)), 2):
            both = {f: tuple(x * y for x, y in zip(one.get(f, (1, 1)), other.get(f, (1, 1)), strict=True)) for f in one | other}
            _share_out(first * second * (1 if one is other else 2), both, common, out)
    return np.array([[float(x) for x in out] for out in phi])
