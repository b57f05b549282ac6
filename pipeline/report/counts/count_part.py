"""Counting of one part on grids: a Dask task that returns counts and a few addresses, never rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from ...dataset.columns.schema import column_values
from ...errors import InvalidRun
from ...models.model import Feature
from ...runs.lookup.row_lookup import opened_part
from ...runs.records.current_run import FinishedPart
from ...runs.records.footer import read_footer
from ...runs.records.plan_file import read_recipe
from .counts import CountedColumn, Counts, count_rows, no_rows
from .sufficed import count_sufficed
from .told import Told, count_told


@dataclass(frozen=True, slots=True)
class CountTask:
    """Arguments of the counting tasks."""

    run: str  # URI of the folder of plan and parts
    plan_digest: str
    columns: tuple[CountedColumn, ...]
    total: str  # column of margins or predictions
    middle: float  # median of the totals
    label: str  # column of labels; empty if there is none
    changes: str = ""  # column of nearest changes; empty if there is none
    changeable: tuple[str, ...] = ()  # features that may be changed
    told: tuple[str, ...] = ()  # columns of reasons, of whether one was withheld, and, if errors are known, of whether their choice is clear


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A row, and its distance from a target."""

    distance: float  # smaller is better
    part: int  # ties take the first
    row: int


@dataclass(frozen=True, slots=True)
class PartCounts:
    """Counts of a part."""

    counts: tuple[Counts, ...]  # of each column
    spots: tuple[Spot | None, ...]  # of the highest, lowest and median margin, and of the largest residual; None without such a row
    sufficed: tuple[int, ...] = ()  # see `count_sufficed`; empty without changes
    told: Told = field(default_factory=Told)


def nothing(columns: Sequence[CountedColumn]) -> PartCounts:
    """Return the counts of no part."""
    return PartCounts(tuple(map(no_rows, columns)), (None, None, None, None))


def _nearest(spots: Iterable[Spot | None]) -> Spot | None:
    return min((spot for spot in spots if spot is not None), default=None)


def merge_parts(a: PartCounts, b: PartCounts) -> PartCounts:
    """Add counts of parts, in any order."""
    counts = tuple(mine + theirs for mine, theirs in zip(a.counts, b.counts, strict=True))
    sufficed = tuple(map(sum, zip_longest(a.sufficed, b.sufficed, fillvalue=0)))
    return PartCounts(counts, tuple(map(_nearest, zip(a.spots, b.spots, strict=True))), sufficed, a.told + b.told)


def find_spots(totals: np.ndarray, labels: np.ndarray, middle: float, part: int, first_row: int) -> tuple[Spot | None, ...]:
    """Find the rows of the highest and lowest margin, the one nearest to the median, and the one farthest from its label."""
    spots: list[Spot | None] = []
    for distance in (-totals, totals, np.abs(totals - middle), -np.abs(totals - labels)):
        known = np.where(np.isfinite(distance), distance, np.inf)
        at = int(known.argmin()) if known.size else -1
        spots.append(Spot(float(known[at]), part, first_row + at) if at >= 0 and np.isfinite(known[at]) else None)
    return tuple(spots)


def count_part(asked: CountTask, part: FinishedPart) -> PartCounts:
    """Count a part."""
    item, uri, found, first_row = part.item, part.uri, nothing(asked.columns), 0
    names = list(
        dict.fromkeys(
            [
                asked.total,
                *(name for name in (asked.label, asked.changes, *asked.told) if name),
                *(each.column for each in asked.columns),
                *(each.values.column for each in asked.columns if each.values),
            ]
        )
    )
    with opened_part(uri) as (parquet, file):
        read_footer(uri, file, read_recipe(asked.run, asked.plan_digest), item)
        there = set(parquet.schema_arrow.names)
        lacks = next((name for name in names if name not in there), None)
        if lacks is not None:
            raise InvalidRun(f"{uri}: has no column {lacks!r}")
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, names, use_threads=False)
            totals = table[asked.total].to_numpy().astype(np.float64)
            labels = column_values(Feature(asked.label), table[asked.label].combine_chunks()) if asked.label else np.full(totals.size, np.nan)
            spots = find_spots(totals, labels, asked.middle, item.part, first_row)
            sufficed = count_sufficed(table[asked.changes], asked.changeable) if asked.changes else ()
            told = count_told(*(table[name] for name in asked.told), *([None] * (3 - len(asked.told)))) if asked.told else Told()
            found = merge_parts(found, PartCounts(tuple(count_rows(table, asked.columns)), spots, sufficed, told))
            first_row += table.num_rows
    return found


def warm(asked: CountTask) -> None:
    """Compile nothing: counting uses NumPy."""
