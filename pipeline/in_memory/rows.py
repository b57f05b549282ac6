"""Rows as they are given in memory: matrices of numbers, frames with a column for every name, and a single row as a pandas Series."""

import sys
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ..errors import SchemaMismatch

REAL = "biuf"  # kinds of NumPy's types


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, Real | Decimal | np.bool_)


def _check_matrix(rows: np.ndarray) -> None:
    if isinstance(rows, np.ma.MaskedArray):
        raise SchemaMismatch("rows are a masked array, expected NaN where a value is missing")
    if rows.dtype.kind not in REAL and not (rows.dtype.kind == "O" and all(map(_is_number, rows.flat))):
        kind = "other things than numbers" if rows.dtype.kind == "O" else str(rows.dtype)
        raise SchemaMismatch(f"rows are an array of {kind}, expected numbers; a data frame holds categories by their values")


def as_rows(rows: Any) -> Any:
    """Take rows that mean one thing only; others are refused here or by who reads them.

    Parameters
    ----------
    rows : Any

    Returns
    -------
    Any
        A matrix as a plain array; a pandas Series as a frame of one row; anything else as it is.

    Raises
    ------
    SchemaMismatch
        A matrix holds something else than real numbers, or columns have several levels of names.
    """
    if isinstance(rows, np.ndarray):
        _check_matrix(rows)
        return np.asarray(rows)
    pandas = sys.modules.get("pandas")  # not imported for rows that are none of its own
    if pandas is None:
        return rows
    if isinstance(rows, pandas.Series):
        rows = rows.to_frame().T.infer_objects()
    if isinstance(rows, pandas.DataFrame) and rows.columns.nlevels > 1:
        raise SchemaMismatch(f"rows have columns of {rows.columns.nlevels} levels, expected one name for each")
    return rows
