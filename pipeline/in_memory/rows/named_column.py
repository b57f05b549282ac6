"""A column of rows by its name, whatever holds them."""

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...display.nearest import did_you_mean
from ...errors import UsageError


def take_column(rows: Any, name: str, says: str) -> pa.ChunkedArray:
    """Take a column of rows, or a level of the index of a pandas frame.

    Parameters
    ----------
    rows : Any
        As `as_rows` returns them.
    says : str
        Who names it, as "label is", for messages.

    Raises
    ------
    UsageError
        There is no such column, or two levels are called so, or Arrow cannot read it.
    """
    arrow = isinstance(rows, pa.Table | pa.RecordBatch)
    there = rows.schema.names if arrow else rows if isinstance(rows, Mapping) else getattr(rows, "columns", ())
    pandas = sys.modules.get("pandas")
    if name not in there and pandas is not None and isinstance(rows, pandas.DataFrame):
        levels = [level for level in rows.index.names if level is not None]
        there = [*there, *levels]
        if levels.count(name) > 1:
            raise UsageError(f"{says} {name!r}, which is the name of {levels.count(name)} levels of the index of the rows, expected one")
        rows = {name: rows.index.get_level_values(name)} if name in levels else rows
    if name not in there:
        raise UsageError(f"{says} {name!r}, which is no column of the rows{did_you_mean(name, there)}")
    try:
        return pa.table({name: rows[name]}).column(0)
    except (KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise UsageError(f"{says} {name!r}, a column that Arrow cannot read: {' '.join(str(error).split())}") from error
