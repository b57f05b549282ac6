"""Measures that compare rankings: insertion and deletion areas, prediction gaps, removal error, and pairwise agreement.

Rankings come as ranks, whichever method computed them. Insertion and deletion order players by descending score; prediction gaps and removal by
descending magnitude of the score. Ties keep the order of players. Measures that need an unknown order are NaN.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from .. import game_values
from ..path_dependent.games import play
from ..prediction_gap.noise import Noise
from ..prediction_gap.rankings import EXACT, measure_rows
from ..prediction_gap.removal import shift_means
from ..prediction_gap.tables import GapTables, make_prefixes
from ..ranking.curves import CurveTables, add_placed_areas, prepare_curves
from ..trees.forest import Forest
from .cayley_distance import count_list_swaps, count_swaps
from .player_ranks import PlayerRanks, rank_among

AREAS = ("insertion", "deletion", "insertion - deletion")
SAME, SWAPS, LIST_SWAPS, SIZE_CORRELATION = "same", "swaps", "list swaps", "size correlation"


@dataclass(frozen=True, slots=True)
class Agreement:
    """A measure of how far two rankings agree."""

    name: str
    order: Callable[[PlayerRanks], np.ndarray | None]  # from player ranks to ranks among players in splits, (outputs, players, n)
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray]  # from two such rank arrays to a number, (outputs, n)


@dataclass(frozen=True, slots=True)
class Value:
    """Meaning of one number of a comparison: a ranking's measure, its difference from another ranking's, or the agreement of two rankings."""

    measure: str
    ranking: int
    other: int | None = None


def _shape(rankings: Sequence[PlayerRanks]) -> tuple[int, int]:
    """Return the numbers of outputs and rows."""
    outputs, _, n = next(each for each in rankings[0] if each is not None).shape
    return outputs, n


def prepare_areas(forest: Forest) -> CurveTables:
    """Prepare the tables of ``measure_areas``, once per model.

    Parameters
    ----------
    forest : Forest
        its players are what is ranked

    Returns
    -------
    CurveTables
        contiguous and read-only; of the path-dependent game, in which absent players are averaged by cover
    """
    return prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all)


def measure_areas(bins: np.ndarray, tables: CurveTables, rankings: Sequence[PlayerRanks]) -> np.ndarray:
    """Measure the areas under the insertion and deletion curves (Li, Yu and Low 2026, Eq. 5), and their difference.

    Parameters
    ----------
    bins : (used, at least n) unsigned integers

    Returns
    -------
    areas : (outputs, 3, rankings, n) float64, margin units
        in the order of AREAS
    """
    outputs, n = _shape(rankings)
    placed = {r: places.by_score for r, places in enumerate(rankings) if places.by_score is not None}
    areas = np.full((outputs, 2, len(rankings), n), np.nan)
    if placed:
        found = np.zeros((outputs, 2, len(placed), n))
        add_placed_areas(bins, tables, [*placed.values()], found[:, 0], found[:, 1])
        areas[:, :, [*placed]] = found
    return np.concatenate((areas, areas[:, :1] - areas[:, 1:]), axis=1)


def measure_gaps(
    values: np.ndarray, bins: np.ndarray, tables: Sequence[GapTables], noise: Noise, rankings: Sequence[PlayerRanks], seed: int = EXACT
) -> np.ndarray:
    """Measure PGI² of every ranking by magnitude (Gajewski et al. 2024), at several noise scales.

    Parameters
    ----------
    values : (used, n) float64, as ``bin_rows`` left them
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : sequence of GapTables
        one for each scale
    seed : int
        of the quasi-Monte Carlo points where there are more pairs of leaves than the budget allows; EXACT for none

    Returns
    -------
    gaps : (2, outputs, scales, rankings, n) float64
        PGI² in squared margin units, then its standard errors, 0 where it is exact
    """
    outputs, n = _shape(rankings)
    found = np.full((2, outputs, len(tables), len(rankings), n), np.nan)
    for s, gap in enumerate(tables):
        for r, places in enumerate(rankings):
            if places.by_size is None:
                continue
            prefixes = make_prefixes(gap, places.by_size.transpose(2, 0, 1), int(gap.n_all[0]))
            found[:, :, s, r] = np.swapaxes(measure_rows(gap, noise, values, bins, prefixes, seed), 1, 2)
    return found


def measure_removal(
    values: np.ndarray, bins: np.ndarray, tables: GapTables, rankings: Sequence[PlayerRanks], sizes: Sequence[int], missed: np.ndarray
) -> np.ndarray:
    """Measure the squared error of predictions without a ranking's first features, which are resampled from data (Gajewski et al. 2024, Table 4).

    Parameters
    ----------
    values : (used, n) float64, as ``bin_rows`` left them
    bins : (used, n) unsigned integers
    tables : GapTables
        as ``prepare_removal`` makes them
    sizes : sequence of int
        numbers of first features
    missed : (outputs, n) float64, label less margin, in the label's units

    Returns
    -------
    errors : (outputs, sizes, rankings, n) float64, squared units of the label
        (label - E f(X))² of every row
    """
    outputs, n = _shape(rankings)
    placed = {r: places.by_size for r, places in enumerate(rankings) if places.by_size is not None}
    errors = np.full((outputs, len(sizes), len(rankings), n), np.nan)
    if placed:
        shifts = shift_means(values, bins, tables, np.stack([*placed.values()], axis=1), sizes)
        errors[:, :, [*placed]] = (missed[:, None, None] - shifts.swapaxes(1, 2)) ** 2
    return errors


def by_score(places: PlayerRanks) -> np.ndarray | None:
    """Rank players by descending score."""
    return None if places.by_score is None else rank_among(places.by_score).astype(np.float64)


def by_size(places: PlayerRanks) -> np.ndarray | None:
    """Rank players by descending magnitude of the score.

    Returns
    -------
    ranks : (outputs, players, n) float64, 1, 2, …; or None
        where the ranking does not tell
    """
    return None if places.by_size is None else rank_among(places.by_size).astype(np.float64)


def overlap(k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the share of the first k players that two rankings have in common; of all players where there are fewer than k."""
    return ((a <= k) & (b <= k)).sum(axis=1) / max(1, min(k, a.shape[1]))


