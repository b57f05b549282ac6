"""Filom et al. 2024: examples and a theorem with closed forms, against marginal values of the kernels for drawn trees, rows and probabilities."""

from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, prepare
from leafledger.kernels.trees.ensemble import TreeEnsemble
from tests.bench.ours import attributions
from tests.papers.figures import EXACT, Claim, Figure, Line, relative_error, stay_below
from tests.papers.marginal import BUDGET, SHAPLEY
from tests.papers.trees import ours
from tests.trees import grown, join, one_tree

OWEN, MARGINAL, PATH = "owen", "marginal", "path-dependent"
ERROR = "ours: error"
PLURAL = {"cell": "cells", "leaf": "leaves"}


def marginal(ensemble: TreeEnsemble, rows: np.ndarray, background: np.ndarray, name: str = SHAPLEY, groups=None) -> np.ndarray:
    """Values against background rows, ``(n, features)``."""
    method = METHODS[name]
    query = ask_background(ensemble, method, groups, n_rows=len(background), budget=BUDGET)
    given = {parameter.name: parameter.default for parameter in method.parameters}
    prepared = prepare(ensemble, method, given, groups, background=(query, measure_background(query, background.T[query.bins.column].astype(float))))
    return attributions(prepared, name, rows, ensemble.n_features)[0]


def symmetric_tree(features: Iterable[int], thresholds: Iterable[float], scores: np.ndarray, n_features: int) -> TreeEnsemble:
    """A tree that asks one question a level, the first at the root; a leaf's score by its code, 1 where a feature is larger (Definition 3.5)."""
    features, thresholds = list(features), list(thresholds)
    m = len(features)
    n, node = (1 << m) - 1, np.arange((2 << m) - 1)
    level = np.floor(np.log2(node + 1)).astype(int)
    split = node < n
    feature = np.where(split, np.append(features, 0)[level], -1)
    threshold = np.where(split, np.append(thresholds, 0.0)[level], 0.0)
    left, right = (np.where(split, 2 * node + side, -1) for side in (1, 2))
    value = np.where(split, 0.0, np.append(np.zeros(n), scores))
    return one_tree(feature, threshold, left, right, value, 0.5**level, n_features)


def example_3_3() -> tuple[Figure, list[Claim]]:
    """Trees of one or two features each: a feature's value is its own effect and half of every pair's, from means over the background alone."""
    draw, n = np.random.default_rng(33), 5
    columns = [(0,), (1,), (3,), (0, 1), (1, 2), (2, 4), (3, 4)] * 2
    trees = []
    for some in columns:
        tree = grown(draw, 1, 4, len(some))
        renamed = np.where(tree.feature < 0, -1, np.array(some)[tree.feature])
        trees.append(tree._replace(feature=renamed.astype(np.int32), n_categories=np.zeros(n, np.int32), zero_missing=np.zeros(n, bool)))
    rows, background = draw.standard_normal((20, n)), draw.standard_normal((50, n))
    expected = np.zeros((len(rows), n))
    for some, tree in zip(columns, trees, strict=True):
        f = lambda x, tree=tree: predict(tree, x)  # noqa: E731 - a definition in a line
        mean = f(background).mean()
        for row, out in zip(rows, expected, strict=True):
            known = [np.where(np.arange(n) == j, row, background) for j in some]  # one feature of the row, the rest of the background
            if len(some) == 1:
                out[some[0]] += f(row[None])[0] - mean
            else:
                first, second = (f(x).mean() for x in known)
                for j, own, other in ((some[0], first, second), (some[1], second, first)):
                    out[j] += (f(row[None])[0] - mean) / 2 + (own - other) / 2
    ensemble, groups = join(trees), np.array([0, 0, 1, 1, 2], np.int32)
    lines = (
        Line(("Shapley",), {ERROR: relative_error(marginal(ensemble, rows, background), expected)}),
        Line(("Owen, pairs of features (Remark 3.4)",), {ERROR: relative_error(marginal(ensemble, rows, background, OWEN, groups), expected)}),
    )
    title = "Filom et al. 2024, Example 3.3: error of values of an explainable boosting machine, from their closed form"
    figure = Figure(title, ("value",), lines)
    return figure, [stay_below(figure, (ERROR,), EXACT)]


