"""Options as command line flags, in groups, and the methods' list in the help."""

import re
from collections.abc import Sequence
from dataclasses import Field, field, fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

from cyclopts import CoercionError, Group, Parameter, Token
from cyclopts.help import DefaultFormatter, HelpPanel
from rich.console import Console, ConsoleOptions
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from ...runs.job.options import Options


def list_methods() -> Table:
    """List every method with its meaning and parameters; the only part of the help that imports kernels."""
    from leafledger.kernels.methods import METHODS

    table = Table.grid(padding=(0, 2))
    for method in METHODS.values():
        table.add_row(f"[cyan]{method.name}[/cyan]", escape(method.meaning))
        for parameter in method.parameters:
            default = "" if parameter.default in ((), "") else f" [dim]\\[default: {parameter.default}][/dim]"
            table.add_row("", f"[green]{parameter.name}[/green]: {escape(parameter.meaning)}{default}")
    return table


def _show_methods(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
    DefaultFormatter()(console, options, panel)
    console.print(Panel(list_methods(), title="Methods", title_align="left"))


WHOLE = re.compile("-?[0-9]+")
INPUT = Group("Input and output", sort_key=1)
ROWS = Group("What is written of each row", sort_key=3)
MODEL = Group("Part of the model", sort_key=2)
METHOD = Group("Method", sort_key=2, help_formatter=_show_methods)
BACKGROUND = Group("Background", sort_key=4)
LABELS = Group("Labels, for R² and losses", sort_key=5)
CLUSTER = Group("Threads and clusters", sort_key=6)
DOUBTFUL = Group("Input that is unreadable or doubtful", sort_key=7)
MEASURES = Group("What is compared", sort_key=2)
METRICS = Group("Metrics and lineage", sort_key=8)
GROUPS = {
    INPUT: (
        *("latest", "latest_requires", "table", "ids", "precision", "global_only", "single_writer", "if_changed"),
        *("keep_replaced", "digest_inputs", "item_rows", "date", "mlflow_run"),
    ),
    ROWS: ("top", "sign", "columns", "reasons", "values"),
    METHOD: ("method", "parameters", "partition", "interactions", "order", "index", "space", "combinations", "by"),
    BACKGROUND: ("background", "background_errors", "tables"),
    LABELS: ("label", "weight", "missing_labels"),
    CLUSTER: ("device", "threads", "scheduler", "workers", "wait", "plain_tcp"),
    MODEL: ("trees", "outputs", "output"),
    METRICS: ("metrics_address", "metrics_file", "lineage"),
    DOUBTFUL: ("max_rejected", "missing", "allow_unseen", "predictions"),
}


def as_whole(text: str) -> int:
    """Read an integer strictly: Python accepts 1_0 and digits of any script, cyclopts rounds and accepts 0x10.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Raises
    ------
    ValueError
        It is something else.
    """
    if WHOLE.fullmatch(text) is None:
        raise ValueError(f"{text!r:.80}, expected a whole number")
    return int(text)


def _read_whole(_type: Any, tokens: Sequence[Token]) -> int:
    (token,) = tokens
    try:
        return as_whole(token.value)
    except ValueError:
        raise CoercionError(token=token, target_type=int) from None


Whole = Annotated[int, Parameter(converter=_read_whole)]
Threads = Annotated[int | None, Parameter(group=CLUSTER, converter=_read_whole)]
Workers = Annotated[int | None, Parameter(group=CLUSTER, converter=_read_whole)]
Wait = Annotated[float, Parameter(group=CLUSTER)]
PathArgument = Annotated[str, Parameter(group=INPUT)]
Json = Annotated[bool, Parameter(name="--json", group=INPUT, negative=())]
Replace = Annotated[bool, Parameter(name="--replace", group=INPUT, negative=())]
Quiet = Annotated[bool, Parameter(group=INPUT, negative=())]

# Flags with other names than in Python, or read from text by Options.
SPELT: dict[str, tuple[Any, Parameter]] = {
    "ids": (tuple[str, ...], Parameter(name="--id")),
    "predictions": (tuple[str, ...], Parameter(name="--prediction")),
    "parameters": (tuple[str, ...] | None, Parameter(name="--parameter")),
    "date": (str | None, Parameter()),
    "scheduler": (str | None, Parameter()),
    "partition": (str | None, Parameter()),
    "reasons": (str | None, Parameter()),
    "interactions": (str | None, Parameter()),
    "trees": (str | None, Parameter()),
    "item_rows": (str | None, Parameter()),
}


def _make_flag(option: Field, group: Group, hint: Any) -> tuple[str, Any, Any]:
    hint, own = SPELT.get(option.name, (hint, Parameter(converter=_read_whole) if int in (hint, *get_args(hint)) else Parameter()))
    return option.name, Annotated[hint, Parameter(group=group, negative=(), consume_multiple=True), own], field(default=option.default)


def _make_flags() -> type[Options]:
    """Make the dataclass of flags; their meanings are documented in Options."""
    options, hints = {option.name: option for option in fields(Options)}, get_type_hints(Options)
    flags = [_make_flag(options[name], group, hints[name]) for group, names in GROUPS.items() for name in names]
    made = make_dataclass("Flags", flags, bases=(Options,), namespace={"__module__": __name__}, frozen=True, kw_only=True)
    return Parameter(name="*")(made)


if TYPE_CHECKING:
    Flags = Options
else:
    Flags = _make_flags()
DEFAULTS = Flags()
