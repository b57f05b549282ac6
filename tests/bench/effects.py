"""Partial dependence of every feature at every threshold, beside scikit-learn's ``brute``, which predicts the background once for each value, and
beside woodelf's, which is as exact, on one thread, and leaves out missing values."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import sklearn.inspection
from sklearn.ensemble import HistGradientBoostingRegressor

from leafledger.pipeline.effects.partial_dependence import partial_dependence
from leafledger.pipeline.models import load_ensemble
from tests.bench.machine import find_version
from tests.bench.models import NAMES, make_rows, make_target
from tests.bench.peers import WOODELF_PACKAGE
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
    woodelf: float | None  # None where it is not installed
    woodelf_difference: float | None  # largest, at all thresholds of all features

    @property
    def ratio(self) -> float:
        """How many times as long scikit-learn takes."""
        return self.theirs / self.ours


def _time_woodelf(model: Any, rows: np.ndarray, found: Any) -> tuple[float, float] | tuple[None, None]:
    """Seconds that woodelf takes for all thresholds of all features, and how far it is from ours at most."""
    if find_version(WOODELF_PACKAGE) is None:
        return None, None
    from woodelf.pdp import woodelf_pdp

    frame = pd.DataFrame(rows, columns=NAMES)
    started = time.perf_counter()
    curves, _ = woodelf_pdp(model, frame, full_pdp=True, centered=False, verbose=False)
    taken = time.perf_counter() - started
    difference = 0.0
    for axis, curve in zip(found.axes, found.curves, strict=True):
        n_thresholds = axis.n_states - 2  # what is above the last one is another state, as is a missing value
        difference = max(difference, float(np.abs(np.asarray(curves[axis.name])[:n_thresholds] - curve.value[0, :n_thresholds]).max(initial=0.0)))
    return taken, difference


def measure_effects(repeats: int, quick: bool) -> EffectSpeed:
    """Time all of them on one model."""
    training = pd.DataFrame(make_rows(TRAINING, 0).astype(np.float64), columns=NAMES)
    model = HistGradientBoostingRegressor(max_iter=TREES, max_depth=DEPTH, max_leaf_nodes=LEAVES, early_stopping=False)
    model.fit(training, make_target(training.to_numpy()))
    rows, loaded = make_rows(QUICK_BACKGROUND if quick else BACKGROUND, 1).astype(np.float64), load_ensemble(model)
    found = partial_dependence(loaded, rows)
    ours = float(np.median([clock(lambda: partial_dependence(loaded, rows)) for _ in range(repeats)]))
    frame, first = pd.DataFrame(rows, columns=NAMES), found.axes[0].name
    started = time.perf_counter()
    slow = sklearn.inspection.partial_dependence(model, frame, [first], method="brute", grid_resolution=SAMPLED)
    taken = time.perf_counter() - started
    n_values = sum(axis.n_states for axis in found.axes)
    difference = float(np.abs(found.at(first, slow["grid_values"][0])[:, 0] - slow["average"][0]).max())
    name = f"HistGradientBoostingRegressor, {TREES} trees of depth {DEPTH}"
    return EffectSpeed(name, len(rows), n_values, ours, taken / SAMPLED * n_values, difference, *_time_woodelf(model, rows, found))
