"""Rows in memory as given: matrices, data frames, and single rows as Series, with validation of columns."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import replace
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.trees.binning import BinTables, bin_dtype, bin_rows, padded

from ...arguments.readers import shorten
from ...dataset.columns.names import call, name_at, spell
from ...dataset.columns.notes import warn_positions
from ...dataset.columns.schema import has_several_types, index_columns
from ...dataset.columns.values import fill_values, read_features
from ...display.text import count
from ...errors import SchemaMismatch, UsageError
from ...methods.unseen_categories import ENOUGH, count_unseen, refuse_counted
from ...models.model import Feature, Model
from .dask_frames import is_dask
from .records import as_columns

REAL = "biuf"  # kinds of numeric dtypes
ROWS = "rows"  # name of the rows in messages
BACKGROUND = "rows of the background"
SLICE_ROWS = 1 << 13
Header = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # names of all columns, of index columns, and of others that are no features


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, Real | Decimal | np.bool_)


def _holds_numbers(values: np.ndarray) -> bool:
    return values.dtype.kind in REAL or (values.dtype.kind == "O" and all(map(_is_number, values.flat)))


def as_numbers(given: Any) -> np.ndarray:
    """Accept real numbers, and refuse texts, dates, complex numbers and masked values, which NumPy might convert.

    Parameters
    ----------
    given : number, sequence of numbers, or array

    Returns
    -------
    float64
        Of its shape; NaN where it has None.

    Raises
    ------
    TypeError, ValueError
        It is something else, see `say_given`.
    """
    found = np.asarray(given)
    if isinstance(given, np.ma.MaskedArray) or not _holds_numbers(found):
        raise TypeError(f"{say_given(given)} is no numbers")
    try:
        return found.astype(np.float64)
    except OverflowError as error:  # a large integer
        raise ValueError(*error.args) from error


def say_given(given: Any) -> str:
    """Describe a value given instead of numbers, for a one-line message.

    Returns
    -------
    str
        Of an array its type.
    """
    if isinstance(given, np.ma.MaskedArray):
        return "a masked array"
    return f"an array of {given.dtype}" if isinstance(given, np.ndarray) else shorten(given)


def in_order(given: Any, names: Sequence[str], what: str) -> Any:
    """Reorder numbers with pandas labels to given names; NumPy would use them by position.

    Parameters
    ----------
    names : sequence of str
        Of features or groups.
    what : str
        That the numbers are, for messages.

    Returns
    -------
    Any
        A Series, or the columns of a frame, in the order of the names; anything else as it is.

    Raises
    ------
    UsageError
        Labels are other ones than the names, or than their positions.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(given, pandas.Series | pandas.DataFrame):
        return given
    labels = (given.index if isinstance(given, pandas.Series) else given.columns).tolist()
    places = {name: j for j, name in enumerate(names)}
    called = [name_at(label, places, what) for label in labels]
    if len(called) != len(names) or {*map(str, called)} != {*names}:
        raise UsageError(f"{what} are named {shorten([*map(str, labels)])}, expected names or positions of {shorten([*names])}")
    order = [called.index(name) for name in names]
    return given.iloc[order] if isinstance(given, pandas.Series) else given.iloc[:, order]


def _check_matrix(rows: np.ndarray, where: str) -> None:
    if isinstance(rows, np.ma.MaskedArray):
        raise SchemaMismatch(f"{where} are a masked array, expected NaN where a value is missing")
    if not _holds_numbers(rows):
        kind = "other things than numbers" if rows.dtype.kind == "O" else str(rows.dtype)
        raise SchemaMismatch(f"{where} are an array of {kind}, expected numbers; a data frame holds categories by their values")


