"""Tables of whole symmetric trees with so many comparisons that a leaf cannot be looked at for every code.

The codes of such a tree are its leaves. With players S present, a row counts with the bits of S and a background row with the others:

    v(S; code) = sum over background codes of their share times the value of the leaf that has the code's bits of S, and theirs elsewhere.

Players are decided one after the other. An absent one's bits join those of the background; a present one's join the row's, and its share is
summed out. So a coalition costs one product of the tree's values with a vector of shares, and all of them 2^(players + bits) multiplications, where
looking at every leaf for every code takes 4^bits times the players. Weighted sums over coalitions are put together on the way back, for all codes.
"""

from typing import NamedTuple

import numpy as np

from .coalitions import View, Weights
from .subtrees import EDGE_BIT, EDGE_OUTCOME, EDGE_PLAYER, MOST_BITS, Subtrees


class _Sums(NamedTuple):
    """Sums over the coalitions that players already decided on allow, for the codes of the others and of those that are present."""

    apart: np.ndarray  # (present, others) float64, of values weighted as coalitions that a player stays out of
    joined: np.ndarray  # (present, others) float64, weighted by the sum of both weights
    of_player: tuple[np.ndarray, ...]  # (present, others) float64 each, of every own player not decided on, last first: joined, where it is present


class _Game(NamedTuple):
    """What all coalitions share."""

    n_bits: list[int]  # of every player of the view, own ones first
    n_own: int
    weights: Weights

    def weigh(self, own: int, others: int) -> tuple[float, float]:
        """Return the weights of a coalition of so many that a player stays out of, and of the same with the player among them."""
        across = self.weights.across[others, len(self.n_bits) - self.n_own - others]
        out = self.weights.within[own, self.n_own - 1 - own] if own < self.n_own else 0.0
        among = self.weights.within[own - 1, self.n_own - own] if own else 0.0
        return float(across * out), float(across * among)


def is_whole(subtrees: Subtrees, u: int) -> bool:
    """Tell whether a coded subtree is a whole symmetric tree of more comparisons than other subtrees have."""
    return subtrees.n_above[u] == 0 and subtrees.bits[u] > MOST_BITS


def values_by_code(subtrees: Subtrees, u: int, value: np.ndarray) -> np.ndarray:
    """Return the values of a whole tree's leaves by their codes, ``(width, codes)``."""
    some = slice(subtrees.leaves.start[u], subtrees.leaves.start[u + 1])
    edges = subtrees.leaves.edges[subtrees.leaves.edge_start[some.start] : subtrees.leaves.edge_start[some.stop]]
    codes = (edges[:, EDGE_OUTCOME].astype(np.int64) << edges[:, EDGE_BIT]).reshape(some.stop - some.start, -1).sum(axis=1)
    found = np.zeros((value.shape[1], 1 << int(subtrees.bits[u])))
    found[:, codes] = value[subtrees.leaves.node[some]].T
    return found


def _sum_up(game: _Game, shares: np.ndarray, values: np.ndarray, player: int, own: int, others: int) -> _Sums:
    """Decide on a player and all that follow, ``shares (open, absent)`` and ``values (present, open, absent)`` by the bits of those decided on.

    The player's own bits are the last of the open ones, so that an absent one's join the others' without a copy.
    """
    if player == len(game.n_bits):
        out, among = game.weigh(own, others)
        found = np.einsum("pa,a->p", values[:, 0], shares[0])[:, None]
        return _Sums(out * found, (out + among) * found, ())
    mine, (n_present, n_open, n_absent) = 1 << game.n_bits[player], values.shape
    rest, is_own = n_open // mine, player < game.n_own
    absent = _sum_up(game, shares.reshape(rest, -1), values.reshape(n_present, rest, -1), player + 1, own, others)
    apart = values.reshape(n_present, rest, mine, n_absent).transpose(0, 2, 1, 3).reshape(-1, rest, n_absent)
    there = _sum_up(game, shares.reshape(rest, mine, n_absent).sum(axis=1), apart, player + 1, own + is_own, others + (not is_own))

    def open_up(sums: np.ndarray) -> np.ndarray:
        return sums.reshape(n_present, mine, rest).transpose(0, 2, 1)

    def both(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return (open_up(one) + other[:, :, None]).reshape(n_present, -1)

    alone = (open_up(there.joined).reshape(n_present, -1),) if is_own else ()
    of_others = tuple(both(*pair) for pair in zip(there.of_player, absent.of_player, strict=True))
    return _Sums(both(there.apart, absent.apart), both(there.joined, absent.joined), (*of_others, *alone))


def fill_whole(subtrees: Subtrees, u: int, shares: np.ndarray, view: View, weights: Weights, value: np.ndarray) -> np.ndarray:
    """Make the table of a whole tree in one view, ``(codes, width, own) float64``."""
    n_bits, by_code = int(subtrees.bits[u]), values_by_code(subtrees, u, value)
    edges = subtrees.leaves.edges[subtrees.leaves.edge_start[subtrees.leaves.start[u]] :][:n_bits]  # of its first leaf: a bit each
    player = np.zeros(n_bits, np.int64)
    player[edges[:, EDGE_BIT]] = view.who[edges[:, EDGE_PLAYER]]
    order = np.argsort(-player, kind="stable")  # those of absent players, -1, come last
    axes = n_bits - 1 - order  # of an array with an axis for every bit, the highest first

    def arrange(codes: np.ndarray) -> np.ndarray:
        return codes.reshape((2,) * n_bits).transpose(axes).reshape(-1)

    there, n_absent = player >= 0, 1 << int((player < 0).sum())
    game = _Game(np.bincount(player[there], minlength=view.n_players).tolist(), view.rows.size, weights)
    values = np.stack([arrange(each) for each in by_code]).reshape(len(by_code), -1, n_absent)
    found = _sum_up(game, arrange(shares).reshape(-1, n_absent), values, 0, 0, 0)
    table = np.stack([sums - found.apart for sums in found.of_player[::-1]], axis=2).transpose(1, 0, 2).repeat(n_absent, axis=0)
    place = arrange(np.arange(1 << n_bits))
    out = np.empty(table.shape)
    out[place] = table
    return out
