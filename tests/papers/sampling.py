"""Gajewski et al. 2024, Figures 1 to 7: the error of sampling the prediction gap against the number of samples, Monte Carlo and quasi-Monte Carlo."""

from collections.abc import Iterable

import numpy as np
from scipy.stats import qmc

import leafledger
from tests.papers.figures import Claim, Figure, Line
from tests.papers.gap import DATA, MODELS, OTHER_DATA, SCALES, sampled, train

COUNTS, QUICK_COUNTS = (100, 400, 1_600, 6_400, 25_600), (100, 1_600)
QUICK_SETS = 8
MC, QMC = "MC", "QMC"
ENOUGH, TOLERANCE = 1_600, 0.1  # samples from which on one is closer; of a slope, from so few counts and pairs


def errors(name: str, kind: str, scale: float, counts: Iterable[int], n_sets: int | None) -> dict[int, dict[str, float]]:
    """NMAE, the sum of errors over the sum of values, by count and method; a row for each size of the perturbed set, whose features are drawn."""
    d, rng = DATA[name](return_X_y=True)[0].shape[1], np.random.default_rng(1)
    sizes = np.arange(1, d + 1) if n_sets is None else np.linspace(1, d, n_sets).astype(int)
    found = train(name, kind, len(sizes))
    names = [feature.name for feature in found.model.features]
    sets = [np.sort(rng.permutation(d)[:size]) for size in sizes]
    pairs = list(zip(found.rows, sets, strict=True))
    exact = [leafledger.prediction_gap(found.model, row[None], features=[names[q] for q in s], scale=scale)[0, 0] for row, s in pairs]
    errors = {}
    for n in counts:
        errors[n] = {MC: 0.0, QMC: 0.0}
        for value, (row, chosen) in zip(exact, pairs, strict=True):
            points = {MC: rng.random((n, chosen.size)), QMC: qmc.Halton(chosen.size, rng=rng).random(n)}
            for how, drawn in points.items():
                errors[n][how] += abs(sampled(found, row, chosen, scale, drawn) - value) / sum(exact)
    return errors


def convergence(name: str, kind: str, scales: Iterable[float], counts: Iterable[int], n_sets: int | None = None) -> Figure:
    """One model's three pictures as one, a column for each method and scale; of sets of every size where no number is given."""
    by_scale = {scale: errors(name, kind, scale, counts, n_sets) for scale in scales}
    lines = []
    for n in next(iter(by_scale.values())):
        numbers = {f"{how}, σ = {scale:g}": found[n][how] for how in (MC, QMC) for scale, found in by_scale.items()}
        lines.append(Line((n,), numbers))
    title = f"Gajewski et al. 2024, Figures 1 to 7: error of sampling on {name}, {kind} model"
    return Figure(title, ("samples",), tuple(lines), ".1e", OTHER_DATA, "log-log: NMAE")


def slope(figure: Figure, column: str) -> float:
    """Of the logarithm of the error in that of the count, by least squares."""
    found = figure.column(column)
    return float(np.polyfit(np.log(list(found)), np.log(list(found.values())), 1)[0])


def slope_claims(figure: Figure) -> list[Claim]:
    """The error of Monte Carlo goes with one over the root of the count, that of quasi-Monte Carlo faster, and is lower but for few samples."""
    scales = [column.partition(", ")[2] for column in figure.lines[0].numbers if column.startswith(f"{MC}, ")]
    slopes = {how: [slope(figure, f"{how}, {scale}") for scale in scales] for how in (MC, QMC)}
    mean, many = float(np.mean(slopes[MC])), [line for line in figure.lines if line.labels[0] >= ENOUGH]
    lower = all(line.numbers[f"{QMC}, {scale}"] < line.numbers[f"{MC}, {scale}"] for line in many for scale in scales)
    of_qmc = ", ".join(f"{found:.2f}" for found in slopes[QMC])
    return [
        Claim(f"slope of MC {mean:.2f}, the mean over scales, expected -1/2 within {TOLERANCE}", abs(mean + 0.5) <= TOLERANCE),
        Claim(f"slopes of QMC {of_qmc}, expected steeper than MC's at every scale", all(q < m for m, q in zip(slopes[MC], slopes[QMC], strict=True))),
        Claim(f"QMC closer at every scale from {ENOUGH:,} samples on", lower),
    ]


def draw_sampling(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Six models at three scales; where quick, one at one scale, too few counts for a slope."""
    if quick:
        figure = convergence("diabetes", "single", (0.3,), QUICK_COUNTS, QUICK_SETS)
        found = figure.lines[-1].numbers
        yield figure, [Claim("QMC closer than MC", found["QMC, σ = 0.3"] < found["MC, σ = 0.3"])]
        return
    for name in DATA:
        for kind in MODELS:
            figure = convergence(name, kind, SCALES, COUNTS)
            yield figure, slope_claims(figure)
