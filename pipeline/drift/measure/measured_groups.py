"""Measurement of a finished run by group of rows, defined by values of some columns."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.kernels.distributions.histogram import NOTHING, Histogram, merge_histograms

from ...cluster.map_items import map_items
from ...cluster.placement import Placement
from ...dataset.columns.grouping import GroupColumn, check_group_columns, make_group_columns, name_groups, write_values
from ...display.nearest import did_you_mean
from ...errors import StorageError, UsageError
from ...progress import Progress, Work
from ...runs.lookup.row_lookup import opened_part
from ...runs.records.current_run import FinishedPart, list_parts
from ...runs.records.derived import FOLDER, read_derived, write_derived
from ...runs.records.footer import read_footer
from ...runs.records.plan import Plan
from ...runs.records.plan_file import read_plan, read_recipe
from . import measure_part as work
from .columns import list_columns
from .distribution_table import pack_groups, unpack_groups
from .losses import has_weights
from .measure_part import NOWHERE, TASK_BYTES, MeasuredPart, Measuring, Rows, measure_columns
from .measured_run import ColumnDistribution, Measured, gather

MOST_GROUPS = 128  # groups whose histograms of one column fit in TABLE_BYTES
MOST_FOUND = 1 << 14  # distributions over all groups and columns


@dataclass(frozen=True, slots=True)
class MeasuringGroups:
    """Arguments of the measuring tasks."""

    run: Measuring
    by: tuple[str, ...]  # features with stored values, or id columns


@dataclass(frozen=True, slots=True)
class GroupedPart:
    """Measurements of a part."""

    by: tuple[GroupColumn, ...]
    groups: dict[str, MeasuredPart]  # by their values as a JSON list; only groups in the part


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredGroups:
    """Distributions of a finished run's columns by group."""

    by: tuple[GroupColumn, ...]  # grouping columns; without types if the run has no parts
    groups: dict[str, Measured]  # by the group's values as a JSON list, in the order of these texts


def _find_columns(plan: Plan, by: Sequence[str]) -> dict[str, str]:
    """Return the columns' names in the parts, without absent ones."""
    values = dict(zip((feature.name for feature in plan.features), plan.value_columns, strict=False))
    there = values | {name: name for name in plan.ids}
    return {name: there[name] for name in by if name in there}


def refuse_ungrouped(measured: Measured, by: Sequence[str]) -> None:
    """Refuse runs that do not store the grouping columns or attributions as columns.

    Parameters
    ----------
    by : sequence of str
        Id columns, or features whose values are kept.
    """
    plan = measured.plan
    if plan.global_only or not plan.wide:
        what = "summaries alone" if plan.global_only else "only the largest attributions of a row"
        raise UsageError(f"{measured.uri}: has {what}, which cannot be compared by {', '.join(by)}; expected a column for every feature")
    grouped = tuple(column.name for column in plan.by)
    if has_weights(plan) and grouped != tuple(by):
        told = ", ".join(grouped) or "none"
        raise UsageError(f"{measured.uri}: its rows have weights, and it knows mean losses by {told}, got {', '.join(by)}; explain it with that --by")
    there = _find_columns(plan, by)
    lacks = next((name for name in by if name not in there), None)
    if lacks is not None:
        known = (*plan.ids, *(feature.name for feature in plan.features if plan.values))
        raise UsageError(
            f"{measured.uri}: by has {lacks!r}, of which it has no column; expected an id or a value that it wrote: {', '.join(known) or 'none':.200}"
            f"{did_you_mean(lacks, known)}"
        )


def _check_most(names: Sequence[str], by: Sequence[str], n_columns: int) -> None:
    most = min(MOST_GROUPS, MOST_FOUND // max(1, n_columns))
    if len(names) > most:
        raise UsageError(f"{', '.join(map(repr, by))} make {len(names)} groups or more, expected at most {most} where runs have {n_columns} columns")


def _find_rows(parquet: pq.ParquetFile, by: Sequence[GroupColumn], columns: Sequence[str], n_columns: int) -> dict[str, list[np.ndarray]]:
    """Find the rows of each group in every row group, refusing more groups than can be measured."""
    found: dict[str, list[np.ndarray]] = {}
    for group in range(parquet.num_row_groups):
        read = parquet.read_row_group(group, [*dict.fromkeys(columns)], use_threads=False)
        batch = pa.record_batch({column.name: read[name].combine_chunks() for column, name in zip(by, columns, strict=True)})
        numbers, names = name_groups(batch, by)
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(names.size + 1))
        for g, name in enumerate(names.tolist()):
            rows = found.setdefault(name, [NOWHERE] * parquet.num_row_groups)
            rows[group] = order[ends[g] : ends[g + 1]]
        _check_most([*found], [column.name for column in by], n_columns)
    return found


