"""Places of a slice's rows in their files, for messages and for what depends on a row's number."""

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class RowPlaces:
    """Files whose rows stand in a slice, one after the other."""

    where: tuple[str, ...]  # URI of each, or what else its rows are of; may be empty
    first_row: tuple[int, ...]  # number there of the first of its rows
    start: tuple[int, ...] = (0,)  # position of that row in the slice

    @classmethod
    def one(cls, where: str, first_row: int) -> "RowPlaces":
        """Make those of a slice of one file."""
        return cls((where,), (first_row,))

    def _find(self, row: int) -> int:
        return bisect_right(self.start, row) - 1

    def name(self, row: int) -> str:
        """Say where the row at a position comes from, as messages begin: "flights.parquet: row 17"."""
        k = self._find(row)
        return f"{self.where[k]}: " * bool(self.where[k]) + f"row {self.first_row[k] + row - self.start[k]}"

    def numbers(self, n_rows: int) -> np.ndarray:
        """Number the rows of a slice within their files, ``(n_rows,) int64``; what pads the slice goes on from its last row."""
        before = np.array(self.first_row) - self.start
        return np.arange(n_rows) + np.repeat(before, np.diff([*self.start, n_rows]))

    def spans(self, n_rows: int) -> list[tuple[int, int]]:
        """List where the rows of each file begin and end in a slice of ``n_rows``."""
        return [*zip(self.start, [*self.start[1:], n_rows], strict=True)]

    def span_of(self, row: int, n_rows: int) -> tuple[int, int]:
        """Tell where the rows of one row's file begin and end."""
        return self.spans(n_rows)[self._find(row)]
