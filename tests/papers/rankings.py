"""Li, Yu and Low 2026, Figures 3 and 4 as numbers: areas of insertion and deletion curves of trees of scikit-learn on the data that it ships, since
those of the paper are not ours to ship. The areas of the figures' curves are what the paper's two metrics are (Eq. 5)."""

from collections.abc import Iterable

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from leafledger.kernels import game_values
from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.path_dependent.games import play
from leafledger.kernels.prepare import prepare
from leafledger.kernels.ranking.curves import add_areas, prepare_curves
from leafledger.kernels.ranking.rates import choose_rate
from leafledger.kernels.slices.buffers import Buffers, Prepared, make_buffers
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.kernels.trees.forest import make_forest
from tests.papers.figures import Claim, Figure, Line
from tests.trees import one_tree

OTHER_DATA = "of scikit-learn"
SEED, N_INSTANCES = 2025, 200  # as in Section 6; where there are fewer test rows, all of them
DATA = {"breast_cancer": 15, "digits": 15, "wine": 10}  # and the depth that trees may have
BETAS = ((16, 1), (8, 1), (4, 1), (2, 1), (1, 1), (1, 2), (1, 4), (1, 8), (1, 16))
RANKER, ADAM = "ours: T = 100", "ours: ADAM, T = 10"
CANDIDATES = {
    **{f"{a}:{b}": ("beta", {"alpha": float(a), "beta": float(b)}) for a, b in BETAS},
    "Banzhaf": ("banzhaf", {"p": 0.5}),
}
RANKERS = {
    RANKER: ("ranker", {"steps": 100, "rate": 5.0, "optimizer": "ascent"}),
    ADAM: ("ranker", {"steps": 10, "rate": 0.1, "optimizer": "adam"}),
}
PREDICTED, OTHER = "probability of the predicted class", "probability of another class, drawn"


def classifier(name: str, depth: int) -> tuple[TreeEnsemble, np.ndarray]:
    """A tree with a probability for every class in its leaves, and the rows that are explained; as Section 6 and Appendix H describe it."""
    rows, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    training, test, labels, _ = train_test_split(rows, target, test_size=0.2, random_state=SEED)
    tree = DecisionTreeClassifier(max_depth=depth, random_state=SEED).fit(training, labels).tree_
    inner = tree.children_left >= 0
    feature, threshold = np.where(inner, tree.feature, -1), np.where(inner, tree.threshold, 0.0)
    ensemble = one_tree(
        feature, threshold, tree.children_left, tree.children_right, np.zeros(inner.size), tree.weighted_n_node_samples, rows.shape[1]
    )
    value = np.where(inner[:, None], 0.0, tree.value[:, 0])
    chosen = np.random.default_rng(SEED).permutation(len(test))[:N_INSTANCES]
    return ensemble._replace(value=value, base=np.zeros(value.shape[1])), test[chosen].astype(np.float32).astype(float)


def areas(ensemble: TreeEnsemble, rows: np.ndarray, methods: dict[str, tuple[str, dict]]) -> tuple[np.ndarray, np.ndarray]:
    """Insertion's and deletion's of every method, ``(methods, n, outputs)``, and margins ``(n, outputs)``."""
    forest, scores, buffers = make_forest(ensemble)[1], [], None
    for name, parameters in methods.values():
        prepared = prepare(ensemble, METHODS[name], parameters)
        buffers = make_buffers(prepared, len(rows))
        buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]
        attribute_batch(METHODS[name], prepared, buffers)
        scores.append(buffers.phi[:, :, : len(rows)])
    found = np.zeros((2, ensemble.base.size, len(methods), len(rows)))
    add_areas(buffers.bins, prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all), scores, *found)
    return found.transpose(0, 2, 3, 1), buffers.margin[:, : len(rows)].T


def draw_areas(data: dict[str, int]) -> dict[str, Figure]:
    """Means over rows of both areas, for the class that is predicted (Figure 3) and for another (Figure 4)."""
    methods, lines = CANDIDATES | RANKERS, {PREDICTED: [], OTHER: []}
    for name, depth in data.items():
        ensemble, rows = classifier(name, depth)
        found, margin = areas(ensemble, rows, methods)
        each, predicted = np.arange(len(rows)), margin.argmax(axis=1)
        other = (predicted + np.random.default_rng(SEED).integers(1, margin.shape[1], len(rows))) % margin.shape[1]
        for what, chosen in ((PREDICTED, predicted), (OTHER, other)):
            for area, kind in zip(found, ("insertion", "deletion"), strict=True):
                numbers = dict(zip(methods, area[:, each, chosen].mean(axis=1), strict=True))
                lines[what].append(Line((name, len(rows), rows.shape[1], kind), numbers))
    titles = {PREDICTED: "Figure 3", OTHER: "Figure 4"}
    headings = ("data", "rows", "features", "area")
    return {
        what: Figure(f"Li, Yu and Low 2026, {titles[what]}: {what}; a:b is Beta(a, b)", headings, tuple(some), ".4f", OTHER_DATA)
        for what, some in lines.items()
    }


def _column(line: Line, names: Iterable[str]) -> np.ndarray:
    return np.array([line.numbers[name] for name in names])


def _areas_of(figure: Figure, name: str) -> tuple[Line, Line]:
    """The lines of insertion and of deletion."""
    insertion, deletion = (line for line in figure.lines if line.labels[0] == name)
    return insertion, deletion