def are_turned(given: Any, others: Any) -> bool:
    """Return whether two pandas objects have the same unique labels in different order."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(given, pandas.Series) or not isinstance(others, pandas.Series | pandas.DataFrame):
        return False
    labels, known = given.index, others.index
    return len(labels) == len(known) and not labels.equals(known) and labels.is_unique and known.is_unique and bool(labels.isin(known).all())


def refuse_turned(name: str, given: Any, rows: Any) -> None:
    """Refuse numbers of rows, as their labels, that pandas would put in another order."""
    if are_turned(given, rows):
        raise UsageError(f"{name} is a Series with the labels of the rows in another order, expected the same order, or an array")


def _check_columns(rows: Mapping[Any, Any], where: str) -> None:
    """Refuse columns that iterate over other things than values, or without order, or only once."""
    first = next(iter(rows.values()), None)
    for name, column in rows.items():
        if are_turned(column, first):
            raise SchemaMismatch(
                f"{where}: column {name!r} is a Series with the labels of the first column in another order, expected the same, or a frame"
            )
        if isinstance(column, Mapping | Set | Iterator | str | bytes | Number):
            raise SchemaMismatch(f"{where}: column {name!r} is a {type(column).__name__}, expected a list or an array of values")


def as_rows(rows: Any, where: str = ROWS) -> Any:
    """Accept unambiguous rows; others are refused here or by their reader.

    Parameters
    ----------
    where : str
        What they are, for messages.

    Returns
    -------
    Any
        A matrix as a plain array; a pandas Series as a frame of one row; records as columns; columns of frames that pandas numbers have their
        numbers as texts for names; anything else as it is.

    Raises
    ------
    SchemaMismatch
        A matrix holds something else than real numbers, columns have several levels of names or are no sequences, or rows are a stream, which is
        empty for whoever reads it a second time.
    """
    rows = as_columns(rows, where)
    if isinstance(rows, np.ndarray):
        _check_matrix(rows, where)
        return np.asarray(rows)
    pandas = sys.modules.get("pandas")  # not imported for other rows
    if pandas is not None and isinstance(rows, pandas.Series):
        rows = rows.to_frame().T.infer_objects()
    if is_dask(rows):
        raise SchemaMismatch(
            f"{where} are a Dask DataFrame, which attribute and an explainer take as rows; expected rows in memory, as its compute() makes"
        )
    if isinstance(rows, Mapping):
        _check_columns(rows, where)
    if hasattr(rows, "__arrow_c_stream__") and not hasattr(rows, "columns") and not isinstance(rows, Sized):
        raise SchemaMismatch(f"{where} are a {type(rows).__name__}, a stream that can be read once, expected a table, as pyarrow.table makes of it")
    if pandas is None or not isinstance(rows, pandas.DataFrame):
        return rows
    if rows.columns.nlevels > 1:
        raise SchemaMismatch(f"{where} have columns of {rows.columns.nlevels} levels, expected one name for each")
    if not all(isinstance(name, str) for name in rows.columns):
        rows = rows.copy(deep=False)
        rows.columns = [str(name) for name in rows.columns]  # column names as texts, as in XGBoost, LightGBM and Arrow
    return rows


def spell_features(model: Model, rows: Any, *others: Any, where: str = ROWS) -> Model:
    """Rename a model's features as the columns of rows, and warn of a match by position.

    Parameters
    ----------
    *others : Any
        Arguments that may name columns which are no features, such as the label's.
    where : str
        What the rows are, for messages.

    Returns
    -------
    Model
        As it is where rows have no names.

    Raises
    ------
    SchemaMismatch
        Two columns may be a feature's; or a model without names has other features than rows have columns.
    """
    refuse_values(model.features, rows, where)
    header = read_header(rows, *others, where=where)
    return model if header is None else spell_header(model, header, where)


def refuse_values(features: Sequence[Feature], rows: Any, where: str = ROWS) -> None:
    """Refuse a Series that is no row of the model's: one that knows none of the features, such as the label of all rows."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(rows, pandas.Series) or len(rows) == len(features):
        return
    if not {*map(str, rows.index)} & {feature.name for feature in features}:
        raise SchemaMismatch(
            f"{where} are a Series of {count(len(rows), 'value')} without any of the model's features, expected a data frame, or a row of one; "
            "is it the label?"
        )


def read_header(rows: Any, *others: Any, where: str = ROWS) -> Header | None:
    """Read the column names of rows.

    Parameters
    ----------
    *others : Any
        As `spell_features` takes them.
    where : str
        What the rows are, for messages.

    Returns
    -------
    (tuple of str, tuple of str, tuple of str), or None
        Names of all columns, of those of an index, and of those that others name; None where rows have no names.
    """
    pandas, index, rows = sys.modules.get("pandas"), list[str](), as_columns(rows, where)
    if isinstance(rows, pa.Table | pa.RecordBatch):
        names, index = rows.schema.names, [*index_columns(rows.schema)]
    elif isinstance(rows, Mapping) or (pandas is not None and isinstance(rows, pandas.Series)):
        names = rows.keys()
    else:
        names = getattr(rows, "columns", None)
    if not isinstance(names, Iterable):  # a matrix, or invalid
        return None
    return tuple(map(str, names)), tuple(index), tuple(name for name in others if isinstance(name, str))


