"""States merged in one tree over their places, in whatever order they come: the same bits whoever made them, and few held at once."""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

FAN_IN = 8  # states merged at a time
State = TypeVar("State")


class MergeTree(Generic[State]):
    """A tree of fan-in FAN_IN over places 0, 1, 2, …; what comes is merged as soon as all that it is merged with is there.

    Places that never come, or have nothing, are left out, and nothing else of the tree changes. States that come in turn leave at most FAN_IN - 1
    waiting on every level; those that come late leave what waits for them.

    Parameters
    ----------
    merge : callable
        ``(states) -> state`` of two states or more, in the order of their places.
    """

    def __init__(self, merge: Callable[[Sequence[State]], State]):
        self._merge = merge
        self._waiting: dict[tuple[int, int], dict[int, State | None]] = {}  # children, by their places, of nodes by level and place

    def add(self, place: int, state: State | None, level: int = 0) -> None:
        """Put a state in its place, each once.

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
        """Merge all that there is; the tree is empty afterwards.

        Returns
        -------
        State or None
            None where there is nothing.
        """
        while self._waiting:
            level, place = min(self._waiting)
            state = self._join(self._waiting.pop((level, place)))
            if not self._waiting:
                return state  # one above the other, single ones leave it as it is
            self.add(place, state, level)
        return None
