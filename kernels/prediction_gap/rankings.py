"""Tables and kernels of the methods ``gap`` and ``gap_greedy``: rankings of rows and their PGI²."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays.ordering import ranks_from_order
from ..errors import InvalidParameters
from ..trees.forest import Forest
from .exact import Prefixes
from .feature_noise import NoiseArrays, lay_out_noises, of_features, take_up_noises
from .noise import EMPIRICAL, Measured, Noise, Noises, resampled_units
from .quasi_monte_carlo import average, haltons, sample_greedily, sample_rows
from .tables import GapTables, affordable, gap_rows, greedy_rows, place_units, prepare_gap

SLICE = 128  # rows perturbed at once: each has a distribution for every unit with noise
PGI2, ERROR = "pgi2", "pgi2_error"
EXACT = -1  # in place of a seed: exact values
YES, NO = "yes", "no"


class RankingTables(NamedTuple):
    """Rankers and perturbations of a model."""

    gap: GapTables
    noise: NoiseArrays  # of every unit with noise
    ranker: np.ndarray  # (1,) int64, the method whose values rank
    of_ranker: Any  # that method's tables; placeholders for the greedy ranking
    top: np.ndarray  # (1,) int64, groups that are ranked
    seed: np.ndarray  # (1,) int64, seed of the points that estimate PGI², or EXACT


class Greedy(NamedTuple):
    """Greedy rankings and their gaps, in squared margin units; standard errors are 0 for exact values."""

    order: np.ndarray  # (n, outputs, top) int64, groups, best first
    gaps: np.ndarray  # (n, outputs, top) float64, PG² of each prefix
    gap_errors: np.ndarray  # (n, outputs, top) float64
    pgi2: np.ndarray  # (n, outputs) float64
    pgi2_errors: np.ndarray  # (n, outputs) float64


def prepare_rankings(
    forest: Forest, given: Mapping[str, Any], measured: Measured | None, ranking: tuple[np.ndarray, Any], top: int, passes: int
) -> RankingTables:
    """Make the tables of ``add_gaps`` and ``add_greedy``."""
    n = forest.groups.size
    if measured is None and forest.n_all < n:
        raise InvalidParameters("groups of features are drawn from a background, but none was given")
    scale = given["scale"] or (1.0,)
    if len(scale) not in (1, n) or min(scale) < 0:
        raise InvalidParameters(f"parameter 'scale' has {len(scale)} numbers, expected one of at least 0, or as many for {n} features")
    if isinstance(given["noise"], tuple) and len(given["noise"]) != n:
        raise InvalidParameters(f"parameter 'noise' has {len(given['noise'])} entries, expected one, or as many for {n} features")
    noise = of_features(given["noise"], np.broadcast_to(np.array(scale, np.float64), n))
    if measured is None and noise.empirical.any():
        raise InvalidParameters(f"parameter 'noise' is {EMPIRICAL!r}, which draws values from a background, but none was given")
    drawn = resampled_units(forest, noise.empirical, given["resample"] == YES and measured is not None)
    tables = prepare_gap(forest, noise.scale, measured, drawn=drawn, relative=True)
    within = affordable(tables, given["budget"], passes, given["approximate"] == YES)
    seed = np.array([EXACT if within else given["seed"]])
    return RankingTables(tables, lay_out_noises(noises_of(tables, forest, noise.noises)), *ranking, np.array([top]), seed)


def noises_of(tables: GapTables, forest: Forest, noises: Sequence[Noise]) -> tuple[Noise, ...]:
    """Choose the noises of units with noise from those of all features."""
    return tuple(noises[column] for column in forest.column[tables.noise.feature].tolist())


def measure_rows(
    tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, prefixes: Prefixes, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Measure PGI² of rankings, or PG² of sets, exactly or by estimates.

    Parameters
    ----------
    values : (used, n) float64, as ``bin_rows`` left them
    bins : (used, n) unsigned integers
    seed : int
        of the estimates' points, or EXACT

    Returns
    -------
    gaps, errors : (n, outputs) float64, squared margin units; standard errors are 0 where gaps are exact
    """
    if seed == EXACT:
        found = gap_rows(tables, noise, values, bins, prefixes)
        return found, np.zeros_like(found)
    return sample_rows(tables, noise, values, bins, prefixes, haltons(seed))


def rank_rows_greedily(tables: GapTables, noise: Noises, values: np.ndarray, bins: np.ndarray, top: int, seed: int) -> Greedy:
    """Rank rows greedily (Gajewski et al. 2024, Section 4), exactly or by estimates.

    Parameters
    ----------
    values : (used, n) float64, as ``bin_rows`` left them
    bins : (used, n) unsigned integers
    top : int
        groups that are ranked
    seed : int
        of the estimates' points, or EXACT
    """
    if seed == EXACT:
        order, gaps = greedy_rows(tables, noise, values, bins, top)
        return Greedy(order, gaps, np.zeros_like(gaps), gaps.mean(axis=2), np.zeros(gaps.shape[:2]))
    order, estimates = sample_greedily(tables, noise, values, bins, top, seed)
    return Greedy(order, *average(estimates), *average([gaps.mean(axis=2) for gaps in estimates]))


def _sliced(values: np.ndarray, bins: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield SLICE rows at a time, contiguous."""
    for first in range(0, values.shape[1], SLICE):
        some = slice(first, first + SLICE)
        yield some, np.ascontiguousarray(values[:, some]), np.ascontiguousarray(bins[:, some])


def order_by_size(gap: GapTables, scores: np.ndarray) -> np.ndarray:
    """Order groups by descending magnitude of their units' scores; ties keep the order of groups."""
    outputs, _, n = scores.shape
    size = np.zeros((n, outputs, int(gap.n_all[0])))
    size[:, :, gap.units] = np.abs(scores).transpose(2, 0, 1)
    return np.argsort(-size, axis=2, kind="stable")


def add_gaps(values: np.ndarray, bins: np.ndarray, tables: RankingTables, scores: np.ndarray, phi: np.ndarray) -> None:
    """Rank players by descending magnitude of scores, ties in their order, and add PGI² (Gajewski et al. 2024)."""
    gap = tables.gap
    for some, x, b in _sliced(values, bins):
        order = order_by_size(gap, scores[:, :, some])
        phi[:, :-2, some] += ranks_from_order(order, order.shape[2], axis=2).transpose(1, 2, 0)
        measured = measure_rows(gap, take_up_noises(tables.noise), x, b, place_units(gap, order), int(tables.seed[0]))
        phi[:, -2:, some] += np.stack(measured).transpose(2, 0, 1)


def add_greedy(values: np.ndarray, bins: np.ndarray, tables: RankingTables, phi: np.ndarray) -> None:
    """Rank greedily, and add the mean PG² over prefixes."""
    gap = tables.gap
    for some, x, b in _sliced(values, bins):
        found = rank_rows_greedily(gap, take_up_noises(tables.noise), x, b, int(tables.top[0]), int(tables.seed[0]))
        phi[:, :-2, some] += ranks_from_order(found.order, int(gap.n_all[0]), axis=2).transpose(1, 2, 0)
        phi[:, -2:, some] += np.stack((found.pgi2, found.pgi2_errors)).transpose(2, 0, 1)
