"""Overview of runs: one page of self-contained HTML without scripts, with all texts escaped."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import get_args

from ..arguments.choices import MARGIN
from ..display.text import count, printable
from ..drift.verdict import read_document
from ..errors import InvalidRun, LeafledgerError
from ..finished.names import Names, NamesFile, read_names_file
from ..history.importance_shares import Importances, OutputLines, read_importances
from ..history.listed_runs import READERS, REPORT, ListedRun, State
from ..runs.records.current_run import read_finished
from ..runs.records.plan import Plan
from ..stores import commit
from ..stores.uris import link_to, normalise
from .changes import Found, list_alarms, rename_document
from .figures.scale import write_number, write_share
from .page import name_anchor
from .vocabulary import PERSONS, Vocabulary, make_vocabulary
from .words import last_name

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
tr:target { outline: 2px solid var(--line); outline-offset: -2px }
@page { margin: 15mm 12mm }
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000 } body { margin: 0; padding: 0; font-size: 8pt } .swipe { display: none }
  .wide { overflow-x: visible } h2, caption { break-after: avoid } tr { break-inside: avoid }
  td, th { padding: .2rem .25rem } .run, .state { min-width: 3rem; overflow-wrap: break-word } .drift ul { min-width: 10rem }
  code { white-space: normal; overflow-wrap: anywhere } .model { min-width: 3.5rem }
  details::details-content { content-visibility: visible; display: block; height: auto } summary { list-style: none } svg { max-width: 9rem }
}
"""


@dataclass(frozen=True, slots=True)
class Said:
    """What a run's comparison says in words."""

    reference: tuple[str, str]  # the run that it was compared with: the last name of its folder, and its manifest's SHA-256
    alarms: tuple[str, ...]  # a line for each thing that changed


@dataclass(frozen=True, slots=True)
class Told:
    """What is called how, and what comparisons say."""

    words: Vocabulary
    said: dict[str, Said] = field(default_factory=dict)  # by the folder of the run


def _text(text: object) -> str:
    return escape(printable(str(text)))


def _drift(run: ListedRun, said: Said | None) -> str | None:
    if not run.alarms:
        return None if run.alarms is None else "no"
    listed = "".join(f"<li>{_text(alarm)}</li>" for alarm in (run.alarms if said is None else said.alarms))
    return f'<details><summary class="drifted">{count(len(run.alarms), "alarm")}</summary><ul>{listed}</ul></details>'


def _link(run: ListedRun, page: str) -> str:
    name = _text(run.name or run.run)
    return f'<a href="{escape(link_to(page, "/".join((run.run, *REPORT))))}">{name}</a>' if run.report else name


def _state(run: ListedRun) -> str:
    named, _, more = run.progress.partition(", ") if run.progress else (run.state, "", run.why or "")
    return f'<span class="{run.state}">{named}</span>{f"<br>{_text(more)}" if more else ""}'


def _night(run: ListedRun, page: str, said: Said | None, listed: Sequence[ListedRun]) -> dict[str, str | None]:
    """Return a run's cells by column as HTML, None for empty ones."""

    def form(value: float | None, how: str) -> str | None:
        return None if value is None else format(value, how)

    before = None if said is None else next((each for each in listed if (each.run.rpartition("/")[2], each.manifest) == said.reference), None)
    return {
        "date": _text(run.date) if run.date else None,
        "run": _link(run, page),
        "state": _state(run),
        "drift": _drift(run, said),
        "compared with": _link(before, page) if before is not None else None if said is None else _text(said.reference[0]),
        "rows": form(run.n_rows, ","),
        "rejected": form(run.n_rejected, ","),
        "R²": form(run.r2, ".4f"),
        "adds up": None if run.residual is None else "✓",
        "method": _text(run.method) if run.method else None,
        "model": f"<code>{_text(run.model_digest[:12])}</code>" if run.model_digest else None,
    }


def _nights(runs: Sequence[ListedRun], page: str, said: dict[str, Said], rows: str) -> str:
    """Return the table of runs, with nonempty columns; each has an anchor, which its report links to."""
    found = [_night(run, page, said.get(run.run), runs) for run in reversed(runs)]
    named = {name_anchor(run.run, run.manifest): run for run in runs if run.manifest is not None}  # once each
    anchors = {run.run: f' id="{anchor}"' for anchor, run in named.items()}
    heads = [head for head in (found[0] if found else ()) if any(night[head] is not None for night in found)]
    kinds = {head: f' class="{"n" if head in NUMBERS else "run" if head == "compared with" else head}"' for head in heads}
    head = "".join(f'<th scope="col"{kinds[head]}>{_text(rows) if head == "rows" else head}</th>' for head in heads)
    cells = ("".join(f"<td{kinds[head]}>{night[head] or '–'}</td>" for head in heads) for night in found)
    lines = "".join(f"<tr{anchors.get(run.run, '')}>{night}</tr>" for run, night in zip(reversed(runs), cells, strict=True))
    table = f"<table><caption>Runs, the last first</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
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


def _line(name: str, values: Sequence[float | None], form: Callable[[float | None], str]) -> str:
    """Return a row with a line chart, and its first, lowest, highest and last number."""
    known = [value for value in values if value is not None]
    numbers = (values[0], min(known), max(known), values[-1])
    cells = "".join(f'<td class="n">{form(number)}</td>' for number in numbers)
    return f'<tr><th scope="row">{name}</th><td>{_svg(values)}</td>{cells}</tr>'


