"""Index page of runs: self-contained HTML without scripts, with all texts escaped."""

import posixpath
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import get_args
from urllib.parse import quote

from ..display.text import count, printable
from ..stores import commit
from ..stores.uris import normalise
from .importance_shares import Importances, OutputLines, read_importances
from .listed_runs import REPORT, ListedRun, State

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
NUMBERS = ("rows", "rejected", "R²")  # numeric columns
WIDTH, HEIGHT, EDGE = 240, 36, 3  # of a line chart, in its own units
SWIPE = '<p class="swipe">Scroll the table sideways for more columns.</p>'
STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #1b1e23; --line: #1f4f82; --faint: #dedfda; --bad: #b91c1c; --warn: #9a3412 }
body { background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; padding: 0 1rem; max-width: 72rem }
h1, h2 { font: 600 1.9rem/1.2 Charter, "Bitstream Charter", "Iowan Old Style", "Source Serif 4", Georgia, "Noto Serif", serif }
h1 { overflow-wrap: anywhere }
h2 { font-size: 1.5rem }
a { color: var(--line); text-underline-offset: .18em }
.wide { overflow-x: auto }
.swipe { display: none; font-size: .9em }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
caption { text-align: left; font-weight: 600; padding: .25rem 0 }
td, th { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--faint); vertical-align: middle }
td, th { overflow-wrap: break-word }
code { white-space: nowrap }
.state { min-width: 6rem; max-width: 24rem; overflow-wrap: anywhere }
.run { min-width: 7rem; max-width: 20rem }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.date, summary { white-space: nowrap }
summary { cursor: pointer }
.drift ul { padding-left: 1rem; margin: .3rem 0; min-width: 14rem; font-size: .9em }
.damaged, .unreadable { color: var(--bad); font-weight: 600 }
.unfinished, .drifted { color: var(--warn); font-weight: 600 }
svg { display: block; width: 15rem; max-width: 40vw; height: auto }
polyline { fill: none; stroke: var(--line); stroke-width: 1.5; vector-effect: non-scaling-stroke }
circle { fill: var(--line) }
@media (prefers-color-scheme: dark) { :root { --paper: #121417; --ink: #e9e9e5; --line: #8fbcf0; --faint: #2f343b; --bad: #fca5a5; --warn: #fdba74 } }
@media (max-width: 40rem) { .swipe { display: block } }
@media (max-width: 40rem) { h1 { font-size: 1.5rem } td, th { padding: .2rem .35rem } .run, .state { min-width: 5rem } svg { max-width: 28vw } }
@media print { .swipe { display: none } .wide { overflow-x: visible } h2, caption { break-after: avoid } tr { break-inside: avoid } }
"""


def _text(text: object) -> str:
    return escape(printable(str(text)))


def _number(value: float | int | None, form: str) -> str:
    return f'<td class="n">{"–" if value is None else format(value, form)}</td>'


def link_to(page: str, target: str) -> str:
    """Return the link from the page to an object."""
    (here, _, from_path), (there, _, to_path) = (uri.rpartition("://") for uri in (page, target))
    if here != there or (here and from_path.split("/")[0] != to_path.split("/")[0]):
        return quote(target, safe=":/", errors="surrogateescape")
    way = posixpath.relpath("/" + to_path.lstrip("/"), posixpath.dirname("/" + from_path.lstrip("/")))
    return quote(f"./{way}", errors="surrogateescape")


def _drift(run: ListedRun) -> str | None:
    if not run.alarms:
        return None if run.alarms is None else "no"
    said = "".join(f"<li>{_text(alarm)}</li>" for alarm in run.alarms)
    return f'<details><summary class="drifted">{count(len(run.alarms), "alarm")}</summary><ul>{said}</ul></details>'


def _state(run: ListedRun) -> str:
    named, _, more = run.progress.partition(", ") if run.progress else (run.state, "", run.why or "")
    return f'<span class="{run.state}">{named}</span>{f"<br>{_text(more)}" if more else ""}'


def _night(run: ListedRun, page: str) -> dict[str, str | None]:
    """Return a run's cells by column as HTML, None for empty ones."""

    def form(value: float | None, how: str) -> str | None:
        return None if value is None else format(value, how)

    name = _text(run.name or run.run)
    return {
        "date": _text(run.date) if run.date else None,
        "run": f'<a href="{escape(link_to(page, "/".join((run.run, *REPORT))))}">{name}</a>' if run.report else name,
        "state": _state(run),
        "drift": _drift(run),
        "rows": form(run.n_rows, ","),
        "rejected": form(run.n_rejected, ","),
        "R²": form(run.r2, ".4f"),
        "adds up": None if run.residual is None else "✓",
        "method": _text(run.method) if run.method else None,
        "model": f"<code>{_text(run.model_digest[:12])}</code>" if run.model_digest else None,
    }


def _nights(runs: Sequence[ListedRun], page: str) -> str:
    """Return the table of runs, with nonempty columns."""
    found = [_night(run, page) for run in reversed(runs)]
    heads = [head for head in (found[0] if found else ()) if any(night[head] is not None for night in found)]
    kinds = {head: f' class="{"n" if head in NUMBERS else head}"' for head in heads}
    head = "".join(f'<th scope="col"{kinds[head]}>{head}</th>' for head in heads)
    cells = ("".join(f"<td{kinds[head]}>{night[head] or '–'}</td>" for head in heads) for night in found)
    rows = "".join(f"<tr>{night}</tr>" for night in cells)
    table = f"<table><caption>Runs, the last first</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'{SWIPE}<div class="wide" tabindex="0" role="region" aria-label="Runs">{table}</div>'


def _points(values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Return the points of a line from 0 to its highest, in pieces interrupted by runs without a value."""
    step = (WIDTH - 2 * EDGE) / max(1, len(values) - 1)
    known = [value for value in values if value is not None]
    low, high = min(0.0, *known), max(0.0, *known)
    pieces = list[list[tuple[float, float]]]([[]])
    for i, value in enumerate(values):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((EDGE + i * step, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * ((value - low) / (high - low) if high > low else 0.0)))
    return [piece for piece in pieces if piece]


def _svg(values: Sequence[float | None]) -> str:
    pieces = _points(values)
    drawn = "".join(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in piece)}"/>' for piece in pieces if len(piece) > 1)
    drawn += "".join(f'<circle cx="{piece[-1][0]:.1f}" cy="{piece[-1][1]:.1f}" r="2"/>' for piece in pieces)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{drawn}</svg>'


def _line(name: str, values: Sequence[float | None], form: str) -> str:
    """Return a row with a line chart, and its first, lowest, highest and last number."""
    known = [value for value in values if value is not None]
    numbers = (values[0], min(known), max(known), values[-1])
    return f'<tr><th scope="row">{name}</th><td>{_svg(values)}</td>{"".join(_number(number, form) for number in numbers)}</tr>'


def _chart(caption: str, what: str, dates: str, rows: Sequence[str]) -> str:
    """Return a table of line charts over the runs, which says on a phone that it scrolls."""
    heads = "".join(f'<th scope="col" class="n">{head}</th>' for head in ("first", "lowest", "highest", "last"))
    head = f'<tr><th scope="col">{what}</th><th scope="col">{dates}</th>{heads}</tr>'
    table = f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f'{SWIPE}<div class="wide" tabindex="0" role="region" aria-label="{caption}">{table}</div>'


def _output(found: OutputLines, several: bool, dates: str, total: str) -> str:
    of = f", output {_text(found.output)}" if several else ""
    known = any(mean is not None for mean in found.means)
    means = _chart(f"Mean {total}{of}", "", dates, [_line(f"mean {total}", found.means, ".4g")]) if known else ""
    shares = _chart(f"Share of importance{of}", "feature", dates, [_line(_text(line.feature), line.shares, ".1%") for line in found.lines])
    more = found.n_features - len(found.lines)
    said = f"<p>{count(more, 'more feature')} with smaller shares</p>" if more else ""
    return f"{means}{shares}{said}"


def _importances(found: Importances) -> str:
    if not found.runs:
        return ""
    first, last = (_text(run.date or run.name or run.run) for run in (found.runs[0], found.runs[-1]))
    dates = first if first == last else f"{first} to {last}"
    others = "of other jobs, methods, spaces, backgrounds or outputs, or without importances, left out"
    said = f"<p>{count(found.left_out, 'finished run')} {others}.</p>" if found.left_out else ""
    said += (
        f"<p>Each line is one number over {count(len(found.runs), 'run')} {_text(found.kind)}; the bottom is 0, or the lowest if that is below.</p>"
    )
    more = found.n_outputs - len(found.outputs)
    outputs = "".join(_output(each, found.n_outputs > 1, dates, found.total) for each in found.outputs)
    said += outputs + (f"<p>{count(more, 'more output')}</p>" if more else "")
    return f"<h2>{dates}</h2>{said}"


def write_index(folder: str, runs: Sequence[ListedRun], importances: Importances, page: str) -> str:
    """Write the index page of runs."""
    states = [run.state for run in runs]
    counts = ", ".join(f"{states.count(state):,} {state}" for state in get_args(State) if state in states)
    title = f"{count(len(runs), 'run')} in {_text(folder.rstrip('/').rpartition('/')[2] or folder)}"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">'
    head += f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style>'
    body = f"<main><h1>{title}</h1><p>{counts}{': ' * bool(counts)}{_text(folder)}</p>{_nights(runs, page)}{_importances(importances)}</main>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def save_index(uri: str, folder: str, runs: Sequence[ListedRun]) -> None:
    """Save an index of runs, replacing an existing one; damaged importances are marked.

    Parameters
    ----------
    uri : str
        Of the page.
    folder : str
        That was listed.
    runs : sequence of ListedRun
        By date.
    """
    page = normalise(uri)
    importances = read_importances(runs)
    why = dict(importances.damaged)
    shown = [replace(run, state="damaged", why=why[run.run]) if run.run in why else run for run in runs]
    made = write_index(normalise(folder), shown, importances, page).encode()
    commit.update(page, lambda held: None if held == made else made, single_writer=True)
