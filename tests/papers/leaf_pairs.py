"""Algorithm 1 of Jiang, Zhang and Zhang 2025 from its formulas, Shapley values of the squared prediction by roots of unity: its error and its time
against depth, beside the kernels', which go over pairs of leaves too, but integrate by a quadrature (Proposition 2 is what the roots rest on)."""

import time
from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.dataset.columns.labels import lay_out
from tests.bench.ours import fill
from tests.papers.exact import squared_fractions
from tests.papers.figures import EXACT, Claim, Figure, Line, end_above, relative_error, stay_below
from tests.papers.states import unit_roots
from tests.papers.trees import wide

ROOTS, OURS = "Algorithm 1", "ours: r2"
DEPTHS, QUICK_DEPTHS = (5, 10, 20, 30, 40, 50, 60), (5, 20)
SIZES, DRAWS = (2, 5, 10, 20, 40), 20  # of Proposition 2
KERNEL_ROWS = 64  # that the kernels are given at a time
PROPOSITION = "Proposition 2"


def coefficients(n: int) -> np.ndarray:
    """Of C(z), ``(n,)``: 1 / binom(n - 1, t), t from 0."""
    return np.array([1 / comb(n - 1, t) for t in range(n)])


def transform(c: np.ndarray) -> np.ndarray:
    """V(1 / omega) c / n of the proof of Proposition 2, which calls it IFFT(c); what NumPy calls so has the other sign, and gives c backwards."""
    return np.fft.fft(c) / c.size


