"""Progress of a run: a Work record before each stage, and a callback for every piece done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """Work about to be done piece by piece."""

    doing: str  # in words
    run: str  # its folder
    n_items: int  # 0 if not divided
    n_rows: int
    where: str = ""  # in words, see `Placement.describe`

    @property
    def said(self) -> str:
        """What is done and where, in words."""
        return f"{self.doing} {self.where}".rstrip()


Progress = Callable[[Work], Callable[[Any], None]]  # called with the work; returns a function of every Part made, or WorkItem counted


def no_progress(work: Work) -> Callable[[Any], None]:  # noqa: ARG001 - the shape of a Progress
    """Show no progress.

    Returns
    -------
    callable
        Takes a piece of the work that is done, and does nothing with it.
    """
    return lambda done: None
