"""Rows of a finished run as records, and what is shown of them wherever they are shown."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..display.text import count
from ..display.waterfall import Step, shorten_steps, write_whole
from ..runs.lookup.row_lookup import RowAddress

REASONS = "reasons"  # a list of what to tell whom a row is about, where a run has it
STEPS = 10  # features that are shown
OUTPUTS = 10  # whose margins are shown in a line
ROUNDED = 2.0**-24  # of a number, by which single precision, in which runs store most, may miss it


@dataclass(frozen=True, slots=True)
class Wording:
    """What numbers of a run are called, and whether they add up.

    Attributes
    ----------
    column : str
        What attributions are called: "phi", "loss" or "rank".
    ranks : bool
        They are places in a ranking.
    total : str
        What the model says: "margin" or "prediction".
    additive : bool
        Attributions add up to it.
    """

    column: str
    ranks: bool
    total: str
    additive: bool


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """What a run has of a row for one output.

    Attributes
    ----------
    output : str
    base : float
        In the units of the space.
    total : float
        Margin or prediction.
    steps : tuple of Step
        Of the features or groups, the largest first; ranks from the first on; NaN where a label is missing.
    errors : dict of str to float
        Standard errors of the attributions, where the run has them.
    scores : dict of str to float
        What a ranking method measures besides.
    n_others : int
        Features or groups of which nothing was kept.
    interactions : tuple of (str, str, float), or None
        The largest first; None where they were not asked for.
    reasons : tuple of dict, or None
        As the run has them, by their ranks.
    """

    output: str
    base: float
    total: float
    steps: tuple[Step, ...]
    errors: Mapping[str, float]
    scores: Mapping[str, float]
    n_others: int
    interactions: tuple[tuple[str, str, float], ...] | None
    reasons: tuple[Mapping[str, Any], ...] | None


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of a run.

    Attributes
    ----------
    place : RowAddress
        In the run.
    file : str
        Of the data,
    file_row : int
        and the row there, from 0.
    ids : dict of str to Any
        Its id columns.
    values : dict of str to Any
        Of the features, where the run has them.
    outputs : tuple of ShownOutput
        That of the largest margin or prediction first.
    """

    place: RowAddress
    file: str
    file_row: int
    ids: Mapping[str, Any]
    values: Mapping[str, Any]
    outputs: tuple[ShownOutput, ...]


def row_title(row: ShownRow) -> str:
    """Name a row by its ids, or where it is."""
    return "row " + (", ".join(f"{name} = {value}" for name, value in row.ids.items()) or f"{row.place.row} of part {row.place.part}")


def shown_steps(wording: Wording, found: ShownOutput, top: int) -> tuple[Step, ...]:
    """Choose the steps to show.

    Parameters
    ----------
    top : int
        How many, but for the last, which stands for all others where they add up.
    """
    if not wording.additive:
        return found.steps[:top]
    rest = found.total - found.base - math.fsum(step.phi for step in found.steps)
    size = math.fsum((abs(found.total), abs(found.base), *(abs(step.phi) for step in found.steps)))
    rest = rest if abs(rest) > ROUNDED * size else 0.0  # all others may be 0, and then rounding alone is left
    unkept = (Step(f"{count(found.n_others, 'other')}, not kept", None, rest),) if found.n_others else ()
    return (*shorten_steps(found.steps, top), *unkept)


def other_totals(wording: Wording, row: ShownRow) -> str:
    """Say what the model says for each output, where there are several."""
    if len(row.outputs) == 1:
        return ""
    more = f", and {len(row.outputs) - OUTPUTS} more" if len(row.outputs) > OUTPUTS else ""
    return f"{wording.total}s, the largest first: {', '.join(f'{each.output} {write_whole(each.total)}' for each in row.outputs[:OUTPUTS])}{more}"


def left_out(wording: Wording, found: ShownOutput, top: int) -> str:
    """Say what is not shown of an output where it is not added up.

    Parameters
    ----------
    top : int
        Of `shown_steps`.

    Returns
    -------
    str
        Empty where all is shown.
    """
    if wording.additive:
        return ""
    n_more = max(0, len(found.steps) - top)
    said = (f"{n_more} more", n_more), (f"{count(found.n_others, 'other')}, not kept", found.n_others)
    return "; ".join(text for text, n in said if n)


def write_reason(reason: Mapping[str, Any]) -> str:
    """Write a reason as a line."""
    value, share = reason.get("value"), reason.get("share")
    feature = f"{reason.get('feature')}" + ("" if value is None else f" = {value}")
    phi = "" if reason.get("phi") is None else f", {reason['phi']:+.5g}"
    said = " ".join(str(reason[name]) for name in ("code", "text") if reason.get(name) is not None)
    return f"{reason.get('rank', ''):>4}  {said} ({feature}{phi}{'' if share is None else f', {share:.0%}'})"


def say_found(n_found: int, n_shown: int) -> str:
    """Say how many rows were found, and how many of them are shown; empty of one row."""
    some = "" if n_shown == n_found else f", of which {n_shown:,} are shown"
    return "" if n_found == 1 else f"{count(n_found, 'row')} found{some}"
