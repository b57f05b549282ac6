"""The stages of a run after loading: plan, count, broadcast, map, aggregate, publish, move.

Each stage is one function; `explain_job` calls them in turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.method.method import BackgroundQuery, BackgroundStatistics
from leafledger.kernels.slices.buffers import Prepared

from ..dataset.files.listing import Rejected
from ..dataset.files.rows import read_some
from ..errors import InvalidRun
from ..methods.background_counts import BackgroundCounts, count_in_turn
from ..methods.parameters import find_method
from ..methods.tables import prepare_model
from ..methods.unseen_categories import refuse_unseen
from ..progress import Progress, Work, no_progress
from ..stores.table_arrays import broadcast_tables
from .columns.change_columns import with_changes
from .execute import executor as execute
from .execute.bundles import Task
from .execute.count_background import keep_counts
from .execute.merged_states import MergedStates, add_groups
from .execute.reuse import find_earlier
from .plan.background import MarginalPlan
from .plan.planned_run import Run
from .publish.kept_run import keep_run
from .publish.move_latest import name_latest, refuse_small
from .publish.publish import publish
from .publish.replacement import take_place
from .publish.summaries import aggregate
from .records.folder import RunFolder
from .records.latest import Latest
from .records.manifest import Manifest
from .records.part import Part, without_costs
from .records.plan_file import broadcast_recipe, commit_plan
from .records.rejected import Limit, find_given_up, read_rejected, write_rejected


@dataclass(frozen=True, slots=True)
class Explained:
    """Results of all work items."""

    parts: tuple[Part, ...]  # in the order of the plan, without measurements except seconds
    rejected: tuple[Rejected, ...]  # likewise, after files with unreadable footers
    states: Mapping[str, Any]  # of all parts, merged, by names of summaries; None without parts


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Tables and recipe as broadcast to workers, and the tables in memory."""

    uri: str
    prepared: Prepared
    recipe: str  # SHA-256, hexadecimal; see `plan.recipe`


def count_run(run: Run, progress: Progress = no_progress) -> BackgroundStatistics | None:
    """Commit the plan, count the background and cache the counts (stage 3).

    Returns
    -------
    BackgroundStatistics or None
        None where there is no background, it was counted before, or the model's own leaf weights stand for it: then nothing is done.

    Raises
    ------
    InvalidData
        Rows of the background cannot be read, or have changed since the run was planned.
    SchemaMismatch
        The model knows hardly any category of a feature of the background.
    RunConflict
        The output's folder holds another run by now.
    ClusterLost
        No scheduler answers, it has no workers any more, or all that an item was given to died.
    """
    if not isinstance(game := run.game, MarginalPlan) or not game.uncounted:
        return None
    commit_plan(run.job.out, run.plan)
    recipe, folder, n_rows = broadcast_recipe(run.job.out, run.plan), RunFolder(run.job.out).tables, sum(item.n_rows for item in game.items)

    def count(query: BackgroundQuery) -> BackgroundCounts:
        on_done = progress(Work("counting background", run.job.out, len(game.items), n_rows))
        return execute.count(run.job, recipe, broadcast_tables(query, folder), game.items, run.memory.total, on_done)

    return keep_counts(count_in_turn(game.query, count), game, run.plan, run.job.options.allow_unseen)


def broadcast_run(run: Run, counted: BackgroundStatistics | None = None, progress: Progress = no_progress) -> Broadcast:
    """Commit the plan, prepare the tables if there is a background, and broadcast them (stage 4).

    Parameters
    ----------
    counted : BackgroundStatistics, optional
        What `count_run` returned.

    Raises
    ------
    RunConflict
        The output's folder holds another run by now.
    """
    commit_plan(run.job.out, run.plan)
    prepared = run.game
    if isinstance(prepared, MarginalPlan):
        progress(Work("preparing tables", run.job.out, 0, 0))
        prepared = _prepare(run, prepared, counted)
    return Broadcast(broadcast_tables(prepared, RunFolder(run.job.out).tables), prepared, broadcast_recipe(run.job.out, run.plan))


def _prepare(run: Run, game: MarginalPlan, counted: BackgroundStatistics | None) -> Prepared:
    plan, statistics = run.plan, game.counted if counted is None else counted
    if statistics is None:
        raise InvalidRun(f"{run.job.out}: the background was not counted")
    asked = plan.interactions is not None, bool(plan.combinations)
    prepared = prepare_model(run.model, find_method(plan.method), dict(plan.parameters), plan.groups, *asked, (game.query, statistics), plan.sets)
    return with_changes(prepared, run.model, plan.reasons)


