"""Waterfall of one row's attributions: from the base value to the margin or prediction, the largest first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .text import as_html, printable

BAR = 24  # characters of the longest bar
FULL, HALF = "█", "▌"
NOISE = 1e-12  # of the numbers that are added up
LONGEST = 1e15  # largest number with float64's digits all before the point


def write_whole(number: float, digits: int = 5) -> str:
    """Format a number with a few digits, or all before the point: dates as YYYYMMDD need eight.

    Parameters
    ----------
    number : float
    """
    return f"{number:.0f}" if 10.0**digits - 0.5 <= abs(number) < LONGEST else f"{number:.{digits}g}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a waterfall.

    Attributes
    ----------
    player : str
        A feature or group, or the number of others.
    value : Any
        The feature's value in the row; None if it has none.
    phi : float
    """

    player: str
    value: Any
    phi: float

    @property
    def shown(self) -> str:
        """The value, as text."""
        return write_whole(self.value, 6) if isinstance(self.value, float) else str(self.value)

    @property
    def label(self) -> str:
        """The player with its value."""
        return printable(self.player if self.value is None else f"{self.player} = {self.shown}")


def plain(value: Any) -> Any:
    """Convert a value to plain Python.

    Parameters
    ----------
    value : Any
        One of NumPy's, or anything else.
    """
    return value.item() if isinstance(value, np.generic) else value


def shorten_steps(steps: Sequence[Step], top: int) -> tuple[Step, ...]:
    """Sort steps by magnitude, and sum up those after the largest.

    Parameters
    ----------
    top : int
        How many to keep; one more where it is the last.

    Returns
    -------
    tuple of Step
        Of equal ones the first comes first.
    """
    ordered = sorted(steps, key=lambda step: -abs(step.phi))
    kept = len(steps) if len(steps) <= top + 1 else top
    others = ordered[kept:]
    return (*ordered[:kept], *([Step(f"{len(others):,} others", None, sum(step.phi for step in others))] if others else []))


def silence(values: Sequence[float], size: float) -> list[float]:
    """Write what is next to nothing beside the numbers that it is added to, as 0: it is what rounding leaves of them.

    Parameters
    ----------
    values : sequence of float
    size : float
        Of these numbers together.

    Returns
    -------
    list of float
    """
    return [0.0 if abs(value) <= NOISE * size else value for value in values]


def _silence_steps(steps: Sequence[Step], *ends: float | None) -> list[Step]:
    values = [step.phi for step in steps]
    size = sum(abs(value) for value in (*values, *(end or 0.0 for end in ends)) if math.isfinite(value))
    return [replace(step, phi=value) for step, value in zip(steps, silence(values, size), strict=True)]


def draw_steps(title: str, base: float | None, steps: Sequence[Step], total: float | None, total_name: str) -> str:
    """Write steps as text, each with a bar.

    Parameters
    ----------
    base : float or None
        What stands before them; None for nothing.
    total : float or None
        What stands behind them.

    Returns
    -------
    str
        Lines, in which names and values do nothing but stand there.
    """
    steps = _silence_steps(steps, base, total)
    labels = ["base value", *(step.label for step in steps), total_name]
    wide, largest = max(map(len, labels)), max((abs(step.phi) for step in steps if step.phi == step.phi), default=0.0)
    lines = [printable(title)] + ([] if base is None else [f"{labels[0]:<{wide}}  {write_whole(base):>11}"])
    for label, step in zip(labels[1:-1], steps, strict=True):
        halves = round(2 * BAR * abs(step.phi) / largest) if largest and step.phi == step.phi else 0
        lines.append(f"{label:<{wide}}  {step.phi:>+11.5g}  {FULL * (halves // 2)}{HALF * (halves % 2)}".rstrip())
    return "\n".join((*lines, *([] if total is None else [f"{labels[-1]:<{wide}}  {write_whole(total):>11}"])))


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Steps of one row and output from base value to prediction; prints as text, and in a notebook as a table.

    Attributes
    ----------
    title : str
    base : float
        In the units of the space.
    steps : tuple of Step
        The largest by magnitude first; all others are one step at the end.
    total : float
        Margin or prediction.
    total_name : str
        "margin" or "prediction".
    """

    title: str
    base: float
    steps: tuple[Step, ...]
    total: float
    total_name: str

    def __repr__(self) -> str:
        return draw_steps(self.title, self.base, self.steps, self.total, self.total_name)

    def _repr_html_(self) -> str:
        """The same as a table."""
        ends = [(name, write_whole(number)) for name, number in (("base value", self.base), (self.total_name, self.total))]
        rows = [ends[0], *((step.label, float(step.phi)) for step in _silence_steps(self.steps, self.base, self.total)), ends[1]]
        return as_html(self.title, ("", self.total_name), rows, len(rows))
