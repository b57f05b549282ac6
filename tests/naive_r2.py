"""The definition of what a player takes off a row's squared error, as plain loops over subsets in exact fractions."""

from fractions import Fraction

import numpy as np

from tests.naive import _subsets, coalition_value, margin, shapley_weight


def _trees(ensemble):
    """Every tree as an ensemble of its own, without a base value."""
    for t in range(ensemble.root.size):
        yield ensemble._replace(root=ensemble.root[t : t + 1], output=ensemble.output[t : t + 1], base=np.zeros(1))


def losses(ensemble, row, label, group=None):
    """What every group takes off a row's squared error, and how the row's remainder and residual come out.

    Jiang, Zhang and Zhang 2025, Section 4: tree by tree, the Shapley value of 2 r m(S) - m(S)^2 with r what the trees before leave of the label.

    Returns
    -------
    loss : (groups,) float64
    residual : float
        label - margin
    remainder : float
        sum over all trees but the first of (r - mean)^2 - r^2
    start : float
        base and the first tree's mean
    """
    group = list(range(ensemble.n_features)) if group is None else list(group)
    n = max(group) + 1
    left, remainder = Fraction(float(label)) - Fraction(float(ensemble.base[0])), Fraction(0)
    start, found = Fraction(float(ensemble.base[0])), [Fraction(0)] * n
    for t, tree in enumerate(_trees(ensemble)):
        m = {s: coalition_value(tree, row, {j for j, g in enumerate(group) if g in s}, 0) for s in _subsets(range(n))}
        off = {s: 2 * left * value - value**2 for s, value in m.items()}
        for g in range(n):
            others = [s for s in m if g not in s]
            found[g] += sum(shapley_weight(len(s), n) * (off[tuple(sorted((*s, g)))] - off[s]) for s in others)
        if t > 0:
            remainder += (left - m[()]) ** 2 - left**2
        else:
            start += m[()]
        left -= Fraction(float(margin(tree, row)[0]))
    return np.array([float(x) for x in found]), float(left), float(remainder), float(start)
