"""Creation of a report: measuring, counting, drawing, and publishing one page below the run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import pyarrow as pa

from ..arguments.choices import LOSS
from ..arguments.readers import read_place
from ..cluster.map_items import map_items
from ..cluster.placement import Scheduler, make_placement
from ..drift.measure.measured_run import Measured, measure_run
from ..drift.verdict import read_document
from ..effects.publish import Curves, read_curves
from ..errors import InvalidRun, RunConflict, StorageError, UsageError
from ..finished.finished_run import FinishedRun, read_run
from ..finished.names import Names, NamesFile, read_names_file
from ..methods.worker_memory import WORKER_OVERHEAD
from ..progress import Progress, Work, no_progress
from ..runs.lookup.row_lookup import FoundRows, RowAddress, as_plain, opened_part
from ..runs.records.current_run import is_current, list_parts, read_finished
from ..runs.records.derived import read_after, write_derived
from ..runs.records.folder import RunFolder
from ..stores import storage
from ..stores.uris import link_to, normalise
from .changes import Found, list_alarms, rename_document, say_change, write_changes, write_worse
from .contents import Drawn, Limits, Material, Summaries, compose, read_summaries
from .counts import count_part as work
from .counts.count_part import CountTask, PartCounts, Spot, count_part, merge_parts, nothing
from .figures.figure import Figure
from .figures.scale import shorten_name
from .figures.waterfalls import draw_waterfall
from .grids import choose_grids
from .page import MOST_BYTES, name_anchor, write_page
from .predictions import choose_cells, draw_labels, draw_predictions
from .vocabulary import Vocabulary, make_vocabulary
from .words import last_name

PAGE = "report/index.html"
LIMITS = (Limits(3, 20, 6), Limits(3, 12, 4), Limits(2, 10, 3), Limits(1, 10, 2), Limits(1, 5, 0))  # the first whose page is small enough
BYTES_OF_COUNTS = 1 << 26  # that a task holds
COLUMNS = 500  # that are read at a time to find one row of theirs
ROWS = ("Highest {}", "Lowest {}", "A typical {1}: the median {0}")  # titles of single rows


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


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes since another run, and how they were compared."""

    reference: tuple[str, str]  # its folder, and its manifest's SHA-256
    by: tuple[str, ...]
    thresholds: Mapping[str, float]
    found: Mapping[str, Any]  # the drift record


def _first_features(summaries: Summaries, output: str, n: int) -> list[str]:
    rows = [row for row in summaries.get("importance", ()) if row["output"] == output and row["rank"] and row["mean_abs"]]
    return [row["feature"] for row in sorted(rows, key=lambda row: row["rank"])[:n]]


