"""Rankings of rows, and how far their prefixes move the prediction: what the methods ``gap`` and ``gap_greedy`` prepare and write."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..ordering import ranks_from_order
from ..parameters import InvalidParameters
from ..trees.forest import Forest
from .leaf_regions import numeric_alone
from .noise import NOISES, Measured, Noise
from .quasi_monte_carlo import average, sample_greedily, sample_rows
from .tables import GapTables, affordable, complete, gap_rows, greedy_rows, place_units, prepare_gap

SLICE = 128  # rows whose noise is spread out at a time
PGI2, ERROR = "pgi2", "pgi2_error"
EXACT = -1  # in the place of a seed
EMPIRICAL = "empirical"  # noise that is none: numeric features' values are drawn too
YES, NO = "yes", "no"


class RankingTables(NamedTuple):
    """How rows are ranked and perturbed."""

    gap: GapTables
    noise: np.ndarray  # (1,) int64, which of NOISES
    ranker: np.ndarray  # (1,) int64, which method ranks by its values
    of_ranker: Any  # that method's tables; of the greedy ranking arrays without meaning
    top: np.ndarray  # (1,) int64, groups that are ranked
    seed: np.ndarray  # (1,) int64, of the points that PGI² is estimated by, or EXACT


class Greedy(NamedTuple):
    """Greedy rankings, and what they are worth: squared margin units, standard errors 0 where exact."""

    order: np.ndarray  # (n, outputs, top) int64, groups
    gaps: np.ndarray  # (n, outputs, top) float64, PG² of each prefix
    gap_errors: np.ndarray
    pgi2: np.ndarray  # (n, outputs) float64
    pgi2_errors: np.ndarray


def prepare_rankings(
    forest: Forest, given: Mapping[str, Any], measured: Measured | None, ranking: tuple[np.ndarray, Any], top: int, passes: int
) -> RankingTables:
    """Tables for noise on numeric features, in standard deviations where these were measured, and for what is drawn of what was measured; refuse
    what they cannot do, and what costs too much."""
    n = forest.groups.size
    if measured is None and forest.n_all < n:
        raise InvalidParameters("groups of features are drawn from a background, but none was given")
    if measured is None and given["noise"] == EMPIRICAL:
        raise InvalidParameters(f"parameter 'noise' is {EMPIRICAL!r}, which draws values from a background, but none was given")
    scale = given["scale"] or (1.0,)
    if len(scale) not in (1, n) or min(scale) < 0:
        raise InvalidParameters(f"parameter 'scale' has {len(scale)} numbers, expected one of at least 0, or as many for {n} features")
    drawn = np.where(numeric_alone(forest), given["noise"] == EMPIRICAL, given["resample"] == YES and measured is not None)
    tables = prepare_gap(forest, np.broadcast_to(np.array(scale, np.float64), n), measured, drawn=drawn, relative=True)
    within = affordable(tables, given["budget"], passes, given["approximate"] == YES)
    noise = next((number for number, noise in enumerate(NOISES) if noise.name == given["noise"]), 0)
    return RankingTables(tables, np.array([noise]), *ranking, np.array([top]), np.array([EXACT if within else given["seed"]]))


def measure_rows(tables: GapTables, noise: Noise, values, bins, placed: tuple[Any, Any], seed: int):
    """PGI² of rankings, ``placed`` as ``place_units`` gives them, and its standard errors, ``(n, outputs) float64`` each."""
    if seed == EXACT:
        found = gap_rows(tables, noise, values, bins, *placed)
        return found, np.zeros_like(found)
    return sample_rows(tables, noise, values, bins, *placed, seed)


def rank_rows_greedily(tables: GapTables, noise: Noise, values, bins, top: int, seed: int) -> Greedy:
    """The greedy rankings of rows, ``top`` groups long."""
    steps = min(top, int(tables.boxes.perturbed.sum()))
    if seed == EXACT:
        units, of_units = greedy_rows(tables, noise, values, bins, steps)
        order, gaps = complete(tables, units, of_units, top)
        return Greedy(order, gaps, np.zeros_like(gaps), gaps.mean(axis=2), np.zeros(gaps.shape[:2]))
    units, estimates = sample_greedily(tables, noise, values, bins, steps, seed)
    completed = [complete(tables, units, of_units, top) for of_units in estimates]
    each = [gaps for _, gaps in completed]
    return Greedy(completed[0][0], *average(each), *average([gaps.mean(axis=2) for gaps in each]))


def _sliced(values, bins):
    for first in range(0, values.shape[1], SLICE):
        some = slice(first, first + SLICE)
        yield some, np.ascontiguousarray(values[:, some]), np.ascontiguousarray(bins[:, some])


def order_by_size(gap: GapTables, scores):
    """Groups by the size of their units' scores ``(outputs, units, n)``, the largest first, equal ones in their own order:
    ``(n, outputs, groups) int64``."""
    outputs, _, n = scores.shape
    size = np.zeros((n, outputs, int(gap.n_all[0])))
    size[:, :, gap.units] = np.abs(scores).transpose(2, 0, 1)
    return np.argsort(-size, axis=2, kind="stable")


def add_gaps(values, bins, tables: RankingTables, scores, phi) -> None:
    """Rank players by size of scores, the largest first, equal ones in their own order; add ranks, from 1, and PGI² with its error."""
    gap = tables.gap
    for some, x, r in _sliced(values, bins):
        order = order_by_size(gap, scores[:, :, some])
        phi[:, :-2, some] += ranks_from_order(order, order.shape[2], axis=2)[:, :, gap.units].transpose(1, 2, 0)
        measured = measure_rows(gap, NOISES[tables.noise[0]], x, r, place_units(gap, order), int(tables.seed[0]))
        phi[:, -2:, some] += np.stack(measured).transpose(2, 0, 1)


def add_greedy(values, bins, tables: RankingTables, phi) -> None:
    """Rank greedily; add ranks, from 1, the mean of PG² over the prefixes and its error to phi."""
    gap = tables.gap
    for some, x, r in _sliced(values, bins):
        found = rank_rows_greedily(gap, NOISES[tables.noise[0]], x, r, int(tables.top[0]), int(tables.seed[0]))
        phi[:, :-2, some] += ranks_from_order(found.order, int(gap.n_all[0]), axis=2)[:, :, gap.units].transpose(1, 2, 0)
        phi[:, -2:, some] += np.stack((found.pgi2, found.pgi2_errors)).transpose(2, 0, 1)
