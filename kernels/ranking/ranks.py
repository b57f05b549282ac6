"""Ranks of players on every row: 1 the first, 0 for whom a row does not rank; behind them two scores of the ranking."""

from typing import Any

import numpy as np

from ..buffers import Buffers
from ..ordering import ranks_by_score
from ..reductions import MOMENTS, Reduction
from ..summaries import ABOUT_VALUES, Shown, Subject, Summary, Table, label_players, tabulate_moments
from ..trees.forest import Forest

N_SCORES = 2  # rows of phi behind the players' ranks


def rows_with_scores(forest: Forest) -> np.ndarray:
    """Number the rows of phi: every player, those in no split too, which have their places in a ranking, then the scores.

    Parameters
    ----------
    forest : Forest

    Returns
    -------
    rows : (all players + 2,) int64
    """
    return np.arange(forest.n_all + N_SCORES)


def scores_of(ranks: np.ndarray) -> np.ndarray:
    """Turn ranks into scores that order players the same way.

    Parameters
    ----------
    ranks : (outputs, players, n) float64 or int64
        from 1, and 0 for whom a row does not rank

    Returns
    -------
    scores : (outputs, players, n) float64
        the highest for rank 1, down to 1; 0 for whom a row does not rank
    """
    return np.where(ranks > 0, ranks.shape[1] + 1 - ranks, 0.0)


def _update(state: Any, ranks: np.ndarray, n: int, labels: Any = None) -> Any:
    """Whom a row does not rank comes after all others there."""
    counted = np.where(ranks == 0, float(ranks.shape[1] - N_SCORES + 1), ranks)
    counted[:, -N_SCORES:] = ranks[:, -N_SCORES:]
    return MOMENTS.update(state, counted, n, labels)


def _finalize(state: Any, place: np.ndarray, n_places: int) -> dict[str, np.ndarray]:
    """Rank players by mean rank; scores have rank 0."""
    moments = MOMENTS.finalize(state, place, n_places)
    rank = np.zeros(moments["mean"].shape, np.int64)
    rank[:, :-N_SCORES] = ranks_by_score(-moments["mean"][:, :-N_SCORES], axis=1)
    return {**moments, "rank": rank}


RANKS = Reduction("ranks", MOMENTS.init, _update, MOMENTS.merge, _finalize)


def _read_phi(buffers: Buffers) -> np.ndarray:
    return buffers.phi


def summarize_ranks(name: str, score: str, description: str) -> Summary:
    """Declare the summary of a method that writes ranks and scores.

    Parameters
    ----------
    name : str
        of the summary
    score : str
        what the scores are called on the screen
    description : str
        of the summary's table, in a few words

    Returns
    -------
    Summary
    """

    def tabulate(state: Any, subject: Subject) -> dict[str, Table]:
        labels, place = label_players(subject)
        return tabulate_moments(name, RANKS.finalize(state, place, len(subject.players)), labels, subject)

    return Summary(
        name=name,
        reduction=RANKS,
        reads=_read_phi,
        tabulate=tabulate,
        columns=("output", "feature", *ABOUT_VALUES, "rank"),
        description=description,
        display=(
            Shown("rank", "rank", "d"),
            Shown("feature", "feature"),
            Shown("mean", f"mean rank, {score}", ".4g"),
            Shown("std", "std", ".4g"),
        ),
    )
