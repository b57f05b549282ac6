"""Models as people train them, explained as people ask for it: a data frame in, attributions out, on all cores that a library uses."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from leafledger import attribute, load_ensemble
from tests.bench.compare import CHECKED_ROWS
from tests.bench.timing import Contender, Speed, clock, race

SLOW = 2.0  # seconds: what takes longer is timed once
CATEGORIES = {"state": 60, "job": 1_000, "place": 100_000}
TREES, FOREST_TREES, FOREST_DEPTH, FOREST_FEATURES = 300, 100, 10, 20
BOOSTED_DEPTH = 5
SHAP = "shap"
ROWS, TRAINING_ROWS = 500_000, 200_000
QUICK_ROWS, QUICK_TRAINING_ROWS = 2_000, 2_000


@dataclass(frozen=True, slots=True)
class Usual:
    """A model, and who explained it."""

    key: str
    model: str
    peer: str
    ours: Speed
    theirs: Speed
    predict: Speed
    difference: float  # of the largest attribution

    @property
    def ratio(self) -> float:
        return self.ours.rate / self.theirs.rate


def _people(n: int, seed: int) -> Any:
    """Adult-like rows: categories of 60, 1,000 and 100,000 values, some of them far more frequent than others, and numbers."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    drawn = {name: (rng.zipf(1.3, n) % size).astype(str) for name, size in CATEGORIES.items()}
    return pd.DataFrame(drawn | {"age": rng.normal(size=n), "hours": rng.normal(size=n)})


def _race(key: str, model: str, peer: str, rows: int, calls: tuple[Callable[[], Any], ...], threads: tuple[int, int], repeats: int) -> Usual:
    """Ours, the peer's and predict's turns; the first two return attributions ``(rows, features)``."""
    ours, theirs, predict = calls
    mine = ours()
    found = theirs()
    difference = float(np.abs(mine[:CHECKED_ROWS] - found[:CHECKED_ROWS]).max() / np.abs(mine).max())
    named = (("Leafledger", ours, threads[0]), (peer, theirs, threads[1]), ("predict", predict, threads[0]))
    speeds = race([Contender(name, n, rows, call, clock(call)) for name, call, n in named], repeats, slow=SLOW)
    return Usual(key, model, peer, *speeds, difference)


def _categories(cores: int, repeats: int, quick: bool) -> Usual:
    import catboost

    n, training = (QUICK_ROWS, QUICK_TRAINING_ROWS) if quick else (ROWS, TRAINING_ROWS)
    learn, rows, names = _people(training, 0), _people(n, 1), list(CATEGORIES)
    target = (learn["age"] + learn["job"].str.len() + learn["place"].str.len() - learn["state"].str.len() * learn["hours"] > 4).astype(int)
    trees = TREES // 10 if quick else TREES
    given = {"iterations": trees, "random_seed": 1, "allow_writing_files": False, "verbose": False, "thread_count": cores}
    model = catboost.CatBoostClassifier(**given).fit(learn, target, cat_features=names)
    pool, loaded = catboost.Pool(rows, np.arange(n) % 2, cat_features=names), load_ensemble(model)
    calls = (
        lambda: attribute(loaded, rows, allow_unseen=True).phi[:, 0],
        lambda: model.get_feature_importance(pool, type="ShapValues", thread_count=cores)[:, :-1],
        lambda: model.predict(pool, prediction_type="RawFormulaVal", thread_count=cores),
    )
    title = f"CatBoostClassifier(cat_features=…), {trees} trees, categories of 60, 1,000 and 100,000 values"
    return _race("categories", title, "CatBoost's own", n, calls, (cores, cores), repeats)


def _estimators(cores: int) -> dict[str, tuple[str, Any]]:
    """scikit-learn's, each with its title."""
    from sklearn import ensemble, tree

    forest = {"n_estimators": FOREST_TREES, "max_depth": FOREST_DEPTH, "random_state": 0, "n_jobs": cores}
    boosted = {"max_depth": BOOSTED_DEPTH, "random_state": 0}
    many, few = f"{FOREST_TREES} trees, depth {FOREST_DEPTH}", f"{FOREST_TREES} trees, depth {BOOSTED_DEPTH}"
    return {
        "forest": (f"RandomForestRegressor, {many}", ensemble.RandomForestRegressor(**forest)),
        "forest of classes": (f"RandomForestClassifier, 3 classes, {many}", ensemble.RandomForestClassifier(**forest)),
        "extra trees": (f"ExtraTreesRegressor, {many}", ensemble.ExtraTreesRegressor(**forest)),
        "gradient boosting": (f"GradientBoostingRegressor, {few}", ensemble.GradientBoostingRegressor(n_estimators=FOREST_TREES, **boosted)),
        "histograms": (f"HistGradientBoostingRegressor, {few}", ensemble.HistGradientBoostingRegressor(max_iter=FOREST_TREES, **boosted)),
        "decision tree": (f"DecisionTreeRegressor, depth {FOREST_DEPTH}", tree.DecisionTreeRegressor(max_depth=FOREST_DEPTH, random_state=0)),
    }


def _beside_shap(cores: int, repeats: int, quick: bool) -> Iterator[Usual]:
    """Every estimator of scikit-learn beside shap, whose values are in the same units: of predictions, or of scores before their link."""
    try:
        import shap
    except ImportError:
        return  # a peer, and not there in the environment of development

    rng, n = np.random.default_rng(0), 200 if quick else 2_000
    learn = rng.normal(size=(n, FOREST_FEATURES))
    target = learn[:, 0] + learn[:, 1] * learn[:, 2] + rng.normal(size=n)
    rows = rng.normal(size=(n, FOREST_FEATURES))
    for key, (title, model) in _estimators(cores).items():
        model.fit(learn, np.digitize(target, [-1.0, 1.0]) if hasattr(model, "predict_proba") else target)
        loaded, explainer = load_ensemble(model), shap.TreeExplainer(model)
        calls = (
            lambda loaded=loaded: attribute(loaded, rows).phi.transpose(0, 2, 1).reshape(n, -1),
            lambda explainer=explainer: explainer.shap_values(rows, check_additivity=False).reshape(n, -1),
            partial(model.predict, rows),
        )
        with threadpool_limits(cores):
            yield _race(key, title, SHAP, n, calls, (cores, 1), repeats)


def measure_usual(cores: int, repeats: int, quick: bool) -> list[Usual]:
    """Every model whose peer is there."""
    return [_categories(cores, repeats, quick), *_beside_shap(cores, repeats, quick)]
