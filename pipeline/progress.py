"""What a run says of its work while it does it: before each stage what is to be done, then every piece as it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """What is about to be done, piece by piece."""

    doing: str  # in words
    run: str  # its folder
    n_items: int  # 0 where it is all one piece
    n_rows: int
    where: str = ""  # in words, see `Placement.describe`

    @property
    def said(self) -> str:
        """What is done, and where."""
        return f"{self.doing} {self.where}".rstrip()


Progress = Callable[[Work], Callable[[Any], None]]  # called with the work, then with every Part as it is made, or WorkItem as it is counted


def no_progress(work: Work) -> Callable[[Any], None]:  # noqa: ARG001 - the shape of a Progress
    """Show nothing of a run.

    Returns
    -------
    callable
        Takes a piece of the work that is done, and does nothing with it.
    """
    return lambda done: None
