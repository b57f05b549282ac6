"""What rankings are compared by: how good each is, measured on the model, and how far every two agree.

A ranking comes as scores, ``(outputs, players, n) float64``, whatever method computed them. Insertion and deletion take players by descending score.
Prediction gaps take them by descending magnitude of the score, and perturb the first ones. Players with equal scores keep their own order.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from . import game_values
from .ordering import ranks_by_score
from .path_dependent.games import play
from .prediction_gap.noise import Noise
from .prediction_gap.rankings import EXACT, measure_rows, order_by_size
from .prediction_gap.tables import GapTables, place_units
from .ranking.curves import CurveTables, add_areas, prepare_curves
from .trees.forest import Forest

AREAS = ("insertion", "deletion", "insertion - deletion")


@dataclass(frozen=True, slots=True)
class Agreement:
    """A measure of how far two rankings agree."""

    name: str
    order: Callable[[np.ndarray], np.ndarray]  # from scores to ranks, both (outputs, players, n)
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray]  # from the ranks of both, (outputs, n)


@dataclass(frozen=True, slots=True)
class Value:
    """What a number of a comparison means: a ranking's measure; or by how much it is above another's on the same row; or how far the two agree."""

    measure: str
    ranking: int
    other: int | None = None


def prepare_areas(forest: Forest) -> CurveTables:
    """Make the tables for ``measure_areas``, once per model.

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


def measure_areas(bins: np.ndarray, tables: CurveTables, scores: Sequence[np.ndarray]) -> np.ndarray:
    """Measure the areas under the insertion and deletion curves (Li, Yu and Low 2026, Eq. 5), and their difference.

    Parameters
    ----------
    bins : (used, at least n) unsigned integers
    tables : CurveTables
    scores : sequence of (outputs, players, n) float64
        one for each ranking

    Returns
    -------
    areas : (outputs, 3, rankings, n) float64, margin units
        in the order of AREAS
    """
    outputs, _, n = scores[0].shape
    areas = np.zeros((outputs, 2, len(scores), n))
    add_areas(bins, tables, scores, areas[:, 0], areas[:, 1])
    return np.concatenate((areas, areas[:, :1] - areas[:, 1:]), axis=1)


def measure_gaps(
    values: np.ndarray, bins: np.ndarray, tables: Sequence[GapTables], noise: Noise, scores: Sequence[np.ndarray], seed: int = EXACT
) -> np.ndarray:
    """Measure PGI² of every ranking by size (Gajewski et al. 2024), for several scales of the noise.

    Parameters
    ----------
    values : (used, n) float64, as ``bin_rows`` left them
    bins : (used, n) unsigned integers, n a multiple of BATCH
    tables : sequence of GapTables
        one for each scale
    noise : Noise
    scores : sequence of (outputs, players, n) float64
        one for each ranking
    seed : int
        of the quasi-Monte Carlo points where there are more pairs of leaves than the budget allows; EXACT for none

    Returns
    -------
    gaps : (2, outputs, scales, rankings, n) float64
        PGI² in squared margin units, then its standard errors, 0 where it is exact
    """
    outputs, _, n = scores[0].shape
    found = np.zeros((2, outputs, len(tables), len(scores), n))
    for s, gap in enumerate(tables):
        for r, some in enumerate(scores):
            prefixes = place_units(gap, order_by_size(gap, some))
            found[:, :, s, r] = np.swapaxes(measure_rows(gap, noise, values, bins, prefixes, seed), 1, 2)
    return found


def by_score(scores: np.ndarray) -> np.ndarray:
    """Rank players by descending score; equal scores keep the order of players.

    Parameters
    ----------
    scores : (outputs, players, n) float64

    Returns
    -------
    ranks : (outputs, players, n) float64, 1, 2, …
    """
    return ranks_by_score(scores, axis=1).astype(np.float64)


def by_size(scores: np.ndarray) -> np.ndarray:
    """Rank players by descending magnitude of the score; equal magnitudes keep the order of players.

    Parameters
    ----------
    scores : (outputs, players, n) float64

    Returns
    -------
    ranks : (outputs, players, n) float64, 1, 2, …
    """
    return by_score(np.abs(scores))


def overlap(k: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Measure which share of the first k players two rankings have in common; of all players where there are fewer.

    Parameters
    ----------
    k : int
    a, b : (outputs, players, n) float64, ranks from 1

    Returns
    -------
    share : (outputs, n) float64
    """
    return ((a <= k) & (b <= k)).sum(axis=1) / max(1, min(k, a.shape[1]))


def correlate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Measure Spearman's rank correlation of ranks without ties; 1 where there is nothing to rank.

    Parameters
    ----------
    a, b : (outputs, players, n) float64, ranks from 1

    Returns
    -------
    correlation : (outputs, n) float64
    """
    n = a.shape[1]
    return 1 - 6 * ((a - b) ** 2).sum(axis=1) / max(1, n * (n * n - 1))


def agreements(top: Sequence[int]) -> tuple[Agreement, ...]:
    """List all measures of agreement.

    Parameters
    ----------
    top : sequence of int
        numbers k of players: for each the overlap of the first k players, both rankings by magnitude

    Returns
    -------
    tuple of Agreement
        the overlaps in the order of ``top``, then Spearman's correlation by score, and by magnitude
    """
    return (
        *(Agreement(f"top {k}", by_size, partial(overlap, k)) for k in top),
        Agreement("correlation", by_score, correlate),
        Agreement("size correlation", by_size, correlate),
    )


def list_values(measures: Sequence[str], n_rankings: int, measured: Sequence[Agreement] = ()) -> tuple[Value, ...]:
    """List what the numbers of a comparison mean, in the order in which ``set_against`` and then ``measure_agreements`` give them.

    Parameters
    ----------
    measures : sequence of str
        names of what is measured of a single ranking
    n_rankings : int
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
    """Compare every two rankings on every row.

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


def measure_agreements(scores: Sequence[np.ndarray], measured: Sequence[Agreement]) -> np.ndarray:
    """Measure how far every two rankings agree.

    Parameters
    ----------
    scores : sequence of (outputs, players, n) float64
        one for each ranking
    measured : sequence of Agreement

    Returns
    -------
    values : (outputs, agreements * pairs, n) float64
        pairs change fastest, in the order of ``list_values``
    """
    outputs, _, n = scores[0].shape
    ranks = {order: [order(each) for each in scores] for order in {agreement.order for agreement in measured}}
    pairs = [agreement.measure(a, b)[:, None] for agreement in measured for a, b in itertools.combinations(ranks[agreement.order], 2)]
    return np.concatenate([np.zeros((outputs, 0, n)), *pairs], axis=1)
