"""Rankings compared on a data set: how good each is, how far every two agree; means over all rows with standard errors, one Parquet object."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date as Date
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kernels.batch import make_board
from kernels.comparison import METRICS, list_values
from kernels.methods import METHODS
from kernels.reductions import MEANS, merge_all

from . import execute, schema, storage
from .comparison import Question, Ranking
from .config import Job, check_parameters, find_method, make_job
from .errors import InvalidData, RunConflict, UsageError
from .listing import Listing, WorkItem, list_data, make_items
from .models import Model, load_ensemble
from .part import unpack_state
from .plan import ITEM_ROWS, PLAN, WORKER_OVERHEAD, Plan, from_json, max_slice_rows
from .players import prepare_model
from .publish import read_manifest
from .run import Watch, Work, unwatched
from .tables import broadcast

RUN = "run:"  # what the name of an earlier run starts with
TOP = (1, 3, 10)
RANKER = "banzhaf"  # whose tables rank rows, for they are the smallest
FOOTER = b"leafledger"


@dataclass(frozen=True, slots=True)
class _Asked:
    """A ranking as it was asked for: a method with its parameters, or an earlier run."""

    name: str
    method: str  # empty of a run
    parameters: dict[str, Any]
    run: str | None


def _parse(entry: str) -> _Asked:
    """``method``, ``method:value:…`` with its parameters in their order, or ``run:URI``."""
    if entry.startswith(RUN):
        return _Asked(entry, "", {}, storage.absolute(entry[len(RUN) :]))
    name, *values = entry.split(":")
    method = find_method(name)
    if method.labelled:
        raise UsageError(f"{entry!r} shares out an error, not a margin; expected a method that needs no labels")
    known = [parameter.name for parameter in method.parameters]
    if len(values) > len(known):
        raise UsageError(f"{entry!r} gives {len(values)} parameters, expected at most {len(known)}: {':'.join((name, *known))}")
    return _Asked(entry, name, check_parameters(method, dict(zip(known, values, strict=False))), None)


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


def _ask(model: Model, asked: Sequence[_Asked], plans: dict[str, Plan], top: tuple[int, ...], folder: str) -> Question:
    """Prepare and broadcast all tables."""
    ranks, board = make_board(model.ensemble)
    features = tuple(model.features[column] for column in ranks.column)
    rankings = []
    for each in asked:
        tables, columns = "", tuple[tuple[str, ...], ...]()
        if each.run is None:
            tables = broadcast(prepare_model(model, METHODS[each.method], each.parameters, (), False), folder)
        else:
            plan = plans[each.run]
            phi = schema.output_columns(plan.players, plan.outputs, plan.ids, plan.interactions is not None, METHODS[plan.method].column)[1]
            number = {name: j for j, name in enumerate(plan.players)}
            n_players = len(plan.players)
            columns = tuple(tuple(phi[k * n_players + number[feature.name]] for feature in features) for k in range(len(plan.outputs)))
        rankings.append(Ranking(each.name, each.method, tables, each.run, columns))
    return Question(
        rankings=tuple(rankings),
        ranks=broadcast(prepare_model(model, METHODS[RANKER], check_parameters(METHODS[RANKER], {}), (), False), folder),
        metrics=tuple((name, broadcast(metric.prepare(board), folder)) for name, metric in METRICS.items()),
        top=top,
        features=features,
        slice_rows=_slice_rows(len(features), len(model.outputs), len(asked)),
    )


def _tabulate(model: Model, names: Sequence[str], top: Sequence[int], states: Sequence[str]) -> pa.Table:
    """Merge states, in the order of items; a row per output, measure and ranking, or two of them."""
    values = list_values(len(names), tuple(METRICS), top)
    merged = merge_all(MEANS, (unpack_state(MEANS, state) for state in states), len(model.outputs), len(values))
    found, n_outputs = MEANS.finalize(merged, np.arange(len(values)), len(values)), len(model.outputs)
    return pa.table(
        {
            "output": pa.array([output for output in model.outputs for _ in values], pa.string()),
            "measure": pa.array([value.measure for value in values] * n_outputs, pa.string()),
            "ranking": pa.array([names[value.ranking] for value in values] * n_outputs, pa.string()),
            "other": pa.array([None if value.other is None else names[value.other] for value in values] * n_outputs, pa.string()),
            **{name: numbers.reshape(-1) for name, numbers in found.items()},
            "rows": pa.array([int(merged.rows[0])] * len(values) * n_outputs, pa.int64()),
        }
    )


def _publish(out: str, table: pa.Table) -> None:
    """Write the object, or find it written; refuse another one."""
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder) / "comparison.parquet"
        pq.write_table(table, local, compression="zstd", write_page_checksum=True)
        if not storage.create(out, local) and storage.read(out) != local.read_bytes():
            raise RunConflict(f"{out}: exists already and differs from this comparison; choose another output or remove it")


def _check_top(top: Sequence[int]) -> tuple[int, ...]:
    if not top or any(k < 1 for k in top) or len(set(top)) < len(top):
        raise UsageError(f"top is {', '.join(map(str, top)) or 'empty'}, expected different numbers of features, at least 1 each")
    return tuple(top)


def compare_job(job: Job, entries: Sequence[str], top: Sequence[int], watch: Watch) -> pa.Table:
    """All of it, for arguments that were checked."""
    asked, sizes = [_parse(entry) for entry in entries], _check_top(top)
    names = [each.name for each in asked]
    if not names or len(set(names)) < len(names):
        raise UsageError(f"methods are {', '.join(names) or 'none'}, expected different ones")
    model = load_ensemble(job.model)
    plans = {each.run: _read_run(each.run, model) for each in asked if each.run is not None}
    found = list_data(job.data, (), model)
    if found.rejected:
        raise InvalidData(found.rejected[0].reason)  # means of some of the rows would be those of other data
    items = _choose_items(found, plans)
    decides = json.dumps([model.digest, names, sizes, [asdict(item) for item in items]])
    folder = storage.beside(job.out, f"_compare-{hashlib.sha256(decides.encode()).hexdigest()[:16]}")
    try:
        question, states = _ask(model, asked, plans, sizes, folder), {}
        said = watch(Work("comparing", job.out, len(items), sum(item.n_rows for item in items)))
        for item, state in execute.compare(job, question, items, WORKER_OVERHEAD):
            states[item.part] = state
            said(item)
    finally:
        storage.remove(folder)
    facts = {"model": job.model, "model_digest": model.digest, "data": job.data, "rankings": [asdict(each) for each in asked], "top": sizes}
    table = _tabulate(model, names, sizes, [states[item.part] for item in items]).replace_schema_metadata({FOOTER: json.dumps(facts)})
    _publish(job.out, table)
    return table


def compare(
    model: str | PathLike,
    data: str | PathLike,
    out: str | PathLike,
    *,
    methods: Sequence[str],
    top: Sequence[int] = TOP,
    scheduler: str | None = None,
    workers: int | None = None,
    date: Date | str | None = None,
    watch: Callable = unwatched,
) -> pa.Table:
    """Compare rankings of every row's features by several methods.

    Parameters
    ----------
    model, data, scheduler, workers, date, watch : as for ``explain``
    out : URI or path of the Parquet object to write; the same comparison may be written again
    methods : names of ``METHODS`` with their parameters in order, such as "beta:4:1", and finished runs on the same data, "run:URI"
    top : sizes of the sets of the largest features whose agreement is measured

    Returns
    -------
    pa.Table
        columns output, measure, ranking, other (None where the measure is of one ranking), mean, standard_error and rows. Where there is another,
        insertion and deletion are differences on the same rows, the ranking's less the other's
    """
    job = make_job(str(model), str(data), str(out), scheduler=scheduler, workers=workers, date=date)
    return compare_job(job, methods, top, watch)
