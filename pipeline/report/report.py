"""A report: the run measured and counted, drawn, and published as one page below it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import pyarrow as pa

from ..drift.measured import FEW, Measured, make_run_job, measure_run
from ..errors import InvalidRun
from ..in_memory.finished import FinishedRun, read_run
from ..runs import execute
from ..runs.after import read_made, write_made
from ..runs.job import SERIAL
from ..runs.lookup import Found, Place, opened_part
from ..runs.part import part_uri
from ..runs.progress import Progress, Work, no_progress
from ..runs.sizes import WORKER_OVERHEAD
from ..stores import storage
from . import part as work
from .changes import say_change, write_changes
from .contents import Drawn, Limits, Material, Summaries, compose, read_summaries
from .figure import Figure
from .grids import choose_grids
from .page import MOST_BYTES, write_page
from .part import Asked, PartCounts, Spot, count_part, merge_parts, nothing
from .waterfalls import draw_waterfall

PAGE = "report/index.html"
DRIFT = "after/drift.json"
LIMITS = (Limits(3, 20, 6), Limits(3, 12, 4), Limits(2, 10, 3), Limits(1, 10, 2), Limits(1, 5, 0))  # the first whose page is small enough
BYTES_OF_COUNTS = 1 << 26  # that a task holds
ROWS = ("Highest", "Lowest", "Median")


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """What was written.

    Attributes
    ----------
    uri : str
        Of the page.
    size : int
        Bytes.
    """

    uri: str
    size: int


def _first_features(summaries: Summaries, output: str, n: int) -> list[str]:
    rows = [row for row in summaries.get("importance", ()) if row["output"] == output and row["rank"]]
    return [row["feature"] for row in sorted(rows, key=lambda row: row["rank"])[:n]]


def _choose(measured: Measured, summaries: Summaries, limits: Limits) -> dict[str, tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Names and grids of the first features of the first outputs."""
    plan = measured.plan
    players, phi = plan.players, plan.columns[1]
    found = {}
    for k, output in enumerate(plan.written_outputs[: limits.outputs]):
        columns = dict(zip(players, phi[k * len(players) : (k + 1) * len(players)], strict=True)) if phi else {}
        names = [name for name in _first_features(summaries, output, limits.features) if name in columns]
        grids = choose_grids(measured, output, names, columns)
        if grids:
            found[output] = (tuple(names), grids)
    return found


def _count(measured: Measured, columns: Sequence[Any], where: Mapping[str, Any], progress: Progress) -> PartCounts:
    """One pass over the columns that are drawn."""
    plan, manifest = measured.plan, measured.manifest
    job = make_run_job(measured.uri, plan, **where)
    items = [plan.items[entry["part"]] for entry in manifest.parts]
    total = plan.columns[0][0]
    asked = Asked(measured.uri, manifest.plan, tuple(columns), total, measured.total(plan.written_outputs[0]).quantile(0.5))
    if job.options.scheduler is None and manifest.n_rows * (len(columns) + 1) < FEW:
        job = replace(job, options=replace(job.options, scheduler=SERIAL))
    on_done, found = progress(Work("counting", measured.uri, len(items), manifest.n_rows)), nothing(columns)
    for item, made in execute.map_items(job, count_part, work.warm, asked, items, WORKER_OVERHEAD + BYTES_OF_COUNTS):
        found = merge_parts(found, made)
        on_done(item)
    return found


def _read_row(run: FinishedRun, spot: Spot) -> Found:
    uri, row = part_uri(run.uri, spot.part), spot.row
    with opened_part(uri) as (parquet, _):
        for group in range(parquet.num_row_groups):
            n = parquet.metadata.row_group(group).num_rows
            if row < n:
                table: pa.Table = parquet.read_row_group(group, use_threads=False).slice(row, 1)
                return Found(1, (Place(spot.part, uri, spot.row),), table)
            row -= n
    raise InvalidRun(f"{uri}: has no row {spot.row}")


def _draw_rows(run: FinishedRun, spots: Sequence[Spot | None]) -> tuple[Figure, ...]:
    """Waterfalls of different rows."""
    figures, drawn = [], set()
    for name, spot in zip(ROWS, spots, strict=True):
        if spot is None or (spot.part, spot.row) in drawn:
            continue
        drawn.add((spot.part, spot.row))
        shown = run.describe(_read_row(run, spot), None if run.plan.chosen else run.plan.outputs[0])
        row = shown.rows[0]
        found = row.outputs[0]
        figures.append(draw_waterfall(shown, row, found, f"{name} {shown.total}"))
    return tuple(figures)


def _gather(run: FinishedRun, where: Mapping[str, Any], progress: Progress) -> Material:
    summaries = read_summaries(run)
    if run.plan.global_only or not run.manifest.n_rows:
        return Material(run, summaries, {}, ())
    measured = measure_run(run.uri, **where, progress=progress)
    chosen = _choose(measured, summaries, LIMITS[0])
    counted = _count(measured, [grid for _, grids in chosen.values() for grid in grids], where, progress)
    left, drawn = iter(counted.counts), {}
    for output, (names, grids) in chosen.items():
        drawn[output] = Drawn(names, grids, tuple(next(left) for _ in grids))
    return Material(run, summaries, drawn, _draw_rows(run, counted.spots))


def _find_changes(run: FinishedRun, against: str | PathLike | None, where: Mapping[str, Any], progress: Progress) -> Mapping[str, Any] | None:
    """What changed since another run, or what was found when the two were compared before."""
    if against is not None:
        from ..drift.drift import drift

        return drift(run.uri, against=against, **where, progress=progress).to_dict()
    kept = read_made(run.uri, run.manifest.sha256, DRIFT)
    return None if kept is None else json.loads(kept)


def write_report(material: Material) -> bytes:
    """Write a page that is small enough, of whatever there is.

    Parameters
    ----------
    material : Material

    Returns
    -------
    bytes
        Of HTML; the same for the same run.
    """
    for limits in LIMITS:
        data = write_page(compose(material, limits)).encode()
        if len(data) <= MOST_BYTES:
            break
    return data


def report(
    run: str | PathLike,
    *,
    against: str | PathLike | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    progress: Callable = no_progress,
) -> WrittenReport:
    """Write a report of a finished run: one page, ``report/index.html`` below the run, that runs and fetches nothing.

    Parameters
    ----------
    run : str or path
        Of the run's folder.
    against : str or path, optional
        Folder of another run, or the JSON object that names the latest one: the page says what changed since. By default it does where the two were
        compared before, see `drift`.
    scheduler, workers, plain_tcp : optional
        As for `explain`: where the run's columns are read.
    progress : callable
        As for `explain`; called before the run is measured, where it was not before, and before rows are counted.

    Returns
    -------
    WrittenReport
        Where the page is. The same run has the same page; ``after.json`` lists it.

    Raises
    ------
    InvalidRun
        The run is not finished, or is damaged.
    UsageError
        An argument cannot be used.
    StorageError
        The store does not answer, or cannot be written.
    """
    finished = read_run(run)
    where = {"scheduler": scheduler, "workers": workers, "plain_tcp": plain_tcp}
    found = _find_changes(finished, against, where, progress)
    material = _gather(finished, where, progress)
    data = write_report(material if found is None else replace(material, changed=say_change(found), changes=write_changes(found)))
    write_made(finished.uri, finished.manifest.sha256, {PAGE: data})
    return WrittenReport(storage.join(finished.uri, PAGE), len(data))
