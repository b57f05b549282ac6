"""Conversion of a batch's columns to feature values for binning, including statistics."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from leafledger.kernels.trees.binning import BinTables
from leafledger.kernels.trees.statistics import look_up

from ...errors import InvalidColumn
from ...models.catboost.cityhash import NO_CATEGORY
from ...models.model import Feature
from . import schema
from .categories import check_codes, encode_hashes, hash_values, mark_missing

Features = Sequence[Feature] | Mapping[int, Feature]  # by position in the model


def read_features(features: Features, bins: BinTables) -> tuple[Feature, ...]:
    """Select the features whose columns are read.

    Parameters
    ----------
    features : sequence of Feature, or mapping of int to Feature

    Returns
    -------
    tuple of Feature
        In the order of ``bins.read``.
    """
    return tuple(features[column] for column in bins.read.tolist())


def fill_values(features: Sequence[Feature], bins: BinTables, columns: Sequence[pa.Array], out: np.ndarray) -> None:
    """Convert the columns of a batch to feature values.

    Parameters
    ----------
    features : sequence of Feature
        Those that are read, as `read_features` returns them.
    columns : sequence of pa.Array
        Theirs, of n rows each.
    out : (used, at least n) float64
        Overwritten: numbers, codes of categories, and behind them bins of statistics; NaN where missing, zeros after the last row.

    Raises
    ------
    InvalidColumn
        Values of a column are not what its type says, or one is missing that the model's library expects.
    """
    single, n = bool(bins.single_precision[0]), len(columns[0]) if columns else 0
    out[:, n:] = 0.0
    hashes = {}
    for j, (feature, column) in enumerate(zip(features, columns, strict=True)):
        if feature.hashed:
            hashes[j] = hash_column(feature, column)
            out[j, :n] = encode_hashes(hashes[j], feature.categories or (NO_CATEGORY,))
        else:
            out[j, :n] = schema.column_values(feature, column, single)
    _check_missing(features, out[:, :n])
    if bins.statistics.column.size:
        _fill_statistics(features, bins, hashes, out, n)


def fill_numbers(features: Sequence[Feature], bins: BinTables, numbers: np.ndarray, out: np.ndarray) -> None:
    """Use numbers as feature values, with categories as codes.

    Parameters
    ----------
    features : sequence of Feature
        Those that are read, as `read_features` returns them; none is looked up by hashes.
    numbers : (n, read) float64
        NaN where missing.
    out : (used, at least n) float64
        Overwritten as by `fill_values`.

    Raises
    ------
    InvalidColumn
        A code is between -1 and 0, or a value is missing that the model's library expects.
    """
    n = len(numbers)
    out[: bins.read.size, :n] = numbers.T
    out[:, n:] = 0.0
    for j, feature in enumerate(features):
        if feature.missing is not None:
            out[j, :n] = mark_missing(feature, out[j, :n], bool(bins.single_precision[0]))
        if feature.categorical:
            with _naming(feature):
                check_codes(out[j, :n])
    _check_missing(features, out[:, :n])
    if bins.statistics.column.size:
        _fill_statistics(features, bins, {}, out, n)


def hash_column(feature: Feature, column: pa.Array) -> np.ndarray:
    """Hash the values of a feature with statistics.

    Parameters
    ----------
    column : pa.Array
        n values.

    Returns
    -------
    (n,) float64
        0..2**32 - 1; NaN where missing.

    Raises
    ------
    InvalidColumn
        Values are not what the type says.
    """
    with _naming(feature):
        return hash_values(column, feature.booleans)


@contextmanager
def _naming(feature: Feature) -> Iterator[None]:
    """Name the column in errors raised inside."""
    try:
        yield
    except (pa.ArrowException, ValueError) as error:
        raise InvalidColumn(f"column {feature.name!r}: {' '.join(str(error).split())}") from error


def _check_missing(features: Sequence[Feature], values: np.ndarray) -> None:
    """Refuse missing values that the model cannot handle, ``values (used, n)``."""
    for feature, column in zip(features, values, strict=False):
        missing = np.isnan(column).sum() if feature.refuses_missing else 0
        if missing:
            raise InvalidColumn(
                f"column {feature.name!r} has {missing} missing values, expected none: the model's library predicts no such row; write what stood "
                "for them in training"
            )


def _fill_statistics(features: Sequence[Feature], bins: BinTables, hashes: Mapping[int, np.ndarray], out: np.ndarray, n: int) -> None:
    """Look up statistics, and mark categories as unseen that neither statistics nor splits know."""
    statistics = bins.statistics
    at = np.searchsorted(bins.read, statistics.source).tolist()
    inputs, seen = np.empty((len(at), n)), np.empty((len(at), n), bool)
    for values, j in zip(inputs, at, strict=True):
        with np.errstate(over="ignore"):  # too large values round to infinity, as in the library
            values[:] = hashes[j] if j in hashes else out[j, :n].astype(np.float32)
    look_up(inputs, statistics, out[bins.read.size :, :n], seen)
    for known, j in zip(seen, at, strict=True):
        if features[j].categories == (NO_CATEGORY,):
            out[j, :n] = np.where(np.isnan(out[j, :n]), np.nan, ~known)
