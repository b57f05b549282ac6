"""The command ``inspect``: contents of a model, and costs of methods."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from ....display.text import count, printable
from ...terminal.documents import write_document
from ...terminal.flags import INPUT, METHOD, Json
from ...terminal.terminal import complain, open_console, say
from .reporting import make_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....in_memory.inspect.inspected_statistics import InspectedStatistics
    from ....in_memory.inspect.inspection import Inspection


TOP = 10  # features and outputs shown
ALL = "all"  # all methods
PATIENCE = 2.0  # seconds between lines of progress
MARGINS = {
    "label": "a prediction in the label's units",
    "class": "a class's score, which a link turns into a probability, or the probability itself",
    "classes": "a class's score, which a link turns into a probability, or the probability itself; the largest is the predicted class's",
    "alone": "one class's score, which a link turns into its probability, or the probability itself; those of the other classes are left out",
    "other": "on a scale of its own, such as a logarithm, or on one that is not known",
}


def _describe(model: str, found: "Inspection") -> dict[str, str]:
    outputs = found.outputs if len(found.outputs) <= TOP else (*found.outputs[:TOP], "…")
    precision = "single" if found.single_precision else "double"
    said = {
        "model": f"{model}, {found.library}, SHA-256 {found.digest[:12]}",
        "objective": f"{found.objective or 'not said'}; a margin is {MARGINS[found.margin]}",
        "outputs": f"{len(found.outputs)}: {', '.join(outputs)}",
        "base": ", ".join([*(f"{base:.6g}" for base in found.base[:TOP]), *["…"] * (len(found.base) > TOP)]),
        "trees": f"{found.n_trees:,} with {found.n_leaves:,} leaves; values are compared in {precision} precision",
        "each tree": f"{found.leaves.mean:.1f} leaves (at most {found.leaves.most:,}), depth {found.depth.mean:.1f} (at most {found.depth.most}), "
        f"{found.distinct_features.mean:.1f} features (at most {found.distinct_features.most})",
    }
    if found.missing is not None:
        said["missing"] = f"{found.missing:g}, besides null and NaN"
    return said if found.statistics is None else said | {"statistics": _count_statistics(found.statistics)}


def _count_statistics(found: "InspectedStatistics") -> str:
    kinds = ", ".join(f"{each.columns:,} {each.kind} of {count(each.features, 'feature')}" for each in found.kinds)
    return f"{kinds}; {found.entries:,} entries in tables of {found.table_bytes / 2**20:.2f} MiB"


def show_inspection(console: Console, model: str, found: "Inspection") -> None:
    """Show a model's trees, its most used features, and the costs of methods."""
    for name, text in _describe(model, found).items():
        console.print(Text.assemble((f"{name:<11}", "bold"), printable(text)), soft_wrap=True, highlight=False)
    table = Table(
        Column("feature", overflow="fold"),
        "values",
        Column("splits", justify="right"),
        Column("trees", justify="right"),
        title="features, most splits first",
    )
    for feature in sorted(found.features, key=lambda feature: -feature.splits)[:TOP]:
        table.add_row(Text(printable(feature.name)), feature.values, f"{feature.splits:,}", f"{feature.trees:,}")
    console.print(table)
    if len(found.features) > TOP:
        say(console, f"{len(found.features) - TOP:,} more features: --json has all")
    if found.refused:
        console.print(Text("not there, or not without more:", "bold"))
        width = max(len(refusal.what) for refusal in found.refused)
        for refusal in found.refused:
            say(console, f"{refusal.what:<{width}}  {refusal.why}")
    if found.costs:
        costs = Table("method", Column("µs per row", justify="right"), Column("MiB of tables", justify="right"), title="costs on one thread")
        for cost in found.costs:
            numbers = (cost.refused or "", "") if cost.table_bytes is None else (f"{cost.microseconds:.1f}", f"{cost.table_bytes / 2**20:.2f}")
            costs.add_row(cost.method, *numbers)
        console.print(costs)


def _watch_methods() -> "Callable[[str], None]":
    """Return a progress callback with a line per method, on a terminal."""

    def on_method(name: str) -> None:
        if sys.stderr.isatty():
            complain(f"measuring {name}")

    return on_method


def _watch_trees() -> "Callable[[int, int], None]":
    """Return a progress callback with a line at intervals, on a terminal."""
    told = time.perf_counter()

    def on_tree(done: int, n_trees: int) -> None:
        nonlocal told
        if sys.stderr.isatty() and time.perf_counter() - told > PATIENCE:
            told = time.perf_counter()
            complain(f"tables of {done:,} of {n_trees:,} trees")

    return on_tree


def inspect(
    model: Annotated[str, Parameter(group=INPUT)],
    *,
    methods: Annotated[str, Parameter(group=METHOD)] = "shapley",
    tables: Annotated[str | None, Parameter(group=INPUT)] = None,
    report: bool = False,
    json: Json = False,
) -> None:
    """Say what a model is made of, and what methods cost on it: trees, leaves, features and how often they are asked for.

    Parameters
    ----------
    model
        As for explain.
    methods
        Methods whose time per row and tables are measured on one thread, with commas between them; all for all that can be, "" for none.
    tables
        Parquet object to write, a path or an fsspec URI: for every leaf of a model of symmetric trees what each feature has there, its Shapley value
        against the model's own leaf weights. A row's attributions are the sum over the leaves that it reaches.
    report
        Say what an issue asks for instead: versions, the processor, and the model's library, size and digest; no name of a column, no path.
    json
        Write everything as JSON.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from leafledger.kernels.methods import METHODS

    from ....in_memory.inspect.inspection import inspect_model
    from ....in_memory.inspect.leaf_tables import save_leaf_tables
    from ....models import load_ensemble

    names = list(METHODS) if methods == ALL else [name for name in methods.split(",") if name]
    loaded, console = load_ensemble(model), open_console()
    if report:
        for line in make_report(inspect_model(loaded, [])):
            say(console, line)
        return
    found = inspect_model(loaded, names, _watch_methods())
    if not json:
        show_inspection(console, model, found)
    if tables is not None:
        n_rows = save_leaf_tables(loaded, tables, _watch_trees())
        if not json:
            say(console, f"tables of leaves: {tables}, {n_rows:,} rows")
    if json:  # at the end, so that there is only one document
        write_document(found.to_dict())
