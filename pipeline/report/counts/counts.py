"""Two-dimensional counts of attributions and feature values on fixed grids, additive over parts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...dataset.columns.schema import column_values
from ...drift.measure.columns import lists_categories
from ...models.model import Feature
from ...runs.columns.top_attributions import as_texts

MISSING, BELOW = 0, 1  # bins before those of numbers, with one more above; categories follow missing values
BINS = 40  # bins of a number
SWARM = 120  # bins of attributions on the axis shared by all features
PHI = 40  # bins of attributions on the feature's own axis,
TAIL = 20  # and beyond either of its ends
QUANTILES = (0.05, 0.5, 0.95)
RANKS = 100  # cells of about as many rows each, for ranks of values and of attributions


@dataclass(frozen=True, slots=True)
class Values:
    """Bins of values: by edges, or by categories."""

    feature: Feature
    column: str  # of the parts
    edges: tuple[float, ...] = ()  # ascending; a value on an edge belongs above it; empty for categories
    points: tuple[float, ...] = ()  # the distinct values, one between every two edges; empty if there are many
    categories: tuple[str, ...] = ()  # names of values, in the order of bins; empty for numbers

    @property
    def ordered(self) -> bool:
        """Whether values are numbers."""
        return bool(self.edges)

    @property
    def n_bins(self) -> int:
        """Number of bins: missing, below, between edges or by category, above or other categories."""
        return len(self.edges) + 2 if self.ordered else len(self.categories) + 2


@dataclass(frozen=True, slots=True)
class CountedColumn:
    """A column of attributions to count."""

    column: str  # of the parts
    shared: tuple[float, float]  # ends of the axis shared by features
    own: tuple[float, ...]  # edges of the feature's own bins, see `lay_edges`
    values: Values | None  # None without values
    lacking: str = ""  # why there are no values, in words; else empty
    quantiles: tuple[float, ...] = (math.nan,) * len(QUANTILES)  # of the attributions of all rows, at QUANTILES, exact: bins are too wide
    ranked: tuple[tuple[float, ...], tuple[float, ...]] | None = None  # lower edges of cells of ranks but the first, of values, of attributions


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of rows."""

    swarm: np.ndarray  # (SWARM + 2, value bins) int64, first and last bins are beyond the axis
    own: np.ndarray  # (value bins, TAIL + PHI + TAIL) int64, outer bins include everything beyond
    sums: np.ndarray  # (value bins,) object, of attributions, as fractions, which add up to the same in any order
    lows: np.ndarray  # (value bins,) float64, smallest attribution; infinite if there is none
    highs: np.ndarray  # (value bins,) float64, largest attribution
    ranks: np.ndarray  # (cells of values, cells of attributions) int64, rows with a value; both one where there are no such cells

    def __add__(self, other: "Counts") -> "Counts":
        ends = np.minimum(self.lows, other.lows), np.maximum(self.highs, other.highs)
        return Counts(self.swarm + other.swarm, self.own + other.own, self.sums + other.sums, *ends, self.ranks + other.ranks)


def lay_edges(own: tuple[float, float], whole: tuple[float, float]) -> tuple[float, ...]:
    """Return the edges of bins of attributions.

    Parameters
    ----------
    own : (float, float)
        Ends of the feature's own axis, which has PHI cells of one width; the upper end is in the last of them.
    whole : (float, float)
        The smallest and largest attribution. Up to them there are TAIL cells on either side, for a rare value may have all of its rows there.

    Returns
    -------
    tuple of float
        Ascending; equal beside an end beyond which there is nothing. An attribution on an edge belongs above it.
    """
    low, high = own[0], float(np.nextafter(own[1], np.inf))
    below, above = np.linspace(min(whole[0], low), low, TAIL + 1), np.linspace(high, max(whole[1], high), TAIL + 1)
    return tuple(map(float, (*below[:-1], *np.linspace(low, high, PHI + 1), *above[1:])))


def no_rows(asked: CountedColumn) -> Counts:
    """Return counts of no rows."""
    n = asked.values.n_bins if asked.values else 1
    sums, ends = np.full(n, Fraction(), object), (np.full(n, np.inf), np.full(n, -np.inf))
    shape = [len(edges) + 1 for edges in asked.ranked or ((), ())]
    return Counts(np.zeros((SWARM + 2, n), np.int64), np.zeros((n, len(asked.own) - 1), np.int64), sums, *ends, np.zeros(shape, np.int64))


