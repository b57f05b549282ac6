"""Rankings compared on a data set: how good each is, how far every two agree; means over all rows with standard errors, one Parquet object."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date as Date
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.comparison import prepare_areas
from kernels.method import read_method
from kernels.methods import METHODS
from kernels.prediction_gap.leaf_regions import count_visits, numeric_alone
from kernels.prediction_gap.noise import NOISES, Measured
from kernels.prediction_gap.rankings import EXACT, PGI2
from kernels.prediction_gap.tables import BUDGET, GapTables, prepare_gap
from kernels.reductions import MEANS, merge_all
from kernels.trees.forest import Forest, make_forest

from ..dataset import schema
from ..dataset.listing import Listing, WorkItem, list_data, make_items
from ..errors import InvalidData, RunConflict, UsageError
from ..models import Model, load_ensemble
from ..models.model import Feature
from ..runs import execute
from ..runs.arguments import read_date, read_flag, read_names, read_number, read_numbers, read_text, shorten
from ..runs.job import Job, check_parameters, make_job
from ..runs.options import Options
from ..runs.plan import ITEM_ROWS, PLAN, WORKER_OVERHEAD, Plan, max_slice_rows
from ..runs.planned import from_json
from ..runs.prepare import ask_model, prepare_model
from ..runs.progress import Progress, Work, no_progress
from ..runs.publish import read_manifest
from ..runs.states import unpack_state
from ..stores import commit, storage
from ..stores.arrays import broadcast_tables
from ..stores.places import normalise
from . import item as work
from .item import Comparison, Gaps, Measuring, Ranking, Sample, compare_item, measure_item, name_values

RUN = "run:"  # what the name of an earlier run starts with
TOP = (1, 3, 10)
SCALES = (0.1, 0.5, 1.0)
NOISE = NOISES[0].name
GAP_ROWS = 200  # prediction gaps cost thousands of times what attributions do
PERTURBS = "gap"  # asks for what perturbations are made of
RANKER = "banzhaf"  # whose tables turn values into bins, for they are the smallest
FOOTER = b"leafledger"


@dataclass(frozen=True, slots=True)
class Measures:
    """What rankings are compared by."""

    top: tuple[int, ...] = TOP
    scales: tuple[float, ...] = SCALES
    noise: str = NOISE
    gap_rows: int = GAP_ROWS
    budget: float = BUDGET
    approximate: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    """A ranking as it was asked for: a method with its parameters, or an earlier run."""

    name: str
    method: str  # empty of a run
    parameters: dict[str, Any]
    run: str | None


def _parse(entry: str) -> _Entry:
    """``method``, ``method:value:…`` with its parameters in their order, or ``run:URI``."""
    if entry.startswith(RUN):
        return _Entry(entry, "", {}, normalise(entry[len(RUN) :]))
    try:
        method, parameters = read_method(entry, METHODS)
    except ValueError as error:
        raise UsageError(f"{entry!r}: {error}") from None
    if method.labelled:
        raise UsageError(f"{entry!r} shares out an error, not a margin; expected a method that needs no labels")
    return _Entry(entry, method.name, parameters, None)


@dataclass(frozen=True, slots=True)
class _Request:
    """A comparison whose rankings and rows are known."""

    job: Job
    model: Model
    entries: Sequence[_Entry]
    plans: dict[str, Plan]  # of earlier runs, by their URI
    items: Sequence[WorkItem]
    measures: Measures
    folder: str  # where tables are broadcast from
    progress: Progress


def _read_run(run: str, model: Model) -> Plan:
    """The plan of a finished run whose columns can be read as scores of the model's features."""
    manifest = read_manifest(run)
    if manifest is None:
        raise UsageError(f"{run}: not a finished run")
    if manifest.rejected:
        raise UsageError(f"{run}: lacks rows that it had to reject ({manifest.rejected[0].reason})")
    where = storage.join(run, PLAN)
    plan = from_json(storage.read(where), where)
    missing = sorted({feature.name for feature in model.features} - set(plan.players))
    if missing or plan.outputs != model.outputs:
        what = f"has no values of feature {missing[0]!r}" if missing else f"has outputs {', '.join(plan.outputs)}"
        raise UsageError(f"{run}: {what}; expected those of the model's features and outputs")
    return plan


