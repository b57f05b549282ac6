"""Jiang, Zhang and Zhang 2025 as tables of numbers: shares of R² in theory, and how far from them those of trained ensembles are."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import factorial

import numpy as np
import xgboost

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.r2.shares import finalize, no_rows, update, whole
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.pipeline.dataset.columns.labels import lay_out
from leafledger.pipeline.models import load_ensemble
from tests.bench.ours import fill
from tests.papers.figures import Claim, Figure, Line

PROBABILITIES = (Fraction(6, 10), Fraction(7, 10), Fraction(5, 10))  # of X1, X2 and X3; any other feature is 1 with probability 1/2
SIGMAS, SIGMA = (Fraction(1, 2), Fraction(1), Fraction(3, 2)), 1.5
N_ROWS, N_FEATURES, REPETITIONS, FULL_REPETITIONS = 1_000, (100, 500), 20, 200  # the paper has 1,000 repetitions
# The paper takes these over all and up to 1,000 trees in every repetition; here rows of their own decide once.
RATES, FOLDS, MOST_TREES, PATIENCE = (0.01, 0.05, 0.1), 5, 1_000, 50
NAMES, TOTAL, OURS = ("X1", "X2", "X3"), "sum", "ours: bias"


@dataclass(frozen=True, slots=True)
class Model:
    """How a label comes of features, its depth, and as printed its theoretical R² by sigma, and with sigma 1.5 bias and standard deviation of
    Q-SHAP, bias of SAGE and of SPVIM: X1, X2, X3 and their sum."""

    name: str
    mean: Callable
    depth: int
    theory: dict[float, tuple[float, ...]]
    qshap: tuple[tuple[float, float], ...]
    sage: tuple[float, ...]
    spvim: tuple[float, ...]


MODELS = (
    Model(
        "a",
        lambda x1, x2, x3: 4 * x1 - 5 * x2 + 6 * x3,
        1,
        {0.5: (0.2094, 0.2863, 0.4907, 0.9864), 1.0: (0.2012, 0.2750, 0.4715, 0.9477), 1.5: (0.1888, 0.2581, 0.4425, 0.8894)},
        ((0.006, 0.011), (0.008, 0.014), (0.015, 0.015), (0.031, 0.014)),
        (-0.015, -0.017, -0.021, -0.053),
        (0.049, 0.069, 0.116, 0.242),
    ),
    Model(
        "b",
        lambda x1, x2, x3: 4 * x1 - 5 * x2 + 6 * x3 + 3 * x1 * x2 - x1 * x3,
        2,
        {0.5: (0.4390, 0.1341, 0.4129, 0.9860), 1.0: (0.4212, 0.1286, 0.3961, 0.9459), 1.5: (0.3945, 0.1205, 0.3710, 0.8860)},
        ((0.008, 0.017), (0.002, 0.009), (0.009, 0.016), (0.024, 0.019)),
        (-0.026, -0.014, -0.024, -0.062),
        (0.111, 0.049, 0.098, 0.256),
    ),
    Model(
        "c",
        lambda x1, x2, x3: 4 * x1 - 5 * x2 + 6 * x3 + 3 * x1 * x2 - x1 * x2 * x3,
        3,
        {0.5: (0.4288, 0.1450, 0.4130, 0.9868), 1.0: (0.4124, 0.1395, 0.3972, 0.9491), 1.5: (0.3878, 0.1312, 0.3735, 0.8925)},
        ((0.005, 0.017), (0.002, 0.009), (0.005, 0.015), (0.021, 0.016)),
        (-0.025, -0.014, -0.024, -0.062),
        (0.107, 0.048, 0.098, 0.260),
    ),
)


def theory(model: Model, sigma: Fraction) -> list[Fraction]:
    """Shares of X1, X2 and X3 in the variance of the label, and their sum: Shapley values of var E[Y | X_F], by enumeration in fractions."""
    cells = list(product((0, 1), repeat=3))

    def weight(cell) -> Fraction:
        found = Fraction(1)
        for x, p in zip(cell, PROBABILITIES, strict=True):
            found *= p if x else 1 - p
        return found

    def explained(known: frozenset[int]) -> Fraction:
        """The variance of the mean label given the features that are known."""
        weights: dict[tuple[int, ...], Fraction] = {}
        sums: dict[tuple[int, ...], Fraction] = {}
        for cell in cells:
            key = tuple(cell[j] for j in sorted(known))
            weights[key] = weights.get(key, Fraction(0)) + weight(cell)
            sums[key] = sums.get(key, Fraction(0)) + weight(cell) * model.mean(*cell)
        return sum((sums[key] ** 2 / weights[key] for key in sums), Fraction(0)) - sum(sums.values(), Fraction(0)) ** 2

    total, shares = explained(frozenset(range(3))) + sigma**2, []
    subsets = [frozenset(j for j in range(3) if bits >> j & 1) for bits in range(8)]
    for j in range(3):
        gains = [Fraction(factorial(len(s)) * factorial(2 - len(s)), 6) * (explained(s | {j}) - explained(s)) for s in subsets if j not in s]
        shares.append(sum(gains, Fraction(0)) / total)
    return [*shares, sum(shares, Fraction(0))]


def table_6() -> tuple[Figure, list[Claim]]:
    """As printed, to the four digits that are, but for rounding."""
    lines, holds = [], True
    for model in MODELS:
        for sigma in SIGMAS:
            exact = [float(share) for share in theory(model, sigma)]
            lines.append(Line((model.name, f"{float(sigma)}"), dict(zip((*NAMES, TOTAL), exact, strict=True))))
            holds &= all(abs(a - b) <= 1.5e-4 for a, b in zip(exact, model.theory[float(sigma)], strict=True))
    figure = Figure("Jiang, Zhang and Zhang 2025, Table 6: R² in theory", ("model", "sigma"), tuple(lines), ".4f")
    return figure, [Claim("as printed, within 1.5 units of the last digit", bool(holds))]


def draw_rows(model: Model, n_features: int, seed: int, n_rows: int = N_ROWS, sigma: float = SIGMA) -> tuple[np.ndarray, np.ndarray]:
    """Features ``(n, n_features) float32`` and labels."""
    draw = np.random.default_rng(seed)
    probabilities = np.full(n_features, 0.5)
    probabilities[:3] = [float(p) for p in PROBABILITIES]
    rows = (draw.random((n_rows, n_features)) < probabilities).astype(np.float32)
    return rows, model.mean(*rows[:, :3].T.astype(float)) + sigma * draw.standard_normal(n_rows)


def choose(
    model: Model, n_features: int, n_rows: int = N_ROWS, sigma: float = SIGMA, rates: Iterable[float] = RATES
) -> tuple[dict[str, object], int]:
    """Parameters and the number of trees by cross-validation."""
    rows, labels = draw_rows(model, n_features, 10_000, n_rows, sigma)
    best: tuple[float, dict[str, object], int] = (np.inf, {}, 0)
    for rate in rates:
        given = {"max_depth": model.depth, "eta": rate, "max_bin": 2, "nthread": 1, "seed": 1}
        found = xgboost.cv(given, xgboost.DMatrix(rows, labels), MOST_TREES, nfold=FOLDS, early_stopping_rounds=PATIENCE, as_pandas=False, seed=1)
        errors = found["test-rmse-mean"]
        best = min(best, (errors[-1], given, len(errors)), key=lambda entry: entry[0])
    return best[1], best[2]


def shares_of(booster: xgboost.Booster, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Shares of all features ``(features,)``."""
    prepared = prepare(load_ensemble(booster).ensemble, METHODS["r2"], {})
    buffers = make_buffers(prepared, len(rows))._replace(labels=lay_out(labels, np.ones(len(labels))))
    fill(prepared, buffers, rows)
    attribute_batch(METHODS["r2"], prepared, buffers)
    state = update(no_rows(prepared.players.size), buffers.phi[0], buffers.labels, len(rows))
    return finalize(whole(state), prepared.players, rows.shape[1]).share.value[0]


