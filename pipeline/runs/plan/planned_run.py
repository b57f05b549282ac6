"""Stage 2 of a run: the planned run, with all refusals and nothing written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from leafledger.kernels.slices.buffers import Prepared

from ...arguments.choices import CUDA, OWN, Device
from ...cluster.card import choose_device, fit_device
from ...dataset.files.listing import Listing
from ...display.text import count
from ...errors import UsageError
from ...methods.interaction_lists import choose_sets
from ...methods.parameters import find_method, group_features, number_groups, place_features
from ...methods.precision import check_precision
from ...methods.tables import prepare_model
from ...methods.unseen_categories import check_predictions
from ...methods.worker_memory import Memory, extent_of
from ...models.model import Model
from ...stores import commit, storage
from ...stores.table_arrays import table_bytes
from ..columns.change_columns import with_changes
from ..job.job import Job, asked_columns
from ..publish.mlflow_link import find_run
from ..publish.table_commit import check_table
from ..records.folder import RunFolder
from ..records.input_digests import Inputs, read_inputs
from ..records.latest import read_latest
from ..records.manifest import Manifest
from ..records.plan import Plan
from ..records.rejected import Limit
from .background import MarginalPlan, plan_marginal
from .existing_run import Replaced, Resolution, refuse_within, resolve_existing_run
from .finished_before import find_finished
from .listing import list_for
from .planner import make_plan
from .tune_parameters import tune_job


@dataclass(frozen=True, slots=True)
class Tables:
    """What rows are explained with, and what a worker needs for that."""

    game: Prepared | MarginalPlan  # tables of the path-dependent game, or the planned marginal game
    memory: Memory


@dataclass(frozen=True, slots=True)
class Run:
    """A planned run. ``finished`` is the manifest of an earlier run of the same plan, or of a kept one."""

    out: str  # folder of the run
    place: str  # place below the folder, see `replacement`
    job: Job  # with the place as output
    model: Model
    plan: Plan
    tables: Tables | None  # None if finished, where they were not asked for
    finished: Manifest | None
    digested: Inputs | None  # digests of the inputs by an earlier attempt
    replaced: Replaced | None  # the run to be replaced
    kept: str  # differences of a kept finished run

    @property
    def game(self) -> Prepared | MarginalPlan:
        """Tables of the path-dependent game, or the planned marginal game."""
        return self._planned_tables.game

    @property
    def memory(self) -> Memory:
        """What a worker needs."""
        return self._planned_tables.memory

    @property
    def _planned_tables(self) -> Tables:
        if self.tables is None:
            raise ValueError(f"{self.out}: is finished, and was planned without tables")
        return self.tables

    @property
    def undigested(self) -> bool:
        """Whether inputs have to be digested: by option, or because an earlier attempt did."""
        return self.finished is None and (self.job.options.digest_inputs or self.digested is not None)

    @property
    def returning(self) -> str | None:
        """Warning that a replacement explains rows that were forgotten in the run it replaces, where the data still have them; None of other runs."""
        standing = None if self.finished is not None or self.replaced is None else self.replaced.standing
        n = 0 if standing is None or standing.manifest is None else standing.manifest.n_forgotten
        again = "explained again where the data still have them"
        return f"{self.out}: {count(n, 'row')} that had been forgotten in the run it replaces {'is' if n == 1 else 'are'} {again}" if n else None

    @property
    def uncounted(self) -> bool:
        """Whether background rows have to be counted, without cached counts."""
        return isinstance(self.game, MarginalPlan) and self.game.uncounted

    @property
    def where(self) -> str:
        """Placement in words; empty if there is nothing to do."""
        if self.finished is not None:
            return ""
        return self.job.placement.describe(len(self.plan.items)) + " with a graphics card" * (self.plan.device == CUDA)

    @property
    def n_pairs(self) -> int:
        """Number of player pairs that interact."""
        return len(self.game.query.pairs if isinstance(self.game, MarginalPlan) else self.game.pairs.players)


def _on_device(job: Job, device: Device) -> Job:
    return replace(job, options=replace(job.options, device=device))


def plan_run(job: Job, model: Model, *, unfinished: bool = False) -> Run:
    """Plan a run: list inputs, match them with the model, prepare tables if no rows are needed, and project memory (stage 2).

    Open parameters are tuned on the first rows. Refusals happen here. Nothing lasting is written: stores are tested with an object that is deleted
    again.

    Parameters
    ----------
    unfinished : bool
        Make tables for what is left to do alone: none where the run is finished.

    Raises
    ------
    UsageError
        Options do not fit the model or each other, there are no data, a worker would have too little memory, a store ignores conditions on what it
        writes, or the output lies in a folder of another run's own.
    SchemaMismatch
        The data do not have the columns of the model, or two columns of the output would have one name.
    InvalidData
        More files than may be rejected cannot be read.
    UnsupportedModel
        The method has no meaning for this model.
    RunConflict
        The output's folder holds another run, and is not to be replaced.
    """
    refuse_within(job.out)
    check_precision(model, job.options.precision)
    check_predictions(job.options.predictions, model.outputs)
    asked_device, method = job.options.device, find_method(job.options.method)
    found = list_for(job, job.data, model, asked_columns(job))
    model = found.model
    groups = group_features(method, job.options.partition, model.features)
    number_groups(method, dict(job.parameters), groups)  # refuses others, before a background is counted
    job = replace(job, parameters=tuple(place_features(method, dict(job.parameters), model.features).items()))
    Limit(job.options.max_rejected, len(found.files) + len(found.rejected)).check(found.rejected)
    finished = find_finished(job, model, groups, found) if unfinished else None
    if finished is not None:
        return _settle(job, model, found, *finished, None)
    job = _on_device(job, choose_device(asked_device, job.placement.on_this_machine, job.options.background is not None))
    job = tune_job(job, model, groups, found)
    game: Prepared | MarginalPlan | None = plan_marginal(job, model, groups)
    if isinstance(game, MarginalPlan):
        job = _on_device(job, fit_device(asked_device, job.options.device, method, None))
        plan, memory = make_plan(job, model, groups, found, game.listing, game.extent)
    else:
        asked = job.options.interactions is not None, job.options.combinations == OWN
        sets = choose_sets(method, job.options.interactions, job.options.order, job.options.index)
        game = prepare_model(model, method, dict(job.parameters), groups, *asked, sets=sets)
        job = _on_device(job, fit_device(asked_device, job.options.device, method, game))
        plan, memory = make_plan(job, model, groups, found, None, extent_of(game))
        game = with_changes(game, model, plan.reasons)
        memory = replace(memory, tables=table_bytes(game))
    job = replace(job, placement=job.placement.with_room(memory.total, memory.shared))
    if job.placement.scheduler is None:
        memory.check(job.placement.worker_memory, job.placement.threads if job.placement.is_here else 1)
    settled = resolve_existing_run(job.out, plan, job.options.if_changed)
    return _settle(job, model, found, plan, settled, Tables(game, memory))


def _settle(job: Job, model: Model, found: Listing, plan: Plan, settled: Resolution, tables: Tables | None) -> Run:
    """Check the places that the run is written to and named in."""
    if job.options.mlflow_run is not None:
        find_run(job.options.mlflow_run)
    check_table(job, found, plan)
    replaced = settled.replaced
    if job.options.keep_replaced and replaced is not None and replaced.standing is None and replaced.manifest is not None:
        raise UsageError(f"{job.out}: holds a run that this version does not read, and cannot keep; leave --keep-replaced out")
    if job.options.latest is not None:
        read_latest(job.options.latest)  # refuses other objects at the pointer
        commit.check_writable(storage.beside(job.options.latest, ""), job.options.latest)
    out, job = job.out, replace(job, out=RunFolder(job.out).at(settled.place).uri)
    game = None if tables is None else tables.game
    counts = [job.tables] if isinstance(game, MarginalPlan) and game.uncounted else []
    kept = out if job.options.tables is None else job.tables
    unwritten = {} if settled.finished else {RunFolder(job.out).tables: out, **dict.fromkeys(counts, kept)}
    _check_stores(job, unwritten, [] if settled.replaced is None else [RunFolder(out).manifest])
    digested = read_inputs(job.out)
    return Run(out, settled.place, job, model, plan, tables, settled.finished, digested, settled.replaced, settled.kept)


def _check_stores(job: Job, unwritten: Mapping[str, str], swapped: Sequence[str]) -> None:
    """Refuse unwritable places, folders by what was asked for, and stores in which concurrent runs could overwrite each other."""
    for folder, place in unwritten.items():
        commit.check_writable(folder, place)
    if job.options.single_writer:
        return
    careless = [place for folder, place in unwritten.items() if not commit.creates_once(folder)]
    swapped = [*swapped, *([] if job.options.latest is None else [job.options.latest])]
    careless += [uri for uri in swapped if not commit.swaps(uri)]
    if careless:
        raise UsageError(
            f"{careless[0]}: the store ignores conditions on what it writes, or knows none, so that two runs could overwrite each other; use "
            "--single-writer if nobody else writes there"
        )
