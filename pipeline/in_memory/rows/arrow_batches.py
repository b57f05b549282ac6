"""Rows in memory as Arrow columns, or as one numeric matrix, from which batches are filled."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.trees.binning import BinTables

from ...dataset.columns import schema
from ...dataset.columns.values import fill_numbers, read_features
from ...errors import SchemaMismatch
from ...models.model import Feature, Model
from .given_rows import ROWS, as_rows, code_categories, fill_columns
from .records import EXPECTED

NUMBERS, INTEGERS = tuple("biuf"), frozenset("iu")  # kinds of numeric dtypes
FEW = 1 << 13  # rows of a frame up to which all columns are copied
EXACT = 2.0**53  # integers below it are exact in float64
Fill = Callable[[int, int, np.ndarray], None]  # writes a number of rows from a first one into (used, at least n) float64


def _narrow(features: tuple[Feature, ...], rows: Any, used: Sequence[int]) -> tuple[tuple[Feature, ...], Any]:
    """Drop unused columns of a pandas frame unless their type is checked, since Arrow converts frames column by column.

    The index is dropped too, since Arrow may not read it. Other rows, and frames to be refused, are returned unchanged.
    """
    pandas = sys.modules.get("pandas")  # not imported for other rows
    if pandas is None or not isinstance(rows, pandas.DataFrame) or not rows.columns.is_unique:
        return features, rows
    kinds = {name: dtype.kind for name, dtype in rows.dtypes.items() if isinstance(dtype, np.dtype)}
    asked = set(used)
    left = tuple(feature for j, feature in enumerate(features) if j in asked or feature.categorical or kinds.get(feature.name, "") not in NUMBERS)
    names = [feature.name for feature in left]
    if rows.columns.isin(names).sum() != len(names):
        return features, rows
    narrowed = rows[names]  # a frame of its own, independent of its index
    narrowed.index = pandas.RangeIndex(len(rows))
    return left, narrowed


def _check_shape(model: Model, rows: np.ndarray, where: str = ROWS) -> None:
    """Refuse a matrix that does not match the model's features."""
    n = len(model.features)
    if rows.ndim == 1:
        hint = "array[None] makes a matrix of one row" if rows.size == n else "is it the label?"
        raise SchemaMismatch(f"{where} have shape {rows.shape}, expected (n, {n}), a column for each of the model's features; {hint}")
    if rows.ndim != 2 or rows.shape[1] != n:
        raise SchemaMismatch(f"{where} have shape {rows.shape}, the model was trained on {n} features")


def _is_narrow(dtype: Any) -> bool:
    """Return whether a float type has less precision than float64."""
    return isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < np.dtype(np.float64).itemsize


def _column_of(feature: Feature, values: np.ndarray, where: str) -> pa.Array:
    """Return a matrix column; integers, narrow floats and looked-up categories keep their type."""
    kept = feature.by_value or values.dtype.kind in INTEGERS or _is_narrow(values.dtype)
    try:
        column = pa.array(values if kept else values.astype(np.float64))
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise SchemaMismatch(f"{where}: column {feature.name!r} of the array: {' '.join(str(error).split())}") from error
    schema.check_column(feature, column.type, f"{where}, an array")
    return column


def as_batch(model: Model, rows: Any, used: Sequence[int], where: str = ROWS) -> tuple[tuple[Feature, ...], pa.RecordBatch]:
    """Convert the used columns of rows to Arrow.

    Parameters
    ----------
    rows : data frame, Arrow table, array, or pandas Series
        Columns by name, categories as values; a Series is one row of such a frame; or an (n, features) matrix in the model's order, categories as
        the library takes them there, see `Feature`. NaN or null where missing.
    used : sequence of int
        Positions of the features that some split asks for.
    where : str
        What the rows are, for messages.

    Returns
    -------
    features : tuple of Feature
        How to read the columns, by position: as the model has them, but for codes of a matrix, and of categories of several types, which are without
        categories.
    batch : pa.RecordBatch
        The used columns, in the order of ``used``; one column of nulls where none is used, so that rows are counted.

    Raises
    ------
    SchemaMismatch
        Rows are of another shape, hold no numbers, are nothing that Arrow can read, or lack a feature or have it with a type that does not fit.
    """
    names = [model.features[column].name for column in used]
    rows = as_rows(rows, where)
    if isinstance(rows, np.ndarray):
        _check_shape(model, rows, where)
        read = tuple(feature if feature.by_value else replace(feature, categories=None) for feature in model.features)
        return read, _record_batch([_column_of(read[column], rows[:, column], where) for column in used], names, len(rows))
    known, rows = code_categories(model.features, rows)
    schema.check_categories((known[column] for column in used), where)
    features, rows = _narrow(known, rows, used)
    try:
        table = pa.table(rows)
    except (TypeError, ValueError, pa.ArrowException) as error:
        has_names = isinstance(rows, Mapping) or hasattr(rows, "columns")
        said = f" that Arrow cannot read: {' '.join(str(error).split())}" if has_names else f", {EXPECTED}"
        raise SchemaMismatch(f"{where} are a {type(rows).__name__}{said}") from error
    schema.check_columns(features, (), table.schema, (), where)
    columns = [table.column(name).combine_chunks() for name in names]
    return known, _record_batch(columns, names, table.num_rows)


