"""A run, stage by stage: load, plan, count, broadcast, map, aggregate, publish, move.

Each stage is one function; ``explain`` calls them in turn.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date as Date
from os import PathLike
from typing import Any, NamedTuple

import pyarrow as pa

from kernels.buffers import Prepared
from kernels.method import BackgroundStatistics

from ..dataset.listing import Rejected, list_data
from ..dataset.partition import Partition, read_groups
from ..errors import InvalidRun, RunConflict, UsageError
from ..models import Model, load_ensemble
from ..stores import commit, storage
from ..stores.arrays import FOLDER, broadcast_tables, open_tables, store_tables
from . import execute
from .background import Marginal, Uncounted, plan_marginal
from .job import Job, find_method, make_job
from .latest import Latest, move_latest, read_latest
from .options import MissingLabels, Precision, pick
from .part import Part
from .plan import PLAN, Memory, Plan, differences, digest, extent_of, from_json, make_plan, to_json
from .prepare import prepare_model
from .publish import Manifest, publish, read_manifest
from .rejected import Limit, read_rejected, write_rejected
from .summaries import aggregate


@dataclass(frozen=True, slots=True)
class Run:
    """A planned run; nothing is written yet. ``finished`` is the manifest of an earlier run of the same plan."""

    job: Job
    model: Model
    plan: Plan
    memory: Memory
    game: Prepared | Marginal  # the path-dependent game's tables, or what is known of the marginal game
    finished: Manifest | None

    @property
    def uncounted(self) -> Uncounted | None:
        """The background, where no earlier run left its tables."""
        return self.game.uncounted if isinstance(self.game, Marginal) else None

    @property
    def n_pairs(self) -> int:
        """Pairs of players that interact."""
        return 0 if isinstance(self.game, Marginal) else len(self.game.pairs.players)


@dataclass(frozen=True, slots=True)
class Work:
    """What is about to be done, piece by piece."""

    doing: str  # in words
    run: str  # its folder
    n_items: int  # 0 where it is all one piece
    n_rows: int


@dataclass(frozen=True, slots=True)
class Explained:
    """What became of the work items."""

    parts: tuple[Part, ...]  # in the order of the plan
    rejected: tuple[Rejected, ...]  # likewise, after files whose footers could not be read


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Tables where workers read them, and the same tables here."""

    uri: str
    prepared: Prepared


class Done(NamedTuple):
    """What became of a run."""

    manifest: Manifest
    already_finished: bool  # it was finished before, and there was nothing to do
    latest: Latest | None  # what ``latest`` names, where it was asked for


Progress = Callable[[Work], Callable[[Any], None]]  # called with the work, then with every Part as it is made, or WorkItem as it is counted


def no_progress(work: Work) -> Callable[[Any], None]:  # noqa: ARG001 - the shape of a Progress
    """Progress nothing."""
    return lambda done: None


def load_model(job: Job) -> Model:
    """Stage 1: read the model file once, validated and digested."""
    return load_ensemble(job.model)


def plan_run(job: Job, model: Model) -> Run:
    """Stage 2: list the input and the background, match them against the model, prepare the tables if no row has to be read for them, project
    memory. Refusals happen here; writes nothing."""
    groups = read_groups(job.options.partition, model.features)
    found = list_data(job.data, job.options.ids, model, job.labels)
    Limit(job.options.max_rejected, len(found.files) + len(found.rejected)).check(found.rejected)
    game: Prepared | Marginal | None = plan_marginal(job, model, groups)
    if isinstance(game, Marginal):
        plan, memory = make_plan(job, model, groups, found, game.listing, game.extent)
    else:
        game = prepare_model(model, find_method(job.options.method), dict(job.parameters), groups, job.options.interactions is not None)
        plan, memory = make_plan(job, model, groups, found, None, extent_of(game))
    if job.options.scheduler is None and memory.total > job.worker_memory:
        raise UsageError(
            f"a worker needs {memory.total >> 20} MiB (tables {memory.tables >> 20}, slice {memory.slice >> 20}, largest row group "
            f"{memory.row_group >> 20}, footer {memory.footer >> 20}), it has {job.worker_memory >> 20}; use fewer workers"
        )
    where = storage.join(job.out, PLAN)
    held = storage.read_if_exists(where)
    if held is not None:
        _refuse_other(job.out, from_json(held, where), plan)
    if job.options.latest is not None:
        read_latest(job.options.latest)  # or what is there is something else
    return Run(job, model, plan, memory, game, read_manifest(job.out))


