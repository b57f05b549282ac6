"""The command ``runs``: list of the runs of a folder."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Column, Table
from rich.text import Text

from ...display.text import count, printable
from ...errors import UsageError
from ..terminal.documents import write_document
from ..terminal.flags import INPUT, Json
from ..terminal.terminal import complain, open_console, say

if TYPE_CHECKING:
    from ...history.listed_runs import ListedRun


NUMBERS = ("rows", "rejected", "residual", "R²")
NAMED = 5  # runs of those that an advisory may concern
WIDE = 140  # characters of the table without a terminal


def _cells(run: "ListedRun") -> tuple[str, ...]:
    state = run.progress or run.state
    state += f", {count(run.n_forgotten, 'row')} forgotten" if run.n_forgotten else ""
    texts = run.date or "–", run.name or run.run, state, run.method or "–", (run.model_digest or "–")[:12]
    forms = ((run.n_rows, ","), (run.n_rejected, ","), (run.residual, ".1e"), (run.r2, ".4f"))
    numbers = ("–" if value is None else format(value, form) for value, form in forms)
    drift = "–" if run.alarms is None else count(len(run.alarms), "alarm") if run.alarms else "no"
    return (*texts, *numbers, drift)


def _group_advised(found: Sequence["ListedRun"]) -> dict[tuple[str, ...], list["ListedRun"]]:
    """Group runs by the advisories that may concern them, the latest advisories first."""
    groups = dict[tuple[str, ...], list["ListedRun"]]()
    for run in found:
        if run.advisories:
            groups.setdefault(run.advisories, []).append(run)
    return dict(sorted(groups.items(), reverse=True))


def _name_some(concerned: Sequence["ListedRun"]) -> str:
    names = [run.name or run.run for run in concerned]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{count(len(names), 'run')} ({', '.join(names[:NAMED])}{more})"


def runs(
    folder: Annotated[str, Parameter(group=INPUT)],
    *,
    html: Annotated[str | None, Parameter(group=INPUT)] = None,
    names: Annotated[str | None, Parameter(group=INPUT)] = None,
    json: Json = False,
) -> None:
    """List the runs below a folder by date: finished, unfinished, damaged and unreadable ones. Sizes are looked at, not bytes; check verifies a run.

    Parameters
    ----------
    folder
        A path or an fsspec URI; runs may lie in folders below it.
    html
        Also write an index over the nights, with importances over time and links to the reports, to a path or an fsspec URI; one that is there is
        replaced.
    names
        Of that page: TOML or JSON file of readable names, as of report.
    json
        Write one JSON document instead.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    from ...history.listed_runs import list_runs
    from ...report.overview import save_index
    from ...runs.advisories.advisory import PAGE

    if names is not None and html is None:
        raise UsageError("--names is of the page that --html writes, expected --html too")
    found = list_runs(folder)
    if html is not None:
        save_index(html, folder, found, names)
    if json:
        write_document({"folder": folder, "runs": [run.to_dict() for run in found]})
        return
    console = open_console()
    if not found:
        say(console, f"{folder}: no runs there")
        return
    table = Table("date", Column("run", overflow="fold"), "state", "method", "model")
    for name in (*NUMBERS, "drift"):
        table.add_column(name, justify="right" if name in NUMBERS else "left")
    for run in found:
        table.add_row(*(Text(printable(cell)) for cell in _cells(run)))
    console.width = max(console.width, WIDE)
    console.print(table)
    for run in found:
        if run.n_kept_bytes:
            say(console, f"{run.name or run.run} keeps the run that it replaced: {count(run.n_kept_bytes, 'byte')}")
        if run.why is not None:
            complain(f"{run.state}: {run.run}: {run.why}")
        if run.left is not None:
            complain(f"{run.run}: {run.left}")
    for known, concerned in _group_advised(found).items():
        complain(f"advisories {', '.join(known)} may concern {_name_some(concerned)}; check says what they are, see {PAGE}")
