"""Rows as records, dicts of values by feature, turned into columns; and what is no rows yet, refused with what to write instead."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

from ...arguments.readers import shorten
from ...errors import SchemaMismatch

EXPECTED = "expected a data frame, an Arrow table, an array of shape (n, features), a dict of values by feature, or a list of such dicts"


def is_value(given: Any) -> bool:
    """Tell a single value, such as a number, a text or None, from a column of them."""
    return isinstance(given, str | bytes) or not hasattr(given, "__iter__")


def as_columns(rows: Any, where: str) -> Any:
    """Turn a dict of single values, which is one row, and a list of dicts into lists by name; refuse what holds no rows yet, as a path."""
    if isinstance(rows, str | PathLike):
        path = shorten(str(rows))
        raise SchemaMismatch(
            f"{where} are {path}, a path, expected rows in memory: pandas.read_parquet({path}); leafledger.explain reads files itself"
        )
    if type(rows).__name__ == "LazyFrame":  # of Polars, which need not be imported
        raise SchemaMismatch(f"{where} are a LazyFrame, which is not read yet, expected rows in memory: frame.collect()")
    if hasattr(rows, "toarray"):
        raise SchemaMismatch(
            f"{where} are a sparse {type(rows).__name__}, expected an array, as its toarray() makes; "
            "of XGBoost with NaN in place of what is not stored, which it takes for missing"
        )
    if isinstance(rows, Mapping) and rows and all(map(is_value, rows.values())):
        rows = [rows]
    if not isinstance(rows, list | tuple) or not rows or not all(isinstance(record, Mapping) for record in rows):
        return rows
    names = rows[0].keys()
    for number, record in enumerate(rows):
        unlike = sorted(map(str, record.keys() ^ names))
        if unlike:
            has, lacks = (number, 0) if unlike[0] in map(str, record) else (0, number)
            raise SchemaMismatch(f"{where}: record {has} has {unlike[0]!r:.80} and record {lacks} has not, expected None where a value is missing")
    return {str(name): [record[name] for record in rows] for name in names}
