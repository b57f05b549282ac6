"""Models whose features are noised or drawn from data, and what their features become then, by definition."""

import math
from fractions import Fraction

import numpy as np

from leafledger.kernels.prediction_gap.exact import Prefixes
from leafledger.kernels.prediction_gap.noise import NOISES, measure
from leafledger.kernels.prediction_gap.tables import prepare_gap
from leafledger.kernels.trees.binning import bin_dtype, bin_rows, padded
from leafledger.kernels.trees.forest import make_forest
from tests import perturbed
from tests.trees import stumps

RTOL, ATOL = 1e-11, 1e-13  # sums of some hundred products; leaves are at most 2 in size, trees at most 3
NORMAL = NOISES[0]


def binned(ensemble, rows, groups=None):
    """Values and bins of rows as kernels read them, and the forest."""
    bins, forest = make_forest(ensemble, groups)
    values = np.zeros((bins.column.size, padded(len(rows))))
    values[:, : len(rows)] = rows.T[bins.column]
    found = np.zeros(values.shape, bin_dtype(bins))
    bin_rows(values, bins, found)
    return values[:, : len(rows)].copy(), found[:, : len(rows)].copy(), forest


def noisy(ensemble, rows, scale):
    """Tables, values and bins where numeric features get noise and nothing is drawn."""
    values, bins, forest = binned(ensemble, rows)
    return prepare_gap(forest, np.broadcast_to(scale, ensemble.n_features), None), values, bins


def drawn(ensemble, rows, data, groups=None, only=None):
    """The same where every unit, or those of the groups in ``only``, is drawn from data."""
    values, bins, forest = binned(ensemble, rows, groups)
    chosen = np.ones(forest.n_players, bool) if only is None else np.isin(forest.players, only)
    measured = measure(*binned(ensemble, data, groups)[:2], forest.player, chosen)
    return prepare_gap(forest, np.zeros(ensemble.n_features), measured, drawn=chosen), values, bins


def outcomes_of(data, groups, units):
    """What each unit becomes: its features' values in a row of data, every row alike."""
    found = {}
    for u in units:
        mine = [j for j, g in enumerate(groups) if g == u]
        found[int(u)] = [({j: row[j] for j in mine}, Fraction(1, len(data))) for row in data]
    return found


def noisy_outcomes(ensemble, feature, x, scale, noise):
    """Cells under noise; what the model reads as missing, and what is infinite, stays."""
    with np.errstate(over="ignore"):
        read = float(np.float32(x)) if ensemble.single_precision else x
    if not math.isfinite(read) or (ensemble.zero_missing[feature] and abs(read) <= float(np.float32(1e-35))):
        return [({feature: x}, Fraction(1))]
    return perturbed.cells(ensemble, feature, lambda t: float(noise.lower(np.array((t - read) / scale))))


def together(tables, n, outputs, groups):
    """Places and weights of a set of groups."""
    there = np.isin(tables.units, groups) & tables.regions.units.perturbed
    return Prefixes(np.broadcast_to(there, (n, outputs, there.size)).astype(np.int64), np.ones((n, outputs, 1)))


def forest_and_rows():
    """Twelve stumps on four features, and three rows."""
    rng = np.random.default_rng(0)
    said = tuple((int(j), float(t), 0.0, float(v)) for j, t, v in zip(rng.integers(0, 4, 12), rng.normal(size=12), rng.normal(size=12), strict=True))
    return stumps(said, 4), rng.normal(size=(3, 4))
