"""Karczmarz et al. 2022, Tables 1 and 2 and Figure 23: how far the rankings by Shapley's and Banzhaf's values are apart, and what the algorithms cost
as trees grow. The Boston data are in the package mlxtend; the other data sets are in none, and diabetes stands for deep trees of other data."""

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import xgboost
from mlxtend.data import boston_housing_data
from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeRegressor

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.kernels.slices.buffers import make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from tests.bench.ours import attributions, fill
from tests.papers.figures import Claim, Figure, Line
from tests.papers.references import ALGORITHM_2, ALGORITHM_3, ALGORITHM_3_BANZHAF, Reference
from tests.papers.trees import depth_of, synthetic_dense, wide
from tests.trees import one_tree

SEED = 0
SHAPLEY, BANZHAF = "shapley", "banzhaf"
FIRST = (3, 10)  # features of which the order is compared
# What XGBoost took for granted when the paper was written: where it starts from, and that small data are searched exactly.
OF_THAT_TIME = {"base_score": 0.5, "tree_method": "exact"}
WAYS = "ours", "ours, the other way"
SEEDS = 200  # of the tree of depth 10, which the paper grew once, with one that it does not say
PRINTED = {"Boston, 100 trees": (0.02, 1.05), "Boston, one tree of depth 10": (0.08, 1.73)}
DEEP = (10, None)  # of trees of diabetes; None is as deep as they grow
REFERENCES = (ALGORITHM_2, ALGORITHM_3, ALGORITHM_3_BANZHAF)


def swaps(one: Sequence[int], other: Sequence[int]) -> int:
    """The modified Cayley distance (Table 1): transpositions that sort one order of features by another, at whose end stands what it lacks."""
    place = [*other, *(feature for feature in one if feature not in other)].index
    now, count = [*one], 0
    for k, feature in enumerate(sorted(one, key=place)):
        if now[k] != feature:
            at = now.index(feature)
            now[at], now[k] = now[k], feature
            count += 1
    return count


def mean_swaps(one: np.ndarray, other: np.ndarray, k: int) -> float:
    """Of the first k features, over rows, from two orders ``(n, features)``."""
    return float(np.mean([swaps(a, b) for a, b in zip(one[:, :k].tolist(), other[:, :k].tolist(), strict=True)]))


def one_regression_tree(rows: np.ndarray, labels: np.ndarray, depth: int | None, seed: int = SEED) -> TreeEnsemble:
    """A regression tree of scikit-learn. Its seed decides between splits that gain the same."""
    tree = DecisionTreeRegressor(max_depth=depth, random_state=seed).fit(rows, labels).tree_
    inner = tree.children_left >= 0
    return one_tree(
        np.where(inner, tree.feature, -1),
        np.where(inner, tree.threshold, 0.0),
        tree.children_left,
        tree.children_right,
        np.where(inner, 0.0, tree.value[:, 0, 0]),
        tree.weighted_n_node_samples,
        rows.shape[1],
    )


def models() -> Iterable[tuple[str, TreeEnsemble, np.ndarray, str]]:
    """Name, model, rows that it is asked about, and whose data these are."""
    rows, labels = boston_housing_data()
    rows = rows.astype(np.float32)
    given = {"max_depth": 6, "eta": 0.01, "nthread": 1, "seed": SEED, **OF_THAT_TIME}
    first, second = PRINTED
    yield first, load_ensemble(xgboost.train(given, xgboost.DMatrix(rows, labels), 100)).ensemble, rows, "the paper's"
    yield second, one_regression_tree(rows, labels, 10), rows, "the paper's"
    rows, labels = load_diabetes(return_X_y=True)
    rows = rows.astype(np.float32)
    for depth in DEEP:
        tree = one_regression_tree(rows, labels, depth)
        yield f"diabetes, one tree of depth {depth_of(tree)}", tree, rows, "of scikit-learn"


def values(ensemble: TreeEnsemble, name: str, rows: np.ndarray) -> np.ndarray:
    """``(n, features)``."""
    method = METHODS[name]
    prepared = prepare(ensemble, method, {parameter.name: parameter.default for parameter in method.parameters})
    return attributions(prepared, name, rows.astype(float), rows.shape[1])[0]


def order(ensemble: TreeEnsemble, name: str, rows: np.ndarray) -> np.ndarray:
    """Features of every row, the largest value by its size first."""
    return np.argsort(-np.abs(values(ensemble, name, rows)), axis=1, kind="stable")


def _count(ensemble: TreeEnsemble, rows: np.ndarray) -> dict[str, float]:
    """Swaps both ways: the paper does not say which order is sorted by which."""
    by_shapley, by_banzhaf = (order(ensemble, value, rows) for value in (SHAPLEY, BANZHAF))
    ways = zip(WAYS, ((by_shapley, by_banzhaf), (by_banzhaf, by_shapley)), strict=True)
    return {f"{way}: n = {k}": mean_swaps(*orders, k) for way, orders in ways for k in FIRST}


def _grow(n_seeds: int) -> list[dict[str, float]]:
    """The counts of trees of depth 10 of Boston that differ in their seed alone."""
    rows, labels = boston_housing_data()
    rows = rows.astype(np.float32)
    return [_count(one_regression_tree(rows, labels, 10, seed), rows) for seed in range(n_seeds)]


