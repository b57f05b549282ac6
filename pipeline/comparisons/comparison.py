"""What is compared, and how: the record that every task gets. Tables are named by where they were broadcast to."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leafledger.kernels.comparison.agreement import AREAS, Value, agreements, list_values
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.rankings import EXACT

from ..dataset.columns.labels import LabelColumns
from ..dataset.files.listing import WorkItem
from ..models.model import Feature
from ..models.row_output import RowOutput
from .differing import Named

REMOVAL = "removal"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Where scores come from: a method with its tables, or the columns of an earlier run, ``(outputs, players)``."""

    name: str  # as it was asked for
    method: str
    tables: str  # their URI, empty of a run
    run: str | None
    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class ComparedItem:
    """A work item, and where earlier runs have the parts of its rows."""

    item: WorkItem
    parts: tuple[str, ...]  # of the rankings that are runs, in their order

    def __str__(self) -> str:
        return str(self.item)


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of the data, spread evenly over all."""

    size: int
    n_rows: int  # that there are in all
    start: tuple[int, ...]  # of every item, how many rows come before it

    def choose(self, part: int, done: int, n: int) -> np.ndarray:
        """Find the rows of a slice that belong to the sample.

        Parameters
        ----------
        part : int
            Number of the item.
        done : int
            Rows of the item that come before the slice.
        n : int
            Rows of the slice.

        Returns
        -------
        (chosen,) int64
            Ascending, from 0 to n - 1.
        """
        first = self.start[part] + done
        before = np.array([row * self.size // self.n_rows for row in range(first, first + n + 1)])
        return np.flatnonzero(before[1:] > before[:-1])


@dataclass(frozen=True, slots=True)
class Gaps:
    """How prediction gaps are measured, and on which rows: they cost thousands of times what attributions do."""

    tables: tuple[str, ...]  # their URIs, one for every scale
    noise: str
    seed: int  # of the points that gaps are estimated by, or EXACT
    sample: Sample


@dataclass(frozen=True, slots=True)
class Removal:
    """How predictions without the first features are measured, on rows that have a label."""

    tables: str  # their URI
    labels: LabelColumns
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is compared, and how."""

    rankings: tuple[Ranking, ...]
    bins: str  # URI of the tables that turn values into bins
    areas: str  # URI of the tables that curves are made by
    gaps: Gaps
    removal: Removal | None
    top: tuple[int, ...]
    features: tuple[Feature, ...]  # those that splits ask for
    outputs: tuple[str, ...]  # that are compared: the model's, or one that differs from row to row
    row_output: RowOutput | None
    ids: tuple[str, ...]
    differing_rows: int
    slice_rows: int

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Numbers of every two rankings."""
        return tuple(itertools.combinations(range(len(self.rankings)), 2))

    @property
    def valued(self) -> tuple[int, ...]:
        """Numbers of the rankings that have values, and not ranks alone."""
        return tuple(r for r, ranking in enumerate(self.rankings) if not METHODS[ranking.method].phi.ranks)

    @property
    def valued_pairs(self) -> tuple[tuple[int, int], ...]:
        """Numbers of every two of these."""
        return tuple(itertools.combinations(self.valued, 2))

    @property
    def named(self) -> Named:
        """What rows are listed with."""
        names = tuple(feature.name for feature in self.features), tuple(ranking.name for ranking in self.rankings)
        return Named(self.outputs, *names, self.ids, max(self.top), self.differing_rows)


def name_values(comparison: Comparison, scales: Sequence[str]) -> list[tuple[Value, ...]]:
    """Name what is measured of every row, of the rows of the sample, and of those with a label."""
    n = len(comparison.rankings)
    errors = () if comparison.gaps.seed == EXACT else tuple(Value(f"{scale} error", r) for scale in scales for r in range(n))
    removal = () if comparison.removal is None else tuple(f"{REMOVAL} {size}" for size in comparison.removal.sizes)
    return [list_values(AREAS, n, agreements(comparison.top)), (*list_values(scales, n), *errors), list_values(removal, n)]
