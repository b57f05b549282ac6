"""A run, stage by stage, once its model is loaded: plan, count, broadcast, map, aggregate, publish, move.

Each stage is one function; `explain_job` calls them in turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from kernels.buffers import Prepared
from kernels.method import BackgroundStatistics

from ..dataset.listing import Rejected
from ..dataset.partition import read_groups
from ..errors import InvalidRun, UsageError
from ..models import Model
from ..stores import commit, storage
from ..stores.arrays import FOLDER, broadcast_tables
from . import execute
from .background import Marginal, keep_counts, plan_marginal
from .bundles import Task
from .digests import Inputs, read_inputs
from .inputs import check_predictions, refuse_unseen
from .job import Job, asked_columns, describe_where, find_method, make_room
from .latest import Latest, name_latest, read_latest, refuse_small
from .listed import list_for
from .merged import MergedStates, add_groups
from .mlflow_run import find_run
from .options import OWN
from .part import Part, without_costs
from .plan import Plan, make_plan
from .planned import broadcast_recipe, commit_plan
from .precision import check_precision
from .prepare import prepare_model
from .progress import Progress, Work, no_progress
from .publish import MANIFEST, Manifest, publish
from .rejected import Limit, find_given_up, read_rejected, write_rejected
from .replacement import Replaced, settle, take_place
from .reuse import find_earlier
from .sizes import Memory, extent_of
from .summaries import aggregate
from .table import check_table
from .tuning import tune_job
from .where import choose_where


@dataclass(frozen=True, slots=True)
class Run:
    """A planned run; nothing is written yet. ``finished`` is the manifest of an earlier run of the same plan, or of one that is kept in its place."""

    out: str  # folder of the run
    place: str  # where it is made below that, see `replacement`
    job: Job  # whose output is that place
    model: Model
    plan: Plan
    memory: Memory
    game: Prepared | Marginal  # the path-dependent game's tables, or what is known of the marginal game
    finished: Manifest | None
    digested: Inputs | None  # what an earlier attempt read of the inputs, byte by byte
    replaced: Replaced | None  # the run whose place it takes
    kept: str  # in what the finished run differs, where it is kept though it is another

    @property
    def undigested(self) -> bool:
        """Inputs have to be digested: it was asked for, or an earlier attempt did."""
        return self.finished is None and (self.job.options.digest_inputs or self.digested is not None)

    @property
    def uncounted(self) -> bool:
        """Rows of a background have to be counted: no earlier run left what it counted."""
        return isinstance(self.game, Marginal) and self.game.uncounted

    @property
    def where(self) -> str:
        """Where rows are explained, in words; empty where there is nothing to do."""
        return describe_where(self.job, len(self.plan.items)) if self.finished is None else ""

    @property
    def n_pairs(self) -> int:
        """Pairs of players that interact."""
        return len(self.game.query.pairs if isinstance(self.game, Marginal) else self.game.pairs.players)


@dataclass(frozen=True, slots=True)
class Explained:
    """What became of the work items."""

    parts: tuple[Part, ...]  # in the order of the plan, without what they took but for their seconds
    rejected: tuple[Rejected, ...]  # likewise, after files whose footers could not be read
    states: Mapping[str, Any]  # of all parts, merged, by the names of summaries; None where there are no parts


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Tables and recipe where workers read them, and the same tables here."""

    uri: str
    prepared: Prepared
    recipe: str  # SHA-256, hexadecimal; see `plan.recipe`


