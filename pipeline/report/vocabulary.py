"""The words of a report: what predictions, rows and features are called, and how numbers are written with their unit."""

from dataclasses import dataclass

from ..arguments.choices import LOSS
from ..finished.names import Names
from ..runs.records.plan import Plan
from .figures.scale import write_number

PERSONS = 3  # digits of a number in a sentence


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words for what a run explains."""

    names: Names
    space: str
    total: str  # "prediction", "margin" or "loss", or as people call it
    unit: str = ""  # of predictions and attributions, if known

    @property
    def figure_unit(self) -> str:
        """The unit that figures write beside numbers: the total itself, for want of one."""
        return LOSS if self.space == LOSS else self.unit or self.total

    def write(self, number: float | None, signed: bool = False, digits: int = PERSONS) -> str:
        """Write a number as a person would say it, with its unit."""
        return "–" if number is None else f"{write_number(number, signed, digits)}{f' {self.unit}' if self.unit else ''}"


def make_vocabulary(plan: Plan, names: Names) -> Vocabulary:
    """Choose the words for a run; a loss is not in the units of predictions, nor called as they are."""
    if plan.space == LOSS:
        unit = names.prediction.unit
        return Vocabulary(names, plan.space, plan.total, f"{unit}²" if unit.isalpha() and plan.quantity and plan.quantity.name == "squared" else "")
    return Vocabulary(names, plan.space, names.prediction.title or plan.total, names.prediction.unit)
