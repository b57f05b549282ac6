"""Ranks, insertion and deletion curves, and the areas under them, of every row."""

from typing import Any, NamedTuple

import numpy as np

from ..arrays.ordering import ranks_by_score
from ..marginal.presence import PresenceTables, add_steps
from .curves import KINDS, CurveTables, add_areas

SLICE = 128  # rows whose curves are computed at a time
BEST = ("positive_features", "positive_margin", "negative_features", "negative_margin")
SCORES = (*KINDS, *BEST)  # scores of a row's ranking
TIE = 1e-12  # margins within this fraction of a curve's largest are ties


class PresentPlayers(NamedTuple):
    """The marginal game for which curves are computed."""

    presence: PresenceTables
    players: np.ndarray  # (players,) int64, numbers of the players in splits


class RankedCurves(NamedTuple):
    """Ranker of the rows, and the game evaluated along the ranking."""

    game: CurveTables | PresentPlayers
    ranker: np.ndarray  # (1,) int64, number of the ranking method
    of_ranker: Any  # that method's tables

    @property
    def players(self) -> np.ndarray:
        """Return the players in splits, ``(players,) int64``."""
        if isinstance(self.game, PresentPlayers):
            return self.game.players
        return np.arange(self.game.asked.before.size) + self.game.asked.before


def find_best(curves: np.ndarray) -> np.ndarray:
    """Find a ranking's positive players, the top features that raise the margin most, and its negative ones, the bottom features that lower it most
    (Li, Yu and Low 2026, S+* and S-* after Eq. 5).

    Parameters
    ----------
    curves : (outputs, 2, n, points) float64, margin units
        insertion and deletion

    Returns
    -------
    (outputs, 4, n) float64
        in the order of BEST; the fewest players of equals, also none
    """
    signed = curves * np.array([1.0, -1.0])[:, None, None]
    near = signed >= signed.max(axis=3, keepdims=True) - TIE * np.abs(curves).max(axis=3, keepdims=True)
    size = near.argmax(axis=3)
    margin = np.take_along_axis(curves, size[..., None], axis=3)[..., 0]
    return np.stack((size, margin), axis=2).reshape(len(curves), len(BEST), curves.shape[2])


def draw_curves(
    bins: np.ndarray, game: CurveTables | PresentPlayers, players: np.ndarray, n_all: int, scores: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the curves of rankings by descending score.

    Parameters
    ----------
    bins : (used, n) unsigned integers, n a multiple of BATCH
    players : (players,) int, numbers among all of those in splits, ascending
    n_all : int
        players, with those in no split
    scores : (outputs, players, n) float64

    Returns
    -------
    areas : (outputs, 2, n) float64, margin units
    curves : (outputs, 2, n, n_all + 1) float64, margin units
        in the order of KINDS
    """
    return _draw(bins, game, scores, _rank(players, n_all, scores))


def _rank(players: np.ndarray, n_all: int, scores: np.ndarray) -> np.ndarray:
    """Rank all players ``(outputs, n_all, n)``, those in no split by score 0."""
    of_all = np.zeros((scores.shape[0], n_all, scores.shape[2]))
    of_all[:, players] = scores
    return ranks_by_score(of_all, axis=1)


def _draw(bins: np.ndarray, game: CurveTables | PresentPlayers, scores: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute both curves ``(outputs, 2, n, points)``, and their areas ``(outputs, 2, n)``, of rankings ``(outputs, all players, n)`` by scores of
    the players in splits."""
    outputs, n_all, n = ranks.shape
    curves = np.zeros((outputs, 2, n, n_all + 1))
    if isinstance(game, PresentPlayers):
        add_steps(bins, game.presence, np.ascontiguousarray(ranks[:, game.players]), curves)
        curves = np.cumsum(curves, axis=3) + game.presence.base[:, None, None, None]
        return curves[..., 1:].mean(axis=3), curves
    areas = np.zeros((2, outputs, 1, n))
    add_areas(bins, game, [scores], areas[0], areas[1], curves)
    return areas[:, :, 0].swapaxes(0, 1), curves


def add_ranked_curves(bins: np.ndarray, tables: RankedCurves, scores: np.ndarray, phi: np.ndarray, path: np.ndarray) -> None:
    """Rank players by descending score; add ranks, and scores of the ranking (Li, Yu and Low 2026, Eq. 5)."""
    outputs, _, n = scores.shape
    n_points = path.shape[1] // 2
    for first in range(0, n, SLICE):
        some = slice(first, first + SLICE)
        part = scores[:, :, some]
        ranks = _rank(tables.players, n_points - 1, part)
        areas, curves = _draw(np.ascontiguousarray(bins[:, some]), tables.game, part, ranks)
        phi[:, : -len(SCORES), some] += ranks
        phi[:, -len(SCORES) :, some] += np.concatenate((areas, find_best(curves)), axis=1)
        path[:, :, some] = curves.swapaxes(2, 3).reshape(outputs, 2 * n_points, part.shape[2])
