"""Mean predictions with a ranking's first features resampled independently from data, exactly (Gajewski et al. 2024)."""

from collections.abc import Sequence

import numpy as np

from ..jit.decorator import frozen, jit
from ..jit.lanes import LANES, aligned, load, splat, store
from ..trees.forest import Forest
from .leaf_regions import LeafRegions
from .noise import NOISES, BinDistributions, Measured, perturb_rows
from .row_state import RowState, locate_row, make_row_state, take_row
from .tables import GapTables, prepare_gap

SLICE = 128  # rows at a time: each has a distribution for every unit with noise


def prepare_removal(forest: Forest, measured: Measured) -> GapTables:
    """Make the tables of a model with all features drawn from measured data, including missing values.

    Parameters
    ----------
    measured : Measured
        of at least one row, with the combinations of every unit

    Returns
    -------
    GapTables
        contiguous and read-only
    """
    return prepare_gap(forest, np.zeros(forest.ensemble.n_features), measured, drawn=np.ones(forest.n_players, bool))


@jit
def _fill_chances(regions: LeafRegions, row: RowState, drawn: np.ndarray, chance: np.ndarray) -> None:
    """Write the probability that the row is on each side, for LANES sets of units, ``drawn (units * LANES,)`` 1 for members."""
    for s in range(regions.sides.unit.size):
        among = load(drawn, np.int64(regions.sides.unit[s]) * LANES)
        stays = splat(1.0 if row.inside[s] else 0.0)
        store(chance, s * LANES, among * splat(row.probability[s]) + (splat(1.0) - among) * stays)


@jit
def _sum_leaves(regions: LeafRegions, k: int, row: RowState, chance: np.ndarray, sums: np.ndarray) -> None:
    """Return the mean of output k less its value on the row itself, for LANES sets."""
    leaves, total = regions.leaves, splat(0.0)
    for term in range(regions.outputs.start[k], regions.outputs.start[k + 1]):
        tree, column = regions.outputs.tree[term], regions.outputs.column[term]
        own = leaves.value[row.leaf[tree], column]
        for leaf in range(regions.trees.leaf[tree], regions.trees.leaf[tree + 1]):
            p = splat(leaves.value[leaf, column] - own)
            for j in range(leaves.start[leaf], leaves.start[leaf + 1]):
                p = p * load(chance, np.int64(leaves.side[j]) * LANES)
            total = total + p
    store(sums, 0, total)


@jit
def _add_shifts(
    bins: np.ndarray, distributions: BinDistributions, regions: LeafRegions, places: np.ndarray, sizes: np.ndarray, out: np.ndarray
) -> None:
    """Add shifts of the means to ``out (outputs, rankings * sizes, n)``; ``places (outputs, rankings, units, n)``."""
    row, n_units, n_sets = make_row_state(regions), places.shape[2], out.shape[1]
    drawn, chance, sums = aligned(n_units * LANES), aligned(regions.sides.unit.size * LANES), aligned(LANES)
    for i in range(out.shape[2]):
        locate_row(bins, i, take_row(distributions, i), regions, row)
        for k in range(out.shape[0]):
            for first in range(0, n_sets, LANES):
                size = min(LANES, n_sets - first)
                for lane in range(size):
                    r, z = (first + lane) // sizes.size, (first + lane) % sizes.size
                    for u in range(n_units):
                        drawn[u * LANES + lane] = 1.0 if places[k, r, u, i] <= sizes[z] else 0.0
                _fill_chances(regions, row, drawn, chance)
                _sum_leaves(regions, k, row, chance, sums)
                for lane in range(size):
                    out[k, first + lane, i] += sums[lane]


def shift_means(values: np.ndarray, bins: np.ndarray, tables: GapTables, places: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Compute the change of the mean margin when the first features of rankings are removed.

    Parameters
    ----------
    values : (used, n) float64, as ``bin_rows`` left them
    bins : (used, n) unsigned integers
    tables : GapTables
        as ``prepare_removal`` makes them
    places : (outputs, rankings, units, n) int64, of the units among all players of the ranking, from 1
    sizes : sequence of int
        numbers k of first players; 0 for none, all players where there are fewer

    Returns
    -------
    shifts : (outputs, rankings, sizes, n) float64, margin units
        E f(X) - f(x), a single sum over leaves
    """
    outputs, n_rankings, _, n = places.shape
    shifts = np.zeros((outputs, n_rankings * len(sizes), n))
    for first in range(0, n, SLICE):
        some = slice(first, first + SLICE)
        found = np.zeros(shifts[..., some].shape)
        distributions = perturb_rows(values[:, some], tables.noise, NOISES[0])
        _add_shifts(*frozen((bins[..., some], distributions, tables.regions, places[..., some], np.array(sizes, np.int64))), found)
        shifts[..., some] = found
    return shifts.reshape(outputs, n_rankings, len(sizes), n)
