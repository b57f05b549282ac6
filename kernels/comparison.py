"""What rankings are compared by: how good each is, measured on the model, and how far every two agree.

A ranking comes as scores, ``(outputs, players, n) float64``, whatever they were computed by. Its order is that of descending scores, as insertion and
deletion take it; which features are the largest, whatever their sign, is another order, and the one whose prefixes are perturbed. Equal ones keep
the order of features.
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
    """How far two rankings agree: ``measure(a, b)`` of places, as ``order(scores)`` gives them, ``(outputs, n)``."""

    name: str
    order: Callable[[np.ndarray], np.ndarray]
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Value:
    """What a number of a comparison is: a measure of a ranking; by how much it is above another's on the same row; how far the two agree."""

    measure: str
    ranking: int
    other: int | None = None


def prepare_areas(forest: Forest) -> CurveTables:
    """Tables for ``measure_areas``, made once per model."""
    return prepare_curves(play(forest, game_values.shapley), forest.players, forest.n_all)


def measure_areas(bins, tables: CurveTables, scores: Sequence[np.ndarray]) -> np.ndarray:
    """AREAS of every ranking, ``(outputs, 3, rankings, n) float64``."""
    outputs, _, n = scores[0].shape
    areas = np.zeros((outputs, 2, len(scores), n))
    add_areas(bins, tables, scores, areas[:, 0], areas[:, 1])
    return np.concatenate((areas, areas[:, :1] - areas[:, 1:]), axis=1)


def measure_gaps(values, bins, tables: Sequence[GapTables], noise: Noise, scores: Sequence[np.ndarray], seed: int = EXACT) -> np.ndarray:
    """PGI² of every ranking by size, for every scale's tables, and its standard errors, ``(2, outputs, scales, rankings, n) float64``."""
    outputs, _, n = scores[0].shape
    found = np.zeros((2, outputs, len(tables), len(scores), n))
    for s, gap in enumerate(tables):
        for r, some in enumerate(scores):
            placed = place_units(gap, order_by_size(gap, some))
            found[:, :, s, r] = np.swapaxes(measure_rows(gap, noise, values, bins, placed, seed), 1, 2)
    return found


def by_score(scores):
    """Places 1, 2, … by descending scores, ``(outputs, players, n)``."""
    return ranks_by_score(scores, axis=1).astype(np.float64)


def by_size(scores):
    """Places by descending magnitude."""
    return by_score(np.abs(scores))


def overlap(k: int, a, b):
    """Share of the first k that both have, of all players where there are fewer."""
    return ((a <= k) & (b <= k)).sum(axis=1) / max(1, min(k, a.shape[1]))


def correlate(a, b):
    """Spearman's rank correlation; 1 where there is nothing to rank."""
    n = a.shape[1]
    return 1 - 6 * ((a - b) ** 2).sum(axis=1) / max(1, n * (n * n - 1))


def agreements(top: Sequence[int]) -> tuple[Agreement, ...]:
    """All of them, with sets of the first k for every k asked for."""
    return (
        *(Agreement(f"top {k}", by_size, partial(overlap, k)) for k in top),
        Agreement("correlation", by_score, correlate),
        Agreement("size correlation", by_size, correlate),
    )


def list_values(measures: Sequence[str], n_rankings: int, some: Sequence[Agreement] = ()) -> tuple[Value, ...]:
    """The numbers of a comparison, in the order in which ``set_against`` and then ``measure_agreements`` give them."""
    pairs = list(itertools.combinations(range(n_rankings), 2))
    alone = [Value(measure, r) for measure in measures for r in range(n_rankings)]
    return (*alone, *(Value(name, a, b) for name in (*measures, *(agreement.name for agreement in some)) for a, b in pairs))


def set_against(measured) -> np.ndarray:
    """Measures of every ranking, and by how much they are above those of every other on the same row: from ``(outputs, measures, rankings, n)``,
    ``(outputs, values, n)``."""
    outputs, n_measures, n_rankings, n = measured.shape
    a, b = np.array(list(itertools.combinations(range(n_rankings), 2)), np.int64).reshape(-1, 2).T
    flat = [each.reshape(outputs, n_measures * each.shape[2], n) for each in (measured, measured[:, :, a] - measured[:, :, b])]
    return np.concatenate(flat, axis=1)


def measure_agreements(scores: Sequence[np.ndarray], some: Sequence[Agreement]) -> np.ndarray:
    """How far every two rankings agree, ``(outputs, agreements * pairs, n)``."""
    outputs, _, n = scores[0].shape
    places = {order: [order(each) for each in scores] for order in {agreement.order for agreement in some}}
    pairs = [agreement.measure(a, b)[:, None] for agreement in some for a, b in itertools.combinations(places[agreement.order], 2)]
    return np.concatenate([np.zeros((outputs, 0, n)), *pairs], axis=1)