def plan_run(job: Job, model: Model) -> Run:
    """Stage 2: list the input and the background, match them against the model, prepare the tables if no row has to be read for them, project memory.

    Parameters that are left open are chosen on the first rows. Refusals happen here. Nothing is written that stays: stores are tried with an object
    that is deleted again.

    Parameters
    ----------
    job : Job
    model : Model

    Returns
    -------
    Run

    Raises
    ------
    UsageError
        Options do not fit the model or each other, there are no data, a worker would have too little memory, or a store ignores conditions on what
        it writes.
    SchemaMismatch
        The data do not have the columns of the model, or two columns of the output would have one name.
    InvalidData
        More files than may be rejected cannot be read.
    UnsupportedModel
        The method has no meaning for this model.
    RunConflict
        The output's folder holds another run, and is not to be replaced.
    InvalidRun
        A plan, a manifest or what ``latest`` points at is there, and is none.
    StorageError
        The store does not answer, or the output cannot be written.
    """
    check_precision(model, job.options.precision)
    check_predictions(job.options.predictions, model.outputs)
    found = list_for(job, job.data, model, asked_columns(job))
    model = found.model
    groups = read_groups(job.options.partition, model.features)
    Limit(job.options.max_rejected, len(found.files) + len(found.rejected)).check(found.rejected)
    job = tune_job(job, model, groups, found)
    game: Prepared | Marginal | None = plan_marginal(job, model, groups)
    counted = sum(item.n_rows for item in game.items) if isinstance(game, Marginal) else 0
    if isinstance(game, Marginal):
        plan, memory = make_plan(job, model, groups, found, game.listing, game.extent)
    else:
        asked = job.options.interactions is not None, job.options.combinations == OWN
        game = prepare_model(model, find_method(job.options.method), dict(job.parameters), groups, *asked)
        plan, memory = make_plan(job, model, groups, found, None, extent_of(game))
    job = make_room(job, memory.total)
    if job.options.scheduler is None:
        memory.check(job.worker_memory)
    settled = settle(job.out, plan, job.options.if_changed)
    job = job if settled.finished else choose_where(job, find_method(plan.method), None if isinstance(game, Marginal) else game, plan.n_rows, counted)
    if job.options.mlflow_run is not None:
        find_run(job.options.mlflow_run)
    check_table(job, found, plan)
    if job.options.latest is not None:
        read_latest(job.options.latest)  # or what is there is something else
        commit.check_writable(storage.beside(job.options.latest, ""))
    out, job = job.out, replace(job, out=storage.join(job.out, settled.place) if settled.place else job.out)
    counts = [job.tables] if isinstance(game, Marginal) and game.uncounted else []
    unwritten = [] if settled.finished else [storage.join(job.out, FOLDER), *counts]
    _check_stores(job, unwritten, [] if settled.replaced is None else [storage.join(out, MANIFEST)])
    digested = read_inputs(job.out)
    return Run(out, settled.place, job, model, plan, memory, game, settled.finished, digested, settled.replaced, settled.kept)


def _check_stores(job: Job, unwritten: Sequence[str], swapped: Sequence[str]) -> None:
    """Refuse places that cannot be written, and stores in which two runs could overwrite each other."""
    for folder in unwritten:
        commit.check_writable(folder)
    if job.options.single_writer:
        return
    careless = [folder for folder in unwritten if not commit.creates_once(folder)]
    swapped = [*swapped, *([] if job.options.latest is None else [job.options.latest])]
    careless += [uri for uri in swapped if not commit.swaps(uri)]
    if careless:
        raise UsageError(
            f"{careless[0]}: the store ignores conditions on what it writes, or knows none, so that two runs could overwrite each other; use "
            "--single-writer if nobody else writes there"
        )


def count_run(run: Run, progress: Progress = no_progress) -> BackgroundStatistics | None:
    """Stage 3: commit the plan, count the background and keep the counts for later runs.

    Parameters
    ----------
    run : Run
    progress : callable
        See `explain`.

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
    StorageError
        The store does not answer.
    """
    if not isinstance(game := run.game, Marginal) or not game.uncounted:
        return None
    commit_plan(run.job.out, run.plan)
    recipe, query = broadcast_recipe(run.job.out, run.plan), broadcast_tables(game.query, storage.join(run.job.out, FOLDER))
    on_done = progress(Work("counting background", run.job.out, len(game.items), sum(item.n_rows for item in game.items)))
    counted = execute.count(run.job, recipe, query, game.items, run.memory.total, on_done)
    return keep_counts(counted, game, run.plan, run.job.options.allow_unseen)


