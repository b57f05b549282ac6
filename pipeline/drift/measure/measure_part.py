"""Measurement of one part of a run: a Dask task that returns counts and moments, never rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from leafledger.kernels.distributions.column_distribution import SPREADS, Spreads, count_column
from leafledger.kernels.distributions.histogram import TALLY_BYTES, Histogram, finish_histogram, start_histogram
from leafledger.kernels.reductions.reduction import merge_all

from ...dataset.columns.schema import column_values
from ...errors import InvalidRun
from ...methods.worker_memory import WORKER_OVERHEAD
from ...models.model import Feature
from ...runs.columns.top_attributions import as_texts
from ...runs.lookup.row_lookup import opened_part
from ...runs.records.current_run import FinishedPart
from ...runs.records.footer import read_footer
from ...runs.records.plan import Plan
from ...runs.records.plan_file import read_plan, read_recipe
from .columns import VALUE, Column, has_categories, list_columns, lists_categories

TABLE_BYTES = 1 << 24  # of histograms filled at a time
TASK_BYTES = WORKER_OVERHEAD + 16 * TABLE_BYTES  # memory of a worker, with columns read at a time
TEXTS = 1_000  # distinct values counted of a column whose categories the model does not list


@dataclass(frozen=True, slots=True)
class Measuring:
    """Arguments of the measuring tasks."""

    run: str
    plan_digest: str


NOWHERE = np.zeros(0, np.int64)  # no row of a row group
Rows = Sequence[Sequence[np.ndarray | slice]]  # rows of every group in every row group of a part


class Values(NamedTuple):
    """Counts of a column's categories."""

    rows: int
    missing: int
    unseen: int | None
    counts: dict[str, int] | None  # None for more than TEXTS values


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """Measurements of a part, by position in `list_columns`."""

    numbers: tuple[int, ...]  # numeric columns
    spreads: Spreads  # of the numeric columns
    counts: tuple[Histogram, ...]  # of the numeric columns
    categories: dict[int, Values]  # of the others
    bits: tuple[int, ...]  # of numbers in the part, see `Distribution.bits`


def merge_values(a: Values, b: Values) -> Values:
    """Add counts of categories; too many remain too many, in any order."""
    counts = None
    if a.counts is not None and b.counts is not None:
        counts = {name: a.counts.get(name, 0) + b.counts.get(name, 0) for name in {**a.counts, **b.counts}}
        counts = None if a.unseen is None and len(counts) > TEXTS else counts
    unseen = None if a.unseen is None or b.unseen is None else a.unseen + b.unseen
    return Values(a.rows + b.rows, a.missing + b.missing, unseen, counts)


def _count_known(feature: Feature, column: pa.Array) -> Values:
    """Count values by the model's categories."""
    categories = feature.categories or ()
    codes = column_values(feature, column)
    there = codes[~np.isnan(codes)].astype(np.int64)
    counts = np.bincount(there, minlength=len(categories) + 1)
    named = dict[str, int]()
    for code in np.flatnonzero(counts[: len(categories)]).tolist():
        named[str(categories[code])] = named.get(str(categories[code]), 0) + int(counts[code])
    return Values(codes.size, codes.size - there.size, int(counts[len(categories)]), named)


def _count_texts(column: pa.Array) -> Values:
    """Count values by their text."""
    texts = as_texts(column)
    counts: dict[str, int] | None = None
    found = pc.value_counts(texts.drop_null())
    if len(found) <= TEXTS:
        counts = dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))
    return Values(len(texts), texts.null_count, None, counts)


def count_values(feature: Feature, column: pa.Array) -> Values:
    """Count the values of a categorical feature."""
    return _count_known(feature, column) if lists_categories(feature) else _count_texts(column)


def _numbers(feature: Feature | None, column: pa.Array) -> np.ndarray:
    if feature is not None:
        return column_values(feature, column)
    return column.to_numpy(zero_copy_only=False).astype(np.float64)  # null becomes NaN


