"""Gajewski et al. 2024 as tables of numbers: exact gaps against sampling in equal time, agreement of greedy rankings with SHAP's, and how far the
prefixes of each move the prediction. On scikit-learn's packaged data (diabetes, and wine and breast cancer with the class as a number), for the
paper's are not packaged: orderings are claimed, not digits."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import xgboost
from scipy.special import ndtri
from scipy.stats import qmc
from sklearn import datasets

import leafledger
from leafledger.pipeline.in_memory.rankings.prediction_gap import rank_players
from leafledger.pipeline.models.model import Model
from tests.papers.figures import Claim, Figure, Line

SCALES = (0.1, 0.3, 1.0)
PAIRS, ROWS, QUICK_ROWS = 24, 100, 25  # of rows and sets of Table 1; rows of the others
DATA = {"diabetes": datasets.load_diabetes, "wine": datasets.load_wine, "breast cancer": datasets.load_breast_cancer}
MODELS = {"single": (1, 0.9), "bigger": (40, 0.2)}  # trees and learning rate, of depth 4
SHAP = "SHAP"
OTHER_DATA = "of scikit-learn"


@dataclass(frozen=True, slots=True)
class Trained:
    """A model on standardised features, and the rows that it is asked about."""

    name: str
    kind: str
    model: Model
    booster: xgboost.Booster
    rows: np.ndarray


def train(name: str, kind: str, n_rows: int) -> Trained:
    """On four fifths of the data; rows are of the rest, and of those where there are not so many."""
    x, y = DATA[name](return_X_y=True)
    x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(x))
    n_trees, eta = MODELS[kind]
    fit = order[len(x) // 5 :]
    booster = xgboost.train({"max_depth": 4, "eta": eta, "subsample": 0.9, "seed": 0, "nthread": 1}, xgboost.DMatrix(x[fit], y[fit]), n_trees)
    return Trained(name, kind, leafledger.load_ensemble(booster), booster, x[order[:n_rows]].astype(np.float64))


def sampled(found: Trained, row, chosen, scale: float, points) -> float:
    """PG² estimated at points of the unit cube, one dimension for each perturbed feature."""
    moved = np.repeat(row[None].astype(np.float32), len(points) + 1, axis=0)
    moved[1:, chosen] += (scale * ndtri(points)).astype(np.float32)
    margin = found.booster.inplace_predict(moved, predict_type="margin").astype(np.float64)
    return float(((margin[1:] - margin[0]) ** 2).mean())


def table_1(kinds: Iterable[str], n_pairs: int) -> Figure:
    """Sum of errors over the sum of values, where sampling gets the time that an exact value takes, its predictions included."""
    lines = []
    for kind in kinds:
        for name in DATA:
            found = train(name, kind, n_pairs)
            rng, d = np.random.default_rng(1), found.rows.shape[1]
            sets = [np.flatnonzero(rng.random(d) < 0.5) for _ in range(n_pairs)]
            names = [feature.name for feature in found.model.features]
            for scale in SCALES:
                exact, seconds = [], 0.0
                leafledger.prediction_gap(found.model, found.rows[:1], scale=scale)
                for row, chosen in zip(found.rows, sets, strict=True):
                    started = time.perf_counter()
                    exact.append(leafledger.prediction_gap(found.model, row[None], features=[names[q] for q in chosen], scale=scale)[0, 0])
                    seconds += time.perf_counter() - started
                started = time.perf_counter()
                for row, chosen in zip(found.rows, sets, strict=True):
                    sampled(found, row, chosen, scale, rng.random((1000, chosen.size)))
                n = max(10, int(1000 * seconds / (time.perf_counter() - started)))
                errors = {"MC": 0.0, "QMC": 0.0}
                for value, row, chosen in zip(exact, found.rows, sets, strict=True):
                    points = {"MC": rng.random((n, chosen.size)), "QMC": qmc.Halton(max(1, chosen.size), rng=rng).random(n)[:, : chosen.size]}
                    for how, drawn in points.items():
                        errors[how] += abs(sampled(found, row, chosen, scale, drawn) - value)
                numbers = {how: error / max(sum(exact), 1e-300) for how, error in errors.items()}
                lines.append(Line((f"{name}, {kind}", scale, n), numbers))
    return Figure(
        "Gajewski et al. 2024, Table 1: error of sampling in the time of the exact value",
        ("model", "scale", "points"),
        tuple(lines),
        ".1e",
        OTHER_DATA,
    )


def claims_1(figure: Figure) -> list[Claim]:
    """Quasi-Monte Carlo is closer, and neither is exact."""
    closer = sum(line.numbers["QMC"] < line.numbers["MC"] for line in figure.lines)
    return [
        Claim(f"QMC closer than MC on {closer} of {len(figure.lines)} lines, expected at least three quarters", closer >= 0.75 * len(figure.lines)),
        Claim("neither reaches 1e-6", all(error > 1e-6 for line in figure.lines for error in line.numbers.values())),
    ]


def rankings(found: Trained) -> dict[str, np.ndarray]:
    """By size of Shapley values, and greedy at every scale: ``(n, outputs, features)``."""
    named = {SHAP: rank_players(leafledger.attribute(found.model, found.rows).phi)}
    return named | {f"greedy {scale}": leafledger.rank_by_gap(found.model, found.rows, scale=scale)[0] for scale in SCALES}


def tables_2_and_3(kinds: Iterable[str], n_rows: int) -> tuple[Figure, Figure]:
    """Share of rows whose k features ranked first are SHAP's, and mean PGI² of every ranking at every scale (Table 6 for single trees)."""
    agreement, gaps = [], []
    for kind in kinds:
        for name in DATA:
            found = train(name, kind, n_rows)
            ranked = rankings(found)
            for scale in SCALES:
                tops = (np.sort(ranked[key][:, 0, :k], axis=1) for k in (1, 2, 3) for key in (SHAP, f"greedy {scale}"))
                same = [float((a == next(tops)).all(axis=1).mean()) for a in tops]
                agreement.append(Line((f"{name}, {kind}", scale), {f"k = {k}": share for k, share in enumerate(same, 1)}))
                means = {
                    key: float(leafledger.prediction_gap(found.model, found.rows, ranking=order, scale=scale).mean()) for key, order in ranked.items()
                }
                gaps.append(Line((f"{name}, {kind}", scale), means))
    headings = ("model", "scale")
    return (
        Figure("Gajewski et al. 2024, Table 2: share of rows whose first k features are SHAP's", headings, tuple(agreement), ".3f", OTHER_DATA),
        Figure("Gajewski et al. 2024, Tables 3 and 6: mean PGI²", headings, tuple(gaps), ".5g", OTHER_DATA),
    )


