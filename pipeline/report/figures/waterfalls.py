"""Waterfall figures of single rows, from base value to prediction."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ...arguments.choices import LOSS
from ...display.waterfall import Step
from ...finished.row_data import ROUNDED, ShownOutput, ShownRow, Wording, left_out, row_title, shown_steps
from .figure import Figure, Table, Track, Tracks, directions, draw_bar
from .scale import NARROW, WHOLE, make_axis, shorten_name, shorten_names, write_number, write_two

STEPS = 8
PLAYER, VALUE, TITLE = 32, 24, 200  # characters


def _label_all(steps: Sequence[Step], most: int) -> list[str]:
    """Label players with their values."""
    labels = []
    for name, step in zip(shorten_names([step.player for step in steps], most), steps, strict=True):
        missing = isinstance(step.value, float) and math.isnan(step.value)
        labels.append(f"{name}{', missing' if missing else shorten_name(replace(step, player='').label, VALUE)}")
    return labels


def draw_waterfall(wording: Wording, row: ShownRow, found: ShownOutput, what: str, label: float | None = None, called: str = "row") -> Figure:
    """Draw a row's attributions to an output as a waterfall.

    Parameters
    ----------
    what : str
        Why it is shown, such as "Highest margin".
    label : float, optional
        What the margin should have been, or what the loss is of.
    called : str
        What a row is called.

    Returns
    -------
    Figure
        Where attributions add up, each step begins where the one before ended; ranks are listed alone.
    """
    steps = [step for step in shown_steps(wording, found, STEPS) if not math.isnan(step.phi)]
    base, before = found.base if wording.additive else 0.0, []
    for step in steps:
        before.append(base)
        base += step.phi if wording.additive else 0.0
    ends = [end for start, step in zip(before, steps, strict=True) for end in (start, start + step.phi)]
    differ = wording.additive and abs(found.total - found.base) > ROUNDED * abs(found.total)
    begin, total = write_two(found.base, found.total) if differ else (write_number(found.base), write_number(found.total))
    axis = make_axis([*ends, found.total] if wording.additive else ends, zero=not wording.additive)
    tracks = [
        Track(
            name,
            (draw_bar(axis, start, start + step.phi, "plain" if wording.ranks else "down" if step.phi < 0 else "up"),),
            text=write_number(step.phi, not wording.ranks, 3),
        )
        for name, start, step in zip(_label_all(steps, PLAYER), before, steps, strict=True)
    ]
    if wording.additive:
        first = Track("base value", (), points=(axis.at(found.base),), text=begin)
        last = Track(wording.word, (), points=(axis.at(found.total),), text=total)
        tracks = [first, *tracks, last]
    which, where = shorten_name(row_title(row), TITLE), shorten_name(row.file.rpartition("/")[2])
    output = f" of output {shorten_name(found.output)}" if found.output else ""
    missed = "" if label is None else f", label {write_number(float(label))}"
    if label is not None and wording.total != LOSS:
        missed += f", residual {write_number(float(label) - found.total, signed=True)}"
    more = f" Left out: {others}." if (others := left_out(wording, found, STEPS)) else ""
    numbers = [(name, write_number(step.phi, signed=not wording.ranks)) for name, step in zip(_label_all(steps, WHOLE), steps, strict=True)]
    named = f"{called[:1].upper()}{called[1:]}{which.removeprefix('row')}"
    numbers = [("base value", begin), *numbers] if wording.additive else numbers
    return Figure(
        what,
        f"{named}: {wording.word}{output} {total}{f' {wording.unit}' if wording.unit else ''}{missed}. {where}, row {row.file_row:,}.{more}",
        Tracks(
            tuple(tracks),
            axis.ticks(4, NARROW),
            axis.at(0) if axis.low <= 0 <= axis.high else None,
            wording.total_unit if wording.additive else wording.column,
            () if wording.ranks else directions(wording.total),
        ),
        Table(("feature", "attribution" if wording.column == "phi" else wording.column), (*numbers, (wording.word, total))),
        small=True,
    )
