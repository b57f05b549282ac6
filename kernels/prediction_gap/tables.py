"""Prediction gaps of rows: tables of a model and its perturbation, exact values, and their cost."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..arrays.ordering import ranks_by_score, ranks_from_order
from ..errors import InvalidParameters
from ..jit.decorator import frozen
from ..trees.binning import bin_ensemble
from ..trees.forest import Forest
from ..trees.margin import MarginTables, prepare_margin
from .exact import Prefixes, measure_rankings
from .greedy import rank_greedily
from .leaf_regions import Atoms, LeafRegions, count_visits, make_regions, numeric_alone
from .noise import Measured, Noises, NoiseTables, atoms_of, deviations, perturb_rows, prepare_noise

BUDGET = 1e8  # pairs of leaves that may be visited per row, a second or less


class AtomTables(NamedTuple):
    """Atoms that resampled units are drawn from."""

    start: np.ndarray  # (units + 1,) int64, unit u's atoms are start[u]..start[u + 1] - 1
    bins: np.ndarray  # (atoms, most members) int64, of the unit's used features, 0 beyond them
    cumulative: np.ndarray  # (atoms,) float64, cumulative probability within the unit


class GapTables(NamedTuple):
    """A model and its perturbation."""

    regions: LeafRegions
    noise: NoiseTables
    atoms: AtomTables
    margin: MarginTables
    units: np.ndarray  # (units,) int32, group or column of each unit
    n_all: np.ndarray  # (1,) int64, number of groups, including those of features in no split
    unit_of: np.ndarray  # (used,) int64, unit of each used feature


def _lay_out(atoms: Mapping[int, Atoms], n_units: int) -> AtomTables:
    most = max([1, *(found.bins.shape[1] for found in atoms.values())])
    sizes = [atoms[u].weight.size if u in atoms else 0 for u in range(n_units)]
    padded = [np.pad(found.bins, ((0, 0), (0, most - found.bins.shape[1]))) for found in atoms.values()]
    return AtomTables(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.concatenate([np.zeros((0, most), np.int64), *padded]),
        np.concatenate([np.zeros(0), *(np.cumsum(found.weight) for found in atoms.values())]),
    )


def prepare_gap(
    forest: Forest, scale: np.ndarray, measured: Measured | None, *, drawn: np.ndarray | None = None, relative: bool = False
) -> GapTables:
    """Make the tables.

    Parameters
    ----------
    forest : Forest
        the model; its players are the units that are perturbed
    scale : (features,) float64, standard deviation of the noise of each feature, in its units
    measured : Measured or None
        what was measured of data; without it nothing is drawn
    drawn : (units,) bool, units whose values are drawn anew from the data; none by default
    relative : bool
        scales are multiples of the standard deviations measured

    Returns
    -------
    GapTables
        contiguous and read-only
    """
    bins, _ = bin_ensemble(forest.ensemble)
    drawn = np.zeros(forest.n_players, bool) if drawn is None else np.asarray(drawn, bool)
    lone = numeric_alone(forest)
    atoms = {} if measured is None else atoms_of(measured, forest, np.flatnonzero(drawn & ~lone).tolist())
    regions = make_regions(forest, atoms)
    used_scale = np.asarray(scale, np.float64)[forest.column]
    if relative and measured is not None:
        used_scale = used_scale * deviations(measured)
    return frozen(
        GapTables(
            regions=regions,
            noise=prepare_noise(forest, regions.units, bins, used_scale, measured, drawn & lone),
            atoms=_lay_out(atoms, forest.n_players),
            margin=prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons),
            units=forest.players,
            n_all=np.array([forest.n_all], np.int64),
            unit_of=forest.player.astype(np.int64),
        )
    )


def movable_units(tables: GapTables) -> np.ndarray:
    """Find the unit of every group that a perturbation can change."""
    unit, movable = np.full(int(tables.n_all[0]), -1), np.flatnonzero(tables.regions.units.perturbed)
    unit[tables.units[movable]] = movable
    return unit


def affordable(tables: GapTables, budget: float, passes: int = 1, approximate: bool = False) -> bool:
    """Decide whether exact values fit the budget of pairs of leaves, from the ensemble alone; rows visit fewer.

    Parameters
    ----------
    budget : float
        pairs of leaves per row
    passes : int
        how often all pairs are looked at for a row
    approximate : bool
        values beyond the budget may be estimated

    Returns
    -------
    bool
        values are exact

    Raises
    ------
    InvalidParameters
        exact values need more, and may not be estimated
    """
    visits = passes * count_visits(tables.regions)
    if visits <= budget:
        return True
    if approximate:
        return False
    raise InvalidParameters(
        f"exact prediction gaps take up to {visits:.3g} pairs of leaves per row, the budget is {budget:.3g}; raise it, or ask for approximate ones"
    )


def place_units(tables: GapTables, order: np.ndarray) -> Prefixes:
    """Turn rankings of groups into prefixes of units whose weighted PG² add up to PGI².

    A prefix ends with a perturbable unit, and also counts for the prefixes that add only groups without effect, up to the next such unit.

    Parameters
    ----------
    order : (n, outputs, ranked) int64, groups, the most important first

    Returns
    -------
    Prefixes
        of as many prefixes as there are units
    """
    where = ranks_from_order(order, int(tables.n_all[0]), axis=2)
    return make_prefixes(tables, where[:, :, tables.units], order.shape[2])


def make_prefixes(tables: GapTables, place: np.ndarray, n_ranked: int) -> Prefixes:
    """Turn ranks of units in rankings of groups into prefixes, see ``place_units``.

    Parameters
    ----------
    place : (n, outputs, units) int64, from 1; 0 where a ranking leaves the unit out
    n_ranked : int
        groups that are ranked

    Returns
    -------
    Prefixes
        of as many prefixes as there are units
    """
    n, outputs, _ = place.shape
    position = np.where(tables.regions.units.perturbed, place, 0)
    filled = np.where(position > 0, position, n_ranked + 1)
    places = np.where(position > 0, ranks_by_score(-filled, axis=2), 0)
    by_position = np.sort(filled, axis=2)
    ends = np.concatenate((by_position[:, :, 1:], np.full((n, outputs, 1), n_ranked + 1)), axis=2)
    return Prefixes(places, (ends - by_position) / max(n_ranked, 1))


def gap_rows(tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, prefixes: Prefixes) -> np.ndarray:
    """Add up the weighted PG² of prefixes, exactly."""
    out = np.zeros(prefixes.place.shape[:2])
    measure_rankings(*frozen((bins, perturb_rows(values, tables.noise, noise), tables.regions, prefixes)), out)
    return out


def greedy_rows(tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Rank groups greedily, exactly."""
    shape = (values.shape[1], tables.regions.outputs.start.size - 1, steps)
    order, gaps = np.zeros(shape, np.int64), np.zeros(shape)
    rank_greedily(*frozen((bins, perturb_rows(values, tables.noise, noise), tables.regions, movable_units(tables))), order, gaps)
    return order, gaps
