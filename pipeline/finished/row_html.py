"""Rows of a finished run as a page of HTML: everything is in it, nothing is fetched or run, and all texts are escaped."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from ..display.text import printable
from ..display.waterfall import Step, write_whole
from ..stores import commit, storage
from ..stores.places import normalise
from .row_view import STEPS, Shown, ShownOutput, ShownRow, left_out, other_totals, row_title, shown_steps, write_reason

# No script, no request, whatever stands in a name: the browser is told so too.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
STYLE = """
.leafledger { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; --up: #c2410c; --down: #1d4ed8; --line: #8884 }
.leafledger table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.25rem }
.leafledger td, .leafledger th { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid var(--line); overflow-wrap: anywhere }
.leafledger td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.leafledger td.b { width: 40% }
.leafledger i { display: block; height: .8em; background: var(--up) }
.leafledger i.d { background: var(--down) }
@media (prefers-color-scheme: dark) { .leafledger { --up: #fb923c; --down: #60a5fa } }
"""


def _text(text: object) -> str:
    return escape(printable(str(text)))


def _cell_row(cells: Sequence[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _step(step: Step, largest: float) -> str:
    known = not math.isnan(step.phi)
    width = 100 * abs(step.phi) / largest if largest and known else 0
    bar = f'<i{" class=d" if step.phi < 0 else ""} style="width:{width:.1f}%"></i>'
    return f'<tr><td>{_text(step.label)}</td><td class="n">{f"{step.phi:+.5g}" if known else "–"}</td><td class="b">{bar}</td></tr>'


def _number(name: str, number: float) -> str:
    return f'<tr><td>{_text(name)}</td><td class="n">{write_whole(number)}</td><td class="b"></td></tr>'


def _ranks(found: ShownOutput, top: int) -> Iterable[str]:
    return (f'<tr><td>{_text(step.label)}</td><td class="n">{step.phi:.0f}</td><td class="b"></td></tr>' for step in found.steps[:top])


def _output(shown: Shown, found: ShownOutput, top: int) -> str:
    steps = shown_steps(shown, found, top)
    largest = max((abs(step.phi) for step in steps if not math.isnan(step.phi)), default=0.0)
    base = [_number("base value", found.base)] if shown.additive else []
    rows = _ranks(found, top) if shown.ranks else [*base, *(_step(step, largest) for step in steps)]
    scores = (_number(name, score) for name, score in found.scores.items())
    said = [f"<table>{''.join(rows)}{_number(shown.total, found.total)}{''.join(scores)}</table>"]
    more = left_out(shown, found, top)
    said += [f"<p>{_text(more)}</p>"] if more else []
    if found.interactions:
        largest = abs(found.interactions[0][2])
        pairs = (_step(Step(f"{first} and {second}", None, value), largest) for first, second, value in found.interactions[:top])
        said.append(f"<h3>interactions</h3><table>{''.join(pairs)}</table>")
    if found.reasons:
        said.append(f"<h3>reasons</h3><table>{''.join(_cell_row([_text(write_reason(reason).strip())]) for reason in found.reasons)}</table>")
    return "".join(said)


def _row(shown: Shown, row: ShownRow, top: int) -> str:
    first, *others = row.outputs
    totals = other_totals(shown, row)
    said = [f"<h2>{_text(row_title(row))}{f', output {_text(first.output)}' if first.output else ''}</h2>"]
    said += [f"<p>{_text(totals)}</p>"] if totals else []
    said.append(_output(shown, first, top))
    said += [f"<details><summary>output {_text(each.output)}</summary>{_output(shown, each, top)}</details>" for each in others]
    if row.values:
        values = "".join(_cell_row([_text(name), "–" if value is None else _text(value)]) for name, value in row.values.items())
        said.append(f"<details><summary>all values</summary><table>{values}</table></details>")
    return f"<section>{''.join(said)}</section>"


def write_rows(shown: Shown, top: int = STEPS) -> str:
    """Write rows as a piece of a page.

    Parameters
    ----------
    shown : Shown
    top : int
        How many features of a row are shown; where they add up, the others are added up.

    Returns
    -------
    str
        HTML, in which all texts are escaped.
    """
    n, some = shown.n_found, "" if len(shown.rows) == shown.n_found else f", of which {len(shown.rows):,} are shown"
    many = "" if n == 1 else f"<p>{n:,} rows found{some}</p>"
    return f'<div class="leafledger"><style>{STYLE}</style>{many}{"".join(_row(shown, row, top) for row in shown.rows)}</div>'


def write_page(shown: Shown, top: int = STEPS, note: str = "") -> str:
    """Write rows as a page of its own.

    Parameters
    ----------
    shown : Shown
    top : int
        As of `write_rows`.
    note : str
        A line below them.

    Returns
    -------
    str
        HTML, light or dark as the reader's system is.
    """
    title = _text(f"{row_title(shown.rows[0])}: {shown.run}")
    about = f"run {_text(shown.run)}<br>method {_text(shown.method)}<br>SHA-256 of manifest.json {_text(shown.manifest)}"
    about += f"<br>{_text(note)}" if note else ""
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">'
    head += f'<meta name="viewport" content="width=device-width"><title>{title}</title>'
    body = f'{write_rows(shown, top)}<footer class="leafledger"><p>{about}</p></footer>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def save_page(uri: str, shown: Shown, top: int = STEPS, note: str = "") -> None:
    """Write a page of rows to a file.

    Parameters
    ----------
    uri : str
        Of the object; one that is there already must hold the same bytes.
    shown : Shown
    top : int
    note : str
        As of `write_page`.

    Raises
    ------
    RunConflict
        There is another file.
    StorageError
        The file cannot be written.
    """
    with storage.scratch() as folder:
        local = folder / "page.html"
        local.write_text(write_page(shown, top, note), encoding="utf-8")
        commit.create_once(normalise(uri), local)
