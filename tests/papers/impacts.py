"""Karczmarz et al. 2022, Figures 2, 5, 6, 9, 10, 13, 14 and 18: mean sizes of Shapley and Banzhaf values by feature, how far they are apart,
and the row on which they are furthest. (Their formula of RMSE_i squares in the wrong place.)"""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from leafledger.kernels.trees.ensemble import TreeEnsemble
from tests.papers import banzhaf, one_hot
from tests.papers.banzhaf import BANZHAF, SHAPLEY, values
from tests.papers.figures import Claim, Figure, Line

NAMES = ("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT")  # of Boston's columns
SHOWN = 13  # features of flights, by Shapley's impact
ALIKE = 0.02  # of the largest impact: two bars whose lengths differ by less look the same
SMALL = 0.05  # of it: "a few small percent"


def _of_features(both: np.ndarray) -> dict[str, np.ndarray]:
    """Both impacts, MAE and RMSE of every feature, from ``(2, n, features)`` Shapley and Banzhaf values."""
    gap = both[0] - both[1]
    impacts = np.abs(both).mean(axis=1)
    return {"shapley": impacts[0], "banzhaf": impacts[1], "MAE": np.abs(gap).mean(axis=0), "RMSE": np.sqrt((gap**2).mean(axis=0))}


def _compared(ensemble: TreeEnsemble, rows: np.ndarray) -> np.ndarray:
    return np.array([values(ensemble, value, rows) for value in (SHAPLEY, BANZHAF)])


def _lines(names: Iterable[str], found: dict[str, dict[str, np.ndarray]], features: Iterable[int]) -> tuple[Line, ...]:
    names = tuple(names)
    return tuple(
        Line((names[j],), {f"{model}: {what}": float(numbers[j]) for model, by in found.items() for what, numbers in by.items()}) for j in features
    )


def _claims(many: dict[str, np.ndarray], one: dict[str, np.ndarray]) -> list[Claim]:
    apart = [np.abs(each["shapley"] - each["banzhaf"]).max() / each["shapley"].max() for each in (many, one)]
    errors = [max(each["MAE"].max(), each["RMSE"].max()) / each["shapley"].max() for each in (many, one)]
    return [
        Claim(
            f"many trees: impacts within {apart[0]:.1%} of the largest, expected less than {ALIKE:.0%}: they look the same, as drawn",
            apart[0] < ALIKE,
        ),
        Claim(f"many trees: errors of rows up to {errors[0]:.1%} of it, expected less than {SMALL:.0%}, “few small percent”", errors[0] < SMALL),
        Claim(f"one deep tree: errors are larger, up to {errors[1]:.1%}, as the text says", errors[1] > errors[0]),
    ]


def boston() -> Iterator[tuple[Figure, list[Claim]]]:
    """Impacts and errors by both models of Boston, then the row of each on which Shapley and Banzhaf values are furthest apart."""
    compared = {name: _compared(ensemble, rows) for name, ensemble, rows, _ in islice(banzhaf.models(), len(banzhaf.PRINTED))}
    found = {name: _of_features(both) for name, both in compared.items()}
    many, one = found.values()
    title = "Karczmarz et al. 2022, Figures 2, 6 and 10: global impacts of Boston's features, MAE and RMSE"
    same = np.array_equal(*(np.argsort(-many[value], kind="stable") for value in (SHAPLEY, BANZHAF)))
    claims = [Claim("many trees: Shapley and Banzhaf values order the features alike, as drawn", bool(same)), *_claims(many, one)]
    yield Figure(title, ("feature",), _lines(NAMES, found, range(len(NAMES))), ".3f"), claims

    furthest = {name: both[:, np.abs(both[0] - both[1]).sum(axis=1).argmax()] for name, both in compared.items()}
    lines = _lines(NAMES, {name: {SHAPLEY: row[0], BANZHAF: row[1]} for name, row in furthest.items()}, range(len(NAMES)))
    first = [[set(np.argsort(-np.abs(values))[:3].tolist()) for values in row] for row in furthest.values()]
    claims = [Claim("also there the three largest by many trees are the same features by both, as drawn", first[0][0] == first[0][1])]
    yield Figure("Karczmarz et al. 2022, Figures 14 and 18: the row of Boston on which both are furthest apart", ("feature",), lines, ".2f"), claims


def flights(quick: bool) -> tuple[Figure, list[Claim]]:
    """The same of flights, whose first features by impact are shown."""
    frame, labels = one_hot.flights_frame(1000 if quick else one_hot.MOST_ROWS)
    rows = frame.to_numpy()
    asked = rows[: one_hot.ASKED]
    found = {name: _of_features(_compared(ensemble, asked)) for name, ensemble in one_hot.models(rows, labels, quick).items()}
    many, one = found.values()
    lines = _lines(frame.columns, found, np.argsort(-many[SHAPLEY], kind="stable")[:SHOWN].tolist())
    title = "Karczmarz et al. 2022, Figures 5, 9 and 13: global impacts of flights' features, MAE and RMSE"
    return Figure(title, ("feature",), lines, ".3f", one_hot.OTHER_DATA), [] if quick else _claims(many, one)


def draw_impacts(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Boston, whose data are the paper's, then flights."""
    yield from boston()
    yield flights(quick)
