"""What rankings are compared by: metrics of each, measured on the model, and how far every two agree.

A ranking comes as scores, ``(outputs, players, n) float64``, whatever they were computed by. Its order is that of descending scores, as insertion and
deletion take it; which features are the largest, whatever their sign, is another order. Equal ones keep the order of features.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from . import game_values
from .batch import Buffers
from .curves import add_areas, prepare_curves
from .games import Board, play


@dataclass(frozen=True, slots=True)
class Metric:
    """Numbers that tell how good a ranking is, by ``names``.

    ``prepare(board)`` makes tables once per model; ``measure(buffers, tables, scores)`` returns ``(outputs, names, rankings, n) float64`` for a slice
    of rows and the scores of every ranking.
    """

    name: str
    names: tuple[str, ...]
    prepare: Callable[[Board], NamedTuple]
    measure: Callable[[Buffers, Any, Sequence[np.ndarray]], np.ndarray]


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


def _measure_areas(buffers: Buffers, tables, scores: Sequence[np.ndarray]) -> np.ndarray:
    outputs, _, n = scores[0].shape
    areas = np.zeros((outputs, 2, len(scores), n))
    add_areas(buffers.ranks, tables, scores, areas[:, 0], areas[:, 1])
    return np.concatenate((areas, areas[:, :1] - areas[:, 1:]), axis=1)


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            name="areas",
            names=("insertion", "deletion", "insertion - deletion"),
            prepare=lambda board: prepare_curves(play(board, game_values.shapley), board.players, board.n_all),
            measure=_measure_areas,
        ),
    )
}


def by_score(scores):
    """Places 1, 2, … by descending scores, ``(outputs, players, n)``."""
    place = np.empty(scores.shape)
    order = np.argsort(-scores, axis=1, kind="stable")
    np.put_along_axis(place, order, np.broadcast_to(np.arange(1.0, scores.shape[1] + 1)[:, None], scores.shape), axis=1)
    return place


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


def list_values(n_rankings: int, metrics: Sequence[str], top: Sequence[int]) -> tuple[Value, ...]:
    """The numbers of a comparison, in the order in which ``measure_values`` gives them."""
    names, pairs = [name for metric in metrics for name in METRICS[metric].names], list(itertools.combinations(range(n_rankings), 2))
    alone = [Value(name, r) for name in names for r in range(n_rankings)]
    return (*alone, *(Value(name, a, b) for name in (*names, *(agreement.name for agreement in agreements(top))) for a, b in pairs))


def measure_values(buffers: Buffers, tables: dict[str, Any], scores: Sequence[np.ndarray], top: Sequence[int]) -> np.ndarray:
    """Every number of a comparison, ``(outputs, values, n)``, of a slice of ranked rows; ``tables`` are those of the metrics asked for, by name."""
    outputs, _, n = scores[0].shape
    alone = np.concatenate([METRICS[metric].measure(buffers, some, scores) for metric, some in tables.items()], axis=1)
    a, b = np.array(list(itertools.combinations(range(len(scores)), 2)), np.int64).reshape(-1, 2).T
    found = [alone.reshape(outputs, -1, n), (alone[:, :, a] - alone[:, :, b]).reshape(outputs, -1, n)]
    orders = {order: [order(some) for some in scores] for order in (by_score, by_size)}
    for agreement in agreements(top):
        places = orders[agreement.order]
        found += [agreement.measure(one, other)[:, None] for one, other in itertools.combinations(places, 2)]
    return np.concatenate(found, axis=1)
