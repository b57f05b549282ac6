"""The function ``effects``: effects of features over a background of any size, in two passes that can be resumed, published as tables."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date as Date
from importlib.metadata import version
from os import PathLike
from typing import Any

import numpy as np

from leafledger.kernels.effects.sums import CountedRows, EffectSums
from leafledger.kernels.errors import InvalidParameters
from leafledger.kernels.method.jackknife import N_GROUPS
from leafledger.kernels.reductions.merge_tree import MergeTree
from leafledger.kernels.slices.links import Link

from ..arguments.choices import MARGIN, Space
from ..arguments.readers import read_date, read_flag, read_number, read_numbers, read_space
from ..cluster.map_items import map_items
from ..cluster.placement import Scheduler
from ..dataset.columns.notes import warn_positions
from ..dataset.columns.partition import Partition, read_groups
from ..dataset.columns.values import read_features
from ..dataset.files.listing import Listing, make_items
from ..dataset.files.rows import read_some
from ..display.text import count
from ..errors import InvalidData, InvalidRun, LeafledgerError, SchemaMismatch, UsageError
from ..methods.output_space import choose_link
from ..methods.unseen_categories import refuse_counted
from ..methods.worker_memory import ITEM_ROWS, WORKER_OVERHEAD
from ..models.model import Model
from ..progress import Progress, Work, no_progress
from ..runs.job.job import Job, make_job
from ..runs.job.options import Options
from ..runs.plan.background import MarginalPlan, plan_counts
from ..runs.plan.listing import list_for
from ..runs.plan.model import load_model
from ..stores import commit, storage
from ..stores.table_arrays import broadcast_tables, open_stored_tables, store_tables
from ..stores.uris import is_within
from .asked import AskedEffects, ask_effects
from .counted import draw_counted
from .feature_effects import INTERVALS, QUANTILES, FeatureEffects, gather
from .items import NumberedItem, Pass, count_item, count_states, first_rows, name_item, sum_item, warm_counting, warm_sums
from .named_axis import NamedAxis, choose_names, name_axis
from .passed import prepare_rows, take_together
from .publish import TABLES, Planned, Published, publish, read_published

WORK = "_work"  # folder of what items gave, until all is published


@dataclass(frozen=True, slots=True)
class _Counts:
    """What is counted of the background, or was counted before."""

    game: MarginalPlan  # rows by what they have in common with each leaf: kept where explain keeps the same
    axes: tuple[NamedAxis, ...]  # whose states are counted: all features', so that whoever asks for others next finds them
    place: str  # URI of where these are kept
    states: CountedRows | None  # as they were found there, without statistics

    @property
    def work(self) -> Callable | None:
        """What is to be done of every item; None where all was counted before."""
        if self.game.uncounted:
            return count_item
        return count_states if self.states is None else None

    def check(self, counted: CountedRows, n_rows: int, where: str) -> None:
        """Refuse counts that so many rows cannot have: they come from files, which anybody may have written."""
        try:
            self.game.query.check(counted.statistics, n_rows)
        except InvalidParameters as error:
            raise InvalidRun(f"{where}: {error}; remove this folder") from error
        self.check_states(counted, n_rows, where)

    def check_states(self, found: Any, n_rows: int, where: str) -> None:
        """Refuse what are no states of so many rows."""
        shapes = [(each.n_states,) for each in self.axes]
        counts = [*found.states, found.seen] if isinstance(found, CountedRows) and isinstance(found.states, tuple) else []
        if [each.shape for each in counts[:-1] if isinstance(each, np.ndarray)] != shapes or not counts:
            raise InvalidRun(f"{where}: holds no states of {count(len(shapes), 'feature')}; remove this folder")
        if any(each.dtype != np.int64 or (each < 0).any() for each in counts) or any(each.sum() != n_rows for each in counts[:-1]):
            raise InvalidRun(f"{where}: holds no states of {count(n_rows, 'row')}; remove this folder")

    def of(self, counted: CountedRows, asked: AskedEffects) -> CountedRows:
        """Take the states of the axes that are asked for."""
        place = {each.name: k for k, each in enumerate(self.axes)}
        return counted._replace(states=tuple(counted.states[place[each.name]] for each in asked.axes))


def _find_counts(job: Job, asked: AskedEffects, listing: Listing) -> _Counts:
    """Find what was counted of the background before."""
    errors = replace(job.options, background_errors=listing.n_rows >= 2 * N_GROUPS)
    game, axes = plan_counts(replace(job, options=errors), asked.model, asked.groups, listing), asked.axes
    if not asked.groups:  # of which a row may be in no state
        there, names = {each.name: each for each in axes}, choose_names(None, asked.model, ())
        axes = tuple(there.get(name) or name_axis(asked.model, asked.bins, asked.forest, (), name) for name in names)
    decides = json.dumps([game.counts.rpartition("/")[2], [each.name for each in axes], "states"])
    counts = _Counts(game, axes, storage.join(job.tables, hashlib.sha256(decides.encode()).hexdigest()), None)
    kept = open_stored_tables(counts.place)
    if kept is not None:
        counts.check_states(kept, listing.n_rows, counts.place)
    return replace(counts, states=kept)


@dataclass(frozen=True, slots=True)
class _Request:
    """Effects with everything known that decides them."""

    job: Job
    asked: AskedEffects
    counts: _Counts
    listing: Listing
    items: tuple[NumberedItem, ...]
    link: Link | None
    folder: str  # of work that is not published
    progress: Progress

    def count_done(self, work: Callable) -> int:
        """Count the items whose result an earlier attempt left."""
        return sum(storage.exists(self.place(work, each)) for each in self.items)

    def place(self, work: Callable, numbered: NumberedItem) -> str:
        """Name where an item's result of a pass is kept."""
        return storage.join(self.folder, work.__name__, name_item(numbered.item))

    def plan(self) -> Planned:
        """Say what there is to do, and refuse what passing over rows would refuse for its size."""
        take_together(self.asked, self.link)
        counting = self.counts.work
        return Planned(
            self.listing.model.digest,
            self.listing.digest,
            len(self.listing.files),
            len(self.items),
            len(self.items) if counting is None else self.count_done(counting),
            self.count_done(sum_item),
            sum(each.n_states for each in self.asked.axes),
            tuple(each.name for each in self.asked.axes),
            tuple((self.asked.axes[a].name, self.asked.axes[b].name) for a, b in self.asked.pairs),
            self.job.placement.describe(len(self.items)),
            "" if counting is None else self.job.tables,
        )

    def run(self, doing: str, work: Callable, warm: Callable, tables: Any, axes: Sequence[NamedAxis]) -> Any:
        """Do what is not done of a pass, and merge the results in the order of items."""
        features = read_features(self.asked.model.features, self.asked.bins)
        folder = storage.join(self.folder, work.__name__)
        task = Pass(broadcast_tables(tables, self.folder), tuple(each.name for each in axes), features, self.link, folder)
        tree = MergeTree[Any](lambda parts: parts[0].merge(parts[1:]))
        on_done = self.progress(Work(doing, self.job.out, len(self.items), self.listing.n_rows))
        left = list[NumberedItem]()
        for each in self.items:
            kept = open_stored_tables(self.place(work, each))
            if kept is None:
                left.append(each)
            else:
                tree.add(each.item.part, kept)
                on_done(each.item)
        for each, made in map_items(self.job.placement, work, warm, task, left, WORKER_OVERHEAD):
            tree.add(each.item.part, made)
            on_done(each.item)
        return tree.total()