def simulate(model: Model, n_features: int, repetitions: int) -> np.ndarray:
    """Shares of X1, X2 and X3 and the sum of all shares, ``(repetitions, 4)``."""
    given, n_trees = choose(model, n_features)
    found = []
    for repetition in range(repetitions):
        rows, labels = draw_rows(model, n_features, repetition)
        shares = shares_of(xgboost.train(given, xgboost.DMatrix(rows, labels), n_trees), rows, labels)
        found.append([*shares[:3], shares.sum()])
    return np.array(found)


def table_1(n_features: int, repetitions: int = REPETITIONS) -> tuple[Figure, list[Claim]]:
    """Bias beside what the paper prints for 100 features; standard errors are, as there, deviations of a repetition."""
    lines, claims = [], []
    for model in MODELS:
        exact = np.array([float(share) for share in theory(model, Fraction(3, 2))])
        found = simulate(model, n_features, repetitions)
        bias, spread = found.mean(axis=0) - exact, found.std(axis=0, ddof=1)
        for k, name in enumerate((*NAMES, TOTAL)):
            numbers = {OURS: bias[k], "ours: SE": spread[k]}
            printed, deviation = model.qshap[k]
            if n_features == N_FEATURES[0]:
                numbers |= {"Q-SHAP, printed": printed, "SE, printed": deviation, "SAGE, printed": model.sage[k], "SPVIM, printed": model.spvim[k]}
                holds = abs(bias[k]) <= abs(printed) + 3 * deviation / np.sqrt(repetitions)
                claims.append(Claim(f"model {model.name}, {name}: no larger a bias than printed, but for three errors of our mean", bool(holds)))
            lines.append(Line((model.name, name), numbers))
            claims.append(Claim(f"model {model.name}, {name}: theory within three SE", bool(abs(bias[k]) <= 3 * spread[k])))
    title = (
        f"Jiang, Zhang and Zhang 2025, Table 1: bias of shares of R², n = {N_ROWS:,}, p = {n_features}, sigma = {SIGMA}, {repetitions} repetitions"
    )
    return Figure(title, ("model", "share"), tuple(lines), "+.3f"), claims


def draw_explained(quick: bool, full: bool = False) -> Iterable[tuple[Figure, list[Claim]]]:
    """Every table with what it must show; where quick, the one that trains nothing, and where full with more repetitions."""
    yield table_6()
    for n_features in () if quick else N_FEATURES:
        yield table_1(n_features, FULL_REPETITIONS if full else REPETITIONS)