def measure_groups_of_item(asked: MeasuringGroups, part: FinishedPart) -> GroupedPart:
    """Measure a part group by group: what a Dask task does."""
    plan, uri = read_plan(asked.run.run, asked.run.plan_digest), part.uri
    columns = _find_columns(plan, asked.by)
    with opened_part(uri) as (parquet, file):
        read_footer(uri, file, read_recipe(asked.run.run, asked.run.plan_digest), part.item)
        types = {name: parquet.schema_arrow.field(column).type for name, column in columns.items()}
        check_group_columns(asked.by, types, uri)
        by = make_group_columns(asked.by, types)
        rows = _find_rows(parquet, by, [*columns.values()], len(list_columns(plan)))
        places: Rows = [*rows.values()]
        return GroupedPart(by, dict(zip(rows, measure_columns(uri, plan, parquet, places), strict=True)))


def _warm(asked: MeasuringGroups) -> None:
    work.warm(asked.run)


def _measure_parts(
    placement: Placement, measured: Measured, by: tuple[str, ...], progress: Progress
) -> tuple[tuple[GroupColumn, ...], dict[str, tuple[ColumnDistribution, ...]]]:
    """Measure all groups, sorted by name; the bits do not depend on the placement."""
    manifest, plan, columns = measured.manifest, measured.plan, measured.columns
    items = list_parts(measured.uri, manifest, plan)
    on_done = progress(Work("measuring groups", measured.uri, len(items), sum(part.item.n_rows for part in items)))
    asked = MeasuringGroups(Measuring(manifest.home(measured.uri), manifest.plan), by)
    described: tuple[GroupColumn, ...] = tuple(GroupColumn(name, "null") for name in by)
    parts, counts = dict[str, dict[int, MeasuredPart]](), dict[str, dict[int, Histogram]]()
    for each, made in map_items(placement, measure_groups_of_item, _warm, asked, items, TASK_BYTES):
        described = made.by
        for name, part in made.groups.items():
            mine = counts.setdefault(name, dict.fromkeys(part.numbers, NOTHING))
            for c, found in zip(part.numbers, part.counts, strict=True):  # in any order, since integer counts add exactly
                mine[c] = merge_histograms(mine[c], found)
            parts.setdefault(name, {})[each.item.part] = replace(part, counts=())
        _check_most([*parts], by, len(columns))
        on_done(each.item)
    return described, {name: gather(plan, columns, parts[name], counts[name]) for name in sorted(parts)}


def measure_groups(placement: Placement, measured: Measured, by: tuple[str, ...], progress: Progress) -> MeasuredGroups:
    """Measure the distributions of a finished run by group, or read stored ones.

    They are stored below the run by grouping columns, beside those of all rows.

    Parameters
    ----------
    measured : Measured
        The run as a whole.
    by : tuple of str
        Id columns, or features whose values are kept, see `refuse_ungrouped`.
    """
    uri, manifest, columns = measured.uri, measured.manifest, measured.columns
    name = f"{FOLDER}/distributions-{hashlib.sha256(json.dumps(by).encode()).hexdigest()[:16]}.parquet"
    kept = read_derived(uri, manifest.sha256, name)
    found = None if kept is None else unpack_groups(kept, by, columns)
    if found is None:
        found = _measure_parts(placement, measured, by, progress)
        try:
            write_derived(uri, manifest.sha256, {name: pack_groups(found[0], columns, found[1])})
        except StorageError as error:
            logging.getLogger("leafledger").warning("what was measured is not kept: %s", error)
    described, groups = found
    return MeasuredGroups(described, {group: Measured(uri, manifest, measured.plan, columns, each, group) for group, each in groups.items()})


def values_of(group: str) -> tuple[str | int | bool | None, ...]:
    """Read the values of a group.

    Parameters
    ----------
    group : str
        As it is called.

    Returns
    -------
    tuple of str, int, bool or None
        One for each column that makes groups.
    """
    return tuple(json.loads(group))


def say_group(by: Sequence[GroupColumn], group: str) -> str:
    """Name a group by its columns and values.

    Parameters
    ----------
    group : str
        As it is called among the groups.

    Returns
    -------
    str
        Such as "carrier=AA, month=1"; not escaped.
    """
    return ", ".join(f"{column.name}={value}" for column, value in zip(by, write_values(values_of(group)), strict=True))


def count_rows(groups: Mapping[str, Measured]) -> dict[str, int]:
    """Count the rows of every group."""
    return {name: each.found[0].rows for name, each in groups.items()}
