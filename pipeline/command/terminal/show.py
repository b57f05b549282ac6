"""Terminal tables of summaries and comparisons, largest values first."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from leafledger.kernels.methods import METHODS, SHARED
from leafledger.kernels.reductions.summary import INTERACTIONS, Shown

from ...display.text import printable
from ...errors import InvalidRun
from ...methods.interaction_lists import find_summary
from ...runs.records.folder import RunFolder
from ...stores import storage
from .terminal import print_whole, say

TOP = 10  # features, pairs and sets shown
TIMES = " × "  # between the players of a set
WIDE = 170  # characters of a table with a column per measure, without a terminal


def _write_cell(value: Any, form: str | None) -> str | Text:
    text = TIMES.join(value) if isinstance(value, list) else value  # players of a set
    return "–" if value is None else Text(printable(text)) if form is None else format(value, form)


def _show_summary(console: Console, uri: str, name: str, display: Sequence[Shown]) -> None:
    """Show the first rows of a summary, by output."""
    rows = json.loads(storage.read(uri))
    outputs = dict.fromkeys(row.get("output") for row in rows)
    for output in outputs:
        mine = sorted((row for row in rows if row.get("output") == output), key=lambda row: row["rank"])
        table = Table(title=Text(printable(f"{name}, output {output}")) if len(outputs) > 1 else name)
        for shown in display:
            table.add_column(shown.title, justify="left" if shown.form is None else "right", overflow="fold")  # truncated names may coincide
        for row in mine:
            if row["rank"] > TOP:
                break
            table.add_row(*(_write_cell(row[shown.column], shown.form) for shown in display))
        console.print(table)


def _say_line(console: Console, line: str) -> None:
    if line:
        say(console, line)


def show_summaries(console: Console, run: str, manifest: Any) -> None:
    """Show the summaries of a run as its method declares them.

    Parameters
    ----------
    console : rich.console.Console
    run : str
        URI of the run's folder.
    manifest : Manifest
        Of the run.

    Raises
    ------
    InvalidRun
        A summary, or what the manifest says of it, is not as it is written.
    StorageError
        A summary cannot be read.
    """
    try:
        shared = (find_summary(manifest.sets) if each is INTERACTIONS else each for each in SHARED)
        for summary in (*METHODS[manifest.method].summaries, *shared):
            if summary.headline is not None and summary.name in manifest.totals:
                _say_line(console, summary.headline(manifest.totals[summary.name]))
            entry = manifest.summary(f"{summary.name}.json")
            if summary.display and entry is not None:
                _show_summary(console, RunFolder(run).listed(entry), summary.name, summary.display)
    except (KeyError, TypeError, ValueError) as error:  # whoever may write there has changed them
        raise InvalidRun(f"{run}: its summaries are not as leafledger writes them: {type(error).__name__}: {error}; see leafledger check") from error


def _write_measure(row: Any) -> str:
    if row is None:
        return ""
    error = "" if row["standard_error"] is None else f" ({row['standard_error']:.2g})"
    return "unknown" if row["mean"] is None else f"{row['mean']:.4g}{error}"


def _show_measures(
    console: Console, title: str, caption: str, names: Iterable[str], cells: dict[tuple[str, str], Any], first: str = "ranking"
) -> None:
    """Show measures with standard errors, a row for each name, from ``(column, name)``; ``first`` says what the names are of."""
    table = Table(title=Text(printable(title)), caption=Text(printable(caption)))
    table.add_column(first, no_wrap=True)
    columns = dict.fromkeys(column for column, _ in cells)
    for column in columns:
        table.add_column(Text(printable(column)), justify="right")
    for name in names:
        numbers = (cells.get((column, name)) for column in columns)
        table.add_row(Text(printable(name)), *map(_write_measure, numbers))
    print_whole(console, table)


def show_comparison(console: Console, found: Any) -> None:
    """Show measures of every ranking, and its agreement with the first, by output.

    Parameters
    ----------
    console : rich.console.Console
        It is made at least WIDE characters wide.
    found : pa.Table
        As `compare` returns it.
    """
    from ...comparisons.comparison import REMOVAL

    console.width = max(console.width, WIDE)
    rows = found.to_pylist()
    outputs = dict.fromkeys(row["output"] for row in rows)
    for output in outputs:
        mine = [row for row in rows if row["output"] == output]
        of = f", output {output}" if len(outputs) > 1 else ""
        alone = {(row["measure"], row["ranking"]): row for row in mine if row["other"] is None}
        names, removal = list(dict.fromkeys(name for _, name in alone)), {key: row for key, row in alone.items() if key[0].startswith(REMOVAL)}
        others = {key: row for key, row in alone.items() if key not in removal}
        n_rows = ", of PGI² ".join(f"{n:,}" for n in dict.fromkeys(row["rows"] for row in others.values()))
        noun = "row" if n_rows == "1" else "rows"
        _show_measures(console, f"comparison{of}", f"means of {n_rows} {noun} (standard errors)", names, others)
        if removal:
            n_rows = f"{next(iter(removal.values()))['rows']:,}"
            caption = f"root mean squared error of {n_rows} labels when the first features are drawn from the data (standard errors)"
            _show_measures(console, f"without the first features{of}", caption, names, removal)
        own = {measure for measure, _ in alone}
        shared = {(row["other"], row["measure"]): row for row in mine if row["ranking"] == names[0] and row["measure"] not in own}
        if shared:
            caption = "the file has every two, and differences of measures on the same rows"
            _show_measures(console, f"agreement with {names[0]}{of}", caption, dict.fromkeys(measure for _, measure in shared), shared, "measure")
