"""Trial run of a few rows in a temporary place, with every stage measured where the run would work."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from leafledger.kernels import compiled as compiling
from leafledger.kernels.method.method import BackgroundStatistics
from leafledger.kernels.trees.binning import BATCH

from ...cluster.placement import ONE_THREAD, Placement
from ...cluster.resource_usage import PartTimings, ResourceUsage, measure_usage
from ...dataset.files.listing import WorkItem
from ...dataset.files.rows import read_slices
from ...dataset.files.sample import cut, spread
from ...errors import InvalidData
from ...progress import Work
from ...stores import storage
from ...stores.temporary_folder import temporary_folder
from ...stores.traffic import find_moved
from ..execute.make_part import warm
from ..execute.write_part import read_names
from ..job.job import Job
from ..monitor.attempt import Attempt
from ..monitor.make_provenance import keep_provenance
from ..plan.background import MarginalPlan
from ..plan.planned_run import Run, Tables
from ..records.manifest import Manifest
from ..records.part import Part
from ..records.plan import to_json
from ..records.plan_file import open_recipe
from ..stages import Broadcast, aggregate_run, broadcast_run, count_run, map_run, publish_run

FIRST_ROWS = 4 * BATCH  # rows of two items: the first loads kernels, the second determines how many rows to measure
READABLE = 8  # items of which one has to be readable
SECONDS = 0.5  # target seconds of a measured item
GROUPS = 2  # largest number of its output row groups: the first batch of an item and later ones differ
LARGE, SMALL = 3, 2  # large items for each worker, and items of a quarter of their rows: separates the costs of items and rows
MOST = 128  # largest number of items, for any number of workers
READ_SECONDS, READ_ITEMS = 1.0, 3  # time and number of items for measuring reads
BACKGROUND_ROWS = 1 << 13  # background rows to count
END_SECONDS = 10.0  # time for workers to finish running items after a failed trial: SECONDS each, and loading kernels


@dataclass(frozen=True, slots=True)
class Tried:
    """A part of the trial."""

    n_rows: int
    size: int  # bytes
    spent: PartTimings


@dataclass(frozen=True, slots=True)
class Trial:
    """Measurements of a trial run."""

    counting: ResourceUsage  # of the counted background rows; zero if none need counting
    counted_rows: int
    preparing: ResourceUsage  # including the tables for workers
    loading: ResourceUsage  # loading kernels from disk; zero if they were compiled now
    client: float  # seconds of a part outside its worker
    reading: tuple[tuple[int, ResourceUsage], ...]  # rows of items, whole ones while time lasts
    rows: tuple[int, ...]  # of the items explained at the run's placement,
    explaining: ResourceUsage  # and the total from the first to the last
    parts: tuple[Tried, ...]  # of these, without the first of every worker
    merging: ResourceUsage
    publishing: ResourceUsage
    n_objects: int  # number of objects except parts
    n_bytes: int  # their bytes, without the plan's and the manifest's entries of parts
    entry_bytes: float  # bytes of a part's entry in the manifest
    n_compiled: int  # number of compiled kernels

    @property
    def n_rows(self) -> int:
        """Number of explained rows."""
        return sum(self.rows) + 2 * FIRST_ROWS


def _renumber(items: Sequence[WorkItem], first: int) -> tuple[WorkItem, ...]:
    return tuple(replace(item, part=first + k) for k, item in enumerate(items))


def _cut_all(items: Sequence[WorkItem], n_items: int, n_rows: int) -> list[WorkItem]:
    """Cut pieces of equal size from different items, or several from each if there are few."""
    chosen = spread(items, n_items)
    return [cut(chosen[k * len(chosen) // n_items], n_rows, (k + 0.5) / n_items) for k in range(n_items if chosen else 0)]


def _with(run: Run, place: str, items: Sequence[WorkItem], placement: Placement | None = None) -> Run:
    """Return the run with another place, other items, and perhaps another placement; checks that need all rows are off."""
    options = replace(run.job.options, allow_unseen=True, max_rejected=None)
    job = replace(run.job, out=place, options=options, placement=placement or run.job.placement)
    plan = replace(run.plan, items=tuple(items), rejected=())
    return replace(run, out=place, place="", job=job, plan=plan, digested=None, replaced=None, kept="")


def _count(run: Run, place: str) -> tuple[BackgroundStatistics | None, ResourceUsage, int]:
    """Count a few background rows after loading kernels; return the counts, and the resources used."""
    if not run.uncounted:
        return None, ResourceUsage(), 0
    game: Any = run.game
    first, rest = (_cut_all(game.items, *asked) for asked in ((1, FIRST_ROWS), (READ_ITEMS, BACKGROUND_ROWS // READ_ITEMS)))
    if sum(item.n_rows for item in game.items) <= BACKGROUND_ROWS:
        rest = game.items
    few = replace(game, items=_renumber([*first, *rest], 0), counts=storage.join(place, "counts"))
    done, moved = list[float](), list[int]()

    def follow(work: Work) -> Callable[[Any], None]:  # noqa: ARG001 - the shape of a Progress
        def on_done(item: Any) -> None:  # noqa: ARG001 - likewise
            done.append(time.perf_counter())
            moved.append(find_moved().read)

        return on_done

    counted = count_run(replace(_with(run, place, (), ONE_THREAD), tables=Tables(few, run.memory)), follow)
    return counted, ResourceUsage(done[-1] - done[0], done[-1] - done[0], moved[-1] - moved[0]), sum(item.n_rows for item in rest)


def _explain(run: Run, tables: Broadcast, items: Sequence[WorkItem], placement: Placement | None = None) -> tuple[Run, Any, ResourceUsage]:
    """Explain items, with all measurements of their parts."""
    found, parts = list[ResourceUsage](), list[Part]()
    run = _with(run, run.job.out, items, placement)
    with measure_usage(found):
        explained = map_run(run, tables, lambda work: lambda piece: parts.append(piece) if isinstance(piece, Part) else None)
    return run, replace(explained, parts=tuple(sorted(parts, key=attrgetter("part")))), found[0]


@contextmanager
def _outlasted(job: Job) -> Iterator[None]:
    """After a failed trial, let remote workers finish running items: they cannot be cancelled, and would write later."""
    try:
        yield
    except BaseException:
        if not job.placement.on_this_machine:
            time.sleep(END_SECONDS)
        raise


def _begin(run: Run, tables: Broadcast, items: Sequence[WorkItem]) -> tuple[Any, ResourceUsage]:
    """Explain a few rows of the first readable item twice, in this process."""
    failed = None
    for item in spread(items, READABLE):
        try:
            _, explained, took = _explain(run, tables, _renumber([cut(item, FIRST_ROWS, 0.5)] * 2, 0), ONE_THREAD)
        except InvalidData as error:
            failed = failed or error
        else:
            return explained, took
    if failed is not None:
        raise failed
    _, explained, took = _explain(run, tables, (), ONE_THREAD)
    return explained, took


def _read(run: Run, tables: Broadcast) -> tuple[tuple[int, ResourceUsage], ...]:
    """Read some of the run's items for a while, and at least a row group, whose first rows may take as long as all of it."""
    began, done = time.perf_counter(), list[tuple[int, ResourceUsage]]()
    plan = open_recipe(run.job.out, tables.recipe)
    for item in spread(run.plan.items, READ_ITEMS):
        found, n_rows, group = list[ResourceUsage](), 0, item.n_rows / max(1, sum(len(piece.row_groups) for piece in item.pieces))
        try:
            with measure_usage(found):
                for batch in read_slices(item, read_names(plan, tables.prepared), plan.slice_rows):
                    n_rows += batch.num_rows
                    if time.perf_counter() - began > READ_SECONDS and n_rows >= group:
                        break
        except InvalidData:  # the run itself will reject it with the reason
            continue
        done.append((n_rows, found[0]))
        if time.perf_counter() - began > READ_SECONDS:
            break
    return tuple(done)


