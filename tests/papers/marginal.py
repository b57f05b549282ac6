"""Filom et al. 2024 as tables of numbers: values that depend on the function alone, what they cost to prepare and per row, and how many background
rows it takes. Times are medians of turns on one thread; nothing is claimed of them but what CatBoost's own say beside them."""

from collections.abc import Callable, Iterable
from typing import Any

import catboost
import numpy as np

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, merge_statistics, prepare, weigh_leaves
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.stores.table_arrays import table_bytes
from tests.bench.ours import attributions, explain_all, make_slices, spread
from tests.bench.timing import Contender, clock, race
from tests.papers.figures import EXACT, Claim, Figure, Line, relative_error, stay_below
from tests.papers.synthetic import N_FEATURES, N_TREES, make_rows, train
from tests.papers.trees import eject, lay_out, ours

# By depth: CatBoost's own tables of all 300 would take half an hour at depth 10, and six times as long with every level more.
TREES = {4: 300, 5: 300, 6: 300, 7: 100, 8: 30, 9: 10, 10: 2, 12: 1}
QUICK_TREES = {4: 20, 6: 5}
DEEPEST, DEEPEST_FULL = 10, 12  # that CatBoost's own are asked for
GROUP_SIZE, N_GROUPS = 5, 8  # of Figure 7
GROUPS = np.arange(N_FEATURES, dtype=np.int32) // GROUP_SIZE
MANY_ROWS, FEW_ROWS, REPEATS, SLOW = 8_192, 8, 3, 2.0  # seconds: a longer call is made once
REFERENCES = (1_000, 5_000, 10_000, 20_000)  # of Figure 5
BUDGET = 1 << 32
SHAPLEY, OWEN, EXACTLY = "shapley", "owen", "CatBoost, Exact"
# Table 7: features, trees, depth, and as printed the seconds to prepare, MB, and seconds for 100 rows.
TABLE_7 = {
    "Superconductivity": (81, 300, 8, 20.118, 10.6, 0.030),
    "Ailerons": (40, 50, 7, 0.600, 0.808, 0.005),
    "Online News": (58, 167, 7, 3.518, 3.19, 0.017),
    "Higgs": (28, 1000, 8, 51.140, 32.3, 0.068),
}
SAMPLES, POPULATION = (100, 1_000, 10_000, 100_000), 1_000_000
QUICK_SAMPLES, QUICK_POPULATION = (100, 10_000), 100_000


def against(ensemble: TreeEnsemble, parts: Iterable[np.ndarray], n_rows: int) -> Prepared:
    """Tables of Shapley values against background rows that come in parts."""
    method = METHODS[SHAPLEY]
    query = ask_background(ensemble, method, n_rows=n_rows, budget=BUDGET)
    counted = merge_statistics([measure_background(query, rows.T[query.bins.column].astype(float)) for rows in parts])
    return prepare(ensemble, method, {}, background=(query, counted))


def against_model(ensemble: TreeEnsemble, name: str = SHAPLEY, groups=None) -> Prepared:
    """Tables of the marginal game against a symmetric model's own leaf weights, from nothing: Step 1 of Algorithm 3.12."""
    method = METHODS[name]
    query = ask_background(ensemble, method, groups, n_rows=None, budget=BUDGET)
    given = {parameter.name: parameter.default for parameter in method.parameters}
    return prepare(ensemble, method, given, groups, background=(query, weigh_leaves(ensemble, method, groups, query)))


def _difference(phi) -> float:
    return float(phi[0] - phi[1])


def one_function(title: str, trees: Iterable[TreeEnsemble], cells: np.ndarray, times: tuple[int, ...], row: np.ndarray) -> Figure:
    """phi of the first feature less that of the second on one row, for two trees that compute the same; ``times`` rows of data in each cell."""
    lines = []
    for t, tree in enumerate(trees, 1):
        prepared = against(tree, [np.repeat(cells, times, axis=0)], sum(times))
        numbers = {
            "eject": _difference(eject(tree, row)),
            "ours: path-dependent": _difference(ours(SHAPLEY, tree, row[None])[0]),
            "ours: marginal": _difference(attributions(prepared, SHAPLEY, row[None], 2)[0, 0]),
        }
        lines.append(Line((t,), numbers))
    return Figure(title, ("tree",), tuple(lines), ".10g")