def dot(points: np.ndarray, transformed: np.ndarray) -> np.ndarray:
    """P(omega)^T IFFT(c) (Proposition 2), of values at the first half of the roots, ``(..., n // 2 + 1)``: the others are conjugates of these."""
    n = transformed.size
    twice = np.full(n // 2 + 1, 2.0)
    twice[0] = 1.0
    if n % 2 == 0:
        twice[-1] = 1.0
    return (points * (transformed[: n // 2 + 1] * twice)).sum(axis=-1).real


def _weights(tree: TreeEnsemble, row: np.ndarray) -> list[tuple[float, dict[int, float]]]:
    """Every leaf's value times its share of the cover, and per feature of its path w: 0, or the inverse of its cover ratios if the row passes."""
    found, pending = [], [(0, 1.0, {})]
    while pending:
        node, share, weights = pending.pop()
        feature = int(tree.feature[node])
        if feature < 0:
            found.append((float(tree.value[node, 0]) * share, weights))
            continue
        children = (int(tree.left[node]), int(tree.right[node]))
        total, goes_left = tree.cover[list(children)].sum(), row[feature] <= tree.threshold[node]
        for child, taken in zip(children, (goes_left, not goes_left), strict=True):
            ratio = tree.cover[child] / total
            pending.append((child, share * ratio, weights | {feature: weights.get(feature, 1.0) * taken / ratio}))
    return found


def _others(factors: np.ndarray) -> np.ndarray:
    """Products over all rows of a matrix but one, from both ends, so that nothing is divided by what may be 0."""
    one = np.ones((1, factors.shape[1]), factors.dtype)
    before = np.cumprod(np.vstack((one, factors[:-1])), axis=0)
    after = np.cumprod(np.vstack((one, factors[:0:-1])), axis=0)[::-1]
    return before * after


def squared_by_roots(tree: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    """Shapley values of the squared prediction, ``(n, features)`` (Algorithm 1)."""
    phi, tables = np.zeros((len(rows), tree.n_features)), {}
    for out, row in zip(phi, rows, strict=True):
        leaves = _weights(tree, row)
        for (first, one), (second, other) in combinations_with_replacement(leaves, 2):
            union = list(one | other)
            n = len(union)
            if n not in tables:
                tables[n] = unit_roots(n)[: n // 2 + 1], transform(coefficients(n))
            roots, transformed = tables[n]
            w = np.array([one.get(f, 1.0) * other.get(f, 1.0) for f in union])
            dots = dot(_others(roots[None] + w[:, None]), transformed)
            out[union] += (1 if one is other else 2) * (w - 1) * first * second / n * dots
    return phi


def squared_by_kernels(tree: TreeEnsemble, rows: np.ndarray) -> Callable[[], np.ndarray]:
    """A call of the same by the kernels of ``r2``: of a label that is the base value the loss is the squared prediction, with its sign changed."""
    prepared = prepare(tree, METHODS["r2"], {})
    buffers = make_buffers(prepared, len(rows))._replace(labels=lay_out(np.full(len(rows), tree.base[0]), np.ones(len(rows))))
    fill(prepared, buffers, rows)

    def call() -> np.ndarray:
        buffers.phi[:] = 0
        attribute_batch(METHODS["r2"], prepared, buffers)
        phi = np.zeros((len(rows), tree.n_features))
        phi[:, prepared.players] = -buffers.phi[0, :, : len(rows)].T
        return phi

    return call


def _clock(call: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """What a call gives, and seconds of the fastest of three."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        found = call()
        seconds.append(time.perf_counter() - started)
    return found, min(seconds)


def depths(sizes: Iterable[int]) -> tuple[Figure, Figure]:
    """Error and milliseconds per row on chains that ask a new feature at every level, as wide and deep as a tree of so many leaves can be."""
    errors, times = [], []
    for depth in sizes:
        tree, row = wide(depth, seed=1), np.random.default_rng(5).integers(0, 2, (1, depth)).astype(float)
        exact, kernels = squared_fractions(tree, row), squared_by_kernels(tree, np.repeat(row, KERNEL_ROWS, axis=0))
        kernels()  # compiles
        found = {ROOTS: _clock(lambda t=tree, r=row: squared_by_roots(t, r)), OURS: _clock(kernels)}
        errors.append(Line((depth,), {name: relative_error(phi[:1], exact) for name, (phi, _) in found.items()}))
        rows = {ROOTS: 1, OURS: KERNEL_ROWS}
        times.append(Line((depth,), {name: 1e3 * seconds / rows[name] for name, (_, seconds) in found.items()}))
    paper, trees = "Jiang, Zhang and Zhang 2025, Algorithm 1", "trees drawn at random"
    return (
        Figure(f"{paper}: error of the Shapley values of the squared prediction", ("D",), tuple(errors), ".0e", trees, "relative error"),
        Figure(f"{paper}: milliseconds per row, plain Python and compiled", ("D",), tuple(times), ".2g", trees, "log-log: milliseconds per row"),
    )


def depth_claims(figure: Figure) -> list[Claim]:
    """No matrix is inverted, and yet the sum over roots cancels: what is left of it is smaller than its terms by a power of 2 that is the depth."""
    claims, depth = [stay_below(figure, (OURS,), EXACT)], max(figure.column(ROOTS))
    return claims if depth < 60 else [*claims, end_above(figure, (ROOTS,), 1e-11)]


def proposition_2(sizes: Iterable[int], draws: int = DRAWS) -> tuple[Figure, list[Claim]]:
    """The dot product of coefficients by roots, against coefficients multiplied out, for factors as they come of satisfied and violated splits."""
    lines, draw = [], np.random.default_rng(3)
    for n in sizes:
        c, roots, errors = coefficients(n), unit_roots(n)[: n // 2 + 1], []
        for _ in range(draws):
            w = np.where(draw.random(n - 1) < 0.5, 0.0, 1 / draw.uniform(0.1, 1.0, n - 1))
            expected = c @ np.poly(-w)[::-1]
            errors.append(abs(dot(np.prod(roots[None] + w[:, None], axis=0), transform(c)) / expected - 1))
        lines.append(Line((n,), {PROPOSITION: float(np.mean(errors))}))
    figure = Figure(
        "Jiang, Zhang and Zhang 2025, Proposition 2: relative error of the dot product by roots of unity", ("n",), tuple(lines), plot="relative error"
    )
    column = figure.column(PROPOSITION)
    claims = [Claim(f"{PROPOSITION}: below 1e-13 up to n = 10", all(error < 1e-13 for n, error in column.items() if n <= 10))]
    if max(column) >= 40:
        claims.append(Claim(f"{PROPOSITION}: rounding grows with n all the same, above 1e-10 at n = 40", column[40] > 1e-10))
    return figure, claims


def draw_leaf_pairs(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Proposition 2, then error and time against depth."""
    yield proposition_2(SIZES)
    errors, times = depths(QUICK_DEPTHS if quick else DEPTHS)
    yield errors, depth_claims(errors)
    yield times, []
