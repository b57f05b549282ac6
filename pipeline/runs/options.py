"""What a run can be told besides its model, data and output, once for the command line, Python and Prefect; and how each argument is read."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date as Date
from datetime import datetime
from numbers import Integral, Number
from os import PathLike
from typing import Any, Literal, get_args

from ..errors import UsageError

Precision = Literal["float32", "float64"]
MissingLabels = Literal["count", "refuse"]
ALL = "all"  # interactions
SHOWN = 80  # characters of a value in a message
PLAIN = (str, bytes, Number, list, tuple, dict, set, Date)  # shown as they are written


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Arguments of a run, each read and refused by its type: ``Options(ids="flight").ids`` is ``("flight",)``."""

    latest: str | None = None
    """JSON object that names the finished run of the latest date, for readers. It is updated atomically and never moves to an earlier date."""

    ids: tuple[str, ...] = ()
    """Columns of the data that are passed through to the attributions."""

    precision: Precision = "float32"
    """Of the attributions as they are stored; they are computed in float64."""

    global_only: bool = False
    """Publish summaries alone, no rows."""

    single_writer: bool = False
    """Nobody else writes this run, so that a store that ignores conditions on writes will do."""

    date: Date | None = None
    """YYYY-MM-DD, fills {date} in every path and URI."""

    method: str = "shapley"
    """Which values rows get."""

    parameters: Mapping[str, Any] | None = None
    """Parameters of the method, NAME=VALUE: p=0.3; a list of numbers as sizes=0.5,0.25,0.25; points t:height as density=0:0,0.5:2,1:0."""

    partition: Mapping[str, Iterable[str]] | str | None = None
    """Groups of features, {"group": ["feature", …]}, or a JSON file of such an object. Values are the groups', with owen and two_step the features'
    within their groups. A feature that is not named is a group of its own."""

    interactions: int | str | None = None
    """Also the interactions of every two features or groups: how many of a row to keep, the largest, or "all"."""

    background: str | None = None
    """A Parquet data set over whose rows absent features are averaged (the marginal game), or "model" for the model's own leaf weights (symmetric
    trees, CatBoost's default). By default features are averaged over the trees' own covers (the path-dependent game). Methods gap and gap_greedy
    measure perturbations on it."""

    tables: str | None = None
    """Folder where what is prepared for a background is kept for later runs, by default _leafledger beside the run's folder."""

    label: str | None = None
    """Column with what the model predicts."""

    weight: str | None = None
    """Column with how much a row counts, by default 1."""

    by: tuple[str, ...] = ()
    """Columns of groups of rows, whose own R² is decomposed as well."""

    missing_labels: MissingLabels = "count"
    """What to do with rows without a label: leave them out and count them, or refuse."""

    scheduler: str | None = None
    """Address of a Dask scheduler, tls:// where it is another host, or "serial" for this process alone; by default a local cluster."""

    workers: int | None = None
    """Processes of the local cluster, by default one per core."""

    plain_tcp: bool = False
    """Reach a scheduler on another host without TLS: whoever shares that network can run code on its workers."""

    max_rejected: int | None = None
    """Files or work items that may be left out since they cannot be read; by default any number, as long as something is left. Where any are, the
    command's exit code is 3."""

    def __post_init__(self) -> None:
        for name, read in READERS.items():
            object.__setattr__(self, name, read(name, getattr(self, name)))


def pick(given: Mapping[str, Any]) -> Options:
    """The options among a function's arguments."""
    return Options(**{field.name: given[field.name] for field in fields(Options)})


def shorten(given: Any) -> str:
    """A value as part of a one-line message: numbers, texts and lists as they are written, anything else by its type."""
    if given is not None and not isinstance(given, PLAIN):
        name = type(given).__name__
        return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
    text = " ".join(repr(given).split())
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def refuse(name: str, given: Any, expected: str) -> UsageError:
    """What to raise where an argument is something else than expected."""
    return UsageError(f"{name} is {shorten(given)}, expected {expected}")


