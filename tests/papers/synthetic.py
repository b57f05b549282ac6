"""The synthetic model of Filom et al. 2024, Section 4.1: symmetric trees of CatBoost on normal features and all their products."""

import numpy as np

N_FEATURES, N_TREES = 40, 300
# The paper has 100,000 rows and CatBoost's 254 borders, and goes on to depth 12; training alone would take most of an hour. Trees are as deep.
TRAINING_ROWS = 20_000
HYPERPARAMETERS = {"learning_rate": 0.1, "subsample": 0.8, "border_count": 64}


def make_rows(n: int, seed: int, n_features: int = N_FEATURES) -> np.ndarray:
    """``(n, n_features) float32``."""
    return np.random.default_rng(seed).standard_normal((n, n_features), np.float32)


def make_target(rows: np.ndarray) -> np.ndarray:
    """Every feature and every product of two, with coefficients drawn once, and noise (Eq. 4.1)."""
    draw, n = np.random.default_rng(41), rows.shape[1]
    a, b = draw.uniform(1, 5, n), np.triu(draw.uniform(-0.5, 0.5, (n, n)), 1)
    return rows @ a + ((rows @ b) * rows).sum(axis=1) + draw.normal(0, 0.05, len(rows))


def train(depth: int, n_trees: int = N_TREES, n_features: int = N_FEATURES, n_rows: int = TRAINING_ROWS):
    """A CatBoost model with the paper's hyperparameters."""
    import catboost

    rows = make_rows(n_rows, 0, n_features)
    given = {"iterations": n_trees, "depth": depth, "random_seed": 1, "verbose": False, "allow_writing_files": False}
    return catboost.CatBoostRegressor(**given, **HYPERPARAMETERS).fit(rows, make_target(rows))