def map_run(run: Run, tables: Broadcast, progress: Progress = no_progress) -> Explained:
    """Explain every work item, or reject it if unreadable; existing parts are verified and kept (stage 5).

    Parameters
    ----------
    progress : callable
        Called with what is to be done; what it returns is called with every Part or Rejected as it is done.

    Returns
    -------
    Explained
        What earlier attempts of the run rejected stays rejected.

    Raises
    ------
    InvalidData
        More is rejected than the job allows.
    UsageError
        There are more groups of rows than are worth a table.
    InvalidLabel
        A label or weight cannot be used.
    AdditivityBreach
        Attributions of a row do not add up.
    ClusterLost
        No scheduler answers, or it has no workers any more.
    """
    plan, job = run.plan, run.job
    given_up = find_given_up(plan.items, decided := read_rejected(job.out))  # earlier rejections stand; the others follow from the parts
    rejected = [*plan.rejected, *(entry for entry in decided if entry.part in given_up)]
    limit = Limit(job.options.max_rejected, sum(1 + len(item.joined) for item in plan.items) + len(plan.rejected))
    limit.check(rejected)
    items = [item for item in plan.items if item.part not in given_up]
    on_done, parts = progress(Work("explaining", job.out, len(items), sum(item.n_rows for item in items), run.where)), list[Part]()
    groups, merged, task = np.zeros(0, str), MergedStates(plan.summaries), Task(job.out, tables.recipe, tables.uri)
    for done in execute.execute(job, task, items, find_earlier(None if run.replaced is None else run.replaced.standing, plan), run.memory.total):
        for piece in done.pieces:
            on_done(piece)
        parts += [without_costs(piece) for piece in done.pieces if isinstance(piece, Part)]
        rejected += [piece for piece in done.pieces if isinstance(piece, Rejected)]
        limit.check(rejected)
        groups = add_groups(plan, groups, merged.add(done.place, done.states, done.level))
    in_turn = sorted(rejected, key=lambda entry: -1 if entry.part is None else entry.part)
    return Explained(tuple(sorted(parts, key=lambda part: part.part)), tuple(in_turn), merged.total())


def aggregate_run(run: Run, tables: Broadcast, explained: Explained) -> dict[str, pa.Table]:
    """Make summaries of the merged states (stage 6).

    Returns
    -------
    dict of str to pa.Table
        Summaries by name.

    Raises
    ------
    SchemaMismatch
        The model knows hardly any category of a feature. All rows are explained, so that the run with ``allow_unseen`` has little left to do.
    UsageError
        There are more groups of rows than are worth a table.
    """
    prepared = tables.prepared
    found = aggregate(run.plan, prepared.bins.read.tolist(), prepared.players.tolist(), prepared.pairs.players.tolist(), explained.states)
    refuse_unseen(found, run.job.options.allow_unseen, run.plan.features, lambda name: read_some(run.plan.items[0], name))
    return found


def publish_run(run: Run, tables: Broadcast, explained: Explained, summaries: dict[str, pa.Table]) -> Manifest:
    """Write the rejections, verify the parts, write the summaries, then write or replace the manifest (stage 7).

    Parameters
    ----------
    summaries : dict of str to pa.Table
        By name.

    Raises
    ------
    InvalidData
        Too few rows are explained for the place of a run that ``latest`` names.
    RunConflict
        The run that was to be replaced was replaced by another meanwhile.
    """
    write_rejected(run.job.out, explained.rejected)
    manifest = publish(run.out, run.place, run.plan, run.model.library, tables.prepared, explained.parts, explained.rejected, summaries)
    if run.place:
        refuse_small(run.job.options, run.out, manifest)
        replaced, standing = (None, None) if run.replaced is None else (run.replaced.manifest, run.replaced.standing)
        if run.job.options.keep_replaced and standing is not None and standing.manifest is not None:
            keep_run(run.out, standing.manifest)
        take_place(run.out, manifest, replaced, run.job.options.single_writer)
    return manifest


def update_latest(run: Run, manifest: Manifest) -> Latest | None:
    """Point ``latest`` to this run if requested, unless it names a later date or too few rows were explained (stage 8).

    Parameters
    ----------
    run : Run
        Finished.

    Returns
    -------
    Latest or None
        What ``latest`` names then; None where it was not asked for, or names nothing.
    """
    return name_latest(run.job.options, run.out, manifest, bool(run.kept))