def _choose(measured: Measured, summaries: Summaries, limits: Limits) -> dict[str, tuple[tuple[str, ...], tuple[Any, ...]]]:
    """Choose names and grids of the first features of the first outputs."""
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
    """Count the drawn columns in one pass over the run."""
    plan, manifest = measured.plan, measured.manifest
    placement = make_placement(**where)
    parts = list_parts(measured.uri, manifest, plan)
    total = plan.columns[0][0]
    middle = measured.total(plan.written_outputs[0]).quantile(0.5)
    changes, named = "".join(plan.change_columns), () if plan.reasons is None or plan.reasons.changes is None else plan.reasons.changes.features
    changeable = tuple(change.feature for change in named)
    label = "" if plan.space == LOSS else plan.label_column  # a loss is no prediction of the label
    told = tuple(plan.reason_columns[: len(plan.reason_columns) // len(plan.written_outputs) : 2])  # reasons, withheld, and clear if it is known
    cells = choose_cells(measured.total(plan.written_outputs[0])) if label else ()
    asked = CountTask(manifest.home(measured.uri), manifest.plan, tuple(columns), total, middle, label, changes, changeable, cells, told)
    on_done, found = progress(Work("counting", measured.uri, len(parts), sum(part.item.n_rows for part in parts))), nothing(columns)
    for part, made in map_items(placement, count_part, work.warm, asked, parts, WORKER_OVERHEAD + BYTES_OF_COUNTS):
        found = merge_parts(found, made)
        on_done(part.item)
    return found


def _read_row(run: FinishedRun, part: int, number: int) -> FoundRows:
    uri, row = RunFolder(run.uri).listed(next(entry for entry in run.manifest.parts if entry["part"] == part)), number
    with opened_part(uri) as (parquet, _):
        names = parquet.schema_arrow.names
        for group in range(parquet.num_row_groups):
            n = parquet.metadata.row_group(group).num_rows
            if row < n:
                columns = dict[str, pa.ChunkedArray]()
                for at in range(0, len(names), COLUMNS):
                    read = parquet.read_row_group(group, names[at : at + COLUMNS], use_threads=False)
                    single = as_plain(read.slice(row, 1)).take([0])  # a copy, so that the other rows are freed
                    columns |= zip(single.column_names, single.columns, strict=True)
                return FoundRows(1, (RowAddress(part, uri, number),), pa.table(columns))
            row -= n
    raise InvalidRun(f"{uri}: has no row {number}")


def _draw_rows(run: FinishedRun, spots: Sequence[Spot | None], names: Names) -> tuple[Figure, ...]:
    """Draw waterfalls of distinct rows."""
    *extremes, farthest = [None if spot is None else (spot.part, spot.row) for spot in spots]
    titles, figures = dict[tuple[int, int], str](), []
    for name, place in zip(ROWS, extremes, strict=True):
        if place is not None:
            titles.setdefault(place, name.format(names.prediction.title or run.plan.total, names.row))
    if farthest is not None:
        titles[farthest] = f"{titles[farthest]}, largest residual" if farthest in titles else "Largest residual"
    for (part, number), title in titles.items():
        found = _read_row(run, part, number)
        shown = run.describe(found, None if run.plan.chosen else run.plan.outputs[0]).called(names)
        label = found.table[run.plan.label_column][0].as_py() if run.plan.label_column else None
        figures.append(draw_waterfall(shown.wording, shown.rows[0], shown.rows[0].outputs[0], title, label, names.row))
    return tuple(figures)


def _count_rows(run: FinishedRun, words: Vocabulary, found: Found | None, where: Mapping[str, Any], progress: Progress) -> Material:
    names = words.names
    summaries = read_summaries(run)
    named = {name: names.rename(rows) for name, rows in summaries.items()}
    if run.plan.global_only or not run.manifest.n_rows:
        return Material(run, named, {}, (), names, found)
    measured = measure_run(run.uri, **where, progress=progress)
    if measured.manifest.sha256 != run.manifest.sha256:
        raise _replaced(run)
    chosen = _choose(measured, summaries, LIMITS[0])
    counted = _count(measured, [grid for _, grids in chosen.values() for grid in grids], where, progress)
    left, drawn = iter(counted.counts), {}
    for output, (players, grids) in chosen.items():
        drawn[output] = Drawn(tuple(map(names.title, players)), grids, tuple(next(left) for _ in grids))
    histogram = draw_predictions(measured, found, words, dict(where))
    actual = draw_labels(counted.actual, words)
    rows = _draw_rows(run, counted.spots, names)
    return Material(run, named, drawn, rows, names, found, histogram, actual, sufficed=counted.sufficed, told=counted.told)


def _read_changes(run: FinishedRun, words: Vocabulary) -> Changes | None:
    """What was found when the run was compared before."""
    return read_document(run.uri, run.manifest.sha256, lambda found: _take_changes(found, words))


def _replaced(run: FinishedRun) -> RunConflict:
    return RunConflict(f"{run.uri}: the run was replaced or removed meanwhile; write the report again")


def _take_changes(document: Mapping[str, Any], words: Vocabulary) -> Changes:
    """Take changes from a drift record, of which all that a page says can be said."""
    thresholds = {name: value for name, value in document["thresholds"].items() if value is not None}
    found = rename_document(document, words.names)
    for write in (say_change, write_changes, write_worse, list_alarms):
        write(found, words)
    return Changes((found["reference"], found["reference_manifest"]), tuple(found["by"]), thresholds, found)


def _compare(run: FinishedRun, against: str | PathLike, words: Vocabulary, where: Mapping[str, Any], progress: Progress) -> Changes:
    """Compare with another run: the stored comparison, or a new one with the same groups and thresholds."""
    from ..drift.drift import drift, find_reference

    try:
        kept = _read_changes(run, words)
    except InvalidRun:  # no usable record: compare anew
        kept = None
    if kept is not None:
        reference, named = find_reference(run.uri, read_place("against", against))
        manifest = read_finished(reference)[0].sha256
        if named in (None, manifest) and kept.reference == (reference, manifest):
            return kept
    by, thresholds = ((), None) if kept is None else (kept.by, kept.thresholds)
    found = drift(run.uri, against=against, by=by, thresholds=thresholds, **where, progress=progress)
    if found.manifest != run.manifest.sha256:
        raise _replaced(run)
    return _take_changes(found.to_dict(), words)


def _read_effects(run: FinishedRun, effects: str | PathLike | None, names: Names) -> Curves | None:
    """Read the effects of the run's model, of features as they are called."""
    if effects is None:
        return None
    folder = normalise(read_place("effects", effects))
    found = read_curves(folder)
    if found.model_digest != run.plan.model_digest:
        raise UsageError(f"{folder}: effects are of a model with SHA-256 {found.model_digest[:12]}, the run's had {run.plan.model_digest[:12]}")
    trees, mine = None if run.plan.trees is None else [*run.plan.trees], {name: [*members] for name, members in run.plan.groups}
    for what, theirs, own in (("trees", found.trees, trees), ("missing", found.missing, run.manifest.missing)):
        if theirs != own:
            raise UsageError(f"{folder}: effects are of {what} {theirs}, the run is of {what} {own}; make them with the same")
    alike = {(output, name): rows for (output, name), rows in found.rows.items() if found.partition.get(name) == mine.get(name)}
    return replace(found, rows={(output, names.title(name)): rows for (output, name), rows in alike.items()})


def gather(
    run: FinishedRun,
    against: str | PathLike | None,
    where: Mapping[str, Any],
    progress: Progress = no_progress,
    effects: str | PathLike | None = None,
    names: NamesFile | None = None,
    overview: str | PathLike | None = None,
) -> Material:
    """Gather the material of a run's page.

    Parameters
    ----------
    against : str, path or None
        As of `report`.
    where : mapping of str to Any
        Its ``scheduler``, ``threads``, ``workers``, ``plain_tcp`` and ``wait``.
    effects : str, path or None
    names : mapping, str, path or None
    overview : str, path or None
        As of `report`.

    Raises
    ------
    RunConflict
        It was replaced or removed meanwhile.
    """
    called = read_names_file(names, run.plan)
    curves = _read_effects(run, effects, called)
    words = make_vocabulary(run.plan, called)
    changes = _read_changes(run, words) if against is None else _compare(run, against, words, where, progress)
    material = _count_rows(run, words, None if changes is None else changes.found, where, progress)
    links = link_pages(run, None if changes is None else changes.reference, overview)
    return replace(material, made=run.provenance(), effects=curves, links=links)


def link_pages(run: FinishedRun, reference: tuple[str, str] | None, overview: str | PathLike | None) -> tuple[tuple[str, str], ...]:
    """Link a report to its run's line in the overview of runs, and to the report of the run that is compared with, if it has one."""
    page, links = storage.join(run.uri, PAGE), list[tuple[str, str]]()
    if overview is not None:
        to = link_to(page, normalise(read_place("overview", overview)))
        links.append(("This run in the overview of all runs", f"{to}#{name_anchor(run.uri, run.manifest.sha256)}"))
    if reference is not None and any(entry["uri"] == PAGE for entry in read_after(*reference).objects):
        before = f"Report of {shorten_name(last_name(reference[0]))}, which this run is compared with"
        links.append((before, link_to(page, storage.join(reference[0], PAGE))))
    return tuple(links)


def write_report(material: Material) -> bytes:
    """Write a page of limited size."""
    for limits in LIMITS:
        data = write_page(compose(material, limits)).encode()
        if len(data) <= MOST_BYTES:
            break
    return data


def report(
    run: str | PathLike,
    *,
    against: str | PathLike | None = None,
    effects: str | PathLike | None = None,
    names: NamesFile | None = None,
    overview: str | PathLike | None = None,
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    wait: float = 15.0,
    progress: Callable = no_progress,
) -> WrittenReport:
    """Write a report of a finished run: one page, ``report/index.html`` below the run, that runs and fetches nothing.

    Parameters
    ----------
    run : str or path
        Of the run's folder.
    against : str or path, optional
        Folder of another run, or the JSON object that names the latest one: the page says what changed since. By default it does where the two were
        compared before, see `drift`; what was found then stays, and another comparison has the groups and thresholds of the one before.
    effects : str or path, optional
        Folder that the function `effects` wrote, of the same model: the effect of the first features stands beside their attributions.
    names : mapping, str or path, optional
        Readable names: tables ``features``, of a title, a unit and a description by feature, ``prediction``, of the same, and ``rows``, of the words
        for one and many; or a TOML or JSON file of them.
    overview : str or path, optional
        Page that lists this run and others, as ``leafledger runs --html`` writes it: the report links to it.
    scheduler, threads, workers, plain_tcp, wait : optional
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
    RunConflict
        It was replaced or removed meanwhile.
    UsageError
        An argument cannot be used.
    StorageError
        The store does not answer, or cannot be written.
    """
    finished = read_run(run)
    where: dict[str, Any] = {"scheduler": scheduler, "threads": threads, "workers": workers, "plain_tcp": plain_tcp, "wait": wait}
    try:
        data = write_report(gather(finished, against, where, progress, effects, names, overview))
    except (InvalidRun, StorageError) as error:
        if is_current(finished.uri, finished.manifest):
            raise
        raise _replaced(finished) from error  # whose files are removed after replacement
    if not is_current(finished.uri, finished.manifest):
        raise _replaced(finished)
    write_derived(finished.uri, finished.manifest.sha256, {PAGE: data})
    return WrittenReport(storage.join(finished.uri, PAGE), len(data))