def _record_batch(columns: list[pa.Array], names: list[str], n_rows: int) -> pa.RecordBatch:
    """Make a batch, with its number of rows even without columns."""
    if not columns:
        columns, names = [pa.nulls(n_rows)], [""]
    return pa.record_batch(columns, names=names)


def _take_numbers(model: Model, rows: Any, used: Sequence[int], single_precision: bool) -> np.ndarray | None:
    """Return the used columns of a matrix or a numeric pandas frame, ``(n, read) float64``; None for rows that need Arrow.

    Excluded are matrices with categories looked up by value; integers that float64 rounds before float32 does; and narrow floats with missing-value
    numbers, which they may hold rounded.
    """
    if not single_precision and any(model.features[column].missing is not None for column in used):
        dtypes = [rows.dtype] if isinstance(rows, np.ndarray) else getattr(rows, "dtypes", ())
        if any(map(_is_narrow, dtypes)):
            return None
    if isinstance(rows, np.ndarray):
        _check_shape(model, rows)
        if any(model.features[column].by_value for column in used):
            return None
        return _as_numbers(rows[:, used], {rows.dtype.kind}, single_precision)
    pandas = sys.modules.get("pandas")
    if (
        pandas is None
        or not isinstance(rows, pandas.DataFrame)
        or len(rows) > FEW
        or any(feature.categories or feature.hashed for feature in model.features)
    ):
        return None
    kinds = {dtype.kind if isinstance(dtype, np.dtype) else "" for dtype in rows.dtypes}
    places = {name: place for place, name in enumerate(rows.columns)}
    if not kinds <= {"f", "i"} or len(places) < rows.shape[1] or any(feature.name not in places for feature in model.features):
        return None
    return _as_numbers(rows.to_numpy()[:, [places[model.features[column].name] for column in used]], kinds, single_precision)


def _as_numbers(given: np.ndarray, kinds: set[str], single_precision: bool) -> np.ndarray | None:
    """Convert numbers to float64; None if an integer would be rounded twice, or overflow."""
    try:
        found = given.astype(np.float64, copy=False)
    except OverflowError:
        return None
    return None if single_precision and not INTEGERS.isdisjoint(kinds) and (np.abs(found) >= EXACT).any() else found


def read_rows(model: Model, rows: Any, bins: BinTables) -> tuple[int, Fill]:
    """Read rows, and return how batches are filled from them.

    Parameters
    ----------
    model : Model
        Features as `spell_features` names them.
    rows : data frame, Arrow table, array, or pandas Series
        As `as_batch` takes them.

    Returns
    -------
    n_rows : int
    fill : callable
        ``fill(first, n, out)`` overwrites ``out (used, at least n) float64`` with the values of n rows from number ``first`` on, see `fill_values`.

    Raises
    ------
    SchemaMismatch
        As `as_batch` refuses them.
    """
    used, single = bins.read.tolist(), bool(bins.single_precision[0])
    rows = as_rows(rows)
    numbers = _take_numbers(model, rows, used, single)
    if numbers is not None:
        read = read_features(model.features, bins)
        return len(numbers), lambda first, n, out: fill_numbers(read, bins, numbers[first : first + n], out)
    features, batch = as_batch(model, rows, used)
    return batch.num_rows, lambda first, n, out: fill_columns(features, bins, batch.slice(first, n), out)