def _are(figure: Figure, name: str, expected: tuple[float, float], what: str) -> Claim:
    """The same numbers to 15 digits."""
    return Claim(f"{name}: {what}", bool(np.allclose(list(figure.column(name).values()), expected, rtol=0, atol=1e-15)))


def table_2(p: dict[str, float], c1: float, c2: float, c3: float) -> dict[str, tuple[float, float, float]]:
    """The last three rows of Table 2 by cell: v({1}) - v({2}) of the marginal game, and of the path-dependent one of either tree.

    That is phi_1 - phi_2; Equation 3.1, and with it the table's heading, has half of that by a slip.
    """
    low, high, p2, p3 = p["R1-"], p["R1+"], p["R2"], p["R3"]
    p1 = low + high
    top = c2 * p2 / (p2 + p3) + c3 * p3 / (p2 + p3)
    right = c2 * (low + p2) + c3 * (high + p3)
    return {
        "R1-": ((c2 - c1) * (p2 + p3), (c2 - c1) * (p2 + p3), (c2 - c1) * p2 / (low + p2)),
        "R1+": ((c3 - c1) * (p2 + p3), (c3 - c1) * (p2 + p3), (c3 - c1) * p3 / (high + p3)),
        "R2": ((c1 - c2) * p1 + (c2 - c3) * (high + p3), c1 * p1 + c2 * (p2 + p3) - top, (c1 * low + c2 * p2) / (low + p2) - right),
        "R3": ((c1 - c3) * p1 + (c3 - c2) * (low + p2), c1 * p1 + c3 * (p2 + p3) - top, (c1 * high + c3 * p3) / (high + p3) - right),
    }


def example_3_1() -> tuple[Figure, list[Claim]]:
    """2.03 where x1 <= 0.5, else 1 where x0 <= 0.5 and 2 where not; 33, 1, 27 and 39 of 100 rows in the four cells."""
    first = lay_out((1, (2.03, 34.0), (0, (1.0, 27.0), (2.0, 39.0))), 2)
    second = lay_out((0, (1, (2.03, 33.0), (1.0, 27.0)), (1, (2.03, 1.0), (2.0, 39.0))), 2)
    times, cells = (33, 1, 27, 39), np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    printed = table_2(dict(zip(("R1-", "R1+", "R2", "R3"), np.array(times) / 100, strict=True)), 2.03, 1.0, 2.0)
    rows = np.repeat(cells, times, axis=0)
    found = [attributions(against(tree, [rows], len(rows)), SHAPLEY, cells, 2)[0] for tree in (first, second)]
    found += [ours(SHAPLEY, tree, cells) for tree in (first, second)]
    differences = np.array([phi[:, 0] - phi[:, 1] for phi in found])
    games = ("marginal, tree 1", "marginal, tree 2", "path-dependent, tree 1", "path-dependent, tree 2")
    lines = []
    for k, (cell, (marginal, one, other)) in enumerate(printed.items()):
        numbers = {f"Table 2: {game}": number for game, number in zip(games, (marginal, marginal, one, other), strict=True)}
        lines.append(Line((cell,), numbers | {f"ours: {game}": float(differences[j, k]) for j, game in enumerate(games)}))
    same = all(abs(line.numbers[f"Table 2: {game}"] - line.numbers[f"ours: {game}"]) < 1e-15 for line in lines for game in games)
    one, other = differences[2:, 2]
    return Figure("Filom et al. 2024, Example 3.1: phi_1 - phi_2 in the four cells", ("cell",), tuple(lines), ".6g"), [
        Claim("every cell is that of Table 2, to 15 digits", same),
        Claim("the path-dependent values rank the features of R2 differently by the two trees, the marginal ones alike", bool(one < 0 < other)),
    ]


def example_c_2() -> tuple[Figure, list[Claim]]:
    """c1, c2, c3 and c1 in four cells of equal probability, by trees with the same splits in either order; the row is in the second."""
    c1, c2, c3 = 1.0, 2.0, 4.0
    first = (0, (1, (c1, 25.0), (c2, 25.0)), (1, (c3, 25.0), (c1, 25.0)))
    second = (1, (0, (c1, 25.0), (c3, 25.0)), (0, (c2, 25.0), (c1, 25.0)))
    cells = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    title = "Filom et al. 2024, Example C.2: phi_1 - phi_2 on the top-left square"
    figure = one_function(title, (lay_out(first, 2), lay_out(second, 2)), cells, (25, 25, 25, 25), cells[1])
    swapped = (c1 + c2) / 2 - (2 * c1 + c2 + c3) / 4
    return figure, [
        _are(figure, "eject", (swapped, -swapped), "the features change places (Eq. C.6)"),
        _are(figure, "ours: path-dependent", (0.0, 0.0), "they share alike, for the cells are equally probable"),
        _are(figure, "ours: marginal", (0.0, 0.0), "they share alike"),
    ]


