"""Preparation of a comparison: a first pass over the data, and broadcast tables of rankings and measures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leafledger.kernels.arrays.ordering import SCORE
from leafledger.kernels.comparison.agreement import prepare_areas
from leafledger.kernels.method.method import Phi
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.leaf_regions import count_visits, numeric_alone
from leafledger.kernels.prediction_gap.noise import Measured
from leafledger.kernels.prediction_gap.rankings import EXACT
from leafledger.kernels.prediction_gap.removal import prepare_removal
from leafledger.kernels.prediction_gap.tables import GapTables, prepare_gap
from leafledger.kernels.trees.forest import Forest, make_forest

from ..cluster.map_items import map_items
from ..dataset.columns.labels import COUNT, LabelColumns
from ..dataset.columns.partition import Groups
from ..dataset.columns.players import number_players
from ..dataset.files.listing import WorkItem
from ..errors import UsageError
from ..methods.parameters import check_parameters
from ..methods.tables import ask_model, prepare_model, refuse_statistics
from ..methods.worker_memory import WORKER_OVERHEAD, max_slice_rows
from ..models.model import Feature, Model
from ..progress import Progress, Work
from ..runs.job.job import Job
from ..runs.plan.existing_run import ExistingRun
from ..stores.table_arrays import broadcast_tables
from .compare_item import Measuring, measure_item, warm_measuring
from .comparison import Comparison, Gaps, Ranking, Removal, Sample
from .entries import Entry
from .measures import Measures

PERTURBS = "gap"  # method whose query measures the statistics of perturbations
RANKER = "banzhaf"  # method whose tables, the smallest, bin values


@dataclass(frozen=True, slots=True)
class Request:
    """A comparison with known rankings and rows."""

    job: Job
    model: Model
    entries: Sequence[Entry]
    runs: dict[str, ExistingRun]  # earlier runs by URI
    items: Sequence[WorkItem]
    measures: Measures
    groups: Groups  # for the methods that need a partition
    folder: str  # of broadcast tables
    progress: Progress


def _slice_rows(n_used: int, n_outputs: int, n_rankings: int, most: int) -> int:
    """Return the rows of a batch, from values, bins, and the arrays of each ranking of ``most`` players and each pair."""
    of_rankings = n_rankings * (most + 9 * (n_used + 1)) + n_rankings * (n_rankings - 1) // 2 * (n_used + 1)
    return max_slice_rows(3 * n_used + n_outputs * of_rankings)


def _affordable(tables: GapTables, n_rankings: int, measures: Measures) -> bool:
    """Return whether exact PGI² fits the budget of pairs of leaves; refuse if not and estimates are not allowed."""
    visits = n_rankings * len(measures.scales) * count_visits(tables.regions)
    if visits > measures.budget and not measures.approximate:
        raise UsageError(
            f"PGI² of {n_rankings} rankings at {len(measures.scales)} scales takes up to {visits:.3g} pairs of leaves per row, the budget is "
            f"{measures.budget:.3g}; raise it, have it approximate, or ask for fewer scales or none"
        )
    return visits <= measures.budget


def _measure(request: Request, features: tuple[Feature, ...]) -> Measured:
    """Measure features' standard deviations and values for resampling, in a first pass over the data."""
    job, items, parts = request.job, request.items, {}
    n_rows = sum(item.n_rows for item in items)
    query = ask_model(request.model, METHODS[PERTURBS], (), n_rows, job.placement.worker_memory, False)
    measuring = Measuring(broadcast_tables(query, request.folder), features)
    on_done = request.progress(Work("measuring", job.data, len(items), n_rows))
    for item, measured in map_items(job.placement, measure_item, warm_measuring, measuring, items, WORKER_OVERHEAD):
        parts[item.part] = measured
        on_done(item)
    first, *others = (parts[item.part] for item in items)
    return first.merge(others)


