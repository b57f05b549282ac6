"""Jiang, Zhang and Zhang 2025, Figures 2 to 12: how far shares of R² are from theory as rows and noise grow, of signal and of nuisance features; and
beside SAGE, by the package sage-importance. SPVIM is left out: its package (vimpy 2.1) can be neither resolved nor run on a NumPy of today."""

import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import sage
import xgboost
from mlxtend.data import boston_housing_data
from sklearn.datasets import load_diabetes

from tests.papers.explained import MODELS, NAMES, SIGMA, SIGMAS, Model, choose, draw_rows, shares_of, theory
from tests.papers.figures import Claim, Figure, Line

ROWS, REPETITIONS, FULL_REPETITIONS = (500, 2_000, 5_000), 5, 50  # the paper has 1,000 repetitions
RATES = (0.1,)  # of those that the paper chooses from: trees at the others are up to ten times as many
SIGNAL, NUISANCE, ROOT = "ours: MAE, signal", "ours: MAE, nuisance", 3  # features that have a share
PERMUTATIONS, BACKGROUND = 8_192, 512  # of SAGE, which goes on until it has converged where it is not told to end
FEW = 256  # permutations where quick
TIMED = 64  # permutations of Figure 3, whose cost is the same for each
HUNDREDS = 100  # "hundreds of times faster"
OURS, SAGE = "ours", "SAGE"
FAR = 4.0  # standard errors: of five sums one in 3,000 is further off by chance


def errors(model: Model, n_features: int, n_rows: int, sigma: Fraction, repetitions: int) -> dict[str, float]:
    """Mean absolute errors of both groups of features, and the mean bias of each feature with a share."""
    given, n_trees = choose(model, n_features, n_rows, float(sigma), RATES)
    exact, found = np.zeros(n_features), []
    exact[:ROOT] = [float(share) for share in theory(model, sigma)[:ROOT]]
    for repetition in range(repetitions):
        rows, labels = draw_rows(model, n_features, repetition, n_rows, float(sigma))
        found.append(shares_of(xgboost.train(given, xgboost.DMatrix(rows, labels), n_trees), rows, labels) - exact)
    off = np.array(found)
    bias = {f"ours: bias, {name}": off[:, j].mean() for j, name in enumerate(NAMES)}
    return {SIGNAL: np.abs(off[:, :ROOT]).mean(), NUISANCE: np.abs(off[:, ROOT:]).mean()} | bias


def simulated(n_features: int, sizes: Iterable[int], sigmas: Iterable[Fraction], repetitions: int = REPETITIONS) -> Figure:
    """Every model, noise and number of rows."""
    sizes, sigmas, lines = list(sizes), list(sigmas), []
    for model in MODELS:
        for sigma in sigmas:
            lines += [Line((model.name, float(sigma), n), errors(model, n_features, n, sigma, repetitions)) for n in sizes]
    what = "Figure 12" if n_features > 100 else "Figures 2 and 4 to 11"
    title = f"Jiang, Zhang and Zhang 2025, {what}: errors of shares of R², p = {n_features}, {repetitions} repetitions"
    return Figure(title, ("model", "sigma", "n"), tuple(lines), ".2g")


def simulated_claims(figure: Figure) -> list[Claim]:
    """Both groups come nearer with more rows, and nuisance features have hardly any share."""
    ends: dict[tuple[int | float | str, ...], list[Line]] = {}
    for line in figure.lines:
        ends.setdefault(line.labels[:2], []).append(line)
    nearer = {column: [some[-1].numbers[column] < some[0].numbers[column] for some in ends.values()] for column in (SIGNAL, NUISANCE)}
    claims = [Claim(f"{column}: lower with most rows than with fewest for every model and noise", all(found)) for column, found in nearer.items()]
    smaller = all(line.numbers[NUISANCE] < line.numbers[SIGNAL] for line in figure.lines)
    return [*claims, Claim("nuisance features have smaller errors than signal features on every line", smaller)]


def running_times(sizes: Iterable[int], n_features: int = 100) -> tuple[Figure, list[Claim]]:
    """Figure 3: seconds of processor that shares of R² take. SAGE's are of few permutations, times as many as it is given elsewhere."""
    lines, ratios = [], []
    for model in MODELS:
        for n in sizes:
            given, n_trees = choose(model, n_features, n, SIGMA, RATES)
            rows, labels = draw_rows(model, n_features, 0, n, SIGMA)
            booster = xgboost.train(given, xgboost.DMatrix(rows, labels), n_trees)
            shares_of(booster, rows[:2], labels[:2])  # compiles
            calls = {OURS: shares_of, SAGE: partial(sage_shares, permutations=TIMED)}
            seconds = {who: _process_seconds(call, booster, rows, labels) for who, call in calls.items()}
            seconds[SAGE] *= PERMUTATIONS / TIMED
            lines.append(Line((model.name, n, n_trees), {f"{who}: s": found for who, found in seconds.items()}))
            ratios.append(seconds[SAGE] / seconds[OURS])
    title = f"Jiang, Zhang and Zhang 2025, Figure 3: seconds of processor, p = {n_features}, SAGE's for {PERMUTATIONS:,} permutations"
    said = f"{min(ratios):,.0f} to {max(ratios):,.0f} times as fast as SAGE, expected {HUNDREDS} or more: “hundreds of times faster”"
    return Figure(title, ("model", "n", "trees"), tuple(lines), ".2g"), [Claim(said, min(ratios) > HUNDREDS)]