def read_place(name: str, given: Any) -> str:
    """A path or URI."""
    if not isinstance(given, str | PathLike):
        hint = "; attribute explains rows in memory" if hasattr(given, "__array__") else ""
        raise refuse(name, given, f"a path or URI{hint}")
    if not str(given):
        raise refuse(name, given, "a path or URI")
    return str(given)


def read_text(name: str, given: Any) -> str:
    """A name that is not empty."""
    if not isinstance(given, str) or not given:
        raise refuse(name, given, "a name")
    return given


def read_names(name: str, given: Any) -> tuple[str, ...]:
    """Names, each once; a text is one name, not its letters."""
    several = isinstance(given, Iterable) and not isinstance(given, str) and getattr(given, "ndim", 1) == 1
    names = () if given is None else tuple(given) if several else (given,)
    if not all(isinstance(each, str) and each for each in names):
        raise refuse(name, given, "a column's name or several")
    doubled = [each for each in names if names.count(each) > 1]
    if doubled:
        raise UsageError(f"{name} has {doubled[0]!r} twice, expected once")
    return names


def read_flag(name: str, given: Any) -> bool:
    """True or False."""
    if not isinstance(given, bool):
        raise refuse(name, given, "True or False")
    return given


def read_number(name: str, given: Any, least: int) -> int:
    """A whole number that is not too small."""
    if not isinstance(given, Integral) or isinstance(given, bool) or given < least:
        raise refuse(name, given, f"a number of at least {least}")
    return int(given)


def read_choice(name: str, given: Any, choices: tuple[str, ...]) -> str:
    """One of some words."""
    if not isinstance(given, str) or given not in choices:
        raise refuse(name, given, " or ".join(map(repr, choices)))
    return given


def read_date(name: str, given: Any) -> Date:
    """A date, or one as text."""
    if isinstance(given, datetime):
        return given.date()
    if isinstance(given, Date):
        return given
    try:
        return Date.fromisoformat(given)
    except (TypeError, ValueError):
        raise refuse(name, given, "YYYY-MM-DD") from None


def read_parameters(name: str, given: Any) -> Mapping[str, Any]:
    """Values by name, or NAME=VALUE each, as on a command line; which of them a method takes is its own business."""
    if isinstance(given, list | tuple) and all(isinstance(each, str) and "=" in each for each in given):
        return dict(each.split("=", 1) for each in given)
    if given is not None and not (isinstance(given, Mapping) and all(isinstance(key, str) for key in given)):
        raise refuse(name, given, "NAME=VALUE, or in Python {'NAME': VALUE}")
    return dict(given or {})


def read_partition(name: str, given: Any) -> Mapping[str, Iterable[str]] | str:
    """Groups as they are given, or where they are."""
    if isinstance(given, Mapping):
        return given
    if not isinstance(given, str | PathLike):
        raise refuse(name, given, "groups of features, as {'group': ['feature', …]}, or a path or URI")
    return read_place(name, given)


def read_interactions(name: str, given: Any) -> int | str:
    """How many are kept of a row, or ALL."""
    if isinstance(given, str) and given == ALL:
        return given
    number = int(given) if isinstance(given, str) and given.isdecimal() else given
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
        raise refuse(name, given, f"a number of at least 1, or {ALL!r}")
    return int(number)


def optional(read: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """A reader that lets None pass."""
    return lambda name, given: None if given is None else read(name, given)


READERS: dict[str, Callable[[str, Any], Any]] = {
    "latest": optional(read_place),
    "ids": read_names,
    "precision": lambda name, given: read_choice(name, given, get_args(Precision)),
    "global_only": read_flag,
    "single_writer": read_flag,
    "date": optional(read_date),
    "method": read_text,
    "parameters": read_parameters,
    "partition": optional(read_partition),
    "interactions": optional(read_interactions),
    "background": optional(read_place),
    "tables": optional(read_place),
    "label": optional(read_text),
    "weight": optional(read_text),
    "by": read_names,
    "missing_labels": lambda name, given: read_choice(name, given, get_args(MissingLabels)),
    "scheduler": optional(read_text),
    "workers": optional(lambda name, given: read_number(name, given, 1)),
    "plain_tcp": read_flag,
    "max_rejected": optional(lambda name, given: read_number(name, given, 0)),
}
