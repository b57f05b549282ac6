"""Measurement of a finished run: distributions of all columns, stored below the run for later comparisons."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike

from leafledger.kernels.distributions.column_distribution import SPREADS, Spreads
from leafledger.kernels.distributions.histogram import NOTHING, Histogram, merge_histograms
from leafledger.kernels.reductions.reduction import merge_all

from ...cluster.map_items import map_items
from ...cluster.placement import Placement, Scheduler, make_placement
from ...errors import StorageError
from ...progress import Progress, Work, no_progress
from ...runs.records.current_run import list_parts, read_finished
from ...runs.records.derived import FOLDER, read_derived, write_derived
from ...runs.records.manifest import Manifest
from ...runs.records.plan import Plan
from ...stores.uris import normalise
from . import measure_part as work
from .columns import BASE, PHI, TOTAL, VALUE, Column, has_categories, list_columns, lists_categories
from .distribution import Categories, Distribution
from .distribution_table import pack, unpack
from .measure_part import TASK_BYTES, MeasuredPart, Measuring, Values, measure_item, merge_values

DISTRIBUTIONS = f"{FOLDER}/distributions.parquet"

ColumnDistribution = Distribution | Categories


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Distributions of a finished run's columns."""

    uri: str  # of the run's folder
    manifest: Manifest
    plan: Plan
    columns: tuple[Column, ...]
    found: tuple[ColumnDistribution, ...]  # of each column
    group: str = ""  # of the rows: its values as a JSON list; empty for all rows
    places: dict[tuple[str, str, str], int] = field(init=False, repr=False)  # from kind, output, and player or feature to the column's position

    def __post_init__(self) -> None:
        places = {(column.kind, column.output, column.of): place for place, column in enumerate(self.columns)}
        object.__setattr__(self, "places", places)

    def _find(self, kind: str, output: str, of: str) -> ColumnDistribution | None:
        place = self.places.get((kind, output, of))
        return None if place is None else self.found[place]

    def total(self, output: str) -> Distribution:
        """Return the distribution of an output's margins or predictions.

        Parameters
        ----------
        output : str
            One of the plan's ``written_outputs``.

        Raises
        ------
        KeyError
            There is no such output.
        """
        found = self._find(TOTAL, output, "")
        if not isinstance(found, Distribution):
            raise KeyError(output)
        return found

    def base(self, output: str) -> Distribution | None:
        """Return the distribution of an output's base values, where each row has its own, else None."""
        found = self._find(BASE, output, "")
        return found if isinstance(found, Distribution) else None

    def phi(self, output: str, player: str) -> Distribution | None:
        """Return the distribution of a player's attributions.

        Parameters
        ----------
        output : str
            One of the plan's ``written_outputs``.

        Returns
        -------
        Distribution or None
            None where the run has no column of it.
        """
        found = self._find(PHI, output, player)
        return found if isinstance(found, Distribution) else None

    def value(self, feature: str) -> ColumnDistribution | None:
        """Return the distribution of a feature's values.

        Returns
        -------
        Distribution or Categories or None
            None where the run was made without ``values``.
        """
        return self._find(VALUE, "", feature)


def make_distribution(merged: Spreads, at: int, counts: Histogram, bits: int = 64) -> Distribution:
    """Make the distribution of a numeric column."""
    rows, missing, infinite, *moments = (array[at].item() for array in merged)
    if rows == missing + infinite:
        moments = [math.nan] * len(moments)
    mean, spread, mean_abs, spread_abs, low, high = moments
    return Distribution(rows, missing, infinite, mean, spread, mean_abs, spread_abs, low, high, counts, bits)


def gather(
    plan: Plan, columns: Sequence[Column], parts: Mapping[int, MeasuredPart], counts: Mapping[int, Histogram]
) -> tuple[ColumnDistribution, ...]:
    """Merge the measurements of parts, with moments in the order of the plan."""
    features = {feature.name: feature for feature in plan.features}
    ordered = [parts[part] for part in sorted(parts)]
    categorical = [c for c, column in enumerate(columns) if column.kind == VALUE and has_categories(features[column.of])]
    numbers = [c for c in range(len(columns)) if c not in set(categorical)]
    merged = merge_all(SPREADS, (part.spreads for part in ordered), 1, len(numbers))
    bits = [min((part.bits[at] for part in ordered), default=64) for at in range(len(numbers))]
    found: dict[int, ColumnDistribution] = {c: make_distribution(merged, at, counts[c], bits[at]) for at, c in enumerate(numbers)}
    for c in categorical:
        state = Values(0, 0, 0 if lists_categories(features[columns[c].of]) else None, {})
        for part in ordered:
            state = merge_values(state, part.categories[c])
        named = None if state.counts is None else tuple(sorted(state.counts.items()))
        found[c] = Categories(state.rows, state.missing, state.unseen, named)
    return tuple(found[c] for c in range(len(columns)))


def measure_parts(placement: Placement, uri: str, manifest: Manifest, plan: Plan, progress: Progress) -> tuple[ColumnDistribution, ...]:
    """Measure all parts of a run; the bits do not depend on the placement."""
    columns = list_columns(plan)
    items = list_parts(uri, manifest, plan)
    on_done = progress(Work("measuring", uri, len(items), sum(part.item.n_rows for part in items)))
    parts, counts = dict[int, MeasuredPart](), dict.fromkeys(range(len(columns)), NOTHING)
    asked = Measuring(manifest.home(uri), manifest.plan)
    for each, made in map_items(placement, measure_item, work.warm, asked, items, TASK_BYTES):
        for c, found in zip(made.numbers, made.counts, strict=True):  # at once and in any order, since counts add up exactly
            counts[c] = merge_histograms(counts[c], found)
        parts[each.item.part] = replace(made, counts=())
        on_done(each.item)
    return gather(plan, columns, parts, counts)


def measure_run(
    run: str | PathLike,
    *,
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    wait: float = 15.0,
    progress: Progress = no_progress,
) -> Measured:
    """Measure the distribution of every column of a finished run, or read stored ones.

    Attributions, margins or predictions, and with ``values`` those of the features. The result is stored below the run, in
    ``after/distributions.parquet``, listed in ``after.json``; a missing, changed or foreign one is remade. If it cannot be written, a warning says
    so.

    Returns
    -------
    Measured
        Without columns where the run has summaries alone.

    Raises
    ------
    NotFinished
        It is not finished.
    """
    uri = normalise(str(run))
    manifest, plan = read_finished(uri)
    placement, columns = make_placement(scheduler, threads, workers, wait, plain_tcp), list_columns(plan)
    if plan.global_only:
        return Measured(uri, manifest, plan, columns, ())
    kept = read_derived(uri, manifest.sha256, DISTRIBUTIONS)
    found = None if kept is None else unpack(kept, columns)
    if found is None:
        found = measure_parts(placement, uri, manifest, plan, progress)
        try:
            write_derived(uri, manifest.sha256, {DISTRIBUTIONS: pack(columns, found)})
        except StorageError as error:
            logging.getLogger("leafledger").warning("what was measured is not kept: %s", error)
    return Measured(uri, manifest, plan, columns, found)