def _warm_parts(parts: Sequence[Part]) -> list[Part]:
    """Return parts without the first of every worker, which loads kernels and tables; all parts if there are no others."""
    first = {part.worker: part.part for part in reversed(parts)}
    return [part for part in parts if first[part.worker] != part.part] or list(parts)


def _publish(run: Run, tables: Broadcast, explained: Any) -> tuple[Manifest, ResourceUsage, ResourceUsage]:
    found = list[ResourceUsage]()
    with measure_usage(found):
        summaries = aggregate_run(run, tables, explained)
    with measure_usage(found):
        manifest = publish_run(run, tables, explained, summaries)
        keep_provenance(run.job, Attempt(), explained.parts, manifest)
    return manifest, found[0], found[1]


def try_run(run: Run, n_workers: int) -> Trial:
    """Run all stages on a few rows of a planned run's data, in a temporary place."""
    items, found = run.plan.items, list[ResourceUsage]()
    if run.job.placement.asked_workers is not None:
        run = replace(run, job=replace(run.job, placement=replace(run.job.placement, asked_workers=n_workers)))
    with temporary_folder(run.out) as place, compiling.counted() as compiled:
        counted, counting, counted_rows = _count(run, place)
        few = _with(run, place, ())
        if isinstance(run.game, MarginalPlan):
            few = replace(few, tables=Tables(replace(run.game, counts=storage.join(place, "counts")), run.memory))
        with measure_usage(found):
            tables = broadcast_run(few, counted)
        preparing = found.pop()._replace(written=0)
        with measure_usage(found):
            if run.job.placement.on_this_machine:  # as this process does before it starts threads or workers
                warm(tables.uri, run.plan.method)
        once, took = _begin(few, tables, items)
        seconds, loaded = [*map(attrgetter("seconds"), once.parts)] or [0.0], found.pop()
        loading = ResourceUsage() if compiled.n_kernels else loaded
        rate = once.parts[-1].spent.kernel / once.parts[-1].n_rows if once.parts else 1.0
        large = int(max(BATCH, min(GROUPS * run.plan.group_rows, SECONDS / rate // BATCH * BATCH)))
        asked = [(SMALL, large // 4 // BATCH * BATCH or large // 4), (LARGE, large)]
        chosen = [item for n, n_rows in asked for item in _cut_all(items, min(MOST, n * n_workers), n_rows)]
        sample = items if sum(item.n_rows for item in items) <= max(FIRST_ROWS, sum(item.n_rows for item in chosen)) else chosen
        with _outlasted(run.job):
            mine, explained, explaining = _explain(few, tables, _renumber(sample, 2))
        read = _read(replace(run, job=mine.job), tables)
        manifest, merging, publishing = _publish(mine, tables, explained)
        parts = _warm_parts(explained.parts)
    bare = replace(manifest, parts=())
    return Trial(
        counting=counting,
        counted_rows=counted_rows,
        preparing=preparing,
        loading=loading,
        client=max(0.0, took.seconds - sum(seconds)) / max(1, len(once.parts)),
        reading=read,
        rows=tuple(item.n_rows for item in sample),
        explaining=explaining,
        parts=tuple(Tried(part.n_rows, part.size, part.spent) for part in parts),
        merging=merging,
        publishing=publishing,
        n_objects=3 + len(manifest.summaries) + run.undigested,
        n_bytes=publishing.written - len(manifest.text) + len(bare.text) + len(to_json(run.plan)),
        entry_bytes=(len(manifest.text) - len(bare.text)) / max(1, len(manifest.parts)),
        n_compiled=compiled.n_kernels,
    )
