"""CatBoost models that tests train, small and the same every time, and their files."""

import numpy as np

POLICIES = ("SymmetricTree", "Depthwise", "Lossguide")
SHAPE = {"iterations": 4, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False, "random_seed": 1}
WORDS = ("red", "green", "blue", "", "naïve 色", "a text that is longer than sixteen bytes", "3")


def sample(n=80, seed=0):
    """Four numeric columns, one decisive, with NaN, zeros of both signs and repeats."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4)).round(1)
    rows[::9, 0] = np.nan
    rows[::7, 1] = -0.0
    rows[1::7, 1] = 0.0
    target = np.where(np.isnan(rows[:, 0]), 1.5, rows[:, 0]) + (rows[:, 1] > 0) * rows[:, 2] + rng.normal(size=n) / 10
    return rows, target


def saved(model, tmp_path, form):
    path = tmp_path / f"model.{form}"
    model.save_model(str(path), format=form)
    return path.read_bytes()


def mixed(n=120):
    rng = np.random.default_rng(5)
    words, numbers, codes = rng.choice(WORDS[:5], n), rng.normal(size=n).round(1), rng.integers(-2, 3, n)
    return [[str(w), float(x), int(c), "constant"] for w, x, c in zip(words, numbers, codes, strict=True)], numbers + (words == "red") * 2.0 - (
        words == "naïve 色"
    ) * (codes == 1) * 3.0 + (codes == -2)