def _count_own(edges: tuple[float, ...], phi: np.ndarray, bins: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return counts, sums, minima and maxima of attributions in n value bins."""
    phi, cells = np.clip(phi, edges[0], edges[-1]), len(edges) - 1  # infinities do not add up
    placed = np.searchsorted(np.array(edges[1:-1]), phi, side="right")
    own = np.bincount(bins * cells + placed, minlength=n * cells).reshape(n, cells)
    sums = np.array([Fraction(each) for each in np.bincount(bins, phi, n).tolist()], object)
    lows, highs = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lows, bins, phi)
    np.maximum.at(highs, bins, phi)
    return own, sums, lows, highs


def count_ranks(asked: CountedColumn, values: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Count rows by the cells of their values and of their attributions; rows without either count nowhere."""
    there = ~np.isnan(values) & ~np.isnan(phi)
    edges = [np.array(each) for each in asked.ranked or ((), ())]
    placed = [np.searchsorted(each, numbers[there], side="right") for each, numbers in zip(edges, (values, phi), strict=True)]
    shape = [each.size + 1 for each in edges]
    return np.bincount(placed[0] * shape[1] + placed[1], minlength=shape[0] * shape[1]).reshape(shape)


def place_on(ends: tuple[float, float], n: int, numbers: np.ndarray) -> np.ndarray:
    """Assign numbers to bins of equal width."""
    low, high = ends
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.floor((numbers - low) / (high - low) * n)
    inside = (numbers >= low) & (numbers <= high)
    return np.where(inside, np.clip(np.nan_to_num(scaled), 0, n - 1) + 1, np.where(numbers < low, 0, n + 1)).astype(np.int64)


def place_values(asked: Values, column: pa.Array) -> np.ndarray:
    """Assign values to their bins."""
    if asked.ordered:
        numbers = column_values(asked.feature, column)
        return np.where(np.isnan(numbers), MISSING, np.searchsorted(np.array(asked.edges), numbers, side="right") + 1)
    others = len(asked.categories) + 1
    if lists_categories(asked.feature):
        codes, number = column_values(asked.feature, column), {name: j for j, name in enumerate(asked.categories)}
        place = np.array([*(number.get(str(name), others - 1) for name in asked.feature.categories or ()), others - 1]) + 1
        return np.where(np.isnan(codes), MISSING, place[np.nan_to_num(codes).astype(np.int64)])
    texts = as_texts(column)
    found = pc.fill_null(pc.add(pc.index_in(texts, pa.array(asked.categories, pa.string())), 1), others)
    return np.where(texts.is_null().to_numpy(zero_copy_only=False), MISSING, found.to_numpy(zero_copy_only=False)).astype(np.int64)


def count_rows(table: pa.Table, asked: Sequence[CountedColumn]) -> list[Counts]:
    """Count the rows of a table."""
    placed, counted = dict[str, np.ndarray](), list[Counts]()
    for each in asked:
        phi = table[each.column].to_numpy().astype(np.float64)
        n = 1
        bins = np.zeros(phi.size, np.int64)
        if each.values is not None:
            n = each.values.n_bins
            if each.values.column not in placed:
                placed[each.values.column] = place_values(each.values, table[each.values.column].combine_chunks())
            bins = placed[each.values.column]
        values = column_values(each.values.feature, table[each.values.column].combine_chunks()) if each.values and each.ranked else phi
        ranks = count_ranks(each, values, phi)
        known = ~np.isnan(phi)
        phi, bins = phi[known], bins[known]
        swarm = np.bincount(place_on(each.shared, SWARM, phi) * n + bins, minlength=(SWARM + 2) * n)
        counted.append(Counts(swarm.reshape(SWARM + 2, n), *_count_own(each.own, phi, bins, n), ranks))
    return counted


def percentiles_of(counts: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the percentile of each value bin: the middle of its rows' ranks.

    Parameters
    ----------
    counts : (value bins,) int
        The first are missing values.

    Returns
    -------
    (value bins,) float64
        From 0 to 1; NaN for missing values, and where nothing is known.
    """
    known = np.array(counts, np.float64)
    known[MISSING] = 0
    total = known.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        middle = (np.cumsum(known) - known / 2) / total
    middle[MISSING] = np.nan
    return middle
