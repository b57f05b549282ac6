"""Rows of a finished run as HTML tables, with all texts escaped."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from ..display.text import printable
from ..display.waterfall import Step, write_whole
from .row_data import (
    STEPS,
    ShownOutput,
    ShownRow,
    Wording,
    join,
    left_out,
    other_totals,
    row_title,
    say_found,
    shown_steps,
    write_nearest,
    write_reason,
)

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


def text_of(text: object) -> str:
    """Escape and clean a text."""
    return escape(printable(str(text)))


def _cell_row(cells: Sequence[str], tag: str = "td") -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _step(step: Step, largest: float) -> str:
    known = not math.isnan(step.phi)
    width = 100 * abs(step.phi) / largest if largest and known else 0
    bar = f'<i{" class=d" if step.phi < 0 else ""} style="width:{width:.1f}%"></i>'
    return f'<tr><td>{text_of(step.label)}</td><td class="n">{f"{step.phi:+.5g}" if known else "–"}</td><td class="b">{bar}</td></tr>'


def _number(name: str, number: float) -> str:
    return f'<tr><td>{text_of(name)}</td><td class="n">{write_whole(number)}</td><td class="b"></td></tr>'


def _ranks(found: ShownOutput, top: int) -> Iterable[str]:
    return (f'<tr><td>{text_of(step.label)}</td><td class="n">{step.phi:.0f}</td><td class="b"></td></tr>' for step in found.steps[:top])


def _output(wording: Wording, found: ShownOutput, top: int) -> str:
    steps = shown_steps(wording, found, top)
    largest = max((abs(step.phi) for step in steps if not math.isnan(step.phi)), default=0.0)
    base = [_number("base value", found.base)] if wording.additive else []
    rows = _ranks(found, top) if wording.ranks else [*base, *(_step(step, largest) for step in steps)]
    scores = (_number(name, score) for name, score in found.scores.items())
    said = [f"<table>{''.join(rows)}{_number(wording.total_unit, found.total)}{''.join(scores)}</table>"]
    more = left_out(wording, found, top)
    said += [f"<p>{text_of(more)}</p>"] if more else []
    if found.interactions:
        largest = abs(found.interactions[0][1])
        pairs = (_step(Step(join(names), None, value), largest) for names, value in found.interactions[:top])
        said.append(f"<h3>interactions</h3><table>{''.join(pairs)}</table>")
    if found.reasons:
        said.append(f"<h3>reasons</h3><table>{''.join(_cell_row([text_of(write_reason(reason).strip())]) for reason in found.reasons)}</table>")
    if found.changes:
        said.append(
            f"<h3>one change would do</h3><table>{''.join(_cell_row([text_of(write_nearest(each).strip())]) for each in found.changes)}</table>"
        )
    return "".join(said)


def _row(wording: Wording, row: ShownRow, top: int) -> str:
    first, *others = row.outputs
    totals = other_totals(wording, row)
    said = [f"<h2>{text_of(row_title(row))}{f', output {text_of(first.output)}' if first.output else ''}</h2>"]
    said += [f"<p>{text_of(totals)}</p>"] if totals else []
    said.append(_output(wording, first, top))
    said += [f"<details><summary>output {text_of(each.output)}</summary>{_output(wording, each, top)}</details>" for each in others]
    if row.values:
        values = "".join(_cell_row([text_of(name), "–" if value is None else text_of(value)]) for name, value in row.values.items())
        said.append(f"<details><summary>all values</summary><table>{values}</table></details>")
    return f"<section>{''.join(said)}</section>"


def write_rows(wording: Wording, rows: Sequence[ShownRow], n_found: int, top: int = STEPS) -> str:
    """Write rows as an HTML fragment."""
    found = say_found(n_found, len(rows))
    many = f"<p>{found}</p>" if found else ""
    return f'<div class="leafledger"><style>{STYLE}</style>{many}{"".join(_row(wording, row, top) for row in rows)}</div>'
