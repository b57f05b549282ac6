"""Gajewski et al. 2024, Tables 4 and 5: the error of the label when a ranking's first features are drawn at random, or left out of the training."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import xgboost
from mlxtend.data import boston_housing_data
from sklearn.datasets import load_diabetes

import leafledger
from tests.papers.figures import Claim, Figure, Line
from tests.papers.gap import MODELS, Trained, rankings

DATA = {"diabetes": lambda: load_diabetes(return_X_y=True), "Boston": boston_housing_data}
KIND, FIRST, DRAWS = "bigger", (1, 2, 3), 100  # draws as in the paper
RANDOM = "random"  # a ranking drawn for every row: what removing any k features does


@dataclass(frozen=True, slots=True)
class Split:
    """Standardised features and labels of four fifths of the data, and of the rest, which is asked about."""

    name: str
    rows: np.ndarray
    labels: np.ndarray
    test_rows: np.ndarray
    test_labels: np.ndarray


def split(name: str) -> Split:
    """As the other tables' models are trained and asked."""
    x, y = DATA[name]()
    x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(x))
    fit, rest = order[len(x) // 5 :], order[: len(x) // 5]
    return Split(name, x[fit], y[fit], x[rest], y[rest])


def fit(data: Split, removed: Iterable[int] = ()) -> xgboost.Booster:
    """Trained without some features: they are constant, so that no split asks for them."""
    n_trees, eta = MODELS[KIND]
    rows = data.rows.copy()
    rows[:, list(removed)] = 0.0
    given = {"max_depth": 4, "eta": eta, "subsample": 0.9, "seed": 0, "nthread": 1}
    return xgboost.train(given, xgboost.DMatrix(rows, data.labels), n_trees)


def rmse(found: np.ndarray, labels: np.ndarray) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(((found - labels) ** 2).mean()))


def retrained(data: Split, removed: np.ndarray, models: dict[frozenset[int], xgboost.Booster]) -> np.ndarray:
    """Predictions of every row by the model that never saw its removed features (Table 5); models are kept for the next ranking."""
    found = np.zeros(len(removed))
    sets = [frozenset(map(int, some)) for some in removed]
    for some in sorted(set(sets), key=sorted):
        if some not in models:
            models[some] = fit(data, some)
        here = [i for i, other in enumerate(sets) if other == some]
        found[here] = models[some].inplace_predict(data.test_rows[here])
    return found


def randomised(data: Split, removed: np.ndarray, booster: xgboost.Booster) -> np.ndarray:
    """Mean predictions with the removed features drawn from the test rows, each on its own (Table 4)."""
    draw, (n, k) = np.random.default_rng(7), removed.shape
    rows = np.repeat(data.test_rows, DRAWS, axis=0)
    drawn = draw.integers(0, n, (n * DRAWS, k))
    columns = np.repeat(removed, DRAWS, axis=0)
    rows[np.arange(n * DRAWS)[:, None], columns] = data.test_rows[drawn, columns]
    return booster.inplace_predict(rows).reshape(n, DRAWS).mean(axis=1)


def ranked(data: Split, booster: xgboost.Booster) -> dict[str, np.ndarray]:
    """SHAP's ranking of every row, greedy ones, and one drawn at random: ``(n, features)``."""
    model = Trained(data.name, KIND, leafledger.load_ensemble(booster), booster, data.test_rows.astype(np.float64))
    n, d = data.test_rows.shape
    random = np.random.default_rng(3).permuted(np.tile(np.arange(d), (n, 1)), axis=1)
    return {name: order[:, 0] for name, order in rankings(model).items()} | {RANDOM: random}


def tables_4_and_5(names: Iterable[str]) -> tuple[Figure, Figure]:
    """RMSE without the first k features of every ranking."""
    random, without = [], []
    for name in names:
        data, models = split(name), {}
        booster = fit(data)
        orders = ranked(data, booster)
        for k in FIRST:
            random.append(Line((name, k), {key: rmse(randomised(data, order[:, :k], booster), data.test_labels) for key, order in orders.items()}))
            without.append(Line((name, k), {key: rmse(retrained(data, order[:, :k], models), data.test_labels) for key, order in orders.items()}))
    headings, other = ("data", "k"), "diabetes, and Boston, which is another paper's"
    return (
        Figure("Gajewski et al. 2024, Table 4: RMSE with the first k features drawn at random", headings, tuple(random), ".4g", other),
        Figure("Gajewski et al. 2024, Table 5: RMSE after retraining without the first k features", headings, tuple(without), ".4g", other),
    )


def removal_claims(figure: Figure) -> list[Claim]:
    """What a ranking puts first matters; which ranking is better differs from data to data, as the paper concludes, and is not claimed."""
    names = [name for name in figure.lines[0].numbers if name != RANDOM]
    last = [line.numbers for line in figure.lines if line.labels[1] == FIRST[-1]]
    above = all(numbers[name] > numbers[RANDOM] for numbers in last for name in names)
    return [Claim(f"without the first {FIRST[-1]} features of any ranking the error is larger than without any {FIRST[-1]}", above)]


def growth_claims(figure: Figure) -> list[Claim]:
    """In every column that is printed the error grows with k."""
    names = [name for name in figure.lines[0].numbers if name != RANDOM]
    ends = zip(figure.lines[:: len(FIRST)], figure.lines[len(FIRST) - 1 :: len(FIRST)], strict=True)
    grows = all(line.numbers[name] > first.numbers[name] for first, line in ends for name in names)
    return [Claim(f"for every ranking the error is larger at k = {FIRST[-1]} than at k = {FIRST[0]}, as in every column printed", grows)]


def draw_removal(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Both tables, of the smaller data where quick."""
    random, without = tables_4_and_5(["diabetes"] if quick else DATA)
    yield random, removal_claims(random)
    yield without, removal_claims(without) + growth_claims(without)
