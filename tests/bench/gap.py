"""The prediction gap against the size of a model, on one thread, and against Algorithm 1 of Gajewski et al. 2024 in plain Python."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from leafledger.kernels.prediction_gap.exact import Prefixes
from leafledger.kernels.prediction_gap.noise import NOISES
from leafledger.kernels.prediction_gap.tables import gap_rows, greedy_rows, place_units, prepare_gap
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from leafledger.pipeline.models import load_ensemble
from tests.bench.models import CASES, trained, xgboost_trainer
from tests.bench.timing import Contender, clock, race
from tests.perturbed import algorithm_1

FEATURES, SCALE, ROWS = 11, 0.3, 32
# Trees and depth; up to 10,000 leaves.
SIZES = ((1, 1), (1, 4), (10, 4), (40, 4), (160, 4), (640, 4), (160, 2), (160, 6), (40, 8))
BAR = (40, 4)  # trees and depth at which
MOST_SECONDS, TIMES = 0.010, 100  # a greedy ranking must take no longer, and the plain algorithm so many times as long
PLAIN_LEAVES = 1_000  # of models that the plain algorithm is asked about
SET, RANKING, GREEDY, PLAIN = "PG²", "PGI²", "greedy", "Algorithm 1"


@dataclass(frozen=True, slots=True)
class GapStep:
    """Seconds per row of one model."""

    n_trees: int
    depth: int
    n_leaves: int
    seconds: dict[str, float]


def _rows(n: int) -> np.ndarray:
    """Standard normal, none missing: the plain algorithm knows no missing values."""
    return np.random.default_rng(2).standard_normal((n, FEATURES))


def _measure(folder: Path, n_trees: int, depth: int, repeats: int) -> GapStep:
    case = replace(CASES[0], key=f"gap-{n_trees}x{depth}", train=xgboost_trainer(n_trees, depth), n_features=FEATURES)
    ensemble = load_ensemble(trained(case, folder)).ensemble
    bins, forest = make_forest(ensemble)
    tables = prepare_gap(forest, np.full(FEATURES, SCALE), None)
    n_leaves, noise = int((ensemble.feature < 0).sum()), NOISES[0]
    n = max(1, min(ROWS, 40_000 // n_leaves))
    rows, values = _rows(n), np.zeros((bins.column.size, padded(n)))
    values[:, :n] = rows.T[bins.column]
    binned = np.zeros(values.shape, bin_dtype(bins))
    bin_rows(values, bins, binned)
    values, binned = values[:, :n].copy(), binned[:, :n].copy()
    n_units = tables.units.size
    halves = np.broadcast_to(np.arange(n_units) % 2, (n, 1, n_units)).astype(np.int64)
    order = np.broadcast_to(np.arange(FEATURES), (n, 1, FEATURES))
    calls = {
        SET: partial(gap_rows, tables, noise, values, binned, Prefixes(halves, np.ones((n, 1, 1)))),
        RANKING: partial(gap_rows, tables, noise, values, binned, place_units(tables, order)),
        GREEDY: partial(greedy_rows, tables, noise, values, binned, n_units),
    }
    for call in calls.values():
        call()  # compiles
    contenders = [Contender(name, 1, n, call, clock(call)) for name, call in calls.items()]
    if n_leaves <= PLAIN_LEAVES:
        chosen = set(tables.units[1::2].tolist())
        plain = partial(algorithm_1, ensemble, rows[0], chosen, SCALE)
        contenders.append(Contender(PLAIN, 1, 1, plain, clock(plain)))
    return GapStep(n_trees, depth, n_leaves, {speed.name: speed.seconds / speed.n_rows for speed in race(contenders, repeats)})


def measure_gaps(folder: Path, repeats: int, sizes: tuple[tuple[int, int], ...] = SIZES) -> Iterator[GapStep]:
    """Time every model."""
    for n_trees, depth in sizes:
        yield _measure(folder, n_trees, depth, repeats)
