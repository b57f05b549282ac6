"""The Comparison record for tasks: rankings, measures and samples, with URIs of broadcast tables."""

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
    """Source of scores: a method with its tables, or an earlier run's columns, ``(outputs, players)``."""

    name: str  # as requested
    method: str
    tables: str  # their URI, empty of a run
    run: str | None
    columns: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]  # of the features that it values, ascending; those in splits, and of some methods others; empty of ranks


@dataclass(frozen=True, slots=True)
class ComparedItem:
    """A work item, and where earlier runs have the parts of its rows."""

    item: WorkItem
    parts: tuple[str, ...]  # of the rankings that are runs, in their order

    def __str__(self) -> str:
        return str(self.item)


@dataclass(frozen=True, slots=True)
class Sample:
    """Sampled rows, spread evenly over the data."""

    size: int
    n_rows: int  # number of all rows
    start: tuple[int, ...]  # number of rows before every item

    def choose(self, part: int, done: int, n: int) -> np.ndarray:
        """Return the sampled rows of a batch.

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
    """Measurement of prediction gaps on sampled rows, since they cost thousands of times as much as attributions."""

    tables: tuple[str, ...]  # URIs, one for every scale
    noise: str
    seed: int  # seed of the estimating points, or EXACT
    sample: Sample


@dataclass(frozen=True, slots=True)
class Removal:
    """Measurement of predictions without the first features, on labelled rows."""

    tables: str  # their URI
    labels: LabelColumns
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rankings and measures of a comparison."""

    rankings: tuple[Ranking, ...]
    bins: str  # URI of the binning tables
    areas: str  # URI of the tables of curves
    gaps: Gaps
    removal: Removal | None
    top: tuple[int, ...]
    features: tuple[Feature, ...]  # features in splits
    outputs: tuple[str, ...]  # compared outputs: the model's, or one that differs by row
    row_output: RowOutput | None
    ids: tuple[str, ...]
    differing_rows: int
    slice_rows: int

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of rankings, by number."""
        return tuple(itertools.combinations(range(len(self.rankings)), 2))

    @property
    def valued(self) -> tuple[int, ...]:
        """Rankings with values, not only ranks, by number."""
        return tuple(r for r, ranking in enumerate(self.rankings) if not METHODS[ranking.method].phi.ranks)

    @property
    def valued_pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of rankings with values."""
        return tuple(itertools.combinations(self.valued, 2))

    @property
    def named(self) -> Named:
        """Properties for listing rows."""
        names = tuple(feature.name for feature in self.features), tuple(ranking.name for ranking in self.rankings)
        return Named(self.outputs, *names, self.ids, max(self.top), self.differing_rows)


def name_values(comparison: Comparison, scales: Sequence[str]) -> list[tuple[Value, ...]]:
    """Name the measures of all rows, of sampled rows, and of labelled rows."""
    n = len(comparison.rankings)
    errors = () if comparison.gaps.seed == EXACT else tuple(Value(f"{scale} error", r) for scale in scales for r in range(n))
    removal = () if comparison.removal is None else tuple(f"{REMOVAL} {size}" for size in comparison.removal.sizes)
    return [list_values(AREAS, n, agreements(comparison.top)), (*list_values(scales, n), *errors), list_values(removal, n)]
