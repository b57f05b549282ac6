"""What the command shows of summaries and comparisons: tables, the largest first."""

import json
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..runs.publish import SUMMARY
from ..stores import storage

TOP = 10  # features, and pairs of them
WIDE = 150  # characters of a table with a column for each measure, also where there is no terminal
MOMENTS = {"rank": "d", "mean_abs": ".4g", "mean": ".4g", "std": ".4g", "share": ".1%"}  # and how they are written
SHARES = {"rank": "d", "r2": ".4f", "standard_error": ".1g"}
IMPORTANCE = {"rank": "rank", "feature": "feature", "mean_abs": "mean |phi|", "mean": "mean phi", "std": "std", "share": "share"}
GAPS = {"rank": "rank", "feature": "feature", "mean": "mean rank, pgi2", "std": "std"}
AREAS = {"rank": "rank", "feature": "feature", "mean": "mean rank, area", "std": "std"}
INTERACTIONS = {"rank": "rank", "first": "first", "second": "second", "mean_abs": "mean |value|", "mean": "mean value", "std": "std"}
R2 = {"rank": "rank", "feature": "feature", "r2": "share of R²", "standard_error": "standard error"}
SUMMARIES = {
    "importance": (IMPORTANCE, MOMENTS),
    "gaps": (GAPS, MOMENTS),
    "areas": (AREAS, MOMENTS),
    "interactions": (INTERACTIONS, MOMENTS),
    "r2": (R2, SHARES),
}


def _write_number(value: float | None, how: str) -> str:
    return "–" if value is None else format(value, how)


def _show_summary(console: Console, run: str, name: str, columns: dict[str, str], formats: dict[str, str]) -> None:
    """The first rows of a summary, per output: ``columns`` and, with their formats, numbers, by what they are called in the summary."""
    rows = json.loads(storage.read(storage.join(run, SUMMARY, f"{name}.json")))
    outputs = dict.fromkeys(row.get("output") for row in rows)
    for output in outputs:
        mine = sorted((row for row in rows if row.get("output") == output), key=lambda row: row["rank"])
        table = Table(title=f"{name}, output {output}" if len(outputs) > 1 else name)
        for column, title in columns.items():
            table.add_column(title, justify="right" if column in formats else "left")
        for row in mine[:TOP]:
            table.add_row(*(_write_number(row[column], formats[column]) if column in formats else escape(row[column]) for column in columns))
        console.print(table)


def show_summaries(console: Console, run: str, manifest: Any) -> None:
    """What owns most of the attributions, or of R^2, and what interacts most."""
    if manifest.r2 is not None:
        total, error, rest, sst = (_write_number(manifest.r2[name], ".4g") for name in ("total_r2", "total_standard_error", "remainder", "sst"))
        counts = f"{manifest.r2['n']:,} rows, {manifest.r2['n_unlabelled']:,} without a label"
        console.print(f"R² {total} ± {error}, shares and a remainder of {rest}; SST {sst}; {counts}", soft_wrap=True, highlight=False)
    there = {entry["uri"].rpartition("/")[2] for entry in manifest.summaries}
    for name, (columns, formats) in SUMMARIES.items():
        if f"{name}.json" in there:
            _show_summary(console, run, name, columns, formats)


def _show_measures(console: Console, title: str, caption: str, names: Iterable[str], cells: dict[tuple[str, str], Any]) -> None:
    """A row per ranking, its measures with standard errors in brackets."""
    table = Table(title=title, caption=caption)
    table.add_column("ranking", no_wrap=True)
    measures = dict.fromkeys(measure for measure, _ in cells)
    for measure in measures:
        table.add_column(measure, justify="right")
    for name in names:
        numbers = (cells.get((measure, name)) for measure in measures)
        table.add_row(escape(name), *("" if row is None else f"{row['mean']:.4g} ({row['standard_error']:.2g})" for row in numbers))
    console.print(table)


def show_comparison(console: Console, found: Any) -> None:
    """Measures of every ranking, and how far it agrees with the first, per output."""
    console.width = max(console.width, WIDE)
    rows = found.to_pylist()
    outputs = dict.fromkeys(row["output"] for row in rows)
    for output in outputs:
        mine = [row for row in rows if row["output"] == output]
        of = f", output {output}" if len(outputs) > 1 else ""
        alone = {(row["measure"], row["ranking"]): row for row in mine if row["other"] is None}
        names = list(dict.fromkeys(name for _, name in alone))
        n_rows = ", of PGI² ".join(f"{n:,}" for n in dict.fromkeys(row["rows"] for row in mine))
        _show_measures(console, f"comparison{of}", f"means of {n_rows} rows (standard errors)", names, alone)
        own = {measure for measure, _ in alone}
        shared = {(row["measure"], row["other"]): row for row in mine if row["ranking"] == names[0] and row["measure"] not in own}
        if shared:
            caption = "the file has every two, and differences of measures on the same rows"
            _show_measures(console, f"agreement with {escape(names[0])}{of}", caption, names[1:], shared)
