"""What a run is asked to do: one frozen record, built and checked in one place. The only code that asks what the machine has room for."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date as Date
from ipaddress import ip_address
from typing import Any

import psutil

from kernels.method import Method
from kernels.methods import METHODS
from kernels.tuning import find_open

from ..dataset.labels import LabelColumns
from ..dataset.matching import Asked
from ..display import count
from ..errors import UsageError
from ..models.row_output import RowOutput, read_row_output
from ..models.source import normalise_source
from ..stores import storage
from ..stores.places import is_within, normalise
from . import control_group
from .arguments import read_place, shorten
from .dates import fill_date
from .labels import check_by, check_labels
from .listeners import check_metrics_file, is_server, split_address
from .options import Options
from .table_place import choose_table

SERIAL = "serial"
ENCRYPTED = ("tls", "wss")  # ways to a scheduler
MODEL = "model"  # as a background
FOLDERS = ("attributions", "summary")  # of a run
PUBLISHED = ("attributions/part-00000.parquet", "summary/importance.parquet")  # of what a run writes, for globs that would find it
TABLES = "_leafledger"  # folder beside that of the run, by default
WORKER_BYTES = 1 << 30  # that a worker has at least, where nobody says how many there are and what they need is not known yet
TABLE_BYTES = 1 << 30  # of tables for a background that suffice: what is prepared depends on it, so it is the same on every machine


@dataclass(frozen=True, slots=True)
class Job:
    """Arguments of a run, complete and checked as far as they can be without looking at the data. Places are absolute, with their dates."""

    model: str
    data: str
    out: str
    options: Options
    parameters: tuple[tuple[str, Any], ...]  # of the method, defaults filled in
    tables: str  # folder where a background's counts are kept for later runs
    labels: LabelColumns | None  # where the method needs them
    row_output: RowOutput | None  # where it differs from row to row
    workers: int
    worker_memory: int  # bytes
    name: str = ""  # its output before dates are filled in: what a run of every night is called

    @property
    def leaves_where(self) -> bool:
        """Neither a scheduler nor workers are asked for."""
        return self.options.scheduler is None and self.options.workers is None


def check_parameters(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parameters of a method, and fill in defaults.

    Parameters
    ----------
    method : Method
    given : mapping of str to Any
        Values by name: as text from a command line, or as Python values.

    Returns
    -------
    dict of str to Any
        Of all of the method's parameters, in its order.

    Raises
    ------
    UsageError
        The method has no parameter of some name, or a value is none that the parameter takes.
    """
    known = {parameter.name: parameter for parameter in method.parameters}
    unknown = sorted(set(given) - set(known))
    if unknown:
        takes = ", ".join(known) or "none"
        raise UsageError(f"method {method.name!r} has no parameter {unknown[0]!r}, it takes {takes}")
    values = {}
    for name, parameter in known.items():
        try:
            values[name] = parameter.read(given[name]) if name in given else parameter.default
        except ValueError as error:
            raise UsageError(f"parameter {name!r} is {shorten(given[name])}, {error}") from None
    return values


def _check_written(parameters: Mapping[str, Any]) -> None:
    for name, value in parameters.items():
        if callable(value):
            raise UsageError(f"parameter {name!r} is a function, which cannot be written into a plan; give points")


def _find_memory() -> int:
    """Bytes that this process and what it starts may take: the machine's, or what a container, a job or a unit allows of it."""
    total, allowed = int(psutil.virtual_memory().total), control_group.find_memory()
    return total if allowed is None else min(total, allowed)


def table_budget() -> int:
    """Choose how much memory the tables of rows in memory may take: half of what this process may.

    Returns
    -------
    int
        Bytes.
    """
    return _find_memory() // 2


def count_cores() -> int:
    """Count the cores that this process may use: those it may run on, or as many as it may take the time of.

    Returns
    -------
    int
    """
    here, allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, control_group.find_cores()
    return here if allowed is None else min(here, allowed)