def exact_values(model, rows: np.ndarray) -> np.ndarray:
    """CatBoost's own marginal values from leaf weights, base last; it prepares its tables in every call."""
    given = {"shap_calc_type": "Exact", "shap_mode": "UsePreCalc", "thread_count": 1}
    return np.asarray(model.get_feature_importance(catboost.Pool(rows), type="ShapValues", **given))


def _referenced(model, rows: np.ndarray, others: np.ndarray) -> None:
    """CatBoost's own against a background, row by row."""
    pools = (catboost.Pool(some, np.zeros(len(some))) for some in (rows, others))
    model.get_feature_importance(next(pools), type="ShapValues", reference_data=next(pools), thread_count=1)


def _kernel(prepared: Prepared, rows: np.ndarray) -> Callable[[], None]:
    """The kernel alone: what it takes to bin rows does not grow with trees, and few trees must stand for many."""
    slices, kernel = make_slices(prepared, rows, 1), METHODS[SHAPLEY].kernel
    return lambda: spread(lambda piece: kernel(piece, prepared.method), slices, None)


def _race(works: dict[str, tuple[int, Any]]) -> dict[str, float]:
    """Median seconds of each call, for the number of rows that stands before it."""
    contenders = [Contender(name, 1, n, call, clock(call)) for name, (n, call) in works.items()]
    return {speed.name: speed.seconds for speed in race(contenders, REPEATS, slow=SLOW)}


def _measure(depth: int, n_trees: int, deepest: int) -> tuple[Line, Line, Line]:
    """Agreement, preparation and time per row at one depth, beside CatBoost's own values down to the deepest."""
    labels, model = (depth, n_trees), train(depth, n_trees)
    ensemble, few, many = load_ensemble(model).ensemble, make_rows(FEW_ROWS, 1), make_rows(MANY_ROWS, 2)
    shapley, owen = against_model(ensemble), against_model(ensemble, OWEN, GROUPS)
    phi, of_group = (attributions(prepared, name, few, N_FEATURES)[0] for prepared, name in ((shapley, SHAPLEY), (owen, OWEN)))
    group = attributions(against_model(ensemble, SHAPLEY, GROUPS), SHAPLEY, few, N_GROUPS)[0]
    errors = {"ours: owen, from groups' values": relative_error(np.add.reduceat(of_group, np.arange(0, N_FEATURES, GROUP_SIZE), axis=1), group)}
    asked: dict[str, tuple[int, Any]] = {
        "ours": (1, lambda: against_model(ensemble)),
        "ours: owen": (1, lambda: against_model(ensemble, OWEN, GROUPS)),
    }
    if depth <= deepest:
        errors = {"ours: shapley, from CatBoost's Exact": relative_error(phi, exact_values(model, few)[:, :-1])} | errors
        asked |= {EXACTLY: (1, lambda: exact_values(model, few[:1]))}
    found = _race(asked)
    preparation = {name: 1e3 * seconds / n_trees for name, seconds in found.items()}
    preparation |= {f"{EXACTLY} / ours": found[EXACTLY] / found["ours"]} if EXACTLY in found else {}

    works = {f"CatBoost, {n:,} reference rows": (FEW_ROWS, lambda n=n: _referenced(model, few, make_rows(n, 3))) for n in REFERENCES}
    works |= {name: (MANY_ROWS, _kernel(prepared, many)) for name, prepared in (("ours", shapley), ("ours: owen", owen))}
    rates = {name: 1e6 * seconds / works[name][0] * N_TREES / n_trees for name, seconds in _race(works).items()}
    rates |= {"ours: kB per tree": table_bytes(shapley.method) / n_trees / 1e3}
    return Line(labels, errors), Line(labels, preparation), Line(labels, rates)