def predict(ensemble: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    """The sum of the trees' leaves, ``(n,)``, by walking."""
    found = np.zeros(len(rows))
    for root in ensemble.root:
        node = np.full(len(rows), root)
        while (inner := ensemble.feature[node] >= 0).any():
            here = np.flatnonzero(inner)
            at = node[here]
            goes_left = rows[here, ensemble.feature[at]] <= ensemble.threshold[at]
            node[here] = np.where(goes_left, ensemble.left[at], ensemble.right[at])
        found += ensemble.value[node, 0]
    return found


def drawn_counts(draw: np.random.Generator, n: int) -> np.ndarray:
    """How many background rows are in each of n cells."""
    return draw.integers(1, 9, n)


def example_3_10() -> tuple[Figure, list[Claim]]:
    """X1 on levels 1 and 3, X2 on level 2: the value of X1 on R110 as A1 - A2, for the scores and probabilities of six cells."""
    codes = ("000", "010", "100", "110", "101", "111")
    cells = np.array([[0.5, 0.5], [0.5, 1.5], [1.5, 0.5], [1.5, 1.5], [2.5, 0.5], [2.5, 1.5]])
    draw, lines = np.random.default_rng(310), []
    for which in ("1, 2, 3, 5, 7, 11 and 1/6 each", "drawn"):
        drawn = which == "drawn"
        scores = draw.normal(size=6) if drawn else np.array([1.0, 2.0, 3.0, 5.0, 7.0, 11.0])
        counts = drawn_counts(draw, 6) if drawn else np.ones(6, int)
        c = {code: Fraction(float(score)) for code, score in zip(codes, scores, strict=True)}
        p = {code: Fraction(int(count), int(counts.sum())) for code, count in zip(codes, counts, strict=True)}
        a1 = (c["100"] + c["110"]) * (p["000"] + p["101"]) / 2 + c["110"] * (p["010"] + p["111"])
        a2 = (c["000"] * p["000"] + c["101"] * p["101"] + c["010"] * p["000"] + c["111"] * p["101"]) / 2
        a2 += c["010"] * p["010"] + c["111"] * p["111"]
        by_code = np.zeros(8)
        for code, score in zip(codes, scores, strict=True):
            by_code[int(code, 2)] = score
        tree = symmetric_tree((0, 1, 0), (1.0, 1.0, 2.0), by_code, 2)
        found = marginal(tree, cells[3:4], np.repeat(cells, counts, axis=0))[0, 0]
        lines.append(Line((which,), {"A1 - A2, as printed": float(a1 - a2), "ours: phi_1 on R110": found}))
    figure = Figure("Filom et al. 2024, Example 3.10: the value of X1 on R110", ("scores and probabilities",), tuple(lines), ".12g")
    same = all(abs(line.numbers["A1 - A2, as printed"] - line.numbers["ours: phi_1 on R110"]) < 1e-14 for line in lines)
    return figure, [Claim("ours is A1 - A2 to 14 digits", same)]


def formula_3_24(m: int, i: int, code: int, scores: np.ndarray, probabilities: list[Fraction]) -> tuple[Fraction, int]:
    """Equation 3.24 and how many summands it has; sets of levels are bits of a number, the first level its highest."""
    total, summands, everything = Fraction(0), 0, (1 << m) - 1
    bit = 1 << (m - 1 - i)

    def keep(e: int, q: int) -> int:
        return e & q | ~e & everything & ~q

    for w, z in product(range(1 << m), repeat=2):
        if z & ~w:
            continue
        n_w, n_z = w.bit_count(), z.bit_count()
        if z & bit:
            weight = Fraction(factorial(n_z - 1) * factorial(m - n_w), factorial(m + n_z - n_w))
        elif not w & bit:
            weight = -Fraction(factorial(n_z) * factorial(m - n_w - 1), factorial(m + n_z - n_w))
        else:
            continue
        b = keep(code, w)
        total += weight * Fraction(float(scores[b])) * probabilities[keep(b, everything & ~z)]
        summands += 1
    return total, summands


def example_3_11(m: int) -> tuple[Figure, list[Claim]]:
    """A new feature on every level: all values on all cells by Equation 3.24, whose summands make the bound 3.19 sharp."""
    draw, n = np.random.default_rng(311), 1 << m
    scores, counts = draw.normal(size=n), drawn_counts(draw, n)
    probabilities = [Fraction(int(count), int(counts.sum())) for count in counts]
    cells = np.array([[code >> (m - 1 - i) & 1 for i in range(m)] for code in range(n)], float)
    found = marginal(symmetric_tree(range(m), [0.5] * m, scores, m), cells, np.repeat(cells, counts, axis=0))
    values = [[formula_3_24(m, i, code, scores, probabilities) for i in range(m)] for code in range(n)]
    expected = np.array([[float(value) for value, _ in row] for row in values])
    most = max(summands for row in values for _, summands in row)
    line = Line((m,), {"summands, printed": 2 * 3 ** (m - 1), "summands": most, ERROR: relative_error(found, expected)})
    figure = Figure("Filom et al. 2024, Example 3.11: error of values from Equation 3.24", ("levels",), (line,), ".3g")
    return figure, [
        Claim(f"{ERROR}: below {EXACT:.3g}", line.numbers[ERROR] < EXACT),
        Claim("the formula has 2 times 3^(m - 1) summands", most == 2 * 3 ** (m - 1)),
    ]


def theorem_3_2(n_rows: int) -> tuple[Figure, list[Claim]]:
    """Marginal and path-dependent values are constant on the cells of the grid that a tree's thresholds make, and not on its leaves."""
    draw, n = np.random.default_rng(32), 3
    tree = grown(draw, 1, 4, n)
    rows, background = draw.standard_normal((n_rows, n)), draw.standard_normal((200, n))
    thresholds = [np.sort(tree.threshold[tree.feature == j]) for j in range(n)]
    cells = np.stack([np.searchsorted(some, rows[:, j]) for j, some in enumerate(thresholds)], axis=1)
    leaves = predict(tree, rows)  # scores are drawn, so that leaves have each their own
    _, of_cell = np.unique(cells, axis=0, return_inverse=True)
    _, of_leaf = np.unique(leaves, return_inverse=True)
    lines = []
    for game, phi in ((MARGINAL, marginal(tree, rows, background)), (PATH, ours(SHAPLEY, tree, rows))):
        numbers = {}
        for what, index in (("cell", of_cell), ("leaf", of_leaf)):
            spread = [np.ptp(phi[index == k], axis=0).max() for k in range(index.max() + 1)]
            numbers |= {PLURAL[what]: float(index.max() + 1), f"ours: widest range within a {what}": max(spread)}
        lines.append(Line((game,), numbers))
    figure = Figure("Filom et al. 2024, Theorem 3.2: values within a cell of the grid and within a leaf", ("game",), tuple(lines), ".3g")
    cell, leaf = ([line.numbers[f"ours: widest range within a {what}"] for line in lines] for what in ("cell", "leaf"))
    return figure, [
        Claim("within a cell values are the same, bit for bit, in both games", max(cell) == 0.0),
        Claim("within a leaf they are not, in neither", min(leaf) > 1e-3),
    ]


def draw_examples(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Every example with what it must show."""
    yield theorem_3_2(2_000)
    yield example_3_3()
    yield example_3_10()
    yield example_3_11(4 if quick else 5)