def same(k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return 1 where the first k players of two rankings are the same set (Gajewski et al. 2024, Table 2), and 0 elsewhere."""
    return ((a <= k) == (b <= k)).all(axis=1).astype(np.float64)


def correlate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Compute Spearman's rank correlation of ranks without ties; 1 for a single player."""
    n = a.shape[1]
    return 1 - 6 * ((a - b) ** 2).sum(axis=1) / max(1, n * (n * n - 1))


def agreements(top: Sequence[int]) -> tuple[Agreement, ...]:
    """List all measures of agreement.

    Parameters
    ----------
    top : sequence of int
        numbers k of players: for each the overlap of the first k players, whether they are the same, and both counts of swaps between them, rankings
        by magnitude

    Returns
    -------
    tuple of Agreement
        the overlaps in the order of ``top``, then which are the same, then the swaps of one list, then those of both lists, then Spearman's
        correlation by score, and by magnitude
    """
    return (
        *(Agreement(f"top {k}", by_size, partial(overlap, k)) for k in top),
        *(Agreement(f"{SAME} {k}", by_size, partial(same, k)) for k in top),
        *(Agreement(f"{SWAPS} {k}", by_size, partial(count_swaps, k)) for k in top),
        *(Agreement(f"{LIST_SWAPS} {k}", by_size, partial(count_list_swaps, k)) for k in top),
        Agreement("correlation", by_score, correlate),
        Agreement(SIZE_CORRELATION, by_size, correlate),
    )


def list_values(measures: Sequence[str], n_rankings: int, measured: Sequence[Agreement] = ()) -> tuple[Value, ...]:
    """List the meanings of a comparison's numbers, in the order of ``set_against``, then ``measure_agreements``.

    Parameters
    ----------
    measures : sequence of str
        names of what is measured of a single ranking
    measured : sequence of Agreement
        what is measured of every two rankings

    Returns
    -------
    tuple of Value
        every measure of every ranking; every measure's differences between two rankings; every agreement of two rankings. Rankings change fastest,
        pairs are (0, 1), (0, 2), …
    """
    pairs = list(itertools.combinations(range(n_rankings), 2))
    alone = [Value(measure, r) for measure in measures for r in range(n_rankings)]
    return (*alone, *(Value(name, a, b) for name in (*measures, *(agreement.name for agreement in measured)) for a, b in pairs))


def set_against(measured: np.ndarray) -> np.ndarray:
    """Compute the differences of every measure between every two rankings, row by row.

    Parameters
    ----------
    measured : (outputs, measures, rankings, n) float64

    Returns
    -------
    values : (outputs, values, n) float64
        the measures of every ranking, then by how much the first of every two is above the second
    """
    outputs, n_measures, n_rankings, n = measured.shape
    a, b = np.array(list(itertools.combinations(range(n_rankings), 2)), np.int64).reshape(-1, 2).T
    flat = [each.reshape(outputs, n_measures * each.shape[2], n) for each in (measured, measured[:, :, a] - measured[:, :, b])]
    return np.concatenate(flat, axis=1)


def measure_agreements(rankings: Sequence[PlayerRanks], measured: Sequence[Agreement]) -> np.ndarray:
    """Compute every measure of agreement of every two rankings.

    Returns
    -------
    values : (outputs, agreements * pairs, n) float64
        pairs change fastest, in the order of ``list_values``
    """
    outputs, n = _shape(rankings)
    nothing = np.full((outputs, n), np.nan)
    ranks = {order: [order(each) for each in rankings] for order in {agreement.order for agreement in measured}}
    pairs = [
        nothing if a is None or b is None else agreement.measure(a, b)
        for agreement in measured
        for a, b in itertools.combinations(ranks[agreement.order], 2)
    ]
    return np.concatenate([np.zeros((outputs, 0, n)), *(each[:, None] for each in pairs)], axis=1)


def root_means(means: Mapping[str, np.ndarray], listed: Sequence[Value]) -> dict[str, np.ndarray]:
    """Turn mean squared errors, and differences of them, into root mean squared errors and their differences.

    Parameters
    ----------
    means : mapping
        "mean" and "standard_error", ``(outputs, values) float64`` each, squared units
    listed : sequence of Value
        what the values mean; of two rankings' difference the measure of each is among them

    Returns
    -------
    dict
        "mean" and "standard_error", ``(outputs, values) float64`` each; standard errors by the delta method, of differences on the same rows
    """
    mean, error = means["mean"], means["standard_error"]
    number = {value: j for j, value in enumerate(listed)}
    roots = np.sqrt(np.maximum(mean, 0.0))
    slope = np.divide(0.5, roots, out=np.zeros_like(roots), where=roots > 0)
    found, errors = roots.copy(), slope * error
    for j, value in enumerate(listed):
        if value.other is None:
            continue
        a, b = number[Value(value.measure, value.ranking)], number[Value(value.measure, value.other)]
        steeper = slope[:, a] - slope[:, b]
        covariance = (error[:, a] ** 2 + error[:, j] ** 2 - error[:, b] ** 2) / 2  # through the variance of the difference, which may be much smaller
        variance = (slope[:, b] * error[:, j]) ** 2 + (steeper * error[:, a]) ** 2 + 2 * slope[:, b] * steeper * covariance
        found[:, j], errors[:, j] = roots[:, a] - roots[:, b], np.sqrt(np.maximum(variance, 0.0))
    return {"mean": found, "standard_error": errors}
