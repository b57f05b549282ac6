"""Ranks, among all players, of those that occur in splits; players in no split have score 0 on every row."""

from typing import NamedTuple

import numpy as np

from ..arrays.ordering import SCORE, SIZE, places_by_score, ranks_by_score


class PlayerRanks(NamedTuple):
    """Ranks among all players of those in splits, starting at 1; ties keep the order of players.

    A ranking published without scores has only one of the two orders; the other is None.
    """

    by_score: np.ndarray | None  # (outputs, players, n) int64, by descending score
    by_size: np.ndarray | None  # (outputs, players, n) int64, by descending magnitude of the score

    def take(self, chosen: np.ndarray) -> "PlayerRanks":
        """Select rows.

        Parameters
        ----------
        chosen : (m,) int64

        Returns
        -------
        PlayerRanks
            contiguous
        """
        return PlayerRanks(*(None if each is None else np.ascontiguousarray(each[..., chosen]) for each in self))

    def of_players(self, chosen: np.ndarray) -> "PlayerRanks":
        """Select players; their ranks stay.

        Parameters
        ----------
        chosen : (m,) int64

        Returns
        -------
        PlayerRanks
            contiguous
        """
        return PlayerRanks(*(None if each is None else each.take(chosen, axis=1) for each in self))


def place_scores(scores: np.ndarray, players: np.ndarray, n_all: int) -> PlayerRanks:
    """Rank players by scores, with score 0 for players in no split.

    Parameters
    ----------
    scores : (outputs, players, n) float64
    players : (players,) int, numbers among all, ascending
    n_all : int
        players, with those that no split asks for
    """
    before = np.asarray(players, np.int64) - np.arange(len(players))
    return PlayerRanks(*(places_by_score(some, before, n_all) for some in (scores, np.abs(scores))))


def place_ranks(ranks: np.ndarray, players: np.ndarray, order: str) -> PlayerRanks:
    """Take over a ranking that already covers all players.

    Parameters
    ----------
    ranks : (outputs, all players, n) float64 or int64
        from 1; whom a row does not rank has 0, and comes after all others in the order of players
    players : (players,) int, numbers among all of those that some split asks for, ascending
    order : str
        SCORE or SIZE, what the ranking is by

    Returns
    -------
    PlayerRanks
        those in the other order are not known
    """
    last_first = -np.where(ranks > 0, ranks, np.inf)
    places = np.ascontiguousarray(ranks_by_score(last_first, axis=1)[:, players])
    return PlayerRanks(places if order == SCORE else None, places if order == SIZE else None)


def rank_among(places: np.ndarray) -> np.ndarray:
    """Rank players of splits among themselves by their ranks among all."""
    return ranks_by_score(-places, axis=1)
