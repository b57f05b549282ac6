"""Labels and weights of rows in memory, given as numbers or column names."""

from typing import Any

import numpy as np

from leafledger.kernels.method.method import Method
from leafledger.kernels.quotients.quantities import Quantity

from ...arguments.choices import LOSS
from ...arguments.readers import shorten
from ...dataset.columns import schema
from ...dataset.columns.labels import COUNT, check_values
from ...dataset.columns.row_places import RowPlaces
from ...errors import UsageError
from ...methods.parameters import labelled_methods
from ...models.model import Feature
from .given_rows import as_numbers, as_rows, refuse_turned, say_given
from .named_column import take_column

Targets = tuple[np.ndarray, np.ndarray]  # labels and weights, (n,) float64 each


def _read_column(name: str, given: Any, rows: Any, n_rows: int) -> np.ndarray:
    """Return a number for every row, ``(n,) float64``, as given or from a named column; NaN if missing."""
    if isinstance(given, str):
        column = take_column(as_rows(rows), given, f"{name} is").combine_chunks()
        schema.check_numbers((given,), {given: column.type}, "rows")
        return schema.column_values(Feature(given), column)
    refuse_turned(name, given, rows)
    try:
        found = as_numbers(given)
    except (TypeError, ValueError):
        text = next((each for each in given if isinstance(each, str)), None) if hasattr(given, "__iter__") else None
        said = f"is {say_given(given)}" if text is None else f"has {shorten(str(text))}"
        raise UsageError(f"{name} {said}, expected numbers, or the name of a column{'; two classes are 0 and 1' * (text is not None)}") from None
    if found.shape != (n_rows,):
        raise UsageError(f"{name} has shape {found.shape}, expected one number for each of {n_rows} rows")
    return found


def read_targets(method: Method, quantity: Quantity | None, label: Any, weight: Any, rows: Any, n_rows: int) -> Targets | None:
    """Read labels and weights of rows, for a method or a loss that takes them.

    Parameters
    ----------
    quantity : Quantity or None
        That attributions are carried to.
    label, weight : Any
        Numbers, the name of a column of the rows, or None.

    Returns
    -------
    two (n_rows,) float64, or None
        Labels, NaN where missing, and weights; None for a method that takes none.

    Raises
    ------
    UsageError
        They are missing, not taken, no numbers, no such column, not one for each row, or in another order than the rows.
    SchemaMismatch
        The column holds no numbers.
    InvalidLabel
        A number cannot be used.
    """
    loss = None if quantity is None or not quantity.labelled else quantity
    if not method.labelled and loss is None:
        if label is not None or weight is not None:
            raise UsageError(f"method {method.name!r} takes no labels and weights; method {labelled_methods()} does, and space {LOSS!r}")
        return None
    if label is None:
        raise UsageError(f"{f'method {method.name!r}' if loss is None else f'space {LOSS!r}'} needs labels; give them as label")
    labels, weights = _read_column("label", label, rows, n_rows), np.ones(n_rows)
    if weight is not None:
        weights = _read_column("weight", weight, rows, n_rows)
    check_values(labels, weights, COUNT, RowPlaces.one("rows", 0), ("the label", "the weight"), loss)
    return labels, weights
