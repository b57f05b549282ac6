"""Players of the marginal game at a subtree: single features, whole groups, or one group's features among whole groups.

Groups that only come whole are the players of the quotient game (Owen 1977). Shapley values of groups are those of the quotient by all groups. Owen's
value of a group's members is that of a quotient with the other groups whole and the members single; the game within a group is the same, with weights
that never let other groups come. In a sequence of groups the earlier ones are one player, with weights that always let it come, and the later ones
are absent: background rows that fail them do not arrive at a leaf. ``subsets`` and ``patterns`` use the layout of deep leaves made here.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ..jit.decorator import jit
from ..trees.lookup import MARK_BIT, WORD_BITS
from .background import Background
from .subtrees import Subtrees


class View(NamedTuple):
    """A quotient of the game at one subtree, from one group's view: other groups may be single players; own players get values."""

    who: np.ndarray  # (players,) int64, the quotient's player that each of the subtree's players belongs to; -1 for an absent one
    rows: np.ndarray  # (rows, own) int32, row of phi of each own player; own players come first in the quotient
    least: int = 0  # players that tables have room for, if there are fewer

    @property
    def n_players(self) -> int:
        """Number of players of the quotient."""
        return max(int(self.who.max(initial=-1)) + 1, self.least)


Views = Callable[[np.ndarray, np.ndarray], list[View]]  # from a subtree's players and their groups


def everyone(players: np.ndarray, groups: np.ndarray) -> list[View]:  # noqa: ARG001 - the shape of views
    """View the game without groups: every player is single.

    Parameters
    ----------
    players : (players,) int32
        of a subtree, numbers of rows of phi
    groups : (players,) int32
        of each player; they do not count

    Returns
    -------
    list of View
        one
    """
    return [View(np.arange(players.size), players)]


def whole_groups(players: np.ndarray, groups: np.ndarray) -> list[View]:  # noqa: ARG001 - the shape of views
    """View the quotient game by all groups.

    Parameters
    ----------
    players, groups : (players,) int32
        as ``everyone`` takes them; the groups' numbers are rows of phi

    Returns
    -------
    list of View
        one, whose own players are the groups, ascending
    """
    rows, who = np.unique(groups, return_inverse=True)
    return [View(who.astype(np.int64), rows.astype(np.int32))]


def each_group(players: np.ndarray, groups: np.ndarray) -> list[View]:
    """View the game once for each group, with its players single and the other groups whole.

    Parameters
    ----------
    players, groups : (players,) int32
        as ``everyone`` takes them

    Returns
    -------
    list of View
        one for each group, ascending; one of nobody where there are no players
    """
    numbers, group = np.unique(groups, return_inverse=True)
    views = []
    for g in range(max(1, numbers.size)):
        mine = group == g
        others = mine.sum() + np.where(group < g, group, group - 1)
        views.append(View(np.where(mine, np.cumsum(mine) - 1, others).astype(np.int64), players[mine]))
    return views


def in_sequence(place: np.ndarray) -> Views:
    """View the game once for each group of a sequence, with its players single, earlier groups as one player, and later ones absent.

    Tables have room for the earlier groups' player at every place, so that they have one size in all sequences.

    Parameters
    ----------
    place : (groups,) int
        of each group in the sequence

    Returns
    -------
    Views
    """

    def view(players: np.ndarray, groups: np.ndarray) -> list[View]:
        views = []
        for g in np.unique(groups):
            mine = groups == g
            n_own = int(mine.sum())
            others = np.where(place[groups] < place[g], n_own, -1)
            views.append(View(np.where(mine, np.cumsum(mine) - 1, others), players[mine], n_own + int(n_own < players.size)))
        return views or everyone(players, groups)

    return view


def any_sequence(players: np.ndarray, groups: np.ndarray) -> list[View]:
    """View the game in one of the sequences of groups: tables are as large in any other.

    Parameters
    ----------
    players, groups : (players,) int32
        as ``everyone`` takes them

    Returns
    -------
    list of View
        as those of ``in_sequence``
    """
    return in_sequence(np.arange(groups.max(initial=0) + 1))(players, groups)


class Weights(NamedTuple):
    """Weights ``[b, a]`` of coalitions with b others present and a absent, see ``game_values.Weighing``: among groups, and within a group."""

    across: np.ndarray  # (n, n) float64
    within: np.ndarray  # (n, n) float64


Seen = Sequence[tuple[int, View]]  # numbers of deep subtrees, each with a view


class Leaves(NamedTuple):
    """Deep leaves, one entry for each view. A row's code has a bit for each player that it fails."""

    marks: np.ndarray  # (marks, 5) int32, see lookup.LookupTables
    start: np.ndarray  # (leaves + 1,) int64, leaf l's marks are marks[start[l]:start[l + 1]]
    words: np.ndarray  # uint32, category sets
    column: np.ndarray  # (leaves + 1,) int64, leaf l's own players have the rows target[column[l]:column[l + 1]], in the order of their bits
    target: np.ndarray  # int32, row of the output's phi
    value: np.ndarray  # (leaves, width) float64, margin units
    output: np.ndarray  # (leaves,) int32, the first that the leaf adds to


def lay_out_leaves(deep: Subtrees, seen: Seen, value: np.ndarray, output: np.ndarray) -> Leaves:
    """Lay out deep leaves by their views."""
    marks = []
    for u, view in seen:
        mine = deep.marks[deep.start[u] : deep.start[u + 1]].copy()
        mine[:, MARK_BIT] = view.who[mine[:, MARK_BIT]]
        marks.append(mine[mine[:, MARK_BIT] >= 0])
    subtrees = np.array([u for u, _ in seen], np.int64)
    return Leaves(
        marks=np.concatenate([np.zeros((0, 5), np.int32), *marks]),
        start=np.cumsum([0, *map(len, marks)]),
        words=deep.words,
        column=np.cumsum([0, *(view.rows.size for _, view in seen)]),
        target=np.concatenate([np.zeros(0, np.int32), *(view.rows for _, view in seen)]),
        value=value[deep.leaves.node[subtrees]],
        output=output[subtrees],
    )


def no_leaves(words: np.ndarray) -> Leaves:
    """Return an empty layout."""
    start, none = np.zeros(1, np.int64), np.zeros(0, np.int32)
    return Leaves(np.zeros((0, 5), np.int32), start, words, start, none, np.zeros((0, 1)), none)


def view_patterns(background: Background, u: int, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Return which of a view's players background rows fail at deep subtree u: those with a failed member; without rows that fail an absent one."""
    some = slice(background.start[u], background.start[u + 1])
    patterns, arrives = np.zeros_like(background.patterns[some]), np.ones(some.stop - some.start, bool)
    for bit, who in enumerate(view.who.tolist()):
        fails = background.patterns[some, bit // WORD_BITS] >> bit % WORD_BITS & 1
        if who >= 0:
            patterns[:, who // WORD_BITS] |= fails << who % WORD_BITS
        else:
            arrives &= fails == 0
    return patterns[arrives], background.times[some][arrives]


def count_rows(background: Background, u: int) -> float:
    """Count the background's rows, or sum their weights, as deep subtree u has them."""
    return background.total(background.times[background.start[u] : background.start[u + 1]])


@jit
def add_gains(leaves: Leaves, leaf: int, gained: np.ndarray, i: int, phi: np.ndarray) -> None:
    """Add the contributions of one leaf's own players to phi, for one row."""
    column = leaves.column[leaf]
    for k in range(leaves.value.shape[1]):
        for p in range(gained.size):
            phi[leaves.output[leaf] + k, leaves.target[column + p], i] += leaves.value[leaf, k] * gained[p]