def spell_header(model: Model, header: Header, where: str = ROWS) -> Model:
    """Rename a model's features as given columns, and warn of a match by position.

    Parameters
    ----------
    header : (tuple of str, tuple of str, tuple of str)
        As `read_header` returns it.
    where : str
        What the rows are, for messages.

    Raises
    ------
    SchemaMismatch
        As by `spell_features`.
    """
    names, index, asked = header
    found = call(model, *spell(model.features, names, where, index, asked))
    if found.by_position and not model.by_position:
        warn_positions(found, where)
    return found


def code_categories(features: Sequence[Feature], rows: Any) -> tuple[tuple[Feature, ...], Any]:
    """Encode categories of several types, such as texts and numbers, as LightGBM does, since Arrow has no such columns."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(rows, pandas.DataFrame) or not rows.columns.is_unique:
        return tuple(features), rows
    codes, types = {}, dict(zip(rows.columns, rows.dtypes, strict=True))
    for feature in features:
        if isinstance(types.get(feature.name), pandas.CategoricalDtype) and has_several_types(feature):
            column = rows[feature.name].cat
            known = column.set_categories(list(feature.categories or ())).cat.codes.to_numpy(float)
            unseen = np.where(column.codes < 0, np.nan, len(feature.categories or ()))
            codes[feature.name] = np.where(known < 0, unseen, known)
    coded = tuple(replace(feature, categories=None) if feature.name in codes else feature for feature in features)
    return coded, rows.assign(**codes) if codes else rows


def fill_columns(features: Sequence[Feature], bins: BinTables, batch: pa.RecordBatch, out: np.ndarray) -> None:
    """Convert the columns of rows to feature values, see `fill_values`.

    Parameters
    ----------
    features : sequence of Feature
        All features of the model, as `as_batch` returns them.
    batch : pa.RecordBatch
        Of n rows, from `as_batch`.
    out : (used, at least n) float64
        Overwritten.

    Raises
    ------
    InvalidColumn
        Values of a column are not what its type says.
    """
    fill_values(read_features(features, bins), bins, [batch.column(j) for j in range(bins.read.size)], out)


def bin_batch(features: Sequence[Feature], bins: BinTables, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Convert the used columns of rows to values and bins.

    Parameters
    ----------
    features : sequence of Feature
        All features of the model, as `as_batch` returns them.
    batch : pa.RecordBatch
        Of n rows, from `as_batch`.

    Returns
    -------
    values : (used, padded(n)) float64
        Zeros beyond the rows.
    binned : (used, padded(n)) unsigned integers
    """
    values = np.zeros((bins.column.size, padded(batch.num_rows)))
    fill_columns(features, bins, batch, values)
    binned = np.zeros(values.shape, bin_dtype(bins))
    bin_rows(values, bins, binned)
    return values, binned


def refuse_unknown(features: Sequence[Feature], bins: BinTables, batch: pa.RecordBatch, where: str, allow_unseen: bool) -> None:
    """Refuse rows in which the model knows hardly any category of a feature.

    Parameters
    ----------
    features : sequence of Feature
        All features of the model, as `as_batch` returns them.
    batch : pa.RecordBatch
        Of n rows, from `as_batch`.
    where : str
        What they are, for the message.
    allow_unseen : bool
        Refuse nothing.
    """
    if allow_unseen or batch.num_rows < ENOUGH or not bins.n_codes.any():
        return
    counts = []
    for first in range(0, batch.num_rows, SLICE_ROWS):
        part = batch.slice(first, SLICE_ROWS)
        values = np.zeros((bins.column.size, part.num_rows))
        fill_columns(features, bins, part, values)
        counts.append(count_unseen(bins, values))
    some = batch.slice(0, SLICE_ROWS)
    refuse_counted(np.sum(counts, axis=0), read_features(features, bins), where, lambda name: some.column(name).to_pylist())