def _spell(asked: AskedEffects, items: Sequence[NumberedItem]) -> AskedEffects:
    """Spell categories that the model knows by hashes alone as the first rows have them."""
    axes = (each if each.bins is None or each.ordered else each.spelled(set(read_some(items[0].item, each.name))) for each in asked.axes)
    return replace(asked, axes=tuple(axes))


def _count(request: _Request) -> CountedRows:
    """Count the background, or find what was counted before; keep it for later runs if the model knows its categories."""
    counts, asked, job = request.counts, request.asked, request.job
    counted: Any = counts.states
    if counts.work is not None:
        tables = counts.game.query, tuple(each.axis for each in counts.axes)
        counted = request.run("counting background", counts.work, warm_counting, tables, counts.axes)
    if not counts.game.uncounted:
        counted = counted._replace(statistics=counts.game.counted)
    counts.check(counted, request.listing.n_rows, request.folder)
    try:
        known = read_features(asked.model.features, counts.game.query.bins)
        refuse_counted(counted.seen, known, job.data, lambda name: read_some(request.items[0].item, name))
    except SchemaMismatch:
        if not job.options.allow_unseen:
            raise
    else:
        if counts.game.uncounted:
            store_tables(counted.statistics, counts.game.counts)
        if counts.states is None:
            store_tables(counted._replace(statistics=()), counts.place)
    return counts.of(counted, asked)


