"""Ranks of players by row, from 1, or 0 where unranked, followed by scores of the ranking."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays.ordering import ranks_by_score
from ..reductions.reduction import MOMENTS, Reduction
from ..reductions.summary import ABOUT_VALUES, Shown, Subject, Summary, Table, label_players, tabulate_moments
from ..slices.buffers import Buffers
from ..trees.forest import Forest


def rows_with_scores(n_scores: int) -> Callable[[Forest], np.ndarray]:
    """Number the rows of phi: every player, including those in no split, then the scores.

    Parameters
    ----------
    n_scores : int
        rows behind the players'

    Returns
    -------
    callable
        from a Forest to ``(all players + n_scores,) int64``
    """
    return lambda forest: np.arange(forest.n_all + n_scores)


def reduce_ranks(n_scores: int) -> Reduction:
    """Make the reduction of ranks and scores: moments, and players ranked by mean rank."""

    def update(state: Any, ranks: np.ndarray, n: int, labels: Any = None) -> Any:
        counted = np.where(ranks == 0, float(ranks.shape[1] - n_scores + 1), ranks)
        counted[:, -n_scores:] = ranks[:, -n_scores:]
        return MOMENTS.update(state, counted, n, labels)

    def finalize(state: Any, place: np.ndarray, n_places: int) -> dict[str, np.ndarray]:
        moments = MOMENTS.finalize(state, place, n_places)
        rank = np.zeros(moments["mean"].shape, np.int64)
        rank[:, :-n_scores] = ranks_by_score(-moments["mean"][:, :-n_scores], axis=1)
        return {**moments, "rank": rank}

    return Reduction("ranks", MOMENTS.init, update, MOMENTS.merge, finalize)


def _read_phi(buffers: Buffers) -> np.ndarray:
    return buffers.phi


def summarize_ranks(name: str, n_scores: int, score: str, description: str) -> Summary:
    """Declare the summary of a method that writes ranks and scores.

    Parameters
    ----------
    name : str
        of the summary
    n_scores : int
        rows of phi behind the players'
    score : str
        what the scores are called on the screen
    description : str
        of the summary's table, in a few words
    """

    reduction = reduce_ranks(n_scores)

    def tabulate(state: Any, subject: Subject) -> dict[str, Table]:
        labels, place = label_players(subject)
        return tabulate_moments(name, reduction.finalize(state, place, len(subject.players)), labels, subject)

    return Summary(
        name=name,
        reduction=reduction,
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