def _process_seconds(call: Callable[..., object], *given: object) -> float:
    started = time.process_time()
    call(*given)
    return time.process_time() - started


def _background(rows: np.ndarray) -> np.ndarray:
    """Rows that SAGE draws absent features from."""
    return rows[np.random.default_rng(1).permutation(len(rows))[:BACKGROUND]]


def sage_shares(booster: xgboost.Booster, rows: np.ndarray, labels: np.ndarray, permutations: int = PERMUTATIONS) -> np.ndarray:
    """SAGE values of the squared error as parts of the variance of the label, absent features drawn from some of the rows."""
    estimator = sage.PermutationEstimator(sage.MarginalImputer(booster.inplace_predict, _background(rows)), "mse", random_state=1)
    found = estimator(rows, labels, batch_size=256, n_permutations=permutations, detect_convergence=False, bar=False)
    return found.values / labels.var()


def sage_sum(booster: xgboost.Booster, rows: np.ndarray, labels: np.ndarray, permutations: int = PERMUTATIONS) -> tuple[float, float]:
    """What SAGE values add up to by their definition, and the standard error of so many rows drawn: the loss of the background's mean prediction less
    that of the model. It is R² and the squared distance of that mean from the labels' mean, so that it is never less than R²."""
    gained = (labels - booster.inplace_predict(_background(rows)).mean()) ** 2 - (labels - booster.inplace_predict(rows)) ** 2
    return gained.mean() / labels.var(), gained.std() / np.sqrt(permutations) / labels.var()


def data_sets(names: Iterable[str], n_features: int = 10) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
    """Packaged data, and the paper's models with as few features."""
    for name in names:
        if name == "Boston":
            rows, labels = boston_housing_data()
        elif name == "diabetes":
            rows, labels = load_diabetes(return_X_y=True)
        else:
            model = next(model for model in MODELS if model.name == name)
            rows, labels = draw_rows(model, n_features, 0, sigma=SIGMA)
        yield name, rows.astype(np.float32), labels


def beside_sage(names: Sequence[str], timed: bool) -> tuple[Figure, list[Claim]]:
    """The largest shares of each data set, the sum of all, and seconds of processor; where timed, what these must show."""
    lines, claims, permutations, distances = [], [], PERMUTATIONS if timed else FEW, []
    for name, rows, labels in data_sets(names):
        depth = {model.name: model.depth for model in MODELS}.get(name, 3)
        booster = xgboost.train({"max_depth": depth, "eta": 0.1, "nthread": 1, "seed": 1}, xgboost.DMatrix(rows, labels), 100)
        found, seconds = {}, {}
        shares_of(booster, rows[:2], labels[:2])  # compiles
        for who, ask in ((OURS, shares_of), (SAGE, partial(sage_shares, permutations=permutations))):
            started = time.process_time()
            found[who] = ask(booster, rows, labels)
            seconds[who] = time.process_time() - started
        top = np.argsort(-found[OURS])[:3]
        lines += [Line((name, f"feature {j}"), {who: shares[j] for who, shares in found.items()}) for j in top]
        lines.append(Line((name, "sum of all"), {who: shares.sum() for who, shares in found.items()}))
        defined, error = sage_sum(booster, rows, labels, permutations)
        lines.append(Line((name, "sum by SAGE's definition"), {SAGE: defined, "SE": error}))
        distances.append(((found[SAGE].sum() - defined) / error, (found[SAGE].sum() - found[OURS].sum()) / error))
        lines.append(Line((name, "seconds"), seconds))
        first = set(top[:2].tolist()) == set(np.argsort(-found[SAGE])[:2].tolist())
        claims.append(Claim(f"{name}: the same two features have the largest shares", first))
        if timed:
            ratio = seconds[SAGE] / seconds[OURS]
            claims.append(Claim(f"{name}: {ratio:.0f} times as fast, expected twice or more", ratio > 2))
    off, above = (np.array(each) for each in zip(*distances, strict=True))
    claims += [
        Claim(f"SAGE's sums are what its definition says, within {np.abs(off).max():.1f} standard errors, expected {FAR:g}", np.abs(off).max() < FAR),
        Claim(
            f"SAGE's sums lie {above.min():+.1f} to {above.max():+.1f} standard errors from ours: the smaller sums that the paper "
            "prints in Tables 1 and 3 do not come out with so many permutations and rows, nor can they by SAGE's definition",
            above.min() > -FAR,
        ),
    ]
    title = f"Jiang, Zhang and Zhang 2025, Tables 2 and 3: shares of R² beside SAGE's ({permutations:,} permutations, {BACKGROUND} rows drawn from)"
    return Figure(title, ("data", "share"), tuple(lines), ".3f", "the paper's models of ten features, diabetes, Boston"), claims


def draw_accuracy(quick: bool, full: bool = False) -> Iterable[tuple[Figure, list[Claim]]]:
    """Simulations, more of them where full, then SAGE on few data sets; where quick, SAGE on one."""
    if not quick:
        repetitions = FULL_REPETITIONS if full else REPETITIONS
        for figure in (simulated(100, ROWS, SIGMAS, repetitions), simulated(500, ROWS[:2], SIGMAS[2:], repetitions)):
            yield figure, simulated_claims(figure)
        yield running_times(ROWS)
    yield beside_sage(["diabetes"] if quick else ["a", "b", "c", "diabetes", "Boston"], timed=not quick)
