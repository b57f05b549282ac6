"""What a run is asked to do: one frozen record, built and checked in one place. The only code that looks at the machine."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date as Date
from ipaddress import ip_address
from numbers import Integral
from os import PathLike
from typing import Any
from urllib.parse import urlsplit

import psutil

from kernels.method import Method
from kernels.methods import METHODS

from ..dataset.labels import COUNT, REFUSE, LabelColumns
from ..dataset.partition import Partition
from ..errors import UsageError
from ..stores import storage
from .interactions import ALL

SERIAL = "serial"
MODEL = "model"  # as a background
TABLES = "_leafledger"  # folder beside that of the run, by default
TABLE_BYTES = 1 << 30  # of tables for a background that suffice: what is prepared depends on it, so it is the same on every machine
PRECISIONS = ("float32", "float64")
SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Job:
    """Arguments of a run, complete and checked as far as they can be without looking at the data."""

    model: str
    data: str
    out: str
    latest: str | None  # object that names the latest run, moved when this one is finished
    date: Date | None  # of the run
    method: str
    parameters: tuple[tuple[str, Any], ...]
    partition: Partition | None  # of the features, as given
    interactions: int | str | None  # kept of every row: a number, "all", or None
    background: str | None  # of the marginal game: data, or "model" for its own leaf weights; None for the path-dependent game
    tables: str  # folder where a background's tables are kept for later runs
    labels: LabelColumns | None  # where the method needs them
    global_only: bool  # summaries alone, no rows
    ids: tuple[str, ...]
    precision: str
    max_rejected: int | None  # pieces of the data that may be unreadable; None for any number, as long as something is left
    plain_tcp: bool  # to a scheduler on another host, where the network is one's own
    single_writer: bool  # nobody else writes this run, so that a store without conditional writes will do
    scheduler: str | None  # "serial", an address, or None for a local cluster
    workers: int
    worker_memory: int  # bytes


def shorten(given: Any) -> str:
    """Something as one line of a message."""
    text = " ".join(repr(given).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def check_parameters(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """The method's parameters, defaults filled in."""
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


def check_interactions(given: int | str | None) -> int | str | None:
    """How many interactions are kept of a row: a number, ALL, or None."""
    if given is None or given == ALL:
        return given
    try:
        number = int(given) if isinstance(given, Integral | str) and not isinstance(given, bool) else 0
    except ValueError:
        number = 0
    if number < 1:
        raise UsageError(f"interactions is {shorten(given)}, expected a number of at least 1, or {ALL!r}")
    return number


def table_budget() -> int:
    """Bytes that the tables of rows in memory may have."""
    return psutil.virtual_memory().total // 2


def count_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_labels(method: Method, label: str | None, weight: str | None, by: Iterable[str], missing: str) -> LabelColumns | None:
    """Columns of labels and of what goes with them, for a method that needs labels and for no other."""
    by = tuple(by)
    if not method.labelled:
        if label is not None or weight is not None or by:
            raise UsageError(f"method {method.name!r} takes no labels, weights and groups of rows; method {labelled_methods()} does")
        return None
    if not label:
        raise UsageError(f"method {method.name!r} needs labels; name their column with --label")
    if missing not in (COUNT, REFUSE):
        raise UsageError(f"missing labels is {missing!r}, expected {COUNT!r} or {REFUSE!r}")
    taken = {column for summary in method.summaries for column in summary.columns}
    doubled = [name for name in by if by.count(name) > 1 or name in taken]
    if doubled:
        raise UsageError(f"column {doubled[0]!r} would stand twice in the summary of groups; name it once, or rename it")
    return LabelColumns(label, weight, by, missing)


def labelled_methods() -> str:
    """Name the methods that take labels, for messages."""
    return " or ".join(repr(method.name) for method in METHODS.values() if method.labelled)


def find_method(name: str) -> Method:
    if name not in METHODS:
        raise UsageError(f"method {name!r} is unknown, expected one of {', '.join(METHODS)}")
    return METHODS[name]


def _fill_date(uri: str, date: Date | None) -> str:
    if "{" not in uri:
        return uri
    if date is None:
        raise UsageError(f"{uri}: has a {{date}} to fill in, but no date was given")
    try:
        return uri.format(date=date)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise UsageError(f"{uri}: only {{date}} or a form of it such as {{date:%Y/%m}} can be filled in ({error!r})") from None


