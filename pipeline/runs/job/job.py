"""The Job record: all arguments of a run, validated as far as possible without data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date as Date
from typing import Any

from leafledger.kernels.method.open_parameters import find_open

from ...arguments.choices import MODEL
from ...arguments.dates import MISSING, fill_date
from ...arguments.endpoints import check_metrics_file, is_server
from ...arguments.readers import read_place
from ...cluster.placement import Placement, make_placement
from ...dataset.columns.labels import LabelColumns
from ...dataset.files.matching import ExtraColumns
from ...errors import UsageError
from ...methods.parameters import check_by, check_parameters, find_method
from ...models.row_output import RowOutput, read_row_output
from ...models.source import normalise_source
from ...stores import storage
from ...stores.uris import is_within, normalise
from .label_options import check_labels
from .options import Options
from .table_option import choose_table

FOLDERS = ("attributions", "summary")  # folders of a run
PUBLISHED = ("attributions/part-00000.parquet", "summary/importance.parquet")  # sample files of a run, to detect globs that match them
TABLES = "_leafledger"  # default folder beside the run's
TABLE_BYTES = 1 << 30  # memory that suffices for most tables of a background; fixed, so that tables are the same on every machine


@dataclass(frozen=True, slots=True)
class Job:
    """Arguments of a run, complete and validated except against the data. Paths are absolute, with dates filled in."""

    model: str
    data: str
    out: str
    options: Options
    parameters: tuple[tuple[str, Any], ...]  # of the method, with defaults; by name of features until the model is known
    tables: str  # folder of cached background counts
    labels: LabelColumns | None  # if the method needs them
    row_output: RowOutput | None  # if it differs by row
    placement: Placement
    name: str = ""  # its output before dates are filled in, shared by the runs of all dates


def _check_written(parameters: Mapping[str, Any]) -> None:
    for name, value in parameters.items():
        several = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else [value]
        if any(map(callable, several)):
            raise UsageError(f"parameter {name!r} is a function, which cannot be written into a plan; give numbers in its place")


def asked_columns(job: Job) -> ExtraColumns:
    """Collect the columns that a job needs besides the features."""
    numbers = () if job.labels is None else job.labels.numbers
    return ExtraColumns(job.options.ids, (*numbers, *job.options.predictions), job.options.by, job.options.values)


def _find_latest(latest: str, out: str, date: Date | None) -> str:
    if date is None:
        raise UsageError(f"{latest}: names the run of the latest date, but {MISSING}")
    found = normalise(fill_date(latest, date))
    if is_within(found, out):
        raise UsageError(f"{found}: lies within the run, but runs of other dates are to move it; choose a place outside")
    return found


def _refuse_within(out: str, name: str, uri: str) -> None:
    """Refuse an output whose files would be found in an input data set."""
    if any(is_within(written, uri, PUBLISHED) for written in (out, *(storage.join(out, folder) for folder in FOLDERS))):
        raise UsageError(f"{out}: lies within the {name}, whose next run would read it; choose another output")


def make_job(model: Any, data: Any, out: Any, options: Options) -> Job:
    """Validate the arguments of a run, and fill in defaults and dates, without reading data.

    Parameters
    ----------
    model, data, out : str or path
        A path or URI each; {date} in them is filled in.
    options : Options
        Those of the run.

    Returns
    -------
    Job
        Places are absolute.

    Raises
    ------
    UsageError
        An argument is of a wrong type, or does not go with another one.
    """
    placement = make_placement(options.scheduler, options.threads, options.workers, options.wait, options.plain_tcp)
    if options.ids and options.global_only:
        raise UsageError(f"ids are {', '.join(options.ids)}, but with global_only no rows are written; leave out one or the other")
    if options.values and options.global_only:
        raise UsageError("values are of rows, but with global_only no rows are written; leave out one or the other")
    if options.latest is None and options.latest_requires:
        raise UsageError(f"latest_requires is {options.latest_requires:g}, which is asked for latest to move, but no latest was given")
    if options.background in (None, MODEL) and options.tables is not None:
        raise UsageError(f"{options.tables}: tables are kept for backgrounds of rows, but none was given")
    if options.background_errors and options.background in (None, MODEL):
        raise UsageError("background_errors are of a background of rows as a sample, but none was given")

    def place(uri: str) -> str:
        return normalise(fill_date(uri, options.date))

    model = normalise_source(fill_date(read_place("model", model), options.date))
    called = normalise(read_place("out", out))
    data, out = (place(read_place(name, given)) for name, given in (("data", data), ("out", out)))
    background = options.background if options.background in (None, MODEL) else place(options.background)
    for name, uri in (("data", data), ("background", background)):
        if uri not in (None, MODEL):
            _refuse_within(out, name, uri)
    choose_table(options, out)
    lineage = None if options.lineage is None else fill_date(options.lineage, options.date)
    if options.metrics_file is not None:
        check_metrics_file(options.metrics_file)
    if lineage is not None:
        is_server(lineage)
    method = find_method(options.method)
    values = check_parameters(method, options.parameters or {})
    _check_written(values)
    check_by(method, options.by, options.space)
    if options.background is not None and find_open(method, values):
        raise UsageError(f"{method.name} leaves a parameter open, which is chosen while planning, before a background is counted; give a number")
    return Job(
        model=model,
        data=data,
        out=out,
        options=replace(
            options,
            latest=None if options.latest is None else _find_latest(options.latest, out, options.date),
            background=background,
            partition=place(options.partition) if isinstance(options.partition, str) else options.partition,
            reasons=place(options.reasons) if isinstance(options.reasons, str) else options.reasons,
            lineage=lineage,
        ),
        parameters=tuple(sorted(values.items())),
        tables=storage.beside(out, TABLES) if options.tables is None else place(options.tables),
        labels=check_labels(method, options),
        row_output=read_row_output(options.output),
        placement=placement,
        name=called,
    )