def depths(trees: dict[int, int], deepest: int) -> tuple[Figure, Figure, Figure]:
    """Figures 4 to 7: agreement with CatBoost's own, milliseconds per tree to prepare, microseconds per row.

    Deep models are the first of the 300 trees; their times are given per tree, and per row as if there were 300.
    """
    agreement, preparation, rates = zip(*(_measure(depth, n_trees, deepest) for depth, n_trees in trees.items()), strict=True)
    headings = ("depth", "trees")
    return (
        Figure("Filom et al. 2024, Section 4.1: error of values against the model's own leaf weights", headings, agreement),
        Figure("Filom et al. 2024, Figures 4, 6 and 7: milliseconds per tree to prepare", headings, preparation, ".3g", plot="milliseconds per tree"),
        Figure(
            f"Filom et al. 2024, Figures 4, 5 and 7: microseconds per row of {N_TREES} trees", headings, rates, ".3g", plot="microseconds per row"
        ),
    )


def depth_claims(agreement: Figure) -> list[Claim]:
    """Values are those of the definition as CatBoost computes it, and the Owen values of a group add up to the group's (Prop. B.13)."""
    return [stay_below(agreement, agreement.lines[0].numbers, EXACT)]


def table_7(shapes: dict[str, tuple]) -> Figure:
    """Models of the shapes of Table 7, trained on synthetic rows: the data sets are not ours to ship."""
    lines = []
    for name, (n_features, n_trees, depth, *printed) in shapes.items():
        ensemble = load_ensemble(train(depth, n_trees, n_features, n_rows=5_000)).ensemble
        prepared, rows = against_model(ensemble), make_rows(100, 1, n_features)
        found = _race({"prepare": (1, lambda e=ensemble: against_model(e)), "explain": (100, lambda p=prepared, r=rows: explain_all(p, r))})
        numbers = dict(zip(("paper: s", "paper: MB", "paper: s per 100 rows"), printed, strict=True))
        numbers |= {"ours: s": found["prepare"], "ours: MB": table_bytes(prepared.method) / 1e6, "ours: s per 100 rows": found["explain"]}
        lines.append(Line((name, n_features, n_trees, depth), numbers))
    title, headings = "Filom et al. 2024, Table 7: one thread, models of the same shapes", ("data", "features", "trees", "depth")
    return Figure(title, headings, tuple(lines), ".3g", "rows drawn at random")


def sample_errors(sizes: Iterable[int], population: int) -> Figure:
    """Theorem 3.15: how far the values against few rows are from those against many, of which these tables take as many as there are."""
    ensemble, rows = load_ensemble(train(6, 100)).ensemble, make_rows(200, 1)
    step = max(sizes)
    parts = (make_rows(step, 100 + i) for i in range(population // step))
    exact = attributions(against(ensemble, parts, population), SHAPLEY, rows, N_FEATURES)[0]
    lines = []
    for n in sizes:
        phi = attributions(against(ensemble, [make_rows(n, 2)], n), SHAPLEY, rows, N_FEATURES)[0]
        lines.append(Line((n,), {"ours: shapley": relative_error(phi, exact)}))
    title = f"Filom et al. 2024, Theorem 3.15: error of values against few rows, from {population:,}"
    return Figure(title, ("rows",), tuple(lines), plot="log-log: relative error")


def sample_claims(figure: Figure) -> list[Claim]:
    """With the root of the number of rows: a factor of ten or so for a hundred times as many."""
    column = figure.column("ours: shapley")
    holds = all(5 <= column[n] / column[100 * n] <= 20 for n in column if 100 * n in column)
    return [Claim("ours: shapley: with the root of the number of rows", holds)]


def draw_marginal(quick: bool, full: bool = False) -> Iterable[tuple[Figure, list[Claim]]]:
    """Every figure with what it must show, one after the other, of small models and few rows where quick; CatBoost's own of all where full."""
    yield example_3_1()
    yield example_c_2()
    agreement, preparation, rates = depths(QUICK_TREES if quick else TREES, DEEPEST_FULL if full else DEEPEST)
    yield agreement, depth_claims(agreement)
    yield preparation, []
    yield rates, []
    yield table_7({"Ailerons": TABLE_7["Ailerons"]} if quick else TABLE_7), []
    figure = sample_errors(QUICK_SAMPLES, QUICK_POPULATION) if quick else sample_errors(SAMPLES, POPULATION)
    yield figure, sample_claims(figure)
