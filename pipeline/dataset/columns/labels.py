"""Label and weight columns of rows, and their validation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from leafledger.kernels.quotients.quantities import Quantity
from leafledger.kernels.slices.labels import Labels, no_labels
from leafledger.kernels.trees.binning import padded

from ...errors import InvalidLabel
from ...models.model import Feature
from . import schema
from .row_places import RowPlaces

COUNT, REFUSE = "count", "refuse"
# Keeps sums of fourth powers of labels times squared weights finite, over any number of rows.
LARGEST_LABEL, LARGEST_WEIGHT = 1e60, 1e30


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """Label columns of the data."""

    label: str
    weight: str | None
    missing: str  # "count" skips rows without a label, "refuse" fails the run

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the label column, and of the weight column if any."""
        return (self.label,) if self.weight is None else (self.label, self.weight)


def _numbers(batch: pa.RecordBatch, name: str) -> np.ndarray:
    return schema.column_values(Feature(name), batch.column(name))


def _refuse(bad: np.ndarray, places: RowPlaces, says: Callable[[int], str]) -> None:
    """Refuse the first of the rows that are ``bad (n,) bool``."""
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InvalidLabel(f"{places.name(row)}: {says(row)}")


def check_values(label: np.ndarray, weight: np.ndarray, missing: str, places: RowPlaces, names: Sequence[str], loss: Quantity | None = None) -> None:
    """Refuse labels and weights for which the loss cannot be decomposed.

    Parameters
    ----------
    label : (n,) float64
        In the label's units, NaN where it is missing.
    weight : (n,) float64
    missing : {"count", "refuse"}
        What to do with missing labels: let them pass, or refuse them.
    places : RowPlaces
        Of the rows, for the message.
    names : (str, str)
        What label and weight are called in the message.
    loss : Quantity, optional
        That is defined for some labels alone.

    Raises
    ------
    InvalidLabel
        A label is larger than LARGEST_LABEL in magnitude, or missing where that is refused; or a weight is missing, negative or larger than
        LARGEST_WEIGHT; or the loss is not defined for a label. It names the first such row.
    """
    expected = f"expected a number between {-LARGEST_LABEL:g} and {LARGEST_LABEL:g}"
    _refuse(np.abs(label) > LARGEST_LABEL, places, lambda i: f"{names[0]} is {label[i]}, {expected}")
    if loss is not None:
        said = f"expected {loss.said or 'a number'}, as the model's loss ({loss.name}) takes"
        _refuse(~(np.isnan(label) | loss.takes(label)), places, lambda i: f"{names[0]} is {label[i]:g}, {said}")
    if missing == REFUSE:
        _refuse(np.isnan(label), places, lambda i: f"{names[0]} is missing, expected a number, or --missing-labels {COUNT}")
    expected = f"expected a number between 0 and {LARGEST_WEIGHT:g}"
    _refuse(~((weight >= 0) & (weight <= LARGEST_WEIGHT)), places, lambda i: f"{names[1]} is {weight[i]}, {expected}")


def lay_out(label: np.ndarray, weight: np.ndarray) -> Labels:
    """Convert labels and weights to kernel arrays.

    Parameters
    ----------
    label : (n,) float64
        In the label's units, NaN where it is missing.
    weight : (n,) float64
        Not negative.

    Returns
    -------
    Labels
        Padded to a multiple of BATCH rows, all of one group, whose name is empty. Rows without a label, and those that were added, have label and
        weight 0.
    """
    n = label.size
    out = no_labels(padded(n))
    missing = np.isnan(label)
    out.missing[:n] = missing
    out.label[:n] = np.where(missing, 0.0, label)
    out.weight[:n] = np.where(missing, 0.0, weight)
    return out


def read_labels(columns: LabelColumns, batch: pa.RecordBatch, places: RowPlaces, quantity: Quantity | None = None) -> Labels:
    """Read the labels of a batch of rows.

    Parameters
    ----------
    batch : pa.RecordBatch
        The slice; it has all of these columns.
    places : RowPlaces
        Of the slice's rows, for messages.
    quantity : Quantity, optional
        That attributions are carried to: a loss may not be defined for all numbers.

    Returns
    -------
    Labels
        Weight 1 where no column of weights is named.

    Raises
    ------
    InvalidLabel
        A label or weight cannot be used, see `check_values`.
    """
    label = _numbers(batch, columns.label)
    weight = np.ones(label.size) if columns.weight is None else _numbers(batch, columns.weight)
    names = f"label {columns.label!r}", f"weight {columns.weight!r}"
    check_values(label, weight, columns.missing, places, names, quantity if quantity is not None and quantity.labelled else None)
    return lay_out(label, weight)
