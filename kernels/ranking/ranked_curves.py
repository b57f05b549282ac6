"""The margin on the way through a ranking: ranks, insertion and deletion curves, and the areas under them, of every row."""

from typing import Any, NamedTuple

import numpy as np

from ..ordering import ranks_by_score
from .curves import CurveTables, add_areas

SLICE = 128  # rows whose curves are laid out at a time


class RankedCurves(NamedTuple):
    """How rows are ranked, and the trees that are asked for sets of features along the ranking."""

    curves: CurveTables
    ranker: np.ndarray  # (1,) int64, which method ranks by its values
    of_ranker: Any  # that method's tables


def add_ranked_curves(bins: np.ndarray, tables: CurveTables, scores: np.ndarray, phi: np.ndarray, path: np.ndarray) -> None:
    """Rank players by score, the highest first; add ranks, and the areas of insertion and deletion (Li, Yu and Low 2026, Eq. 5).

    Parameters
    ----------
    bins : (used, n) unsigned integers
    tables : CurveTables
    scores : (outputs, players, n) float64; players are those that some split asks for
    phi : (outputs, all players + 2, n) float64, ranks from 1 and areas in margin units are added
    path : (outputs, 2 * (all players + 1), n) float64, margin units, overwritten: the margin with 0, 1, … players present, insertion's and then
        deletion's
    """
    outputs, _, n = scores.shape
    n_points, before = path.shape[1] // 2, tables.asked.before
    players = np.arange(before.size) + before
    for first in range(0, n, SLICE):
        some = slice(first, first + SLICE)
        part = scores[:, :, some]
        areas, curves = np.zeros((2, outputs, 1, part.shape[2])), np.zeros((outputs, 2, part.shape[2], n_points))
        add_areas(np.ascontiguousarray(bins[:, some]), tables, [part], areas[0], areas[1], curves)
        of_all = np.zeros((outputs, n_points - 1, part.shape[2]))
        of_all[:, players] = part
        phi[:, :-2, some] += ranks_by_score(of_all, axis=1)
        phi[:, -2:, some] += areas[:, :, 0].swapaxes(0, 1)
        path[:, :, some] = curves.swapaxes(2, 3).reshape(outputs, 2 * n_points, part.shape[2])
