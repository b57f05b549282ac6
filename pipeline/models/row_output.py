"""Outputs that differ by row: the predicted class, or another one."""

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from leafledger.kernels.slices.row_outputs import draw_other, find_predicted

from ..errors import UnsupportedModel, UsageError
from .model import Model
from .objectives import OF_CLASSES, Margin

Which = Literal["predicted", "other"]
PREDICTED: Which = "predicted"
OTHER: Which = "other"
SEEDS = 1 << 64
OUTPUT = "output"  # column of the chosen output
_ASKED = re.compile(rf"({PREDICTED})|({OTHER})(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class RowOutput:
    """Choice of a row's output: that with the largest margin, or another one drawn by the row's number in its file."""

    which: Which
    seed: int = 0

    def choose(self, margin: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Choose an output for every row.

        Parameters
        ----------
        margin : (outputs, n) float64
        rows : (n,) integers
            Numbers of the rows in their files.

        Returns
        -------
        (n,) int64
        """
        return find_predicted(margin) if self.which == PREDICTED else draw_other(margin, rows, self.seed)


def read_row_output(asked: str | int | None) -> RowOutput | None:
    """Read the choice of an output by row.

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


def _name_both(model: Model) -> tuple[str, str]:
    """Name both classes: as the model does, or by number; for a named output, as "not" it and it."""
    if model.only_output is None and model.objective.classes:
        first, second = model.objective.classes
        return first, second
    (output,) = model.outputs
    unnamed = model.only_output is None and output == "0"  # named by its number among outputs
    return ("0", "1") if unnamed else (f"not {output}", output)


def _with_both_classes(model: Model) -> Model:
    """Add an output for the first of two classes, with the negative margin of the second."""
    ensemble = model.ensemble
    both = ensemble._replace(value=np.hstack((-ensemble.value, ensemble.value)), base=np.array([-ensemble.base[0], ensemble.base[0]]))
    return replace(model, ensemble=both, outputs=_name_both(model))


def choose_among(row_output: RowOutput | None, model: Model) -> Model:
    """Refuse a model without several outputs of which the largest is the predicted class.

    Parameters
    ----------
    row_output : RowOutput or None
        None leaves the model as it is.

    Returns
    -------
    Model
        Where it has one margin for the second of two classes, with the first one too; otherwise as it is.

    Raises
    ------
    UsageError
        An output of the model is called as the choice.
    UnsupportedModel
        The model's outputs are no classes that exclude each other, or one of several alone.
    """
    if row_output is None:
        return model
    which, margin = row_output.which, model.objective.margin
    if which in (*model.outputs, *model.objective.classes):
        raise UsageError(f"output {which!r} is a class of the model, and a choice of the class for every row; give outputs other names")
    if len(model.outputs) == 1 and margin in OF_CLASSES:
        if not model.objective.is_of_two:
            raise UnsupportedModel(f"output {which!r} chooses among classes, but the model has margins of class {model.outputs[0]!r} alone")
        threshold = model.objective.threshold
        if threshold is not None:
            moved = f"expected a class from one half on, but the model predicts {_name_both(model)[1]!r} from probability {threshold:g} on"
            raise UnsupportedModel(f"output {which!r}: {moved}")
        return _with_both_classes(model)
    if margin is not Margin.CLASSES:
        of_classes = f"but those of objective {model.objective.name!r} are no classes of one label"
        raise UnsupportedModel(f"output {which!r} chooses by the largest margin, {of_classes}")
    return model
