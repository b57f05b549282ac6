"""Records of shown rows, and text that text and HTML views share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..display.text import count
from ..display.waterfall import Step, shorten_steps, write_whole
from ..runs.lookup.row_lookup import RowAddress

REASONS, CHANGES = "reasons", "changes"  # list columns
STEPS = 10  # features shown
OUTPUTS = 10  # outputs whose margins are listed in a line
ROUNDED = 2.0**-24  # relative rounding of single precision, in which runs store most numbers


@dataclass(frozen=True, slots=True)
class Wording:
    """Names of a run's numbers, and additivity."""

    column: str  # "phi", "loss" or "rank"
    ranks: bool  # attributions are ranks
    total: str  # "margin" or "prediction", in data
    additive: bool  # attributions add up to the total
    sets: bool = False  # interactions are of sets, of any size
    name: str = ""  # what people call the total, if not as in data
    unit: str = ""  # of the numbers, if it is known

    @property
    def word(self) -> str:
        """What people call the total."""
        return self.name or self.total

    @property
    def total_unit(self) -> str:
        """The total, with its unit."""
        return f"{self.word}, {self.unit}" if self.unit else self.word


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """A row's results for one output."""

    output: str
    base: float  # in the units of the space
    total: float  # margin or prediction
    steps: tuple[Step, ...]  # of features or groups, the largest first; ranks in ascending order; NaN for missing labels
    errors: Mapping[str, float]  # standard errors of attributions, if stored
    scores: Mapping[str, float]  # additional measures of a ranking method
    n_others: int  # players without stored values
    interactions: tuple[tuple[tuple[str, ...], float], ...] | None  # pairs, or sets, and values, the largest first; None if not requested
    reasons: tuple[Mapping[str, Any], ...] | None  # as stored, by rank
    changes: tuple[Mapping[str, Any], ...] | None = None  # as stored: what one feature would have to be; None if there are none to be


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of a run."""

    place: RowAddress  # in the run
    file: str  # data file
    file_row: int  # row in that file, from 0
    ids: Mapping[str, Any]  # by id column
    values: Mapping[str, Any]  # of the features, if stored
    outputs: tuple[ShownOutput, ...]  # by descending margin or prediction


def join(names: Sequence[str]) -> str:
    """Name a pair or a set of players in words."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def row_title(row: ShownRow) -> str:
    """Name a row by its ids, or by its address."""
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
    rest = rest if abs(rest) > ROUNDED * size else 0.0  # all others may be 0 up to rounding
    unkept = (Step(f"{count(found.n_others, 'other')}, not kept", None, rest),) if found.n_others else ()
    return (*shorten_steps(found.steps, top), *unkept)


def other_totals(wording: Wording, row: ShownRow) -> str:
    """List the total of each output, if there are several."""
    if len(row.outputs) == 1:
        return ""
    more = f", and {len(row.outputs) - OUTPUTS} more" if len(row.outputs) > OUTPUTS else ""
    return f"{wording.word}s, the largest first: {', '.join(f'{each.output} {write_whole(each.total)}' for each in row.outputs[:OUTPUTS])}{more}"


def left_out(wording: Wording, found: ShownOutput, top: int) -> str:
    """Describe omitted steps that are not summed up.

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


def write_nearest(change: Mapping[str, Any]) -> str:
    """Write a change as a line."""
    until = "" if change.get("until") is None else f", up to {change['until']}"
    return f"      {change.get('text')} ({change.get('feature')} = {change.get('value')}{until})"


def say_found(n_found: int, n_shown: int) -> str:
    """Say how many rows were found and shown; empty for one row."""
    some = "" if n_shown == n_found else f", of which {n_shown:,} are shown"
    return "" if n_found == 1 else f"{count(n_found, 'row')} found{some}"
