"""The models that are measured, trained once on synthetic rows and kept."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.papers import synthetic

TRAINING_ROWS, FEATURES = 50_000, 20
MISSING = 0.02
DEEP, DEEP_FEATURES = 40, 64
WIDE_FEATURES, WIDE_ROWS = 2_000, 8_192
CLASSES = 10


def feature_names(n_features: int) -> list[str]:
    return [f"x{j:02d}" for j in range(n_features)]


NAMES = feature_names(FEATURES)


def make_rows(n: int, seed: int, n_features: int = FEATURES) -> np.ndarray:
    """``(n, n_features) float32``, normal, some missing."""
    draw = np.random.default_rng(seed)
    rows = draw.standard_normal((n, n_features), np.float32)
    rows[draw.random(rows.shape, np.float32) < MISSING] = np.nan
    return rows


def make_target(rows: np.ndarray) -> np.ndarray:
    """Interactions of every feature with its neighbour, and noise: trees stay deep and use all features."""
    x = np.nan_to_num(rows)
    weight = 1 / np.sqrt(1 + np.arange(x.shape[1] - 1))
    return np.sin(2 * x[:, 0]) + (x[:, :-1] * x[:, 1:]) @ weight + 0.3 * np.random.default_rng(1).standard_normal(len(x))


@dataclass(frozen=True, slots=True)
class Case:
    """A model to measure, on at most ``most_rows`` rows; its file is named after its key.

    ``draw(n, seed, n_features)`` gives rows, and those that it is trained on get a ``target``.
    """

    key: str
    name: str
    library: str
    suffix: str
    train: Callable[[np.ndarray, np.ndarray, Path], object]
    n_features: int = FEATURES
    n_classes: int = 1
    training_rows: int = TRAINING_ROWS
    most_rows: int = 50_000
    draw: Callable[[int, int, int], np.ndarray] = make_rows
    target: Callable[[np.ndarray], np.ndarray] = make_target


def xgboost_trainer(n_trees: int, depth: int, **parameters: object):
    def train(rows, target, path):
        import xgboost

        data = xgboost.QuantileDMatrix(rows, target, feature_names=feature_names(rows.shape[1]))
        xgboost.train({"max_depth": depth, "eta": 0.1, "seed": 1, **parameters}, data, n_trees).save_model(path)

    return train


def _train_classes(rows, target, path):
    """Classes of equal size, by the target."""
    edges = np.quantile(target, np.arange(1, CLASSES) / CLASSES)
    xgboost_trainer(20, 6, objective="multi:softprob", num_class=CLASSES)(rows, np.searchsorted(edges, target), path)


def _train_deep(rows, target, path):
    """One tree that grows where the target is largest: depth ``DEEP``, up to 31 features on a path."""
    grown = {"grow_policy": "lossguide", "max_leaves": 8192, "min_child_weight": 1, "reg_lambda": 0, "eta": 1.0}
    xgboost_trainer(1, DEEP, **grown)(rows, np.exp(target / 4), path)


def _train_lightgbm(n_trees: int, n_leaves: int, **parameters: object):
    def train(rows, target, path):
        import lightgbm

        data = lightgbm.Dataset(rows, target, feature_name=feature_names(rows.shape[1]))
        given = {"objective": "regression", "num_leaves": n_leaves, "verbose": -1, "seed": 1}
        lightgbm.train(given | parameters, data, n_trees).save_model(path)

    return train


def _train_catboost(n_trees: int, depth: int, **parameters: object):
    def train(rows, target, path):
        import catboost

        given = {"iterations": n_trees, "depth": depth, "random_seed": 1, "allow_writing_files": False, "verbose": False}
        pool = catboost.Pool(rows, target, feature_names=feature_names(rows.shape[1]))
        catboost.CatBoostRegressor(**given, **parameters).fit(pool).save_model(str(path))

    return train


FOREST = {"num_parallel_tree": 100, "subsample": 0.8, "colsample_bynode": 0.5, "reg_lambda": 0, "eta": 1.0}
XGBOOST, LIGHTGBM, CATBOOST = "xgboost", "lightgbm", "catboost"
CASES = (
    Case("xgboost-100x6", "XGBoost, 100 trees, depth 6", XGBOOST, ".ubj", xgboost_trainer(100, 6)),
    Case("xgboost-500x8", "XGBoost, 500 trees, depth 8", XGBOOST, ".ubj", xgboost_trainer(500, 8)),
    Case("xgboost-100x3", "XGBoost, 100 trees, depth 3", XGBOOST, ".ubj", xgboost_trainer(100, 3)),
    Case("xgboost-1000x2", "XGBoost, 1,000 trees, depth 2", XGBOOST, ".ubj", xgboost_trainer(1_000, 2)),
    Case(
        "forest-100x16",
        "XGBoost, a random forest of 100 trees, depth 16",
        XGBOOST,
        ".ubj",
        xgboost_trainer(1, 16, **FOREST),
        training_rows=20_000,
    ),
    Case("lightgbm-100x1024", "LightGBM, 100 trees, 1,024 leaves", LIGHTGBM, ".txt", _train_lightgbm(100, 1024)),
    Case("lightgbm-1x1024", "LightGBM, 1 tree, 1,024 leaves", LIGHTGBM, ".txt", _train_lightgbm(1, 1024)),
    Case("catboost-500x6", "CatBoost, 500 trees, depth 6", CATBOOST, ".cbm", _train_catboost(500, 6)),
    Case("deep-1x40", f"XGBoost, 1 tree of depth {DEEP}, {DEEP_FEATURES} features", XGBOOST, ".ubj", _train_deep, n_features=DEEP_FEATURES),
    Case("classes-10", f"XGBoost, {CLASSES} classes, 20 trees each, depth 6", XGBOOST, ".ubj", _train_classes, n_classes=CLASSES, most_rows=16_384),
    Case(
        "features-2000",
        "XGBoost, 100 trees, depth 6, 2,000 features",
        XGBOOST,
        ".ubj",
        xgboost_trainer(100, 6),
        n_features=WIDE_FEATURES,
        training_rows=20_000,
        most_rows=WIDE_ROWS,
    ),
)


def _synthetic(depth: int) -> Case:
    """A model of Filom et al. 2024, Section 4.1."""
    n_trees = synthetic.N_TREES
    return Case(
        f"synthetic-{n_trees}x{depth}",
        f"CatBoost, {n_trees} trees, depth {depth}, on the synthetic rows of Filom et al. 2024",
        CATBOOST,
        ".cbm",
        _train_catboost(n_trees, depth, **synthetic.HYPERPARAMETERS),
        n_features=synthetic.N_FEATURES,
        training_rows=synthetic.TRAINING_ROWS,
        draw=synthetic.make_rows,
        target=synthetic.make_target,
    )


MARGINAL = (  # models of the marginal game
    CASES[0],
    Case("lightgbm-100x127", "LightGBM, 100 trees, 127 leaves, 50 features", LIGHTGBM, ".txt", _train_lightgbm(100, 127), n_features=50),
    Case("xgboost-500x6", "XGBoost, 500 trees, depth 6", XGBOOST, ".ubj", xgboost_trainer(500, 6)),
    Case("lightgbm-100x6", "LightGBM, 100 trees, depth 6", LIGHTGBM, ".txt", _train_lightgbm(100, 64, max_depth=6)),
    next(case for case in CASES if case.library == CATBOOST),
    *map(_synthetic, range(4, 9)),
)


def trained(case: Case, folder: Path) -> Path:
    """The case's model file, trained where it is not there yet."""
    path = folder / f"{case.key}{case.suffix}"
    if not path.exists():
        rows = case.draw(case.training_rows, 0, case.n_features)
        growing = path.with_name(f".{path.name}")
        case.train(rows, case.target(rows), growing)
        growing.replace(path)
    return path