def _pieces(items: Sequence[WorkItem]) -> set[tuple[str, str, int]]:
    return {(item.uri, item.etag, group) for item in items for group in item.row_groups}


def _choose_items(found: Listing, plans: dict[str, Plan]) -> tuple[WorkItem, ...]:
    """Work items: those of the earlier runs, where their columns are compared, for parts are read along with them."""
    items = make_items(found, ITEM_ROWS)
    for n_before, (run, plan) in enumerate(plans.items()):
        if _pieces(plan.items) != _pieces(items):
            raise UsageError(f"{run}: is about other rows, or they have changed since")
        if n_before and plan.items != items:
            raise UsageError(f"{run}: has its rows in other parts than the run before it")
        items = plan.items
    return items


def _slice_rows(n_used: int, n_outputs: int, n_rankings: int) -> int:
    """Rows at a time: values and ranks, and of every ranking attributions, order and places."""
    return max_slice_rows(3 * n_used + n_outputs * n_rankings * 6 * (n_used + 1))


def _affordable(tables: GapTables, n_rankings: int, measures: Measures) -> bool:
    """Whether PGI² takes no more pairs of leaves per row than the budget has; refuse what does and is not to be approximate."""
    visits = n_rankings * len(measures.scales) * count_visits(tables.regions)
    if visits > measures.budget and not measures.approximate:
        raise UsageError(
            f"PGI² of {n_rankings} rankings at {len(measures.scales)} scales takes up to {visits:.3g} pairs of leaves per row, the budget is "
            f"{measures.budget:.3g}; raise it, have it approximate, or ask for fewer scales or none"
        )
    return visits <= measures.budget


def _measure(request: _Request, features: tuple[Feature, ...]) -> Measured:
    """A first pass over the data: features' standard deviations, and the values of categorical ones, which are drawn."""
    job, items, parts = request.job, request.items, {}
    n_rows = sum(item.n_rows for item in items)
    query = ask_model(request.model, METHODS[PERTURBS], (), n_rows, job.worker_memory, False)
    measuring = Measuring(broadcast_tables(query, request.folder), features)
    on_done = request.progress(Work("measuring", job.data, len(items), n_rows))
    for item, measured in execute.map_items(job, measure_item, work.warm_measuring, measuring, items, WORKER_OVERHEAD):
        parts[item.part] = measured
        on_done(item)
    first, *others = (parts[item.part] for item in items)
    return first.merge(others)


def _prepare_gaps(request: _Request, forest: Forest, features: tuple[Feature, ...]) -> Gaps:
    """Broadcast tables for every scale, in standard deviations measured on the data."""
    measures, n_features, sizes = request.measures, forest.ensemble.n_features, [item.n_rows for item in request.items]
    sample = Sample(min(measures.gap_rows, sum(sizes)), sum(sizes), tuple(np.cumsum([0, *sizes])[:-1].tolist()))
    if not measures.scales or not request.items:
        return Gaps((), measures.noise, EXACT, sample)
    exact = _affordable(prepare_gap(forest, np.zeros(n_features), None), len(request.entries), measures)
    measured, drawn = _measure(request, features), ~numeric_alone(forest)
    tables = [prepare_gap(forest, np.full(n_features, scale), measured, drawn=drawn, relative=True) for scale in measures.scales]
    return Gaps(tuple(broadcast_tables(each, request.folder) for each in tables), measures.noise, EXACT if exact else measures.seed, sample)


def _rank(request: _Request, features: Sequence[Feature]) -> Iterator[Ranking]:
    """Where every ranking's scores come from; tables are broadcast."""
    for entry in request.entries:
        if entry.run is None:
            prepared = prepare_model(request.model, METHODS[entry.method], entry.parameters, (), False)
            yield Ranking(entry.name, entry.method, broadcast_tables(prepared, request.folder), None, ())
            continue
        plan = request.plans[entry.run]
        phi = schema.output_columns(plan.players, plan.outputs, plan.ids, plan.interactions is not None, METHODS[plan.method].phi.column)[1]
        number, n_players = {name: j for j, name in enumerate(plan.players)}, len(plan.players)
        columns = tuple(tuple(phi[k * n_players + number[feature.name]] for feature in features) for k in range(len(plan.outputs)))
        yield Ranking(entry.name, plan.method, "", entry.run, columns)