def _prepare_gaps(request: Request, forest: Forest, measured: Measured | None, exact: bool) -> Gaps:
    """Broadcast tables for every scale, in units of measured standard deviations."""
    measures, n_features, sizes = request.measures, forest.ensemble.n_features, [item.n_rows for item in request.items]
    sample = Sample(min(measures.gap_rows, sum(sizes)), sum(sizes), tuple(np.cumsum([0, *sizes])[:-1].tolist()))
    if measured is None:
        return Gaps((), measures.noise, EXACT, sample)
    drawn = ~numeric_alone(forest)
    tables = [prepare_gap(forest, np.full(n_features, scale), measured, drawn=drawn, relative=True) for scale in measures.scales]
    return Gaps(tuple(broadcast_tables(each, request.folder) for each in tables), measures.noise, EXACT if exact else measures.seed, sample)


def _prepare_removal(request: Request, forest: Forest, measured: Measured | None) -> Removal | None:
    """Broadcast tables for removal of features, if there are labels."""
    label = request.measures.label
    if label is None or measured is None:
        return None
    tables = broadcast_tables(prepare_removal(forest, measured), request.folder)
    return Removal(tables, LabelColumns(label, None, COUNT), request.measures.removed)


def _number_values(model: Model, forest: Forest, phi: Phi, groups: Groups) -> tuple[int, ...]:
    """Return the features that a method values, by number; none of one that writes ranks."""
    if phi.ranks:
        return ()
    return tuple(phi.rows(forest if phi.of_groups else make_forest(model.ensemble, number_players(model, groups).numbers)[1]).tolist())


def _rank(request: Request, forest: Forest) -> Iterator[Ranking]:
    """Return the sources of all rankings, with broadcast tables."""
    model = request.model
    for entry in request.entries:
        if entry.run is None:
            method = METHODS[entry.method]
            groups = () if method.phi.of_groups else request.groups
            tables = broadcast_tables(prepare_model(model, method, entry.parameters, groups, False), request.folder)
            yield Ranking(entry.name, entry.method, tables, None, (), _number_values(model, forest, method.phi, groups))
            continue
        plan = request.runs[entry.run].plan
        phi, number = plan.columns[1], {name: j for j, name in reversed([*enumerate(plan.players)])}  # scores come after features
        numbers = _number_values(model, forest, METHODS[plan.method].phi, plan.groups)
        read = [model.features[j] for j in numbers] if numbers else model.features
        columns = tuple(tuple(phi[k * len(plan.players) + number[feature.name]] for feature in read) for k in range(len(plan.written_outputs)))
        yield Ranking(entry.name, plan.method, "", entry.run, columns, numbers)


def prepare_comparison(request: Request) -> Comparison:
    """Prepare and broadcast all tables, with a first pass over the data if features are perturbed or resampled."""
    model, folder, measures = request.model, request.folder, request.measures
    refuse_statistics(model, "compare")
    bins, forest = make_forest(model.ensemble)
    features = tuple(model.features[column] for column in bins.column)
    binned = prepare_model(model, METHODS[RANKER], check_parameters(METHODS[RANKER], {}), (), False)
    rankings = tuple(_rank(request, forest))
    exact, measured = True, None
    if measures.scales and request.items:
        n_sized = len(rankings) - [METHODS[ranking.method].phi.ranks for ranking in rankings].count(SCORE)
        exact = _affordable(prepare_gap(forest, np.zeros(forest.ensemble.n_features), None), n_sized, measures)
    if (measures.scales or measures.label is not None) and request.items:
        measured = _measure(request, features)
    row_output = request.job.row_output
    most = max((forest.n_all for ranking in rankings if len(ranking.numbers) != len(features)), default=0)
    return Comparison(
        rankings=rankings,
        bins=broadcast_tables(binned, folder),
        areas=broadcast_tables(prepare_areas(forest), folder),
        gaps=_prepare_gaps(request, forest, measured if measures.scales else None, exact),
        removal=_prepare_removal(request, forest, measured),
        top=measures.top,
        features=features,
        outputs=model.outputs if row_output is None else (row_output.which,),
        row_output=row_output,
        ids=request.job.options.ids,
        differing_rows=measures.differing_rows,
        slice_rows=_slice_rows(len(features), len(model.outputs), len(request.entries), most),
    )
