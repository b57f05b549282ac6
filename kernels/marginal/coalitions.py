"""A game as one group of its players sees it, and leaves that are looked at so one by one."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..trees.lookup import MARK_BIT
from .subtrees import Subtrees


class View(NamedTuple):
    """A game as one group of a subtree's players sees it: others may come together, as one; own ones gain."""

    who: np.ndarray  # (columns,) int64, which player of the view each of the subtree's is part of
    rows: np.ndarray  # (own,) int32, row of phi of each own player; they are the view's first

    @property
    def n_players(self) -> int:
        return int(self.who.max(initial=-1)) + 1


Views = Callable[[np.ndarray, np.ndarray], list[View]]  # of a subtree, from its players and from the groups they are in


def everyone(players, groups) -> list[View]:  # noqa: ARG001 - the shape of views
    """Each player by itself, the game without groups."""
    return [View(np.arange(players.size), players)]


def whole_groups(players, groups) -> list[View]:  # noqa: ARG001 - the shape of views
    """Groups as players: the quotient game."""
    rows, who = np.unique(groups, return_inverse=True)
    return [View(who.astype(np.int64), rows.astype(np.int32))]


def each_group(players, groups) -> list[View]:
    """Every group by itself, the others each as one player."""
    numbers, group = np.unique(groups, return_inverse=True)
    views = []
    for g in range(max(1, numbers.size)):
        mine = group == g
        others = mine.sum() + np.where(group < g, group, group - 1)
        views.append(View(np.where(mine, np.cumsum(mine) - 1, others).astype(np.int64), players[mine]))
    return views


class Weights(NamedTuple):
    """Integrals of t^b (1 - t)^a, ``[b, a]``: over the game value between groups, and over that within a group."""

    across: np.ndarray  # (n, n) float64
    within: np.ndarray  # (n, n) float64


Seen = Sequence[tuple[int, View]]  # subtrees with their views


class Leaves(NamedTuple):
    """Deep leaves as views see them: a leaf that is seen by several groups stands once for each. A row's code has a bit for each player it fails."""

    marks: np.ndarray  # (marks, 5) int32, see lookup.LookupTables
    start: np.ndarray  # (leaves + 1,) int64, leaf l's marks are marks[start[l]:start[l + 1]]
    column: np.ndarray  # (leaves + 1,) int64, leaf l's own players gain in target[column[l]:column[l + 1]], in the order of their bits
    target: np.ndarray  # int32, row of the output's phi
    value: np.ndarray  # (leaves, width) float64
    output: np.ndarray  # (leaves,) int32
    words: np.ndarray  # uint32, category sets


def lay_out_leaves(deep: Subtrees, seen: Seen, value, output) -> Leaves:
    """Leaves as they are seen; ``value (nodes, width)`` and ``output (deep subtrees,)``."""
    marks = []
    for u, view in seen:
        mine = deep.marks[deep.start[u] : deep.start[u + 1]].copy()
        mine[:, MARK_BIT] = view.who[mine[:, MARK_BIT]]
        marks.append(mine)
    subtrees = np.array([u for u, _ in seen], np.int64)
    return Leaves(
        marks=np.concatenate([np.zeros((0, 5), np.int32), *marks]),
        start=np.cumsum([0, *map(len, marks)]),
        column=np.cumsum([0, *(view.rows.size for _, view in seen)]),
        target=np.concatenate([np.zeros(0, np.int32), *(view.rows for _, view in seen)]),
        value=value[deep.leaf[subtrees]],
        output=output[subtrees],
        words=deep.words,
    )


def no_leaves(words) -> Leaves:
    """None."""
    start, none = np.zeros(1, np.int64), np.zeros(0, np.int32)
    return Leaves(np.zeros((0, 5), np.int32), start, start, none, np.zeros((0, 1)), none, words)


@jit
def add_gains(leaves, leaf, gained, i, phi):
    """Add what own players gained at a leaf, in subtrees of its value, for row i."""
    column = leaves.column[leaf]
    for k in range(leaves.value.shape[1]):
        for p in range(gained.size):
            phi[leaves.output[leaf] + k, leaves.target[column + p], i] += leaves.value[leaf, k] * gained[p]