def _prepare(request: _Request) -> Comparison:
    """Prepare and broadcast all tables."""
    model, folder = request.model, request.folder
    bins, forest = make_forest(model.ensemble)
    features = tuple(model.features[column] for column in bins.column)
    binned = prepare_model(model, METHODS[RANKER], check_parameters(METHODS[RANKER], {}), (), False)
    return Comparison(
        rankings=tuple(_rank(request, features)),
        bins=broadcast_tables(binned, folder),
        areas=broadcast_tables(prepare_areas(forest), folder),
        gaps=_prepare_gaps(request, forest, features),
        top=request.measures.top,
        features=features,
        slice_rows=_slice_rows(len(features), len(model.outputs), len(request.entries)),
    )


def _tabulate(model: Model, names: Sequence[str], measures: Measures, exact: bool, states: Sequence[Sequence[str]]) -> pa.Table:
    """Merge states, in the order of items; a row per output, measure and ranking, or two of them."""
    n_outputs, tables = len(model.outputs), []
    for pass_, values in enumerate(name_values(len(names), measures.top, [f"{PGI2} {scale:g}" for scale in measures.scales], exact)):
        merged = merge_all(MEANS, (unpack_state(MEANS, each[pass_]) for each in states), n_outputs, len(values))
        found = MEANS.finalize(merged, np.arange(len(values)), len(values))
        tables.append(
            pa.table(
                {
                    "output": pa.array([output for output in model.outputs for _ in values], pa.string()),
                    "measure": pa.array([value.measure for value in values] * n_outputs, pa.string()),
                    "ranking": pa.array([names[value.ranking] for value in values] * n_outputs, pa.string()),
                    "other": pa.array([None if value.other is None else names[value.other] for value in values] * n_outputs, pa.string()),
                    **{name: numbers.reshape(-1) for name, numbers in found.items()},
                    "rows": pa.array([int(merged.rows[0])] * len(values) * n_outputs, pa.int64()),
                }
            )
        )
    return pa.concat_tables(tables)


def _publish(out: str, table: pa.Table) -> None:
    """Write the object, or find it written; refuse another one."""
    with storage.scratch() as folder:
        local = folder / "comparison.parquet"
        pq.write_table(table, local, compression="zstd", write_page_checksum=True)
        if not commit.create(out, local) and storage.read(out) != local.read_bytes():
            raise RunConflict(f"{out}: exists already and differs from this comparison; choose another output or remove it")


def _check(measures: Measures) -> None:
    top, scales, known = measures.top, measures.scales, [noise.name for noise in NOISES]
    if not top or any(k < 1 for k in top) or len(set(top)) < len(top):
        raise UsageError(f"top is {', '.join(map(str, top)) or 'empty'}, expected different numbers of features, at least 1 each")
    if not all(0 < scale < np.inf for scale in scales) or len({f"{scale:g}" for scale in scales}) < len(scales):
        raise UsageError(f"scales are {', '.join(map(str, scales))}, expected different numbers above 0")
    if measures.noise not in known:
        raise UsageError(f"noise is {shorten(measures.noise)}, expected one of {', '.join(known)}")


def compare_job(job: Job, entries: Sequence[str], measures: Measures, progress: Progress) -> pa.Table:
    """Compare rankings, see `compare`.

    Parameters
    ----------
    job : Job
        Its ``out`` is the object to write.
    entries : sequence of str
        Methods with their parameters, and finished runs.
    measures : Measures
    progress : callable
        See `explain`.

    Returns
    -------
    pa.Table

    Raises
    ------
    LeafledgerError
        As `compare`.
    """
    _check(measures)
    parsed = [_parse(entry) for entry in entries]
    names = [entry.name for entry in parsed]
    if not names:
        raise UsageError("methods are none, expected at least one")
    commit.check_writable(storage.beside(job.out, ""))
    model = load_ensemble(job.model)
    found = list_data(job.data, model)
    model = found.model
    plans = {entry.run: _read_run(entry.run, model) for entry in parsed if entry.run is not None}
    if found.rejected:
        raise InvalidData(found.rejected[0].reason)  # means of some of the rows would be those of other data
    items = _choose_items(found, plans)
    decides = json.dumps([model.digest, names, asdict(measures), [asdict(item) for item in items]])
    folder = storage.beside(job.out, f"_compare-{hashlib.sha256(decides.encode()).hexdigest()[:16]}")
    try:
        prepared, states = _prepare(_Request(job, model, parsed, plans, items, measures, folder, progress)), {}
        on_done = progress(Work("comparing", job.out, len(items), sum(item.n_rows for item in items)))
        for item, state in execute.map_items(job, compare_item, work.warm, prepared, items, WORKER_OVERHEAD):
            states[item.part] = state
            on_done(item)
    finally:
        commit.remove(folder)
    facts = {"model": job.model, "model_digest": model.digest, "data": job.data, "rankings": [asdict(entry) for entry in parsed], **asdict(measures)}
    table = _tabulate(model, names, measures, prepared.gaps.seed == EXACT, [states[item.part] for item in items])
    table = table.replace_schema_metadata({FOOTER: json.dumps(facts)})
    _publish(job.out, table)
    return table


