"""The prediction gap of rows: tables of a model and of how it is perturbed, exact values, and their cost."""

from typing import NamedTuple

import numpy as np

from .._jit import frozen
from ..ordering import ranks_from_order
from ..parameters import InvalidParameters
from ..trees.binning import bin_ensemble
from ..trees.forest import Forest
from ..trees.margin import MarginTables, prepare_margin
from .exact import measure_rankings
from .greedy import rank_greedily
from .leaf_regions import Boxes, count_visits, lay_out_boxes, numeric_alone
from .noise import Measured, Moves, Noise, atoms_of, deviations, prepare_moves, spread_rows

BUDGET = 1e8  # pairs of leaves that may be looked at for a row, a second or less


class GapTables(NamedTuple):
    """A model, and how it is perturbed."""

    boxes: Boxes
    moves: Moves
    margin: MarginTables
    units: np.ndarray  # (units,) int32, the group, or column, that a unit is
    n_all: np.ndarray  # (1,) int64, groups with those of features in no split
    member: np.ndarray  # (used,) int64, which unit's a used feature is
    atom_start: np.ndarray  # (units + 1,) int64, what a drawn unit is drawn from is atoms[atom_start[u]:atom_start[u + 1]],
    atoms: np.ndarray  # (atoms, most members) int64, bins of its used features
    upto: np.ndarray  # (atoms,) float64, with the probability of it or one before


def prepare_gap(forest: Forest, scale, measured: Measured | None, *, drawn=None, relative: bool = False) -> GapTables:
    """Make the tables.

    Parameters
    ----------
    scale : (features,) float64, standard deviation of the noise of each feature
    measured : what was measured of data, see ``noise.measure``; without it nothing is drawn
    drawn : (units,) bool, units whose values are drawn anew from the data
    relative : scales are multiples of the standard deviations measured
    """
    bins, _ = bin_ensemble(forest.ensemble)
    drawn = np.zeros(forest.n_players, bool) if drawn is None else np.asarray(drawn, bool)
    lone = numeric_alone(forest)
    atoms = {} if measured is None else atoms_of(measured, forest, np.flatnonzero(drawn & ~lone).tolist())
    boxes = lay_out_boxes(forest, atoms)
    used_scale = np.asarray(scale, np.float64)[forest.column]
    if relative and measured is not None:
        used_scale = used_scale * deviations(measured)
    most = max([1, *(found.bins.shape[1] for found in atoms.values())])
    sizes = [atoms[u].weight.size if u in atoms else 0 for u in range(forest.n_players)]
    padded_bins = [np.pad(found.bins, ((0, 0), (0, most - found.bins.shape[1]))) for found in atoms.values()]
    return frozen(
        GapTables(
            boxes=boxes,
            moves=prepare_moves(forest, boxes, bins, used_scale, measured, drawn & lone),
            margin=prepare_margin(forest.ensemble, forest.splits, forest.trace, forest.comparisons),
            units=forest.players,
            n_all=np.array([forest.n_all], np.int64),
            member=forest.player.astype(np.int64),
            atom_start=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            atoms=np.concatenate([np.zeros((0, most), np.int64), *padded_bins]),
            upto=np.concatenate([np.zeros(0), *(np.cumsum(found.weight) for found in atoms.values())]),
        )
    )


def complete(tables: GapTables, order, gaps, top: int):
    """Rankings of groups from those of units, ``top`` long: after all units that can be perturbed the others come, in their own order, and change
    nothing."""
    stay = np.setdiff1d(np.arange(int(tables.n_all[0])), tables.units[tables.boxes.perturbed])[: top - order.shape[2]]
    shape = (*order.shape[:2], stay.size)
    last = gaps[:, :, -1:] if gaps.shape[2] else np.zeros((*order.shape[:2], 1))
    players = tables.units[order]
    return np.concatenate((players, np.broadcast_to(stay, shape)), axis=2), np.concatenate((gaps, np.broadcast_to(last, shape)), axis=2)


def affordable(tables: GapTables, budget: float, passes: int = 1, approximate: bool = False) -> bool:
    """Whether exact values need no more pairs of leaves than the budget has, by the ensemble alone, for rows take fewer.

    Raises
    ------
    InvalidParameters
        they need more, and are not to be approximate
    """
    visits = passes * count_visits(tables.boxes)
    if visits <= budget:
        return True
    if approximate:
        return False
    raise InvalidParameters(
        f"exact prediction gaps take up to {visits:.3g} pairs of leaves per row, the budget is {budget:.3g}; raise it, or ask for approximate ones"
    )


def place_units(tables: GapTables, order):
    """From rankings of groups, most important first, ``(n, outputs, ranked) int64``: the prefix with which each unit comes to be perturbed,
    ``(n, outputs, units) int64``, and the share of each prefix of units in PGI², ``(n, outputs, units) float64``.

    A prefix ends with a unit that can be perturbed, and stands for all that end with groups that change nothing, up to the next such.
    """
    n, outputs, n_ranked = order.shape
    where = ranks_from_order(order, int(tables.n_all[0]), axis=2)
    position = np.where(tables.boxes.perturbed, where[:, :, tables.units], 0)
    filled = np.where(position > 0, position, n_ranked + 1)
    places = np.where(position > 0, np.argsort(np.argsort(filled, axis=2), axis=2) + 1, 0)
    by_position = np.sort(filled, axis=2)
    ends = np.concatenate((by_position[:, :, 1:], np.full((n, outputs, 1), n_ranked + 1)), axis=2)
    return places, (ends - by_position) / max(n_ranked, 1)


def gap_rows(tables: GapTables, noise: Noise, values, bins, places, weights):
    """PG² added up over prefixes, ``(n, outputs) float64``; ``values`` and ``bins`` ``(used, n)`` as ``bin_rows`` left them."""
    out = np.zeros(places.shape[:2])
    measure_rankings(bins, spread_rows(values, tables.moves, noise), tables.boxes, places, weights, out)
    return out


def greedy_rows(tables: GapTables, noise: Noise, values, bins, steps: int):
    """The greedy ranking: units in order ``(n, outputs, steps) int64``, -1 where none is left, and PG² of each prefix."""
    shape = (values.shape[1], tables.boxes.target_start.size - 1, steps)
    order, gaps = np.zeros(shape, np.int64), np.zeros(shape)
    rank_greedily(bins, spread_rows(values, tables.moves, noise), tables.boxes, order, gaps)
    return order, gaps