def _find_latest(latest: str, out: str, date: Date | None) -> str:
    if date is None:
        raise UsageError(f"{latest}: names the run of the latest date, but no date was given")
    found = storage.absolute(_fill_date(latest, date))
    if f"{found}/".startswith(f"{out}/"):
        raise UsageError(f"{found}: lies within the run, but runs of other dates are to move it; choose a place outside")
    return found


def _is_this_host(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _check_scheduler(address: str | None, plain_tcp: bool) -> None:
    """Whoever reaches a scheduler without TLS runs code on its workers, and reads what they are told."""
    where = urlsplit(address or "")
    if where.scheme == "tcp" and not plain_tcp and not _is_this_host(where.hostname or ""):
        raise UsageError(f"{address}: is another host without TLS; use tls://…, or plain_tcp if the network is your own")


def make_job(
    model: str,
    data: str,
    out: str,
    *,
    latest: str | None = None,
    method: str = "shapley",
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    interactions: int | str | None = None,
    background: str | None = None,
    tables: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    by: Iterable[str] = (),
    missing_labels: str = COUNT,
    global_only: bool = False,
    ids: Iterable[str] = (),
    precision: str = "float32",
    max_rejected: int | None = None,
    plain_tcp: bool = False,
    single_writer: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    date: Date | str | None = None,
) -> Job:
    """Check arguments and fill in defaults and dates. ``workers`` is by default one per core; each gets its share of the machine's memory."""
    if isinstance(date, str):
        try:
            date = Date.fromisoformat(date)
        except ValueError:
            raise UsageError(f"date is {date!r}, expected YYYY-MM-DD") from None
    if precision not in PRECISIONS:
        raise UsageError(f"precision is {precision!r}, expected {' or '.join(PRECISIONS)}")
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}, expected at least 1")
    if max_rejected is not None and max_rejected < 0:
        raise UsageError(f"max_rejected is {max_rejected}, expected 0 or more")
    _check_scheduler(scheduler, plain_tcp)
    ids = tuple(ids)
    if ids and global_only:
        raise UsageError(f"id columns {', '.join(ids)} go with rows, and none are written; leave out one or the other")
    if len(set(ids)) != len(ids):
        raise UsageError(f"id columns {', '.join(ids)} name one twice")
    workers = workers or count_cores()
    named = {
        "model": model,
        "data": data,
        "output": out,
        "partition": partition,
        "background": background,
        "folder of tables": tables,
        "latest": latest,
    }
    for name, uri in named.items():
        if uri == "":
            raise UsageError(f"the {name} is '', expected a path or URI")
    model, data, out = (storage.absolute(_fill_date(uri, date)) for uri in (model, data, out))
    if background is not None and background != MODEL:
        background = storage.absolute(_fill_date(background, date))
    for name, uri in (("data", data), ("background", background)):
        if f"{out}/".startswith(f"{uri}/"):
            raise UsageError(f"{out}: lies within the {name}, whose next run would read it; choose another output")
    if latest is not None:
        latest = _find_latest(latest, out, date)
    interactions = check_interactions(interactions)
    if background is None and tables is not None:
        raise UsageError(f"{tables}: tables are kept for backgrounds, but none was given")
    if background is not None and interactions is not None:
        raise UsageError("the marginal game of a background has no interactions; leave out one or the other")
    chosen = find_method(method)
    values = check_parameters(chosen, parameters or {})
    _check_written(values)
    if isinstance(partition, str | PathLike):
        partition = storage.absolute(_fill_date(str(partition), date))
    return Job(
        model=model,
        data=data,
        out=out,
        latest=latest,
        date=date,
        method=method,
        parameters=tuple(sorted(values.items())),
        partition=partition,
        interactions=interactions,
        background=background,
        tables=storage.beside(out, TABLES) if tables is None else storage.absolute(_fill_date(tables, date)),
        labels=check_labels(chosen, label, weight, by, missing_labels),
        global_only=global_only,
        ids=ids,
        precision=precision,
        max_rejected=max_rejected,
        plain_tcp=plain_tcp,
        single_writer=single_writer,
        scheduler=scheduler,
        workers=workers,
        worker_memory=psutil.virtual_memory().total // workers,
    )