def _measure_numbers(
    parquet: pq.ParquetFile, columns: Sequence[Column], features: Mapping[str, Feature], rows: Rows
) -> tuple[list[list[Spreads]], list[list[Histogram]]]:
    """Measure numeric columns for every group of rows, as many at a time as memory allows."""
    n_groups = len(rows)
    spreads, counts = [list[Spreads]() for _ in rows], [list[Histogram]() for _ in rows]
    at_a_time = max(1, TABLE_BYTES // (TALLY_BYTES * max(1, n_groups)))
    for start in range(0, len(columns), at_a_time):
        some = columns[start : start + at_a_time]
        tallies, states = [[start_histogram() for _ in rows] for _ in some], [[list[Spreads]() for _ in rows] for _ in some]
        for group in range(parquet.num_row_groups):
            read = parquet.read_row_group(group, [column.name for column in some], use_threads=False)
            for c, column in enumerate(some):
                values = _numbers(features[column.of] if column.kind == VALUE else None, read[column.name].combine_chunks())
                for g, places in enumerate(rows):
                    if places[group] is not NOWHERE:
                        states[c][g].append(count_column(np.ascontiguousarray(values[places[group]]), tallies[c][g]))
        for g in range(n_groups):
            spreads[g] += [merge_all(SPREADS, found[g], 1, 1) for found in states]
            counts[g] += [finish_histogram(tally[g]) for tally in tallies]
    return spreads, counts


def _find_bits(kind: pa.DataType) -> int:
    return kind.bit_width if pa.types.is_floating(kind) else 64


def _take(column: pa.ChunkedArray, places: np.ndarray | slice) -> pa.ChunkedArray:
    return column if isinstance(places, slice) else column.take(pa.array(places))


def _measure_categories(parquet: pq.ParquetFile, column: Column, feature: Feature, rows: Rows) -> list[Values]:
    states = [Values(0, 0, 0 if lists_categories(feature) else None, {}) for _ in rows]
    for group in range(parquet.num_row_groups):
        read = parquet.read_row_group(group, [column.name], use_threads=False)[column.name]
        for g, places in enumerate(rows):
            if places[group] is not NOWHERE:
                for chunk in _take(read, places[group]).chunks:
                    states[g] = merge_values(states[g], count_values(feature, chunk))
    return states


def _join(states: Sequence[Spreads]) -> Spreads:
    """Concatenate columns."""
    return Spreads(*(np.concatenate(arrays) for arrays in zip(*states, strict=True))) if states else SPREADS.init(1, 0)


def measure_columns(uri: str, plan: Plan, parquet: pq.ParquetFile, rows: Rows) -> list[MeasuredPart]:
    """Measure groups of rows of a part."""
    columns, features = list_columns(plan), {feature.name: feature for feature in plan.features}
    categorical = [c for c, column in enumerate(columns) if column.kind == VALUE and has_categories(features[column.of])]
    numbers = [c for c in range(len(columns)) if c not in set(categorical)]
    there = set(parquet.schema_arrow.names)
    lacks = next((column.name for column in columns if column.name not in there), None)
    if lacks is not None:
        raise InvalidRun(f"{uri}: has no column {lacks!r}")
    spreads, counts = _measure_numbers(parquet, [columns[c] for c in numbers], features, rows)
    categories = {c: _measure_categories(parquet, columns[c], features[columns[c].of], rows) for c in categorical}
    bits = tuple(_find_bits(parquet.schema_arrow.field(columns[c].name).type) for c in numbers)
    return [
        MeasuredPart(tuple(numbers), _join(spreads[g]), tuple(counts[g]), {c: states[g] for c, states in categories.items()}, bits)
        for g in range(len(rows))
    ]


def measure_item(asked: Measuring, part: FinishedPart) -> MeasuredPart:
    """Measure a part."""
    plan, uri = read_plan(asked.run, asked.plan_digest), part.uri
    with opened_part(uri) as (parquet, file):
        read_footer(uri, file, read_recipe(asked.run, asked.plan_digest), part.item)
        (found,) = measure_columns(uri, plan, parquet, [[slice(None)] * parquet.num_row_groups])
    return found


def warm(asked: Measuring) -> None:  # noqa: ARG001 - what is measured does not matter
    """Compile or load the kernel that measuring calls."""
    count_column(np.zeros(1), start_histogram())