def _chart(caption: str, what: str, dates: str, rows: Sequence[str]) -> str:
    """Return a table of line charts over the runs, which says on a phone that it scrolls."""
    heads = "".join(f'<th scope="col" class="n">{head}</th>' for head in ("first", "lowest", "highest", "last"))
    head = f'<tr><th scope="col">{what}</th><th scope="col">{dates}</th>{heads}</tr>'
    table = f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f'{SWIPE}<div class="wide" tabindex="0" role="region" aria-label="{caption}">{table}</div>'


def _output(found: OutputLines, several: bool, dates: str, words: Vocabulary) -> str:
    of, total = f", output {_text(found.output)}" if several else "", _text(words.total)
    known, unit = any(mean is not None for mean in found.means), f", {_text(words.unit)}" if words.unit else ""
    mean = _line(f"mean {total}", found.means, partial(write_number, digits=PERSONS)) if known else ""
    means = _chart(f"Mean {total}{of}{unit}", "", dates, [mean]) if known else ""
    lines = [_line(_text(words.names.title(line.feature)), line.shares, write_share) for line in found.lines]
    shares = _chart(f"Share of importance{of}", "feature", dates, lines)
    more = found.n_features - len(found.lines)
    said = f"<p>{count(more, 'more feature')} with smaller shares</p>" if more else ""
    return f"{means}{shares}{said}"


def _importances(found: Importances, words: Vocabulary) -> str:
    if not found.runs:
        return ""
    first, last = (_text(run.date or run.name or run.run) for run in (found.runs[0], found.runs[-1]))
    dates = first if first == last else f"{first} to {last}"
    others = "of other jobs, methods, spaces, backgrounds or outputs, or without importances, left out"
    said = f"<p>{count(found.left_out, 'finished run')} {others}.</p>" if found.left_out else ""
    bottom = "its bottom is 0, or its lowest number where that is below 0"
    said += f"<p>Each line is one number over {count(len(found.runs), 'run')} ({_text(found.kind)}); {bottom}.</p>"
    more = found.n_outputs - len(found.outputs)
    outputs = "".join(_output(each, found.n_outputs > 1, dates, words) for each in found.outputs)
    said += outputs + (f"<p>{count(more, 'more output')}</p>" if more else "")
    return f"<h2>{dates}</h2>{said}"


def write_index(folder: str, runs: Sequence[ListedRun], importances: Importances, page: str, told: Told) -> str:
    """Write the overview of runs."""
    states = [run.state for run in runs]
    counts = ", ".join(f"{states.count(state):,} {state}" for state in get_args(State) if state in states)
    title = f"{count(len(runs), 'run')} in {_text(folder.rstrip('/').rpartition('/')[2] or folder)}"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{POLICY}"><meta name="color-scheme" content="light dark">'
    head += f'<meta name="viewport" content="width=device-width"><title>{title}</title><style>{STYLE}</style>'
    tables = f"{_nights(runs, page, told.said, told.words.names.rows)}{_importances(importances, told.words)}"
    body = f"<main><h1>{title}</h1><p>{counts}{': ' * bool(counts)}{_text(folder)}</p>{tables}</main>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _say(run: ListedRun, plan: Plan | None, names: Names) -> Said | None:
    """Read what a run's comparison says; None without one, or where it cannot be read."""

    def take(found: Found) -> Said:
        total, space = found.get("total", ""), found["space"]
        alike = plan is not None and (plan.total, plan.space) == (total, space)
        words = make_vocabulary(plan, names) if plan is not None and alike else Vocabulary(names, space, total)
        lines = list_alarms(rename_document(found, names), words)
        return Said((last_name(found["reference"]), str(found["reference_manifest"])), tuple(lines))

    try:
        return None if run.alarms is None or run.manifest is None else read_document(run.run, run.manifest, take)
    except InvalidRun:
        return None


def _read_plan(run: str) -> Plan | None:
    """Read what a run attributes; None where that cannot be read, as of a run that is removed meanwhile."""
    try:
        return read_finished(run)[1]
    except LeafledgerError:
        return None


def _tell(runs: Sequence[ListedRun], importances: Importances, names: NamesFile | None) -> Told:
    """Find what features are called, and put all comparisons into words."""
    plan = _read_plan(importances.runs[-1].run) if importances.runs else None
    called = Names() if plan is None else read_names_file(names, plan)
    with ThreadPoolExecutor(READERS) as readers:
        said = zip(runs, readers.map(lambda run: _say(run, plan, called), runs), strict=True)
        found = {run.run: each for run, each in said if each is not None}
    return Told(Vocabulary(called, MARGIN, MARGIN) if plan is None else make_vocabulary(plan, called), found)


def save_index(uri: str, folder: str, runs: Sequence[ListedRun], names: NamesFile | None = None) -> None:
    """Save an overview of runs, replacing an existing one; damaged importances are marked.

    Parameters
    ----------
    uri : str
        Of the page.
    folder : str
        That was listed.
    runs : sequence of ListedRun
        By date.
    names : mapping, str, path or None
        Readable names, as of `report`.
    """
    page = normalise(uri)
    importances = read_importances(runs)
    why = dict(importances.damaged)
    shown = [replace(run, state="damaged", why=why[run.run]) if run.run in why else run for run in runs]
    made = write_index(normalise(folder), shown, importances, page, _tell(shown, importances, names)).encode()
    commit.update(page, lambda held: None if held == made else made, single_writer=True)