def broadcast_run(run: Run, counted: BackgroundStatistics | None = None, progress: Progress = no_progress) -> Broadcast:
    """Stage 4: commit the plan, prepare the tables if there is a background, and put them where workers can read them.

    Parameters
    ----------
    run : Run
    counted : BackgroundStatistics, optional
        What `count_run` returned.
    progress : callable
        See `explain`.

    Returns
    -------
    Broadcast

    Raises
    ------
    InvalidRun
        There is a background to count, and it was not counted.
    RunConflict
        The output's folder holds another run by now.
    StorageError
        The store does not answer.
    """
    commit_plan(run.job.out, run.plan)
    prepared = run.game
    if isinstance(prepared, Marginal):
        progress(Work("preparing tables", run.job.out, 0, 0))
        prepared = _prepare(run, prepared, counted)
    return Broadcast(broadcast_tables(prepared, storage.join(run.job.out, FOLDER)), prepared, broadcast_recipe(run.job.out, run.plan))


def _prepare(run: Run, game: Marginal, counted: BackgroundStatistics | None) -> Prepared:
    plan, statistics = run.plan, game.counted if counted is None else counted
    if statistics is None:
        raise InvalidRun(f"{run.job.out}: the background was not counted")
    asked = plan.interactions is not None, bool(plan.combinations)
    return prepare_model(run.model, find_method(plan.method), dict(plan.parameters), plan.groups, *asked, (game.query, statistics))


def map_run(run: Run, tables: Broadcast, progress: Progress = no_progress) -> Explained:
    """Stage 5: explain every work item, or reject it where its rows cannot be read. Parts that are there already are verified and kept.

    Parameters
    ----------
    run : Run
    tables : Broadcast
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
    InvalidRun
        A part that is there is damaged, or another plan made it.
    ClusterLost
        No scheduler answers, or it has no workers any more.
    StorageError
        The store does not answer.
    """
    plan, job = run.plan, run.job
    given_up = find_given_up(plan.items, decided := read_rejected(job.out))  # what was decided stays decided; parts say what else
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
    """Stage 6: make summaries of the merged states.

    Parameters
    ----------
    run : Run
    tables : Broadcast
    explained : Explained

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
    refuse_unseen(found, run.job.options.allow_unseen)
    return found


def publish_run(run: Run, tables: Broadcast, explained: Explained, summaries: dict[str, pa.Table]) -> Manifest:
    """Stage 7: write what was rejected, verify the parts, write the summaries, then the manifest, or exchange that of the run that is replaced.

    Parameters
    ----------
    run : Run
    tables : Broadcast
    explained : Explained
    summaries : dict of str to pa.Table
        By name.

    Returns
    -------
    Manifest

    Raises
    ------
    InvalidData
        Too few rows are explained for the place of a run that ``latest`` names.
    InvalidRun
        Parts are missing, or an object is there already with other bytes.
    RunConflict
        The run that was to be replaced was replaced by another meanwhile.
    StorageError
        The store refuses or does not answer.
    """
    write_rejected(run.job.out, explained.rejected)
    manifest = publish(run.out, run.place, run.plan, run.model.library, tables.prepared, explained.parts, explained.rejected, summaries)
    if run.place:
        refuse_small(run.job.options, run.out, manifest)
        replaced = None if run.replaced is None else run.replaced.manifest
        take_place(run.out, manifest, replaced, run.job.options.single_writer)
    return manifest


def update_latest(run: Run, manifest: Manifest) -> Latest | None:
    """Stage 8: let ``latest``, where it was asked for, name this run, unless it names one of a later date or too few rows are explained.

    Parameters
    ----------
    run : Run
        Finished.
    manifest : Manifest
        Of the run.

    Returns
    -------
    Latest or None
        What ``latest`` names then; None where it was not asked for, or names nothing.

    Raises
    ------
    InvalidRun
        What ``latest`` points at is something else.
    StorageError
        The store does not answer.
    """
    return name_latest(run.job.options, run.out, manifest, bool(run.kept))
