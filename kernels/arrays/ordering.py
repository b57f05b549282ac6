"""Ranks from orders and scores, starts of sorted groups, and pairs of integers packed into one."""

import numpy as np

PAIR_BITS = 32  # bits of a pair's second number
SECOND_MASK = (1 << PAIR_BITS) - 1
SCORE, SIZE = "score", "size"  # what ranks players: descending scores, or descending magnitudes of scores


def ranks_from_order(order: np.ndarray, n_players: int, axis: int) -> np.ndarray:
    """Turn orders into ranks: 1 for the first player of an order, 0 for players that the order omits.

    Parameters
    ----------
    order : int64, along ``axis`` distinct numbers of players, the first one first; at most ``n_players`` of them
    n_players : int
        length of the result along ``axis``

    Returns
    -------
    ranks : int64, shaped as ``order`` but for ``axis``
    """
    shape, ordinals = list(order.shape), [1] * order.ndim
    shape[axis], ordinals[axis] = n_players, order.shape[axis]
    ranks = np.zeros(shape, np.int64)
    np.put_along_axis(ranks, order, np.arange(1, order.shape[axis] + 1).reshape(ordinals), axis=axis)
    return ranks


def ranks_by_score(scores: np.ndarray, axis: int) -> np.ndarray:
    """Rank by descending score, 1 for the highest; equal scores keep their order, and NaN comes last.

    Parameters
    ----------
    scores : float64 or int64, players along ``axis``

    Returns
    -------
    ranks : int64, shaped as ``scores``
    """
    return ranks_from_order(np.argsort(-scores, axis=axis, kind="stable"), scores.shape[axis], axis)


def places_by_score(scores: np.ndarray, before: np.ndarray, n_all: int) -> np.ndarray:
    """Rank the listed players among all by descending score; unlisted players have score 0, and ties keep the order of all players.

    Parameters
    ----------
    scores : (outputs, players, n) float64
    before : (players,) int64
        how many players that are not listed come before each
    n_all : int
        players, with those that are not listed

    Returns
    -------
    places : (outputs, players, n) int64, 1 on top
    """
    n_others = n_all - before.size
    return ranks_by_score(scores, axis=1) + np.where(scores > 0, 0, np.where(scores < 0, n_others, before[:, None]))


def group_starts(group: np.ndarray, n_groups: int) -> np.ndarray:
    """Find where each group's entries start in a list sorted by group.

    Parameters
    ----------
    group : (n,) int, group of every entry, from 0 to ``n_groups - 1``; only how often each occurs counts, so the entries need not be sorted

    Returns
    -------
    start : (n_groups + 1,) int64, group g's entries are ``start[g]:start[g + 1]``
    """
    return np.concatenate(([0], np.cumsum(np.bincount(group, minlength=n_groups))))


def pack_pairs(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Pack each pair of integers into one integer that sorts by the first number, then by the second.

    Parameters
    ----------
    first, second : (n,) int, from 0 to 2**31 - 1 and to 2**32 - 1

    Returns
    -------
    pairs : (n,) int64
    """
    return (first.astype(np.int64) << PAIR_BITS) | second.astype(np.int64)


def unpack_pairs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unpack pairs made by ``pack_pairs``.

    Parameters
    ----------
    pairs : (n,) int64

    Returns
    -------
    first, second : (n,) int64
    """
    return pairs >> PAIR_BITS, pairs & SECOND_MASK
