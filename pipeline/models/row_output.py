"""An output that differs from row to row, as it is asked for: the predicted class, or another one."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernels.row_outputs import draw_other, find_predicted

from ..errors import UnsupportedModel, UsageError
from .model import Model
from .objectives import Margin

Which = Literal["predicted", "other"]
PREDICTED: Which = "predicted"
OTHER: Which = "other"
SEEDS = 1 << 64
OUTPUT = "output"  # column of what was chosen
_ASKED = re.compile(rf"({PREDICTED})|({OTHER})(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class RowOutput:
    """Which output a row is explained for: that with the largest margin, or another one, drawn by the number of the row in its file."""

    which: Which
    seed: int = 0

    def choose(self, margin: np.ndarray, first_row: int) -> np.ndarray:
        """Choose an output for every row.

        Parameters
        ----------
        margin : (outputs, n) float64
        first_row : int
            Number of the first row in its file.

        Returns
        -------
        (n,) int64
        """
        return find_predicted(margin) if self.which == PREDICTED else draw_other(margin, first_row, self.seed)


def read_row_output(asked: str | int | None) -> RowOutput | None:
    """Read which output is asked for, where it differs from row to row.

    Parameters
    ----------
    asked : str, int or None
        "predicted", "other" or "other:seed"; anything else is the name of an output, or its position.

    Returns
    -------
    RowOutput or None
        None for the same output on every row, or all of them.

    Raises
    ------
    UsageError
        The seed is too large.
    """
    found = _ASKED.fullmatch(asked) if isinstance(asked, str) else None
    if found is None:
        return None
    seed = int(found[3] or 0)
    if seed >= SEEDS:
        raise UsageError(f"output is {asked!r:.80}, expected a seed below 2^64")
    return RowOutput(PREDICTED if found[1] else OTHER, seed)


def check_row_output(row_output: RowOutput | None, model: Model) -> None:
    """Refuse to choose outputs of a model whose largest margin is not that of the predicted class.

    Parameters
    ----------
    row_output : RowOutput or None
    model : Model

    Raises
    ------
    UsageError
        An output of the model is called as the choice.
    UnsupportedModel
        The model has one output, or its outputs are no classes that exclude each other.
    """
    if row_output is None:
        return
    which, outputs = row_output.which, model.outputs
    if which in outputs:
        raise UsageError(f"output {which!r} is a class of the model, and a choice of the class for every row; give outputs other names")
    if len(outputs) == 1:
        raise UnsupportedModel(f"output {which!r} chooses among outputs, but the model has one alone, {outputs[0]!r}: its sign says which class")
    if model.objective.margin is not Margin.CLASSES:
        of_classes = f"but those of objective {model.objective.name!r} are no classes of one label"
        raise UnsupportedModel(f"output {which!r} chooses by the largest margin, {of_classes}")