def differ(figure: Figure, name: str) -> bool:
    """The best of the candidates at insertion is not the best at deletion."""
    insertion, deletion = (_column(line, CANDIDATES) for line in _areas_of(figure, name))
    return bool(insertion.argmax() != deletion.argmin())


def ranker_claims(figure: Figure, data: Iterable[str]) -> list[Claim]:
    """What Section 6 observes of the ranker, on the data for which it holds.

    On wine it does not: its tree asks for few features, and some Beta values insert better than the ranker (Figure 3) or as well (Figure 4).
    """
    claims = []
    for name in data:
        lines = _areas_of(figure, name)
        insertion, deletion = (_column(line, CANDIDATES) for line in lines)
        inserted, deleted = (line.numbers[RANKER] for line in lines)
        found = {
            "insertion of the ranker is above that of all nine Beta values and Banzhaf": inserted > insertion.max(),
            "its deletion is competitive, nearer to the best of theirs than to the worst": deleted < (deletion.min() + deletion.max()) / 2,
            "its insertion - deletion is above that of them all": inserted - deleted > (insertion - deletion).max(),
        }
        claims += [Claim(f"{name}: {text}", bool(holds)) for text, holds in found.items()]
    return claims


def area_claims(figure: Figure, data: Iterable[str]) -> list[Claim]:
    """All that Section 6 observes."""
    claims = []
    for name in data:
        claims += [*ranker_claims(figure, [name]), Claim(f"{name}: the best of them at insertion is not the best at deletion", differ(figure, name))]
    return claims


def chosen_rates(data: Iterable[str]) -> Figure:
    """Appendix H: the largest rate of a set with which the objective converges, as ``rate=auto`` finds it."""
    lines = []
    for name in data:
        ensemble, rows = classifier(name, DATA[name])
        numbers = {"printed: ascent, T = 100": 5.0}
        for what, (method, given) in {"ours: ascent, T = 100": RANKERS[RANKER], "ours: ADAM, T = 10": RANKERS[ADAM]}.items():
            prepared = prepare(ensemble, METHODS[method], given)
            buffers = make_buffers(prepared, len(rows))
            buffers.values[:, : len(rows)] = rows.T[prepared.bins.column]

            def follow(some: Prepared, buffers: Buffers = buffers, n: int = len(rows)) -> np.ndarray:
                attribute_batch(METHODS["ranker"], some, buffers)
                return buffers.path[:, :, :n]

            numbers[what] = choose_rate(prepared, follow) or np.nan
        lines.append(Line((name, len(rows)), numbers))
    return Figure("Li, Yu and Low 2026, Appendix H: the rate that the objective chooses", ("data", "rows"), tuple(lines), "g", OTHER_DATA)


def rate_claims(figure: Figure, data: Iterable[str]) -> list[Claim]:
    """Trees of other data choose a neighbour of what is printed; on wine, where steps of any length converge, the largest of all."""
    found = {line.labels[0]: line.numbers["ours: ascent, T = 100"] for line in figure.lines}
    return [Claim(f"{name}: {found[name]:g} is within a factor of two of the rate printed", 2.5 <= found[name] <= 10) for name in data]


def convergence(name: str, rates: Iterable[tuple[str, float]], steps: Iterable[int]) -> Figure:
    """Figures 14 and 19: insertion - deletion for the predicted class against T, by gradient ascent and by ADAM."""
    ensemble, rows = classifier(name, DATA[name])
    lines = []
    for n_steps in steps:
        asked = {f"ours: {optimizer}, {rate:g}": ("ranker", {"steps": n_steps, "rate": rate, "optimizer": optimizer}) for optimizer, rate in rates}
        (insertion, deletion), margin = areas(ensemble, rows, asked)
        each, chosen = np.arange(len(rows)), margin.argmax(axis=1)
        lines.append(Line((n_steps,), dict(zip(asked, (insertion - deletion)[:, each, chosen].mean(axis=1), strict=True))))
    return Figure(f"Li, Yu and Low 2026, Figures 14 and 19: insertion - deletion on {name}", ("T",), tuple(lines), ".4f", OTHER_DATA)


def convergence_claims(figure: Figure) -> list[Claim]:
    """Results improve with T; those of ADAM are near their end at T = 10, before those of gradient ascent are."""
    claims = []
    for name in figure.lines[0].numbers:
        column = figure.column(name)
        claims.append(Claim(f"{name}: better at T = {max(column)} than at T = 1, which is Banzhaf", column[max(column)] > column[1]))
    return claims


FAITHFUL = ("breast_cancer", "digits")
RATES = (("ascent", 1.0), ("ascent", 5.0), ("adam", 0.05), ("adam", 0.1), ("adam", 0.5))


def draw_rankings(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Every figure with what it must show, one after the other, on the smaller data where quick."""
    faithful = FAITHFUL[:1] if quick else FAITHFUL
    for figure in draw_areas({name: DATA[name] for name in faithful} if quick else DATA).values():
        yield figure, area_claims(figure, faithful)
    figure = chosen_rates(faithful if quick else DATA)
    yield figure, rate_claims(figure, faithful)
    figure = convergence(faithful[-1], RATES[1::2] if quick else RATES, (1, 10) if quick else (1, 2, 5, 10, 20, 50, 100))
    yield figure, convergence_claims(figure)