def share_out(asked: int | None, least: int = WORKER_BYTES) -> tuple[int, int]:
    """Choose how many processes a local cluster has, and share out the memory that this process may take.

    Parameters
    ----------
    asked : int or None
        So many. None for one per core, but for those that would not have enough.
    least : int
        Bytes that are enough for one.

    Returns
    -------
    workers : int
        At least one.
    worker_memory : int
        Bytes of each.
    """
    memory = _find_memory()
    workers = asked or max(1, min(count_cores(), memory // least))
    return workers, memory // workers


def make_room(job: Job, least: int) -> Job:
    """Have no more workers than have room, unless so many were asked for.

    Parameters
    ----------
    job : Job
    least : int
        Bytes that one needs.

    Returns
    -------
    Job
    """
    workers, worker_memory = share_out(job.options.workers, least)
    return replace(job, workers=workers, worker_memory=worker_memory)


def asked_columns(job: Job) -> Asked:
    """Collect the columns that a job asks for besides the features.

    Parameters
    ----------
    job : Job

    Returns
    -------
    Asked
    """
    numbers = () if job.labels is None else job.labels.numbers
    return Asked(job.options.ids, (*numbers, *job.options.predictions), job.options.by, job.options.values)


def find_method(name: str) -> Method:
    """Find a method by its name.

    Parameters
    ----------
    name : str

    Returns
    -------
    Method

    Raises
    ------
    UsageError
        It is unknown; the message lists those there are.
    """
    if name not in METHODS:
        raise UsageError(f"method {name!r} is unknown, expected one of {', '.join(METHODS)}")
    return METHODS[name]


def _find_latest(latest: str, out: str, date: Date | None) -> str:
    if date is None:
        raise UsageError(f"{latest}: names the run of the latest date, but no date was given")
    found = normalise(fill_date(latest, date))
    if is_within(found, out):
        raise UsageError(f"{found}: lies within the run, but runs of other dates are to move it; choose a place outside")
    return found


def _is_this_host(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def check_scheduler(address: str | None, plain_tcp: bool, workers: int | None = None) -> None:
    """Refuse a scheduler on another host without TLS: whoever reaches it runs code on its workers, and reads what they are told.

    One with so many workers is refused too, since these are a local cluster's.

    Parameters
    ----------
    address : str or None
        Of the scheduler, or SERIAL.
    plain_tcp : bool
        The network is the user's own.
    workers : int or None
        Processes that were asked for.

    Raises
    ------
    UsageError
        It is reached without TLS, or the address is none; or workers were asked for beside it.
    """
    if address is None:
        return
    if workers is not None:
        raise UsageError(f"workers is {workers}, which is for a local cluster, but scheduler is {address!r:.80}; leave out one or the other")
    if address == SERIAL:
        return
    whole = address if "://" in address else f"tcp://{address}"  # as Dask takes it
    where = split_address(whole, f"scheduler is {address!r:.80}, expected an address as tls://host:8786")
    if where.scheme not in ENCRYPTED and not plain_tcp and not _is_this_host(where.hostname or ""):
        raise UsageError(f"{address}: is another host without TLS; use tls://…, or plain_tcp if the network is your own")


def keep_small(job: Job, small: bool) -> Job:
    """Do little work in this process, which is done before a local cluster has started, unless a scheduler or workers were asked for.

    Parameters
    ----------
    job : Job
    small : bool
        There is little to do.

    Returns
    -------
    Job
    """
    return replace(job, options=replace(job.options, scheduler=SERIAL)) if small and job.leaves_where else job


def describe_where(job: Job, n_items: int) -> str:
    """Say where work is done.

    Parameters
    ----------
    job : Job
    n_items : int
        Tasks there are.

    Returns
    -------
    str
        In words, such as "in this process".
    """
    if job.options.scheduler == SERIAL:
        return "in this process"
    workers = count(min(job.workers, max(1, n_items)), "worker")
    return f"on {job.options.scheduler or f'a local cluster of {workers}'}"


def _refuse_within(out: str, name: str, uri: str) -> None:
    """Refuse an output of which something would be found among the files of a data set."""
    if any(is_within(written, uri, PUBLISHED) for written in (out, *(storage.join(out, folder) for folder in FOLDERS))):
        raise UsageError(f"{out}: lies within the {name}, whose next run would read it; choose another output")


def make_job(model: Any, data: Any, out: Any, options: Options) -> Job:
    """Check the arguments of a run, and fill in defaults and dates. Nothing but the machine is looked at.

    Parameters
    ----------
    model, data, out : str or path
        A path or URI each; {date} in them is filled in.
    options : Options
        Their ``workers`` are by default one per core that has room for it, see `share_out`.

    Returns
    -------
    Job
        Places are absolute.

    Raises
    ------
    UsageError
        An argument is of a wrong type, or does not go with another one.
    StorageError
        A scheme is unknown.
    """
    check_scheduler(options.scheduler, options.plain_tcp, options.workers)
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
    check_by(method, options.by)
    if options.background is not None and find_open(method, values):
        raise UsageError(f"{method.name} leaves a parameter open, which is chosen while planning, before a background is counted; give a number")
    workers, worker_memory = share_out(options.workers)
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
        workers=workers,
        worker_memory=worker_memory,
        name=called,
    )