def _refuse_other(out: str, held: Plan, plan: Plan) -> None:
    if held != plan:
        raise RunConflict(f"{out}: holds another run, different in {differences(held, plan)}; choose another output or remove it")


def _require_conditional_writes(job: Job) -> None:
    careless = "" if commit.creates_once(storage.join(job.out, FOLDER)) else job.out
    if job.options.latest is not None and not careless and not commit.swaps(job.options.latest):
        careless = job.options.latest
    if careless:
        raise UsageError(
            f"{careless}: the store ignores conditions on what it writes, so that two runs could overwrite each other; use --single-writer if "
            "nobody else writes there"
        )


def _commit(run: Run) -> None:
    """Write the plan, or find it written; refuse another one."""
    if not run.job.options.single_writer:
        _require_conditional_writes(run.job)
    uri = storage.join(run.job.out, PLAN)
    with storage.scratch() as folder:
        local = folder / PLAN
        local.write_text(to_json(run.plan))
        if not commit.create(uri, local):
            _refuse_other(run.job.out, from_json(storage.read(uri), uri), run.plan)


def count_run(run: Run, progress: Progress = no_progress) -> BackgroundStatistics | None:
    """Stage 3: commit the plan and count the background; None where there is none, or nothing of it to count."""
    uncounted = run.uncounted
    if uncounted is None or not uncounted.items:
        return None
    _commit(run)
    query = broadcast_tables(uncounted.query, storage.join(run.job.out, FOLDER))
    on_done = progress(Work("counting background", run.job.out, len(uncounted.items), sum(item.n_rows for item in uncounted.items)))
    return execute.count(run.job, digest(run.plan), query, uncounted.items, run.memory.total, on_done)


def broadcast_run(run: Run, counted: BackgroundStatistics | None = None, progress: Progress = no_progress) -> Broadcast:
    """Stage 4: commit the plan, prepare the tables if a background was counted for them, and put them where workers can read them."""
    _commit(run)
    if not isinstance(run.game, Marginal):
        return Broadcast(broadcast_tables(run.game, storage.join(run.job.out, FOLDER)), run.game)
    if run.game.uncounted is None:
        return Broadcast(run.game.tables, open_tables(run.game.tables))
    progress(Work("preparing tables", run.job.out, 0, 0))
    return Broadcast(run.game.tables, store_tables(_prepare(run, run.game.uncounted, counted), run.game.tables))


def _prepare(run: Run, uncounted: Uncounted, counted: BackgroundStatistics | None) -> Prepared:
    plan, statistics = run.plan, uncounted.weights if counted is None else counted
    if statistics is None:
        raise InvalidRun(f"{run.job.out}: the background was not counted")
    return prepare_model(run.model, find_method(plan.method), dict(plan.parameters), plan.groups, background=(uncounted.query, statistics))


def map_run(run: Run, tables: Broadcast, progress: Progress = no_progress) -> Explained:
    """Stage 5: explain every work item, or reject it where its rows cannot be read.

    ``watch`` is called with what is to be done, and what it returns with each item as it is done. InvalidData where too many are rejected.
    """
    plan, job = run.plan, run.job
    rejected = [*plan.rejected, *(entry for entry in read_rejected(job.out) if entry.part is not None)]  # what was decided stays decided
    limit = Limit(job.options.max_rejected, len(plan.items) + len(plan.rejected))
    limit.check(rejected)
    given_up = {entry.part for entry in rejected}
    items = [item for item in plan.items if item.part not in given_up]
    on_done, parts = progress(Work("explaining", job.out, len(items), sum(item.n_rows for item in items))), []
    for done in execute.execute(job, digest(plan), tables.uri, items, run.memory.total):
        on_done(done)
        if isinstance(done, Rejected):
            rejected.append(done)
            limit.check(rejected)
        else:
            parts.append(done)
    order = {item.part: i for i, item in enumerate(plan.items, 1)}
    return Explained(tuple(sorted(parts, key=lambda part: part.part)), tuple(sorted(rejected, key=lambda entry: order.get(entry.part or -1, 0))))


def aggregate_run(run: Run, tables: Broadcast, explained: Explained) -> dict[str, pa.Table]:
    """Stage 6: merge the parts' states into summaries."""
    states = [part.states for part in explained.parts]
    return aggregate(run.plan, tables.prepared.players.tolist(), tables.prepared.pairs.players.tolist(), states)


