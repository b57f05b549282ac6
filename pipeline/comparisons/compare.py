"""Comparison of rankings over a data set: their quality and agreement, as means with standard errors."""

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date as Date
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prediction_gap.tables import BUDGET

from ..arguments.dates import fill_date
from ..arguments.readers import read_date, read_flag, read_names, read_number, read_numbers, read_text
from ..cluster.map_items import map_items
from ..cluster.placement import Scheduler
from ..dataset.columns.notes import note_columns, warn_positions
from ..dataset.columns.partition import Partition, read_groups
from ..dataset.files.matching import ExtraColumns
from ..dataset.files.rows import read_some
from ..errors import InvalidData, UsageError
from ..methods.parameters import check_parameters
from ..methods.unseen_categories import refuse_counted
from ..methods.worker_memory import WORKER_OVERHEAD
from ..progress import Progress, Work, no_progress
from ..runs.job.job import Job, make_job
from ..runs.job.options import Options
from ..runs.plan.listing import list_for
from ..runs.plan.model import load_model
from ..stores import commit, storage
from . import compare_item as work
from .compare_item import compare_item
from .comparison import ComparedItem
from .differing import COLUMNS
from .entries import choose_items, parse_entry, read_run
from .measures import DIFFERING_ROWS, GAP_ROWS, NOISE, SCALES, TOP, Measures, check_label, check_measures
from .prepare import PERTURBS, Request, prepare_comparison
from .publish import publish_tables
from .tables import tabulate

_LOG = logging.getLogger("leafledger")


def compare_job(job: Job, texts: Sequence[str], measures: Measures, progress: Progress) -> pa.Table:
    """Compare rankings, see `compare`."""
    check_measures(measures)
    entries = [parse_entry(text) for text in texts]
    if not entries:
        raise UsageError("methods are none, expected at least one")
    asked = ExtraColumns(job.options.ids, () if measures.label is None else (measures.label,))
    taken = [name for name in asked.ids if name in COLUMNS]
    if taken:
        raise UsageError(f"ids has {taken[0]!r}, as a column of the rows is called; rename it")
    if storage.bars_file(job.out):
        raise UsageError(f"{job.out}: is a folder, a pipe, a socket or a device, expected the name of a file that is to be written")
    commit.check_writable(storage.beside(job.out, ""), job.out)
    loaded = load_model(job)
    check_label(measures.label, loaded)
    found = list_for(job, job.data, loaded, asked)
    model = found.model
    for line in note_columns(model):
        _LOG.info("%s: %s", job.data, line)
    warn_positions(model, job.data)
    groups = read_groups(job.options.partition, model.features)
    if groups and all(entry.run is not None or METHODS[entry.method].phi.of_groups for entry in entries):
        needing = [method.name for method in METHODS.values() if not method.phi.of_groups]
        raise UsageError(f"partition is given, and no method takes groups of features, expected {' or '.join(needing)} among methods")
    runs = {entry.run: read_run(entry.run, model, job.row_output) for entry in entries if entry.run is not None}
    if found.rejected:
        raise InvalidData(found.rejected[0].reason)  # means over some of the rows would be of other data
    plans = {run: standing.plan for run, standing in runs.items()}
    items = choose_items(lambda other: found if other == asked else list_for(job, job.data, loaded, other), asked, plans)
    part = {name: getattr(job.options, name) for name in ("trees", "outputs", "output", "missing")}
    decides = json.dumps(
        [model.digest, part, groups, [entry.name for entry in entries], asked.names, asdict(measures), [asdict(item) for item in items]]
    )
    folder = storage.beside(job.out, f"_compare-{hashlib.sha256(decides.encode()).hexdigest()[:16]}")
    try:
        prepared, done = prepare_comparison(Request(job, model, entries, runs, items, measures, groups, folder, progress)), {}
        on_done = progress(Work("comparing", job.out, len(items), sum(item.n_rows for item in items)))
        parts = [runs[ranking.run].find_parts() for ranking in prepared.rankings if ranking.run is not None]
        asked_of = [ComparedItem(item, tuple(each[item.part] for each in parts)) for item in items]
        for each, compared in map_items(job.placement, compare_item, work.warm, prepared, asked_of, WORKER_OVERHEAD):
            done[each.item.part] = compared
            on_done(each.item)
    finally:
        commit.remove(folder)
    if not job.options.allow_unseen:
        seen = sum((each.seen for each in done.values()), np.zeros((len(prepared.features), 2), np.int64))
        refuse_counted(seen, prepared.features, job.data, lambda name: read_some(items[0], name))
    facts = {"model": model.origin or job.model, "model_digest": model.digest, **part, "data": job.data, "ids": asked.ids, **asdict(measures)}
    facts |= {"partition": groups, "rankings": [asdict(entry) for entry in entries]}
    return publish_tables(job.out, tabulate(prepared, model, measures, [done[item.part] for item in items]), facts)