def _find_effects(request: _Request, n_intervals: int, space: Space) -> FeatureEffects:
    """Make both passes."""
    asked, listing = request.asked, request.listing
    found = draw_counted(asked, request.counts.game.query, _count(request))
    tables = prepare_rows(asked, found, request.link, n_intervals)
    sums: EffectSums = request.run("passing over rows", sum_item, warm_sums, tables, asked.axes)
    return gather(_spell(asked, request.items), found, sums, tables, space, f"background of {listing.n_rows:,} rows", asked.notes())


def _list(job: Job, loaded: Model) -> Listing:
    """List the background, all of whose files have to be readable."""
    listing = list_for(job, job.data, loaded)
    warn_positions(listing.model, job.data)
    if listing.rejected:
        raise InvalidData(listing.rejected[0].reason)  # means over some of the rows would be of another background
    if not listing.n_rows:
        raise UsageError(f"{job.data}: the background has no rows, expected at least one")
    return listing


def effects(
    model: str | PathLike,
    background: str | PathLike,
    out: str | PathLike,
    *,
    features: Sequence[str | int] | None = None,
    pairs: Sequence[Sequence[str | int]] = (),
    partition: Partition | None = None,
    intervals: int = INTERVALS,
    quantiles: Sequence[float] = QUANTILES,
    space: Space = MARGIN,
    trees: int | str | tuple[int, int] | None = None,
    outputs: str | Sequence[str] = (),
    output: str | None = None,
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    wait: float = 15.0,
    tables: str | PathLike | None = None,
    missing: float | None = None,
    allow_unseen: bool = False,
    date: Date | str | None = None,
    dry_run: bool = False,
    progress: Callable = no_progress,
) -> Published:
    """Compute effects of features over a background of any size, and publish them as tables and pictures.

    Two passes over the background, item by item: what an item gave is kept in the output until all is published, so that the same call goes on where
    one before was interrupted. ``effects.json`` is written last, and lists all else with its SHA-256.

    Parameters
    ----------
    model : str or path
        Model file, as for `explain`.
    background : str or path
        Parquet data set, given like the data of `explain`.
    out : str or path
        Folder, or its URI.
    features, pairs, partition, intervals : optional
        As `feature_effects` takes them.
    quantiles : sequence of float
        Of rows' centred curves, from 0 to 1.
    space : "margin", "probability" or "response"
        As `feature_effects` takes it.
    trees, outputs, output : optional
        As for `explain`.
    scheduler, threads, workers, plain_tcp, wait : optional
        As for `explain`: where the background is read.
    tables : str or path, optional
        As for `explain`: where what is counted of the background is kept, for effects and for attributions against it with their errors.
    missing, allow_unseen : optional
        As for `explain`.
    date : date or str, optional
        As text YYYY-MM-DD, "today" or "yesterday", in local time. Fills ``{date}`` in ``model``, ``background`` and ``out``.
    dry_run : bool
        Only say what would be done, and refuse what would be refused. Nothing is computed or written.
    progress : callable
        As for `explain`; called before each pass.

    Returns
    -------
    Published
        What was written, or found there of the same request; with ``dry_run`` its ``planned`` says what there is to do.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. RunConflict where the output holds other effects, InvalidData where a file of the background
        cannot be read.
    """
    where: dict[str, Any] = {"scheduler": scheduler, "threads": threads, "workers": workers, "plain_tcp": plain_tcp, "wait": wait}
    part: dict[str, Any] = {"trees": trees, "outputs": outputs, "output": output, "missing": missing}
    read_space("space", space)
    when = None if date is None else read_date("date", date)
    part |= {"partition": partition, "allow_unseen": read_flag("allow_unseen", allow_unseen)}
    read_flag("dry_run", dry_run)
    part |= {"background": background, "tables": tables}
    job = make_job(model, background, out, Options(date=when, **where, **part))
    if is_within(job.out, job.data, TABLES):
        raise UsageError(f"{job.out}: lies within the background, which the same call would read next time; choose another output")
    n_intervals, asked_quantiles = read_number("intervals", intervals, 1), read_numbers("quantiles", quantiles)
    if not asked_quantiles or not all(0 <= each <= 1 for each in asked_quantiles):
        raise UsageError(f"quantiles are {list(asked_quantiles)}, expected numbers from 0 to 1")
    if job.row_output is not None:
        raise UsageError(f"output is {job.options.output!r}, which differs from row to row; effects are of one output, or of all")
    listing = _list(job, load_model(job))
    groups = read_groups(job.options.partition, listing.model.features)
    asked = ask_effects(listing.model, groups, features, pairs, "effects")
    link = choose_link(space, listing.model)
    names = [each.name for each in asked.axes], [[asked.axes[place].name for place in pair] for pair in asked.pairs]
    facts: dict[str, Any] = {
        "model": listing.model.origin or job.model,
        "model_digest": listing.model.digest,
        "trees": job.options.trees,
        "outputs": listing.model.outputs,
        "output": job.options.output,
        "output_names": job.options.outputs,
        "missing": listing.model.missing,
        "background": job.data,
        "background_digest": listing.digest,
        "n_rows": listing.n_rows,
        "features": names[0],
        "pairs": names[1],
        "partition": groups,
        "intervals": n_intervals,
        "quantiles": list(asked_quantiles),
        "space": space,
    }
    found, work = read_published(job.out, facts), storage.join(job.out, WORK)
    if found is not None and not dry_run:
        commit.remove(work)  # which a process that was killed has left
        return found
    items = tuple(first_rows(make_items(listing, ITEM_ROWS)))
    decides = json.dumps([version("leafledger"), facts, [asdict(each.item) for each in items]])
    folder = storage.join(work, hashlib.sha256(decides.encode()).hexdigest()[:16])
    request = _Request(job, asked, _find_counts(job, asked, listing), listing, items, link, folder, progress)
    if found is None:
        commit.check_writable(work, job.out)  # what a killed process leaves of it goes with the work
        if request.counts.work is not None:
            commit.check_writable(job.tables)
    if dry_run:
        return Published(job.out, (), listing.n_rows, asked.notes(), found is not None, request.plan())
    try:
        made = _find_effects(request, n_intervals, space)
    except LeafledgerError:
        first = read_published(job.out, facts)  # by the same call elsewhere, which then removed what both had kept
        if first is None:
            raise
        return first
    published = publish(job.out, made, facts, np.array(asked_quantiles))
    commit.remove(work)  # and what was kept of other requests, which can never be published here
    return published