def publish_run(run: Run, tables: Broadcast, explained: Explained, summaries: dict[str, pa.Table]) -> Manifest:
    """Stage 7: verify, write what was rejected and the summaries, then the manifest."""
    write_rejected(run.job.out, explained.rejected)
    return publish(run.job.out, run.plan, run.model.library, tables.prepared, explained.parts, explained.rejected, summaries)


def update_latest(run: Run) -> Latest | None:
    """Stage 8: let ``latest``, where it was asked for, name this run, which is finished, unless it names one of a later date; what it names then."""
    job = run.job
    return move_latest(job.options.latest, job.options.date, job.out, job.options.single_writer) if job.options.latest and job.options.date else None


def explain_job(job: Job, progress: Progress) -> Done:
    """All stages."""
    run = plan_run(job, load_model(job))
    manifest = run.finished
    if manifest is None:
        tables = broadcast_run(run, count_run(run, progress), progress)
        explained = map_run(run, tables, progress)
        manifest = publish_run(run, tables, explained, aggregate_run(run, tables, explained))
    return Done(manifest, run.finished is not None, update_latest(run))


def explain(
    model: str | PathLike,
    data: str | PathLike,
    out: str | PathLike,
    *,
    latest: str | PathLike | None = None,
    ids: str | Iterable[str] = (),
    precision: Precision = "float32",
    global_only: bool = False,
    single_writer: bool = False,
    date: Date | str | None = None,
    method: str = "shapley",
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    interactions: int | str | None = None,
    background: str | PathLike | None = None,
    tables: str | PathLike | None = None,
    label: str | None = None,
    weight: str | None = None,
    by: str | Iterable[str] = (),
    missing_labels: MissingLabels = "count",
    scheduler: str | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    max_rejected: int | None = None,
    progress: Progress = no_progress,
) -> Manifest:
    """Explain every row of a Parquet data set and publish attributions and summaries.

    Parameters
    ----------
    model : str or path
        Model file, a path or URI: XGBoost JSON or UBJ, LightGBM text, CatBoost cbm or JSON.
    data : str or path
        Parquet file, folder, glob or Hive-partitioned data set.
    out : str or path
        Folder of the run.
    latest : str or path, optional
        JSON object that names the finished run of the latest date, see `read_latest`. It is updated atomically when this run is finished and never
        moves to an earlier date.
    ids : str or sequence of str
        Columns of the data that are passed through to the attributions.
    precision : {"float32", "float64"}
        Of the attributions as they are stored; they are computed in float64.
    global_only : bool
        Publish summaries alone, no rows.
    single_writer : bool
        Nobody else writes this run, so that a store that ignores conditions on writes will do.
    date : date or str, optional
        Fills ``{date}`` in every path and URI.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method by name.
    partition : mapping, str or path, optional
        Groups of features, group -> features, or a JSON file of such an object; a feature that is not named is a group of its own. Values are the
        groups', with methods "owen" and "two_step" the features' within their groups.
    interactions : int or "all", optional
        Also the interactions of every two features or groups: how many of a row and output to keep, the largest by magnitude, or all that are
        not zero.
    background : str or path, optional
        Data set, as for `data`, over whose rows absent features are averaged (the marginal game), or "model" for the model's own leaf weights
        (symmetric trees). By default they are averaged over the trees' own covers (the path-dependent game). Methods "gap" and "gap_greedy" measure
        deviations on it, and draw categories and groups from it.
    tables : str or path, optional
        Folder where what is prepared for a background is kept for later runs, by default ``_leafledger`` beside the run's.
    label, weight : str, optional
        Columns with what the model predicts and, by default 1, how much a row counts, for method "r2".
    by : str or sequence of str
        Columns of the data; rows with the same values in them are a group, whose own R² is decomposed as well.
    missing_labels : {"count", "refuse"}
        Leave rows without a label out and count them, or end the run at the first.
    scheduler : str, optional
        Address of a Dask scheduler, or "serial" for this process alone; by default a local cluster.
    workers : int, optional
        Processes of the local cluster, by default one per core. Each imports the calling script, so call under ``if __name__ == "__main__"``.
    plain_tcp : bool
        Reach a scheduler on another host without TLS, where the network is your own.
    max_rejected : int, optional
        Files or work items that may be left out since they cannot be read; by default any number, as long as something is left. The manifest and
        ``rejected.json`` say what was left out and why.
    progress : callable
        Called with a ``Work`` before the background is counted and before rows are explained; what it returns is called with every piece as it
        is done.

    Returns
    -------
    Manifest
        of the finished run; an unfinished run of the same plan is completed, a finished one is left as it is

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    return explain_job(make_job(model, data, out, pick(locals())), progress).manifest