def compare(
    model: str | PathLike,
    data: str | PathLike,
    out: str | PathLike,
    *,
    methods: Sequence[str],
    partition: Partition | None = None,
    top: Sequence[int] = TOP,
    scales: Sequence[float] = SCALES,
    noise: str = NOISE,
    gap_rows: int = GAP_ROWS,
    budget: float = BUDGET,
    approximate: bool = False,
    seed: int = 0,
    label: str | None = None,
    ids: str | Sequence[str] = (),
    differing_rows: int = DIFFERING_ROWS,
    trees: int | str | tuple[int, int] | None = None,
    outputs: str | Sequence[str] = (),
    output: str | None = None,
    scheduler: Scheduler | None = None,
    threads: int | None = None,
    workers: int | None = None,
    plain_tcp: bool = False,
    wait: float = 15.0,
    missing: float | None = None,
    allow_unseen: bool = False,
    date: Date | str | None = None,
    progress: Callable = no_progress,
) -> pa.Table:
    """Compare rankings of every row's features by several methods, and write what was found: measures, features, and rows that differ most.

    Parameters
    ----------
    model : str or path
        Model file, as for `explain`.
    data : str or path
        Data set, as for `explain`.
    out : str or path
        Parquet object of the measures to write, or its URI. Beside ``x.parquet`` come ``x.features.parquet``, both impacts of every feature and how
        far apart the values of every two rankings are, and ``x.rows.parquet``, the rows on which every two rankings differ most. The measures are
        written last. The same comparison may be written again.
    methods : str or sequence of str
        Names of `METHODS` with their parameters, in order after colons, such as "beta:4:1", or by name in parentheses, such as
        "semivalue(atoms=0.25:1,0.75:1)"; and finished runs on the same data, "run:URI".
    partition : mapping, str or path, optional
        Groups of features for the methods that need them, as `attribute` takes them. What is ranked are the features.
    top : sequence of int
        Numbers of the largest features: how many of them two rankings have in common, how many swaps put one's list into the other's order, and how
        many turn one's list into the other's; and with labels, without how many of them the label is predicted.
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
    label : str, optional
        Column with what the model predicts, for the measures "removal …": the root mean squared error of the mean prediction when the first features
        of the row's ranking are drawn from the data, independently. Rows without a label are left out of these. The model is a regression.
    ids : str or sequence of str
        Columns of the data that are passed through to the rows on which rankings differ most.
    differing_rows : int
        How many such rows are listed of every output and two rankings, at most.
    trees, outputs, output : optional
        As for `explain`. With the output "predicted" or "other", finished runs have to be of the same.
    scheduler : str, Client or cluster, optional
        Address of a Dask scheduler, or a ``distributed.Client`` or a cluster of Dask, whose scheduler and TLS settings are used, or "serial" for one
        thread; by default this process does all.
    threads : int, optional
        Threads of this process, by default one per core that it may use.
    workers : int, optional
        Processes of a local Dask cluster, in the place of threads. Each imports the calling script, so call under ``if __name__ == "__main__"``.
    plain_tcp : bool
        Reach a scheduler on another host without TLS, where the network is your own.
    wait : float
        Seconds that a scheduler may take to answer, and as many again until it has a worker.
    missing, allow_unseen : optional
        As for `explain`. Finished runs have to be of the same ``missing``.
    date : date or str, optional
        As text YYYY-MM-DD, "today" or "yesterday", in local time. Fills ``{date}`` in ``model``, ``data``, ``out`` and the runs among ``methods``.
    progress : callable
        As for `explain`; called before perturbations are measured, where they are, and before rows are compared.

    Returns
    -------
    pa.Table
        The measures, a row per output, measure and ranking, or two rankings: columns output, measure, ranking, other (null where the measure is of
        one ranking), mean and standard_error in the measure's units, and rows. Where there is another, areas, PGI² and removal are differences on
        the same rows, the ranking's less the other's. Areas are in margin units, PGI² in squared margin units, removal in those of the label;
        agreements have none.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where. RunConflict where ``out`` is another comparison, InvalidData where a file of the data
        cannot be read, SchemaMismatch where the model knows hardly any category of a feature, UnsupportedModel where there is a label that the margin
        is no prediction of.
    """
    when = None if date is None else read_date("date", date)
    given: dict[str, Any] = {
        "partition": partition,
        "ids": ids,
        "trees": trees,
        "outputs": outputs,
        "output": output,
        "missing": missing,
        "allow_unseen": allow_unseen,
    }
    where: dict[str, Any] = {"scheduler": scheduler, "threads": threads, "workers": workers, "plain_tcp": plain_tcp, "wait": wait}
    job = make_job(model, data, out, Options(date=when, **where, **given))
    estimated = check_parameters(METHODS[PERTURBS], {"budget": budget, "seed": seed})
    measures = Measures(
        top=read_numbers("top", top, whole=True),
        scales=tuple(map(float, read_numbers("scales", scales))),
        noise=read_text("noise", noise),
        gap_rows=read_number("gap_rows", gap_rows, 1),
        budget=estimated["budget"],
        approximate=read_flag("approximate", approximate),
        seed=estimated["seed"],
        label=None if label is None else read_text("label", label),
        differing_rows=read_number("differing_rows", differing_rows, 1),
    )
    named = [fill_date(name, when) for name in read_names("methods", methods, "a method, a finished run, or several")]
    return compare_job(job, named, measures, progress)