def compare(
    model: str | PathLike,
    data: str | PathLike,
    out: str | PathLike,
    *,
    methods: Sequence[str],
    top: Sequence[int] = TOP,
    scales: Sequence[float] = SCALES,
    noise: str = NOISE,
    gap_rows: int = GAP_ROWS,
    budget: float = BUDGET,
    approximate: bool = False,
    seed: int = 0,
    scheduler: str | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    date: Date | str | None = None,
    progress: Callable = no_progress,
) -> pa.Table:
    """Compare rankings of every row's features by several methods, and write what was found as one Parquet object.

    Parameters
    ----------
    model : str or path
        Model file, as for `explain`.
    data : str or path
        Data set, as for `explain`.
    out : str or path
        Parquet object to write, or its URI. The same comparison may be written again.
    methods : str or sequence of str
        Names of `METHODS` with their parameters in order after colons, such as "beta:4:1"; and finished runs on the same data, "run:URI".
    top : sequence of int
        Sizes of the sets of the largest features, whose agreement is measured.
    scales : sequence of float
        PGI² is measured under noise of these standard deviations, in those of each feature on the data; none measures no PGI².
    noise : {"normal", "uniform", "laplace"}
        What is added to numeric features. Values of categorical ones are drawn from the data.
    gap_rows : int
        Rows that PGI² is measured on, spread evenly over the data; all where there are fewer.
    budget : float
        Pairs of leaves that PGI² may look at for a row. What the ensemble may need beyond it is refused or estimated.
    approximate : bool
        Estimate PGI² beyond the budget by quasi-Monte Carlo. The measure "pgi2 … error" is then the mean of the rows' standard errors, which the
        error of their mean is at most.
    seed : int
        Of the estimates' points, at least 0.
    scheduler : str, optional
        Address of a Dask scheduler, or "serial" for this process alone; by default a local cluster.
    workers : int, optional
        Processes of the local cluster, by default one per core. Each imports the calling script, so call under ``if __name__ == "__main__"``.
    plain_tcp : bool
        Reach a scheduler on another host without TLS, where the network is your own.
    date : date or str, optional
        Fills ``{date}`` in ``model``, ``data`` and ``out``.
    progress : callable
        As for `explain`; called before perturbations are measured, where they are, and before rows are compared.

    Returns
    -------
    pa.Table
        A row per output, measure and ranking, or two rankings: columns output, measure, ranking, other (null where the measure is of one ranking),
        mean and standard_error in the measure's units, and rows. Where there is another, areas and PGI² are differences on the same rows, the
        ranking's less the other's. Areas are in margin units, PGI² in squared margin units, agreements have none.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. RunConflict where ``out`` is another comparison, InvalidData where a file of the data
        cannot be read.
    """
    given = Options(scheduler=scheduler, workers=workers, plain_tcp=plain_tcp, date=None if date is None else read_date("date", date))
    job = make_job(model, data, out, given)
    estimated = check_parameters(METHODS[PERTURBS], {"budget": budget, "seed": seed})
    measures = Measures(
        top=read_numbers("top", top, whole=True),
        scales=tuple(map(float, read_numbers("scales", scales))),
        noise=read_text("noise", noise),
        gap_rows=read_number("gap_rows", gap_rows, 1),
        budget=estimated["budget"],
        approximate=read_flag("approximate", approximate),
        seed=estimated["seed"],
    )
    return compare_job(job, read_names("methods", methods, "a method, a finished run, or several"), measures, progress)
