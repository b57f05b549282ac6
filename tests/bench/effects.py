"""Partial dependence of every feature at every threshold, beside scikit-learn's ``brute``, which predicts the background once for each value."""

import time
from dataclasses import dataclass

import numpy as np
import sklearn.inspection
from sklearn.ensemble import HistGradientBoostingRegressor

from leafledger.pipeline.effects.partial_dependence import partial_dependence
from leafledger.pipeline.models import load_ensemble
from tests.bench.models import make_rows, make_target
from tests.bench.timing import clock

TREES, DEPTH, LEAVES = 100, 6, 64
TRAINING, BACKGROUND, QUICK_BACKGROUND = 50_000, 100_000, 10_000
SAMPLED = 3  # values that scikit-learn is asked for, of one feature: the others take as long each
TIMES = 1_000  # as long, at least
BRUTE = "scikit-learn's brute"


@dataclass(frozen=True, slots=True)
class EffectSpeed:
    """Seconds for all values of all features of one background, on all cores."""

    model: str
    n_rows: int
    n_values: int
    ours: float
    theirs: float  # extrapolated from a few values of one feature
    difference: float  # largest, at those

    @property
    def ratio(self) -> float:
        """How many times as long scikit-learn takes."""
        return self.theirs / self.ours


def measure_effects(repeats: int, quick: bool) -> EffectSpeed:
    """Time both on one model."""
    training = make_rows(TRAINING, 0).astype(np.float64)
    model = HistGradientBoostingRegressor(max_iter=TREES, max_depth=DEPTH, max_leaf_nodes=LEAVES, early_stopping=False)
    model.fit(training, make_target(training))
    rows, loaded = make_rows(QUICK_BACKGROUND if quick else BACKGROUND, 1).astype(np.float64), load_ensemble(model)
    found = partial_dependence(loaded, rows)
    ours = float(np.median([clock(lambda: partial_dependence(loaded, rows)) for _ in range(repeats)]))
    started = time.perf_counter()
    slow = sklearn.inspection.partial_dependence(model, rows, [0], method="brute", grid_resolution=SAMPLED)
    taken = time.perf_counter() - started
    n_values = sum(axis.n_states for axis in found.axes)
    difference = float(np.abs(found.at(found.axes[0].name, slow["grid_values"][0])[:, 0] - slow["average"][0]).max())
    name = f"HistGradientBoostingRegressor, {TREES} trees of depth {DEPTH}"
    return EffectSpeed(name, len(rows), n_values, ours, taken / SAMPLED * n_values, difference)
