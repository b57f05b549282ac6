"""Merging of states in a fixed tree over their positions: the same bits in any order of arrival."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

FAN_IN = 8  # states merged at a time
State = TypeVar("State")


class MergeTree(Generic[State]):
    """A tree of fan-in FAN_IN over positions 0, 1, 2, …; a node is merged as soon as all its children are there.

    Missing or empty positions are left out without changing the rest of the tree. States that arrive in order leave at most FAN_IN - 1 waiting per
    level; late states keep others waiting.

    Parameters
    ----------
    merge : callable
        ``(states) -> state`` of two states or more, in the order of their places.
    """

    def __init__(self, merge: Callable[[Sequence[State]], State]):
        self._merge = merge
        self._waiting: dict[tuple[int, int], dict[int, State | None]] = {}  # children by position, of nodes by level and position

    def add(self, place: int, state: State | None, level: int = 0) -> None:
        """Add the state of a position, once each.

        Parameters
        ----------
        place : int
            Among those of its level.
        state : State or None
            None where there is nothing in this place.
        level : int
            0 for what is merged first; ``level`` for what another tree merged of the FAN_IN^level places from ``place`` x FAN_IN^level on.
        """
        above = level + 1, place // FAN_IN
        node = self._waiting.setdefault(above, {})
        node[place] = state
        if len(node) == FAN_IN:
            self.add(above[1], self._join(self._waiting.pop(above)), above[0])

    def _join(self, node: dict[int, State | None]) -> State | None:
        there = [state for _, state in sorted(node.items()) if state is not None]
        return self._merge(there) if len(there) > 1 else there[0] if there else None

    def total(self) -> State | None:
        """Merge all states; the tree is empty afterwards.

        Returns
        -------
        State or None
            None where there is nothing.
        """
        while self._waiting:
            level, place = min(self._waiting)
            state = self._join(self._waiting.pop((level, place)))
            if not self._waiting:
                return state  # remaining levels have a single node, which merges to itself
            self.add(place, state, level)
        return None
