"""The prediction gap by its definition: means over perturbed rows, enumerated. Shares nothing with the kernels but the ensemble's arrays."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

from tests import naive


def make_gap(ensemble, row, outcomes, size=lambda change: change**2):
    """PG² of every output as a function of a list of units, in exact fractions (Gajewski et al. 2024, Definition of PG²): ``outcomes[unit]`` lists
    what a unit may become, ``(values of features, probability)``. The change of f is worked out once for what units become together, and so is
    PG² of a set of them."""
    start, changes, known = exact_margin(ensemble, row), {}, {}

    def change(became):
        if became not in changes:
            moved = list(row)
            for unit, which in became:
                for feature, value in outcomes[unit][which][0].items():
                    moved[feature] = value
            changes[became] = [size(margin - before) for margin, before in zip(exact_margin(ensemble, moved), start, strict=True)]
        return changes[became]

    def gap(perturbed):
        units = tuple(sorted(perturbed))
        if units not in known:
            total = [Fraction(0)] * len(start)
            for which in itertools.product(*(range(len(outcomes[unit])) for unit in units)):
                became = tuple(zip(units, which, strict=True))
                probability = math.prod((outcomes[unit][drawn][1] for unit, drawn in became), start=Fraction(1))
                total = [before + probability * squared for before, squared in zip(total, change(became), strict=True)]
            known[units] = total
        return known[units]

    return gap


def mean_margin(ensemble, row, outcomes, drawn):
    """E f(X) of every output in exact fractions, where the units in ``drawn`` become each of their outcomes, independently, and the rest stays."""
    units, total = [u for u in drawn if u in outcomes], [Fraction(0)] * ensemble.base.size
    for became in itertools.product(*(outcomes[u] for u in units)):
        moved, probability = list(row), Fraction(1)
        for values, chance in became:
            probability *= chance
            for feature, value in values.items():
                moved[feature] = value
        total = [before + probability * margin for before, margin in zip(total, exact_margin(ensemble, moved), strict=True)]
    return total


def exact_margin(ensemble, row):
    """Raw score in exact fractions, a list."""
    out = [Fraction(float(base)) for base in ensemble.base]
    for tree, node in enumerate(ensemble.root):
        while ensemble.feature[node] >= 0:
            side = ensemble.left if naive.goes_left(ensemble, node, float(row[ensemble.feature[node]])) else ensemble.right
            node = side[node]
        for column, value in enumerate(ensemble.value[node]):
            out[ensemble.output[tree] + column] += Fraction(float(value))
    return out


def mean_gap(gap, outcomes, ranking):
    """PGI²: the mean over prefixes of a ranking of units; units without outcomes stay."""
    gaps = [gap([u for u in ranking[:k] if u in outcomes]) for k in range(1, len(ranking) + 1)]
    return [sum(of_output) / len(ranking) for of_output in zip(*gaps, strict=True)]


def rank_greedily(gap, outcomes, n, output, tie=0):
    """All n units in greedy order with the gap of each prefix; of equal gaps, or such as differ by a fraction ``tie`` of them, the first unit's.
    Units without outcomes stay."""
    order, gaps = [], []
    while len(order) < n:
        tried = {u: gap([q for q in [*order, u] if q in outcomes])[output] for u in range(n) if u not in order}
        best = min(tried)
        for u, found in tried.items():
            if found - tried[best] > tie * found:
                best = u
        order.append(best)
        gaps.append(tried[best])
    return order, gaps


def cells(ensemble, feature, lower):
    """What a numeric feature becomes under noise with a distribution function of its own, ``lower(t)`` = P(x' <= t): a value of every cell between
    its thresholds, with the cell's probability as it is in floating point."""
    thresholds = sorted(
        {float(t) for t, f, c in zip(ensemble.threshold, ensemble.feature, ensemble.category_set, strict=True) if f == feature and c < 0}
    )
    found, below = [], 0.0
    for t in thresholds:
        found.append(({feature: t - beside(t)}, Fraction(lower(t)) - Fraction(below)))
        below = lower(t)
    return [*found, ({feature: thresholds[-1] + beside(thresholds[-1]) if thresholds else 0.0}, 1 - Fraction(below))]


def beside(threshold):
    """How far a value of the cell next to a threshold is from it: rounds to neither side of it, nor to a zero, which may be read as missing."""
    return 1e-3 * max(1.0, abs(threshold))


def algorithm_1(ensemble, row, chosen: set[int], scale: float) -> float:
    """PG² as it is printed: over every leaf, over every leaf again, with the product of factors kept up to date; numeric features, one output."""
    lower, upper, factor = ([start] * ensemble.n_features for start in (-math.inf, math.inf, 1.0))

    def normal(t: float, x: float) -> float:
        return 0.5 * math.erfc((x - t) / (scale * math.sqrt(2)))

    def chance(q: int) -> float:
        if q in chosen:
            return normal(upper[q], row[q]) - normal(lower[q], row[q])
        return float(lower[q] < row[q] <= upper[q])

    def walk(node: int, product: float, arrive: Callable[[float, float], None]) -> None:
        q = ensemble.feature[node]
        if q < 0:
            arrive(ensemble.value[node, 0], product)
            return
        before, t = (lower[q], upper[q], factor[q]), ensemble.threshold[node]
        for child, low, high in ((ensemble.left[node], before[0], min(before[1], t)), (ensemble.right[node], max(before[0], t), before[1])):
            lower[q], upper[q] = low, high
            factor[q] = chance(q) if low < high else 0.0
            if factor[q] > 0:
                walk(child, product / before[2] * factor[q], arrive)
            lower[q], upper[q], factor[q] = before

    moments = [0.0, 0.0]

    def first(y: float, product: float) -> None:
        moments[0] += y * product

        def second(other: float, both: float) -> None:
            moments[1] += y * other * both

        for root in ensemble.root:
            walk(root, product, second)

    for root in ensemble.root:
        walk(root, 1.0, first)
    c = 0.0
    for root in ensemble.root:
        node = root
        while ensemble.feature[node] >= 0:
            node = (ensemble.left if row[ensemble.feature[node]] <= ensemble.threshold[node] else ensemble.right)[node]
        c += ensemble.value[node, 0]
    return c * c + moments[1] - 2 * c * moments[0]