def claims_2(figure: Figure) -> list[Claim]:
    """Agreement is far from complete for many trees, and grows with the scale."""
    bigger = [line.numbers for line in figure.lines if "bigger" in line.labels[0]]
    by_model = [figure.lines[i : i + len(SCALES)] for i in range(0, len(figure.lines), len(SCALES))]
    grows = sum(lines[-1].numbers["k = 1"] >= lines[0].numbers["k = 1"] for lines in by_model)
    return [
        Claim("with many trees the first three features are SHAP's on less than two thirds of the rows", all(n["k = 3"] < 2 / 3 for n in bigger)),
        Claim(
            f"the first feature is SHAP's on as many rows or more at the largest scale than at the smallest: {grows} of {len(by_model)} models, "
            "expected more than half",
            2 * grows > len(by_model),
        ),
    ]


def claims_3(figure: Figure) -> list[Claim]:
    """The greedy ranking of a scale moves predictions most at that scale, and more than SHAP's."""
    best = [
        max(line.numbers, key=lambda key, line=line: line.numbers[key] * (1 + 1e-9 * (key == f"greedy {line.labels[1]}"))) for line in figure.lines
    ]
    own = sum(key == f"greedy {line.labels[1]}" for key, line in zip(best, figure.lines, strict=True))
    beyond = all(line.numbers[f"greedy {line.labels[1]}"] >= line.numbers[SHAP] for line in figure.lines)
    return [
        Claim("the greedy ranking of a scale is above SHAP's at that scale on every line", beyond),
        Claim(f"and the highest of all on {own} of {len(figure.lines)} lines, expected nine tenths", own >= 0.9 * len(figure.lines)),
    ]


def draw_gap(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Every table with what it must show, one after the other; where quick, on few rows, and without the one that hangs on time."""
    if not quick:
        figure = table_1(MODELS, PAIRS)
        yield figure, claims_1(figure)
    agreement, gaps = tables_2_and_3(MODELS, QUICK_ROWS if quick else ROWS)
    yield agreement, claims_2(agreement)
    yield gaps, claims_3(gaps)
