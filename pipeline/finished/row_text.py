"""Rows of a finished run as text for a terminal."""

from collections.abc import Iterator, Sequence

from ..display.text import printable
from ..display.waterfall import draw_steps, write_whole
from .row_data import ShownOutput, ShownRow, Wording, join, left_out, other_totals, row_title, say_found, shown_steps, write_nearest, write_reason


def _write_ranks(title: str, found: ShownOutput, top: int) -> str:
    return "\n".join((printable(title), *(f"{step.phi:>4.0f}  {step.label}" for step in found.steps[:top])))


def _write_row(wording: Wording, row: ShownRow, top: int) -> Iterator[str]:
    found, several = row.outputs[0], len(row.outputs) > 1
    title = row_title(row) + (f", output {found.output}" if several or found.output else "")
    if wording.ranks:
        yield _write_ranks(title, found, top)
        yield f"{wording.word} {write_whole(found.total)}"
    else:
        yield draw_steps(title, found.base if wording.additive else None, shown_steps(wording, found, top), found.total, wording.total_unit)
    lines = [other_totals(wording, row), left_out(wording, found, top), *(f"{name} {write_whole(value)}" for name, value in found.scores.items())]
    if found.interactions is not None:
        lines += ["interactions" if found.interactions else "no interactions"]
        lines += [f"{value:>+11.5g}  {join(names)}" for names, value in found.interactions[:top]]
    if found.reasons is not None:
        lines += ["reasons" if found.reasons else "no reasons", *map(write_reason, found.reasons)]
    if found.changes is not None:
        lines += ["one change would do" if found.changes else "no change of one feature would do", *map(write_nearest, found.changes)]
    yield from (printable(line) for line in lines if line)


def write_text(wording: Wording, rows: Sequence[ShownRow], n_found: int, top: int) -> str:
    """Write rows as lines, with names and values escaped."""
    pieces = ["\n".join(_write_row(wording, row, top)) for row in rows]
    more = say_found(n_found, len(rows))
    return "\n\n".join([*pieces, more] if more else pieces)
