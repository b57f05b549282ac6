"""Values that features can be changed to: from columns' types and what a person may change, and as the data have them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.changes.nearest import ChangeTables
from leafledger.kernels.changes.supported import Grid, Supported, support_numbers
from leafledger.kernels.trees.binning import ZERO, BinTables

from ..dataset.columns.schema import column_values
from ..display.nearest import did_you_mean
from ..errors import UsageError
from ..models.model import Feature
from .asked import Change, knows_hashes

LOWEST = float(np.finfo(np.float32).min)  # CatBoost's place of missing values, below all numbers
CLOSE = 9  # digits of a step that count, so that 0.1 is a tenth


@dataclass(frozen=True, slots=True)
class Column:
    """What a column of numbers holds."""

    unit: Fraction | None = None  # numbers are multiples of it; None of floats
    dtype: type[np.floating] = np.float64
    least: float = -math.inf
    most: float = math.inf
    python: type = float  # of a value


def describe_column(found: pa.DataType) -> Column:
    """Describe a column of numbers by its type."""
    kind = found.value_type if pa.types.is_dictionary(found) else found
    if pa.types.is_boolean(kind):
        return Column(Fraction(1), least=0.0, most=1.0, python=bool)
    if pa.types.is_integer(kind):
        ends = np.iinfo(kind.to_pandas_dtype())
        return Column(Fraction(1), least=float(ends.min), most=float(ends.max), python=int)
    if pa.types.is_decimal(kind):
        end = float(10 ** (kind.precision - kind.scale))
        return Column(Fraction(1, 10**kind.scale) if kind.scale >= 0 else Fraction(10**-kind.scale), least=-end, most=end)
    return Column(dtype=kind.to_pandas_dtype()) if pa.types.is_floating(kind) else Column()


def _choose_step(asked: float | None, unit: Fraction | None) -> float:
    """Return the smallest step whose multiples are multiples of both; 0 without any."""
    if asked is None or unit is None:
        return asked or float(unit or 0)
    step = Fraction(repr(float(f"{asked:.{CLOSE}g}")))
    whole = math.lcm(step.numerator * unit.denominator, unit.numerator * step.denominator)
    return float(Fraction(whole, step.denominator * unit.denominator))


def _encode(feature: Feature, listed: Sequence[str | float], where: str) -> np.ndarray:
    """Return the codes of categories, and refuse those that the model does not know."""
    if feature.categories is None:
        codes = np.array([np.nan if isinstance(each, str) else each for each in listed])
        wrong = ~((codes >= 0) & (codes == np.floor(codes)))
    else:
        codes = column_values(feature, pa.array([each if isinstance(each, str) else f"{each:.17g}" for each in listed]))
        wrong = (codes >= len(feature.categories)) & (not feature.partial)  # splits ask for some alone: any other is all others
    if wrong.any():
        expected = "a code" if feature.categories is None else "a category that the model knows"
        found = listed[int(np.argmax(wrong))]
        raise UsageError(f"{where}: to has {found!r:.80}, expected {expected}{did_you_mean(found, feature.categories or ())}")
    return codes


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a feature that may be changed, as the data have them."""

    python: type  # of numbers
    single: bool  # numbers are told apart as float32 tells them
    names: Mapping[int, Any] | None  # from codes of categories to their values; None of numbers

    def name(self, found: float) -> Any:
        """Return a number or a code as the data have it."""
        if self.names is not None:
            return self.names[int(found)]
        short = float(str(np.float32(found))) if self.single else found
        return self.python(short)


def _take_categories(change: Change, feature: Feature, n_codes: int, where: str) -> tuple[np.ndarray, dict[int, Any]]:
    """Return the codes of the categories that a feature may become, and their values."""
    codes = np.arange(n_codes, dtype=np.float64)
    if change.to is not None:
        codes = _encode(feature, change.to, f"{where}: {change.feature!r}")
        if feature.categories is None and (codes >= n_codes).any():
            raise UsageError(f"{where}: {change.feature!r}: to has code {codes.max():g}, expected one below {n_codes}, as splits ask for")
    if knows_hashes(feature):
        return codes, dict(reversed([*zip(codes.astype(int).tolist(), change.to or (), strict=True)]))
    return codes, dict(enumerate(range(n_codes) if feature.categories is None else feature.categories))


def _list_missing(feature: Feature, grid: Grid, zero: bool) -> list[tuple[float, float]]:
    """List the numbers that stand for a missing value, from where to where."""
    found = [(-math.inf, LOWEST)] + [(-ZERO, ZERO)] * zero
    if feature.missing is not None:
        (seen,) = grid.seen(np.array([feature.missing])).tolist()
        found.append((seen, seen))
    return found


def support(
    changes: Sequence[Change], features: Sequence[Feature], bins: BinTables, tables: ChangeTables, types: Sequence[pa.DataType], where: str
) -> tuple[Supported, tuple[Values, ...]]:
    """Find what features can be changed to.

    Parameters
    ----------
    changes : sequence of Change
        Checked by `check_changes`, one for each feature of the tables.
    features : sequence of Feature
        The same, as their columns are read.
    types : sequence of pa.DataType
        Of these columns.
    where : str
        What messages start with.

    Returns
    -------
    Supported
        For the kernel.
    tuple of Values
        How what it finds is told.

    Raises
    ------
    UsageError
        A category is not known.
    """
    lists, told = [], []
    for change, feature, kind, j in zip(changes, features, types, tables.feature.tolist(), strict=True):
        if bins.n_codes[j]:
            codes, names = _take_categories(change, feature, int(bins.n_codes[j]), where)
            lists.append((codes, codes))
            told.append(Values(float, False, names))
            continue
        column, thresholds = describe_column(kind), bins.threshold[bins.start[j] : bins.start[j + 1]]
        single = bool(bins.single_precision[0]) or np.dtype(column.dtype).itemsize < np.dtype(np.float64).itemsize
        dtype = column.dtype if np.dtype(column.dtype).itemsize < np.dtype(np.float32).itemsize or not single else np.float32
        grid = Grid(_choose_step(change.step, column.unit), dtype)
        least = max(column.least, -math.inf if change.at_least is None else change.at_least)
        most = min(column.most, math.inf if change.at_most is None else change.at_most)
        missing = _list_missing(feature, grid, bool(bins.zero_missing[j]))
        lists.append(support_numbers(thresholds[np.isfinite(thresholds)], grid, least, most, missing))
        told.append(Values(column.python, single and not grid.step, None))
    low, high = (np.concatenate([np.zeros(0), *(each[side] for each in lists)]) for side in (0, 1))
    ways = [change.direction for change in changes]
    start = np.cumsum([0, *(each[0].size for each in lists)], dtype=np.int64)
    up, down = (np.array([way in (side, "both") for way in ways], bool) for side in ("up", "down"))
    return Supported(start, low, high, up, down), tuple(told)
