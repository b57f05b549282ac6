"""Labels and predictions by cells of predictions: exact sums that add up over parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest

import numpy as np

CELLS = 20  # of about as many rows each


@dataclass(frozen=True, slots=True)
class Actual:
    """Sums of the rows with a label and a prediction, by cell, ascending."""

    n: tuple[int, ...] = ()
    predicted: tuple[Fraction, ...] = ()
    labels: tuple[Fraction, ...] = ()

    def __add__(self, other: "Actual") -> "Actual":
        n = tuple(map(sum, zip_longest(self.n, other.n, fillvalue=0)))
        mine, theirs = ((found.predicted, found.labels) for found in (self, other))
        predicted, labels = (tuple(a + b for a, b in zip_longest(*pair, fillvalue=Fraction())) for pair in zip(mine, theirs, strict=True))
        return Actual(n, predicted, labels)


def count_actual(edges: Sequence[float], totals: np.ndarray, labels: np.ndarray) -> Actual:
    """Sum up labels and predictions in the cells between ascending edges, below the first and above the last."""
    known = np.isfinite(totals) & np.isfinite(labels)
    cell, n = np.searchsorted(np.array(edges), totals[known], side="right"), len(edges) + 1
    sums = (tuple(map(Fraction, np.bincount(cell, values[known], n).tolist())) for values in (totals, labels))
    return Actual(tuple(np.bincount(cell, minlength=n).tolist()), *sums)
