"""An index over the nights as a page of HTML: everything is in it, nothing is fetched or run, and all texts are escaped."""

import posixpath
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from ..display import count, printable
from ..stores import commit
from ..stores.places import normalise
from .listed import REPORT, ListedRun
from .shares import Importances, Line, OutputLines, read_importances

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
WIDTH, HEIGHT, EDGE = 240, 36, 3  # of a line, in its own units
STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #1c1e22; --line: #1d4ed8; --faint: #8884; --bad: #b91c1c; --warn: #9a3412 }
body { background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; padding: 0 1rem; max-width: 72rem }
h1 { font-size: 1.5rem; overflow-wrap: anywhere }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem }
caption { text-align: left; font-weight: 600; padding: .25rem 0 }
td, th { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid var(--faint); vertical-align: middle }
td, th { overflow-wrap: break-word }
code { white-space: nowrap }
.state { min-width: 6rem; max-width: 24rem; overflow-wrap: anywhere }
.run { min-width: 7rem; max-width: 20rem }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.date { white-space: nowrap }
.damaged { color: var(--bad); font-weight: 600 }
.unfinished, .drifted { color: var(--warn); font-weight: 600 }
svg { display: block; width: 15rem; max-width: 40vw; height: auto }
polyline { fill: none; stroke: var(--line); stroke-width: 1.5; vector-effect: non-scaling-stroke }
circle { fill: var(--line) }
@media (prefers-color-scheme: dark) { :root { --paper: #121417; --ink: #e4e4e1; --line: #7dabff; --bad: #fca5a5; --warn: #fdba74 } }
@media (max-width: 40rem) { td, th { padding: .2rem .35rem } }
@media print { .wide { overflow-x: visible } }
"""


def _text(text: object) -> str:
    return escape(printable(str(text)))


def _number(value: float | int | None, form: str) -> str:
    return f'<td class="n">{"–" if value is None else format(value, form)}</td>'


def link_to(page: str, target: str) -> str:
    """Write where an object is as a page links to it.

    Parameters
    ----------
    page, target : str
        URIs, or absolute paths of this machine.

    Returns
    -------
    str
        Relative where both are on this machine or in one bucket, so that the folder can be moved.
    """
    (here, _, from_path), (there, _, to_path) = (uri.rpartition("://") for uri in (page, target))
    if here != there or (here and from_path.split("/")[0] != to_path.split("/")[0]):
        return quote(target, safe=":/")
    return quote("./" + posixpath.relpath("/" + to_path.lstrip("/"), posixpath.dirname("/" + from_path.lstrip("/"))))


def _drift(run: ListedRun) -> str:
    if run.alarms is None:
        return "<td>–</td>"
    if not run.alarms:
        return "<td>no</td>"
    said = "".join(f"<li>{_text(alarm)}</li>" for alarm in run.alarms)
    return f'<td><details><summary class="drifted">{count(len(run.alarms), "alarm")}</summary><ul>{said}</ul></details></td>'


def _state(run: ListedRun) -> str:
    more = run.why if run.state == "damaged" else f"{run.n_parts} of {run.n_planned} parts" if run.state == "unfinished" else ""
    return f'<td class="state"><span class="{run.state}">{run.state}</span>{f"<br>{_text(more)}" if more else ""}</td>'


def _night(run: ListedRun, page: str) -> str:
    name = _text(run.name or run.run)
    linked = f'<a href="{escape(link_to(page, "/".join((run.run, *REPORT))))}">{name}</a>' if run.report else name
    model = "–" if run.model_digest is None else f"<code>{_text(run.model_digest[:12])}</code>"
    numbers = _number(run.n_rows, ",") + _number(run.n_rejected, ",") + _number(run.residual, ".1e") + _number(run.r2, ".4f")
    texts = (
        f'<td class="date">{_text(run.date or "–")}</td><td class="run">{linked}</td>{_state(run)}<td>{_text(run.method or "–")}</td><td>{model}</td>'
    )
    return f"<tr>{texts}{numbers}{_drift(run)}</tr>"


def _nights(runs: Sequence[ListedRun], page: str) -> str:
    heads = ("date", "run", "state", "method", "model")
    numbers = ("rows", "rejected", "residual", "R²")
    head = "".join(f'<th scope="col">{head}</th>' for head in heads) + "".join(f'<th scope="col" class="n">{head}</th>' for head in numbers)
    rows = "".join(_night(run, page) for run in reversed(runs))
    table = f'<table><caption>nights, the last first</caption><thead><tr>{head}<th scope="col">drift</th></tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="wide" tabindex="0" role="region" aria-label="nights">{table}</div>'


def _points(line: Line) -> list[list[tuple[float, float]]]:
    """Where the line goes, in pieces: a run without the feature breaks it."""
    step = (WIDTH - 2 * EDGE) / max(1, len(line.shares) - 1)
    largest, pieces = max(line.known), list[list[tuple[float, float]]]([[]])
    for i, share in enumerate(line.shares):
        if share is None:
            pieces.append([])
        else:
            pieces[-1].append((EDGE + i * step, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (share / largest if largest else 0.0)))
    return [piece for piece in pieces if piece]


def _svg(line: Line) -> str:
    pieces = _points(line)
    drawn = "".join(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in piece)}"/>' for piece in pieces if len(piece) > 1)
    drawn += "".join(f'<circle cx="{piece[-1][0]:.1f}" cy="{piece[-1][1]:.1f}" r="2"/>' for piece in pieces)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{drawn}</svg>'


def _feature(line: Line) -> str:
    shares = (line.shares[0], min(line.known), max(line.known), line.shares[-1])
    return f'<tr><th scope="row">{_text(line.feature)}</th><td>{_svg(line)}</td>{"".join(_number(share, ".1%") for share in shares)}</tr>'


def _output(found: OutputLines, several: bool) -> str:
    caption = f"share of importance{f', output {_text(found.output)}' if several else ''}"
    heads = "".join(f'<th scope="col" class="n">{head}</th>' for head in ("first", "lowest", "highest", "last"))
    rows = "".join(_feature(line) for line in found.lines)
    head = f'<tr><th scope="col">feature</th><th scope="col">from 0 to its highest</th>{heads}</tr>'
    table = f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>"
    more = found.n_features - len(found.lines)
    said = f"<p>{count(more, 'more feature')} with smaller shares</p>" if more else ""
    return f'<div class="wide" tabindex="0" role="region" aria-label="{caption}">{table}</div>{said}'


def _importances(found: Importances) -> str:
    if not found.runs:
        return ""
    first, last = (_text(run.date or run.name or run.run) for run in (found.runs[0], found.runs[-1]))
    said = f"<p>{count(len(found.runs), 'run')} of method {_text(found.runs[-1].method)}, from {first} to {last}.</p>"
    said += f"<p>{count(found.left_out, 'finished run')} of other methods, or without importances, left out.</p>" if found.left_out else ""
    more = found.n_outputs - len(found.outputs)
    outputs = "".join(_output(each, found.n_outputs > 1) for each in found.outputs)
    said += outputs + (f"<p>{count(more, 'more output')}</p>" if more else "")
    return f"<h2>Importances</h2>{said}"


def write_index(folder: str, runs: Sequence[ListedRun], importances: Importances, page: str) -> str:
    """Write runs as a page of its own.

    Parameters
    ----------
    folder : str
        That was listed.
    runs : sequence of ListedRun
        By date.
    importances : Importances
    page : str
        Where the page is going to be, which its links start from.

    Returns
    -------
    str
        HTML, light or dark as the reader's system is. The same for the same runs.
    """
    states = [run.state for run in runs]
    counts = ", ".join(f"{states.count(state):,} {state}" for state in ("finished", "unfinished", "damaged") if state in states)
    title = f"{count(len(runs), 'run')} in {_text(folder)}"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">'
    head += f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style>'
    body = f"<main><h1>{title}</h1><p>{counts}</p>{_nights(runs, page)}{_importances(importances)}</main>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def save_index(uri: str, folder: str, runs: Sequence[ListedRun]) -> None:
    """Write an index over runs, in the place of one that is there.

    Parameters
    ----------
    uri : str
        Of the page.
    folder : str
        That was listed.
    runs : sequence of ListedRun
        By date.

    Raises
    ------
    InvalidRun
        A summary is damaged.
    StorageError
        The page cannot be written, or a summary not be read.
    """
    page = normalise(uri)
    made = write_index(normalise(folder), runs, read_importances(runs), page).encode()
    commit.update(page, lambda held: None if held == made else made, single_writer=True)