def table_1(quick: bool) -> tuple[Figure, list[Claim]]:
    """Mean swaps between the first features by size of Shapley and of Banzhaf values, over all rows."""
    lines, (first, second) = [], PRINTED
    for name, ensemble, rows, data in models():
        printed = {f"printed, n = {k}": number for k, number in zip(FIRST, PRINTED.get(name, ()), strict=False)}
        lines.append(Line((name, data, len(rows)), printed | _count(ensemble, rows)))
    forest, tree, *_, deep = (line.numbers for line in lines)
    grown = _grow(3 if quick else SEEDS)
    spread = {key: np.array([counts[key] for counts in grown]) for key in grown[0]}
    for name, which in (("least", np.min), ("mean", np.mean), ("most", np.max)):
        lines.append(Line((f"{second}, {name} of {len(grown)}", "the paper's", 506), {key: float(which(each)) for key, each in spread.items()}))
    digits = {key: round(number, 2) for key, number in forest.items()}
    ranked = [100 * np.mean(spread[f"ours: n = {k}"] <= printed) for k, printed in zip(FIRST, PRINTED[second], strict=True)]
    claims = [
        Claim(
            f"{first}: {PRINTED[first][0]} and {PRINTED[first][1]} swaps of 3 and of 10 features, as printed, whichever order is sorted by the other",
            all(digits[f"{way}: n = {k}"] == printed for way in WAYS for k, printed in zip(FIRST, PRINTED[first], strict=True)),
        ),
        Claim(
            f"{second}: the {PRINTED[second][0]} and {PRINTED[second][1]} printed are within the spread of {len(grown)} trees that differ in "
            f"their seed alone; {ranked[0]:.2g} and {ranked[1]:.2g} of 100 have fewer swaps",
            quick or all(0 < share < 100 for share in ranked),
        ),
        Claim("fewer swaps by many trees than by one of depth 10, as printed", all(forest[f"ours: n = {k}"] < tree[f"ours: n = {k}"] for k in FIRST)),
        Claim("most by the deepest tree", all(deep[f"ours: n = {k}"] > tree[f"ours: n = {k}"] for k in FIRST)),
    ]
    title = "Karczmarz et al. 2022, Table 1: swaps between the first n features by Shapley and by Banzhaf values"
    return Figure(title, ("model", "data", "rows"), tuple(lines), ".2f"), claims


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Of the fastest of some calls."""
    found = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        found.append(time.perf_counter() - started)
    return min(found)


def kernel_call(tree: TreeEnsemble, name: str, rows: np.ndarray) -> Callable[[], None]:
    """Everything that rows need, once a model is prepared."""
    method = METHODS[name]
    prepared = prepare(tree, method, {parameter.name: parameter.default for parameter in method.parameters})
    buffers = make_buffers(prepared, len(rows))
    fill(prepared, buffers, rows)
    return lambda: attribute_batch(method, prepared, buffers)


def running_times(title: str, make_tree: Callable[[int], TreeEnsemble], depths: Iterable[int], other_data: str = "") -> Figure:
    """Milliseconds of one row by the published algorithms in plain Python, microseconds of one of many by the kernels, which are compiled."""
    lines = []
    for depth in depths:
        tree = make_tree(depth)
        row = np.ones((1, tree.n_features))

        def clock(reference: Reference, tree: TreeEnsemble = tree, row: np.ndarray = row, depth: int = depth) -> float:
            return 1e3 * seconds(lambda: reference.explain(tree, row, depth), 2)

        with np.errstate(all="ignore"):
            numbers = {f"{reference.name}, ms": clock(reference) for reference in REFERENCES}
        many = np.repeat(row, 64, axis=0)
        for name in (SHAPLEY, BANZHAF):
            call = kernel_call(tree, name, many)
            call()  # compiles
            numbers[f"ours: {name}, µs"] = 1e6 * seconds(call, 3) / len(many)
        lines.append(Line((depth, int((tree.feature < 0).sum())), numbers))
    return Figure(title, ("D", "leaves"), tuple(lines), ".3g", other_data=other_data, plot="log-log: ms in plain Python, µs compiled")


def time_claims(figure: Figure) -> list[Claim]:
    """Deleting every feature at every leaf costs more the deeper a tree, beside deleting once for an edge; Banzhaf's scalar costs least."""
    slow, fast, scalar = (list(figure.column(f"{reference.name}, ms").values()) for reference in REFERENCES)
    grows = slow[-1] / fast[-1] > 1.5 * slow[0] / fast[0]
    return [
        Claim(
            f"Algorithm 2 takes {slow[0] / fast[0]:.2g} times as long as Algorithm 3 on the smallest tree and {slow[-1] / fast[-1]:.2g} times on the "
            "largest: expected to grow by half",
            grows,
        ),
        Claim("Banzhaf values take the least time on the largest tree, as in every line of Table 2", scalar[-1] < min(fast[-1], slow[-1])),
    ]


def draw_banzhaf(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Rankings, then times on full trees (Figure 23) and on chains, whose depth can grow."""
    yield table_1(quick)
    figure = running_times(
        "Karczmarz et al. 2022, Figure 23: time of a row on SYNTHETIC.DENSE", synthetic_dense, (2, 6) if quick else (2, 4, 6, 8, 10)
    )
    yield figure, [] if quick else time_claims(figure)
    chains = "Karczmarz et al. 2022, Table 2: time of a row on chains with a new feature at every level"
    figure = running_times(chains, lambda depth: wide(depth, seed=1), (5, 20) if quick else (5, 10, 20, 40, 80), "trees drawn at random")
    yield figure, [] if quick else time_claims(figure)
